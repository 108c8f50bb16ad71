"""Valid models with a text that a library would evaluate as Python, each in another place of a library.

docs/security.md lists these places. The text creates a marker file when it is evaluated.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

_OPSET: Final = 17
_DOMAIN: Final = "evil"
_Maker = Callable[[str], ModelProto]


def payload(marker: Path) -> str:
    """Return a Python expression that creates a file."""
    return f"__import__('pathlib').Path({str(marker)!r}).touch()"


def _model(
    nodes: list[NodeProto],
    shape: list[int],
    result: list[str],
    initializers: list[TensorProto] | None = None,
    function: tuple[str, str, list[str]] | None = None,
) -> ModelProto:
    """Return a model from x to y; ``function`` is the name, the only operator and the inputs of a local function."""
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, result)
    opset = helper.make_opsetid("", _OPSET)
    functions = []
    if function is not None:
        name, operator, inputs = function
        body = [helper.make_node(operator, inputs[:1], ["Y"])]
        functions = [helper.make_function(_DOMAIN, name, inputs, ["Y"], body, [opset])]
    graph = helper.make_graph(nodes, "g", [value], [out], initializers)
    imports = [opset, helper.make_opsetid(_DOMAIN, 1)]
    return helper.make_model(graph, ir_version=9, opset_imports=imports, functions=functions)


def _texts(name: str, text: str, count: int) -> TensorProto:
    return TensorProto(name=name, data_type=TensorProto.STRING, dims=[count], string_data=[text.encode()] * count)


def _moved(text: str, count: int) -> list[NodeProto]:
    """Return nodes of a constant whose elements the shape inference of onnxruntime keeps as texts."""
    constant = helper.make_node("Constant", [], ["s"], value=_texts("v", text, count))
    return [constant, helper.make_node("Transpose", ["s"], ["t"])]


def _cast(text: str, count: int) -> list[NodeProto]:
    """Return the same nodes with a Cast to integers, which operators accept as input, so no function is needed."""
    return [*_moved(text, count), helper.make_node("Cast", ["t"], ["i"], to=TensorProto.INT64)]


def _integers(name: str, *values: int) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(numpy.array(values)))


def _resize_function(text: str) -> ModelProto:
    node = helper.make_node("Resize", ["x", "", "", "z"], ["y"], domain=_DOMAIN)
    function = ("Resize", "Relu", ["X", "roi", "scales", "sizes"])
    return _model([node], [1, 1, 4, 4], list("abcd"), [_texts("z", text, 4)], function)


def _scales_function(text: str) -> ModelProto:
    node = helper.make_node("Resize", ["x", "", "z"], ["y"], domain=_DOMAIN)
    return _model([node], [1] * 4, list("abcd"), [_texts("z", text, 4)], ("Resize", "Relu", ["X", "roi", "scales"]))


def _slice_function(text: str) -> ModelProto:
    node = helper.make_node("Slice", ["x", "start", "z"], ["y"], domain=_DOMAIN)
    initializers = [numpy_helper.from_array(numpy.array([0]), "start"), _texts("z", text, 1)]
    return _model([node], [4, 4], list("ab"), initializers, ("Slice", "Relu", ["X", "starts", "ends"]))


def _floor_function(text: str) -> ModelProto:
    nodes = [helper.make_node("Floor", ["t"], ["f"], domain=_DOMAIN), helper.make_node("Relu", ["x"], ["y"])]
    return _model([*_moved(text, 1), *nodes], [1], ["a"], function=("Floor", "Identity", ["X"]))


def _resize(text: str) -> ModelProto:
    return _model([*_cast(text, 4), helper.make_node("Resize", ["x", "", "", "i"], ["y"])], [1, 1, 4, 4], list("abcd"))


def _slice(text: str) -> ModelProto:
    nodes = [_integers("start", 0), helper.make_node("Slice", ["x", "start", "i"], ["y"])]
    return _model([*_cast(text, 1), *nodes], [4, 4], list("ab"))


def _extremum(operator: str) -> _Maker:
    def made(text: str) -> ModelProto:
        nodes = [_integers("c", 3), helper.make_node(operator, ["i", "c"], ["m"])]
        return _model([*_cast(text, 1), *nodes, helper.make_node("Reshape", ["x", "m"], ["y"])], [4, 4], ["a"])

    return made


MAKERS: Final[dict[str, _Maker]] = {
    "a function Resize, sizes": _resize_function, "a function Resize, scales": _scales_function,
    "a function Slice": _slice_function, "a function Floor": _floor_function, "Cast and Resize": _resize,
    "Cast and Slice": _slice, "Cast and Max": _extremum("Max"), "Cast and Min": _extremum("Min"),
}  # fmt: skip
