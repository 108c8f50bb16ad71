"""Convert a model to another version of the default operator set, with the converter of onnx.

Going down, that refuses many operators that only got more types or optional attributes. Such nodes are hidden from it:
they stay as they are, except for attributes without effect, and the caller checks whether the older operator accepts
them. An operator that does not exist in the older version is replaced by its definition, if onnx has one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from onnxjson.model.constants import RANDOM
from onnxjson.model.operators import operator_signature

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto

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
    ("Pad", b"wrap"): 19,
    ("Resize", b"half_pixel_symmetric"): 19,
    ("ScatterElements", b"max"): 18,
    ("ScatterElements", b"min"): 18,
    ("ScatterND", b"max"): 18,
    ("ScatterND", b"min"): 18,
}
"""Operators and values of attributes -> the version that added the value; no schema or adapter of onnx knows these."""

_HIDDEN: Final = "onnxjson.hidden"

_ROUNDS: Final = 8
"""How deep definitions may use operators that have definitions."""


def convert_version(model: "ModelProto", version: int) -> "ModelProto":
    """Convert a model to another version of the default operator set; nodes of `EXTENDED` may be wrong afterwards."""
    from onnx import version_converter

    old = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    if OLDEST <= version < old:
        model = _typed(_expanded(model, old, version))
        _hide(model.graph, version, {}, {})
        model.opset_import.add(domain=_HIDDEN, version=1)
    converted: ModelProto = version_converter.convert_version(model, version)
    for node in _nodes(converted.graph):
        if node.domain == _HIDDEN:
            node.domain = ""
    return converted


def _typed(model: "ModelProto") -> "ModelProto":
    """Add the types of all values to the main graph, also of initializers: adapters and the inliner read only these."""
    from onnx import helper, shape_inference

    model = shape_inference.infer_shapes(model)
    known = {each.name for each in (*model.graph.input, *model.graph.value_info)}
    missing = [each for each in model.graph.initializer if each.name not in known]
    model.graph.value_info.extend(
        [helper.make_tensor_value_info(each.name, each.data_type, each.dims) for each in missing]
    )
    return model


def _expanded(model: "ModelProto", old: int, version: int) -> "ModelProto":
    """Replace nodes whose operators do not exist in an older version by their definitions, except random ones.

    A definition may use such operators again: that of Gelu uses CastLike, whose own depends on the type of its input.
    """
    from onnx import inliner

    for _ in range(_ROUNDS):
        model = _typed(model)
        missing = _missing(model, old, version)
        if not missing:
            break
        model = inliner.inline_selected_functions(model, missing, inline_schema_functions=True)
    return model


def _missing(model: "ModelProto", old: int, version: int) -> list[tuple[str, str]]:
    """Return the operators of the nodes that have a definition and do not exist in an older version."""
    from onnx import defs

    own = {each.name for each in model.functions if not each.domain}
    found = []
    for name in sorted({node.op_type for node in _nodes(model.graph) if not node.domain}.difference(own, RANDOM)):
        if operator_signature("", name, old) is None or operator_signature("", name, version) is not None:
            continue
        schema = defs.get_schema(name, old, "")
        if schema.has_function or schema.has_context_dependent_function:  # type: ignore[attr-defined]
            found.append(("", name))
    return found


def _nodes(graph: "GraphProto") -> "Iterator[NodeProto]":
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


def _hide(
    graph: "GraphProto", version: int, constants: "Mapping[str, TensorProto]", shapes: "Mapping[str, TensorShapeProto]"
) -> None:
    """Hide the nodes of `EXTENDED` in a graph and its subgraphs, and adapt some of them."""
    constants = {**constants, **{each.name: each for each in graph.initializer}}
    constants |= {node.output[0]: each.t for node in graph.node for each in node.attribute if each.name == "value"}
    shapes = {**shapes, **{each.name: each.type.tensor_type.shape for each in (*graph.input, *graph.value_info)}}
    nodes: list[NodeProto] = []
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _hide(inner, version, constants, shapes)
        nodes.append(node)
        older = operator_signature("", node.op_type, version)
        if node.domain or node.op_type not in EXTENDED or older is None:
            continue
        node.domain = _HIDDEN
        lost = {each.name: each.i for each in node.attribute if each.name not in older.attributes}
        if node.op_type == "Reshape" and lost.get("allowzero") and _has_no_zero(constants.get(node.input[1])):
            _remove(node, ["allowzero"])
        elif node.op_type == "Split" and "num_outputs" in lost and _is_even(node, shapes.get(node.input[0])):
            _remove(node, ["num_outputs"])
        elif node.op_type == "Shape" and lost:
            _remove(node, list(lost))
            nodes.append(_slice_after(node, lost, graph))
    new = [type(each).FromString(each.SerializeToString()) for each in nodes]
    del graph.node[:]
    graph.node.extend(new)


def _remove(node: "NodeProto", names: Sequence[str]) -> None:
    kept = [each for each in node.attribute if each.name not in names]
    del node.attribute[:]
    node.attribute.extend(kept)


def _has_no_zero(shape: "TensorProto | None") -> bool:
    from onnx import numpy_helper

    return shape is not None and not shape.external_data and bool(numpy_helper.to_array(shape).all())


def _is_even(node: "NodeProto", shape: "TensorShapeProto | None") -> bool:
    """Whether a Split is known to have parts of equal size."""
    axis = next((each.i for each in node.attribute if each.name == "axis"), 0)
    if shape is None or not -len(shape.dim) <= axis < len(shape.dim):
        return False
    size = shape.dim[axis].dim_value
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
