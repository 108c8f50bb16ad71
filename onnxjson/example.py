"""A small real model: ``python -m onnxjson.example digits.onnx`` writes it.

It takes images of 8 by 8 grey values and gives ten probabilities. The weights are random numbers of a fixed seed, so
the file is the same on every machine.
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


def write_example(path: Path) -> None:
    """Write the model to `path`, which may not be there yet.

    Raises:
        OSError: it is there, or cannot be written.
    """
    content = make_example().SerializeToString()
    with path.open("xb") as file:
        file.write(content)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m onnxjson.example NEW_FILE.onnx")
    try:
        write_example(Path(sys.argv[1]))
    except OSError as failure:
        sys.stderr.write(f"cannot write {sys.argv[1]!r}: {failure.strerror}\n")
        sys.exit(73 if isinstance(failure, FileExistsError) else 74)
