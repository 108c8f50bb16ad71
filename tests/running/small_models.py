"""Small models for the tests of runs and comparisons."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnxjson
from onnxjson import Model

Shape = Sequence[int | str | None] | None


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[int, Shape]],
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = 22,
    listed: Sequence[str] = (),
    ir_version: int = 10,
) -> Model:
    """A model of these nodes; constants named in `listed` stand among the inputs, too."""
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    infos = [helper.make_tensor_value_info(name, *known) for name, known in inputs.items()]
    infos += [
        helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        for tensor in tensors
        if tensor.name in listed
    ]
    graph = helper.make_graph(
        list(nodes), "g", infos, [onnx.ValueInfoProto(name=name) for name in outputs], initializer=tensors
    )
    domains = {node.domain for node in nodes} | {""}
    opsets = [helper.make_opsetid(domain, 1 if domain else opset) for domain in sorted(domains)]
    return onnxjson.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=ir_version))


def scaled(factor: float, *, output: str = "y") -> Model:
    """x * factor + 1."""
    return model(
        [helper.make_node("Mul", ["x", "factor"], ["m"], name="mul"), helper.make_node("Add", ["m", "one"], [output])],
        {"x": (TensorProto.FLOAT, ["N", 4])},
        [output],
        {"factor": np.float32(factor), "one": np.float32(1)},
    )


def identity(data_type: int) -> Model:
    """Gives what it gets."""
    return model([helper.make_node("Identity", ["x"], ["y"])], {"x": (data_type, ["N", 3])}, ["y"], opset=25)
