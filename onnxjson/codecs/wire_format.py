"""The wire format of protobuf: varints, tags, and fields that onnx.proto does not name."""

from collections.abc import Iterator
from mmap import mmap
from typing import Protocol

from onnxjson.model.errors import LimitError, WireError
from onnxjson.model.limits import MESSAGE_DEPTH
from onnxjson.model.messages import Field, Kind

Buffer = bytes | mmap

CLOSED_ENUMS = {Kind.ATTRIBUTE_TYPE: range(15), Kind.DATA_LOCATION: range(2)}
"""Enums whose unknown numbers protobuf moves to the unknown fields."""

_VARINT, _FIXED64, _LENGTH, _GROUP, _END_GROUP, _FIXED32 = range(6)


class Octets(Protocol):
    """What has bytes by position: a buffer, or a file that is fetched as far as it is read."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> int: ...


class NotCanonicalError(Exception):
    """The bytes are not as protobuf writes them; protobuf itself must read and rewrite them."""


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a minimal varint at `position` -> (unsigned value, position after it).

    A longer one raises NotCanonicalError, one of more than ten bytes WireError, the end of the buffer IndexError.
    """
    byte = buffer[position]
    if byte < 0x80:
        return byte, position + 1
    value = byte & 0x7F
    byte = buffer[position + 1]
    if 0 < byte < 0x80:  # most numbers have one or two bytes
        return value | byte << 7, position + 2
    shift = 7
    start = position
    while True:
        position += 1
        byte = buffer[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise WireError("a varint has more than ten bytes", start)
    if byte == 0 or value >> 64:
        raise NotCanonicalError
    return value, position + 1


def read_lenient_varint(buffer: Octets, position: int) -> tuple[int, int]:
    """Read a varint that may have more bytes than its value needs, as protobuf does -> as `read_varint`."""
    value = shift = 0
    start = position
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift > 63:
            raise WireError("a varint has more than ten bytes", start)


def signed(value: int) -> int:
    """Interpret an unsigned varint as 64-bit two's complement."""
    return value - 0x1_0000_0000_0000_0000 if value >> 63 else value


def varint_text(value: int) -> str:
    """Encode a signed or unsigned 64-bit number as a varint: a string whose characters are bytes."""
    if 0x80 <= value < 0x4000:
        return chr(value & 0x7F | 0x80) + chr(value >> 7)
    value &= 0xFFFF_FFFF_FFFF_FFFF
    text = ""
    while value > 0x7F:
        text += chr(value & 0x7F | 0x80)
        value >>= 7
    return text + chr(value)


SMALL: tuple[str, ...] = tuple(varint_text(value) for value in range(2048))
"""Varints of small numbers, as `varint_text` encodes them."""


def size_text(size: int) -> str:
    """Encode a length as a varint; see `varint_text`."""
    return SMALL[size] if size < 2048 else varint_text(size)


def _plain_wire_type(kind: Kind) -> int:
    if kind in (Kind.STRING, Kind.BYTES, Kind.MESSAGE):
        return _LENGTH
    return {Kind.FLOAT: _FIXED32, Kind.DOUBLE: _FIXED64}.get(kind, _VARINT)


def tag_of(field: Field) -> int:
    """The tag that protobuf writes before a value of `field` (packed ones: before the run)."""
    return field.number << 3 | (_LENGTH if field.packed else _plain_wire_type(field.kind))


def _accepted_tags(field: Field) -> set[int]:
    """The tags under which protobuf accepts `field`: repeated numbers both packed and one by one."""
    plain = _plain_wire_type(field.kind)
    return {field.number << 3 | kind for kind in ({plain, _LENGTH} if field.repeated else {plain})}


class UnknownTail:
    """Checks that everything from a position on consists of unknown fields of one message."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self._known = {tag: field for field in fields for tag in _accepted_tags(field)}

    def check(self, buffer: Octets, position: int, end: int, depth: int) -> None:
        """Check the fields from `position` to `end`; raise NotCanonicalError for a known one, else as `skip_field`."""
        while position < end:
            start = position
            tag, position = read_lenient_varint(buffer, position)
            field = self._known.get(tag)
            if field is not None and not _is_unknown_enum(field, buffer, position):
                raise NotCanonicalError
            position = _skip(buffer, tag, position, end, depth, start)
        if position != end:
            raise WireError("a field is longer than the message that contains it", position)


def _is_unknown_enum(field: Field, buffer: Octets, position: int) -> bool:
    """Whether a number is not one of its enum; protobuf compares 32 bits of it and keeps the bytes unchanged."""
    if field.kind not in CLOSED_ENUMS:
        return False
    return read_lenient_varint(buffer, position)[0] & 0xFFFF_FFFF not in CLOSED_ENUMS[field.kind]


def fields(buffer: Octets, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the tag of each field of a message, the position after it (and its length), and that after the field."""
    while position < end:
        tag, start = read_lenient_varint(buffer, position)
        position = _skip(buffer, tag, start, end, 0, position)
        yield tag, read_lenient_varint(buffer, start)[1] if tag & 7 == _LENGTH else start, position


def _skip(buffer: Octets, tag: int, position: int, end: int, depth: int, start: int) -> int:
    kind = tag & 7
    if tag >> 3 == 0 or tag >> 32:
        raise WireError("a field has the number 0, or a number that is too big", start)
    if kind == _VARINT:
        return read_lenient_varint(buffer, position)[1]
    if kind == _LENGTH:
        size, position = read_lenient_varint(buffer, position)
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
        raise WireError("a field is longer than the message that contains it", start)
    return position


def _skip_group(buffer: Octets, tag: int, position: int, end: int, depth: int) -> int:
    open_groups = [tag >> 3]
    while open_groups:
        if depth + len(open_groups) > MESSAGE_DEPTH:
            raise LimitError(f"messages nest deeper than {MESSAGE_DEPTH} levels; protobuf reads no deeper")
        start = position
        if position >= end:
            raise WireError("a group is not closed", start)
        tag, position = read_lenient_varint(buffer, position)
        if tag & 7 == _GROUP:
            open_groups.append(tag >> 3)
        elif tag & 7 == _END_GROUP:
            if open_groups.pop() != tag >> 3:
                raise WireError("a group ends with the tag of another group", start)
        else:
            position = _skip(buffer, tag, position, end, depth, start)
    return position
