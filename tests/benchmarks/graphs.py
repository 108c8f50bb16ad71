"""The models that are measured, made from a seed; run as a process, so that the one that measures stays small.

``python -m tests.benchmarks.graphs KIND FILE COUNT`` writes one model.
"""

import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnxjson.model.document import Graph, Model, Node, OperatorSetId, Tensor, ValueInfo
from onnxjson.model.types import parse_type

ELEMENTS_PER_WEIGHT: Final = (1024, 4096)
"""The shape of one matrix of the weights, 16 MiB of float32."""


BLOCK: Final = (
    ("norm/LayerNormalization", ("{last}", "scale"), "norm"),
    ("attn/q/MatMul", ("{b}norm", "w"), "q"),
    ("attn/k/MatMul", ("{b}norm", "w"), "k"),
    ("attn/v/MatMul", ("{b}norm", "w"), "v"),
    ("attn/MatMul", ("{b}q", "{b}k"), "scores"),
    ("attn/Add", ("{b}scores", "mask"), "masked"),
    ("attn/Softmax", ("{b}masked",), "weights"),
    ("attn/MatMul_1", ("{b}weights", "{b}v"), "mixed"),
    ("attn/out/MatMul", ("{b}mixed", "w"), "out"),
    ("Add", ("{last}", "{b}out"), "sum"),
    ("mlp/up/MatMul", ("{b}sum", "w"), "up"),
    ("mlp/act/Relu", ("{b}up",), "act"),
    ("mlp/down/MatMul", ("{b}act", "w"), "down"),
    ("Add_1", ("{b}sum", "{b}down"), "end"),
)
"""The nodes of one layer of a transformer: name, inputs, output."""


def layers(count: int) -> ModelProto:
    """`count` nodes, Conv, Relu, LeakyRelu and Add in turn; every Conv has 16 weights, every value a type."""
    numbers = np.random.default_rng(0)
    nodes: list[NodeProto] = []
    weights: list[TensorProto] = []
    types: list[ValueInfoProto] = []
    last = convolved = "x"
    for index in range(count):
        layer, operator = index // 4, ("Conv", "Relu", "LeakyRelu", "Add")[index % 4]
        name, output = f"/layer{layer}/{operator}_{index}", f"/layer{layer}/{operator.lower()}_{index}_output_0"
        if operator == "Conv":
            weights.append(
                numpy_helper.from_array(numbers.standard_normal((4, 4, 1, 1), np.float32), f"layer{layer}.weight")
            )
            window: dict[str, Any] = {
                "kernel_shape": [1, 1],
                "strides": [1, 1],
                "pads": [0, 0, 0, 0],
                "dilations": [1, 1],
            }
            nodes.append(helper.make_node(operator, [last, weights[-1].name], [output], name, group=1, **window))
            convolved = output
        elif operator == "LeakyRelu":
            nodes.append(helper.make_node(operator, [last], [output], name, alpha=0.1))
        else:
            nodes.append(helper.make_node(operator, [last, convolved][: 1 + (operator == "Add")], [output], name))
        types.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, ["N", 4, 8, 8]))
        last = output
    return _model(nodes, last, weights, types)


def weights(count: int) -> ModelProto:
    """`count` mebibytes of float32 in matrices of 16 MiB (one smaller matrix where `count` is less)."""
    numbers = np.random.default_rng(0)
    rows, columns = ELEMENTS_PER_WEIGHT
    rows = min(rows, count * rows // 16)
    matrices = [
        numpy_helper.from_array(numbers.standard_normal((rows, columns), np.float32), f"w{index}")
        for index in range(max(count // 16, 1))
    ]
    nodes = [helper.make_node("MatMul", ["x", matrix.name], [f"y_{matrix.name}"]) for matrix in matrices]
    return _model(nodes, nodes[-1].output[0], matrices, [])


def transformer(count: int) -> Model:
    """A model of `count` nodes, in layers, every value with a type."""
    nodes: list[Node] = []
    types: list[ValueInfo] = []
    said = parse_type("float[N,128,512]")
    last = "x"
    for index in range(count):
        layer, part = divmod(index, len(BLOCK))
        name, inputs, output = BLOCK[part]
        block = f"/layers.{layer}/"
        places = tuple([each.format(b=block, last=last) for each in inputs])
        operator = name.rpartition("/")[2].partition("_")[0]
        nodes.append(Node(places, (block + output,), block + name, operator))
        types.append(ValueInfo(block + output, said))
        if part == len(BLOCK) - 1:
            last = block + output
    weights = [Tensor(name=name, data_type=1, dims=(), raw_data=bytes(4)) for name in ("w", "scale", "mask")]
    graph = Graph(
        tuple(nodes),
        "big",
        tuple(weights),
        input=(ValueInfo("x", said),),
        output=(ValueInfo(nodes[-1].output[0], said),),
        value_info=tuple(types[:-1]),
    )
    return Model(ir_version=10, opset_import=(OperatorSetId("", 20),), graph=graph)


def write(kind: str, path: Path, count: int) -> None:
    """Write the model of a kind, `layers` or `weights`, to `path`."""
    path.write_bytes({"layers": layers, "weights": weights}[kind](count).SerializeToString(deterministic=True))


def _model(
    nodes: list[NodeProto], output: str, initializers: list[TensorProto], types: list[ValueInfoProto]
) -> ModelProto:
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4, 8, 8])
    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["N", 4, 8, 8])
    graph = helper.make_graph(nodes, "graph", [given], [result], initializers, value_info=types)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
