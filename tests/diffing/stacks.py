"""Deep synthetic models: blocks as in transformers, in convolutional networks, and of many kinds, one after another."""

import random
import struct
from collections.abc import Callable, Sequence
from typing import Final, Literal

from msgspec.structs import replace

from onnxjson.model.document import (
    Attribute,
    Dimension,
    Graph,
    Model,
    Node,
    OperatorSetId,
    Tensor,
    TensorShape,
    TensorType,
    Type,
    ValueInfo,
)

Style = Literal["transformer", "convolutional", "mixed"]
Weights = Literal["distinct", "equal", "stripped"]

STYLES: Final[tuple[Style, ...]] = ("transformer", "convolutional", "mixed")
WEIGHTS: Final[tuple[Weights, ...]] = ("distinct", "equal", "stripped")

FLOAT: Final = 1
INT64: Final = 7

_FLOATING: Final = {1: 4, 10: 2, 11: 8, 16: 2}
"""Types of weights -> bytes of an element: float32, float16, double, bfloat16."""


def stack(style: Style, count: int, weights: Weights = "distinct", seed: int = 0) -> Model:
    """A model of `count` nodes or a few more; the same for the same arguments."""
    builder = Builder(seed)
    blocks: dict[Style, tuple[Callable[[Builder, str, str], str], ...]] = {
        "transformer": (_attention_block,),
        "convolutional": (_residual_block,),
        "mixed": (_attention_block, _residual_block, _branches, _reshaping, _gate),
    }
    kinds = blocks[style]
    last = builder.call("Add", ["x", builder.weight("embedding.bias", (16,))], "embedding/Add")
    number = 0
    while len(builder.nodes) < count - 1:
        make = kinds[0] if len(kinds) == 1 else builder.numbers.choice(kinds)
        last = make(builder, f"layer.{number}", last)
        number += 1
    return with_weights(builder.model(builder.call("Tanh", [last], "head/Tanh")), weights)


def with_weights(model: Model, weights: Weights) -> Model:
    """`model` with its weights (initializers of a floating type with a dimension) as they are, all zero, or absent."""
    if weights == "distinct" or model.graph is None:
        return model

    def changed(tensor: Tensor) -> Tensor:
        size = _FLOATING.get(tensor.data_type or 0)
        if size is None or not tensor.dims:
            return tensor
        count = 1
        for dim in tensor.dims:
            count *= dim
        empty = replace(tensor, raw_data=None, float_data=b"", int32_data=b"", double_data=b"")
        return empty if weights == "stripped" else replace(empty, raw_data=bytes(count * size))

    graph = replace(model.graph, initializer=tuple([changed(tensor) for tensor in model.graph.initializer]))
    return replace(model, graph=graph)


class Builder:
    """Collects the nodes and initializers of one graph."""

    def __init__(self, seed: int = 0) -> None:
        self.numbers = random.Random(seed)
        self.nodes: list[Node] = []
        self.initializers: list[Tensor] = []
        self._shared: dict[str, str] = {}

    def call(self, operator: str, inputs: Sequence[str], name: str, *attributes: Attribute) -> str:
        """One node -> the name of its output."""
        output = f"/{name}_output_0"
        self.nodes.append(Node(tuple(inputs), (output,), f"/{name}", operator, attributes))
        return output

    def split(self, value: str, parts: int, name: str, *attributes: Attribute) -> list[str]:
        """A node with several outputs -> their names."""
        outputs = [f"/{name}_output_{slot}" for slot in range(parts)]
        self.nodes.append(Node((value,), tuple(outputs), f"/{name}", "Split", attributes))
        return outputs

    def weight(self, name: str, dims: tuple[int, ...]) -> str:
        """An initializer of random float32."""
        count = 1
        for dim in dims:
            count *= dim
        data = self.numbers.getrandbits(32 * count).to_bytes(4 * count, "little")
        # An exponent that cannot be that of an infinity or a NaN.
        data = bytes([byte & 0xBF if place % 4 == 3 else byte for place, byte in enumerate(data)])
        self.initializers.append(Tensor(dims=dims, data_type=FLOAT, name=name, raw_data=data))
        return name

    def integers(self, name: str, values: Sequence[int]) -> str:
        """An initializer of int64 that all blocks share."""
        if name not in self._shared:
            data = struct.pack(f"<{len(values)}q", *values)
            self.initializers.append(Tensor(dims=(len(values),), data_type=INT64, name=name, raw_data=data))
            self._shared[name] = name
        return name

    def constant(self, value: float, name: str) -> str:
        """A Constant node of one float32."""
        tensor = Tensor(data_type=FLOAT, raw_data=struct.pack("<f", value))
        return self.call("Constant", [], name, Attribute(name="value", t=tensor, type=4))

    def model(self, output: str) -> Model:
        """The model of what was collected, with inputs ``x`` and ``mask``."""
        graph = Graph(
            node=tuple(self.nodes),
            name="stack",
            initializer=tuple(self.initializers),
            input=(floats("x", "N", 16), floats("mask", "N", 16)),
            output=(floats(output, "N", 16),),
        )
        return Model(ir_version=10, producer_name="stack", graph=graph, opset_import=(OperatorSetId("", 20),))


def floats(name: str, *dims: int | str) -> ValueInfo:
    """A value of float32."""
    shape = TensorShape(
        tuple([Dimension(dim_value=dim) if isinstance(dim, int) else Dimension(dim_param=dim) for dim in dims])
    )
    return ValueInfo(name=name, type=Type(tensor_type=TensorType(FLOAT, shape)))


def integer(name: str, value: int) -> Attribute:
    """An attribute of type INT."""
    return Attribute(name=name, i=value, type=2)


def integers(name: str, *values: int) -> Attribute:
    """An attribute of type INTS."""
    return Attribute(name=name, ints=values, type=7)


def number(name: str, value: float) -> Attribute:
    """An attribute of type FLOAT."""
    return Attribute(name=name, f=struct.pack("<f", value), type=1)


def _dense(builder: Builder, block: str, value: str, name: str) -> str:
    product = builder.call(
        "MatMul", [value, builder.weight(f"{block}.{name}.weight", (4, 4))], f"{block}/{name}/MatMul"
    )
    return builder.call("Add", [builder.weight(f"{block}.{name}.bias", (4,)), product], f"{block}/{name}/Add")


def _normalized(builder: Builder, block: str, value: str, name: str) -> str:
    scale, bias = (builder.weight(f"{block}.{name}.{part}", (4,)) for part in ("weight", "bias"))
    attributes = integer("axis", -1), number("epsilon", 1e-5)
    return builder.call("LayerNormalization", [value, scale, bias], f"{block}/{name}/LayerNormalization", *attributes)


def gelu(builder: Builder, block: str, value: str) -> str:
    """The five nodes that exporters write for GELU, with its three constants."""
    root, one, half = (
        builder.constant(number, f"{block}/gelu/Constant_{place}") for place, number in enumerate((2**0.5, 1.0, 0.5))
    )
    error = builder.call("Erf", [builder.call("Div", [value, root], f"{block}/gelu/Div")], f"{block}/gelu/Erf")
    shifted = builder.call("Add", [error, one], f"{block}/gelu/Add")
    product = builder.call("Mul", [value, shifted], f"{block}/gelu/Mul")
    return builder.call("Mul", [product, half], f"{block}/gelu/Mul_1")


def _attention_block(builder: Builder, block: str, value: str) -> str:
    normalized = _normalized(builder, block, value, "norm1")
    heads = []
    for name, order in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3))):
        dense = _dense(builder, block, normalized, name)
        parts = builder.call("Reshape", [dense, builder.integers("heads", (0, 0, 2, -1))], f"{block}/{name}/Reshape")
        heads.append(builder.call("Transpose", [parts], f"{block}/{name}/Transpose", integers("perm", *order)))
    scores = builder.call("MatMul", heads[:2], f"{block}/attention/MatMul")
    scaled = builder.call(
        "Div", [scores, builder.constant(2.0, f"{block}/attention/Constant")], f"{block}/attention/Div"
    )
    masked = builder.call("Add", [scaled, "mask"], f"{block}/attention/Add")
    shares = builder.call("Softmax", [masked], f"{block}/attention/Softmax", integer("axis", -1))
    mixed = builder.call("MatMul", [shares, heads[2]], f"{block}/attention/MatMul_1")
    joined = builder.call("Transpose", [mixed], f"{block}/attention/Transpose", integers("perm", 0, 2, 1, 3))
    flat = builder.call("Reshape", [joined, builder.integers("width", (0, 0, -1))], f"{block}/attention/Reshape")
    value = builder.call("Add", [value, _dense(builder, block, flat, "output")], f"{block}/Add")
    wide = _dense(builder, block, _normalized(builder, block, value, "norm2"), "wide")
    narrow = _dense(builder, block, gelu(builder, block, wide), "narrow")
    return builder.call("Add", [value, narrow], f"{block}/Add_1")


def _convolution(builder: Builder, block: str, value: str, name: str, kernel: int) -> str:
    weight = builder.weight(f"{block}.{name}.weight", (4, 4, kernel, kernel))
    window = [integers("kernel_shape", kernel, kernel), integers("pads", *[kernel // 2] * 4), integers("strides", 1, 1)]
    convolved = builder.call("Conv", [value, weight], f"{block}/{name}/Conv", *window)
    moments = [builder.weight(f"{block}.{name}.{part}", (4,)) for part in ("scale", "bias", "mean", "variance")]
    operator = "BatchNormalization"
    return builder.call(operator, [convolved, *moments], f"{block}/{name}/{operator}", number("epsilon", 1e-5))


def _residual_block(builder: Builder, block: str, value: str) -> str:
    first = builder.call("Relu", [_convolution(builder, block, value, "conv1", 1)], f"{block}/Relu")
    second = builder.call("Relu", [_convolution(builder, block, first, "conv2", 3)], f"{block}/Relu_1")
    third = _convolution(builder, block, second, "conv3", 1)
    if int(block.rpartition(".")[2]) % 4 == 0:
        value = _convolution(builder, block, value, "downsample", 1)
    return builder.call("Relu", [builder.call("Add", [third, value], f"{block}/Add")], f"{block}/Relu_2")


def _branches(builder: Builder, block: str, value: str) -> str:
    pooled = builder.call(
        "MaxPool", [value], f"{block}/MaxPool", integers("kernel_shape", 3, 3), integers("pads", 1, 1, 1, 1)
    )
    branches = [
        builder.call("Relu", [_convolution(builder, block, source, f"branch{place}", kernel)], f"{block}/Relu_{place}")
        for place, (source, kernel) in enumerate(((value, 1), (value, 3), (pooled, 1)))
    ]
    joined = builder.call("Concat", branches, f"{block}/Concat", integer("axis", 1))
    return _dense(builder, block, joined, "project")


def _reshaping(builder: Builder, block: str, value: str) -> str:
    shape = builder.call("Shape", [value], f"{block}/Shape")
    sizes = [
        builder.call(
            "Gather",
            [shape, builder.integers(f"index{place}", (place,))],
            f"{block}/Gather_{place}",
            integer("axis", 0),
        )
        for place in range(2)
    ]
    wanted = builder.call("Concat", [*sizes, builder.integers("rest", (-1,))], f"{block}/Concat", integer("axis", 0))
    reshaped = builder.call("Reshape", [value, wanted], f"{block}/Reshape")
    return builder.call("Tanh", [_dense(builder, block, reshaped, "mix")], f"{block}/Tanh")


def _gate(builder: Builder, block: str, value: str) -> str:
    left, right = builder.split(_dense(builder, block, value, "gate"), 2, f"{block}/Split", integer("axis", -1))
    gated = builder.call("Mul", [builder.call("Sigmoid", [left], f"{block}/Sigmoid"), right], f"{block}/Mul")
    return builder.call("Add", [gated, value], f"{block}/Add")
