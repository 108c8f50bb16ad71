"""The data types of tensors: one table with the names, sizes, storage and tolerances of every dtype.

A new dtype of ONNX is one line of `DTYPES`; everything else here, and in the other rooms, is derived from that table.
The text uses the names of numpy and ml_dtypes; the reader also accepts onnx's own names.

Floats are written as the shortest decimal that reads back the same (docs/format.md, section 3): the fewest digits that,
read as binary64 and rounded to the format, have the same bits; the closest to the value among those; spelled as by
`repr`. The small formats are those of ml_dtypes and of the ONNX specification: a sign, an exponent and a fraction, read
by one rule; they differ in the patterns that are infinite or not a number.
"""

import math
import struct
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

BATCH_FROM = 4096
"""Minimum number of floats for which importing numpy and orjson (100 ms) is worth it."""

_FLOAT32 = struct.Struct("<f")
_FLOAT64 = struct.Struct("<d")
_SMALLEST_NORMAL = 2.0**-126

_NOT_AS_ORJSON = (0x15AE43FD, 0x15AE43FE)
"""Two neighbours: 7.038531e-26 is the first when it is read as binary32 at once, the second when through binary64."""

Kind = Literal["undefined", "float", "integer", "complex", "string", "bool"]

IEEE: Final = "IEEE"
"""`DType.entry` of the typed fields float_data and double_data: the little-endian bytes of raw_data."""

SIX_BITS: Final = "six bits"
"""`DType.entry` of 6-bit types: one element for each entry of int32_data, although raw_data packs four into 3 bytes."""

STRING: Final = 8
BOOL: Final = 9


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
    """Whether the format has negative values; the only one without them also has no zero and no subnormal values."""

    @property
    def sign_bit(self) -> int:
        """The sign bit; 0 if the format has none."""
        return 1 << (self.size - 1) if self.signed else 0

    @property
    def has_negative_zero(self) -> bool:
        """Whether -0.0 differs from 0.0."""
        return self.signed and self.nan != self.sign_bit

    def is_nan(self, bits: int) -> bool:
        """Whether these bits are a NaN."""
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
        """The bits of the nearest value, with ties to even; OverflowError for a value that the format does not have."""
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
        """Values that this format can represent, for a message."""
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


def shortest(value: float, reads_back: Callable[[float], bool]) -> str:
    """The ``repr`` of the decimal with the fewest digits that reads back the same, the closest to a finite `value`."""
    for digits in range(17):
        text = f"{value:.{digits}e}"
        decimal = float(text)
        if reads_back(decimal):
            return repr(decimal)
        if abs(decimal) < abs(value):
            # At a power of two the values above lie twice as far apart as those below, so that the nearest decimal
            # below the value may miss where the next one above it hits.
            mantissa, exponent = text.split("e")
            step = int(mantissa.replace(".", "")) + (1 if value > 0 else -1)
            decimal = float(f"{step}e{int(exponent) - digits}")
            if reads_back(decimal):
                return repr(decimal)
    return repr(value)


_LARGEST = FLOAT32.decode(FLOAT32.largest)


def _is_float32(decimal: float, data: bytes) -> bool:
    try:
        return _FLOAT32.pack(decimal) == data
    except OverflowError:
        return False


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
    """Return what `float32_text` does for zero, subnormal values, powers of two, the largest, infinities and NaN."""
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


class DType(NamedTuple):
    """One data type of TensorProto."""

    number: int
    """The number of TensorProto.DataType."""
    name: str
    """The name in the text, which is that of numpy's or ml_dtypes' dtype."""
    onnx_name: str
    """The name in onnx.proto."""
    kind: Kind
    bits: int = 0
    """Size of one element in ``raw_data``; 0 for strings, which it cannot hold, and for the undefined type."""
    field: str = ""
    """The typed field that may hold the elements instead of ``raw_data``."""
    entry: str = ""
    """How an entry of that field is stored in ``raw_data``: `IEEE`, `SIX_BITS`, or an integer of this `struct` code
    (for 4- and 2-bit types such an entry is a byte with several elements)."""
    format: FloatFormat | None = None
    """The binary format of a real float."""
    part: int | None = None
    """The number of the type of real and imaginary parts of a complex type."""
    relative: float = 0.0
    """Relative difference that another order of the same sums may cause; see `onnxjson.running.comparisons`."""
    of_scale: float = 0.0
    """The same as a share of the largest element."""
    ir_version: int = 1
    """The IR version that introduced the type, where it is above 8."""


def _integer(number: int, name: str, bits: int, field: str, entry: str, ir_version: int = 1) -> DType:
    return DType(number, name, name.upper(), "integer", bits, field, entry, ir_version=ir_version)


def _small_float(number: int, onnx_name: str, form: FloatFormat, entry: str, **more: Any) -> DType:
    return DType(number, form.name, onnx_name, "float", form.size, "int32_data", entry, form, **more)


_E4M3FN: Final = FloatFormat("float8_e4m3fn", 8, 3, bias=7, largest=0x7E, nan=0x7F)
_E4M3FNUZ: Final = FloatFormat("float8_e4m3fnuz", 8, 3, bias=8, largest=0x7F, nan=0x80)
_E5M2FNUZ: Final = FloatFormat("float8_e5m2fnuz", 8, 2, bias=16, largest=0x7F, nan=0x80)
_E2M1FN: Final = FloatFormat("float4_e2m1fn", 4, 1, bias=1, largest=0x7)
_E8M0FNU: Final = FloatFormat("float8_e8m0fnu", 8, 0, bias=127, largest=0xFE, nan=0xFF, signed=False)
_E2M3FN: Final = FloatFormat("float6_e2m3fn", 6, 3, bias=1, largest=0x1F)
_E3M2FN: Final = FloatFormat("float6_e3m2fn", 6, 2, bias=3, largest=0x1F)

_TABLE: Final = (
    DType(0, "undefined", "UNDEFINED", "undefined"),
    DType(1, "float32", "FLOAT", "float", 32, "float_data", IEEE, FLOAT32, relative=1e-4, of_scale=1e-5),
    _integer(2, "uint8", 8, "int32_data", "B"),
    _integer(3, "int8", 8, "int32_data", "b"),
    _integer(4, "uint16", 16, "int32_data", "H"),
    _integer(5, "int16", 16, "int32_data", "h"),
    _integer(6, "int32", 32, "int32_data", "i"),
    _integer(7, "int64", 64, "int64_data", "q"),
    DType(8, "string", "STRING", "string", field="string_data"),
    DType(9, "bool", "BOOL", "bool", 8, "int32_data", "B"),
    _small_float(10, "FLOAT16", ieee_format("float16", 5, 10), "H", relative=1e-2, of_scale=2e-3),
    DType(11, "float64", "DOUBLE", "float", 64, "double_data", IEEE, FLOAT64, relative=1e-9, of_scale=1e-11),
    _integer(12, "uint32", 32, "uint64_data", "I"),
    _integer(13, "uint64", 64, "uint64_data", "Q"),
    DType(14, "complex64", "COMPLEX64", "complex", 64, "float_data", IEEE, part=1, relative=1e-4, of_scale=1e-5),
    DType(15, "complex128", "COMPLEX128", "complex", 128, "double_data", IEEE, part=11, relative=1e-9, of_scale=1e-11),
    _small_float(16, "BFLOAT16", ieee_format("bfloat16", 8, 7), "H", relative=4e-2, of_scale=1e-2),
    _small_float(17, "FLOAT8E4M3FN", _E4M3FN, "B", relative=0.15, of_scale=0.03, ir_version=9),
    _small_float(18, "FLOAT8E4M3FNUZ", _E4M3FNUZ, "B", relative=0.15, of_scale=0.03, ir_version=9),
    _small_float(19, "FLOAT8E5M2", ieee_format("float8_e5m2", 5, 2), "B", relative=0.3, of_scale=0.06, ir_version=9),
    _small_float(20, "FLOAT8E5M2FNUZ", _E5M2FNUZ, "B", relative=0.3, of_scale=0.06, ir_version=9),
    _integer(21, "uint4", 4, "int32_data", "B", ir_version=10),
    _integer(22, "int4", 4, "int32_data", "B", ir_version=10),
    _small_float(23, "FLOAT4E2M1", _E2M1FN, "B", ir_version=11),
    _small_float(24, "FLOAT8E8M0", _E8M0FNU, "B", ir_version=12),
    _integer(25, "uint2", 2, "int32_data", "B", ir_version=13),
    _integer(26, "int2", 2, "int32_data", "B", ir_version=13),
    _small_float(27, "FLOAT6E2M3", _E2M3FN, SIX_BITS, ir_version=14),
    _small_float(28, "FLOAT6E3M2", _E3M2FN, SIX_BITS, ir_version=14),
)

DTYPES: Final[dict[int, DType]] = {dtype.number: dtype for dtype in _TABLE}
"""Every data type of ONNX, by number."""


DATA_TYPE_NAMES: Final[dict[int, str]] = {number: dtype.name for number, dtype in DTYPES.items()}
"""The name in the text, by number."""

DATA_TYPES: Final[dict[str, int]] = (
    {dtype.name: dtype.number for dtype in _TABLE}
    | {dtype.onnx_name: dtype.number for dtype in _TABLE}
    | {dtype.onnx_name.lower(): dtype.number for dtype in _TABLE}
)
"""Numbers by every spelling that the reader accepts: the text's, onnx's, and onnx's in lower case."""

BITS: Final[dict[int, int]] = {number: dtype.bits for number, dtype in DTYPES.items() if dtype.bits}
"""Bits of an element by data type; string, undefined and unknown data types are not in it."""

STORAGE: Final[dict[int, str]] = {number: DTYPES[number].field for number in BITS}
"""The typed field that may hold the elements, by data type; string and undefined are not in it."""

COMPLEX_PARTS: Final[dict[int, int]] = {
    number: dtype.part for number, dtype in DTYPES.items() if dtype.part is not None
}
"""The data type of real and imaginary parts, by complex data type."""

INTEGERS: Final = frozenset(number for number, dtype in DTYPES.items() if dtype.kind == "integer")
"""Signed and unsigned integers of every size; bool is not one of them."""

SIGNED: Final = frozenset(number for number in INTEGERS if DTYPES[number].name.startswith("int"))

FLOATS: Final[dict[int, FloatFormat]] = {
    number: dtype.format for number, dtype in DTYPES.items() if dtype.format is not None
}
"""The binary formats of the real float types."""

SMALL_FORMATS: Final = {number: form for number, form in FLOATS.items() if form.size <= 16}
"""Float formats of at most 16 bits, whose elements the codecs look up by their bits."""

WIDE_FLOATS: Final = frozenset(number for number, form in FLOATS.items() if form.size >= 16)
"""Float types of at least 16 bits: the ones that models compute with, not only store."""
