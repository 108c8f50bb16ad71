"""Shapes of inputs that fit the attributes of an operator, where those of its recipe do not."""

import re
from collections.abc import Mapping
from math import prod
from typing import Any, Final

from onnxjson.editing.new_models.recipes import Recipe

_GATES: Final = {"RNN": 1, "GRU": 3, "LSTM": 4}
_MOST_OUTPUTS: Final = 1000
_SHAPE: Final = re.compile(r"\[[0-9,]*\].*", re.DOTALL)


def fitted(recipe: Recipe, op_type: str, given: Mapping[str, Any]) -> Recipe:
    """Return a recipe with the shapes of its inputs changed to fit the attributes."""
    if op_type == "Einsum":
        terms = str(given["equation"]).partition("->")[0].replace(" ", "").split(",")
        return recipe._replace(inputs=tuple([f"Inputs:{[ord(each) % 5 + 2 for each in term]}" for term in terms]))
    shapes = _shapes(op_type, given)
    inputs = []
    for text in recipe.inputs:
        shape = shapes.get(text.partition(":")[0])
        inputs.append(text if shape is None else _SHAPE.sub(str(list(shape)).replace(" ", ""), text, count=1))
    outputs = recipe.outputs
    if op_type == "Split" and 0 < given.get("num_outputs", 0) <= _MOST_OUTPUTS:
        outputs = ("",) * given["num_outputs"]
    if op_type == "GroupNormalization":
        outputs = (str(list(shapes["X"])),)
    return recipe._replace(inputs=tuple(inputs), outputs=outputs)


def _shapes(op_type: str, given: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    match op_type:
        case "Conv" | "ConvInteger" | "QLinearConv" | "ConvTranspose" | "DeformConv":
            return _of_convolution(op_type, given)
        case "AveragePool" | "LpPool" | "MaxPool":
            return {"X": (1, 2, *[2 * each + 2 for each in given["kernel_shape"]])}
        case "Col2Im":
            return {"input": (1, 4, prod(_positions(given, [4, 4], [2, 2])))}
        case "RNN" | "GRU" | "LSTM":
            size, ways = given["hidden_size"], 2 if given.get("direction") == "bidirectional" else 1
            height = _GATES[op_type] * size
            x = (2, 3, 4) if given.get("layout") else (3, 2, 4)
            return {"X": x, "W": (ways, height, 4), "R": (ways, height, size)}
        case "Gemm":
            return {"A": (3, 2) if given.get("transA") else (2, 3), "B": (4, 3) if given.get("transB") else (3, 4)}
        case "DepthToSpace":
            return {"input": (1, 2 * given["blocksize"] ** 2, 2, 3)}
        case "SpaceToDepth":
            return {"input": (1, 2, 2 * given["blocksize"], 3 * given["blocksize"])}
        case "Transpose":
            return {"data": tuple(range(2, 2 + len(given["perm"])))}
        case "GroupNormalization":
            channels = 2 * given["num_groups"]
            return {"X": (1, channels, 3, 3), "scale": (channels,), "bias": (channels,)}
        case "QuantizeLinear" | "DequantizeLinear" if given.get("block_size"):
            scale = dict.fromkeys(("x_scale", "x_zero_point", "y_scale", "y_zero_point"), (2, 2))
            return {"x": (2, 2 * given["block_size"]), **scale}
    return {}


def _of_convolution(op_type: str, given: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    rank = next((len(given[name]) for name in ("kernel_shape", "strides", "dilations") if name in given), 2)
    kernel = given.get("kernel_shape") or [3] * rank
    group, offsets = given.get("group", 1), given.get("offset_group", 1)
    image = [each * 2 + 1 for each in kernel]
    channels = 2 * group * offsets
    shapes = {"X": (1, channels, *image), "W": (3 * group, channels // group, *kernel)}
    if op_type == "ConvTranspose":
        shapes["W"] = (channels, 3, *kernel)
    shapes["offset"] = (1, 2 * offsets * prod(kernel), *_positions(given, image, kernel))
    return shapes | {"x": shapes["X"], "w": shapes["W"]}


def _positions(given: Mapping[str, Any], image: list[int], kernel: list[int]) -> list[int]:
    """Return the number of positions of a kernel along each axis."""
    rank = len(kernel)
    steps, gaps = [given.get(key) or [1] * rank for key in ("strides", "dilations")]
    pads = given.get("pads") or [0] * 2 * rank
    return [
        (image[axis] + pads[axis] + pads[axis + rank] - gaps[axis] * (kernel[axis] - 1) - 1) // steps[axis] + 1
        for axis in range(rank)
    ]
