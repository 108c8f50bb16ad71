"""The data types of tensors: one table with the names, sizes, storage and tolerances of every dtype.

A new dtype of ONNX is one line of `DTYPES`; everything else here, and in the other rooms, is derived from that table.
The text uses the names of numpy and ml_dtypes; the reader also accepts onnx's own names.
"""

from typing import Final, Literal, NamedTuple

from onnxjson.model.floats import FLOAT32, FLOAT64, FloatFormat, ieee_format

Kind = Literal["undefined", "float", "integer", "complex", "string", "bool"]

IEEE: Final = "IEEE"
"""`DType.entry` of the typed fields float_data and double_data: the little-endian bytes of raw_data."""

SIX_BITS: Final = "six bits"
"""`DType.entry` of 6-bit types: one element for each entry of int32_data, although raw_data packs four into 3 bytes."""


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
    """Relative difference that another order of the same sums may cause; see `onnxjson.running.comparison`."""
    of_scale: float = 0.0
    """The same as a share of the largest element."""
    ir_version: int = 1
    """The IR version that introduced the type, where it is above 8."""


def _integer(number: int, name: str, bits: int, field: str, entry: str, ir_version: int = 1) -> DType:
    return DType(number, name, name.upper(), "integer", bits, field, entry, ir_version=ir_version)


def _small_float(
    number: int,
    onnx_name: str,
    form: FloatFormat,
    entry: str,
    relative: float = 0.0,
    of_scale: float = 0.0,
    ir_version: int = 1,
) -> DType:
    return DType(
        number,
        form.name,
        onnx_name,
        "float",
        form.size,
        "int32_data",
        entry,
        form,
        relative=relative,
        of_scale=of_scale,
        ir_version=ir_version,
    )


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

STRING: Final = 8
BOOL: Final = 9

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

ONNX_ELEMENT_NAMES: Final[dict[int, str]] = {number: dtype.onnx_name.lower() for number, dtype in DTYPES.items()}
"""The names in the type strings of onnx.defs, such as ``float`` in ``tensor(float)``."""
