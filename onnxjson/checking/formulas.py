"""How many operations each operator needs: multiply-accumulates, and other arithmetic.

A multiply-accumulate (MAC) counts as two FLOPs. Other arithmetic counts one FLOP for each element and step, whichever
function the step applies: ReLU 1, Softmax 5 (maximum, difference, exponential, sum, quotient). Operators that only
move, convert or describe data need none. An operator without a line here has no formula; its cost is unknown, not zero.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from onnxjson.checking.amounts import Size, UnknownAmountError, plain, product, sum_sizes

Shape: TypeAlias = tuple[Size, ...]

_GATES: Final = {"RNN": (1, 0), "GRU": (3, 5), "LSTM": (4, 5)}
"""Gates, and elementwise steps that update the state."""

_TAPS: Final = {"nearest": 0, "linear": 2, "bilinear": 2, "cubic": 4}

_OUTPUT_STEPS: Final = {
    1: """Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Cos Cosh
        Div Equal Erf Exp Floor Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Log Mod Mul Neg Not Or PRelu Pow
        Reciprocal Relu Round Sigmoid Sign Sin Sinh Sqrt Sub Tan Tanh Where Xor ThresholdedRelu Bernoulli""",
    2: """Clip HardSigmoid HardSwish LeakyRelu Selu Celu Elu Shrink Softplus Softsign QuantizeLinear
        DequantizeLinear Swish""",
    3: "Mish BlackmanWindow HannWindow HammingWindow SoftmaxCrossEntropyLoss LpNormalization",
    4: "BatchNormalization RMSNormalization Gelu RotaryEmbedding SwiGLU",
    5: "Softmax LogSoftmax",
    6: "MeanVarianceNormalization",
    7: "InstanceNormalization LayerNormalization GroupNormalization",
}
"""Operators of ai.onnx by the number of steps for each element of the first output."""

_INPUT_STEPS: Final = {
    1: """ReduceSum ReduceMax ReduceMin ReduceMean ReduceProd GlobalAveragePool GlobalMaxPool ArgMax ArgMin
        CumSum CumProd TopK Hardmax""",
    2: "ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp GlobalLpPool",
    5: "DynamicQuantizeLinear",
}
"""Operators of ai.onnx by the number of steps for each element of the first input."""

_FREE: Final = """BitCast Cast CastLike CenterCropPad Col2Im Compress Concat ConcatFromSequence Constant
        ConstantOfShape DepthToSpace Dropout Expand EyeLike Flatten Gather GatherElements GatherND Identity
        ImageDecoder NonZero OneHot Optional OptionalGetElement OptionalHasElement Pad RandomNormal
        RandomNormalLike RandomUniform RandomUniformLike Range Reshape ReverseSequence ScatterElements
        Scatter ScatterND SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert
        SequenceLength Shape Size Slice SpaceToDepth Split SplitToSequence Squeeze StringConcat
        StringNormalizer StringSplit RegexFullMatch TensorScatter TfIdfVectorizer Tile Transpose Trilu
        Unsqueeze"""

_MICROSOFT_STEPS: Final = {
    2: "QuickGelu QuantizeLinear DequantizeLinear QLinearLeakyRelu",
    3: "QLinearAdd QLinearMul QLinearSigmoid",
    4: "Gelu FastGelu RotaryEmbedding SimplifiedLayerNormalization",
    5: "BiasGelu BiasSoftmax QLinearSoftmax SkipSimplifiedLayerNormalization",
    8: "SkipLayerNormalization",
}


class Work(NamedTuple):
    """Operations of one node."""

    macs: Size = 0
    other: Size = 0
    """FLOPs that are not part of a multiply-accumulate."""


@dataclass(frozen=True)
class Call:
    """A node, as its formula sees it."""

    inputs: Sequence[Shape | None]
    """None for an omitted input, and where the shape is not known."""
    outputs: Sequence[Shape | None]
    given: frozenset[int]
    """Positions of the inputs that are not omitted."""
    attributes: Mapping[str, Any]

    def shape(self, slot: int) -> Shape:
        """Return the shape of an input that the formula needs."""
        shape = self.inputs[slot] if slot < len(self.inputs) else None
        if shape is None:
            raise UnknownAmountError(f"the shape of input {slot} is not known")
        return shape

    def result(self, slot: int = 0) -> Shape:
        """Return the shape of an output that the formula needs."""
        shape = self.outputs[slot] if slot < len(self.outputs) else None
        if shape is None:
            raise UnknownAmountError(f"the shape of output {slot} is not known")
        return shape

    def elements(self) -> Size:
        """Return the number of elements of the first output."""
        return product(self.result())

    def number(self, name: str, default: int | None = None) -> int:
        """Return an integer attribute."""
        number = self.attributes.get(name, default)
        if not isinstance(number, int):
            raise UnknownAmountError(f"the attribute {name} is missing")
        return number

    def dim(self, slot: int, axis: int) -> Size:
        """Return one dimension of an input."""
        shape = self.shape(slot)
        if not -len(shape) <= axis < len(shape):
            raise UnknownAmountError(f"input {slot} has no axis {axis}")
        return shape[axis]


Formula: TypeAlias = Callable[[Call], Work]


def _convolution(weights: int, bias: int) -> Formula:
    def work(call: Call) -> Work:
        out = call.elements()
        return Work(out * product(call.shape(weights)[1:]), out if bias in call.given else 0)

    return work


def _transposed_convolution(call: Call) -> Work:
    macs = product(call.shape(0)) * product(call.shape(1)[1:])
    return Work(macs, call.elements() if 2 in call.given else 0)


def _product(other: int = 1, *, transposed: str = "", bias: int = -1, fused: int = 0) -> Formula:
    """Matrices multiplied, with broadcasting; the inner dimension is the last one of the first input."""

    def work(call: Call) -> Work:
        call.shape(other)
        axis = -2 if transposed and call.attributes.get(transposed) else -1
        out = call.elements()
        return Work(out * call.dim(0, axis), out * (int(bias in call.given) + fused))

    return work


def _matmul_nbits(call: Call) -> Work:
    out = call.elements()
    return Work(out * call.number("K"), out if 5 in call.given else 0)


def _recurrent(kind: str) -> Formula:
    gates, steps = _GATES[kind]

    def work(call: Call) -> Work:
        length, batch = call.dim(0, 0), call.dim(0, 1)
        directions, hidden = call.dim(2, 0), call.dim(2, -1)
        macs = length * batch * (product(call.shape(1)) + product(call.shape(2)))
        each = gates * (2 + 2 * int(3 in call.given)) + steps
        return Work(macs, length * batch * directions * hidden * each)

    return work


def _scores(batch: Size, queries: Size, keys: Size, depths: Size, heads: Size, steps: int) -> Work:
    """Queries times keys, softmax, weights times values; `depths` is the depth of keys and of values, of all heads."""
    return Work(batch * queries * keys * depths, batch * heads * queries * keys * steps)


def _attention(call: Call) -> Work:
    """Attention of ai.onnx: three or four dimensions, grouped heads, past keys."""
    query, key, value = [call.shape(slot) for slot in range(3)]
    past = call.dim(4, 2) if 4 in call.given else 0
    steps = 6 + int(3 in call.given)
    if len(query) == 4:
        depths = query[1] * (query[3] + value[3])
        return _scores(query[0], query[2], key[2] + past, depths, query[1], steps)
    heads, of_keys = call.number("q_num_heads"), call.number("kv_num_heads")
    depths = query[2] + value[2] // of_keys * heads
    return _scores(query[0], query[1], key[1] + past, depths, heads, steps)


def _multi_head(call: Call) -> Work:
    query, key = call.shape(0), call.shape(1)
    if len(query) != 3 or len(key) != 3:
        raise UnknownAmountError("queries and keys are packed")
    past = call.dim(6, 2) if 6 in call.given else 0
    depths = query[2] + call.dim(2, -1)
    return _scores(query[0], query[1], key[1] + past, depths, call.number("num_heads"), 6 + int(5 in call.given))


def _grouped_query(call: Call) -> Work:
    query = call.result(0)
    return _scores(query[0], query[1], call.result(1)[2], query[2] * 2, call.number("num_heads"), 6)


def _packed_attention(call: Call) -> Work:
    """Attention of com.microsoft, which also projects its input."""
    batch, length = call.dim(0, 0), call.dim(0, 1)
    weights, hidden = product(call.shape(1)), call.result()[-1]
    past = call.dim(4, 3) if 4 in call.given else 0
    work = _scores(batch, length, length + past, hidden * 2, call.number("num_heads"), 6)
    return Work(work.macs + batch * length * weights, work.other + batch * length * call.dim(1, -1))


def _einsum(call: Call) -> Work:
    equation = re.sub(r"\s", "", str(call.attributes.get("equation", "")))
    operands = equation.partition("->")[0].split(",")
    sizes: dict[str, Size] = {}
    for slot, labels in enumerate(operands):
        shape = call.shape(slot)
        before, dots, behind = labels.partition("...")
        extra = len(shape) - len(before) - len(behind)
        if extra < 0 or (extra and not dots):
            raise UnknownAmountError("the equation does not fit the inputs")
        names = [*before, *[f"...{extra - place}" for place in range(extra)], *behind]
        for name, size in zip(names, shape, strict=True):
            if sizes.get(name, 1) == 1:
                sizes[name] = size
    total = product(tuple(sizes.values()))
    if len(operands) > 1:
        return Work(total * (len(operands) - 1))
    return Work(0, total if total != call.elements() else 0)


def _resize(call: Call) -> Work:
    taps = _TAPS.get(str(call.attributes.get("mode", "nearest")))
    if taps is None:
        raise UnknownAmountError("its mode is not known")
    resized = sum([one != other for one, other in zip(call.shape(0), call.result(), strict=True)])
    return Work(call.elements() * taps**resized if taps and resized else 0)


def _grid_sample(call: Call) -> Work:
    taps = _TAPS.get(str(call.attributes.get("mode", "linear")), 2)
    return Work(call.elements() * taps ** (len(call.shape(0)) - 2) if taps else 0)


def _local_response(call: Call) -> Work:
    return Work(0, call.elements() * (call.number("size") + 5))


def _pool(call: Call) -> Work:
    return Work(0, call.elements() * product(tuple(call.attributes.get("kernel_shape", ()))))


def _per_output(steps: int) -> Formula:
    return lambda call: Work(0, call.elements() * steps if steps else 0)


def _per_input(steps: int) -> Formula:
    return lambda call: Work(0, product(call.shape(0)) * steps)


def _many(call: Call) -> Work:
    """Sum, Max and others of any number of inputs."""
    return Work(0, call.elements() * max(len(call.given) - 1, 0))


def _free(_: Call) -> Work:
    return Work()


def _spread(steps: Mapping[int, str], formula: Callable[[int], Formula]) -> dict[str, Formula]:
    return {name: formula(number) for number, names in steps.items() for name in names.split()}


_ONNX: Final[dict[str, Formula]] = {
    **_spread(_OUTPUT_STEPS, _per_output),
    **_spread(_INPUT_STEPS, _per_input),
    **dict.fromkeys(_FREE.split(), _free),
    **dict.fromkeys(("Sum", "Max", "Min", "Mean"), _many),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    **{kind: _recurrent(kind) for kind in _GATES},
    "Attention": _attention, "Einsum": _einsum, "GridSample": _grid_sample, "LRN": _local_response,
    "Conv": _convolution(1, 2), "ConvInteger": _convolution(1, -1), "QLinearConv": _convolution(3, 8),
    "ConvTranspose": _transposed_convolution, "Gemm": _product(transposed="transA", bias=2),
    "MatMul": _product(), "MatMulInteger": _product(), "QLinearMatMul": _product(3),
    "SimplifiedLayerNormalization": _per_output(4),  # written by onnxruntime, without a domain
}  # fmt: skip

_MICROSOFT: Final[dict[str, Formula]] = {
    **_spread(_MICROSOFT_STEPS, _per_output),
    "Attention": _packed_attention, "GroupQueryAttention": _grouped_query, "MultiHeadAttention": _multi_head,
    "FusedConv": _convolution(1, 2), "NhwcConv": _convolution(1, 2), "QLinearConv": _convolution(3, 8),
    "FusedGemm": _product(transposed="transA", bias=2, fused=1), "FusedMatMul": _product(transposed="transA"),
    "DynamicQuantizeMatMul": _product(bias=4), "MatMulIntegerToFloat": _product(bias=6), "MatMulNBits": _matmul_nbits,
    "QGemm": _product(3, transposed="transA", bias=6),
    "QLinearGlobalAveragePool": _per_input(1), "QLinearConcat": _free,
}  # fmt: skip

FORMULAS: Final[Mapping[tuple[str, str], Formula]] = {
    (domain, name): formula
    for domain, formulas in (("", _ONNX), ("com.microsoft", _MICROSOFT))
    for name, formula in formulas.items()
}
"""Every operator with a formula, by domain ("" for ai.onnx) and name."""


def work_of(key: tuple[str, str], call: Call) -> Work:
    """Return the operations of a node.

    Raises:
        UnknownAmountError: the operator has no formula, or a shape that it needs is not known.
    """
    formula = FORMULAS.get(key)
    if formula is None:
        raise UnknownAmountError("no formula")
    try:
        return formula(call)
    except (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError) as error:
        raise UnknownAmountError("its shapes or attributes do not fit") from error


def sum_work(works: Iterable[Work]) -> Work:
    """Return the sum of operations."""
    listed = list(works)
    return Work(sum_sizes([each.macs for each in listed]), sum_sizes([each.other for each in listed]))


def texts(work: Work) -> tuple[int | str, int | str]:
    """Return MACs and FLOPs for a report."""
    return plain(work.macs), plain(2 * work.macs + work.other)
