"""Convert a model to another version of the default operator set, with the converter of onnx.

Going down, that refuses many operators that only got more types or optional attributes. Such nodes are hidden from it:
they stay as they are, except for attributes without effect, and the caller checks whether the older operator accepts
them. An operator that does not exist in the older version is replaced by its definition, if onnx has one.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from onnxjson.model.operators import operator_signature
from onnxjson.running.opset_definitions import (
    bodies_of,
    constants_of,
    expand,
    nodes_of,
    remove_attributes,
    size_split,
    typed,
)

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

OLDEST: Final = 13
"""The oldest version for which `EXTENDED` is true."""

_NAMES: Final = """
Acos Acosh Add Asin Asinh Atan Atanh AveragePool BatchNormalization Bernoulli Cast CastLike Constant ConstantOfShape
Conv ConvTranspose Cos Cosh CumSum DeformConv DequantizeLinear Det Div Dropout Elu Equal EyeLike Flatten GRU
GlobalAveragePool GlobalLpPool GlobalMaxPool GreaterOrEqual HardSigmoid HardSwish Identity InstanceNormalization IsInf
IsNaN LSTM LeakyRelu LessOrEqual LpNormalization LpPool MaxPool MaxRoiPool MaxUnpool Mish Mul Multinomial
NegativeLogLikelihoodLoss PRelu Pad Pow QLinearMatMul QuantizeLinear RNN RandomNormal RandomNormalLike RandomUniform
RandomUniformLike Relu Reshape Resize Round ScatterElements ScatterND Selu Shape Sin Sinh Size Softplus Softsign Split
SplitToSequence Squeeze Sub Tan ThresholdedRelu TopK Transpose Unsqueeze Where If Loop Scan
"""

EXTENDED: Final = frozenset(_NAMES.split())
"""Operators whose newer versions compute the same as the older ones, for every node that the older ones accept."""

NEWER_VALUES: Final[dict[tuple[str | None, bytes | None], int]] = {
    ("Pad", b"wrap"): 19, ("Resize", b"half_pixel_symmetric"): 19, ("ScatterElements", b"max"): 18,
    ("ScatterElements", b"min"): 18, ("ScatterND", b"max"): 18, ("ScatterND", b"min"): 18,
}  # fmt: skip
"""Operators and values of attributes -> the version that added the value; no schema or adapter of onnx knows these."""

_RESIZE_MODES: Final = 11
"""The version of the operators that lets Resize choose how coordinates are transformed."""

_HIDDEN: Final = "onnxjson.hidden"


def convert_version(model: "ModelProto", version: int) -> "ModelProto":
    """Convert a model to another version of the default operator set; nodes of `EXTENDED` may be wrong afterwards."""
    from onnx import version_converter

    old = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    if OLDEST <= version < old:
        model = typed(expand(model, old, version))
        model.opset_import.add(domain=_HIDDEN, version=1)
        _Hiding(model, version).hide(model.graph, {}, {})
    converted: ModelProto = version_converter.convert_version(model, version)
    for node in nodes_of(converted.graph):
        if node.domain == _HIDDEN:
            node.domain = ""
    if old < _RESIZE_MODES <= version:
        _keep_coordinates(converted.graph, {})
    return converted


def _keep_coordinates(graph: "GraphProto", constants: "Mapping[str, TensorProto]") -> None:
    """State what Resize and Upsample did up to opset 10, where the defaults of later versions are other ones."""
    from onnx import helper, numpy_helper

    constants = {**constants, **constants_of(graph)}
    for node in graph.node:
        for inner in bodies_of(node):
            _keep_coordinates(inner, constants)
        if node.op_type != "Resize" or node.domain:
            continue
        node.attribute.append(helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
        if all(each.name != "mode" or each.s == b"nearest" for each in node.attribute):
            scales = constants.get(node.input[2])
            shrinks = scales is not None and bool((numpy_helper.to_array(scales) < 1).any())
            node.attribute.append(helper.make_attribute("nearest_mode", "ceil" if shrinks else "floor"))


class _Hiding:
    """Hides nodes of a model from the converter, which then does not see their subgraphs: those are converted alone."""

    def __init__(self, model: "ModelProto", version: int) -> None:
        self._version = version
        self._alone = type(model)(ir_version=model.ir_version, opset_import=model.opset_import)
        self._names = {name for node in nodes_of(model.graph) for name in (*node.input, *node.output)}

    def hide(
        self,
        graph: "GraphProto",
        constants: "Mapping[str, TensorProto]",
        types: "Mapping[str, ValueInfoProto]",
    ) -> None:
        """Hide the nodes of `EXTENDED` in a graph and its subgraphs, and adapt some of them."""
        constants = {**constants, **constants_of(graph)}
        types = {**types, **{each.name: each for each in (*graph.input, *graph.value_info)}}
        nodes: list[NodeProto] = []
        for node in graph.node:
            nodes.append(node)
            older = operator_signature("", node.op_type, self._version)
            is_hidden = not node.domain and node.op_type in EXTENDED and older is not None
            for inner in bodies_of(node):
                self.hide(inner, constants, types)
                if is_hidden:
                    self._convert(inner, constants, types)
            if not is_hidden or older is None:
                continue
            node.domain = _HIDDEN
            lost = {each.name: each.i for each in node.attribute if each.name not in older.attributes}
            if node.op_type == "Reshape" and lost.get("allowzero") and _has_no_zero(constants.get(node.input[1])):
                remove_attributes(node, ["allowzero"])
            elif node.op_type == "Split" and "num_outputs" in lost and _is_even(node, types):
                remove_attributes(node, ["num_outputs"])
            elif node.op_type == "Shape" and lost:
                remove_attributes(node, list(lost))
                nodes.append(_slice_after(node, lost, graph))
        _replace(graph.node, nodes)

    def _convert(
        self,
        graph: "GraphProto",
        constants: "Mapping[str, TensorProto]",
        types: "Mapping[str, ValueInfoProto]",
    ) -> None:
        """Convert a subgraph as a model, whose inputs and constants are the values around it."""
        from onnx import version_converter

        if all(node.domain for node in graph.node):
            return
        alone = type(self._alone).FromString(self._alone.SerializeToString())
        alone.graph.CopyFrom(graph)
        around = _consumed_around(graph)
        for name in around:
            if name in constants:
                alone.graph.initializer.add().CopyFrom(constants[name])
                alone.graph.initializer[-1].name = name
            elif name in types:
                alone.graph.input.add().CopyFrom(types[name])
            else:
                alone.graph.input.add().name = name
        before = {name for node in graph.node for name in node.output} | {each.name for each in graph.initializer}
        converted = version_converter.convert_version(alone, self._version).graph
        constant = [each for each in converted.initializer if each.name not in around]
        new = [each.name for each in constant] + [name for node in converted.node for name in node.output]
        names = {name: self._new_name(name) for name in new if name and name not in before}
        for each in constant:
            each.name = names.get(each.name, each.name)
        for node in converted.node:
            for field in (node.input, node.output):
                field[:] = [names.get(name, name) for name in field]
        _replace(graph.node, converted.node)
        _replace(graph.initializer, constant)

    def _new_name(self, name: str) -> str:
        """Return a name that no value of the model has, nor gets: the converter calls values ``_v_1`` in each graph."""
        count = 1
        while (new := f"converted{name}_{count}") in self._names:
            count += 1
        self._names.add(new)
        return new


def _consumed_around(graph: "GraphProto") -> dict[str, None]:
    """Return the names of the values around a subgraph that it uses."""
    defined = {value.name for value in graph.input} | {constant.name for constant in graph.initializer}
    defined |= {name for node in graph.node for name in node.output}
    used = [name for node in graph.node for name in node.input]
    used += [name for node in graph.node for inner in bodies_of(node) for name in _consumed_around(inner)]
    used += [value.name for value in graph.output]
    return dict.fromkeys(name for name in used if name and name not in defined)


def _replace(field: Any, records: Iterable[Any]) -> None:
    """Replace the records of a repeated field by others, some of which may be in it."""
    copies = [type(each).FromString(each.SerializeToString()) for each in records]
    del field[:]
    field.extend(copies)


def _has_no_zero(shape: "TensorProto | None") -> bool:
    from onnx import numpy_helper

    return shape is not None and not shape.external_data and bool(numpy_helper.to_array(shape).all())


def _is_even(node: "NodeProto", types: "Mapping[str, ValueInfoProto]") -> bool:
    """Whether a Split is known to have parts of equal size."""
    size = size_split(node, types.get(node.input[0]))
    return size > 0 and size % len(node.output) == 0


def _slice_after(node: "NodeProto", lost: "Mapping[str, int]", graph: "GraphProto") -> "NodeProto":
    """Give the output of a Shape a new name; return the Slice between ``start`` and ``end`` that has the old one."""
    import numpy
    from onnx import helper, numpy_helper

    output = node.output[0]
    node.output[0] = f"{output}_whole"
    bounds = []
    for name, default in (("start", 0), ("end", numpy.iinfo(numpy.int64).max)):
        bounds.append(f"{output}_{name}")
        graph.initializer.append(numpy_helper.from_array(numpy.array([lost.get(name, default)]), bounds[-1]))
    return helper.make_node("Slice", [node.output[0], *bounds], [output])
