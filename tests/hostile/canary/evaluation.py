"""Valid models whose strings shape inference would evaluate with sympy, if its parser did not refuse them.

Libraries look up an operator by its name alone, without its domain. So they infer shapes of a local function named
Resize as of the operator Resize, and evaluate strings among its inputs as expressions.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from onnx import ModelProto, TensorProto, helper

from onnxjson.codecs import serde
from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.optimizing.passes.catalogue import Step
from tests.hostile.canary.payloads import PAYLOADS
from tests.hostile.canary.planting import Planter
from tests.hostile.canary.runners import default_passes
from tests.hostile.canary.watching import Watch


class Call(NamedTuple):
    """A call of a local function with the name of an operator, and with strings as some of its inputs."""

    operator: str
    inputs: tuple[int, ...]
    """Positions of the inputs that are strings; other inputs before them are integers."""
    opset: int
    strings: int
    """Number of elements of each string input; 0 for a scalar."""
    is_constant: bool = False
    """Whether the strings come from nodes Constant and not from initializers."""

    def __str__(self) -> str:
        """For the table."""
        form = "constant" if self.is_constant else "initializer"
        return f"{self.operator}({','.join(map(str, self.inputs))}) opset {self.opset}, {self.strings} from {form}"


FIRED: Final = (
    Call("Resize", (3,), 20, 4),
    Call("Resize", (2,), 20, 4),
    Call("Resize", (1,), 10, 4),
    Call("Slice", (2,), 20, 1),
)
"""Calls that once executed their strings in symbolic-shapes, those of Resize in onnxslim too."""

_OPERATORS: Final = (
    "Resize", "Slice", "Reshape", "Expand", "Tile", "Pad", "Range", "OneHot", "Split", "SplitToSequence", "Squeeze",
    "Unsqueeze", "TopK", "Gather", "If", "Add", "Sub", "Mul", "Div", "Max", "Min", "Where", "Equal", "Floor", "Neg",
    "Cast", "Concat", "ConstantOfShape", "ReduceSum", "ReduceMean", "ReduceProd", "CumSum", "Einsum", "Upsample",
    "RelativePositionBias", "ATen", "PythonOp", "EPContext", "GroupNorm", "Identity", "Shape", "Size", "Loop",
    "ScatterElements",
)  # fmt: skip


def every_call() -> Iterator[Call]:
    """Yield all calls that the command tries, those in `FIRED` first."""
    yield from FIRED
    for operator in _OPERATORS:
        for opset in (20, 10):
            for strings in (4, 1, 0):
                for inputs in ((1,), (2,), (3,), (1, 2), (1, 2, 3), (1, 2, 3, 4)):
                    if (call := Call(operator, inputs, opset, strings)) not in FIRED:
                        yield call
        yield Call(operator, (1, 2, 3), 20, 4, is_constant=True)


def called_model(planter: Planter, call: Call) -> ModelProto:
    """Return a valid model with a call. All its strings are one payload, since some operators multiply them."""
    names, tensors = ["x"], []
    text: Any = planter.data(f"string input of {call}")
    for number in range(1, max(call.inputs) + 1):
        names.append(f"s{number}")
        dims = [call.strings] if call.strings else []
        if number in call.inputs:
            tensors.append(helper.make_tensor(names[-1], TensorProto.STRING, dims, [text] * max(call.strings, 1)))
        else:
            tensors.append(helper.make_tensor(names[-1], TensorProto.INT64, [1], [0]))
    opset = helper.make_opsetid("", call.opset)
    parameters = [f"p{number}" for number in range(len(names))]
    body = [helper.make_node("Relu", [parameters[0]], ["r"])]
    function = helper.make_function("canary", call.operator, parameters, ["r"], body, [opset])
    nodes = [helper.make_node(call.operator, names, ["y"], domain="canary", axis=0)]
    function.attribute.append("axis")
    if call.is_constant:
        nodes = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in tensors] + nodes
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 4, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "calls", [x], [y], [] if call.is_constant else tensors)
    imports = [opset, helper.make_opsetid("canary", 1)]
    return helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=8)


SYMPY: Final = tuple([each for each in PAYLOADS if each.family == "sympy"])


def called(watch: Watch, calls: Sequence[Call], names: Sequence[str] = ()) -> None:
    """Run passes on models with these calls: the passes with these names, or all."""
    with watch.planter.only(SYMPY), Pipeline(keep_going=True, seconds=60) as pipeline:
        for call in calls:
            model = called_model(watch.planter, call)
            parsed = serde.parse(model.SerializeToString()).model
            steps: list[Step] = [parse_step(name) for name in names] if names else default_passes()
            for step in steps:
                (made,) = pipeline.run(parsed, [step])
                runner = f"calls in {made.step.subject.__struct_config__.tag}"
                watch.look(runner, [str(call)], [made.after.data], refused=made.failure is not None)
