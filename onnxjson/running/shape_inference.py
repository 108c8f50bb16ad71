"""The shape inference of onnx with the values of shapes, without those of long vectors.

Where a node consumes a vector (a tensor with one axis) of known size, onnx creates a record of about 70 bytes for each
element, since it may be a shape: three copies for a vector of 10 million elements need 2 GB. So nodes consume a
constant that onnx cannot read in place of each long vector.
"""

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, TensorProto

_LONG: Final = 1 << 16
"""Elements of a vector that is no shape."""

_BIG: Final = 1 << 20
"""Elements of a tensor from which a node may make a long vector; smaller ones cost little."""

_UNREADABLE: Final = b"onnxjson long vector."
"""An odd number of bytes, so that code that reads it as numbers fails."""


def inferred_shapes(model: bytes, *, strict: bool = False) -> "ModelProto":
    """Run the shape inference of onnx on a serialized model, with the values of shapes.

    Raises:
        onnx.shape_inference.InferenceError: with `strict`, a node cannot have its inputs.
    """
    from onnx import ModelProto, shape_inference

    proto = ModelProto.FromString(model)
    hidden: dict[str, str] = {}
    if _has_big_tensors(proto.graph):
        _hide(proto.graph, shape_inference.infer_shapes(proto).graph, {}, hidden)
    inferred: ModelProto = shape_inference.infer_shapes(proto, check_type=strict, strict_mode=strict, data_prop=True)
    if hidden:
        _restore(inferred.graph, hidden)
    return inferred


def _has_big_tensors(graph: "GraphProto") -> bool:
    shapes = [list(each.dims) for each in graph.initializer]
    shapes += [list(each.t.dims) for node in graph.node for each in node.attribute if each.HasField("t")]
    shapes += [[size.dim_value for size in each.type.tensor_type.shape.dim] for each in graph.input]
    return any(prod(dims) >= _BIG for dims in shapes)


def _hide(graph: "GraphProto", typed: "GraphProto", around: dict[str, "TensorProto"], hidden: dict[str, str]) -> None:
    """Let nodes consume unreadable constants in place of the long vectors among the values; record their names."""
    constants = {each.name for each in graph.initializer}
    long = {name: each for name, each in around.items() if name not in constants}
    long |= {each.name: each for each in _long_vectors(typed) if each.name not in constants}
    used: dict[str, TensorProto] = {}
    for node, same in zip(graph.node, typed.node, strict=True):
        for slot, name in enumerate(node.input):
            if name in long:
                node.input[slot] = f"{name} hidden by onnxjson"
                used[node.input[slot]] = long[name]
                hidden[node.input[slot]] = name
        for attribute, its in zip(node.attribute, same.attribute, strict=True):
            if attribute.HasField("g"):
                _hide(attribute.g, its.g, long, hidden)
    for name, tensor in used.items():
        graph.initializer.add().CopyFrom(tensor)
        graph.initializer[-1].name = name


def _long_vectors(typed: "GraphProto") -> Iterator["TensorProto"]:
    from onnx import TensorProto

    for value in (*typed.value_info, *typed.input):
        tensor = value.type.tensor_type
        if tensor.elem_type and len(tensor.shape.dim) == 1 and tensor.shape.dim[0].dim_value >= _LONG:
            dims = [tensor.shape.dim[0].dim_value]
            yield TensorProto(name=value.name, dims=dims, data_type=tensor.elem_type, raw_data=_UNREADABLE)


def _restore(graph: "GraphProto", hidden: dict[str, str]) -> None:
    kept = [each for each in graph.initializer if each.name not in hidden]
    if len(kept) < len(graph.initializer):
        del graph.initializer[:]
        graph.initializer.extend(kept)
    for node in graph.node:
        for slot, name in enumerate(node.input):
            if name in hidden:
                node.input[slot] = hidden[name]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _restore(attribute.g, hidden)
