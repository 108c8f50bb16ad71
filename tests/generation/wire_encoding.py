"""Protobuf's wire format, written by hand: the generator makes what no protobuf library would write."""

from collections.abc import Iterator

VARINT, FIXED64, LENGTH, START_GROUP, END_GROUP, FIXED32 = range(6)
"""The wire types."""

_SMALL = [bytes([number]) for number in range(128)]


def varint(number: int) -> bytes:
    """`number` (0 to 2^64-1) in the fewest bytes."""
    if number < 128:
        return _SMALL[number]
    data = bytearray()
    while number >= 128:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)


def signed(number: int) -> bytes:
    """The varint of an int32, int64 or enum: negative numbers take ten bytes."""
    return varint(number & 0xFFFFFFFFFFFFFFFF)


def longer(data: bytes, extra: int) -> bytes:
    """The same varint with `extra` bytes too many, ten in all at most: protobuf reads no longer ones."""
    extra = min(extra, 10 - len(data))
    return data[:-1] + bytes([data[-1] | 128]) + b"\x80" * (extra - 1) + b"\x00" if extra else data


def tag(number: int, wire_type: int) -> bytes:
    """The tag of a field."""
    return varint(number << 3 | wire_type)


def length_delimited(number: int, payload: bytes) -> bytes:
    """A field of wire type 2."""
    return tag(number, LENGTH) + varint(len(payload)) + payload


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at offset `at`, and the offset after it; bits beyond 64 are dropped."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def fields(data: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """The fields of one serialised message: number, wire type, start, start of the payload, end (offsets in `data`).

    The payload of a group ends before its closing tag, which belongs to the field.
    """
    at = 0
    while at < len(data):
        start = at
        key, at = read_varint(data, at)
        number, wire_type = key >> 3, key & 7
        payload = at
        at = _end_of_value(data, at, wire_type)
        yield number, wire_type, start, payload, at


def _end_of_value(data: bytes, at: int, wire_type: int) -> int:
    if wire_type == VARINT:
        return read_varint(data, at)[1]
    if wire_type == FIXED64:
        return at + 8
    if wire_type == FIXED32:
        return at + 4
    if wire_type == LENGTH:
        size, at = read_varint(data, at)
        return at + size
    while True:
        key, at = read_varint(data, at)
        if key & 7 == END_GROUP:
            return at
        at = _end_of_value(data, at, key & 7)


def length_payload(data: bytes, payload: int, end: int) -> bytes:
    """The bytes of a length-delimited field that `fields` reported."""
    _, start = read_varint(data, payload)
    return data[start:end]
