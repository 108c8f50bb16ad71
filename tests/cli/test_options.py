"""Options that all commands share."""

import json
from pathlib import Path

import pytest

import onnxjson
from onnxjson.model.document import Graph, Model, Node
from tests.cli.running import run
from tests.cli.terminal import Terminal

LONG = "/encoder/" + "block/" * 30 + "Relu"


@pytest.fixture
def long_names(tmp_path: Path) -> Path:
    """A model of two nodes with names that are wider than any terminal."""
    path = tmp_path / "long.onnx.json"
    nodes = [Node(op_type="Relu", name=LONG + end, input=("x",), output=(f"y{end}",)) for end in ("1", "2")]
    onnxjson.save(Model(ir_version=8, graph=Graph(name="g", node=tuple(nodes))), path)
    return path


def test_quiet_leaves_results_and_errors(binary: Path) -> None:
    new = binary.with_name("new.onnx.json")
    assert run("convert", binary, "-o", new, "-q") == (0, "", "")
    assert new.exists()
    assert run("fmt", "--quiet", new).stderr == ""
    assert run("check", "-q", binary).stderr == ""
    assert run("show", binary, "-q").stdout == run("show", binary).stdout
    assert run("convert", "-q", binary.with_name("none.onnx")).stderr.startswith("onnxjson: error[66]: ")
    assert "wrote" in run("convert", binary, "-o", new).stderr


@pytest.mark.parametrize(
    "words", [["show"], ["check"], ["passes"], ["conflicts"], ["run"], ["diff", "M"], ["verify", "M"]], ids=" ".join
)
def test_json_is_the_form_json(binary: Path, words: list[str]) -> None:
    command: list[str | Path] = [binary if word == "M" else word for word in words]
    if words != ["passes"]:
        command.append(binary)
    first, second = run(*command, "--json"), run(*command, "--format", "json")
    assert json.loads(first.stdout).__class__ is json.loads(second.stdout).__class__
    assert first.exit_code == second.exit_code == 0


def test_json_of_a_command_that_writes_has_the_file(binary: Path) -> None:
    place = binary.with_name("new.onnx.json")
    result = run("convert", binary, "-o", place, "--json")
    assert json.loads(result.stdout) == {"written": [str(place)], "remarks": [], "findings": []}
    assert result.stderr == ""
    assert run("convert", binary, "-o", "-", "--json").exit_code == 2


def test_every_report_can_go_to_a_file(binary: Path) -> None:
    place = binary.with_name("found.json")
    assert run("find", binary, "Softmax", "-o", place).exit_code == 0
    assert len(json.loads(place.read_text())) == 1
    text = binary.with_name("findings.txt")
    assert run("check", binary, "--select", "all", "-o", text).stdout == ""
    assert "ONJ203" in text.read_text()


def test_json_contradicts_another_form(binary: Path) -> None:
    result = run("diff", binary, binary, "--json", "--format", "html")
    assert result.exit_code == 2
    assert "--json is --format json" in result.stderr


def test_names_are_whole_off_a_terminal(long_names: Path) -> None:
    shown = run("show", long_names, "op:Relu").stdout
    assert f"{LONG}1" in shown
    assert "…" not in shown
    other = long_names.with_name("other.onnx.json")
    other.write_text(long_names.read_text().replace("Relu", "Sigmoid"))
    for command in (["diff"], ["diff", "-v"], ["show"]):
        assert "…" not in run(*command, long_names, other).stdout


def test_the_width_of_the_terminal_does_not_change_what_a_pipe_gets(
    long_names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = run("show", long_names).stdout
    monkeypatch.setenv("COLUMNS", "300")
    assert run("show", long_names).stdout == shown


def test_names_are_shortened_on_a_terminal_and_whole_in_the_file_that_it_writes(long_names: Path) -> None:
    with Terminal("show", long_names, "op:Relu", "--no-pager") as terminal:
        shown = [line.split()[1] for line in terminal.until_end()[0].splitlines() if "…" in line]
    assert len(set(shown)) == len(shown) > 1
    other, report = long_names.with_name("other.onnx.json"), long_names.with_name("report.txt")
    other.write_text(long_names.read_text().replace('"Relu"', '"Sigmoid"'))
    with Terminal("diff", long_names, other, "-v", "-o", report) as terminal:
        terminal.expect("wrote")
    assert "…" not in report.read_text()


def test_options_behind_the_dashes_are_not_paths(binary: Path) -> None:
    result = run("diff", "main...HEAD", "--", binary, "--format", "markdown")
    assert result.exit_code == 2
    assert "'--format' after -- is read as a path; write options before --" in result.stderr


def test_one_file_to_diff_outside_a_repository_is_a_usage_error(binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(binary.parent)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(binary.parent.parent))
    result = run("diff", binary)
    assert result.exit_code == 2
    assert "diff compares two models; name OLD and NEW" in result.stderr


def test_missing_value_of_an_edit_is_not_a_missing_model(binary: Path) -> None:
    result = run("rewrite", "set-attribute", binary, "op:Conv", "pads", "-i")
    assert result.exit_code == 2
    assert "3 parameters needed, 2 given" in result.stderr
