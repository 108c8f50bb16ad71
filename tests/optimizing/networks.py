"""Small models that passes do something to."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxjson.codecs import serde
from onnxjson.model.document import Model


def convolution(*, with_reshape: bool = True, with_metadata: bool = False) -> Model:
    """Conv, BatchNormalization, Relu and, if wanted, Reshape; opset 17."""
    numbers = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> onnx.TensorProto:
        values = numbers.random(shape).astype(np.float32) + 0.5
        return numpy_helper.from_array(values, name)

    weights = [weight("W", 4, 3, 3, 3), *[weight(name, 4) for name in ("B", "scale", "bias", "mean", "var")]]
    last = "r" if with_reshape else "y"
    nodes = [
        helper.make_node("Conv", ["x", "W", "B"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["b"], "bn"),
        helper.make_node("Relu", ["b"], [last], "relu"),
    ]
    if with_reshape:
        weights.append(numpy_helper.from_array(np.array([0, -1], np.int64), "shape"))
        nodes.append(helper.make_node("Reshape", ["r", "shape"], ["y"], "reshape"))
    if with_metadata:
        for node in nodes:
            node.metadata_props.add(key="made", value=f"by {node.name}")
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, None] if with_reshape else [1, 4, 8, 8])],
        weights,
    )
    return serde.from_proto(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]))


def branch() -> Model:
    """An If with an Identity in each branch, after an Identity."""

    def side(name: str) -> onnx.GraphProto:
        node = helper.make_node("Identity", ["x1"], [f"{name}_out"], f"{name}_identity")
        relu = helper.make_node("Relu", [f"{name}_out"], [f"{name}_y"], f"{name}_relu")
        return helper.make_graph(
            [node, relu], name, [], [helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, [2])]
        )

    nodes = [
        helper.make_node("Identity", ["x"], ["x1"], "first"),
        helper.make_node("If", ["c"], ["y"], "if", then_branch=side("then"), else_branch=side("else")),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    return serde.from_proto(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]))
