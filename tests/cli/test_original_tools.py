"""Jobs of the simple-onnx-processing-tools that are commands of their own here, by the names of the tools."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper

import onnxjson
from onnxjson.cli.group import onnxjson as program
from onnxjson.editing.edits import ConvertOpset, InferShapes, StampOpset, apply

EXPORT = Path(__file__).parents[1] / "models" / "encoder_dynamo.onnx"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(program, [str(each) for each in arguments])


def saved(path: Path, proto: onnx.ModelProto) -> Path:
    path.write_bytes(proto.SerializeToString())
    return path


def made(*nodes: onnx.NodeProto, dtype: int = TensorProto.FLOAT, opset: int = 11) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", dtype, [2, 1, 3])
    y = helper.make_tensor_value_info("y", dtype, None)
    graph = helper.make_graph(list(nodes), "g", [x], [y])
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])


def test_soc4onnx_conversion_and_stamping_are_two_things() -> None:
    squeeze = onnxjson.from_proto(made(helper.make_node("Squeeze", ["x"], ["y"], axes=[1])))
    assert squeeze.graph is not None
    converted, stamped = apply(squeeze, [ConvertOpset(version=13)]), apply(squeeze, [StampOpset(version=13)])
    assert converted.graph is not None
    assert stamped.graph is not None
    assert [each.version for each in (*converted.opset_import, *stamped.opset_import)] == [13, 13]
    assert len(converted.graph.node[-1].input) == 2
    assert not converted.graph.node[-1].attribute
    assert stamped.graph.node == squeeze.graph.node
    assert converted.ir_version == stamped.ir_version == squeeze.ir_version


def test_ssi4onnx_inference_changes_value_info_only() -> None:
    model = onnxjson.load(EXPORT)
    assert model.graph is not None
    bare = apply(model, [onnxjson.edits.Strip(what=("value_info",))])
    typed = apply(bare, [InferShapes()])
    assert typed.graph is not None
    assert len(typed.graph.value_info) > len(typed.graph.node) / 2
    kinds = {event.kind for event in onnxjson.diff(bare, typed).events}
    assert kinds == {"value-info-changed"}


def test_ssc4onnx_bool_inputs_and_shared_constants_are_counted_right_without_a_runtime(tmp_path: Path) -> None:
    proto = made(
        helper.make_node("And", ["x", "w"], ["a"]), helper.make_node("Or", ["a", "w"], ["y"]), dtype=TensorProto.BOOL
    )
    proto.graph.initializer.append(helper.make_tensor("w", TensorProto.BOOL, [3], [True, False, True]))
    result = run("show", saved(tmp_path / "m.onnx", proto), "--json")
    assert result.exit_code == 0
    weights = json.loads(result.stdout)["constants"]
    assert (weights["tensors"], weights["elements"], weights["bytes"]) == (1, 3, 3)


@pytest.mark.parametrize("value", ['[1.2345678901234567, "-0.0"]', '["NaN", "-Infinity"]'])
def test_sed4onnx_doubles_come_back_to_the_last_bit(value: str) -> None:
    encoded = run("tensor", "encode", value, "--type", "float64")
    assert encoded.exit_code == 0
    decoded = run("tensor", "decode", encoded.stdout.strip(), "--type", "float64[2]")
    assert decoded.exit_code == 0
    assert json.loads(decoded.stdout) == json.loads(value)


def test_sit4onnx_a_model_with_bool_inputs_runs_and_its_outputs_are_kept(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", made(helper.make_node("Not", ["x"], ["y"]), dtype=TensorProto.BOOL))
    values = np.array([[[True, False, True]], [[False, False, True]]])
    np.savez(tmp_path / "in.npz", x=values)
    result = run("run", path, "--input", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "out.npz") as outputs:
        assert (outputs["y"] == ~values).all()


def test_sit4onnx_a_model_that_does_not_run_is_no_success(tmp_path: Path) -> None:
    result = run("run", saved(tmp_path / "m.onnx", made(helper.make_node("Nowhere", ["x"], ["y"]))))
    assert result.exit_code not in (0, 1)
