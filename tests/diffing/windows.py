"""A network of attention in windows, some shifted, as TorchScript's exporter writes it."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE, WINDOW, CHANNELS, HEADS = 8, 4, 8, 2


class _Graph:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(7)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name, **attributes))
        return name

    def constant(self, values: object) -> str:
        return self.add("Constant", value=numpy_helper.from_array(np.array(values, np.int64)))

    def weight(self, *shape: int) -> str:
        name = f"weight_{len(self.weights)}"
        values = self._random.normal(size=shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def size(self, value: str, axis: int) -> str:
        return self.add("Gather", self.add("Shape", value), self.constant(axis), axis=0)

    def shape(self, *sizes: str | int) -> str:
        parts = [
            self.constant([each]) if isinstance(each, int) else self.add("Unsqueeze", each, self.constant([0]))
            for each in sizes
        ]
        return self.add("Concat", *parts, axis=0)

    def linear(self, value: str) -> str:
        bias = self.weight(CHANNELS)
        return self.add("Add", bias, self.add("MatMul", value, self.weight(CHANNELS, CHANNELS)))


def windowed(blocks: int) -> onnx.ModelProto:
    """Return blocks of attention in windows, of which every other one is shifted and has a mask."""
    graph = _Graph()
    x = "x"
    for number in range(blocks):
        x = _block(graph, x, is_shifted=number % 2 == 1)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, SIZE * SIZE, CHANNELS])]
    outputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, [1, SIZE * SIZE, CHANNELS])]
    body = helper.make_graph(graph.nodes, "windows", inputs, outputs, graph.weights)
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _block(graph: _Graph, x: str, *, is_shifted: bool) -> str:
    add, constant = graph.add, graph.constant
    count, order = SIZE // WINDOW, [0, 1, 3, 2, 4, 5]
    norm = add("LayerNormalization", x, graph.weight(CHANNELS), graph.weight(CHANNELS), axis=-1)
    image = add("Reshape", norm, constant([1, SIZE, SIZE, CHANNELS]))
    padded = add("Pad", image, graph.shape(*[0] * 8))  # of nothing: the sizes are multiples of the window
    height = add("Div", graph.size(padded, 1), constant(WINDOW))
    width = add("Div", graph.size(padded, 2), constant(WINDOW))
    windows = add("Reshape", padded, graph.shape(graph.size(padded, 0), height, WINDOW, width, WINDOW, CHANNELS))
    windows = add("Transpose", windows, perm=order)
    windows = add("Reshape", windows, graph.shape(-1, WINDOW, WINDOW, CHANNELS))
    rows = add("Reshape", windows, constant([-1, WINDOW * WINDOW, CHANNELS]))
    query, key, value = [_heads(graph, rows) for _ in range(3)]
    scores = add("MatMul", query, add("Transpose", key, perm=[0, 1, 3, 2]))
    scores = add("Add", scores, graph.weight(1, HEADS, WINDOW * WINDOW, WINDOW * WINDOW))
    if is_shifted:
        mask = add("Unsqueeze", graph.weight(count * count, 16, 16), constant([1]))
        shape = graph.shape(graph.size(scores, 0), HEADS, 16, 16)
        scores = add("Add", scores, add("Reshape", add("Expand", mask, shape), shape))
    mixed = add("MatMul", add("Softmax", scores, axis=-1), value)
    mixed = add("Transpose", mixed, perm=[0, 2, 1, 3])
    mixed = add("Reshape", mixed, graph.shape(graph.size(mixed, 0), graph.size(mixed, 1), CHANNELS))
    mixed = add("Reshape", graph.linear(mixed), constant([-1, WINDOW, WINDOW, CHANNELS]))
    mixed = add("Reshape", mixed, graph.shape(-1, height, width, WINDOW, WINDOW, CHANNELS))
    mixed = add("Transpose", mixed, perm=order)
    mixed = add("Reshape", mixed, graph.shape(-1, SIZE, SIZE, CHANNELS))
    mixed = add("Reshape", mixed, graph.shape(graph.size(x, 0), SIZE * SIZE, CHANNELS))
    return add("Add", x, mixed)


def _heads(graph: _Graph, rows: str) -> str:
    values = graph.linear(rows)
    split = graph.shape(graph.size(rows, 0), graph.size(rows, 1), HEADS, CHANNELS // HEADS)
    return graph.add("Transpose", graph.add("Reshape", values, split), perm=[0, 2, 1, 3])
