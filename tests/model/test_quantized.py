"""Quantized weights stand for what onnxruntime computes with them."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

import onnxjson
from onnxjson.model.constants import QuantizedWeight, quantized_weight
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.index import Index
from onnxjson.model.payloads import Data
from onnxjson.model.tensors import raw_bytes


def read(tensor: Tensor) -> Data | None:
    stored = raw_bytes(tensor)
    return None if stored is None else stored[0]


def packed(numbers: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """Several in a byte, the first in the lowest bits; each row begins with a new byte."""
    flat = numbers.reshape(-1, numbers.shape[-1])
    each = 8 // bits
    flat = np.pad(flat, ((0, 0), (0, -flat.shape[1] % each))).astype(np.uint8)
    parts = [flat[:, place::each] << (place * bits) for place in range(each)]
    made: NDArray[np.uint8] = np.bitwise_or.reduce(parts).astype(np.uint8)
    return made.reshape(*numbers.shape[:-1], -1)


def tensor(name: str, array: NDArray[Any], data_type: int | None = None) -> onnx.TensorProto:
    if data_type is None:
        return onnx.numpy_helper.from_array(array, name)
    return helper.make_tensor(name, data_type, array.shape, array.reshape(-1).tolist())


def weight_of(
    node: onnx.NodeProto, constants: list[onnx.TensorProto], given: dict[str, NDArray[Any]], opset: int = 23
) -> tuple[QuantizedWeight, onnx.ModelProto]:
    """The weight of a model of one node, and the model."""
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
    ]
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", inputs, [out], constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    scope = Index(onnxjson.from_proto(model)).scopes[0]
    weight = quantized_weight(scope, "w")
    assert weight is not None
    assert quantized_weight(scope, "s") == weight
    return weight, model


def checked(
    node: onnx.NodeProto, constants: list[onnx.TensorProto], given: dict[str, NDArray[Any]]
) -> tuple[QuantizedWeight, NDArray[Any], NDArray[Any]]:
    """The weight, what it stands for, and what onnxruntime computes."""
    weight, model = weight_of(node, constants, given)
    numbers = np.concatenate(list(weight.arrays(read))).reshape(weight.shape)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return weight, numbers, session.run(None, given)[0]


@pytest.mark.parametrize(
    ("bits", "zeros"),
    [(2, "none"), (2, "packed"), (4, "none"), (4, "packed"), (4, "floats"), (8, "none"), (8, "packed")],
)
@pytest.mark.parametrize("length", [96, 80])
def test_matmul_with_blocks_of_few_bits(bits: int, zeros: str, length: int) -> None:
    rng = np.random.default_rng(bits)
    blocks = 3
    values = rng.integers(0, 1 << bits, (5, blocks * 32))
    scales = rng.uniform(0.1, 1, (5, blocks)).astype(np.float32)
    points = rng.integers(0, 1 << bits, (5, blocks))
    constants = [tensor("w", packed(values, bits).reshape(5, blocks, -1)), tensor("s", scales)]
    names = ["x", "w", "s"]
    if zeros != "none":
        names.append("z")
        constants.append(tensor("z", points.astype(np.float32) if zeros == "floats" else packed(points, bits)))
    sizes: dict[str, Any] = {"K": length, "N": 5, "bits": bits, "block_size": 32}
    node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", **sizes)
    weight, numbers, y = checked(node, constants, {"x": np.eye(length, dtype=np.float32)})
    np.testing.assert_allclose(numbers.T, y, 1e-5, 1e-4)
    assert weight.text == f"{bits} bits, block 32"


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("kind", ["uint8", "int4", "uint4"])
def test_rows_of_blocks_that_are_gathered(kind: str, zeros: bool) -> None:
    rng = np.random.default_rng(3)
    values, points = rng.integers(0, 8, (6, 64)), rng.integers(0, 8, (6, 4))
    scales = rng.uniform(0.1, 1, (6, 4)).astype(np.float32)
    number = None if kind == "uint8" else DATA_TYPES[kind]
    held = [packed(each, 4) if kind == "uint8" else each for each in (values, points)]
    constants = [tensor("w", held[0], number), tensor("s", scales), *([tensor("z", held[1], number)] * zeros)]
    names = ["w", "at", "s", *(["z"] * zeros)]
    node = helper.make_node(
        "GatherBlockQuantized", names, ["y"], domain="com.microsoft", block_size=16, quantize_axis=1, gather_axis=0
    )
    _, numbers, y = checked(node, constants, {"at": np.arange(6)})
    np.testing.assert_allclose(numbers, y, 1e-6)


@pytest.mark.parametrize("kind", ["int8", "uint4", "int4", "uint2", "int2", "float8_e4m3fn", "float4e2m1"])
@pytest.mark.parametrize(("axis", "block"), [(None, 0), (0, 0), (1, 0), (0, 2), (-1, 4)])
def test_dequantize_linear_for_a_tensor_an_axis_and_blocks(kind: str, axis: int | None, block: int) -> None:
    rng = np.random.default_rng(4)
    shape = (4, 6)
    values = rng.integers(0, 2, shape)
    attributes: dict[str, Any] = {"axis": axis, "block_size": block}
    dims: tuple[int, ...] = () if axis is None else (shape[axis],)
    if block and axis is not None:
        dims = tuple([-(-size // block) if at == axis % 2 else size for at, size in enumerate(shape)])
    scales = np.asarray(rng.uniform(0.1, 1, dims)).astype(np.float32)
    whole = scales
    if axis is not None:
        at = axis % 2
        whole = np.repeat(scales, block, at).take(range(shape[at]), at) if block else np.expand_dims(scales, 1 - at)
    given = {name: value for name, value in attributes.items() if value is not None}
    node = helper.make_node("DequantizeLinear", ["w", "s"], ["y"], **given)
    weight, _ = weight_of(node, [tensor("w", values, DATA_TYPES[kind]), tensor("s", scales)], {}, opset=25)
    numbers = np.concatenate(list(weight.arrays(read)))
    np.testing.assert_allclose(numbers.reshape(shape), values * whole, 1e-6)


def test_other_constants_are_no_quantized_weights() -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])]
    graph = helper.make_graph([node], "g", inputs, outputs, [tensor("w", np.zeros((2, 2), np.float32))])
    scope = Index(onnxjson.from_proto(helper.make_model(graph))).scopes[0]
    assert quantized_weight(scope, "w") is None
    assert quantized_weight(scope, "x") is None
