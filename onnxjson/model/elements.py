"""The elements of tensors: bytes to canonical JSON tokens, and JSON values to bytes, for every dtype.

Bytes are laid out as ``raw_data``: little-endian; types of 4, 2 and 6 bits are one stream of bits that fills each byte
from its lowest bit (two, four, or four elements in three bytes), the last byte padded with zeros; complex numbers are
real and imaginary part.

Protobuf packs an integer of ``int32_data``, ``int64_data`` and ``uint64_data`` as a base-128 varint of its 64 bits, in
two's complement: a negative one has ten bytes. Each is as short as it can be; other spellings are not canonical.
"""

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from onnxjson.model import dtypes, scalars
from onnxjson.model.errors import WireError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

MOST_ELEMENTS: Final = 1 << 128
"""More than any tensor can have."""

_INTEGER_CODES: Final = {number: dtypes.DTYPES[number].entry for number in dtypes.INTEGERS if dtypes.BITS[number] >= 8}
_T = TypeVar("_T")

_FLOAT32, _FLOAT64, _BOOL, _COMPLEX64, _COMPLEX128 = 1, 11, 9, 14, 15

_MASK = (1 << 64) - 1
_VECTORISED_FROM = 2048
"""Minimum number of bytes for which importing numpy is worth it."""
_PIECE = 1 << 20
"""Bytes that are converted at a time, so that the arrays in between stay small."""


class _Tokens(dict[int, str]):
    """The canonical tokens of one small float format by bits, each built when it is first needed."""

    def __init__(self, form: dtypes.FloatFormat) -> None:
        super().__init__()
        self._form = form

    def __missing__(self, bits: int) -> str:
        text = self[bits] = self._form.text(bits)
        return text


_SMALL_TOKENS: Final = {number: _Tokens(form) for number, form in dtypes.SMALL_FORMATS.items()}
"""Canonical tokens by data type and bits; at most 65,536 for each data type."""


def element_count(dims: Sequence[int]) -> int:
    """Return the number of elements of a tensor: 1 for no dims (a scalar), 0 where a dim is 0 or negative.

    Products beyond `MOST_ELEMENTS` count as that, since the exact product of very many dims would take minutes.
    """
    if any([dim <= 0 for dim in dims]):
        return 0
    count = 1
    for dim in dims:
        count *= dim
        if count > MOST_ELEMENTS:
            return MOST_ELEMENTS
    return count


def byte_length(data_type: int, count: int) -> int | None:
    """Return the bytes of `count` elements in ``raw_data``; None for string, undefined and unknown data types."""
    size = dtypes.BITS.get(data_type)
    return None if size is None else (size * count + 7) // 8


def tokens(data_type: int, data: bytes, count: int) -> list[str] | None:
    """Return the canonical JSON token of each of the `count` elements in `data`, laid out as ``raw_data``.

    None where tokens cannot represent them: a dtype without bytes, a length that does not fit, a bool other than 0 and
    1, padding bits that are not zero.
    """
    size = dtypes.BITS.get(data_type)
    if size is None or len(data) != (size * count + 7) // 8:
        return None
    if code := _INTEGER_CODES.get(data_type):
        return _integer_tokens(struct.unpack(f"<{count}{code}", data))
    if data_type == _BOOL:
        return None if data.translate(None, b"\0\1") else ["true" if byte else "false" for byte in data]
    if data_type in (_FLOAT32, _COMPLEX64):
        if len(data) >= 4 * dtypes.BATCH_FROM:
            numbers = [token.decode() for token in dtypes.float32_tokens(data)]
        else:
            numbers = [dtypes.float32_text(data[start : start + 4]) for start in range(0, len(data), 4)]
        return numbers if data_type == _FLOAT32 else _pairs(numbers)
    if data_type in (_FLOAT64, _COMPLEX128):
        numbers = [dtypes.float64_text(data[start : start + 8]) for start in range(0, len(data), 8)]
        return numbers if data_type == _FLOAT64 else _pairs(numbers)
    patterns = _patterns(data, count, size)
    if patterns is None:
        return None
    if (texts := _SMALL_TOKENS.get(data_type)) is not None:
        return list(map(texts.__getitem__, patterns))
    if data_type in dtypes.SIGNED:
        half = 1 << (size - 1)
        return [str((pattern ^ half) - half) for pattern in patterns]
    return list(map(str, patterns))


def _integer_tokens(values: Sequence[int]) -> list[str]:
    if values and min(values) >= -scalars.LARGEST_PLAIN and max(values) <= scalars.LARGEST_PLAIN:
        return list(map(str, values))
    return list(map(scalars.int_text, values))


def _pairs(numbers: list[str]) -> list[str]:
    return [f"[{real}, {imaginary}]" for real, imaginary in zip(numbers[::2], numbers[1::2], strict=True)]


def _patterns(data: bytes, count: int, size: int) -> Sequence[int] | None:
    if size == 16:
        return struct.unpack(f"<{count}H", data)
    return data if size == 8 else split_bits(data, count, size)


def split_bits(data: bytes, count: int, size: int) -> list[int] | None:
    """Return elements of 2, 4 or 6 bits from a stream of bits; None if the bits that pad the last byte are not zero."""
    step = 3 if size == 6 else 1
    mask = (1 << size) - 1
    shifts = range(0, 8 * step, size)
    elements: list[int] = []
    for start in range(0, len(data), step):
        group = int.from_bytes(data[start : start + step], "little")
        elements.extend([group >> shift & mask for shift in shifts])
    padding = elements[count:]
    del elements[count:]
    return None if any(padding) else elements


def join_bits(elements: Sequence[int], size: int) -> bytes:
    """The inverse of `split_bits`, padded with zeros."""
    step, group_size = (3, 4) if size == 6 else (1, 8 // size)
    joined = bytearray()
    for start in range(0, len(elements), group_size):
        group = 0
        for position, element in enumerate(elements[start : start + group_size]):
            group |= element << (position * size)
        joined += group.to_bytes(step, "little")
    del joined[(len(elements) * size + 7) // 8 :]
    return bytes(joined)


def pack(data_type: int, values: list[object]) -> bytes:
    """Return the bytes of JSON values, laid out as ``raw_data``; ElementError for one that does not fit the dtype.

    `data_type` is one with a size (see `BITS`); `values` are int, float, bool, str, and lists of two for complex
    numbers.
    """
    size = dtypes.BITS[data_type]
    if code := _INTEGER_CODES.get(data_type):
        return _pack_integers(data_type, code, values)
    if data_type == _FLOAT32:
        return _pack_floats("f", values, scalars.float32_bits)
    if data_type == _FLOAT64:
        return _pack_floats("d", values, scalars.float64_bits)
    if data_type == _BOOL:
        return bytes(_each(values, _bool))
    if data_type in (_COMPLEX64, _COMPLEX128):
        part = scalars.float32_bits if data_type == _COMPLEX64 else scalars.float64_bits
        return b"".join(_each(values, lambda value: _complex(value, part)))
    if form := dtypes.SMALL_FORMATS.get(data_type):
        patterns = _each(values, lambda value: scalars.float_bits(form, value))
    else:
        low, high = integer_range(data_type)
        patterns = _each(values, lambda value: scalars.parse_int(value, low, high) & ((1 << size) - 1))
    if size == 16:
        return struct.pack(f"<{len(patterns)}H", *patterns)
    return bytes(patterns) if size == 8 else join_bits(patterns, size)


def integer_range(data_type: int) -> tuple[int, int]:
    """Return the least and the greatest value of an integer data type."""
    size = dtypes.BITS[data_type]
    return (-1 << (size - 1), (1 << (size - 1)) - 1) if data_type in dtypes.SIGNED else (0, (1 << size) - 1)


def _each(values: list[object], convert: Callable[[object], _T]) -> list[_T]:
    """Apply `convert` to each value; an error states the position."""
    converted: list[_T] = []
    try:
        for value in values:
            converted.append(convert(value))
    except scalars.ElementError as error:
        raise error.at(len(converted)) from None
    return converted


def _pack_integers(data_type: int, code: str, values: list[object]) -> bytes:
    if set(map(type, values)) == {int}:
        try:
            return struct.pack(f"<{len(values)}{code}", *values)
        except struct.error:
            pass
    low, high = integer_range(data_type)
    return struct.pack(f"<{len(values)}{code}", *_each(values, lambda value: scalars.parse_int(value, low, high)))


def _pack_floats(code: str, values: list[object], convert: Callable[[object], bytes]) -> bytes:
    if set(map(type, values)) <= {float, int}:
        try:
            # A sum is finite only if each value is; where the sum alone overflows, the slow way decides.
            if math.isfinite(sum(values)):  # type: ignore[arg-type]
                return struct.pack(f"<{len(values)}{code}", *values)
        except (OverflowError, struct.error):
            pass
    return b"".join(_each(values, convert))


def _bool(value: object) -> int:
    if isinstance(value, bool):
        return int(value)
    raise scalars.ElementError(scalars.found_text(value), "true or false")


def _complex(value: object, part: Callable[[object], bytes]) -> bytes:
    if isinstance(value, list) and len(value) == 2:
        return part(value[0]) + part(value[1])
    raise scalars.ElementError(scalars.found_text(value), "a list of two numbers, real and imaginary part")


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


def read_varints(data: bytes, signed: bool) -> list[int]:
    """Return the integers of packed varints, as protobuf reads them."""
    if data.isascii():
        return list(data)
    values: list[int] = []
    value = shift = 0
    for offset, byte in enumerate(data):
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= _MASK
            values.append(value - _MASK - 1 if signed and value >> 63 else value)
            value = shift = 0
            continue
        shift += 7
        if shift > 63:
            raise WireError("a varint has more than ten bytes", offset - 9)
    if shift:
        raise WireError("a packed field ends within a number", len(data))
    return values


def fixed_from_varints(data: bytes, code: str) -> bytes | None:
    """Return packed varints as little-endian integers of a `struct` code; `varints_from_fixed` is the inverse.

    None where a varint is not canonical or its value does not fit.
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
        # Unsigned narrow types are in int32_data, so they are read as signed; a negative one then does not fit.
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
