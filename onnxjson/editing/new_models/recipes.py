"""Example calls of operators that do not accept the usual inputs of shape [2,3], and subgraphs that they need.

A line of ``recipes.txt`` is an operator with the versions that it applies to, then inputs ``name:[shape]`` or
``name:[shape]=values``, after ``|`` attributes ``name=value``, and after ``>`` the outputs: their number, or their
types if onnx infers none. A shape has no dtype if the operator leaves a choice; an input with values is a constant.
If several lines apply to a version, the first one is used. If the user sets attributes, lines with more of them are
tried first, until onnx accepts the model.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from onnxjson.editing.new_models.slot_types import innermost_tensor, static_shape
from onnxjson.editing.spelling import json_or_text
from onnxjson.editing.type_relations import with_shape
from onnxjson.model.document import Attribute, Graph, Node, Tensor, TensorShape, TensorType, Type, ValueInfo
from onnxjson.model.dtypes import BITS, STRING
from onnxjson.model.messages import ATTRIBUTE_TYPES

_HEAD: Final = re.compile(r"(?:(?P<domain>[a-z.]+):)?(?P<name>\w+)(?:@(?P<first>\d+)?-(?P<last>\d+)?)?")
_NEWEST: Final = 1 << 30

_INT64, _BOOL = 7, 9

_GATES: Final = {"RNN": 1, "GRU": 3, "LSTM": 4}
_MOST_OUTPUTS: Final = 1000
_SHAPE: Final = re.compile(r"\[[0-9,]*\].*", re.DOTALL)


class Recipe(NamedTuple):
    """One call of an operator."""

    inputs: tuple[str, ...] = ()
    """Specifications of inputs, see `slot_types`; none for the usual inputs."""
    attributes: tuple[str, ...] = ()
    """Attributes as ``name=value``."""
    outputs: tuple[str, ...] = ()
    """Types or shapes of outputs that onnx does not infer; none for the required number of outputs."""

    def values(self) -> dict[str, Any]:
        """Return the attributes as JSON values."""
        pairs = [text.partition("=") for text in self.attributes]
        return {name: json_or_text(value) for name, _, value in pairs}


@cache
def _recipes() -> dict[str, list[tuple[int, int, Recipe]]]:
    calls_of: dict[str, list[tuple[int, int, Recipe]]] = {}
    for line in filter(None, Path(__file__).with_name("recipes.txt").read_text(encoding="utf-8").splitlines()):
        rest, _, outputs = line.partition(" > ")
        calls, _, attributes = rest.partition(" | ")
        head, *inputs = calls.split()
        match = _HEAD.fullmatch(head)
        assert match is not None, head
        first, last = int(match["first"] or 1), int(match["last"] or _NEWEST)
        output_names = outputs.split()
        if output_names and output_names[0].isdigit():
            output_names = [""] * int(output_names[0])
        recipe = Recipe(tuple(inputs), tuple(attributes.split()), tuple(output_names))
        calls_of.setdefault(match["name"], []).append((first, last, recipe))
    return calls_of


def recipe_for(op_type: str, version: int) -> Recipe:
    """Return the call of a version of an operator; an empty one if nothing special is known."""
    return recipes_for(op_type, version, {})[0]


def recipes_for(op_type: str, version: int, attributes: Mapping[str, Any]) -> list[Recipe]:
    """Return the calls of a version of an operator, sorted by how many of some attributes they have."""
    recipes = [recipe for first, last, recipe in _recipes().get(op_type, ()) if first <= version <= last]

    def alike(recipe: Recipe) -> int:
        return sum([value == attributes[name] for name, value in recipe.values().items() if name in attributes])

    return sorted(recipes, key=alike, reverse=True) or [Recipe()]


def bodies(op_type: str, given: Sequence[Type], outputs: int, bound: Mapping[str, Type]) -> tuple[Attribute, ...]:
    """Return the subgraphs that an operator needs for inputs of these types; none for other operators."""
    match op_type:
        case "If":
            branch = bound.get("V") or Type(tensor_type=TensorType(elem_type=1))
            return tuple([_attribute(name, _branch(name, branch, outputs)) for name in ("then_branch", "else_branch")])
        case "Loop":
            return (_attribute("body", _loop(given[2:])),)
        case "Scan":
            return (_attribute("body", _scan(given)),)
        case "SequenceMap":
            return (_attribute("body", _mapped(given)),)
    return ()


def _attribute(name: str, graph: Graph) -> Attribute:
    return Attribute(name=name, g=graph, type=ATTRIBUTE_TYPES["GRAPH"])


def zeros(name: str, data_type: int, dims: tuple[int, ...]) -> Tensor:
    """Return a constant of zeros, or of empty strings."""
    count = math.prod(dims)
    if data_type == STRING:
        return Tensor(dims=dims, data_type=data_type, name=name, string_data=(b"",) * count)
    return Tensor(dims=dims, data_type=data_type, name=name, raw_data=bytes((BITS[data_type] * count + 7) // 8))


def _branch(name: str, value: Type, outputs: int) -> Graph:
    """Build a branch whose outputs depend on no input."""
    tensor = innermost_tensor(value)
    data_type = (tensor.elem_type if tensor is not None else None) or 1
    nodes, infos = [], []
    prefix = name.partition("_")[0]
    for number in range(outputs):
        output, given, operator = f"{prefix}_value_{number}", f"{prefix}_constant", "Identity"
        if value.sequence_type is not None:
            operator = "SequenceConstruct"
        elif value.optional_type is not None:
            operator, inside = "Optional", value.optional_type.elem_type
            if inside is not None and inside.sequence_type is not None:
                inner = f"{prefix}_sequence_{number}"
                nodes.append(Node(op_type="SequenceConstruct", input=(given,), output=(inner,)))
                given = inner
        nodes.append(Node(op_type=operator, input=(given,), output=(output,)))
        infos.append(ValueInfo(name=output, type=with_shape(value, static_shape((2, 3)))))
    constant = zeros(f"{prefix}_constant", data_type, (2, 3))
    return Graph(node=tuple(nodes), name=name, initializer=(constant,), output=tuple(infos))


def _loop(carried: Sequence[Type]) -> Graph:
    """Build a body that passes on every carried value, and stacks the first one if it is a tensor."""
    inputs = [ValueInfo("iteration", _scalar(_INT64)), ValueInfo("go_on", _scalar(_BOOL))]
    nodes = [Node(op_type="Identity", input=("go_on",), output=("go_on_out",))]
    outputs = [ValueInfo("go_on_out", _scalar(_BOOL))]
    for number, value in enumerate(carried):
        inputs.append(ValueInfo(f"state_{number}", value))
        nodes.append(Node(op_type="Identity", input=(f"state_{number}",), output=(f"state_{number}_out",)))
        outputs.append(ValueInfo(f"state_{number}_out", value))
    if carried and carried[0].tensor_type is not None:
        nodes.append(Node(op_type="Identity", input=("state_0",), output=("gathered",)))
        outputs.append(ValueInfo("gathered", carried[0]))
    return Graph(node=tuple(nodes), name="body", input=tuple(inputs), output=tuple(outputs))


def _scan(given: Sequence[Type]) -> Graph:
    """Build a body that returns the element before the current one."""
    tensor = given[-2].tensor_type
    # In version 8, the body has no batch.
    shape = TensorShape(dim=tensor.shape.dim[-1:] if tensor is not None and tensor.shape is not None else ())
    state, element = with_shape(given[-2], shape), with_shape(given[-1], shape)
    return Graph(
        node=(
            Node(op_type="Identity", input=("element",), output=("state_out",)),
            Node(op_type="Identity", input=("state",), output=("gathered",)),
        ),
        name="body",
        input=(ValueInfo("state", state), ValueInfo("element", element)),
        output=(ValueInfo("state_out", element), ValueInfo("gathered", state)),
    )


def _mapped(given: Sequence[Type]) -> Graph:
    inputs = [
        value.sequence_type.elem_type if value.sequence_type is not None and value.sequence_type.elem_type else value
        for value in given
    ]
    names = [f"element_{number}" for number in range(len(inputs))]
    return Graph(
        node=(Node(op_type="Identity", input=("element_0",), output=("result",)),),
        name="body",
        input=tuple([ValueInfo(name, value) for name, value in zip(names, inputs, strict=True)]),
        output=(ValueInfo("result", inputs[0]),),
    )


def _scalar(data_type: int) -> Type:
    return Type(tensor_type=TensorType(elem_type=data_type, shape=TensorShape()))


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
            return {"input": (1, 4, math.prod(_positions(given, [4, 4], [2, 2])))}
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
    shapes["offset"] = (1, 2 * offsets * math.prod(kernel), *_positions(given, image, kernel))
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
