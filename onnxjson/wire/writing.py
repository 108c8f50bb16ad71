"""Records -> serialised messages, byte for byte as protobuf's SerializeToString writes them.

Messages are put together as strings whose characters are bytes (latin-1): joining and formatting strings is what Python does
fastest. Payloads are never joined: their lengths are known without reading them, so every header can be written before its
payload streams past.
"""

from collections.abc import Callable
from typing import Any, Final

from onnxjson import document as d
from onnxjson.errors import LimitError
from onnxjson.messages import FIELDS, Field, Kind
from onnxjson.payloads import LAZY_FROM, Data, pieces
from onnxjson.wire.unknown import tag_of
from onnxjson.wire.varints import MAX_DEPTH, SMALL, size_text, varint_text

Piece = str | Data
"""A run of bytes as a latin-1 string, or a payload."""

_BATCH = 4096
"""Pieces joined for one write."""

_SHARED_DEPTH = 30
_SHARED_LENGTH = 128
"""A message of at most so many bytes, at most so deep, cannot nest below `MAX_DEPTH`: its bytes may be used again elsewhere."""


class _Plan:
    """How one field is written."""

    __slots__ = ("field", "index", "tag")

    def __init__(self, index: int, field: Field) -> None:
        self.index = index
        self.field = field
        self.tag = varint_text(tag_of(field))


_PLANS: Final = {record: [_Plan(i, f) for i, f in enumerate(fields)] for record, fields in FIELDS.items()}


def _text(value: str) -> str:
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("latin-1")


def _string_field(tag: str, value: str) -> str:
    value = _text(value)
    return f"{tag}{size_text(len(value))}{value}"


class WireWriter:
    """Collects the pieces of one message."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._attributes: dict[int, tuple[object, str]] = {}
        self._types: dict[int, tuple[object, str]] = {}

    def message(self, record: d.Record, depth: int) -> int:
        """Appends the fields of `record` -> their size in bytes.

        Raises:
            LimitError: messages nest deeper than protobuf reads.
        """
        if depth > MAX_DEPTH:
            raise LimitError(f"messages nest deeper than {MAX_DEPTH} levels; protobuf could not read the result")
        kind = type(record)
        if kind is d.Node:
            return self._node(record, depth)  # type: ignore[arg-type]
        size = 0
        for plan in _PLANS[kind]:
            value = getattr(record, plan.field.name)
            if value is None or value == () or (plan.field.repeated and not value):
                continue
            if not plan.field.repeated:
                size += self._field(plan, value, depth)
            elif plan.field.packed:
                size += self._data(plan.tag, value)
            elif plan.field.kind is Kind.FLOAT:
                size += self._append("".join([plan.tag + value[i : i + 4].decode("latin-1") for i in range(0, len(value), 4)]))
            elif plan.field.kind is Kind.MESSAGE:
                for item in value:
                    size += self._submessage(plan.tag, item, depth)
            else:
                for item in value:
                    size += self._field(plan, item, depth)
        unknown: bytes = record.unknown_fields  # type: ignore[attr-defined]
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
        """The messages as one string; only where they hold no payload worth streaming."""
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

    def _attribute_run(self, attributes: tuple[d.Attribute, ...], depth: int) -> int:
        known = self._attributes.get(id(attributes))
        if known is not None:
            return self._append(known[1])
        if any(a.t or a.g or a.graphs or a.tensors or a.sparse_tensor or a.sparse_tensors for a in attributes):
            return sum([self._submessage("\x2a", attribute, depth) for attribute in attributes])
        text = self._detached(attributes, "\x2a", depth)
        if len(text) <= _SHARED_LENGTH * 4 and depth < _SHARED_DEPTH and not any(a.tp or a.type_protos for a in attributes):
            self._attributes[id(attributes)] = (attributes, text)
        return self._append(text)

    def _node(self, node: d.Node, depth: int) -> int:
        text = "".join([_string_field("\x0a", name) for name in node.input])
        text += "".join([_string_field("\x12", name) for name in node.output])
        if node.name is not None:
            text += _string_field("\x1a", node.name)
        if node.op_type is not None:
            text += _string_field("\x22", node.op_type)
        self.pieces.append(text)
        size = len(text)
        if node.attribute:
            size += self._attribute_run(node.attribute, depth)
        if (
            node.doc_string is None
            and node.domain is None
            and node.overload is None
            and not node.metadata_props
            and not node.device_configurations
            and not node.unknown_fields
        ):
            return size
        for plan in _PLANS[d.Node][5:]:
            value = getattr(node, plan.field.name)
            if plan.field.repeated:
                size += sum([self._submessage(plan.tag, item, depth) for item in value])
            elif value is not None:
                size += self._append(_string_field(plan.tag, value))
        return size + self._append(node.unknown_fields.decode("latin-1"))


def _latin(data: Data) -> str:
    return (data if isinstance(data, bytes) else data.read()).decode("latin-1")


def write_message(record: d.Record, write: Callable[[bytes], object]) -> None:
    """Streams the serialised `record` to `write` in pieces.

    Raises:
        LimitError: messages nest deeper than protobuf reads.
        ChangedUnderneathError, FileError: a payload's file cannot be read any more.
    """
    writer = WireWriter()
    writer.message(record, 0)
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
    """The serialised `record` in one piece; see `write_message` for the errors."""
    parts: list[bytes] = []
    write_message(record, parts.append)
    return b"".join(parts)


def message_size(record: d.Record) -> int:
    """Size of the serialised `record` in bytes, without reading payloads."""
    return WireWriter().message(record, 0)
