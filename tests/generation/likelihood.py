"""How often fields are present, how bytes are shared out, and where strings come from, in plausible messages."""

from tests.generation import values
from tests.generation.wire_encoding import FIXED32, FIXED64, LENGTH, VARINT

PRESENCE = {
    "ModelProto.ir_version": 0.95, "ModelProto.graph": 0.97, "ModelProto.opset_import": 0.9,
    "ModelProto.producer_name": 0.5, "ModelProto.functions": 0.15, "GraphProto.name": 0.9, "GraphProto.node": 0.9,
    "GraphProto.input": 0.6, "GraphProto.output": 0.6, "GraphProto.initializer": 0.5, "GraphProto.value_info": 0.3,
    "NodeProto.input": 0.9, "NodeProto.output": 0.97, "NodeProto.name": 0.6, "NodeProto.op_type": 0.97,
    "NodeProto.attribute": 0.7, "NodeProto.domain": 0.3, "NodeProto.metadata_props": 0.2, "FunctionProto.name": 0.9,
    "FunctionProto.node": 0.9, "FunctionProto.input": 0.8, "FunctionProto.output": 0.8, "FunctionProto.domain": 0.7,
    "FunctionProto.attribute": 0.3, "FunctionProto.attribute_proto": 0.3, "FunctionProto.opset_import": 0.5,
    "FunctionProto.overload": 0.2, "ValueInfoProto.name": 0.97, "ValueInfoProto.type": 0.95,
    "ValueInfoProto.metadata_props": 0.2, "OperatorSetIdProto.domain": 0.8, "OperatorSetIdProto.version": 0.97,
    "StringStringEntryProto.key": 0.98, "StringStringEntryProto.value": 0.98, "TypeProto.Tensor.elem_type": 0.97,
    "TypeProto.Tensor.shape": 0.85, "TypeProto.SparseTensor.elem_type": 0.97, "TypeProto.SparseTensor.shape": 0.85,
    "TypeProto.Sequence.elem_type": 0.97, "TypeProto.Optional.elem_type": 0.97, "TypeProto.Map.key_type": 0.97,
    "TypeProto.Map.value_type": 0.97, "TensorShapeProto.dim": 0.85, "TensorShapeProto.Dimension.dim_value": 0.6,
    "TensorShapeProto.Dimension.dim_param": 0.5, "TensorShapeProto.Dimension.denotation": 0.02,
    "TypeProto.denotation": 0.03, "SparseTensorProto.values": 0.9, "SparseTensorProto.indices": 0.9,
    "SparseTensorProto.dims": 0.9,
}  # fmt: skip
"""How often a field is present in a plausible message."""
RARE = (0.05, 0.05, 0.05, 0.3)
SMALL_MESSAGES = 0.5
"""Presence of fields without an entry: in `BIG` messages (one model in four shows them off), and in the others."""
DEFAULTS = {VARINT: b"\x00", FIXED64: bytes(8), FIXED32: bytes(4), LENGTH: b""}
"""The default value as wire bytes, by wire type."""
BIG = {
    "GraphProto", "NodeProto", "FunctionProto", "TrainingInfoProto", "ModelProto", "AttributeProto", "TensorProto",
    "TypeProto", "ValueInfoProto", "TypeProto.Tensor", "TensorShapeProto",
}  # fmt: skip
WEIGHTS = {"GraphProto.node": 8, "ModelProto.graph": 12, "GraphProto.initializer": 4, "FunctionProto.node": 6}
"""Shares of the bytes that fields of messages get; 1 for the others."""
STRING_SOURCES = {
    "NodeProto.op_type": values.IDENTIFIERS,
    "TensorShapeProto.Dimension.dim_param": values.DIM_NAMES,
    "SimpleShardedDimProto.dim_param": values.DIM_NAMES,
    "StringStringEntryProto.key": values.KEYS,
    "StringStringEntryProto.value": values.TEXTS,
}
VALUE_NAMES = {"name", "input", "output", "tensor_name", "ref_attr_name"}
PAYLOADS = {
    1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors", 10: "graphs",
    11: "sparse_tensor", 12: "sparse_tensors", 13: "tp", 14: "type_protos",
}  # fmt: skip
"""The field of AttributeProto for each AttributeType."""
