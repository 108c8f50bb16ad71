"""The tail of a message that onnx.proto does not name: found to be well formed, kept as it is."""

from onnxjson.errors import LimitError, WireError
from onnxjson.messages import Field, Kind
from onnxjson.wire.varints import MAX_DEPTH, Buffer, NotCanonicalError, read_loose_varint

CLOSED_ENUMS = {Kind.ATTRIBUTE_TYPE: range(15), Kind.DATA_LOCATION: range(2)}
"""Enums whose unknown numbers protobuf moves to the unknown fields."""

_VARINT, _FIXED64, _LENGTH, _GROUP, _END_GROUP, _FIXED32 = range(6)


def _plain_wire_type(kind: Kind) -> int:
    if kind in (Kind.STRING, Kind.BYTES, Kind.MESSAGE):
        return _LENGTH
    return {Kind.FLOAT: _FIXED32, Kind.DOUBLE: _FIXED64}.get(kind, _VARINT)


def tag_of(field: Field) -> int:
    """The tag that protobuf writes before a value of `field` (packed ones: before the run)."""
    return field.number << 3 | (_LENGTH if field.packed else _plain_wire_type(field.kind))


def _accepted_tags(field: Field) -> set[int]:
    """The tags under which protobuf takes `field`: repeated numbers both packed and one by one."""
    plain = _plain_wire_type(field.kind)
    return {field.number << 3 | kind for kind in ({plain, _LENGTH} if field.repeated else {plain})}


class UnknownTail:
    """Checks that everything from a position on is unknown to one message."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self._known = {tag: field for field in fields for tag in _accepted_tags(field)}

    def check(self, buffer: Buffer, position: int, end: int, depth: int) -> None:
        """Walks the fields from `position` to `end`.

        Raises:
            WireError: they are not well formed.
            LimitError: groups nest too deep.
            NotCanonicalError: one of them is a known field, which protobuf would put in its place.
        """
        while position < end:
            start = position
            tag, position = read_loose_varint(buffer, position)
            field = self._known.get(tag)
            if field is not None and not _is_unknown_enum(field, buffer, position):
                raise NotCanonicalError
            position = _skip(buffer, tag, position, end, depth, start)
        if position != end:
            raise WireError("a field is longer than the message that holds it", position)


def _is_unknown_enum(field: Field, buffer: Buffer, position: int) -> bool:
    """Whether a number is none of its enum; protobuf looks at 32 bits of it and keeps the bytes as they are."""
    if field.kind not in CLOSED_ENUMS:
        return False
    return read_loose_varint(buffer, position)[0] & 0xFFFF_FFFF not in CLOSED_ENUMS[field.kind]


def skip_field(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """The field at `position` of a message -> (its number, the position after it).

    Raises:
        WireError, LimitError: it is not well formed.
    """
    tag, after = read_loose_varint(buffer, position)
    return tag >> 3, _skip(buffer, tag, after, end, 0, position)


def _skip(buffer: Buffer, tag: int, position: int, end: int, depth: int, start: int) -> int:
    kind = tag & 7
    if tag >> 3 == 0 or tag >> 32:
        raise WireError("a field has the number 0 or one that is too big", start)
    if kind == _VARINT:
        return read_loose_varint(buffer, position)[1]
    if kind == _LENGTH:
        size, position = read_loose_varint(buffer, position)
        position += size
    elif kind == _FIXED32:
        position += 4
    elif kind == _FIXED64:
        position += 8
    elif kind == _GROUP:
        return _skip_group(buffer, tag, position, end, depth)
    else:
        raise WireError("a field has no valid wire type", start)
    if position > end:
        raise WireError("a field is longer than the message that holds it", start)
    return position


def _skip_group(buffer: Buffer, tag: int, position: int, end: int, depth: int) -> int:
    open_groups = [tag >> 3]
    while open_groups:
        if depth + len(open_groups) > MAX_DEPTH:
            raise LimitError(f"messages nest deeper than {MAX_DEPTH} levels; protobuf reads no deeper")
        start = position
        if position >= end:
            raise WireError("a group is not closed", start)
        tag, position = read_loose_varint(buffer, position)
        if tag & 7 == _GROUP:
            open_groups.append(tag >> 3)
        elif tag & 7 == _END_GROUP:
            if open_groups.pop() != tag >> 3:
                raise WireError("a group is closed by another's end", start)
        else:
            position = _skip(buffer, tag, position, end, depth, start)
    return position
