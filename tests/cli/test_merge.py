"""``onnxjson merge``, ``conflicts`` and ``resolve``: exit codes, what is printed, what is in the files."""

import json
from pathlib import Path

import pytest

import onnxjson
from onnxjson.merging.conflicted_files import save
from onnxjson.merging.merge import merge
from onnxjson.model.conflicts import Conflict
from onnxjson.model.document import Model
from tests.cli.running import run, run_process
from tests.merging.models import BASE, Change, attribute, both, metadata, renamed

OURS = both(attribute(1, "alpha", 0.2), metadata("k", "1"))
THEIRS = both(attribute(1, "alpha", 0.3), metadata("k", "2"))
APART = both(renamed("b", "other"), metadata("j", "1"))


@pytest.fixture
def sides(tmp_path: Path) -> list[Path]:
    return [
        _saved(tmp_path / name, change)
        for name, change in (("b.onnx", both()), ("o.onnx.json", OURS), ("t.onnx", THEIRS))
    ]


def _saved(path: Path, change: Change) -> Path:
    onnxjson.save(change(BASE), path)
    return path


def test_clean_merge_exits_0_and_has_both(tmp_path: Path, sides: list[Path]) -> None:
    other = _saved(tmp_path / "a.onnx", APART)
    out = tmp_path / "out.onnx"
    result = run("merge", sides[0], sides[1], other, "-o", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "wrote" in result.stderr
    keys = {entry.key for entry in onnxjson.load(out).metadata_props}
    assert keys == {"j", "k"}


@pytest.mark.parametrize("name", ["out.onnx", "out.onnx.json"])
def test_conflicts_exit_16_and_are_listed(tmp_path: Path, sides: list[Path], name: str) -> None:
    out = tmp_path / name
    result = run("merge", *sides, "-o", out)
    assert result.exit_code == 16
    assert "out.onnx" in result.stdout
    assert "/graph/node/1/attribute/alpha" in result.stdout
    listed = run("conflicts", out)
    assert (listed.exit_code, listed.stdout) == (16, result.stdout)


def test_conflicts_as_json(tmp_path: Path, sides: list[Path]) -> None:
    out = tmp_path / "out.onnx"
    run("merge", *sides, "-o", out)
    result = run("conflicts", "--json", out)
    assert result.exit_code == 16
    assert [(each["id"], each["at"]) for each in json.loads(result.stdout)] == [
        ("1", "/graph/node/1/attribute/alpha"),
        ("2", "/metadata_props/0"),
    ]


def test_file_without_conflicts_has_none(sides: list[Path]) -> None:
    result = run("conflicts", *sides)
    assert result.exit_code == 0
    assert result.stdout.count("no conflicts") == 3
    assert run("resolve", sides[0], "--ours").exit_code == 2


@pytest.mark.parametrize("command", ["check", "fmt", "fmt --check", "convert", "rewrite", "diff", "run", "edit"])
def test_commands_refuse_while_conflicts_stand(tmp_path: Path, sides: list[Path], command: str) -> None:
    out = tmp_path / "out.onnx.json"
    run("merge", *sides, "-o", out)
    before = out.read_bytes()
    more: dict[str, list[str | Path]] = {
        "convert": ["-o", tmp_path / "x.onnx"],
        "rewrite": ["-i", "set-metadata", "--key", "a", "--value", "b"],
        "diff": [sides[0]],
    }
    words = command.split()
    arguments = [*words[1:], out, *more.get(command, [])]
    if command == "rewrite":
        arguments = ["name-nodes", out, "-i"]
    result = run_process(words[0], *arguments, more={"EDITOR": "true"})
    assert result.exit_code == 16, result.stderr
    assert "error[16]" in result.stderr
    assert out.read_bytes() == before
    assert not (tmp_path / "x.onnx").exists()


def test_show_says_that_conflicts_stand(tmp_path: Path, sides: list[Path]) -> None:
    out = tmp_path / "out.onnx"
    run("merge", *sides, "-o", out)
    result = run("show", out)
    assert result.exit_code == 0
    assert "2 conflicts of a merge" in result.stderr


@pytest.mark.parametrize("name", ["out.onnx", "out.onnx.json"])
def test_resolve_settles_and_gives_the_file_the_form_of_its_name(tmp_path: Path, sides: list[Path], name: str) -> None:
    out = tmp_path / name
    run("merge", *sides, "-o", out)
    result = run("resolve", out, "--theirs", "--id", "2")
    assert (result.exit_code, "1 left" in result.stderr) == (0, True)
    assert run("conflicts", out).exit_code == 16
    assert run("resolve", out, "--ours").exit_code == 0
    expected: Model = both(attribute(1, "alpha", 0.2), metadata("k", "2"))(BASE)
    assert onnxjson.load(out) == expected
    assert out.read_bytes().startswith(b"{") == name.endswith("json")
    assert run("check", out).exit_code == 0


def test_resolve_asks_for_a_side(tmp_path: Path, sides: list[Path]) -> None:
    out = tmp_path / "out.onnx"
    run("merge", *sides, "-o", out)
    assert run("resolve", out).exit_code == 2
    assert run("resolve", out, "--ours", "--id", "7").exit_code == 2


def test_missing_side_exits_66(tmp_path: Path, sides: list[Path]) -> None:
    assert run("merge", sides[0], sides[1], tmp_path / "none.onnx", "-o", tmp_path / "out.onnx").exit_code == 66
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("name", ["out.onnx", "out.onnx.json"])
def test_choices_that_do_not_go_together_are_written_and_exit_1(tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    ours = both(attribute(1, "alpha", 0.2))(BASE)
    # What another choice has already put there: nobody makes "nothing".
    conflict = Conflict("1", "/graph/node/1/input/0", "a", "a", "nothing")
    save(ours, (conflict,), out, "json" if name.endswith("json") else "onnx")
    before = out.read_bytes()
    result = run("resolve", out, "--theirs")
    assert result.exit_code == 1
    assert "now a valid model" not in result.stderr
    assert 'nothing produces the input "nothing"' in result.stderr
    assert "the file is written, and has 1 error" in result.stderr
    assert "git checkout -m" in result.stderr
    assert run("check", out).exit_code == 1
    assert run("undo-save", out).exit_code == 0
    assert out.read_bytes() == before


def test_resolve_refuses_a_base_that_is_not_there(tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    merged = merge(None, OURS(BASE), THEIRS(BASE))
    save(merged.model, merged.conflicts, out, "onnx")
    before = out.read_bytes()
    result = run("resolve", out, "--base")
    assert result.exit_code == 16
    assert "there is no base" in result.stderr
    assert out.read_bytes() == before
