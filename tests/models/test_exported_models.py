"""What PyTorch's exporters write comes back byte for byte, and stays what the other tests take it for."""

from pathlib import Path

import onnx
import pytest

import onnxjson

MODELS = sorted(Path(__file__).parent.rglob("*.onnx"))


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_exported_model_is_byte_identical_through_the_text(path: Path, tmp_path: Path) -> None:
    onnxjson.save(onnxjson.load(path), tmp_path / "text.onnx.json")
    onnxjson.save(onnxjson.load(tmp_path / "text.onnx.json"), tmp_path / "back.onnx")
    assert (tmp_path / "back.onnx").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_text_of_an_exported_model_has_at_most_a_third_of_the_lines_of_proto_json(path: Path) -> None:
    from google.protobuf import json_format

    proto_json = json_format.MessageToJson(onnx.load(path), indent=2)
    assert 3 * onnxjson.dumps(onnxjson.load(path)).count("\n") <= proto_json.count("\n")


def test_models_are_of_both_exporters_with_metadata_constants_and_subgraphs() -> None:
    by_name = {path.stem: onnx.load(path) for path in MODELS}
    assert {name.partition("_")[2] for name in by_name} == {"ts", "dynamo"}
    for name, model in by_name.items():
        assert all(len(node.metadata_props) > 3 for node in model.graph.node) == name.endswith("_dynamo")
    operators = [node.op_type for node in by_name["mobile_ts"].graph.node]
    assert operators.count("Constant") > 0.4 * len(operators)
    (loop,) = (node for node in by_name["branches_ts"].graph.node if node.op_type == "Loop")
    assert any(node.op_type == "If" for node in loop.attribute[0].g.node)


def test_models_take_3_mb_at_most() -> None:
    assert sum(path.stat().st_size for path in MODELS) <= 3_000_000
