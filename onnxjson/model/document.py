"""The model in memory: one frozen record for each of the 28 messages of onnx.proto, nothing lost.

Fields have the names and the order of onnx.proto (the class names lose "Proto"). The values of fields:

* an absent singular field is ``None``; an empty repeated field is ``()`` (or ``b""``), which protobuf cannot tell
  from absent;
* ``string`` is ``str``; bytes that are not UTF-8 are kept as lone surrogates (``surrogateescape``), so every string
  survives;
* ``bytes`` is ``bytes``; the bytes of tensors are ``Data``: in memory, or in a file until they are needed;
* ``float`` and ``double`` are the IEEE bytes, little-endian (4 or 8 a number, repeated ones joined), so that records
  compare by bits: -0.0 is not 0.0, a NaN equals itself, and the payload of a NaN stays. `Attribute.value` is the
  Python value;
* packed integers of tensors (``int32_data``, ``int64_data``, ``uint64_data``) are their varints as serialised;
  `Tensor.numpy` returns the elements;
* ``unknown_fields`` has, as serialised, the fields that onnx.proto does not define.

A change makes a new record that shares what it does not touch (``msgspec.structs.replace``). Records have no
references back, so the garbage collector does not track them: 100,000 nodes cause no pauses.
"""

import msgspec

from onnxjson.model.brief import Brief
from onnxjson.model.methods import (
    AttributeMethods,
    Guessed,
    ModelMethods,
    NodeMethods,
    TensorMethods,
    TypeMethods,
    refuse_assignment,
)
from onnxjson.model.payloads import Data


class Record(Brief, msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The base of all records; ``unknown_fields`` is the last field of each."""

    unknown_fields: bytes = b""


class StringStringEntry(Record, frozen=True, gc=False):
    """One pair of metadata_props, external_data, a training binding or a quantization annotation."""

    key: str | None = None
    value: str | None = None


class OperatorSetId(Record, frozen=True, gc=False):
    """A domain and the version of its operator set; exporters leave the default domain absent or set it to ""."""

    domain: str | None = None
    version: int | None = None


class Dimension(Record, frozen=True, gc=False):
    """One dimension: a size, a name, or neither."""

    dim_value: int | None = None
    dim_param: str | None = None
    denotation: str | None = None


class TensorShape(Record, frozen=True, gc=False):
    """The dimensions of a tensor, outermost first."""

    dim: tuple[Dimension, ...] = ()


class TensorType(Record, frozen=True, gc=False):
    """TypeProto.Tensor: element type (a number of TensorProto.DataType) and, if known, shape."""

    elem_type: int | None = None
    shape: TensorShape | None = None


class SparseTensorType(Record, frozen=True, gc=False):
    """TypeProto.SparseTensor."""

    elem_type: int | None = None
    shape: TensorShape | None = None


class SequenceType(Record, frozen=True, gc=False):
    """TypeProto.Sequence."""

    elem_type: "Type | None" = None


class MapType(Record, frozen=True, gc=False):
    """TypeProto.Map."""

    key_type: int | None = None
    value_type: "Type | None" = None


class OptionalType(Record, frozen=True, gc=False):
    """TypeProto.Optional."""

    elem_type: "Type | None" = None


class OpaqueType(Record, frozen=True, gc=False):
    """TypeProto.Opaque."""

    domain: str | None = None
    name: str | None = None


class Type(TypeMethods, Record, frozen=True, gc=False, cache_hash=True):
    """The type of a value; at most one of the six ``..._type`` fields is set."""

    tensor_type: TensorType | None = None
    sequence_type: SequenceType | None = None
    map_type: MapType | None = None
    denotation: str | None = None
    opaque_type: OpaqueType | None = None
    sparse_tensor_type: SparseTensorType | None = None
    optional_type: OptionalType | None = None


class ValueInfo(Guessed, Record, frozen=True, gc=False):
    """Name and type of a value."""

    name: str | None = None
    type: Type | None = None
    doc_string: str | None = None
    metadata_props: tuple[StringStringEntry, ...] = ()

    @property
    def dtype(self) -> str | None:
        """The data type of a tensor, such as "float32"; None if it is not declared."""
        return None if self.type is None else self.type.dtype

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """The dimensions of a tensor: sizes, names, or None; None if the shape is not declared."""
        return None if self.type is None else self.type.shape


class Segment(Record, frozen=True, gc=False):
    """TensorProto.Segment."""

    begin: int | None = None
    end: int | None = None


class Tensor(Guessed, TensorMethods, Record, frozen=True, gc=False):
    """A constant: dims, dtype, and its bytes in one of seven fields or in another file."""

    dims: tuple[int, ...] = ()
    data_type: int | None = None
    segment: Segment | None = None
    float_data: Data = b""
    int32_data: Data = b""
    string_data: tuple[bytes, ...] = ()
    int64_data: Data = b""
    name: str | None = None
    raw_data: Data | None = None
    double_data: Data = b""
    uint64_data: Data = b""
    doc_string: str | None = None
    external_data: tuple[StringStringEntry, ...] = ()
    data_location: int | None = None
    metadata_props: tuple[StringStringEntry, ...] = ()


class SparseTensor(Record, frozen=True, gc=False):
    """Values, their positions, and the dims of the dense tensor."""

    values: Tensor | None = None
    indices: Tensor | None = None
    dims: tuple[int, ...] = ()


class Attribute(AttributeMethods, Record, frozen=True, gc=False):
    """A named argument of a node, or the default of a function's attribute."""

    name: str | None = None
    f: bytes | None = None
    i: int | None = None
    s: bytes | None = None
    t: Tensor | None = None
    g: "Graph | None" = None
    floats: bytes = b""
    ints: tuple[int, ...] = ()
    strings: tuple[bytes, ...] = ()
    tensors: tuple[Tensor, ...] = ()
    graphs: "tuple[Graph, ...]" = ()
    doc_string: str | None = None
    tp: Type | None = None
    type_protos: tuple[Type, ...] = ()
    type: int | None = None
    ref_attr_name: str | None = None
    sparse_tensor: SparseTensor | None = None
    sparse_tensors: tuple[SparseTensor, ...] = ()


class IntIntListEntry(Record, frozen=True, gc=False):
    """A device index and the group of devices that it represents."""

    key: int | None = None
    value: tuple[int, ...] = ()


class SimpleShardedDim(Record, frozen=True, gc=False):
    """Number of shards of a dimension."""

    dim_value: int | None = None
    dim_param: str | None = None
    num_shards: int | None = None


class ShardedDim(Record, frozen=True, gc=False):
    """The sharding of one axis."""

    axis: int | None = None
    simple_sharding: tuple[SimpleShardedDim, ...] = ()


class ShardingSpec(Record, frozen=True, gc=False):
    """Distribution of one tensor over devices."""

    tensor_name: str | None = None
    device: tuple[int, ...] = ()
    index_to_device_group_map: tuple[IntIntListEntry, ...] = ()
    sharded_dim: tuple[ShardedDim, ...] = ()


class NodeDeviceConfiguration(Record, frozen=True, gc=False):
    """Sharding and pipeline stage of a node under one device configuration."""

    configuration_id: str | None = None
    sharding_spec: tuple[ShardingSpec, ...] = ()
    pipeline_stage: int | None = None


class Node(NodeMethods, Record, frozen=True, gc=False):
    """One call of an operator or function."""

    input: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    name: str | None = None
    op_type: str | None = None
    attribute: tuple[Attribute, ...] = ()
    doc_string: str | None = None
    domain: str | None = None
    overload: str | None = None
    metadata_props: tuple[StringStringEntry, ...] = ()
    device_configurations: tuple[NodeDeviceConfiguration, ...] = ()


class TensorAnnotation(Record, frozen=True, gc=False):
    """Quantization parameters of a tensor, by tensor names."""

    tensor_name: str | None = None
    quant_parameter_tensor_names: tuple[StringStringEntry, ...] = ()


class Graph(Guessed, Record, frozen=True, gc=False):
    """Nodes in file order with their constants, inputs and outputs."""

    node: tuple[Node, ...] = ()
    name: str | None = None
    initializer: tuple[Tensor, ...] = ()
    doc_string: str | None = None
    input: tuple[ValueInfo, ...] = ()
    output: tuple[ValueInfo, ...] = ()
    value_info: tuple[ValueInfo, ...] = ()
    quantization_annotation: tuple[TensorAnnotation, ...] = ()
    sparse_initializer: tuple[SparseTensor, ...] = ()
    metadata_props: tuple[StringStringEntry, ...] = ()


class Function(Record, frozen=True, gc=False):
    """A model-local function."""

    name: str | None = None
    input: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    attribute: tuple[str, ...] = ()
    node: tuple[Node, ...] = ()
    doc_string: str | None = None
    opset_import: tuple[OperatorSetId, ...] = ()
    domain: str | None = None
    attribute_proto: tuple[Attribute, ...] = ()
    value_info: tuple[ValueInfo, ...] = ()
    overload: str | None = None
    metadata_props: tuple[StringStringEntry, ...] = ()


class TrainingInfo(Record, frozen=True, gc=False):
    """One step of training: how to initialise, what to compute, what to assign."""

    initialization: Graph | None = None
    algorithm: Graph | None = None
    initialization_binding: tuple[StringStringEntry, ...] = ()
    update_binding: tuple[StringStringEntry, ...] = ()


class DeviceConfiguration(Record, frozen=True, gc=False):
    """A named set of devices that nodes refer to."""

    name: str | None = None
    num_devices: int | None = None
    device: tuple[str, ...] = ()


class Model(ModelMethods, Record, frozen=True, gc=False):
    """A whole ONNX model."""

    ir_version: int | None = None
    producer_name: str | None = None
    producer_version: str | None = None
    domain: str | None = None
    model_version: int | None = None
    doc_string: str | None = None
    graph: Graph | None = None
    opset_import: tuple[OperatorSetId, ...] = ()
    metadata_props: tuple[StringStringEntry, ...] = ()
    training_info: tuple[TrainingInfo, ...] = ()
    functions: tuple[Function, ...] = ()
    configuration: tuple[DeviceConfiguration, ...] = ()


Record.__setattr__ = refuse_assignment  # type: ignore[method-assign]  # msgspec sets its own in each class
