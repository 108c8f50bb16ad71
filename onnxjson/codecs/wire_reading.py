"""Serialised messages -> records, fast for the frequent ones.

The methods `_nodes`, `attribute`, `tensor` ... read by hand the plain case of the messages of which a big model has
many, and leave anything else to the generic reader. Names, types and attributes are remembered: equal bytes become the
same object.
"""

import hashlib
from functools import partial
from typing import Any, Final

from onnxjson.codecs.wire_format import Buffer, read_run, read_varint, signed
from onnxjson.codecs.wire_generic import GenericReader
from onnxjson.codecs.wire_runs import MOST_SHARED, SHARED, Run, Shared
from onnxjson.model import document as d
from onnxjson.model.errors import WireError
from onnxjson.model.limits import MESSAGE_DEPTH
from onnxjson.model.payloads import Data, SourceFile

_REMEMBERED: Final = 512
"""Maximum bytes of a part of a node that is remembered."""

_MOST_REMEMBERED: Final = 16_384
"""Maximum number of remembered parts of each kind: in a graph with more, few are equal."""

_SHALLOW: Final = 128
"""A type of this many bytes has at most half as many levels, so above `_SHALLOW` / 4 levels it never nests too deep."""

_LONG_RUN: Final = 1024
"""Minimum bytes of a repeated number that is read as a whole."""

_SIGN: Final = 1 << 63
"""The smallest varint that stands for a negative number."""


class WireReader(GenericReader):
    """Reads messages from a buffer; payloads of `LAZY_FROM` bytes and more stay in `source`, if it is given."""

    def __init__(self, buffer: Buffer, source: SourceFile | None = None) -> None:
        super().__init__(buffer, source)
        self._types: dict[bytes, d.Type] = {}
        self._tails: dict[bytes, tuple[str | None, tuple[d.Attribute, ...], str | None]] = {}
        self._attributes: dict[bytes, d.Attribute] = {}
        self._entries: dict[bytes, d.StringStringEntry] = {}
        self._shared: dict[tuple[int, ...], tuple[d.Attribute, ...]] = {}
        """Runs of attributes by the identities of their members."""
        self._frequent = {
            d.Attribute: self.attribute,
            d.Tensor: self.tensor,
            d.ValueInfo: self.value_info,
            d.StringStringEntry: self.entry,
        }
        self._runs = {d.Node: self._nodes, d.ValueInfo: self._value_infos}
        self._former: Shared | None = None
        shared = SHARED.get() if source is None or type(source) is SourceFile else None  # others may not have all yet
        if shared is not None:
            self._frequent[d.Graph] = partial(self._graph, shared)

    def _graph(self, shared: Shared, position: int, end: int, depth: int) -> d.Graph:
        """Read a graph; main graphs with the same bytes become one object."""
        if depth > 1:
            graph: d.Graph = self.message(d.Graph, position, end, depth)
            return graph
        known, digest = shared.graphs, b""
        if end - position <= MOST_SHARED:
            with memoryview(self._buffer) as whole, whole[position:end] as own:
                digest = hashlib.sha256(own).digest()
        if not digest or digest not in known:
            self._former = shared
            known[digest] = self.message(d.Graph, position, end, depth)
            self._former = None  # to compare functions, which rarely have runs in common, costs more than to read them
        return known[digest]

    def _run(self, record: type[d.Record], tag: int, position: int, end: int, depth: int) -> tuple[list[Any], int]:
        read, former = super()._run, self._former
        if former is None or depth != 1:
            return read(record, tag, position, end, depth)
        run = former.runs.get((record, tag))
        if run is None:
            payloads = self._payloads
            found, stop = read(record, tag, position, end, depth)
            if payloads == self._payloads and stop - position <= MOST_SHARED:  # payloads would be read from this file
                former.runs[record, tag] = Run(self._buffer[position - 1 : stop], found)
            return found, stop
        return run.follow(partial(read, record, tag), tag, self._buffer, position - 1, end, depth)

    def _nodes(self, tag: int, position: int, end: int, depth: int) -> tuple[list[d.Node], int]:
        """Read consecutive NodeProtos: names by hand, the rest from the remembered parts."""
        buffer = self._buffer
        names = self._names
        tails = self._tails
        found = []
        while True:
            stop = position + 1 + buffer[position]
            if buffer[position] < 0x80 and stop <= end:
                position += 1
            else:
                position, stop = self._inside(position, end)
            start = position
            inputs: list[str] = []
            outputs: list[str] = []
            name = None
            field = buffer[position] if position < stop else 0
            while field == 0x0A:
                size = buffer[position + 1]
                if size < 0x80:
                    position += 2
                else:
                    size, position = read_varint(buffer, position + 1)
                inputs.append(names[buffer[position : position + size]])
                position += size
                field = buffer[position] if position < stop else 0
            while field == 0x12:
                size = buffer[position + 1]
                if size < 0x80:
                    position += 2
                else:
                    size, position = read_varint(buffer, position + 1)
                outputs.append(names[buffer[position : position + size]])
                position += size
                field = buffer[position] if position < stop else 0
            if field == 0x1A:
                size = buffer[position + 1]
                if size < 0x80:
                    position += 2
                else:
                    size, position = read_varint(buffer, position + 1)
                name = buffer[position : position + size].decode("utf-8", "surrogateescape")
                position += size
            # From the operator on, most nodes equal others: op_type, attributes, domain.
            known = tails.get(buffer[position:stop]) if position < stop <= position + _REMEMBERED else None
            if known is not None:
                found.append(d.Node(tuple(inputs), tuple(outputs), name, known[0], known[1], None, known[2]))
            else:
                node = self._rest_of_node(d.Node(tuple(inputs), tuple(outputs), name), position, stop, depth + 1)
                found.append(node or self.message(d.Node, start, stop, depth + 1))
            if stop >= end or buffer[stop] != tag:
                return found, stop
            position = stop + 1

    def _inside(self, position: int, end: int) -> tuple[int, int]:
        size = self._buffer[position]
        if size < 0x80:
            position += 1
        else:
            size, position = read_varint(self._buffer, position)
        if position + size > end:
            raise WireError("a message is longer than the one that contains it", position)
        return position, position + size

    def _rest_of_node(self, begun: d.Node, position: int, end: int, depth: int) -> d.Node | None:
        """Read a node from its operator on; None if a field is rare or out of order, or `position` is past the end."""
        buffer = self._buffer
        start = position
        op_type = domain = None
        attributes: tuple[d.Attribute, ...] = ()
        tag = buffer[position] if position < end else 0
        if tag == 0x22:
            position, stop = self._extent(position + 1)
            op_type = self._names[buffer[position:stop]]
            position = stop
            tag = buffer[position] if position < end else 0
        if tag == 0x2A:
            attributes, position = self._attribute_run(position, end, depth)
            tag = buffer[position] if position < end else 0
        if tag == 0x3A:
            position, stop = self._extent(position + 1)
            domain = self._names[buffer[position:stop]]
            position = stop
            tag = buffer[position] if position < end else 0
        metadata: tuple[d.StringStringEntry, ...] = ()
        if tag == 0x4A:
            metadata, position = self._metadata(tag, position, end, depth)
        if position != end:
            return None
        is_small = start < end <= start + _REMEMBERED and len(self._tails) < _MOST_REMEMBERED
        if is_small and not metadata and not any([a.g or a.graphs or a.tp or a.type_protos for a in attributes]):
            # Whether graphs nest too deep depends on their own depth too, so they are not remembered by their bytes.
            self._tails[buffer[start:end]] = (op_type, attributes, domain)
        return d.Node(begun.input, begun.output, begun.name, op_type, attributes, None, domain, None, metadata)

    def _attribute_run(self, position: int, end: int, depth: int) -> tuple[tuple[d.Attribute, ...], int]:
        buffer = self._buffer
        attributes = []
        remembers = len(self._attributes) < _MOST_REMEMBERED
        read = self._remembered_attribute if remembers else self.attribute
        while position < end and buffer[position] == 0x2A:
            size = buffer[position + 1]
            if size < 0x80:
                position += 2
                stop = position + size
            else:
                position, stop = self._extent(position + 1)
            if stop > end:
                raise WireError("attribute is longer than the node that contains it", position)
            attributes.append(read(position, stop, depth + 1))
            position = stop
        # Equal runs of remembered attributes become one tuple; the tuple keeps its attributes, and so their identities.
        run = tuple(attributes)
        if not remembers:
            return run, position
        if len(self._shared) >= _MOST_REMEMBERED:
            return self._shared.get(tuple(map(id, run)), run), position
        return self._shared.setdefault(tuple(map(id, run)), run), position

    def _remembered_attribute(self, position: int, end: int, depth: int) -> d.Attribute:
        if end - position > 64:
            return self.attribute(position, end, depth)
        raw = self._buffer[position:end]
        attribute = self._attributes.get(raw)
        if attribute is None:
            attribute = self.attribute(position, end, depth)
            if not (attribute.g or attribute.graphs or attribute.tp or attribute.type_protos):
                self._attributes[raw] = attribute
        return attribute

    def attribute(self, position: int, end: int, depth: int) -> d.Attribute:
        """Read an AttributeProto; by hand if it has only name, one payload and type."""
        return self._plain_attribute(position, end, depth) or self.message(d.Attribute, position, end, depth)

    def _plain_attribute(self, position: int, end: int, depth: int) -> d.Attribute | None:
        buffer = self._buffer
        # The type is last: two bytes of tag, one of value.
        if end - position < 7 or buffer[position] != 0x0A or buffer[end - 3] != 0xA0 or buffer[end - 2] != 0x01:
            return None
        kind = buffer[end - 1]
        end -= 3
        size = buffer[position + 1]
        after = position + 2 + size
        if size > 0x7F or after >= end:
            return None
        name = self._names[buffer[position + 2 : after]]
        position = after
        tag = buffer[position]
        if kind == 2 and tag == 0x18:
            value, position = read_varint(buffer, position + 1)
            return d.Attribute(name, i=signed(value), type=2) if position == end else None
        if kind == 1 and tag == 0x15:
            return d.Attribute(name, f=buffer[position + 1 : end], type=1) if position + 5 == end else None
        if kind == 7 and tag == 0x40:
            if end - position > _LONG_RUN and (long := read_run(buffer[position:end], tag)):
                return d.Attribute(name, ints=long, type=7)
            numbers = []
            while position < end and buffer[position] == 0x40:
                value = buffer[position + 1]
                if value < 0x80:
                    position += 2
                else:
                    value, position = read_varint(buffer, position + 1)
                numbers.append(value if value < _SIGN else signed(value))
            return d.Attribute(name, ints=tuple(numbers), type=7) if position == end else None
        if kind == 3 and tag == 0x22:
            position, stop = self._extent(position + 1)
            return d.Attribute(name, s=buffer[position:stop], type=3) if stop == end else None
        if kind == 4 and tag == 0x2A and depth < MESSAGE_DEPTH - 4:
            position, stop = self._extent(position + 1)
            return d.Attribute(name, t=self.tensor(position, stop, depth + 1), type=4) if stop == end else None
        if kind == 6 and tag == 0x3D and (end - position) % 5 == 0:
            run = buffer[position:end]
            if run[::5] == b"\x3d" * (len(run) // 5):
                floats = b"".join([run[at : at + 4] for at in range(1, len(run), 5)])
                return d.Attribute(name, floats=floats, type=6)
        return None

    def tensor(self, position: int, end: int, depth: int) -> d.Tensor:
        """Read a TensorProto; by hand if it has only dims, data_type, float_data or raw_data, and name."""
        buffer = self._buffer
        start = position
        dims = []
        float_data: Data = b""
        raw_data: Data | None = None
        name = None
        tag = buffer[position] if position < end else 0
        while tag == 0x08:
            value, position = read_varint(buffer, position + 1)
            dims.append(signed(value))
            tag = buffer[position] if position < end else 0
        if tag == 0x10 and buffer[position + 1] < 0x80:
            data_type = buffer[position + 1]
            position += 2
            tag = buffer[position] if position < end else 0
            if tag == 0x22:
                position, stop = self._extent(position + 1)
                if stop <= end and stop > position and (stop - position) % 4 == 0:
                    float_data = self._data(position, stop)
                    position = stop
                    tag = buffer[position] if position < end else 0
            if tag == 0x42:
                position, stop = self._extent(position + 1)
                name = self._names[buffer[position:stop]]
                position = stop
                tag = buffer[position] if position < end else 0
            if tag == 0x4A:
                position, stop = self._extent(position + 1)
                if stop == end:
                    raw_data = self._data(position, stop)
                position = stop
            if position == end:
                return d.Tensor(tuple(dims), data_type, float_data=float_data, name=name, raw_data=raw_data)
        tensor: d.Tensor = self.message(d.Tensor, start, end, depth)
        return tensor

    def value_info(self, position: int, end: int, depth: int) -> d.ValueInfo:
        """Read a ValueInfoProto; by hand if it has only name, type and metadata."""
        buffer = self._buffer
        start = position
        if position < end and buffer[position] == 0x0A:
            size = buffer[position + 1]
            if size > 0x7F:
                size, position = read_varint(buffer, position + 1)
            else:
                position += 2
            stop = position + size
            name = self._names[buffer[position:stop]]
            position = stop
            if position < end and buffer[position] == 0x12:
                position, stop = self._extent(position + 1)
                raw = buffer[position:stop]
                type_ = self._types.get(raw)
                if type_ is None and stop <= end:
                    type_ = self._type(raw, position, stop, depth + 1)
                if stop == end:
                    return d.ValueInfo(name, type_)
                metadata, position = self._metadata(0x22, stop, end, depth)
                if position == end:
                    return d.ValueInfo(name, type_, None, metadata)
        value_info: d.ValueInfo = self.message(d.ValueInfo, start, end, depth)
        return value_info

    def _value_infos(self, tag: int, position: int, end: int, depth: int) -> tuple[list[d.ValueInfo], int]:
        """Read consecutive ValueInfoProtos: by hand if they have only a short name and a type that is remembered."""
        buffer = self._buffer
        types = self._types
        names = self._names
        found = []
        while True:
            stop = position + 1 + buffer[position]
            if buffer[position] < 0x80 and stop <= end:
                position += 1
            else:
                position, stop = self._inside(position, end)
            type_ = None
            if stop - position > 4 and buffer[position] == 0x0A and buffer[position + 1] < 0x80:
                after = position + 2 + buffer[position + 1]
                if after + 2 < stop and buffer[after] == 0x12 and buffer[after + 1] == stop - after - 2 < 0x80:
                    type_ = types.get(buffer[after + 2 : stop])
            if type_ is None:
                found.append(self.value_info(position, stop, depth + 1))
            else:
                found.append(d.ValueInfo(names[buffer[position + 2 : after]], type_))
            if stop >= end or buffer[stop] != tag:
                return found, stop
            position = stop + 1

    def _type(self, raw: bytes, position: int, end: int, depth: int) -> d.Type:
        """Read a TypeProto; one that never nests too deep is remembered by its bytes."""
        type_: d.Type = self.message(d.Type, position, end, depth)
        if len(raw) <= _SHALLOW and depth < _SHALLOW // 4:
            self._types[raw] = type_
        return type_

    def _metadata(self, tag: int, position: int, end: int, depth: int) -> tuple[tuple[d.StringStringEntry, ...], int]:
        """Read consecutive StringStringEntryProtos -> (they, position after them)."""
        buffer = self._buffer
        known = self._entries
        found = []
        while position < end and buffer[position] == tag:
            size = buffer[position + 1]
            if size < 0x80:
                position += 2
            else:
                size, position = read_varint(buffer, position + 1)
            stop = position + size
            if stop > end:
                raise WireError("a message is longer than the one that contains it", position)
            found.append(known.get(buffer[position:stop]) or self.entry(position, stop, depth + 1))
            position = stop
        return tuple(found), position

    def entry(self, position: int, end: int, depth: int) -> d.StringStringEntry:
        """Read a StringStringEntryProto; by hand, and remembered, if it has only a short key and a value."""
        buffer = self._buffer
        if position < end and buffer[position] == 0x0A and buffer[position + 1] < 0x80:
            stop = position + 2 + buffer[position + 1]
            if stop < end and buffer[stop] == 0x12:
                size, after = buffer[stop + 1], stop + 2
                if size > 0x7F:
                    size, after = read_varint(buffer, stop + 1)
                if after + size == end:
                    value = buffer[after:end].decode("utf-8", "surrogateescape")
                    found = d.StringStringEntry(self._names[buffer[position + 2 : stop]], value)
                    return self._entries.setdefault(buffer[position:end], found)
        entry: d.StringStringEntry = self.message(d.StringStringEntry, position, end, depth)
        return entry


def read_model(data: Buffer, source: SourceFile | None = None) -> d.Model:
    """Read a serialised ModelProto; errors as in `GenericReader.read`."""
    model: d.Model = WireReader(data, source).read(d.Model)
    return model
