"""Options of onnxsim: how it checks, and what it treats as constant."""

from pathlib import Path

import numpy
import pytest
from onnx.parser import parse_model

from onnxjson.model.document import Model
from onnxjson.model.errors import PassError
from onnxjson.optimizing.passes import PassResult, Pipeline, parse_step
from onnxjson.optimizing.passes.declaration import is_installed
from onnxjson.storage import api

pytestmark = pytest.mark.skipif(not is_installed("onnxsim"), reason="onnxsim is not installed")


@pytest.fixture
def model() -> Model:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2,2] x) => (float[2,2] y)
              <float[2,2] w = {1, 2, 3, 4}> { n = Neg (w) y = MatMul (x, n) }"""
    return api.from_proto(parse_model(text))


def made_by(model: Model, spelled: str) -> PassResult:
    with Pipeline() as pipeline:
        (made,) = pipeline.run(model, [parse_step(spelled)])
    return made


def operators(made: PassResult) -> list[str]:
    assert made.after.model.graph is not None
    return [node.op_type or "" for node in made.after.model.graph.node]


def test_weights_are_constants_or_not(model: Model) -> None:
    assert operators(made_by(model, "onnxsim")) == ["MatMul"]
    assert operators(made_by(model, "onnxsim{constant_weights=false}")) == ["Neg", "MatMul"]


def test_the_operator_set_is_converted(model: Model) -> None:
    made = made_by(model, "onnxsim{opset=22}")
    assert [each.version for each in made.after.model.opset_import] == [22]


def test_checks_run_on_the_data_that_is_given(model: Model, tmp_path: Path) -> None:
    numpy.savez(tmp_path / "good.npz", x=numpy.ones((2, 2), numpy.float32))
    assert operators(made_by(model, f"onnxsim{{check=1,check_data={tmp_path}/good.npz}}")) == ["MatMul"]
    numpy.savez(tmp_path / "bad.npz", x=numpy.ones((2, 5), numpy.float32))
    with pytest.raises(PassError):
        made_by(model, f"onnxsim{{check=1,check_data={tmp_path}/bad.npz}}")


def test_tolerances_and_shapes_of_the_check_are_passed_on(model: Model) -> None:
    assert operators(made_by(model, "onnxsim{check=2,check_rtol=0.5,check_atol=0.5,check_shapes={x: [2, 2]}}"))
    with pytest.raises(PassError):
        made_by(model, "onnxsim{check=1,check_shapes={x: [2, 5]}}")
    assert operators(made_by(model, "onnxsim{weights_are_inputs=true}")) == ["MatMul"]


def test_a_result_with_another_input_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,2] x) => (float[1,2] y)
              { o = Optional (x) y = OptionalGetElement (o) }"""
    with pytest.raises(PassError, match="its result and the model have different inputs: y"):
        made_by(api.from_proto(parse_model(text)), "onnxsim")
