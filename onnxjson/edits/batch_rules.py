"""What each operator does with the batch: along which axes of its outputs it runs, and which numbers it needs for it.

A rule gives for each output its axes, with None for those whose size has nothing to do with the batch; it raises
`BlockedError` where samples would get mixed up or a size does not follow. Semantics are those of the operators'
documentation in ONNX (Operators.md), of every version.
"""

from collections.abc import Sequence
from typing import Final

from onnxjson.edits.batch_axes import Axes, Axis, has_batch, size
from onnxjson.edits.batch_layout_rules import LAYOUT_RULES
from onnxjson.edits.batch_tracing import MIXED, BlockedError, Call, Rule, without

Result = Sequence[Sequence[Axis | None] | None]


def _same(call: Call) -> Result:
    return [call.needed(0)]


def _same_all(call: Call) -> Result:
    return [call.needed(0) for _ in call.node.output]


def _along(default: int) -> Rule:
    """Operators that go along one axis, which must not be the batch."""

    def rule(call: Call) -> Result:
        axes = call.needed(0)
        axis = call.number("axis", default)
        if axes and has_batch(axes[axis]):
            raise BlockedError(MIXED)
        return [axes for _ in call.node.output]

    return rule


def _softmax(call: Call) -> Result:
    axes = call.needed(0)
    if call.opset >= 13:
        return _along(-1)(call)
    # Up to opset 12 all axes from this one on are one.
    start = call.number("axis", 1)
    if any(map(has_batch, axes[start:])):
        raise BlockedError(MIXED)
    return [axes]


def _normalized(call: Call) -> Result:
    """Outputs after the first have the axes of the input up to the one where it is normalised."""
    axes = call.needed(0)
    start = call.number("axis", -1)
    if any(map(has_batch, axes[start:])):
        raise BlockedError(MIXED)
    rest: list[Axis | None] = [*axes[:start], *[()] * len(axes[start:])]
    return [axes, *[rest for _ in call.node.output[1:]]]


def _cumulative(call: Call) -> Result:
    axes = call.needed(0)
    where = call.elements(1)
    if where is None or len(where) != 1 or not isinstance(where[0].value, int):
        raise BlockedError("its axis is computed")
    if has_batch(axes[where[0].value]):
        raise BlockedError(MIXED)
    return [axes]


def broadcast(call: Call, slots: Sequence[int]) -> list[Axis]:
    """The axes of inputs that are stretched to one shape."""
    given = [(slot, axes) for slot in slots if (axes := call.axes(slot)) is not None]
    return broadcast_axes(call, given)


def broadcast_axes(call: Call, given: Sequence[tuple[int, Axes]]) -> list[Axis]:
    """The same for axes that are known, each with the input that they belong to."""
    rank = max([len(axes) for _, axes in given], default=0)
    result: list[Axis] = []
    for place in range(-rank, 0):
        column = [(slot, axes[place], place) for slot, axes in given if -place <= len(axes)]
        batched = [axis for _, axis, _ in column if has_batch(axis)]
        plain = [(slot, axis, where) for slot, axis, where in column if axis and not has_batch(axis)]
        if not batched:
            result.append(plain[0][1] if plain else ())
            continue
        if any([axis != batched[0] for axis in batched]):
            raise BlockedError("the batch comes in two ways that do not go together")
        for slot, axis, where in plain:
            if slot < 0 or size(axis, call.batch) != size(batched[0], call.batch):
                raise BlockedError("another axis stands where the batch is")
            call.stretch(slot, where, batched[0])
        result.append(batched[0])
    return result


def _elementwise(call: Call) -> Result:
    return [broadcast(call, range(len(call.node.input)))]


def _matmul(call: Call) -> Result:
    return _product(call, 0, 1)


def _quantized_matmul(call: Call) -> Result:
    return _product(call, 0, 3)


def _product(call: Call, one: int, other: int) -> Result:
    """Matrices, perhaps stacked, of two inputs."""
    first, second = call.needed(one), call.needed(other)
    if not first or not second:
        raise BlockedError("the shape of an input is not known")
    if has_batch(first[-1]) or has_batch(second[-2 if len(second) > 1 else 0]):
        raise BlockedError(MIXED)
    _check_stacks(first[:-2], second[:-2])
    stacks = broadcast_axes(call, [(one, first[:-2]), (other, second[:-2])])
    rows = [first[-2]] if len(first) > 1 else []
    columns = [second[-1]] if len(second) > 1 else []
    return [[*stacks, *rows, *columns]]


def _check_stacks(first: Axes, second: Axes) -> None:
    """Do nothing if stacks of matrices go together as they are: no constant can be given rows there."""
    for one, other in ((first, second), (second, first)):
        for place in range(1, min(len(one), len(other)) + 1):
            if has_batch(one[-place]) and other[-place] and not has_batch(other[-place]):
                raise BlockedError("another axis stands where the batch is")


def _gemm(call: Call) -> Result:
    first, second = call.needed(0), call.needed(1)
    if call.number("transA", 0):
        first = first[::-1]
    if call.number("transB", 0):
        second = second[::-1]
    if has_batch(first[1]) or has_batch(second[0]):
        raise BlockedError(MIXED)
    result = (first[0], second[1])
    added = call.axes(2)
    if added:
        broadcast_axes(call, [(-1, result), (2, added)])
    return [result]


def _spatial(call: Call) -> Result:
    """Samples first, then channels, then what only onnx computes the size of."""
    axes = call.needed(0)
    if any(map(has_batch, axes[1:])):
        raise BlockedError("the batch is not the first axis here")
    return [[axes[0], *[None] * (len(axes) - 1)] for _ in call.node.output]


def _batch_normalized(call: Call) -> Result:
    if call.number("training_mode", 0):
        raise BlockedError(MIXED)
    return _spatial(call)[:1]


def _triangle(call: Call) -> Result:
    axes = call.needed(0)
    if any(map(has_batch, axes[-2:])):
        raise BlockedError(MIXED)
    return [axes]


def _whole(call: Call) -> Result:
    """The same shape; the batch must be first."""
    _spatial(call)
    return [call.needed(0)]


def _reduce(call: Call) -> Result:
    axes = call.needed(0)
    along = call.numbers(1, "axes")
    if not along:
        if call.number("noop_with_empty_axes", 0):
            return [axes]
        along = list(range(len(axes)))
    gone = {axis % len(axes) for axis in along}
    if any([has_batch(axes[axis]) for axis in gone]):
        raise BlockedError(MIXED)
    return [without(axes, gone, keep=bool(call.number("keepdims", 1)))]


def _arg(call: Call) -> Result:
    axes = call.needed(0)
    axis = call.number("axis", 0) % len(axes)
    if has_batch(axes[axis]):
        raise BlockedError(MIXED)
    return [without(axes, {axis}, keep=bool(call.number("keepdims", 1)))]


def _top(call: Call) -> Result:
    axes = call.needed(0)
    axis = call.number("axis", -1) % len(axes)
    if has_batch(axes[axis]):
        raise BlockedError(MIXED)
    result = [None if place == axis else each for place, each in enumerate(axes)]
    return [result, result]


def _recurrent(call: Call) -> Result:
    axes = call.needed(0)
    first = bool(call.number("layout", 0))
    batch, steps = (axes[0], axes[1]) if first else (axes[1], axes[0])
    if has_batch(steps) or has_batch(axes[2]):
        raise BlockedError("the batch is not where it expects samples")
    for slot in (4, 5, 6):
        given = call.axes(slot)
        place = 0 if slot == 4 or first else 1
        # A state that is not given is zero; lengths that are not given are another matter.
        if given is None or has_batch(given[place]):
            continue
        if slot == 4 or isinstance(call.tracer.new, int) or not call.drop_zeros(slot):
            call.give_rows(slot, place, batch)
    state: list[Axis | None] = [batch, None, None] if first else [None, batch, None]
    every: list[Axis | None] = [batch, steps, None, None] if first else [steps, None, batch, None]
    return [every, state, state][: len(call.node.output)]


def _einsum(call: Call) -> Result:
    equation = call.text("equation", "").replace(" ", "")
    if "." in equation or "->" not in equation:
        raise BlockedError("its equation leaves axes open")
    left, _, right = equation.partition("->")
    letters: dict[str, Axis] = {}
    for slot, term in enumerate(left.split(",")):
        axes = call.needed(slot)
        if len(axes) != len(term):
            raise BlockedError("its equation does not fit its inputs")
        for letter, axis in zip(term, axes, strict=True):
            known = letters.get(letter, ())
            if has_batch(known) != has_batch(axis) and known and axis:
                raise BlockedError("another axis stands where the batch is")
            letters[letter] = axis if has_batch(axis) or not known else known
    if any([has_batch(axis) for letter, axis in letters.items() if letter not in right]):
        raise BlockedError(MIXED)
    return [[letters[letter] if has_batch(letters[letter]) else None for letter in right]]


def _plain(call: Call) -> Result:
    """Operators whose outputs do not grow with the batch."""
    return [
        [None] * len(sizes) if (sizes := call.out_sizes(slot)) is not None else []
        for slot in range(len(call.node.output))
    ]


def _sampled(call: Call) -> Result:
    axes, grid = call.needed(0), call.needed(1)
    if not has_batch(axes[0]) and has_batch(grid[0]):
        call.give_rows(0, 0, grid[0])
    elif not has_batch(grid[0]):
        call.give_rows(1, 0, axes[0])
    return [[grid[0] if has_batch(grid[0]) else axes[0], *[None] * (len(axes) - 1)]]


def _attention(call: Call) -> Result:
    axes = call.needed(0)
    if any(map(has_batch, axes[1:])):
        raise BlockedError("the batch is not the first axis here")
    sizes = [call.out_sizes(slot) for slot in range(len(call.node.output))]
    return [[axes[0], *[None] * (len(each) - 1)] if each else None for each in sizes]


RULES: Final[dict[str, Rule]] = {
    **LAYOUT_RULES,
    **dict.fromkeys(
        (
            *("Identity", "Cast", "CastLike", "Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Log", "Sqrt", "Abs", "Neg"),
            *("Floor", "Ceil", "Round", "Sign", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh"),
            *(
                "Acosh",
                "Atanh",
                "Reciprocal",
                "Softplus",
                "Softsign",
                "Selu",
                "Elu",
                "Celu",
                "LeakyRelu",
                "HardSigmoid",
            ),
            *("ThresholdedRelu", "HardSwish", "Mish", "Gelu", "Swish", "Not", "BitwiseNot", "IsNaN", "IsInf", "Clip"),
            *("Shrink", "QuantizeLinear", "DequantizeLinear", "Bernoulli", "RandomNormalLike", "RandomUniformLike"),
        ),
        _same,
    ),
    "Dropout": _same_all,
    **dict.fromkeys(
        (
            *("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Mean", "Sum", "And", "Or", "Xor", "Equal"),
            *("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
            *("PRelu", "Where"),
        ),
        _elementwise,
    ),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _normalized),
    "LpNormalization": _along(-1),
    "CumSum": _cumulative,
    "BatchNormalization": _batch_normalized,
    "Trilu": _triangle,
    **dict.fromkeys(("InstanceNormalization", "GroupNormalization", "LRN"), _whole),
    **dict.fromkeys(
        (
            *("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "AveragePool", "MaxPool", "LpPool", "MaxUnpool"),
            *("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "Col2Im"),
        ),
        _spatial,
    ),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _spatial),
    "GridSample": _sampled,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearMatMul": _quantized_matmul,
    "Gemm": _gemm,
    **dict.fromkeys(
        (
            *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"),
            *("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
        ),
        _reduce,
    ),
    "ArgMax": _arg,
    "ArgMin": _arg,
    "TopK": _top,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    "Einsum": _einsum,
    "Attention": _attention,
    **dict.fromkeys(("Shape", "Size"), _plain),
}
"""The rules by operator of the default domain."""
