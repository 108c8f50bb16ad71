"""Rules of operators for the batch: along which axes of their outputs it runs, and which numbers depend on it.

A rule returns the axes of each output, with None for an axis whose size is independent of the batch. It raises
`BlockedError` if the operator would mix samples, or if a size cannot follow. The rules cover all versions in the
documentation of the operators of ONNX (Operators.md). `batch_layout_rules` has the operators that move, join and fill,
`batch_element_rules` those that select elements or compute shapes, `batch_body_rules` If, Loop and Scan; `RULES` joins
them all.
"""

from collections.abc import Callable, Sequence
from typing import Final

from onnxjson.editing.batch_axes import (
    BATCH,
    BATCH_LATER,
    MIXED,
    OTHER_AXIS,
    UNKNOWN_SHAPE,
    Axes,
    Axis,
    BlockedError,
    MixedError,
    has_batch,
    open_sizes,
    refuse_batch,
    resized,
    size,
    without,
)
from onnxjson.editing.batch_body_rules import BODY_RULES
from onnxjson.editing.batch_calls import Call, Outputs
from onnxjson.editing.batch_element_rules import ELEMENT_RULES
from onnxjson.editing.batch_layout_rules import LAYOUT_RULES, SHAPE_INPUTS
from onnxjson.editing.batch_tracing import NodeRule, Rules
from onnxjson.model.display import listed, visible

_TIME: Final = "axis {} of its input is time, and each step depends on the steps before it"

_MIXING: Final[dict[str, str]] = {
    "DynamicQuantizeLinear": "it computes one scale for all samples",
    "Unique": "it compares all samples with each other",
}
_NOT_FOLLOWED: Final[dict[str, str]] = {
    "the number of its results depends on the values, so the results are not samples": "NonZero Compress "
    "StringNormalizer",
    "its results are boxes or regions, and no axis is the batch": "NonMaxSuppression RoiAlign MaxRoiPool",
    "it produces or consumes a sequence, whose elements cannot be followed": "SequenceAt SequenceConstruct "
    "SequenceEmpty "
    "SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence ConcatFromSequence",
    "its value is an optional, which cannot be followed": "Optional OptionalGetElement OptionalHasElement",
    "its shape is in an input that cannot be followed": "AffineGrid CenterCropPad",
    "it accepts one number or one image, not one for each sample": "ImageDecoder BlackmanWindow HammingWindow "
    "HannWindow "
    "MelWeightMatrix RandomNormal RandomUniform",
}


def _kept(
    together: Callable[[Call, Axes], Sequence[Axis]] = lambda _, __: (), reason: str = MIXED, at_axis: int | None = None
) -> NodeRule:
    """Build the rule of operators whose outputs have the axes of the first input.

    `together` returns the axes along which the operator mixes elements, `reason` is why the batch must not be there;
    `at_axis` is the default of the attribute ``axis`` if the operator mixes elements along that axis as well.
    """

    def rule(call: Call) -> Outputs:
        axes = call.needed(0)
        call.refuse_mixing(together(call, axes), reason)
        if at_axis is not None and axes:
            call.refuse_mixing([axes[call.number("axis", at_axis)]])
        return [axes for _ in call.node.output]

    return rule


def _softmax(call: Call) -> Outputs:
    # Up to opset 12 the operator joins all axes from this one on.
    joined = _kept(lambda call, axes: axes[call.number("axis", 1) :])
    return (joined if call.opset < 13 else _kept(at_axis=-1))(call)


def _top(call: Call) -> Outputs:
    axes, count = call.needed(0), [each.value for each in call.elements(1) or ()]
    along = axes[call.number("axis", -1)]
    if has_batch(along) and count == [along]:
        raise BlockedError("it sorts the samples, and their order is not followed")
    call.refuse_mixing([along], "it selects among all samples")
    return _other_size(call, axes, call.number("axis", -1))


def _split(call: Call) -> Outputs:
    axes, axis = call.needed(0), call.number("axis", 0)
    call.refuse_mixing([axes[axis]], "it splits that dimension")
    return _other_size(call, axes, axis)


def _other_size(call: Call, axes: Axes, axis: int) -> Outputs:
    """Return the axes of outputs that have another size along one axis."""
    return [[None if place == axis % len(axes) else each for place, each in enumerate(axes)] for _ in call.node.output]


def _normalized(call: Call) -> Outputs:
    """The second and third output have the axes of the input up to the one where it is normalised."""
    axes = call.needed(0)
    start = call.number("axis", -1)
    refuse_batch(axes[start:])
    rest: list[Axis | None] = [*axes[:start], *[()] * len(axes[start:])]
    return [axes, *[rest for _ in call.node.output[1:]]]


def _samples_first(*slots: int) -> NodeRule:
    """Build the rule of operators with samples first, then axes whose sizes only the inference of onnx computes.

    `slots` are further inputs with the samples first.
    """

    def rule(call: Call) -> Outputs:
        axes = call.needed(0)
        given = [(slot, read) for slot in (0, *slots) if (read := call.axes(slot))]
        refuse_batch([axis for _, read in given for axis in read[1:]], BATCH_LATER)
        batch = next(filter(has_batch, [read[0] for _, read in given]), axes[0])
        for slot, read in given:
            if has_batch(batch) and not has_batch(read[0]):
                require_batch(call, slot, 0)
                call.give_rows(slot, 0, batch)
        ranks = [len(call.out_sizes(slot) or axes) for slot in range(len(call.node.output))]
        return [[batch, *[None] * (rank - 1)] for rank in ranks]

    return rule


def _pooled(call: Call) -> Outputs:
    """Of the second output, MaxUnpool alone expects places among the elements of all samples."""
    outputs = _samples_first()(call)
    for name in call.node.output[1:]:
        consumers = call.tracer.inference.index.consumers(call.scope, name) if name else ()
        nodes = [None if each.position is None else each.scope.graph.node[each.position] for each in consumers]
        if any([node is None or node.op_type != "MaxUnpool" for node in nodes]):
            refuse_batch(call.needed(0)[:1], "its indices count through all samples")
    return outputs


def _attention(call: Call) -> Outputs:
    outputs = _samples_first(1, 2, 4, 5, 6)(call)
    batch, mask = (outputs[0] or ((),))[0] or (), call.axes(3)
    if mask and len(mask) == 4:
        refuse_batch(mask[1:], BATCH_LATER)
        if has_batch(batch) and mask[0] and not has_batch(mask[0]):
            require_batch(call, 3, 0)
            call.give_rows(3, 0, batch)
    return outputs


def _rotated(call: Call) -> Outputs:
    """Without positions, the cosines and sines are those of each sample."""
    return _samples_first(*((3,) if call.has(3) else (1, 2)))(call)


def _counted_words(call: Call) -> Outputs:
    axes = call.needed(0)
    refuse_batch(axes[-1:], "it counts in all samples together")
    return [[*axes[:-1], None]]


def _batch_normalized(call: Call) -> Outputs:
    if call.number("training_mode", 0):
        raise MixedError("in training mode, it normalizes with the mean of all samples")
    return _samples_first()(call)[:1]


def _summed_along(call: Call) -> Outputs:
    axes = call.needed(0)
    along = [axes[place] for place in call.numbers(1, "axis") or ()]
    call.refuse_mixing(along, "it accumulates along this axis, from sample to sample")
    return [axes]


def _reversed(call: Call) -> Outputs:
    axes = call.needed(0)
    time, place = call.number("time_axis", 0), call.number("batch_axis", 1)
    call.refuse_mixing([axes[time]], f"it reverses the order along axis {time}")
    lengths = call.needed(1)
    if has_batch(axes[place]) and not has_batch(lengths[0]):
        require_batch(call, 1, 0)
        call.give_rows(1, 0, axes[place])
    return [axes]


def _transformed(call: Call) -> Outputs:
    axes = call.needed(0)
    axis = (call.numbers(2, "axis") or [1 if call.opset < 20 else -2])[0] % len(axes)
    call.refuse_mixing([axes[axis]])
    refuse_batch(axes[-1:])
    return [[None if place in (axis, len(axes) - 1) else each for place, each in enumerate(axes)]]


def _split_texts(call: Call) -> Outputs:
    return [[*call.needed(0), None], call.needed(0)]


def _determinant(call: Call) -> Outputs:
    axes = call.needed(0)
    refuse_batch(axes[-2:])
    return [axes[:-2]]


def _loss(call: Call) -> Outputs:
    if call.text("reduction") != "none":
        raise MixedError("it combines the losses of all samples")
    return _samples_first(1)(call)


def _written(call: Call) -> Outputs:
    """Elements at indices into the first axes."""
    axes, indices, updates = call.needed(0), call.needed(1), call.needed(2)
    count = size(indices[-1], call.batch)
    if count is None:
        raise BlockedError(UNKNOWN_SHAPE)
    if any(map(has_batch, (*axes[:count], *indices))):
        raise BlockedError("its indices count the samples")
    for place in range(count - len(axes), 0):
        if has_batch(axes[place]) != has_batch(updates[place]):
            call.give_rows(0 if has_batch(updates[place]) else 2, place, (BATCH,))
    return [[*axes[:count], *updates[len(indices) - 1 :]] if any(map(has_batch, updates)) else axes]


def broadcast_axes(call: Call, given: Sequence[tuple[int, Axes]], behind: int = 0) -> list[Axis]:
    """Return the axes of inputs that are broadcast to one shape.

    `given` has axes, each with the slot of its input; -1 for axes that cannot be stretched. After these, the inputs
    have the number `behind` of other axes.
    """
    rank = max([len(axes) for _, axes in given], default=0)
    result: list[Axis] = []
    for place in range(-rank, 0):
        column = [(slot, axes[place]) for slot, axes in given if -place <= len(axes)]
        batched = [axis for _, axis in column if has_batch(axis)]
        plain = [(slot, axis) for slot, axis in column if axis and not has_batch(axis)]
        if not batched:
            result.append(plain[0][1] if plain else ())
            continue
        if any([axis != batched[0] for axis in batched]):
            raise BlockedError("two inputs combine that dimension with other sizes in different ways")
        for slot, axis in plain:
            if slot < 0 or size(axis, call.batch) != size(batched[0], call.batch):
                sizes = [resized(each, "batch") or "of unknown size" for each in (axis, batched[0])]
                raise BlockedError(f"{OTHER_AXIS}: {sizes[0]}, not {sizes[1]}")
            call.stretch(slot, place - behind, batched[0])
        result.append(batched[0])
    return result


def _elementwise(call: Call) -> Outputs:
    slots = range(len(call.node.input))
    return [broadcast_axes(call, [(slot, axes) for slot in slots if (axes := call.axes(slot)) is not None])]


def _product(one: int, other: int) -> NodeRule:
    """Build the rule of a product of matrices, perhaps stacked, in two slots."""

    def rule(call: Call) -> Outputs:
        first, second = call.needed(one), call.needed(other)
        if not first or not second:
            raise BlockedError(UNKNOWN_SHAPE)
        call.refuse_mixing([first[-1], second[-2 if len(second) > 1 else 0]])
        stacks = broadcast_axes(call, [(one, first[:-2]), (other, second[:-2])], behind=2)
        return [[*stacks, *first[-2:-1], *(second[-1:] if len(second) > 1 else ())]]

    return rule


def _gemm(call: Call) -> Outputs:
    first, second = call.needed(0), call.needed(1)
    if call.number("transA", 0):
        first = first[::-1]
    if call.number("transB", 0):
        second = second[::-1]
    call.refuse_mixing([first[1], second[0]])
    result = (first[0], second[1])
    added = call.axes(2)
    if added:
        broadcast_axes(call, [(-1, result), (2, added)])
    return [result]


def _reduce(call: Call) -> Outputs:
    axes = call.needed(0)
    along = call.numbers(1, "axes")
    if not along:
        if call.number("noop_with_empty_axes", 0):
            return [axes]
        along = list(range(len(axes)))
    return _reduced(call, axes, {axis % len(axes) for axis in along})


def _arg(call: Call) -> Outputs:
    axes = call.needed(0)
    return _reduced(call, axes, {call.number("axis", 0) % len(axes)})


def _reduced(call: Call, axes: Axes, removed: set[int]) -> Outputs:
    call.refuse_mixing([axes[axis] for axis in removed])
    return [without(axes, removed, keep=bool(call.number("keepdims", 1)))]


def _recurrent(call: Call) -> Outputs:
    axes = call.needed(0)
    is_first = bool(call.number("layout", 0))
    batch_at, time = (0, 1) if is_first else (1, 0)
    if call.has(4):
        refuse_batch([axes[time]], _TIME.format(time))
    call.refuse_mixing([axes[time]], _TIME.format(time))
    refuse_batch([axes[2]], "axis 2 of its input has the features of one sample")
    places = {0: batch_at, 4: 0, 5: batch_at, 6: batch_at}
    given = {slot: found[place] for slot, place in places.items() if (found := call.axes(slot)) is not None}
    batch = next(filter(has_batch, given.values()), axes[batch_at])
    for slot in [slot for slot, axis in given.items() if has_batch(batch) and not has_batch(axis)]:
        require_batch(call, slot, places[slot])
        # A missing state means zeros; missing sequence lengths mean something else than a constant.
        if slot == 4 or isinstance(call.tracer.new, int) or not call.drop_zeros(slot):
            call.give_rows(slot, places[slot], batch)
    state: list[Axis | None] = [batch, None, None] if is_first else [None, batch, None]
    every: list[Axis | None] = [batch, axes[1], None, None] if is_first else [axes[0], None, batch, None]
    return [every, state, state][: len(call.node.output)]


def require_batch(call: Call, slot: int, axis: int) -> None:
    """Raise unless an input of a node that lacks the batch is computed from constants, which can follow it."""
    name = call.node.input[slot]
    behind = [] if call.tracer.mixes else call.inputs_behind(name)
    if behind:
        inputs = listed([f'"{visible(each)}"' for each in behind], 3)
        place = f'axis {axis} of its input {slot}, "{visible(name)}"'
        raise MixedError(f"{place}, must be that dimension, too; name the axis of the input {inputs} in `inputs`")


def _einsum(call: Call) -> Outputs:
    equation = call.text("equation").replace(" ", "")
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
                raise BlockedError(OTHER_AXIS)
            letters[letter] = axis if has_batch(axis) or not known else known
    call.refuse_mixing([axis for letter, axis in letters.items() if letter not in right])
    return [open_sizes(tuple([letters[letter] for letter in right]))]


def _independent(call: Call) -> Outputs:
    """Operators whose outputs have sizes that are independent of the batch."""
    call.axes(0)
    return [[None] * len(call.out_sizes(slot) or ()) for slot in range(len(call.node.output))]


def _sampled(call: Call) -> Outputs:
    axes, grid = call.needed(0), call.needed(1)
    if not has_batch(axes[0]) and has_batch(grid[0]):
        call.give_rows(0, 0, grid[0])
    elif not has_batch(grid[0]):
        call.give_rows(1, 0, axes[0])
    return [[grid[0] if has_batch(grid[0]) else axes[0], *[None] * (len(axes) - 1)]]


_OPERATORS: Final[dict[NodeRule, str]] = {
    _kept(): "Identity Cast CastLike Relu Sigmoid Tanh Erf Exp Log Sqrt Abs Neg Floor Ceil Round Sign Sin Cos Tan Asin "
    "Acos Atan Sinh Cosh Asinh Acosh Atanh Reciprocal Softplus Softsign Selu Elu Celu LeakyRelu HardSigmoid "
    "ThresholdedRelu HardSwish Mish Gelu Swish Not BitwiseNot IsNaN IsInf Clip Shrink QuantizeLinear DequantizeLinear "
    "Bernoulli RandomNormalLike RandomUniformLike Dropout BitCast RegexFullMatch",
    _elementwise: "Add Sub Mul Div Pow Mod Max Min Mean Sum And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual "
    "BitShift BitwiseAnd BitwiseOr BitwiseXor PRelu Where "
    "StringConcat SwiGLU",
    _softmax: "Softmax LogSoftmax Hardmax",
    _normalized: "LayerNormalization RMSNormalization",
    _kept(at_axis=-1): "LpNormalization",
    _summed_along: "CumSum CumProd",
    _kept(lambda _, axes: axes[-2:], "it selects elements by their position along this axis"): "Trilu EyeLike",
    _kept(lambda call, axes: [axes[place] for place in call.list_of("axes") or (0, 2, 3)]): "MeanVarianceNormalization",
    _kept(lambda _, axes: axes[1:], BATCH_LATER): "InstanceNormalization GroupNormalization LRN",
    _batch_normalized: "BatchNormalization",
    _samples_first(): "Conv ConvTranspose ConvInteger QLinearConv AveragePool LpPool GlobalAveragePool "
    "GlobalMaxPool GlobalLpPool Col2Im DepthToSpace SpaceToDepth STFT Multinomial",
    _pooled: "MaxPool",
    _samples_first(1): "MaxUnpool",
    _samples_first(1, 2): "TensorScatter",
    _samples_first(2, 4): "DeformConv",
    _samples_first(3): "CausalConvWithState",
    _samples_first(1, 2, 3, 4, 5): "LinearAttention",
    _attention: "Attention",
    _rotated: "RotaryEmbedding",
    _counted_words: "TfIdfVectorizer",
    _split_texts: "StringSplit",
    _determinant: "Det",
    _reversed: "ReverseSequence",
    _transformed: "DFT",
    _loss: "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    _written: "ScatterND",
    _sampled: "GridSample",
    _product(0, 1): "MatMul MatMulInteger",
    _product(0, 3): "QLinearMatMul",
    _gemm: "Gemm",
    _reduce: "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp "
    "ReduceSumSquare",
    _arg: "ArgMax ArgMin",
    _top: "TopK",
    _split: "Split",
    _recurrent: "LSTM GRU RNN",
    _einsum: "Einsum",
    _independent: "Shape Size",
}


RULES: Final = Rules(
    nodes={**LAYOUT_RULES, **{name: rule for rule, names in _OPERATORS.items() for name in names.split()}},
    bodies=BODY_RULES,
    elements=ELEMENT_RULES,
    refused={
        **{name: MixedError(reason) for name, reason in _MIXING.items()},
        **{name: BlockedError(reason) for reason, names in _NOT_FOLLOWED.items() for name in names.split()},
    },
    shape_inputs=SHAPE_INPUTS,
)
"""The rules of all operators that can be followed."""
