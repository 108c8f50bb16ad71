"""Serialised messages -> records.

One strict walk over the bytes: fields ascending, singular ones once, numbers minimal, unknown fields last. What passes is
exactly what protobuf would write, so the records *are* the bytes, presence and unknown fields included, at no extra cost.
What does not pass raises `NotCanonicalError`; the caller then has protobuf read it and write it again.

The methods `node`, `attribute`, `tensor` ... read the plain case of the frequent messages by hand and leave anything else to
`message`, which is driven by the field table. Equal bytes give the same objects: names, types and attributes are remembered.
"""

from collections.abc import Callable
from typing import Any, Final

from onnxjson import document as d
from onnxjson.errors import LimitError, WireError
from onnxjson.messages import FIELDS, Field, Kind
from onnxjson.payloads import LAZY_FROM, Data, FileSlice, SourceFile
from onnxjson.wire.unknown import CLOSED_ENUMS, UnknownTail, tag_of
from onnxjson.wire.varints import MAX_DEPTH, Buffer, NotCanonicalError, read_loose_varint, read_varint, signed

_REMEMBERED = 512
"""Longest run of attributes, in bytes, that is remembered by its bytes."""

_SHALLOW = 128
"""A type of so many bytes has at most half as many levels: it nests too deep nowhere above `_SHALLOW` / 4 levels."""


class _Rule:
    """How one field is read by the generic walk."""

    __slots__ = ("enum", "field", "frequent", "index", "once", "read")

    def __init__(self, index: int, field: Field) -> None:
        self.index = index
        self.field = field
        self.once = not field.repeated or field.packed
        # A run of messages that have a method of their own is read in one loop, where their tag is one byte.
        runs = field.repeated and field.message is not None and tag_of(field) < 0x80
        self.frequent = _FREQUENT.get(field.message) if runs else None  # type: ignore[arg-type]
        self.enum = CLOSED_ENUMS.get(field.kind)
        self.read = _READERS[_PACKED if field.packed else field.kind]


class _Rules:
    """How one message is read by the generic walk."""

    __slots__ = ("by_tag", "defaults", "floats", "oneofs", "record", "unknown")

    def __init__(self, record: type[d.Record], fields: tuple[Field, ...]) -> None:
        self.record = record
        self.defaults = list(record.__struct_defaults__)
        self.by_tag = {tag_of(field): _Rule(index, field) for index, field in enumerate(fields)}
        self.unknown = UnknownTail(fields)
        self.oneofs = [index for index, field in enumerate(fields) if field.oneof]
        self.floats = [i for i, field in enumerate(fields) if field.kind is Kind.FLOAT and field.repeated]


class WireReader:
    """Reads messages from one buffer; payloads of `LAZY_FROM` bytes and more stay in `source` if there is one."""

    def __init__(self, buffer: Buffer, source: SourceFile | None = None) -> None:
        self._buffer = buffer
        self._source = source
        self._names: dict[bytes, str] = {}
        self._types: dict[bytes, d.Type] = {}
        self._attribute_runs: dict[bytes, tuple[d.Attribute, ...]] = {}
        self._attributes: dict[bytes, d.Attribute] = {}

    def read(self, record: type[d.Record]) -> Any:
        """The whole buffer as one message of class `record`.

        Raises:
            WireError: the bytes are not such a message, or they end within it.
            LimitError: messages nest deeper than `MAX_DEPTH`.
            NotCanonicalError: they are, but not as protobuf writes it.
        """
        try:
            return self.message(record, 0, len(self._buffer), 0)
        except IndexError:
            raise WireError("the bytes end within a field: the file is cut off", len(self._buffer)) from None

    def message(self, record: type[d.Record], position: int, end: int, depth: int) -> Any:
        """The message of class `record` that stands from `position` to `end`, `depth` levels down."""
        if depth > MAX_DEPTH:
            raise LimitError(f"messages nest deeper than {MAX_DEPTH} levels; protobuf reads no deeper")
        rules = _RULES[record]
        by_tag = rules.by_tag
        buffer = self._buffer
        values: list[Any] = rules.defaults.copy()
        last = -1
        while position < end:
            start = position
            tag = buffer[position]
            if tag < 0x80:
                position += 1
            else:
                tag, position = self._long_tag(position)
            rule = by_tag.get(tag)
            if rule is None or (rule.enum is not None and not self._is_enum(rule.enum, position)):
                rules.unknown.check(buffer, start, end, depth)
                values[-1] = buffer[start:end]
                break
            index = rule.index
            if index <= last and (index < last or rule.once):
                raise NotCanonicalError
            if rule.frequent is not None and depth < MAX_DEPTH - 4:
                values[index], position = self._run(rule.frequent, tag, position, end, depth)
                last = index
                continue
            value, position = rule.read(self, position, end, rule, depth)
            if position > end:
                raise WireError(f"{rule.field.name} is longer than the message that holds it", start)
            if not rule.field.repeated or rule.field.packed:
                values[index] = value
            elif index == last:
                values[index].append(value)
            else:
                values[index] = [value]
            last = index
        if rules.oneofs and sum(values[index] is not None for index in rules.oneofs) > 1:
            raise NotCanonicalError
        for index in rules.floats:
            if type(values[index]) is list:
                values[index] = b"".join(values[index])
        return rules.record(*[tuple(v) if type(v) is list else v for v in values])

    def _long_tag(self, position: int) -> tuple[int, int]:
        """A tag of several bytes -> (tag, position after it); 0 for one with more bytes than it needs.

        Protobuf reads those too. If it does not know the field, it keeps it with the very bytes.
        """
        tag, after = read_loose_varint(self._buffer, position)
        return (tag if tag >> 7 * (after - position - 1) else 0), after

    def _is_enum(self, numbers: range, position: int) -> bool:
        """Whether a closed enum has the number at `position`; protobuf takes any other for an unknown field."""
        return read_loose_varint(self._buffer, position)[0] & 0xFFFF_FFFF in numbers

    def _run(self, read: "_ReadFrequent", tag: int, position: int, end: int, depth: int) -> tuple[list[Any], int]:
        """Messages that follow one another under the same tag, whose first length stands at `position`."""
        buffer = self._buffer
        depth += 1
        found: list[Any] = []
        while True:
            size = buffer[position]
            if size < 0x80:
                position += 1
            else:
                size, position = read_varint(buffer, position)
            stop = position + size
            if stop > end:
                raise WireError("a message is longer than the one that holds it", position)
            found.append(read(self, position, stop, depth))
            if stop >= end or buffer[stop] != tag:
                return found, stop
            position = stop + 1

    def text(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[str, int]:
        """A string field."""
        position, stop = self._extent(position)
        return self._name(self._buffer[position:stop]), stop

    def _extent(self, position: int) -> tuple[int, int]:
        size, position = read_varint(self._buffer, position)
        return position, position + size

    def _name(self, raw: bytes) -> str:
        name = self._names.get(raw)
        if name is None:
            name = self._names[raw] = str(raw, "utf-8", "surrogateescape")
        return name

    def bytes_or_payload(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[Data, int]:
        """A bytes field; raw_data is left in the file when it is big."""
        position, stop = self._extent(position)
        if rule.field.name == "raw_data":
            return self._data(position, stop), stop
        return self._buffer[position:stop], stop

    def _data(self, position: int, stop: int) -> Data:
        if stop - position >= LAZY_FROM and self._source is not None:
            if stop > len(self._buffer):
                raise WireError("the bytes end within a tensor: the file is cut off", len(self._buffer))
            return FileSlice(self._source, position, stop - position)
        return self._buffer[position:stop]

    def number(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[int, int]:
        """A varint field, sign-extended; 32-bit ones and closed enums must hold what they can hold."""
        value, position = read_varint(self._buffer, position)
        value = signed(value)
        if rule.field.kind is not Kind.INT64 and not -0x8000_0000 <= value < 0x8000_0000:
            raise NotCanonicalError
        if rule.enum is not None and value not in rule.enum:
            raise NotCanonicalError
        return value, position

    def fixed32(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[bytes, int]:
        """The four bytes of a float field."""
        return self._buffer[position : position + 4], position + 4

    def packed(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[Data, int]:
        """A run of packed numbers, as it stands."""
        position, stop = self._extent(position)
        kind = rule.field.kind
        if stop == position:
            raise NotCanonicalError
        if kind in (Kind.FLOAT, Kind.DOUBLE):
            if (stop - position) % (4 if kind is Kind.FLOAT else 8):
                raise WireError(f"{rule.field.name} does not hold whole numbers", position)
            return self._data(position, stop), stop
        run = self._buffer[position:stop]
        check_varints(run, kind is Kind.INT32, position)
        return run, stop

    def submessage(self, position: int, end: int, rule: _Rule, depth: int) -> tuple[Any, int]:
        """A message field, by its own method if it has one."""
        position, stop = self._extent(position)
        if stop > end:
            raise WireError(f"{rule.field.name} is longer than the message that holds it", position)
        record = rule.field.message
        assert record is not None
        frequent = _FREQUENT.get(record)
        if frequent is not None and depth < MAX_DEPTH - 4:
            return frequent(self, position, stop, depth + 1), stop
        return self.message(record, position, stop, depth + 1), stop

    def node(self, position: int, end: int, depth: int) -> d.Node:
        """A NodeProto; by hand while fields come in order and are plain."""
        buffer = self._buffer
        names = self._names
        start = position
        inputs: list[str] = []
        outputs: list[str] = []
        name = op_type = domain = None
        attributes: tuple[d.Attribute, ...] = ()
        tag = buffer[position] if position < end else 0
        while tag == 0x0A or tag == 0x12:
            size = buffer[position + 1]
            if size > 0x7F:
                size, position = read_varint(buffer, position + 1)
            else:
                position += 2
            stop = position + size
            raw = buffer[position:stop]
            text = names.get(raw)
            if text is None:
                text = names[raw] = str(raw, "utf-8", "surrogateescape")
            if tag == 0x0A:
                if outputs:
                    raise NotCanonicalError
                inputs.append(text)
            else:
                outputs.append(text)
            position = stop
            tag = buffer[position] if position < end else 0
        if tag == 0x1A:
            size = buffer[position + 1]
            if size > 0x7F:
                size, position = read_varint(buffer, position + 1)
            else:
                position += 2
            stop = position + size
            name = str(buffer[position:stop], "utf-8", "surrogateescape")
            position = stop
            tag = buffer[position] if position < end else 0
        if tag == 0x22:
            size = buffer[position + 1]
            if size > 0x7F:
                size, position = read_varint(buffer, position + 1)
            else:
                position += 2
            stop = position + size
            raw = buffer[position:stop]
            op_type = names.get(raw)
            if op_type is None:
                op_type = names[raw] = str(raw, "utf-8", "surrogateescape")
            position = stop
            tag = buffer[position] if position < end else 0
        if position == end:
            return d.Node(tuple(inputs), tuple(outputs), name, op_type)
        if tag == 0x2A:
            attributes, position = self._attribute_run(position, end, depth)
            if position == end:
                return d.Node(tuple(inputs), tuple(outputs), name, op_type, attributes)
            tag = buffer[position] if position < end else 0
        if tag == 0x3A:
            position, stop = self._extent(position + 1)
            domain = self._name(buffer[position:stop])
            position = stop
            tag = buffer[position] if position < end else 0
        metadata: list[d.StringStringEntry] = []
        while tag == 0x4A:
            position, stop = self._extent(position + 1)
            if stop > end:
                break
            metadata.append(self.entry(position, stop, depth + 1))
            position = stop
            tag = buffer[position] if position < end else 0
        if position != end:
            node: d.Node = self.message(d.Node, start, end, depth)
            return node
        return d.Node(tuple(inputs), tuple(outputs), name, op_type, attributes, None, domain, None, tuple(metadata))

    def _attribute_run(self, position: int, end: int, depth: int) -> tuple[tuple[d.Attribute, ...], int]:
        buffer = self._buffer
        start = position
        while position < end and buffer[position] == 0x2A:
            size = buffer[position + 1]
            if size > 0x7F:
                size, position = read_varint(buffer, position + 1)
                position += size
            else:
                position += 2 + size
        if position > end:
            raise WireError("attribute is longer than the node that holds it", start)
        if position - start > _REMEMBERED:
            return self._attributes_between(start, position, depth, self.attribute), position
        run = buffer[start:position]
        attributes = self._attribute_runs.get(run)
        if attributes is None:
            attributes = self._attributes_between(start, position, depth, self._remembered_attribute)
            # Graphs nest: whether they nest too deep depends on where they stand, so their bytes alone do not say all.
            if not any([a.g or a.graphs or a.tp or a.type_protos for a in attributes]):
                self._attribute_runs[run] = attributes
        return attributes, position

    def _attributes_between(
        self, position: int, end: int, depth: int, read: Callable[[int, int, int], d.Attribute]
    ) -> tuple[d.Attribute, ...]:
        attributes = []
        while position < end:
            position, stop = self._extent(position + 1)
            attributes.append(read(position, stop, depth + 1))
            position = stop
        return tuple(attributes)

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
        """An AttributeProto; by hand where it is name, one payload and type."""
        buffer = self._buffer
        start = position
        if end - position > 6 and buffer[position] == 0x0A and buffer[position + 1] < 0x80:
            stop = position + 2 + buffer[position + 1]
            name = self._name(buffer[position + 2 : stop])
            # The type stands last: two bytes of tag, one of value.
            kind = buffer[end - 1]
            payload_end = end - 3
            if stop < payload_end and buffer[end - 3] == 0xA0 and buffer[end - 2] == 0x01:
                attribute = self._plain_attribute(name, kind, stop, payload_end, depth)
                if attribute is not None:
                    return attribute
        attribute = self.message(d.Attribute, start, end, depth)
        assert attribute is not None
        return attribute

    def _plain_attribute(self, name: str, kind: int, position: int, end: int, depth: int) -> d.Attribute | None:
        buffer = self._buffer
        tag = buffer[position]
        if kind == 2 and tag == 0x18:
            value, position = read_varint(buffer, position + 1)
            return d.Attribute(name, i=signed(value), type=2) if position == end else None
        if kind == 1 and tag == 0x15:
            return d.Attribute(name, f=buffer[position + 1 : end], type=1) if position + 5 == end else None
        if kind == 7 and tag == 0x40:
            numbers = []
            while position < end and buffer[position] == 0x40:
                value, position = read_varint(buffer, position + 1)
                numbers.append(signed(value))
            return d.Attribute(name, ints=tuple(numbers), type=7) if position == end else None
        if kind == 3 and tag == 0x22:
            position, stop = self._extent(position + 1)
            return d.Attribute(name, s=buffer[position:stop], type=3) if stop == end else None
        if kind == 4 and tag == 0x2A and depth < MAX_DEPTH - 4:
            position, stop = self._extent(position + 1)
            return d.Attribute(name, t=self.tensor(position, stop, depth + 1), type=4) if stop == end else None
        if kind == 6 and tag == 0x3D and (end - position) % 5 == 0:
            run = buffer[position:end]
            if run[::5] == b"\x3d" * (len(run) // 5):
                floats = b"".join([run[at : at + 4] for at in range(1, len(run), 5)])
                return d.Attribute(name, floats=floats, type=6)
        return None

    def tensor(self, position: int, end: int, depth: int) -> d.Tensor:
        """A TensorProto; by hand where it is dims, data_type, at most one of float_data and raw_data, and name."""
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
                name = self._name(buffer[position:stop])
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
        """A ValueInfoProto; by hand where it is name and type, with metadata."""
        buffer = self._buffer
        start = position
        if position < end and buffer[position] == 0x0A:
            size = buffer[position + 1]
            if size > 0x7F:
                size, position = read_varint(buffer, position + 1)
            else:
                position += 2
            stop = position + size
            raw = buffer[position:stop]
            name = self._names.get(raw)
            if name is None:
                name = self._names[raw] = str(raw, "utf-8", "surrogateescape")
            position = stop
            if position < end and buffer[position] == 0x12:
                position, stop = self._extent(position + 1)
                raw = buffer[position:stop]
                type_ = self._types.get(raw)
                if type_ is None and stop <= end:
                    type_ = self._type(raw, position, stop, depth + 1)
                if stop == end:
                    return d.ValueInfo(name, type_)
                position = stop
                metadata: list[d.StringStringEntry] = []
                while position < end and buffer[position] == 0x22:
                    position, stop = self._extent(position + 1)
                    if stop > end:
                        break
                    metadata.append(self.entry(position, stop, depth + 1))
                    position = stop
                if position == end:
                    return d.ValueInfo(name, type_, None, tuple(metadata))
        value_info: d.ValueInfo = self.message(d.ValueInfo, start, end, depth)
        return value_info

    def _type(self, raw: bytes, position: int, end: int, depth: int) -> d.Type:
        """A TypeProto; one that cannot nest too deep anywhere is remembered by its bytes."""
        type_: d.Type = self.message(d.Type, position, end, depth)
        if len(raw) <= _SHALLOW and depth < _SHALLOW // 4:
            self._types[raw] = type_
        return type_

    def entry(self, position: int, end: int, depth: int) -> d.StringStringEntry:
        """A StringStringEntryProto; by hand where it is key and value."""
        buffer = self._buffer
        start = position
        if position < end and buffer[position] == 0x0A:
            position, stop = self._extent(position + 1)
            key = self._name(buffer[position:stop])
            if stop < end and buffer[stop] == 0x12:
                position, stop = self._extent(stop + 1)
                if stop == end:
                    return d.StringStringEntry(key, self._name(buffer[position:stop]))
        entry: d.StringStringEntry = self.message(d.StringStringEntry, start, end, depth)
        return entry


def check_varints(run: bytes, is_int32: bool, offset: int) -> None:
    """Packed varints must be minimal, whole and, for int32, within 32 bits (sign-extended to 64).

    Raises:
        WireError, NotCanonicalError: they are not; `offset` is where the run stands.
    """
    if run[-1] & 0x80:
        raise WireError("a run of numbers ends within a number", offset + len(run))
    if not any(byte & 0x80 for byte in run):
        return
    position = 0
    while position < len(run):
        value, position = read_varint(run, position)
        if is_int32 and not -0x8000_0000 <= signed(value) < 0x8000_0000:
            raise NotCanonicalError


_PACKED = "packed"
_Read = Callable[[WireReader, int, int, _Rule, int], tuple[Any, int]]
_READERS: Final[dict[Kind | str, _Read]] = {
    Kind.STRING: WireReader.text,
    Kind.BYTES: WireReader.bytes_or_payload,
    Kind.INT64: WireReader.number,
    Kind.INT32: WireReader.number,
    Kind.DATA_TYPE: WireReader.number,
    Kind.ATTRIBUTE_TYPE: WireReader.number,
    Kind.DATA_LOCATION: WireReader.number,
    Kind.FLOAT: WireReader.fixed32,
    Kind.MESSAGE: WireReader.submessage,
    _PACKED: WireReader.packed,
}
_ReadFrequent = Callable[[WireReader, int, int, int], Any]
_FREQUENT: Final[dict[type[d.Record], _ReadFrequent]] = {
    d.Node: WireReader.node,
    d.Attribute: WireReader.attribute,
    d.Tensor: WireReader.tensor,
    d.ValueInfo: WireReader.value_info,
    d.StringStringEntry: WireReader.entry,
}
_RULES: Final = {record: _Rules(record, fields) for record, fields in FIELDS.items()}


def read_model(data: Buffer, source: SourceFile | None = None) -> d.Model:
    """A serialised ModelProto as a record; see `WireReader.read` for the errors."""
    model: d.Model = WireReader(data, source).read(d.Model)
    return model
