"""``onnxjson check``."""

import json
import re
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnxjson
from onnxjson.model.errors import Finding, WorkerError
from onnxjson.running.worker import Worker
from tests.cli.running import run
from tests.outline.written import model

MODELS = Path(__file__).parents[1] / "models"
FIELDS = set(Finding.__struct_fields__)


def _misspell(text: Path) -> None:
    text.write_text(text.read_text().replace('"op_type": "Gemm"', '"op_typ": "Gemm"'))


def _rename_output(text: Path) -> None:
    text.write_text(text.read_text().replace('"output": ["active"]', '"output": ["activated"]'))


def test_sound_model_is_code_0_and_nothing_on_standard_output(binary: Path) -> None:
    result = run("check", binary)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "1 file: no errors\n")


def test_mistake_in_a_text_is_a_line_with_its_place_and_code_1(text: Path) -> None:
    _misspell(text)
    result = run("check", text)
    assert result.exit_code == 1
    (line,) = result.stdout.splitlines()
    number = 1 + text.read_text().partition('"op_typ"')[0].count("\n")
    assert line.startswith(f"{text}:{number}:")
    assert ": error[" in line
    assert "op_type" in line
    assert result.stderr == "1 file: 1 error\n"


def test_value_that_nobody_makes_is_found_in_the_text_and_in_the_binary(text: Path) -> None:
    _rename_output(text)
    result = run("check", text)
    assert result.exit_code == 1
    assert "'active'" in result.stdout or '"active"' in result.stdout
    run("convert", text)
    of_binary = run("check", text.with_name("digits.onnx"))
    assert of_binary.exit_code == 1
    assert "/graph/node/2" in of_binary.stdout


def test_file_that_is_no_model_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    result = run("check", tmp_path / "m.onnx")
    assert result.exit_code == 1
    assert ": error[not-a-model]: " in result.stdout


def test_finding_about_a_node_names_its_line_of_the_outline(text: Path) -> None:
    _rename_output(text)
    found = json.loads(run("check", "--json", text).stdout)
    (outline,) = [each["outline"] for each in found if each["address"].startswith("/graph/node/2")]
    assert "MaxPool(" in outline
    assert f"(in the line '{outline}')" in run("check", text).stdout


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], "out = Neg(Cast(Exp(x), to=float32)): float32[2,6,8]"),
        (["--deep"], "out = Neg(Exp(x)): float32[2,6,8]"),
    ],
)
def test_line_of_a_finding_is_that_of_stated_types_and_of_inferred_ones_if_deep(
    options: list[str], line: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.onnx"
    onnxjson.save(model("[n] a = Exp(x) [n] b = Cast<to = 1>(a) out = Neg(b)"), path)
    found = json.loads(run("check", "--select", "all", "--json", *options, path).stdout)
    assert {each["outline"] for each in found if "/node/" in each["address"]} == {line}


def test_hostile_names_in_the_line_of_a_finding_are_visible(text: Path) -> None:
    _rename_output(text)
    text.write_text(text.read_text().replace('"probabilities"', '"\\u001b[31m)\\n"'))
    outlines = [each["outline"] for each in json.loads(run("check", "--json", text).stdout)]
    assert any("31m" in each for each in outlines)
    assert not any("\x1b" in each or "\n" in each for each in outlines)
    assert "\x1b" not in run("check", text).stdout


def test_large_model_has_findings_without_its_outline(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxjson.outline.places.LARGEST", 5)
    _rename_output(text)
    found = json.loads(run("check", "--json", text).stdout)
    assert found
    assert {each["outline"] for each in found} == {""}


def test_missing_file_is_code_66_and_the_others_are_still_checked(text: Path) -> None:
    _misspell(text)
    result = run("check", text.with_name("none.onnx"), text)
    assert result.exit_code == 66
    assert "error[66]" in result.stderr
    assert "op_type" in result.stdout


def test_json_is_ascii_and_has_every_field_of_every_finding(text: Path) -> None:
    text.write_text(text.read_text().replace('"op_type": "Gemm"', '"öp_type": "Gemm"'))
    result = run("check", "--json", text)
    assert result.exit_code == 1
    assert result.stdout.isascii()
    data = json.loads(result.stdout)
    assert [set(finding) for finding in data] == [FIELDS]
    assert data[0]["file"] == str(text)
    assert msgspec.convert(data, list[Finding])[0].severity == "error"


def test_json_of_a_sound_model_is_an_empty_array(binary: Path) -> None:
    assert run("check", "--json", binary).stdout == "[]\n"


def test_warnings_alone_are_code_0_and_strict_makes_them_1(text: Path) -> None:
    text.write_text(text.read_text().replace('"opset_import": {"": 17},\n', ""))
    result = run("check", text)
    assert (result.exit_code, result.stderr) == (0, "1 file: 1 warning\n")
    assert ": warning[" in result.stdout
    assert run("check", "--strict", text).exit_code == 1


def test_comment_is_nothing_wrong(text: Path) -> None:
    text.write_text("// a remark\n" + text.read_text())
    result = run("check", "--strict", text)
    assert (result.exit_code, result.stdout) == (0, "")


def test_deep_finds_nothing_in_a_sound_model(binary: Path) -> None:
    result = run("check", "--deep", binary)
    assert (result.exit_code, result.stdout) == (0, "")


def test_deep_finds_the_external_data_of_a_binary_and_of_its_text(binary: Path) -> None:
    onnx.save(onnx.load(binary), binary, save_as_external_data=True, location="w.bin", size_threshold=100)
    run("convert", binary)
    text = binary.with_name("digits.onnx.json")
    assert run("check", "--deep", binary, text).exit_code == 0
    binary.with_name("w.bin").unlink()
    for path in (binary, text):
        result = run("check", "--deep", path)
        assert result.exit_code == 1
        assert "w.bin" in result.stdout


def test_deep_finds_what_only_onnx_knows(text: Path) -> None:
    text.write_text(text.read_text().replace('"transB": 1', '"transB": 0'))
    assert run("check", text).exit_code == 0
    result = run("check", "--deep", text)
    assert result.exit_code == 1
    line = 1 + text.read_text().partition('{"op_type": "Gemm"')[0].count("\n")
    assert result.stdout.startswith(f"{text}:{line}:5: error[check-shapes]: (op_type:Gemm, node name: /fc)")
    assert result.stdout.count("\n") == 1
    (finding,) = json.loads(run("check", "--deep", "--json", text).stdout)
    assert (finding["address"], finding["line"]) == ("/graph/node/4", line)


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    """A native analysis that comes to no end."""

    def check(self: Worker, model: bytes | Path, full: bool = False, **_: object) -> None:
        raise WorkerError("the shape inference of onnx does not finish on this model")

    monkeypatch.setattr(Worker, "check", check)


@pytest.mark.usefixtures("stopping")
def test_analysis_that_comes_to_no_end_is_a_finding_with_the_file_and_code_76(binary: Path) -> None:
    result = run("check", "--deep", binary)
    message = "the shape inference of onnx does not finish on this model"
    assert result.stdout == f"{binary}: warning[check-unfinished]: {message}\n"
    assert result.exit_code == 76
    result = run("check", "--deep", "--json", binary, binary)
    assert result.exit_code == 76
    assert [(finding["code"], finding["file"]) for finding in json.loads(result.stdout)] == [
        ("check-unfinished", str(binary))
    ] * 2


@pytest.mark.usefixtures("stopping")
def test_what_is_found_without_native_analysis_is_said_when_that_stops(text: Path) -> None:
    _rename_output(text)
    result = run("check", "--deep", "--json", text)
    assert result.exit_code == 1
    assert {finding["code"] for finding in json.loads(result.stdout)} == {"undefined-input", "check-unfinished"}


def test_json_has_the_files_that_could_not_be_looked_at(binary: Path) -> None:
    missing = binary.with_name("none.onnx")
    result = run("check", "--json", missing, binary)
    assert result.exit_code == 66
    (finding,) = json.loads(result.stdout)
    assert (finding["severity"], finding["code"], finding["file"]) == ("error", "not-checked", str(missing))
    assert finding["message"] == f"{missing} does not exist"
    assert result.stderr.endswith("1 file: no errors\n")


def test_checking_changes_nothing(binary: Path) -> None:
    before = binary.read_bytes()
    run("check", "--deep", binary)
    assert [path.name for path in binary.parent.iterdir()] == ["digits.onnx"]
    assert binary.read_bytes() == before
    onnx.checker.check_model(onnx.load(binary))


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    """A text of three tensors that are blobs."""
    weights = [numpy_helper.from_array(np.full(100, number, np.float32), f"w{number}") for number in range(3)]
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [100])
    nodes = [onnx.helper.make_node("Sum", ["w0", "w1", "w2"], ["y"])]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [], [output], weights))
    onnx.save(model, tmp_path / "m.onnx")
    assert run("convert", tmp_path / "m.onnx", "--weights", "blobs").exit_code == 0
    return tmp_path / "m.onnx.json"


def test_every_blob_that_is_missing_or_of_another_length_is_a_finding_with_its_place(apart: Path) -> None:
    assert run("check", apart).exit_code == 0
    assert run("check", "--deep", apart).exit_code == 0
    named = re.findall(r'"name": "(w\d)".*"blob": "(\w+)"', apart.read_text())
    blobs = {name: apart.with_name("m.blobs") / digest for name, digest in named}
    blobs["w0"].unlink()
    blobs["w1"].write_bytes(b"short")
    lines = apart.read_text().splitlines()
    for more in ((), ("--deep",)):
        result = run("check", "--json", apart, *more)
        assert result.exit_code == 1
        found = [finding for finding in json.loads(result.stdout) if finding["severity"] == "error"]
        assert [finding["code"] for finding in found] == ["missing-blob", "unusable-blob"]
        for finding, name in zip(found, ("w0", "w1"), strict=True):
            assert f'"{name}"' in lines[finding["line"] - 1]
            assert blobs[name].name in finding["message"]
        assert "has 5 bytes; the tensor needs 400" in found[1]["message"]


def test_what_else_is_wrong_is_found_without_the_blobs(apart: Path) -> None:
    apart.write_text(apart.read_text().replace('"output": ["y"]', '"output": ["z"]'))
    for blob in apart.with_name("m.blobs").iterdir():
        blob.unlink()
    codes = {finding["code"] for finding in json.loads(run("check", "--json", apart).stdout)}
    assert codes == {"missing-blob", "undefined-output"}


OPERATOR_MISTAKES = {
    "unknown-operator": ('"op_type": "Softmax"', '"op_type": "SoftMax"', 'did you mean "Softmax"'),
    "unknown-attribute": ('"axis": -1', '"axes": [1]', 'did you mean "axis"'),
    "attribute-type": ('"axis": -1', '"axis": {"STRING": "last"}', "must be INT, but it is STRING"),
    "input-count": ('"input": ["scores"]', '"input": ["scores", "scores"]', "accepts 1 input, but the node has 2"),
}


@pytest.mark.parametrize("code", OPERATOR_MISTAKES)
def test_operators_are_checked_for_the_imported_version(text: Path, code: str) -> None:
    old, new, message = OPERATOR_MISTAKES[code]
    before = text.read_text()
    assert before.count(old) == 1
    text.write_text(before.replace(old, new))
    result = run("check", text)
    assert result.exit_code == 1
    line = 1 + before.partition(old)[0].count("\n")
    (shown,) = result.stdout.splitlines()
    assert re.match(rf"{re.escape(str(text))}:{line}:\d+: error\[{code}\]: ", shown)
    assert message in shown
    converted = run("convert", text)
    assert converted.exit_code == 0
    assert shown.partition(" (in the line ")[0].replace(": error[", ": warning[") in converted.stderr
    (finding,) = json.loads(run("check", "--json", text.with_name("digits.onnx")).stdout)
    assert (finding["code"], finding["address"].startswith("/graph/node/5")) == (code, True)


def test_metadata_of_deleted_nodes_is_one_finding_and_dropped_on_request(tmp_path: Path) -> None:
    text = tmp_path / "m.onnx.json"
    assert run("convert", MODELS / "mobile_dynamo.onnx", "-o", text).exit_code == 0
    for old in ('"output": ["getitem"]', '"input": ["getitem",'):
        assert text.read_text().count(old) == 1
        text.write_text(text.read_text().replace(old, old.replace("getitem", "picked")))
    result = run("check", text)
    assert (result.exit_code, result.stdout.count("\n")) == (1, 1)
    assert "error[unknown-owner]: " in result.stdout
    result = run("check", "--drop-orphans", text)
    assert (result.exit_code, result.stdout.count("\n")) == (0, 1)
    assert "warning[moved-metadata]: " in result.stdout


def test_a_deleted_node_is_reported_with_its_metadata_and_with_what_used_it(tmp_path: Path) -> None:
    nodes = [{"op_type": "Relu", "output": ["y"], "input": ["gone"]}]
    graph = {"name": "g", "input": [{"name": "x", "type": "float32[2]"}], "output": [{"name": "y"}], "node": nodes}
    graph["element_metadata"] = [["node", "gone", "key", "text"]]
    path = tmp_path / "m.onnx.json"
    path.write_text(json.dumps({"format": "onnxjson/1", "ir_version": 9, "opset_import": {"": 20}, "graph": graph}))
    found = json.loads(run("check", path, "--json").stdout)
    assert sorted(each["code"] for each in found) == ["undefined-input", "unknown-owner"]
