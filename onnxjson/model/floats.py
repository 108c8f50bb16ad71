"""Floats of every size: bits, values, and the shortest decimal that comes back.

docs/format.md section 3 gives the rule: the fewest digits that, read as binary64 and rounded to the format, give the
same bits; the closest to the value among those; spelled as Python's ``repr``. The small formats are those of ml_dtypes
and of the ONNX specification ("Float stored in 8 bits", "Float stored in 4 bits"): a sign, an exponent and a fraction,
read by one rule; what differs is which patterns are infinite or no number.
"""

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

BATCH_FROM = 256
"""Floats from which numpy and orjson, whose import costs 80 ms, are worth it."""


class FloatFormat(NamedTuple):
    """A binary float format of up to 64 bits."""

    name: str
    size: int
    """Bits."""
    fraction_bits: int
    bias: int
    largest: int
    """The bits of the largest finite value."""
    infinity: int | None = None
    """The bits of positive infinity."""
    nan: int | None = None
    """The bits of the NaN that is written ``"NaN"``."""
    signed: bool = True
    """Whether there are negative values; the one format without them has no zero and no subnormal values either."""

    @property
    def sign_bit(self) -> int:
        """The bit of the sign, 0 where there is none."""
        return 1 << (self.size - 1) if self.signed else 0

    @property
    def has_negative_zero(self) -> bool:
        """Whether -0.0 differs from 0.0."""
        return self.signed and self.nan != self.sign_bit

    def is_nan(self, bits: int) -> bool:
        """Whether these bits are no number."""
        if self.nan == self.sign_bit:
            return bits == self.nan
        magnitude = bits & ~self.sign_bit
        return magnitude > self.largest and magnitude != self.infinity

    def decode(self, bits: int) -> float:
        """The value of finite bits, exact."""
        magnitude = bits & ~self.sign_bit
        exponent = magnitude >> self.fraction_bits
        significand = magnitude & ((1 << self.fraction_bits) - 1)
        if exponent or not self.signed:
            significand += 1 << self.fraction_bits
        else:
            exponent = 1
        value = math.ldexp(significand, exponent - self.bias - self.fraction_bits)
        return -value if bits & self.sign_bit else value

    def encode(self, value: float) -> int:
        """The bits of the nearest value, of two equally near ones the even.

        Raises:
            OverflowError: the nearest one is beyond the largest, or the format has no such sign or no zero.
        """
        negative = math.copysign(1.0, value) < 0
        if (negative or value == 0) and not self.signed:
            raise OverflowError(value)
        if value == 0:
            if negative and not self.has_negative_zero:
                raise OverflowError(value)
            return self.sign_bit if negative else 0
        lowest = 1 - self.bias if self.signed else -self.bias
        exponent = max(math.frexp(value)[1] - 1, lowest)
        significand = round(math.ldexp(abs(value), self.fraction_bits - exponent))
        # A significand that carries into the next power of two carries into the exponent bits, as it should.
        bits = ((exponent - lowest) << self.fraction_bits) + significand - (0 if self.signed else 1)
        if not 0 <= bits <= self.largest:
            raise OverflowError(value)
        return bits | self.sign_bit if negative and (bits or self.has_negative_zero) else bits

    def text(self, bits: int) -> str:
        """The canonical JSON token."""
        if self.is_nan(bits):
            return '"NaN"' if bits == self.nan else f'"NaN(0x{bits:0{-(-self.size // 4)}x})"'
        if bits & ~self.sign_bit == self.infinity:
            return '"-Infinity"' if bits & self.sign_bit else '"Infinity"'
        value = self.decode(bits)
        if value == 0:
            return '"-0.0"' if bits else "0.0"
        # Eight bits or fewer have so few values that the fewest digits would read oddly: 450.0 for 448.
        if self.size == 64 or self.size <= 8:
            return repr(value)
        return shortest(value, lambda decimal: self._is(decimal, bits))

    def _is(self, decimal: float, bits: int) -> bool:
        try:
            return self.encode(decimal) == bits
        except OverflowError:
            return False

    def fits(self) -> str:
        """What a value of this format may be, for a message."""
        if not self.signed:
            return f'a number from 2^-127 to 2^127 or "NaN" ({self.name})'
        names = (['"Infinity"'] if self.infinity else []) + (['"NaN"'] if self.nan else [])
        also = f" or {' or '.join(names)}" if names else ""
        return f"a number up to {self.decode(self.largest)!r} in magnitude{also} ({self.name})"


def ieee_format(name: str, exponent_bits: int, fraction_bits: int) -> FloatFormat:
    """A format as IEEE 754 lays it out: the highest exponent is for infinity and NaN."""
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    return FloatFormat(
        name,
        1 + exponent_bits + fraction_bits,
        fraction_bits,
        bias=(1 << (exponent_bits - 1)) - 1,
        largest=infinity - 1,
        infinity=infinity,
        nan=infinity | 1 << (fraction_bits - 1),
    )


FLOAT32: Final = ieee_format("float32", 8, 23)
FLOAT64: Final = ieee_format("float64", 11, 52)


def shortest(value: float, comes_back: Callable[[float], bool]) -> str:
    """The ``repr`` of the decimal with the fewest digits that comes back, the closest to `value` among those.

    Args:
        value: finite and not zero.
        comes_back: whether a decimal, read as binary64, stands for the element.
    """
    for digits in range(17):
        text = f"{value:.{digits}e}"
        decimal = float(text)
        if comes_back(decimal):
            return repr(decimal)
        if abs(decimal) < abs(value):
            # At a power of two the values above lie twice as far apart as those below, so that the nearest decimal
            # below the value may miss where the next one above it hits.
            mantissa, exponent = text.split("e")
            step = int(mantissa.replace(".", "")) + (1 if value > 0 else -1)
            decimal = float(f"{step}e{int(exponent) - digits}")
            if comes_back(decimal):
                return repr(decimal)
    return repr(value)


_FLOAT32 = struct.Struct("<f")
_FLOAT64 = struct.Struct("<d")
_SMALLEST_NORMAL = 2.0**-126
_LARGEST = FLOAT32.decode(FLOAT32.largest)


def _is_float32(decimal: float, data: bytes) -> bool:
    try:
        return _FLOAT32.pack(decimal) == data
    except OverflowError:
        return False


@lru_cache(maxsize=8192)
def float32_text(data: bytes) -> str:
    """Return the canonical JSON token of one float32, given as its 4 bytes, little-endian."""
    value: float = _FLOAT32.unpack(data)[0]
    magnitude = abs(value)
    if not _SMALLEST_NORMAL <= magnitude < math.inf:
        return _rare_float32_text(value, data)
    # At most one decimal of 6 digits lies near a normal float32; where it is the nearest one, it is the shortest.
    decimal = float("%.6g" % value)  # noqa: UP031 -- quicker than format()
    if _FLOAT32.pack(decimal) == data:
        return repr(decimal)
    if data[:2] == b"\0\0" or data[:3] == b"\xff\xff\x7f":
        return _rare_float32_text(value, data)
    decimal = float("%.7g" % value)  # noqa: UP031
    if _FLOAT32.pack(decimal) == data:
        return repr(decimal)
    decimal = float("%.8g" % value)  # noqa: UP031
    if _FLOAT32.pack(decimal) == data:
        return repr(decimal)
    return repr(float("%.9g" % value))  # noqa: UP031


def _rare_float32_text(value: float, data: bytes) -> str:
    """What `float32_text` gives for zero, subnormal values, powers of two, the largest value, infinities and NaN."""
    if abs(value) == _LARGEST:
        # 3.4028235e+38 has fewer digits, but readers that check the range before they round refuse it.
        return repr(value)
    if value == 0 or not math.isfinite(value):
        return FLOAT32.text(int.from_bytes(data, "little"))
    return shortest(value, lambda decimal: _is_float32(decimal, data))


def float64_text(data: bytes) -> str:
    """Return the canonical JSON token of one float64, given as its 8 bytes, little-endian."""
    value: float = _FLOAT64.unpack(data)[0]
    return repr(value) if value - value == 0 and value else FLOAT64.text(int.from_bytes(data, "little"))


def float32_tokens(data: bytes) -> list[bytes]:
    """Return the canonical JSON tokens of many float32, given as their bytes, little-endian."""
    if len(data) < 4 * BATCH_FROM:
        return [float32_text(data[start : start + 4]).encode() for start in range(0, len(data), 4)]
    import numpy
    import orjson

    bits = numpy.frombuffer(data, "<u4")
    values = bits.view("<f4").astype(numpy.float32, copy=False)
    tokens = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")
    magnitudes = bits & 0x7FFFFFFF
    # orjson finds the shortest digits, but changes to exponents elsewhere and spells them otherwise than Python.
    exponents = (magnitudes < _ONE_TEN_THOUSANDTH) | (magnitudes >= _TEN_MILLION)
    for index in numpy.flatnonzero(exponents & (bits != 0)).tolist():
        tokens[index] = repr(float(tokens[index])).encode() if tokens[index] != b"null" else b""
    for index in numpy.flatnonzero(numpy.isin(magnitudes, _NOT_AS_ORJSON) | (magnitudes >= FLOAT32.largest)).tolist():
        tokens[index] = float32_text(data[4 * index : 4 * index + 4]).encode()
    for index in numpy.flatnonzero(bits == FLOAT32.sign_bit).tolist():
        tokens[index] = b'"-0.0"'
    return tokens


_ONE_TEN_THOUSANDTH = FLOAT32.encode(1e-4)
_TEN_MILLION = FLOAT32.encode(1e7)
_NOT_AS_ORJSON = (0x15AE43FD, 0x15AE43FE)
"""Two neighbours: 7.038531e-26 is the first when it is read as binary32 at once, the second when through binary64."""
