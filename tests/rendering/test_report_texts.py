"""Results of the functions have the reports of the commands."""

import html
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import onnxjson
from onnxjson.cli.group import onnxjson as group
from onnxjson.example import write_example


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_example(Path("a.onnx"), unfused=True)
    write_example(Path("b.onnx"))
    return tmp_path


def _printed(*words: str) -> str:
    return CliRunner().invoke(group, list(words)).stdout


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("form", ["json", "markdown", "html"])
def test_difference_has_the_reports_of_the_command(form: str) -> None:
    text: str = getattr(onnxjson.diff("a.onnx", "b.onnx"), f"to_{form}")()
    assert text == _printed("diff", "a.onnx", "b.onnx", "--format", form)


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("form", ["json", "markdown", "html"])
def test_trace_has_the_reports_of_the_command(form: str) -> None:
    onnxjson.write_trace(onnxjson.optimize("b.onnx", "prune", "onnxruntime"), "steps")
    text: str = getattr(onnxjson.load_trace("steps"), f"to_{form}")()
    assert text == _printed("trace", "steps", "--format", form)


@pytest.mark.usefixtures("models")
def test_data_are_those_of_the_commands() -> None:
    verified = json.loads(onnxjson.verify("a.onnx", "b.onnx").to_json())
    assert {**verified, "base": "a.onnx", "target": "b.onnx"} == json.loads(
        _printed("verify", "a.onnx", "b.onnx", "--json")
    )
    ran: dict[str, Any] = json.loads(onnxjson.run("b.onnx").to_json())
    assert ran["runs"][0]["outputs"] == json.loads(_printed("run", "b.onnx", "--json"))["runs"][0]["outputs"]


def test_findings_of_a_file_have_their_places(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx.json"
    write_example(tmp_path / "b.onnx")
    onnxjson.convert(tmp_path / "b.onnx", path)
    path.write_text(path.read_text(encoding="utf-8").replace('"Softmax"', '"SoftMax"'), encoding="utf-8")
    (found,) = onnxjson.check(path)
    assert (found.code, found.line > 0, found.file) == ("unknown-operator", True, str(path))
    (of_model,) = onnxjson.check(onnxjson.load(path)).errors
    assert (of_model.message, of_model.line) == (found.message, 0)
    assert json.loads(onnxjson.check(path).to_json())[0]["code"] == "unknown-operator"


def test_deep_check_of_a_model_runs_onnx(tmp_path: Path) -> None:
    write_example(tmp_path / "b.onnx")
    model = onnxjson.load(tmp_path / "b.onnx")
    assert onnxjson.check(model, deep=True) == ()
    assert onnxjson.check(tmp_path / "b.onnx", deep=True) == ()
    proto = onnxjson.to_proto(model)
    proto.graph.node[-1].attribute[0].i = 7
    broken = onnxjson.from_proto(proto)
    assert onnxjson.check(broken, deep=True).errors


@pytest.mark.usefixtures("models")
def test_conflicts_have_the_values_of_all_sides() -> None:
    base = onnxjson.load("b.onnx")
    ours, theirs = (base.select("op:LeakyRelu").set_attribute("alpha", value) for value in (0.2, 0.5))
    onnxjson.save(theirs, "theirs.onnx")
    merged = onnxjson.merge("b.onnx", ours, "theirs.onnx")
    (conflict,) = json.loads(merged.to_json())
    assert (conflict["at"], '"f": 0.5' in conflict["theirs"]) == ("/graph/node/1/attribute/alpha", True)


@pytest.mark.usefixtures("models")
def test_notebook_shows_models_and_differences() -> None:
    model = onnxjson.load("b.onnx").tensor("image").rename("<script>alert(1)</script>\x1b")
    shown = model._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown
    assert "\x1b" not in shown
    assert shown.startswith('<pre style="font-family: monospace">')
    diff = onnxjson.diff("a.onnx", model)
    assert html.unescape(diff._repr_html_().partition('srcdoc="')[2]).startswith(diff.to_html())


def test_anything_else_has_no_report() -> None:
    with pytest.raises(TypeError, match="int has no report"):
        onnxjson.report_text(1, "json")
