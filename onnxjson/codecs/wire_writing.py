"""Records -> serialised messages, byte for byte as protobuf's SerializeToString writes them.

Messages are built as strings whose characters are bytes (latin-1), since Python joins and formats strings fastest.
Payloads are never joined: their lengths are known without reading them, so every header is written before its payload
is streamed.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from msgspec.structs import astuple

from onnxjson.codecs.wire_format import SMALL, size_text, tag_of, varint_text
from onnxjson.model import document as d
from onnxjson.model.errors import LimitError
from onnxjson.model.limits import MESSAGE_BYTES, MESSAGE_DEPTH
from onnxjson.model.messages import FIELDS, Field, Kind, short_payload
from onnxjson.model.payloads import LAZY_FROM, Data, pieces

Piece = str | Data
"""A run of bytes as a latin-1 string, or a payload."""

_BATCH = 4096
"""Number of pieces that are joined for one write."""

_MOST_REMEMBERED = 16_384
"""Maximum number of remembered runs of attributes: in a graph with more, few are equal."""

_SHARED_DEPTH = 30
_SHARED_LENGTH = 128
"""A message of so few bytes, at most this deep, cannot nest below `MESSAGE_DEPTH`: its bytes can be reused."""


class _Plan(NamedTuple):
    """The way in which one field is written."""

    field: Field
    tag: str


_PLANS: Final = {
    record: [_Plan(each, varint_text(tag_of(each))) for each in fields] for record, fields in FIELDS.items()
}


def _string_field(tag: str, value: str) -> str:
    if not value.isascii():
        value = value.encode("utf-8", "surrogateescape").decode("latin-1")
    size = len(value)
    return f"{tag}{SMALL[size] if size < 2048 else varint_text(size)}{value}"


class WireWriter:
    """Collects the pieces of a message."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._attributes: dict[int, tuple[object, str]] = {}
        self._types: dict[int, tuple[object, str]] = {}
        self._keys: dict[str, str] = {}
        """Keys of metadata -> their field."""

    def message(self, record: d.Record, depth: int) -> int:
        """Append the fields of `record` -> their size in bytes."""
        if depth > MESSAGE_DEPTH:
            raise LimitError(f"messages nest deeper than {MESSAGE_DEPTH} levels; protobuf could not read the result")
        size = 0
        for plan in _PLANS[type(record)]:
            value = getattr(record, plan.field.name)
            if value is None or value == () or (plan.field.repeated and not value):
                continue
            if not plan.field.repeated:
                size += self._field(plan, value, depth)
            elif plan.field.packed:
                size += self._data(plan.tag, value)
            elif plan.field.kind is Kind.FLOAT:
                text = value.decode("latin-1")
                size += self._append("".join([plan.tag + text[at : at + 4] for at in range(0, len(text), 4)]))
            elif plan.field.kind is Kind.MESSAGE:
                size += self._list(plan, value, depth)
            else:
                for item in value:
                    size += self._field(plan, item, depth)
        unknown = record.unknown_fields
        return size + self._append(unknown.decode("latin-1")) if unknown else size

    def _append(self, text: str) -> int:
        self.pieces.append(text)
        return len(text)

    def _field(self, plan: _Plan, value: Any, depth: int) -> int:
        kind = plan.field.kind
        if kind is Kind.STRING:
            return self._append(_string_field(plan.tag, value))
        if kind is Kind.MESSAGE:
            return self._submessage(plan.tag, value, depth)
        if kind is Kind.BYTES:
            return self._data(plan.tag, value)
        if kind is Kind.FLOAT:
            return self._append(plan.tag + value.decode("latin-1"))
        return self._append(plan.tag + (SMALL[value] if 0 <= value < 2048 else varint_text(value)))

    def _data(self, tag: str, data: Data) -> int:
        length = len(data)
        head = tag + size_text(length)
        if isinstance(data, bytes) and length < LAZY_FROM:
            return self._append(head + data.decode("latin-1"))
        self.pieces.append(head)
        self.pieces.append(data)
        return len(head) + length

    def _submessage(self, tag: str, record: d.Record, depth: int) -> int:
        if type(record) is d.Type and depth < _SHARED_DEPTH:
            return self._append(tag + self._shared_type(record, depth))
        place = len(self.pieces)
        self.pieces.append("")
        size = self.message(record, depth + 1)
        head = tag + size_text(size)
        self.pieces[place] = head
        return len(head) + size

    def _detached(self, records: Any, tag: str, depth: int) -> str:
        """Write messages as one string; only for messages without a payload worth streaming."""
        kept, self.pieces = self.pieces, []
        for record in records:
            place = len(self.pieces)
            self.pieces.append("")
            size = self.message(record, depth + 1)
            self.pieces[place] = tag + size_text(size)
        text = "".join([piece if isinstance(piece, str) else _latin(piece) for piece in self.pieces])
        self.pieces = kept
        return text

    def _shared_type(self, record: d.Type, depth: int) -> str:
        known = self._types.get(id(record))
        if known is None:
            text = self._detached((record,), "", depth)
            if len(text) > _SHARED_LENGTH:
                return text
            known = self._types[id(record)] = (record, text)
        return known[1]

    def _list(self, plan: _Plan, records: Any, depth: int) -> int:
        plain = _PLAIN.get(plan.field.message)  # type: ignore[arg-type]
        if plain is None or depth > MESSAGE_DEPTH - 4:
            return sum([self._submessage(plan.tag, record, depth) for record in records])
        total = 0
        tag = plan.tag
        append = self.pieces.append
        for record in records:
            text = plain(self, record, depth)
            if text is None:
                total += self._submessage(tag, record, depth)
                continue
            size = len(text)
            head = tag + (SMALL[size] if size < 2048 else varint_text(size))
            append(head + text)
            total += len(head) + size
        return total

    def _plain_node(self, node: d.Node, depth: int) -> str | None:
        """Write a node that has only names, plain attributes, domain and metadata; None for any other."""
        inputs, outputs, name, op_type, attributes, doc, domain, overload, metadata, devices, unknown = astuple(node)
        if doc is not None or overload is not None or devices or unknown:
            return None
        text = ""
        for value in inputs:
            size = len(value)
            text += f"\x0a{SMALL[size]}{value}" if size < 2048 and value.isascii() else _string_field("\x0a", value)
        for value in outputs:
            size = len(value)
            text += f"\x12{SMALL[size]}{value}" if size < 2048 and value.isascii() else _string_field("\x12", value)
        if name is not None:
            text += _string_field("\x1a", name)
        if op_type is not None:
            text += _string_field("\x22", op_type)
        if attributes:
            known = self._attributes.get(id(attributes)) or self._remember_attributes(attributes, depth + 1)
            if known is None:
                return None
            text += known[1]
        if domain is not None:
            text += _string_field("\x3a", domain)
        if metadata:
            entries = self._entries("\x4a", metadata)
            return None if entries is None else text + entries
        return text

    def _remember_attributes(self, attributes: tuple[d.Attribute, ...], depth: int) -> tuple[object, str] | None:
        """Write a run of attributes without nested messages or streamed payloads, and remember it for the tuple."""
        texts = []
        for attribute in attributes:
            text = self._plain_attribute(attribute, depth)
            if text is None:
                return None
            texts.append(f"\x2a{size_text(len(text))}{text}")
        known = (attributes, "".join(texts))
        if len(self._attributes) < _MOST_REMEMBERED:
            self._attributes[id(attributes)] = known
        return known

    def _plain_attribute(self, attribute: d.Attribute, depth: int) -> str | None:
        """Write an attribute with a number, a string, a list of integers or a small tensor; None for any other."""
        short = short_payload(attribute)
        if short is None or attribute.name is None:
            return None
        kind, value = short
        name = _string_field("\x0a", attribute.name)
        end = f"\xa0\x01{chr(kind)}"
        if kind == 2:
            return f"{name}\x18{SMALL[value] if 0 <= value < 2048 else varint_text(value)}{end}"
        if kind == 1:
            return f"{name}\x15{value.decode('latin-1')}{end}"
        if kind == 7:
            numbers = [f"\x40{SMALL[each] if 0 <= each < 2048 else varint_text(each)}" for each in value]
            return f"{name}{''.join(numbers)}{end}"
        if kind == 3:
            return f"{name}\x22{size_text(len(value))}{value.decode('latin-1')}{end}"
        if kind == 4:
            tensor = self._plain_tensor(value, depth)
            return None if tensor is None else f"{name}\x2a{size_text(len(tensor))}{tensor}{end}"
        return None

    def _entries(self, tag: str, entries: tuple[d.StringStringEntry, ...]) -> str | None:
        text = ""
        keys = self._keys
        for entry in entries:
            key, value = entry.key, entry.value
            if key is None or value is None or entry.unknown_fields:
                return None
            head = keys.get(key) or keys.setdefault(key, _string_field("\x0a", key))
            size = len(value)
            if size < 2048 and value.isascii():
                body = f"{head}\x12{SMALL[size]}{value}"
            else:
                body = head + _string_field("\x12", value)
            text += f"{tag}{size_text(len(body))}{body}"
        return text

    def _plain_value_info(self, info: d.ValueInfo, depth: int) -> str | None:
        """Write a value info that has only name, type and metadata; None for any other."""
        if info.name is None or info.type is None or info.doc_string is not None or info.unknown_fields:
            return None
        name = _string_field("\x0a", info.name)
        known = self._types.get(id(info.type))
        type_ = known[1] if known is not None and depth < _SHARED_DEPTH else self._shared_type(info.type, depth + 1)
        if not info.metadata_props:
            return f"{name}\x12{type_}"
        metadata = self._entries("\x22", info.metadata_props)
        return None if metadata is None else f"{name}\x12{type_}{metadata}"

    def _plain_tensor(self, tensor: d.Tensor, depth: int) -> str | None:
        """Write a tensor that has only name, dims, data_type and few raw bytes; None for any other."""
        raw = tensor.raw_data
        if type(raw) is not bytes or len(raw) >= LAZY_FROM or tensor.data_type is None:
            return None
        if tensor.doc_string is not None or tensor.segment is not None or tensor.data_location is not None:
            return None
        if tensor.float_data or tensor.int32_data or tensor.string_data or tensor.int64_data or tensor.double_data:
            return None
        if tensor.uint64_data or tensor.external_data or tensor.metadata_props or tensor.unknown_fields:
            return None
        dims = "".join([f"\x08{SMALL[dim] if 0 <= dim < 2048 else varint_text(dim)}" for dim in tensor.dims])
        kind = varint_text(tensor.data_type)
        name = "" if tensor.name is None else _string_field("\x42", tensor.name)
        return f"{dims}\x10{kind}{name}\x4a{size_text(len(raw))}{raw.decode('latin-1')}"


_PLAIN: Final[dict[type[d.Record], Callable[[WireWriter, Any, int], str | None]]] = {
    d.Node: WireWriter._plain_node,
    d.Attribute: WireWriter._plain_attribute,
    d.ValueInfo: WireWriter._plain_value_info,
    d.Tensor: WireWriter._plain_tensor,
}


def _latin(data: Data) -> str:
    return (data if isinstance(data, bytes) else data.read()).decode("latin-1")


def write_message(record: d.Record, write: Callable[[bytes], object]) -> None:
    """Stream the serialised `record` to `write`; LimitError, before any byte, if protobuf could not read the result."""
    writer = WireWriter()
    size = writer.message(record, 0)
    if size > MESSAGE_BYTES:
        raise LimitError(
            f"the model would have {size:,} bytes; protobuf reads no more than {MESSAGE_BYTES:,}; "
            "keep its weights in external data"
        )
    batch: list[str] = []
    for piece in writer.pieces:
        if isinstance(piece, str):
            batch.append(piece)
            if len(batch) >= _BATCH:
                write("".join(batch).encode("latin-1"))
                batch = []
            continue
        write("".join(batch).encode("latin-1"))
        batch = []
        for chunk in pieces(piece):
            write(chunk)
    write("".join(batch).encode("latin-1"))


def message_bytes(record: d.Record) -> bytes:
    """The serialised `record` in one piece; errors as in `write_message`."""
    parts: list[bytes] = []
    write_message(record, parts.append)
    return b"".join(parts)


def message_size(record: d.Record) -> int:
    """Size of the serialised `record` in bytes, without reading payloads."""
    return WireWriter().message(record, 0)
