"""Base-128 varints (protobuf encoding, "Base 128 Varints")."""

from mmap import mmap

from onnxjson.errors import WireError

Buffer = bytes | mmap

MAX_DEPTH = 100
"""How deep messages may nest below the outermost one; protobuf reads no deeper."""

LARGEST_MESSAGE = 2**31 - 1
"""Bytes that protobuf can serialise or parse at once."""


class NotCanonicalError(Exception):
    """The bytes are not as protobuf writes them; protobuf itself must read them and write them again."""


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """A minimal varint at `position` -> (unsigned value, position after it).

    Raises:
        WireError: it runs on for more than ten bytes.
        NotCanonicalError: it is longer than its value needs.
        IndexError: the buffer ends within it.
    """
    byte = buffer[position]
    if byte < 0x80:
        return byte, position + 1
    value = byte & 0x7F
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
            raise WireError("a number runs on for more than ten bytes", start)
    if byte == 0 or value >> 64:
        raise NotCanonicalError
    return value, position + 1


def read_loose_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Like `read_varint`, but takes numbers written with more bytes than they need (as protobuf does)."""
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
            raise WireError("a number runs on for more than ten bytes", start)


def signed(value: int) -> int:
    """The 64-bit two's complement reading of an unsigned varint."""
    return value - 0x1_0000_0000_0000_0000 if value >> 63 else value


def varint_text(value: int) -> str:
    """The varint of a signed or unsigned 64-bit number, as a string whose characters are bytes."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    text = ""
    while value > 0x7F:
        text += chr(value & 0x7F | 0x80)
        value >>= 7
    return text + chr(value)


SMALL: tuple[str, ...] = tuple(varint_text(value) for value in range(2048))
"""Varints of small numbers, as `varint_text` gives them."""


def size_text(size: int) -> str:
    """The varint of a length."""
    return SMALL[size] if size < 2048 else varint_text(size)
