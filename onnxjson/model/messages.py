"""The fields of the 28 messages of onnx.proto (IR version 14, onnx 1.23), by record; payloads of attributes.

One table serves every generic walk: the wire format, the full forms of the text, proto-JSON. A test compares it with
the descriptors of the installed onnx and fails when a release adds a field.
"""

import struct
from enum import Enum
from typing import Any, Final, NamedTuple

from msgspec.structs import astuple

from onnxjson.model import document as d
from onnxjson.model.document import Attribute


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


def _scalar(number: int, name: str, kind: Kind, oneof: str | None = None) -> Field:
    return Field(number, name, kind, oneof=oneof)


def _many(number: int, name: str, kind: Kind) -> Field:
    return Field(number, name, kind, repeated=True)


def _packed(number: int, name: str, kind: Kind) -> Field:
    return Field(number, name, kind, repeated=True, packed=True)


def _one(number: int, name: str, message: type[d.Record], oneof: str | None = None) -> Field:
    return Field(number, name, Kind.MESSAGE, message=message, oneof=oneof)


def _list(number: int, name: str, message: type[d.Record]) -> Field:
    return Field(number, name, Kind.MESSAGE, repeated=True, message=message)


FIELDS: Final[dict[type[d.Record], tuple[Field, ...]]] = {
    d.Model: (
        _scalar(1, "ir_version", Kind.INT64),
        _scalar(2, "producer_name", Kind.STRING),
        _scalar(3, "producer_version", Kind.STRING),
        _scalar(4, "domain", Kind.STRING),
        _scalar(5, "model_version", Kind.INT64),
        _scalar(6, "doc_string", Kind.STRING),
        _one(7, "graph", d.Graph),
        _list(8, "opset_import", d.OperatorSetId),
        _list(14, "metadata_props", d.StringStringEntry),
        _list(20, "training_info", d.TrainingInfo),
        _list(25, "functions", d.Function),
        _list(26, "configuration", d.DeviceConfiguration),
    ),
    d.OperatorSetId: (_scalar(1, "domain", Kind.STRING), _scalar(2, "version", Kind.INT64)),
    d.Graph: (
        _list(1, "node", d.Node),
        _scalar(2, "name", Kind.STRING),
        _list(5, "initializer", d.Tensor),
        _scalar(10, "doc_string", Kind.STRING),
        _list(11, "input", d.ValueInfo),
        _list(12, "output", d.ValueInfo),
        _list(13, "value_info", d.ValueInfo),
        _list(14, "quantization_annotation", d.TensorAnnotation),
        _list(15, "sparse_initializer", d.SparseTensor),
        _list(16, "metadata_props", d.StringStringEntry),
    ),
    d.Node: (
        _many(1, "input", Kind.STRING),
        _many(2, "output", Kind.STRING),
        _scalar(3, "name", Kind.STRING),
        _scalar(4, "op_type", Kind.STRING),
        _list(5, "attribute", d.Attribute),
        _scalar(6, "doc_string", Kind.STRING),
        _scalar(7, "domain", Kind.STRING),
        _scalar(8, "overload", Kind.STRING),
        _list(9, "metadata_props", d.StringStringEntry),
        _list(10, "device_configurations", d.NodeDeviceConfiguration),
    ),
    d.Attribute: (
        _scalar(1, "name", Kind.STRING),
        _scalar(2, "f", Kind.FLOAT),
        _scalar(3, "i", Kind.INT64),
        _scalar(4, "s", Kind.BYTES),
        _one(5, "t", d.Tensor),
        _one(6, "g", d.Graph),
        _many(7, "floats", Kind.FLOAT),
        _many(8, "ints", Kind.INT64),
        _many(9, "strings", Kind.BYTES),
        _list(10, "tensors", d.Tensor),
        _list(11, "graphs", d.Graph),
        _scalar(13, "doc_string", Kind.STRING),
        _one(14, "tp", d.Type),
        _list(15, "type_protos", d.Type),
        _scalar(20, "type", Kind.ATTRIBUTE_TYPE),
        _scalar(21, "ref_attr_name", Kind.STRING),
        _one(22, "sparse_tensor", d.SparseTensor),
        _list(23, "sparse_tensors", d.SparseTensor),
    ),
    d.Tensor: (
        _many(1, "dims", Kind.INT64),
        _scalar(2, "data_type", Kind.DATA_TYPE),
        _one(3, "segment", d.Segment),
        _packed(4, "float_data", Kind.FLOAT),
        _packed(5, "int32_data", Kind.INT32),
        _many(6, "string_data", Kind.BYTES),
        _packed(7, "int64_data", Kind.INT64),
        _scalar(8, "name", Kind.STRING),
        _scalar(9, "raw_data", Kind.BYTES),
        _packed(10, "double_data", Kind.DOUBLE),
        _packed(11, "uint64_data", Kind.UINT64),
        _scalar(12, "doc_string", Kind.STRING),
        _list(13, "external_data", d.StringStringEntry),
        _scalar(14, "data_location", Kind.DATA_LOCATION),
        _list(16, "metadata_props", d.StringStringEntry),
    ),
    d.Segment: (_scalar(1, "begin", Kind.INT64), _scalar(2, "end", Kind.INT64)),
    d.StringStringEntry: (_scalar(1, "key", Kind.STRING), _scalar(2, "value", Kind.STRING)),
    d.SparseTensor: (_one(1, "values", d.Tensor), _one(2, "indices", d.Tensor), _many(3, "dims", Kind.INT64)),
    d.Type: (
        _one(1, "tensor_type", d.TensorType, "value"),
        _one(4, "sequence_type", d.SequenceType, "value"),
        _one(5, "map_type", d.MapType, "value"),
        _scalar(6, "denotation", Kind.STRING),
        _one(7, "opaque_type", d.OpaqueType, "value"),
        _one(8, "sparse_tensor_type", d.SparseTensorType, "value"),
        _one(9, "optional_type", d.OptionalType, "value"),
    ),
    d.TensorType: (_scalar(1, "elem_type", Kind.DATA_TYPE), _one(2, "shape", d.TensorShape)),
    d.TensorShape: (_list(1, "dim", d.Dimension),),
    d.Dimension: (
        _scalar(1, "dim_value", Kind.INT64, "value"),
        _scalar(2, "dim_param", Kind.STRING, "value"),
        _scalar(3, "denotation", Kind.STRING),
    ),
    d.SequenceType: (_one(1, "elem_type", d.Type),),
    d.MapType: (_scalar(1, "key_type", Kind.DATA_TYPE), _one(2, "value_type", d.Type)),
    d.OptionalType: (_one(1, "elem_type", d.Type),),
    d.SparseTensorType: (_scalar(1, "elem_type", Kind.DATA_TYPE), _one(2, "shape", d.TensorShape)),
    d.OpaqueType: (_scalar(1, "domain", Kind.STRING), _scalar(2, "name", Kind.STRING)),
    d.NodeDeviceConfiguration: (
        _scalar(1, "configuration_id", Kind.STRING),
        _list(2, "sharding_spec", d.ShardingSpec),
        _scalar(3, "pipeline_stage", Kind.INT32),
    ),
    d.ShardingSpec: (
        _scalar(1, "tensor_name", Kind.STRING),
        _many(2, "device", Kind.INT64),
        _list(3, "index_to_device_group_map", d.IntIntListEntry),
        _list(4, "sharded_dim", d.ShardedDim),
    ),
    d.IntIntListEntry: (_scalar(1, "key", Kind.INT64), _many(2, "value", Kind.INT64)),
    d.ShardedDim: (_scalar(1, "axis", Kind.INT64), _list(2, "simple_sharding", d.SimpleShardedDim)),
    d.SimpleShardedDim: (
        _scalar(1, "dim_value", Kind.INT64, "dim"),
        _scalar(2, "dim_param", Kind.STRING, "dim"),
        _scalar(3, "num_shards", Kind.INT64),
    ),
    d.ValueInfo: (
        _scalar(1, "name", Kind.STRING),
        _one(2, "type", d.Type),
        _scalar(3, "doc_string", Kind.STRING),
        _list(4, "metadata_props", d.StringStringEntry),
    ),
    d.TensorAnnotation: (
        _scalar(1, "tensor_name", Kind.STRING),
        _list(2, "quant_parameter_tensor_names", d.StringStringEntry),
    ),
    d.TrainingInfo: (
        _one(1, "initialization", d.Graph),
        _one(2, "algorithm", d.Graph),
        _list(3, "initialization_binding", d.StringStringEntry),
        _list(4, "update_binding", d.StringStringEntry),
    ),
    d.Function: (
        _scalar(1, "name", Kind.STRING),
        _many(4, "input", Kind.STRING),
        _many(5, "output", Kind.STRING),
        _many(6, "attribute", Kind.STRING),
        _list(7, "node", d.Node),
        _scalar(8, "doc_string", Kind.STRING),
        _list(9, "opset_import", d.OperatorSetId),
        _scalar(10, "domain", Kind.STRING),
        _list(11, "attribute_proto", d.Attribute),
        _list(12, "value_info", d.ValueInfo),
        _scalar(13, "overload", Kind.STRING),
        _list(14, "metadata_props", d.StringStringEntry),
    ),
    d.DeviceConfiguration: (
        _scalar(1, "name", Kind.STRING),
        _scalar(2, "num_devices", Kind.INT32),
        _many(3, "device", Kind.STRING),
    ),
}
"""Every message's fields, in the order of their numbers, which is also the order of the record's fields."""


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


_FIELDS: Final = Attribute.__struct_fields__
_EMPTY: Final = astuple(Attribute())
_TYPE: Final = _FIELDS.index("type")
_PAYLOAD_INDEX: Final = {kind: _FIELDS.index(name) for kind, name in ATTRIBUTE_PAYLOADS.items()}


def _empty_around(index: int) -> tuple[Any, Any, Any]:
    first, second = sorted((index, _TYPE))
    return _EMPTY[1:first], _EMPTY[first + 1 : second], _EMPTY[second + 1 :]


_EMPTY_AROUND: Final = {index: _empty_around(index) for index in _PAYLOAD_INDEX.values()}
"""The runs of fields other than name, type and one payload, as they are when absent, by the index of that payload."""


def short_payload(attribute: Attribute) -> tuple[int, Any] | None:
    """Return (AttributeType number, payload) of an attribute with name, type and that payload, and nothing else.

    A repeated payload may be empty. None for any other attribute: the text writes those in full.
    """
    fields = astuple(attribute)
    kind = fields[_TYPE]
    index = _PAYLOAD_INDEX.get(kind)
    if index is None:
        return None
    first, second = (index, _TYPE) if index < _TYPE else (_TYPE, index)
    before, between, after = _EMPTY_AROUND[index]
    if fields[1:first] != before or fields[first + 1 : second] != between or fields[second + 1 :] != after:
        return None
    payload = fields[index]
    return None if payload is None else (kind, payload)


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
