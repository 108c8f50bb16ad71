"""Emulation of float16: a model that computes in float32 and rounds every value that would be float16.

onnxruntime has few kernels for float16 on processors. It computes the other operators in float32, and removes the
rounding between two of them, so that values that overflow on an accelerator do not overflow there. It keeps the
Casts of the model, so this model shows the effect of float16: each operator is exact inside, its outputs are rounded.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from onnxjson.optimizing.passes.declaration import proto_of, refill, subgraphs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

_WIDE: Final = "@wide"
"""Suffix of the name of a value that is rounded and float32."""
_HALF: Final = "@half"
_EXACT: Final = "@exact"
_DTYPE_ATTRIBUTES: Final = ("dtype", "to", "output_dtype")


class CannotEmulateError(Exception):
    """The model has a float16 value that is not a tensor, or has functions."""


def emulate(model: bytes) -> bytes:
    """Return the model that computes in float32; the same bytes if no value is float16.

    Inputs and outputs keep their types.
    """
    from onnx import shape_inference

    proto = proto_of(model)
    if proto.functions:
        raise CannotEmulateError("the model has functions")
    inferred = shape_inference.infer_shapes(proto)
    half = set(_half_values(inferred.graph))
    if not half:
        return model
    return bytes(_Emulation(proto, half).model.SerializeToString())


def _graphs(graph: "GraphProto") -> Iterator["GraphProto"]:
    yield graph
    for node in graph.node:
        for each in subgraphs(node):
            yield from _graphs(each)


def _half_values(graph: "GraphProto") -> Iterator[str]:
    from onnx import TensorProto

    unknown: dict[str, NodeProto] = {}
    found: set[str] = set()
    for each in _graphs(graph):
        found.update([tensor.name for tensor in each.initializer if tensor.data_type == TensorProto.FLOAT16])
        typed = {value.name for value in (*each.input, *each.output, *each.value_info) if value.HasField("type")}
        for value in (*each.input, *each.output, *each.value_info):
            if _is_half(value.type):
                found.add(value.name)
        for node in each.node:
            unknown.update({name: node for name in node.output if name and name not in typed})
    # Operators unknown to inference, such as those of onnxruntime, produce the type that they consume.
    for name, node in unknown.items():
        if any([given in found for given in node.input]):
            found.add(name)
    yield from found


def _is_half(declared: "TypeProto") -> bool:
    from onnx import TensorProto

    for form in ("sequence_type", "optional_type"):
        if declared.HasField(form) and _is_half(getattr(declared, form).elem_type):
            raise CannotEmulateError("the model has sequences of float16")
    return bool(declared.HasField("tensor_type") and declared.tensor_type.elem_type == TensorProto.FLOAT16)


class _Emulation:
    def __init__(self, model: "ModelProto", half: set[str]) -> None:
        from onnx import TensorProto

        self.model = model
        self._half = half
        self._half_type, self._float_type = TensorProto.FLOAT16, TensorProto.FLOAT
        graph = model.graph
        # An input that also has an initializer gets the value of the initializer.
        constants = {tensor.name for tensor in graph.initializer}
        kept = [value for value in graph.input if value.name not in constants]
        inputs = [value.name for value in kept if value.name in half]
        outputs = [value.name for value in graph.output if value.name in half]
        refill(graph.input, kept)
        self._widen_nodes(graph)
        nodes = [_cast(name, name + _WIDE, self._float_type) for name in inputs]
        nodes += [*graph.node, *[_cast(name + _WIDE, name, self._half_type) for name in outputs]]
        refill(graph.node, nodes)

    def _name(self, name: str) -> str:
        return name + _WIDE if name in self._half else name

    def _widen_nodes(self, graph: "GraphProto") -> None:
        del graph.value_info[:]
        for tensor in graph.initializer:
            tensor.name = self._name(tensor.name)
            _widen_tensor(tensor)
        refill(graph.node, [made for node in graph.node for made in self._widened(node)])

    def _widen_interface(self, values: "Sequence[ValueInfoProto]") -> None:
        for value in values:
            if value.name in self._half:
                value.name = self._name(value.name)
                value.type.tensor_type.elem_type = self._float_type

    def _widened(self, node: "NodeProto") -> "list[NodeProto]":
        for subgraph in subgraphs(node):
            self._widen_nodes(subgraph)
            self._widen_interface(subgraph.input)
            self._widen_interface(subgraph.output)
        node.input[:] = [self._name(name) for name in node.input]
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _widen_tensor(attribute.t)
            if attribute.name in _DTYPE_ATTRIBUTES and attribute.i == self._half_type:
                attribute.i = self._float_type
        made = [node]
        for place, name in enumerate(node.output):
            if name in self._half:
                node.output[place] = name + _EXACT
                made.append(_cast(name + _EXACT, name + _HALF, self._half_type))
                made.append(_cast(name + _HALF, name + _WIDE, self._float_type))
        return made


def _cast(source: str, made: str, to: int) -> "NodeProto":
    from onnx import helper

    return helper.make_node("Cast", [source], [made], name=f"{made}@cast", to=to)


def _widen_tensor(tensor: "TensorProto") -> None:
    import numpy
    from onnx import TensorProto, numpy_helper

    if tensor.data_type == TensorProto.FLOAT16:
        array = numpy_helper.to_array(tensor).astype(numpy.float32)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
