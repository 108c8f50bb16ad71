"""A small real model: ``python -m onnxjson.example digits.onnx`` writes it.

It consumes images of 8 by 8 grey values and returns ten probabilities. The weights are random numbers of a fixed seed,
so the file is the same on every machine. ``--unfused`` writes it as an exporter does before anything is optimized: its
last layer is a product and a sum, and its nodes have other names.
"""

import math
import random
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import onnxjson

if TYPE_CHECKING:
    import onnx


def make_example(*, unfused: bool = False) -> "onnx.ModelProto":
    """The model, for opset 17 and IR version 8, which every runtime of today loads.

    Unfused, it has MatMul and Add instead of Gemm, and the weight of its last layer is transposed.
    """
    numbers = random.Random(8)

    def weights(name: str, *dims: int, transposed: bool = False) -> onnxjson.Tensor:
        values = [numbers.gauss(0, 0.1) for _ in range(math.prod(dims))]
        if transposed:
            values = [values[place] for column in range(dims[1]) for place in range(column, len(values), dims[1])]
            dims = dims[::-1]
        return onnxjson.Tensor(dims, 1, name=name, raw_data=struct.pack(f"<{len(values)}f", *values))

    last = [onnxjson.node("Gemm", ["flat", "fc.weight", "fc.bias"], "scores", name="/fc", transB=1)]
    if unfused:
        last = [
            onnxjson.node("MatMul", ["flat", "fc.weight"], "product", name="/fc/MatMul"),
            onnxjson.node("Add", ["product", "fc.bias"], "scores", name="/fc/Add"),
        ]
    nodes = [
        onnxjson.node("Conv", ["image", "conv.weight", "conv.bias"], "features", name="/conv", pads=[1, 1, 1, 1]),
        onnxjson.node("LeakyRelu", "features", "active", name="/activation", alpha=0.01),
        onnxjson.node("MaxPool", "active", "pooled", name="/pool", kernel_shape=[2, 2], strides=[2, 2]),
        onnxjson.node("Flatten", "pooled", "flat", name="/flatten"),
        *last,
        onnxjson.node("Softmax", "scores", "probabilities", name="/softmax", axis=-1),
    ]
    if unfused:
        for position, each in enumerate(nodes):
            if each not in last:
                nodes[position] = msgspec.structs.replace(each, name=f"node_{position}")
    graph = onnxjson.Graph(
        name="digits",
        node=tuple(nodes),
        input=(onnxjson.value("image", "float32", ["N", 1, 8, 8]),),
        output=(onnxjson.value("probabilities", "float32", ["N", 10]),),
        initializer=(
            weights("conv.weight", 4, 1, 3, 3),
            weights("conv.bias", 4),
            weights("fc.weight", 10, 64, transposed=unfused),
            weights("fc.bias", 10),
        ),
    )
    opset = onnxjson.OperatorSetId("", 17)
    return onnxjson.to_proto(
        onnxjson.Model(ir_version=8, producer_name="onnxjson.example", graph=graph, opset_import=(opset,))
    )


def write_example(path: Path, *, unfused: bool = False) -> None:
    """Write the model to `path`, which may not be there yet.

    Raises:
        OSError: it is there, or cannot be written.
    """
    content = make_example(unfused=unfused).SerializeToString()
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
