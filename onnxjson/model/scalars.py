"""One JSON value for one number: which values are accepted as an integer or a float, and which are refused.

The reader's tolerance is that of docs/format.md section 11: any spelling of a number, whole numbers as decimal strings.
"""

import math
import re
import struct
from typing import Final

from onnxjson.model.dtypes import FLOAT32, FLOAT64, FloatFormat

LARGEST_PLAIN: Final = 1 << 53
"""Integers beyond this magnitude are written as decimal strings; floats beyond it do not represent integers."""

_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")
_NAN = re.compile(r"NaN\(0x([0-9a-f]+)\)")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "-0.0": -0.0}
_LONGEST_DECIMAL = 400
"""Characters of a decimal string that can still be a float64."""

_PACK32 = struct.Struct("<f").pack
_PACK64 = struct.Struct("<d").pack


class WrittenFloat(float):
    """A JSON number with a point or exponent that is an integer as float64; its digits decide whether it is one."""

    __slots__ = ("spelling",)

    spelling: str

    @property
    def exact(self) -> int | None:
        """The integer that the digits spell; None if they do not spell one."""
        from decimal import Decimal, InvalidOperation

        try:
            number = Decimal(self.spelling)
            return int(number) if number == number.to_integral_value() else None
        except InvalidOperation:
            # An exponent of many digits, which only a number close to 0 can have here.
            return None

    def is_integer(self) -> bool:
        """See `float.is_integer`; applies to the digits, not to the nearest float64."""
        return self.exact is not None

    def __repr__(self) -> str:
        return self.spelling


def json_float(text: str) -> float:
    """The float64, or infinity, of a JSON number with a point or an exponent; no significant digit is lost."""
    number = float(text)
    if not number.is_integer() or repr(number) == text:
        return number
    written = WrittenFloat(number)
    written.spelling = text
    return written


class ElementError(ValueError):
    """A JSON value that is not an element of its dtype."""

    def __init__(self, value: str, fits: str, index: int = 0) -> None:
        super().__init__(f"element {index}: found {value}, expected {fits}")
        self.index = index
        """Position in the flat list."""
        self.found = value
        """The value, short and printable."""
        self.fits = fits
        """The values that are accepted."""

    def at(self, index: int) -> "ElementError":
        """Return the same error for another position."""
        return ElementError(self.found, self.fits, index)


def found_text(value: object) -> str:
    """Format a JSON value for a message: short, ASCII only."""
    import json

    if isinstance(value, str):
        text = json.dumps(value[:40])
        return f'{text[:-1]}..."' if len(value) > 40 else text
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, float):
        return _shortened(repr(value)) if math.isfinite(value) else "a number that is not finite as binary64"
    if isinstance(value, int) and value.bit_length() > 128:
        return "an integer of more than 38 digits"
    return json.dumps(value)


def _shortened(text: str) -> str:
    return f"{text[:40]}..." if len(text) > 40 else text


def int_text(value: int) -> str:
    """Return the canonical JSON token of an integer: a string of digits beyond 2^53."""
    return str(value) if -LARGEST_PLAIN <= value <= LARGEST_PLAIN else f'"{value}"'


def parse_int(value: object, low: int, high: int) -> int:
    """Return the integer of an int, a float that spells one up to 2^53 or a decimal string; else raise ElementError."""
    number: int | None = None
    if type(value) is int:
        number = value
    elif isinstance(value, float):
        number = whole(value)
    elif isinstance(value, str):
        number = _decimal(value)
    if number is None or not low <= number <= high:
        fits = f"an integer from {low} to {high}"
        if isinstance(value, float) and value.is_integer() and number is None:
            fits += " (above 2^53 without point or exponent)"
        raise ElementError(found_text(value), fits)
    return number


def whole(value: float) -> int | None:
    """The integer up to 2^53 that a number with a point or an exponent spells exactly."""
    number = value.exact if isinstance(value, WrittenFloat) else int(value) if value.is_integer() else None
    return number if number is not None and -LARGEST_PLAIN <= number <= LARGEST_PLAIN else None


def _decimal(text: str) -> int | None:
    return int(text) if len(text) <= _LONGEST_DECIMAL and _DECIMAL.fullmatch(text) else None


def float_bits(form: FloatFormat, value: object) -> int:
    """Return the bits of a JSON value in `form`, rounded to the nearest (to even), or raise ElementError."""
    try:
        if isinstance(value, str) and (match := _NAN.fullmatch(value)):
            bits = int(match[1], 16)
            if len(match[1]) != -(-form.size // 4) or bits >> form.size or not form.is_nan(bits):
                raise OverflowError(value)
            return bits
        number = _binary64(value)
        if math.isnan(number):
            if form.nan is None:
                raise OverflowError(value)
            return form.nan
        if math.isinf(number):
            if form.infinity is None:
                raise OverflowError(value)
            return form.infinity | (form.sign_bit if number < 0 else 0)
        return form.encode(number)
    except (OverflowError, TypeError):
        raise ElementError(found_text(value), form.fits()) from None


def _binary64(value: object) -> float:
    """Return the float64 of a JSON value; NaN and infinities only from their names."""
    if isinstance(value, float) and math.isfinite(value):
        return value
    if type(value) is int:
        return float(value)
    if isinstance(value, str):
        if value in _SPECIAL:
            return _SPECIAL[value]
        if (number := _decimal(value)) is not None:
            return float(number)
    raise TypeError(value)


def float32_bits(value: object) -> bytes:
    """Return the 4 bytes, little-endian, of a JSON value as float32; raise ElementError as `float_bits`."""
    if isinstance(value, float) and math.isfinite(value):
        try:
            return _PACK32(value)
        except OverflowError:
            raise ElementError(found_text(value), FLOAT32.fits()) from None
    return float_bits(FLOAT32, value).to_bytes(4, "little")


def float64_bits(value: object) -> bytes:
    """Return the 8 bytes, little-endian, of a JSON value as float64."""
    if isinstance(value, float) and math.isfinite(value):
        return _PACK64(value)
    return float_bits(FLOAT64, value).to_bytes(8, "little")
