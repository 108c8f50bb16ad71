"""Packed varints of tensors: to values, and to and from integers of a fixed width.

Protobuf writes an integer of ``int32_data``, ``int64_data`` and ``uint64_data`` as a base-128 varint of its 64 bits, in
two's complement: a negative one takes ten bytes. Each is as short as it can be; other spellings are not canonical.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from onnxjson.model.errors import WireError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_MASK = (1 << 64) - 1
_VECTORISED_FROM = 2048
"""Bytes from which numpy is worth its import."""
_PIECE = 1 << 20
"""Bytes that are converted at a time, so that the arrays in between stay small."""


def varints(values: Iterable[int]) -> bytes:
    """The packed varints of integers of up to 64 bits, negative ones in two's complement."""
    data = bytearray()
    for value in values:
        rest = value & _MASK
        while rest > 0x7F:
            data.append(rest & 0x7F | 0x80)
            rest >>= 7
        data.append(rest)
    return bytes(data)


def read_varints(data: bytes, signed: bool, bits: int = 64) -> list[int]:
    """The integers of packed varints, as protobuf reads them.

    Args:
        data: the varints, canonical or not.
        signed: whether to read two's complement.
        bits: 64, or 32 for ``int32_data``: higher bits are dropped.

    Raises:
        WireError: the last one is cut off, or one runs on for more than ten bytes.
    """
    if data.isascii():
        return list(data)
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    values: list[int] = []
    value = shift = 0
    for offset, byte in enumerate(data):
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= mask
            values.append(value - (half << 1) if signed and value & half else value)
            value = shift = 0
            continue
        shift += 7
        if shift > 63:
            raise WireError("a number runs on for more than ten bytes", offset - 9)
    if shift:
        raise WireError("a run of numbers ends within a number", len(data))
    return values


def fixed_from_varints(data: bytes, code: str) -> bytes | None:
    """Packed varints as little-endian integers of a fixed width.

    Args:
        data: packed varints.
        code: the integer's type as in `struct`: one of ``bBhHiIqQ``; lower-case ones are signed.

    Returns:
        the integers; None where a varint is not canonical or its value does not fit. Then, and only then,
        `varints_from_fixed` would not give `data` back.
    """
    if len(data) < _VECTORISED_FROM:
        return _few_fixed(data, code)
    converted = bytearray()
    for piece in _split(data):
        numbers = _decode(piece, code)
        if numbers is None:
            return None
        converted += numbers.tobytes()
    return bytes(converted)


def varints_from_fixed(data: bytes, code: str) -> bytes:
    """Little-endian integers of a fixed width as packed varints; the inverse of `fixed_from_varints`."""
    if len(data) < _VECTORISED_FROM:
        return varints(struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data))
    return b"".join(_encode(data[start : start + _PIECE], code) for start in range(0, len(data), _PIECE))


def _few_fixed(data: bytes, code: str) -> bytes | None:
    if data.isascii():
        return struct.pack(f"<{len(data)}{code}", *data)
    try:
        values = read_varints(data, signed=code not in "IQ")
        # Unsigned narrow types stand in int32_data, so they are read as signed; a negative one then does not fit.
        fixed = struct.pack(f"<{len(values)}{code}", *values)
    except (WireError, struct.error):
        return None
    return fixed if varints(values) == data else None


def _split(data: bytes) -> Iterator[bytes]:
    """`data` in pieces that end where a varint ends."""
    start = 0
    while start < len(data):
        end = min(start + _PIECE, len(data))
        while end < len(data) and data[end - 1] & 0x80:
            end += 1
        yield data[start:end]
        start = end


def _decode(piece: bytes, code: str) -> "NDArray[numpy.generic] | None":
    """The integers of one piece as an array, or None (see `fixed_from_varints`)."""
    import numpy

    data = numpy.frombuffer(piece, numpy.uint8)
    ends = numpy.flatnonzero(data < 0x80)
    if not len(ends) or ends[-1] != len(data) - 1:
        return None
    starts = numpy.concatenate([ends[:1] * 0, ends[:-1] + 1])
    lengths = ends - starts + 1
    last = data[ends]
    longest = int(lengths.max())
    if longest > 10 or bool(((lengths > 1) & (last == 0)).any()) or bool(((lengths == 10) & (last > 1)).any()):
        return None
    values = (data[starts] & 0x7F).astype(numpy.uint64)
    for step in range(1, longest):
        long = numpy.flatnonzero(lengths > step)
        values[long] |= (data[starts[long] + step] & 0x7F).astype(numpy.uint64) << numpy.uint64(7 * step)
    wide = values if code in "IQ" else values.view(numpy.int64)
    narrow = wide.astype(numpy.dtype(f"<{code}"))
    return narrow if bool((narrow.astype(wide.dtype) == wide).all()) else None


def _encode(piece: bytes, code: str) -> bytes:
    """The packed varints of one piece of integers."""
    import numpy

    numbers = numpy.frombuffer(piece, numpy.dtype(f"<{code}"))
    values = numbers.astype(numpy.uint64 if code in "IQ" else numpy.int64).view(numpy.uint64)
    lengths = numpy.ones(len(values), numpy.int64)
    longest = max(1, -(-int(values.max()).bit_length() // 7))
    for step in range(1, longest):
        lengths += (values >> numpy.uint64(7 * step)) != 0
    ends = numpy.cumsum(lengths)
    starts = ends - lengths
    data = numpy.empty(int(ends[-1]), numpy.uint8)
    for step in range(longest):
        long = numpy.flatnonzero(lengths > step)
        data[starts[long] + step] = (values[long] >> numpy.uint64(7 * step)).astype(numpy.uint8) | 0x80
    data[ends - 1] &= 0x7F
    return data.tobytes()
