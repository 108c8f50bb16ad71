"""Small models whose numbers are planted."""

from collections.abc import Sequence

import numpy
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnxjson.model.document import Model
from onnxjson.storage import api

Array = numpy.ndarray


def model_of(nodes: Sequence[NodeProto], weights: dict[str, Array], columns: int = 4) -> Model:
    """A model from x, float32[2,columns], to y."""
    graph = helper.make_graph(
        list(nodes),
        "planted",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, columns])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    return api.from_proto(made)


def perceptron(layers: int = 4, columns: int = 4) -> tuple[list[NodeProto], dict[str, Array]]:
    """Layers of MatMul and Tanh, from x to the value ``t{layers - 1}``."""
    generator = numpy.random.default_rng(0)
    nodes, weights, last = [], {}, "x"
    for number in range(layers):
        weights[f"w{number}"] = generator.standard_normal((columns, columns)).astype(numpy.float32)
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"m{number}"], f"matmul{number}"))
        nodes.append(helper.make_node("Tanh", [f"m{number}"], [f"t{number}"], f"tanh{number}"))
        last = f"t{number}"
    return nodes, weights


def with_overflow(at: Sequence[int] = (1,), layers: int = 4) -> Model:
    """A perceptron with pairs of Mul that leave a value as it is, by way of one that float16 does not hold."""
    nodes, weights = perceptron(layers)
    made: list[NodeProto] = []
    for node in nodes:
        made.append(node)
        number = int(node.name.removeprefix("matmul").removeprefix("tanh"))
        if node.op_type == "MatMul" and number in at:
            up, down = f"up{number}", f"down{number}"
            exact = node.output[0] + "_exact"
            weights |= {up: numpy.float32(1e5) * numpy.ones(1, "f"), down: numpy.float32(1e-5) * numpy.ones(1, "f")}
            made.append(helper.make_node("Mul", [exact, up], [f"large{number}"], up))
            made.append(helper.make_node("Mul", [f"large{number}", down], [node.output[0]], down))
            node.output[0] = exact
    made.append(helper.make_node("Relu", [f"t{layers - 1}"], ["y"], "last"))
    return model_of(made, weights)
