"""The elements of tensors: bytes to canonical JSON tokens, and JSON values to bytes, for every dtype.

Bytes are laid out as ``raw_data``: little-endian; types of 4, 2 and 6 bits are one stream of bits that fills each byte
from its lowest bit (two, four, or four elements in three bytes), the last byte padded with zeros; complex numbers are
real and imaginary part.
"""

import math
import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from onnxjson.model.dtypes import BITS, DTYPES, INTEGERS, SIGNED, SMALL_FORMATS
from onnxjson.model.floats import BATCH_FROM, FloatFormat, float32_text, float32_tokens, float64_text
from onnxjson.model.scalars import (
    LARGEST_PLAIN,
    ElementError,
    float32_bits,
    float64_bits,
    float_bits,
    found_text,
    int_text,
    parse_int,
)

__all__ = [
    "MOST_ELEMENTS",
    "ElementError",
    "bits",
    "byte_length",
    "element_count",
    "float32_bits",
    "float32_text",
    "float32_tokens",
    "float64_bits",
    "float64_text",
    "int_text",
    "integer_range",
    "join_bits",
    "pack",
    "parse_int",
    "split_bits",
    "tokens",
]

MOST_ELEMENTS: Final = 1 << 128
"""More than any tensor can have."""

_INTEGER_CODES: Final = {number: DTYPES[number].entry for number in INTEGERS if BITS[number] >= 8}
_T = TypeVar("_T")

_FLOAT32, _FLOAT64, _BOOL, _COMPLEX64, _COMPLEX128 = 1, 11, 9, 14, 15


class _Tokens(dict[int, str]):
    """The canonical tokens of one small float format by bits, each built when it is first needed."""

    def __init__(self, form: FloatFormat) -> None:
        super().__init__()
        self._form = form

    def __missing__(self, bits: int) -> str:
        text = self[bits] = self._form.text(bits)
        return text


_SMALL_TOKENS: Final[dict[int, dict[int, str]]] = {number: _Tokens(form) for number, form in SMALL_FORMATS.items()}
"""Canonical tokens by data type and bits; at most 65,536 for each data type."""


def bits(data_type: int) -> int | None:
    """Return the bits of one element; None for string, undefined and unknown data types."""
    return BITS.get(data_type)


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
    size = BITS.get(data_type)
    return None if size is None else (size * count + 7) // 8


def tokens(data_type: int, data: bytes, count: int) -> list[str] | None:
    """Return the canonical JSON token of each element.

    Args:
        data_type: number of TensorProto.DataType.
        data: the elements as ``raw_data`` holds them.
        count: how many there are.

    Returns:
        `count` tokens; None where tokens cannot represent the elements: a dtype without bytes, a length that does not
        fit, a bool other than 0 and 1, padding bits that are not zero.
    """
    size = BITS.get(data_type)
    if size is None or len(data) != (size * count + 7) // 8:
        return None
    if code := _INTEGER_CODES.get(data_type):
        return _integer_tokens(struct.unpack(f"<{count}{code}", data))
    if data_type == _BOOL:
        return None if data.translate(None, b"\0\1") else ["true" if byte else "false" for byte in data]
    if data_type in (_FLOAT32, _COMPLEX64):
        if len(data) >= 4 * BATCH_FROM:
            numbers = [token.decode() for token in float32_tokens(data)]
        else:
            numbers = [float32_text(data[start : start + 4]) for start in range(0, len(data), 4)]
        return numbers if data_type == _FLOAT32 else _pairs(numbers)
    if data_type in (_FLOAT64, _COMPLEX128):
        numbers = [float64_text(data[start : start + 8]) for start in range(0, len(data), 8)]
        return numbers if data_type == _FLOAT64 else _pairs(numbers)
    patterns = _patterns(data, count, size)
    if patterns is None:
        return None
    if (texts := _SMALL_TOKENS.get(data_type)) is not None:
        return list(map(texts.__getitem__, patterns))
    if data_type in SIGNED:
        half = 1 << (size - 1)
        return [str((pattern ^ half) - half) for pattern in patterns]
    return list(map(str, patterns))


def _integer_tokens(values: Sequence[int]) -> list[str]:
    if values and min(values) >= -LARGEST_PLAIN and max(values) <= LARGEST_PLAIN:
        return list(map(str, values))
    return list(map(int_text, values))


def _pairs(numbers: list[str]) -> list[str]:
    return [f"[{real}, {imaginary}]" for real, imaginary in zip(numbers[::2], numbers[1::2], strict=True)]


def _patterns(data: bytes, count: int, size: int) -> Sequence[int] | None:
    """Return the bits of each element of at most 16 bits."""
    if size == 16:
        return struct.unpack(f"<{count}H", data)
    return data if size == 8 else split_bits(data, count, size)


def split_bits(data: bytes, count: int, size: int) -> list[int] | None:
    """Return the elements of a stream of bits, or None where the bits that pad the last byte are not zero.

    Args:
        data: ceil(count * size / 8) bytes.
        count: number of elements.
        size: bits of an element: 2, 4 or 6.
    """
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
    step, each = (3, 4) if size == 6 else (1, 8 // size)
    joined = bytearray()
    for start in range(0, len(elements), each):
        group = 0
        for position, element in enumerate(elements[start : start + each]):
            group |= element << (position * size)
        joined += group.to_bytes(step, "little")
    del joined[(len(elements) * size + 7) // 8 :]
    return bytes(joined)


def pack(data_type: int, values: list[object]) -> bytes:
    """Return the bytes of JSON values, laid out as ``raw_data``.

    Args:
        data_type: number of TensorProto.DataType, one with a size (see `bits`).
        values: a flat list of int, float, bool and str; complex numbers are lists of two.

    Raises:
        ElementError: an element does not fit the dtype; ``index`` is its position.
        KeyError: a dtype without bytes.
    """
    size = BITS[data_type]
    if code := _INTEGER_CODES.get(data_type):
        return _pack_integers(data_type, code, values)
    if data_type == _FLOAT32:
        return _pack_floats("f", values, float32_bits)
    if data_type == _FLOAT64:
        return _pack_floats("d", values, float64_bits)
    if data_type == _BOOL:
        return bytes(_each(values, _bool))
    if data_type in (_COMPLEX64, _COMPLEX128):
        part = float32_bits if data_type == _COMPLEX64 else float64_bits
        return b"".join(_each(values, lambda value: _complex(value, part)))
    if form := SMALL_FORMATS.get(data_type):
        patterns = _each(values, lambda value: float_bits(form, value))
    else:
        low, high = integer_range(data_type)
        patterns = _each(values, lambda value: parse_int(value, low, high) & ((1 << size) - 1))
    if size == 16:
        return struct.pack(f"<{len(patterns)}H", *patterns)
    return bytes(patterns) if size == 8 else join_bits(patterns, size)


def integer_range(data_type: int) -> tuple[int, int]:
    """Return the least and the greatest value of an integer data type."""
    size = BITS[data_type]
    return (-1 << (size - 1), (1 << (size - 1)) - 1) if data_type in SIGNED else (0, (1 << size) - 1)


def _each(values: list[object], convert: Callable[[object], _T]) -> list[_T]:
    """Apply `convert` to each value; an error states the position."""
    converted: list[_T] = []
    try:
        for value in values:
            converted.append(convert(value))
    except ElementError as error:
        raise error.at(len(converted)) from None
    return converted


def _pack_integers(data_type: int, code: str, values: list[object]) -> bytes:
    if set(map(type, values)) == {int}:
        try:
            return struct.pack(f"<{len(values)}{code}", *values)
        except struct.error:
            pass
    low, high = integer_range(data_type)
    return struct.pack(f"<{len(values)}{code}", *_each(values, lambda value: parse_int(value, low, high)))


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
    raise ElementError(found_text(value), "true or false")


def _complex(value: object, part: Callable[[object], bytes]) -> bytes:
    if isinstance(value, list) and len(value) == 2:
        return part(value[0]) + part(value[1])
    raise ElementError(found_text(value), "a list of two numbers, real and imaginary part")
