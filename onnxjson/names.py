"""Numbers and names: data types, attribute types, data locations.

Data types have numpy's and ml_dtypes' names in the text; the reader also takes onnx's own spelling.
"""

from typing import Final

DATA_TYPE_NAMES: Final[dict[int, str]] = {
    0: "undefined",
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    24: "float8_e8m0fnu",
    25: "uint2",
    26: "int2",
    27: "float6_e2m3fn",
    28: "float6_e3m2fn",
}
"""TensorProto.DataType by number."""

STRING: Final = 8
BOOL: Final = 9
COMPLEX: Final = (14, 15)
"""Data types whose elements are not one number each."""

ONNX_DATA_TYPE_NAMES: Final[dict[str, int]] = {
    "UNDEFINED": 0,
    "FLOAT": 1,
    "UINT8": 2,
    "INT8": 3,
    "UINT16": 4,
    "INT16": 5,
    "INT32": 6,
    "INT64": 7,
    "STRING": 8,
    "BOOL": 9,
    "FLOAT16": 10,
    "DOUBLE": 11,
    "UINT32": 12,
    "UINT64": 13,
    "COMPLEX64": 14,
    "COMPLEX128": 15,
    "BFLOAT16": 16,
    "FLOAT8E4M3FN": 17,
    "FLOAT8E4M3FNUZ": 18,
    "FLOAT8E5M2": 19,
    "FLOAT8E5M2FNUZ": 20,
    "UINT4": 21,
    "INT4": 22,
    "FLOAT4E2M1": 23,
    "FLOAT8E8M0": 24,
    "UINT2": 25,
    "INT2": 26,
    "FLOAT6E2M3": 27,
    "FLOAT6E3M2": 28,
}
"""The same by onnx's names."""

DATA_TYPES: Final[dict[str, int]] = (
    {name: number for number, name in DATA_TYPE_NAMES.items()}
    | ONNX_DATA_TYPE_NAMES
    | {name.lower(): number for name, number in ONNX_DATA_TYPE_NAMES.items()}
)
"""Every spelling of a data type that the reader takes: the text's, onnx's, and onnx's in lower case."""

ATTRIBUTE_TYPE_NAMES: Final[dict[int, str]] = {
    0: "UNDEFINED",
    1: "FLOAT",
    2: "INT",
    3: "STRING",
    4: "TENSOR",
    5: "GRAPH",
    6: "FLOATS",
    7: "INTS",
    8: "STRINGS",
    9: "TENSORS",
    10: "GRAPHS",
    11: "SPARSE_TENSOR",
    12: "SPARSE_TENSORS",
    13: "TYPE_PROTO",
    14: "TYPE_PROTOS",
}
"""AttributeProto.AttributeType by number."""

ATTRIBUTE_TYPES: Final[dict[str, int]] = {name: number for number, name in ATTRIBUTE_TYPE_NAMES.items()}

ATTRIBUTE_PAYLOADS: Final[dict[int, str]] = {
    1: "f",
    2: "i",
    3: "s",
    4: "t",
    5: "g",
    6: "floats",
    7: "ints",
    8: "strings",
    9: "tensors",
    10: "graphs",
    11: "sparse_tensor",
    12: "sparse_tensors",
    13: "tp",
    14: "type_protos",
}
"""The field of AttributeProto that holds the value, by type."""

DATA_LOCATION_NAMES: Final[dict[int, str]] = {0: "DEFAULT", 1: "EXTERNAL"}
DATA_LOCATIONS: Final[dict[str, int]] = {name: number for number, name in DATA_LOCATION_NAMES.items()}
