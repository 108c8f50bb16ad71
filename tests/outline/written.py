"""Models for tests of outlines, written in ONNX's text with weights of zeros."""

import re

from onnx import parser

import onnxjson
from onnxjson.model.document import Model
from onnxjson.outline.lines import Outline, outline_of

_WEIGHT = re.compile(r"(float\[([\d,]+)\] \w+) = \.")


def model(text: str, weights: str = "", inputs: str = "float[2,6,8] x", outputs: str = "float[2,6,8] out") -> Model:
    """Return a model of nodes; ``float[8,8] w = .`` among the weights is filled with zeros."""
    filled = _WEIGHT.sub(lambda match: f"{match[1]} = {{{', '.join(['0'] * _count(match[2]))}}}", weights)
    header = f'<ir_version: 9, opset_import: ["" : 20]> agraph ({inputs}) => ({outputs})'
    proto = parser.parse_model(f"{header} <{filled}> {{ {text} }}")
    for node in proto.graph.node:  # the parser allows no /layers.0/norm
        node.name = re.sub(r"_(\d)", r".\1", node.name.replace("__", "/"))
    return onnxjson.from_proto(proto)


def _count(dims: str) -> int:
    count = 1
    for size in dims.split(","):
        count *= int(size)
    return count


def outline(text: str, weights: str = "", inputs: str = "float[2,6,8] x", outputs: str = "float[2,6,8] out") -> Outline:
    """Return the outline of a model of nodes."""
    return outline_of(model(text, weights, inputs, outputs))


def lines(text: str, weights: str = "", inputs: str = "float[2,6,8] x", outputs: str = "float[2,6,8] out") -> list[str]:
    """Return the lines of a model of nodes after that of its inputs, without the type of its output."""
    return [line.removesuffix(": float32[2,6,8]") for line in outline(text, weights, inputs, outputs).texts()[1:]]
