"""Types and operators in lists: types in few columns, operators by family."""

import re
from typing import Final

from onnxjson.model.display import ELLIPSIS
from onnxjson.rendering.tables import Style, cells, clipped

_SHORT: Final = {"bfloat": "bf", "float": "f", "complex": "c", "uint": "u", "int": "i"}
_DTYPE: Final = re.compile(rf"(?<![\w,\[])({'|'.join(_SHORT)})(?=[0-9])")


def short_type(text: str, width: int | None = None) -> str:
    """Return ``float32[1,16,32]`` as ``f32[1,16,32]``; in few columns as ``f32[1,…,32]``, then ``f32 3d``."""
    short = _DTYPE.sub(lambda found: _SHORT[found[1]], text)
    if width is None or cells(short) <= width:
        return short
    dtype, _, dims = short.partition("[")
    if short.endswith("]") and "[" not in dims:
        sizes = dims[:-1].split(",")
        for kept in range(len(sizes) - 2, 0, -1):
            shown = f"{dtype}[{sizes[0]},{ELLIPSIS},{','.join(sizes[-kept:])}]"
            if cells(shown) <= width:
                return shown
        short = f"{dtype} {len(sizes)}d"
    return clipped(short, width)


def type_change(old: str | None, new: str) -> str:
    """Return ``f32[1,16] -> [16,1]`` for two types, the data type once if it is the same."""
    old, new = short_type(old or "?"), short_type(new)
    dtype = old.partition("[")[0]
    return f"{old} -> {new.removeprefix(dtype) if '[' in old and new.startswith(dtype + '[') else new}"


_FAMILIES: Final[dict[Style, str]] = {
    "compute":
    "Conv ConvInteger ConvTranspose DeformConv Gemm MatMul MatMulInteger QLinearConv QLinearMatMul Einsum "
    "Attention MultiHeadAttention GroupQueryAttention RotaryEmbedding FusedMatMul FusedConv FusedGemm "
    "MatMulNBits LSTM GRU RNN STFT DFT",
    "activation":
    "Relu LeakyRelu PRelu Elu Selu Celu Gelu FastGelu BiasGelu QuickGelu Sigmoid HardSigmoid HardSwish Swish "
    "Mish Tanh Erf Softplus Softsign ThresholdedRelu Clip Softmax LogSoftmax Hardmax Shrink",
    "norm":
    "BatchNormalization InstanceNormalization LayerNormalization GroupNormalization RMSNormalization "
    "SkipLayerNormalization SimplifiedLayerNormalization SkipSimplifiedLayerNormalization LpNormalization LRN "
    "MeanVarianceNormalization ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 "
    "ReduceLogSum ReduceLogSumExp ReduceSumSquare ArgMax ArgMin TopK CumSum MaxPool AveragePool "
    "GlobalAveragePool GlobalMaxPool LpPool",
    "shaping":
    "Reshape Transpose Squeeze Unsqueeze Flatten Expand Concat Split Slice Gather GatherElements GatherND Pad "
    "Tile Shape Size Resize Scatter ScatterElements ScatterND DepthToSpace SpaceToDepth Upsample "
    "ConcatFromSequence SplitToSequence ReverseSequence NonZero OneHot Range ConstantOfShape Compress Unique",
    "quiet": "Constant Identity Cast CastLike Dropout QuantizeLinear DequantizeLinear DynamicQuantizeLinear",
    "control": "If Loop Scan SequenceMap",
}  # fmt: skip
"""Operators of each style."""
_FAMILY: Final = {name: style for style, names in _FAMILIES.items() for name in names.split()}


def family(operator: str) -> Style:
    """Return the style of an operator by its family; operators of other domains, such as functions, are "control"."""
    domain, _, name = operator.rpartition("::")
    return _FAMILY.get(name) or (
        "control" if domain and not domain.startswith(("com.microsoft", "ai.onnx")) else "plain"
    )
