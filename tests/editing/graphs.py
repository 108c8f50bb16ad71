"""Hand-made models for the tests of edits, and how they are run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import onnx
import onnx.parser
from numpy.typing import NDArray

import onnxjson
from onnxjson.model.document import Model
from onnxjson.model.structure import check_structure

MODELS = Path(__file__).parent.parent / "models"

EXPORTED = sorted(path.name for path in MODELS.glob("*.onnx"))


def model_of(text: str) -> Model:
    """A model in the text syntax of onnx; the header is added where it is missing."""
    if not text.lstrip().startswith("<"):
        text = '<ir_version: 10, opset_import: ["" : 20, "local" : 1]>\n' + text
    return onnxjson.from_proto(onnx.parser.parse_model(text))


def exported(name: str) -> Model:
    """One of the exported models of the tests."""
    return onnxjson.load(MODELS / name)


def require_valid(model: Model, *, deep: bool = True) -> None:
    """Fails where the structure, or (if wanted) onnx's checker with its strict inference, finds something."""
    findings = [finding for finding in check_structure(model) if finding.severity == "error"]
    assert not findings, findings
    if deep:
        onnx.checker.check_model(onnxjson.to_proto(model), full_check=True)


def run(model: Model, inputs: Mapping[str, NDArray[Any]], outputs: Sequence[str] | None = None) -> list[NDArray[Any]]:
    """What onnxruntime computes, without any optimization."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    data = onnxjson.to_proto(model).SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    found: list[NDArray[Any]] = session.run(outputs, dict(inputs))
    return found


def require_same_results(one: Model, other: Model, inputs: Mapping[str, NDArray[Any]], **renamed: str) -> None:
    """Fails where two models compute other bits; `renamed` has names of inputs that differ in the other."""
    first = run(one, inputs)
    second = run(other, {renamed.get(name, name): value for name, value in inputs.items()})
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()


def sample_inputs(model: Model, sizes: Mapping[str, int] | None = None, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Random values for the inputs of a model; `sizes` are those of named dimensions."""
    numbers = numpy.random.default_rng(seed)
    values: dict[str, NDArray[Any]] = {}
    assert model.graph is not None
    constants = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in constants:
            continue
        assert value.name is not None
        assert value.type is not None
        assert value.type.tensor_type is not None
        assert value.type.tensor_type.shape is not None
        dims = [
            each.dim_value if each.dim_value is not None else (sizes or {}).get(each.dim_param or "", 2)
            for each in value.type.tensor_type.shape.dim
        ]
        if value.type.tensor_type.elem_type == 7:
            values[value.name] = numbers.integers(0, 2, dims)
        else:
            values[value.name] = numbers.standard_normal(dims).astype(numpy.float32)
    return values
