"""Attributes, tensors, value infos, types and full forms as canonical text (docs/format.md, sections 5 to 7 and 10)."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pybase64

from onnxjson.codecs import canonical_values as values
from onnxjson.codecs import tensor_text
from onnxjson.model import document as d
from onnxjson.model import types
from onnxjson.model.errors import LimitError
from onnxjson.model.limits import GRAPH_DEPTH
from onnxjson.model.messages import (
    ATTRIBUTE_PAYLOADS,
    ATTRIBUTE_TYPE_NAMES,
    DATA_LOCATION_NAMES,
    FIELDS,
    Field,
    Kind,
    short_payload,
)
from onnxjson.model.payloads import Data
from onnxjson.model.scalars import LARGEST_PLAIN

_ATTRIBUTE_FIELDS: Final = {field.name: field for field in FIELDS[d.Attribute]}
_TAGS: Final = {number: b'{"%b": ' % name.encode() for number, name in ATTRIBUTE_TYPE_NAMES.items()}
_SIMPLE: Final[dict[int, Callable[[Any], bytes]]] = {
    1: values.float32, 2: values.integer, 3: values.bytes_value, 6: values.float32_list, 7: values.integers,
}  # fmt: skip
"""The encoders of payloads that are not messages, by AttributeType."""


class Base64Payload(NamedTuple):
    """A payload that is encoded as base64 when it is written."""

    data: Data


class ShortForms:
    """Writes attributes, tensors, values, types and full forms as pieces of text in `out`."""

    def __init__(self) -> None:
        self.out: list[bytes | Base64Payload] = []
        self.held = 0
        """Above 0 while the pieces are part of a block that may be remembered."""
        self._types: dict[int, tuple[object, bytes]] = {}
        self._depth = 0

    def graph(self, graph: d.Graph, indent: int) -> None:
        """Write a graph, the value of a key whose line starts at `indent`; a subclass does."""
        raise NotImplementedError

    def key(self, text: bytes, line: bytes | None) -> None:
        """Write a key, perhaps with its value, after a comma unless it is the first; `line` is a line break before."""
        first = bool(self.out) and self.out[-1] == b"{"
        if line is None:
            self.out.append(text if first else b", " + text)
        else:
            self.out.append(line + text if first else b"," + line + text)

    def close(self, line: bytes) -> None:
        """Write the end of an object that spans several lines or is empty."""
        self.out.append(b"}" if self.out and self.out[-1] == b"{" else line + b"}")

    def scalar(self, name: str, value: str | int | None, line: bytes | None) -> None:
        """Write a member that is a string or an integer, if it is present."""
        if value is not None:
            text = values.string(value) if isinstance(value, str) else values.integer(value)
            self.key(b'"%b": %b' % (name.encode(), text), line)

    def doc_string(self, value: str | None, indent: int) -> None:
        """Write the member `doc_string`, its key at `indent`."""
        if value is not None:
            self.key(b'"doc_string": ' + values.string_or_lines(value, indent)[0], values.INDENTS[indent])

    def metadata(self, entries: Sequence[d.StringStringEntry], indent: int) -> None:
        """Write the member `metadata_props` of a model, graph or function, its key at `indent`."""
        if entries:
            self.key(b'"metadata_props": ' + values.pairs(entries, self.exact_line, indent), values.INDENTS[indent])

    def unknown(self, data: bytes, line: bytes | None) -> None:
        """Write the member `unknown_fields`, if there are any."""
        if data:
            self.key(b'"unknown_fields": "' + pybase64.b64encode(data) + b'"', line)

    def list_of(self, key: bytes, items: Sequence[Any], write: Callable[[Any, int], None], indent: int) -> None:
        """Write a member that is a list of elements, one or more lines each; its key is at `indent`."""
        if items:
            self.key(b'"' + key + b'": ', values.INDENTS[indent])
            self.items(items, write, indent)

    def items(self, items: Sequence[Any], write: Callable[[Any, int], None], indent: int) -> None:
        """Write a list of elements as a value on a line that starts at `indent`."""
        if not items:
            self.out.append(b"[]")
            return
        line = values.INDENTS[indent + 2]
        self.out.append(b"[")
        for position, item in enumerate(items):
            self.out.append(b"," + line if position else line)
            write(item, indent + 2)
        self.out.append(values.INDENTS[indent] + b"]")

    def type_text(self, type_: d.Type) -> bytes:
        """Encode a type: its text, or its full form if the grammar cannot represent it."""
        known = self._types.get(id(type_))
        if known is None:
            text = types.format_type(type_)
            encoded = self.exact_line(type_) if text is None else values.encode_string(text)
            known = self._types[id(type_)] = (type_, encoded)
        return known[1]

    def value_info(self, info: d.ValueInfo, indent: int, inline: bool) -> None:
        """Write a ValueInfoProto, an element of a list; one line unless its doc_string has line feeds."""
        self.out.append(b"{")
        self.scalar("name", info.name, None)
        if info.type is not None:
            self.key(b'"type": ' + self.type_text(info.type), None)
        self._element_end(info, indent + 1, None, inline)

    def _element_end(self, record: d.ValueInfo | d.Tensor, indent: int, line: bytes | None, inline: bool) -> None:
        """Write the last members of an element; those that span several lines start at `indent`."""
        if record.doc_string is not None:
            text, spans_lines = values.string_or_lines(record.doc_string, indent)
            # After a member of several lines, the others are on separate lines.
            line = values.INDENTS[indent] if spans_lines else line
            self.key(b'"doc_string": ' + text, line)
        if inline and record.metadata_props:
            self.key(b'"metadata_props": ' + values.pairs(record.metadata_props, self.exact_line), line)
        self.unknown(record.unknown_fields, line)
        self.out.append(b"}")

    def tensor(self, tensor: d.Tensor, indent: int, is_item: bool = False, inline: bool = True) -> None:
        """Write a TensorProto; with `inline` its metadata is in it."""
        inner = indent + (1 if is_item else 2)
        head = tensor_text.type_text(tensor.data_type, tensor.dims) if tensor.data_type is not None else None
        body = tensor_text.body(tensor, inner) if head is not None else None
        if head is None or body is None:
            self.exact(tensor, indent, without=() if inline else ("metadata_props",))
            return
        name = b'{"name": ' + values.string(tensor.name) + b", " if tensor.name is not None else b"{"
        line = values.INDENTS[inner] if body.spans_lines else None
        storage = b"" if body.storage is None else b', "storage": "%b"' % body.storage.encode()
        self.out.append(name + b'"type": ' + head + storage + (b"," + line if line else b", "))
        if body.payload is not None:
            self.payload(body.payload, body.storage)
        else:
            self.out.append(body.key)
        if tensor.external_data:
            self.out.append(values.pairs(tensor.external_data, self.exact_line))
        self._element_end(tensor, inner, line, inline)

    def payload(self, data: Data, storage: str | None) -> None:
        """Write the member with the elements of a big tensor: here their base64."""
        self.out += (b'"base64": "', Base64Payload(data), b'"')

    def tensor_item(self, tensor: d.Tensor, indent: int) -> None:
        """Write a TensorProto as an element of a list in an attribute."""
        self.tensor(tensor, indent, is_item=True)

    def attributes(self, attributes: Sequence[d.Attribute], table: Mapping[str, int], indent: int) -> None:
        """Write the attributes of a node or function, the value of a key at `indent`; types in `table` need no tag."""
        if not values.are_object_keys(tuple([attribute.name for attribute in attributes])):
            self.items(attributes, self.exact, indent)
            return
        out = self.out
        is_first = True
        for attribute in attributes:
            name = attribute.name
            assert name is not None
            key = _attribute_key(name, indent + 2)
            out.append(b"{" + key[1:] if is_first else key)
            is_first = False
            short = short_payload(attribute)
            expected = table.get(name)
            if short is None:
                out.append(b'{"AttributeProto": ')
                self.exact(attribute, indent + 2, without=("name",))
                out.append(b"}")
            elif short[0] == expected and expected in _SIMPLE:
                out.append(_SIMPLE[expected](short[1]))
            else:
                self._attribute_value(*short, expected, indent + 2)
        out.append(values.INDENTS[indent] + b"}")

    def _attribute_value(self, kind: int, payload: Any, expected: int | None, indent: int) -> None:
        """Write a payload: bare if the table has its type or the value shows it, else tagged."""
        out = self.out
        bare = kind == expected or (expected is None and _is_bare(kind, payload))
        if not bare:
            out.append(_TAGS[kind])
        simple = _SIMPLE.get(kind)
        if simple is not None:
            out.append(simple(payload))
        else:
            self._value(_ATTRIBUTE_FIELDS[ATTRIBUTE_PAYLOADS[kind]], payload, indent)
        if not bare:
            out.append(b"}")

    def exact(self, record: d.Record, indent: int, without: Sequence[str] = ()) -> None:
        """Write the full form of a message, on a line that starts at `indent`."""
        self.out.append(b"{")
        for field in FIELDS[type(record)]:
            value = getattr(record, field.name)
            if value is None or (field.repeated and not value) or field.name in without:
                continue
            self.key(b'"%b": ' % field.name.encode(), None)
            if isinstance(record, d.Tensor) and (field.packed or field.name == "raw_data"):
                self._tensor_data(field, value)
            else:
                self._value(field, value, indent)
        self.unknown(record.unknown_fields, None)
        self.out.append(b"}")

    def exact_line(self, record: d.Record) -> bytes:
        """Encode the full form of a message without graphs and tensors."""
        kept, self.out = self.out, []
        self.exact(record, 0)
        text = b"".join(self.out)  # type: ignore[arg-type]
        self.out = kept
        return text

    def _tensor_data(self, field: Field, data: Data) -> None:
        if field.name == "raw_data":
            self.out += (b'{"base64": "', Base64Payload(data), b'"}')
        else:
            self.out.append(values.typed_data(field.kind, data))

    def _value(self, field: Field, value: Any, indent: int) -> None:
        if field.kind is Kind.MESSAGE:
            self._messages(field, value, indent)
        elif field.kind is Kind.FLOAT:
            self.out.append(values.float32_list(value) if field.repeated else values.float32(value))
        elif field.kind in (Kind.STRING, Kind.BYTES):
            write = values.string if field.kind is Kind.STRING else values.bytes_value
            items = [write(item) for item in (value if field.repeated else (value,))]
            self.out.append(b"[" + b", ".join(items) + b"]" if field.repeated else items[0])
        elif field.repeated:
            self.out.append(values.integers(value))
        else:
            self.out.append(_named(field.kind, value))

    def _messages(self, field: Field, value: Any, indent: int) -> None:
        write = self._writers.get(field.message)  # type: ignore[arg-type]
        if field.message is d.StringStringEntry:
            self.out.append(values.pairs(value, self.exact_line))
        elif not field.repeated:
            if field.message is d.Tensor:
                self.tensor(value, indent)
            else:
                (write or ShortForms.exact)(self, value, indent)
        elif field.message is d.Tensor:
            self.items(value, self.tensor_item, indent)
        elif field.message in (d.Graph, d.Type, d.SparseTensor):
            self.items(value, lambda item, at: (write or ShortForms.exact)(self, item, at), indent)
        else:
            parts = [self.exact_line(item) for item in value]
            self.out.append(b"[" + b", ".join(parts) + b"]")

    def _type(self, type_: d.Type, indent: int) -> None:
        self.out.append(self.type_text(type_))

    def _subgraph(self, graph: d.Graph, indent: int) -> None:
        if self._depth >= GRAPH_DEPTH:
            raise LimitError(f"graphs nest deeper than {GRAPH_DEPTH - 1} levels; protobuf could not read the result")
        self._depth += 1
        self.graph(graph, indent)
        self._depth -= 1

    _writers: Final[dict[type[d.Record], Callable[["ShortForms", Any, int], None]]] = {
        d.Type: _type,
        d.Graph: _subgraph,
    }


@lru_cache(maxsize=4096)
def _attribute_key(name: str, indent: int) -> bytes:
    """The key of an attribute that follows another one."""
    return b"," + values.INDENTS[indent] + values.encode_string(name) + b": "


def _is_bare(kind: int, payload: Any) -> bool:
    """Whether the value of an attribute that is not in the table shows its type."""
    if kind == 2:
        return bool(-LARGEST_PLAIN <= payload <= LARGEST_PLAIN)
    if kind == 3:
        return values.is_utf8(payload)
    if kind == 7:
        return bool(payload) and max(payload) <= LARGEST_PLAIN and min(payload) >= -LARGEST_PLAIN
    return kind == 8 and bool(payload) and all([values.is_utf8(each) for each in payload])


def _named(kind: Kind, number: int) -> bytes:
    """Encode an enum number by its name, if it has one; any other integer as a number."""
    if kind is Kind.DATA_TYPE:
        return b'"%b"' % types.format_data_type(number).encode()
    names = {Kind.ATTRIBUTE_TYPE: ATTRIBUTE_TYPE_NAMES, Kind.DATA_LOCATION: DATA_LOCATION_NAMES}.get(kind)
    if names is not None and number in names:
        return b'"%b"' % names[number].encode()
    return values.integer(number)
