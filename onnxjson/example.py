"""A small real model: ``python -m onnxjson.example digits.onnx`` writes it.

It takes images of 8 by 8 grey values and gives ten probabilities. The weights are random numbers of a fixed seed, so
the file is the same on every machine. ``--unfused`` writes it as an exporter does before anything is optimised: its
last layer is a product and a sum, and its nodes have other names.
"""

import random
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def make_example() -> "onnx.ModelProto":
    """The model, for opset 17 and IR version 8, which every runtime of today loads."""
    from onnx import TensorProto, helper

    numbers = random.Random(8)

    def weights(name: str, *dims: int) -> "onnx.TensorProto":
        count = 1
        for dim in dims:
            count *= dim
        raw = struct.pack(f"<{count}f", *(numbers.gauss(0, 0.1) for _ in range(count)))
        return helper.make_tensor(name, TensorProto.FLOAT, dims, raw, raw=True)

    nodes = [
        helper.make_node("Conv", ["image", "conv.weight", "conv.bias"], ["features"], "/conv", pads=[1, 1, 1, 1]),
        helper.make_node("LeakyRelu", ["features"], ["active"], "/activation", alpha=0.01),
        helper.make_node("MaxPool", ["active"], ["pooled"], "/pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pooled"], ["flat"], "/flatten"),
        helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["scores"], "/fc", transB=1),
        helper.make_node("Softmax", ["scores"], ["probabilities"], "/softmax", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])],
        [
            weights("conv.weight", 4, 1, 3, 3),
            weights("conv.bias", 4),
            weights("fc.weight", 10, 64),
            weights("fc.bias", 10),
        ],
    )
    return helper.make_model(
        graph, producer_name="onnxjson.example", ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
    )


def make_unfused_example() -> "onnx.ModelProto":
    """The same network with MatMul and Add in place of Gemm, the weight of its last layer transposed."""
    from onnx import helper

    model = make_example()
    graph = model.graph
    weight = next(tensor for tensor in graph.initializer if tensor.name == "fc.weight")
    rows, columns = weight.dims
    numbers = struct.unpack(f"<{rows * columns}f", weight.raw_data)
    transposed = [numbers[row * columns + column] for column in range(columns) for row in range(rows)]
    weight.raw_data = struct.pack(f"<{rows * columns}f", *transposed)
    weight.dims[:] = [columns, rows]
    place = next(position for position, node in enumerate(graph.node) if node.op_type == "Gemm")
    matmul = helper.make_node("MatMul", ["flat", "fc.weight"], ["product"], "/fc/MatMul")
    add = helper.make_node("Add", ["product", "fc.bias"], ["scores"], "/fc/Add")
    nodes = [*graph.node[:place], matmul, add, *graph.node[place + 1 :]]
    for position, node in enumerate(nodes):
        node.name = node.name if node in (matmul, add) else f"node_{position}"
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def write_example(path: Path, *, unfused: bool = False) -> None:
    """Write the model to `path`, which may not be there yet.

    Raises:
        OSError: it is there, or cannot be written.
    """
    content = (make_unfused_example() if unfused else make_example()).SerializeToString()
    with path.open("xb") as file:
        file.write(content)


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--unfused"]
    if len(arguments) != 1:
        sys.exit("usage: python -m onnxjson.example [--unfused] NEW_FILE.onnx")
    try:
        write_example(Path(arguments[0]), unfused="--unfused" in sys.argv)
    except OSError as failure:
        sys.stderr.write(f"cannot write {arguments[0]!r}: {failure.strerror}\n")
        sys.exit(73 if isinstance(failure, FileExistsError) else 74)
