"""The models that are measured, made from a seed; run as a process, so that the one that measures stays small.

``python -m tests.benchmarks.graphs KIND FILE COUNT MODELS`` writes one model. MODELS is the folder of exported models
that the kinds `torchscript`, `dynamo` and `exported` take theirs from.
"""

import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

ELEMENTS_PER_WEIGHT: Final = (1024, 4096)
"""The shape of one matrix of the weights, 16 MiB of float32."""


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


def distinct(count: int) -> ModelProto:
    """`count` nodes with five attributes each, no two of which are alike in two nodes."""
    numbers = random.Random(0)

    def some(length: int) -> list[int]:
        return [numbers.randrange(9999) for _ in range(length)]

    nodes = []
    last = "x"
    for index in range(count):
        attributes: dict[str, Any] = {
            "kernel_shape": some(2),
            "strides": some(2),
            "pads": some(4),
            "group": numbers.randrange(10**6),
        }
        output = f"t{index}"
        nodes.append(
            helper.make_node("Conv", [last, "w"], [output], f"n{index}", **attributes, custom=numbers.random())
        )
        last = output
    return _model(nodes, last, [numpy_helper.from_array(np.ones((4, 4, 1, 1), np.float32), "w")], [])


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


def torchscript(count: int, models: Path) -> ModelProto:
    """At least `count` nodes: of TorchScript's exports in `models`, the one with the most Constants, many times."""
    found = [onnx.load(path) for path in sorted(models.glob("*_ts.onnx"))]
    return _repeated(max((model for model in found if _is_flat(model)), key=_share_of_constants), count)


def dynamo(count: int, models: Path) -> ModelProto:
    """At least `count` nodes: of torch.export's exports in `models`, the one with the most nodes, many times."""
    found = [onnx.load(path) for path in sorted(models.glob("*_dynamo.onnx"))]
    return _repeated(max((model for model in found if _is_flat(model)), key=lambda model: len(model.graph.node)), count)


def biggest_export(models: Path) -> Path:
    """The biggest file of TorchScript's exports in `models`."""
    return max(models.glob("*_ts.onnx"), key=lambda path: path.stat().st_size)


def write(kind: str, path: Path, count: int, models: Path) -> None:
    """Write the model of a kind to `path`.

    Raises:
        KeyError: there is no such kind.
        ValueError: `models` has no export to take.
    """
    if kind == "exported":
        shutil.copyfile(biggest_export(models), path)
        return
    makers: dict[str, Callable[[], ModelProto]] = {
        "layers": lambda: layers(count),
        "distinct": lambda: distinct(count),
        "weights": lambda: weights(count),
        "torchscript": lambda: torchscript(count, models),
        "dynamo": lambda: dynamo(count, models),
    }
    path.write_bytes(makers[kind]().SerializeToString(deterministic=True))


def _model(
    nodes: list[NodeProto], output: str, initializers: list[TensorProto], types: list[ValueInfoProto]
) -> ModelProto:
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4, 8, 8])
    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["N", 4, 8, 8])
    graph = helper.make_graph(nodes, "graph", [given], [result], initializers, value_info=types)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _is_flat(model: ModelProto) -> bool:
    """Whether it has enough nodes, and no subgraphs whose names would have to be repeated too."""
    graphs = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
    return len(model.graph.node) >= 40 and not any(
        attribute.type in graphs for node in model.graph.node for attribute in node.attribute
    )


def _share_of_constants(model: ModelProto) -> float:
    return sum(node.op_type == "Constant" for node in model.graph.node) / len(model.graph.node)


def _repeated(model: ModelProto, count: int) -> ModelProto:
    """`model` with its nodes again and again under new names, on the same weights; metadata differs every time."""
    result = ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    del graph.node[:], graph.value_info[:]
    shared = {tensor.name for tensor in graph.initializer} | {value.name for value in graph.input} | {""}
    times = -(-count // len(model.graph.node))
    for turn in range(times):
        ending = f"_r{turn}"
        for node in model.graph.node:
            copy = graph.node.add()
            copy.CopyFrom(node)
            copy.name = node.name + ending
            copy.input[:] = [name if name in shared else name + ending for name in node.input]
            copy.output[:] = [name if name in shared else name + ending for name in node.output]
            for entry in copy.metadata_props:
                entry.value += f" {turn}"
        for value in model.graph.value_info:
            again = graph.value_info.add()
            again.CopyFrom(value)
            again.name = value.name if value.name in shared else value.name + ending
    for value in graph.output:
        value.name += f"_r{times - 1}"
    return result


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
