"""The fields of the 28 messages of onnx.proto (IR version 14, onnx 1.23), by record; payloads of attributes.

One table serves every generic walk: the wire format, the full forms of the text, proto-JSON. A test compares it with
the descriptors of the installed onnx and fails when a release adds a field.
"""

import struct
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from msgspec.structs import astuple

from onnxjson.model import document as d
from onnxjson.model.document import Attribute

_NUMBERS: Final[dict[type[d.Record], tuple[int, ...]]] = {
    d.Model: (1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26), d.OperatorSetId: (1, 2),
    d.Graph: (1, 2, 5, 10, 11, 12, 13, 14, 15, 16), d.Node: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
    d.Attribute: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 20, 21, 22, 23),
    d.Tensor: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16), d.Segment: (1, 2), d.StringStringEntry: (1, 2),
    d.SparseTensor: (1, 2, 3), d.Type: (1, 4, 5, 6, 7, 8, 9), d.TensorType: (1, 2), d.TensorShape: (1,),
    d.Dimension: (1, 2, 3), d.SequenceType: (1,), d.MapType: (1, 2), d.OptionalType: (1,), d.SparseTensorType: (1, 2),
    d.OpaqueType: (1, 2), d.NodeDeviceConfiguration: (1, 2, 3), d.ShardingSpec: (1, 2, 3, 4),
    d.IntIntListEntry: (1, 2), d.ShardedDim: (1, 2), d.SimpleShardedDim: (1, 2, 3), d.ValueInfo: (1, 2, 3, 4),
    d.TensorAnnotation: (1, 2), d.TrainingInfo: (1, 2, 3, 4), d.Function: (1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14),
    d.DeviceConfiguration: (1, 2, 3),
}  # fmt: skip
"""The numbers of the fields of each message in onnx.proto, in the order of the fields of its record."""

_ONEOFS: Final = {
    d.Type: ("value", [name for name in d.Type.__struct_fields__ if name.endswith("_type")]),
    d.Dimension: ("value", ["dim_value", "dim_param"]),
    d.SimpleShardedDim: ("dim", ["dim_value", "dim_param"]),
}

_NAMES: Final = (
    *("UNDEFINED", "FLOAT", "INT", "STRING", "TENSOR", "GRAPH", "FLOATS", "INTS", "STRINGS", "TENSORS"),
    *("GRAPHS", "SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"),
)
ATTRIBUTE_TYPE_NAMES: Final[dict[int, str]] = dict(enumerate(_NAMES))
"""AttributeProto.AttributeType by number."""

ATTRIBUTE_TYPES: Final[dict[str, int]] = {name: number for number, name in ATTRIBUTE_TYPE_NAMES.items()}

_PAYLOADS: Final = (
    *("f", "i", "s", "t", "g", "floats", "ints", "strings", "tensors", "graphs"),
    *("sparse_tensor", "sparse_tensors", "tp", "type_protos"),
)
ATTRIBUTE_PAYLOADS: Final[dict[int, str]] = dict(enumerate(_PAYLOADS, 1))
"""The field of AttributeProto that holds the value, by type."""

DATA_LOCATION_NAMES: Final[dict[int, str]] = {0: "DEFAULT", 1: "EXTERNAL"}
DATA_LOCATIONS: Final[dict[str, int]] = {name: number for number, name in DATA_LOCATION_NAMES.items()}

_FIELDS: Final = Attribute.__struct_fields__
_EMPTY: Final = [*astuple(Attribute())]
_NAME: Final = _FIELDS.index("name")
_TYPE: Final = _FIELDS.index("type")
_PAYLOAD_INDEX: Final = {kind: _FIELDS.index(name) for kind, name in ATTRIBUTE_PAYLOADS.items()}


class Kind(Enum):
    """How the values of a field are written: the .proto's scalar types, messages, and the two enums."""

    INT64 = "int64"
    UINT64 = "uint64"
    INT32 = "int32"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"
    DATA_TYPE = "TensorProto.DataType"
    """An int32 with a number of TensorProto.DataType (an open set: unknown numbers stay)."""
    ATTRIBUTE_TYPE = "AttributeProto.AttributeType"
    """A closed enum: protobuf moves unknown numbers to the unknown fields."""
    DATA_LOCATION = "TensorProto.DataLocation"
    """A closed enum."""
    MESSAGE = "message"


class Field(NamedTuple):
    """One field of a message."""

    number: int
    name: str
    kind: Kind
    repeated: bool = False
    packed: bool = False
    message: type[d.Record] | None = None
    """The record, where `kind` is MESSAGE."""
    oneof: str | None = None
    """The oneof that the field belongs to: at most one of its members is set."""


_PACKED: Final = {
    "float_data": Kind.FLOAT,
    "int32_data": Kind.INT32,
    "int64_data": Kind.INT64,
    "double_data": Kind.DOUBLE,
    "uint64_data": Kind.UINT64,
}
_KINDS: Final = {
    **_PACKED,
    **dict.fromkeys(("f", "floats"), Kind.FLOAT),
    **dict.fromkeys(("elem_type", "data_type", "key_type"), Kind.DATA_TYPE),
    **dict.fromkeys(("pipeline_stage", "num_devices"), Kind.INT32),
    "type": Kind.ATTRIBUTE_TYPE,
    "data_location": Kind.DATA_LOCATION,
}
"""The kinds of fields that are not messages, where they do not follow from the type in the record."""

_KINDS_OF_TYPES: Final = {int: Kind.INT64, str: Kind.STRING, bytes: Kind.BYTES}


def _fields(record: type[d.Record], numbers: tuple[int, ...]) -> Iterator[Field]:
    hints = get_type_hints(record)
    oneof, members = _ONEOFS.get(record, (None, []))
    for number, name, default in zip(numbers, record.__struct_fields__, record.__struct_defaults__, strict=False):
        # The type of one value: tuple[X, ...] and X | None have it first.
        value = (get_args(hints[name]) or (hints[name],))[0]
        message = value if issubclass(value, d.Record) else None
        kind = Kind.MESSAGE if message else _KINDS.get(name, _KINDS_OF_TYPES.get(value, Kind.BYTES))
        # A repeated field is never None in a record, but empty.
        group = oneof if name in members else None
        yield Field(number, name, kind, default is not None, name in _PACKED, message, group)


FIELDS: Final = {record: tuple(_fields(record, numbers)) for record, numbers in _NUMBERS.items()}
"""Every message's fields, in the order of their numbers, which is also the order of the record's fields."""


def short_payload(attribute: Attribute) -> tuple[int, Any] | None:
    """Return (AttributeType number, payload) of an attribute with name, type and that payload alone; else None."""
    fields = [*astuple(attribute)]
    kind = fields[_TYPE]
    index = _PAYLOAD_INDEX.get(kind)
    if index is None:
        return None
    payload = fields[index]
    fields[_NAME] = fields[_TYPE] = None
    fields[index] = _EMPTY[index]
    return (kind, payload) if payload is not None and fields == _EMPTY else None


def value_of(attribute: Attribute) -> Any:
    """Return the value of an attribute by its type, as a Python value.

    FLOAT and INT are numbers, STRING is str (bytes that are not UTF-8 as lone surrogates), FLOATS, INTS and STRINGS are
    tuples of those; tensors, graphs and types are their records. None if the payload that the type names is absent.
    """
    kind = attribute.type
    name = ATTRIBUTE_PAYLOADS.get(kind) if kind is not None else None
    payload = None if name is None else getattr(attribute, name)
    if payload is None:
        return None
    if name == "f":
        return struct.unpack("<f", payload)[0]
    if name == "floats":
        return struct.unpack(f"<{len(payload) // 4}f", payload)
    if name == "s":
        return payload.decode("utf-8", "surrogateescape")
    if name == "strings":
        return tuple([each.decode("utf-8", "surrogateescape") for each in payload])
    return payload
