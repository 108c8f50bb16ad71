"""`git mergetool -t onnxjson` with real git: a path counts as merged when no conflict of it is left, and only then."""

import subprocess
import sys
from pathlib import Path

import pytest

import onnxjson
from onnxjson.git import driver_lines
from tests.cli.running import run
from tests.git.conftest import Repository
from tests.merging.models import BASE, Change, attribute, both, metadata

OURS = both(metadata("ours", "1"), attribute(1, "alpha", 0.2))
THEIRS = metadata("theirs", "1")
RIVAL = attribute(1, "alpha", 0.3)

NAMES = ["m.onnx", "m.onnx.json", "it's; $(touch sprung) m.onnx", "a folder/%P$HOME.onnx", "REV:m.onnx"]


def merging(top: Path, name: str, change: Change, *, has_driver: bool = True) -> Repository:
    """A repository in which a merge of main and topic stands still, or is through."""
    repository = Repository(top)
    for key, value in driver_lines.settings_for(sys.executable).items():
        if key.startswith("mergetool") or has_driver:
            repository.git("config", key, value)
    attributes = b"*.onnx* merge=onnx\n" if has_driver else b"*.onnx* binary\n"
    repository.commit("base", **{name: content(top, name, BASE), ".gitattributes": attributes})
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit("theirs", **{name: content(top, name, change(BASE))})
    repository.git("checkout", "-q", "main")
    repository.commit("ours", **{name: content(top, name, OURS(BASE))})
    call(repository, "merge", "topic")
    return repository


def content(top: Path, name: str, model: onnxjson.Model) -> bytes:
    """A model as a file of that name holds it."""
    made = top.parent / ("made.onnx.json" if name.endswith(".json") else "made.onnx")
    onnxjson.save(model, made)
    return made.read_bytes()


def call(repository: Repository, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of git that may fail."""
    return subprocess.run(
        ["git", *arguments],
        cwd=repository.top,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.mark.parametrize("name", [*NAMES, "-o.onnx"])
def test_without_a_terminal_conflicts_are_listed_and_stand(tmp_path: Path, name: str) -> None:
    repository = merging(tmp_path / "r", name, RIVAL)
    before = (repository.top / name).read_bytes()
    result = call(repository, "mergetool", "-y", "-t", "onnxjson")
    assert result.returncode != 0
    assert "/graph/node/1/attribute/alpha" in result.stdout
    assert "no terminal" in result.stderr
    assert (repository.top / name).read_bytes() == before
    assert repository.git("diff", "--name-only", "--diff-filter=U", "-z") == f"{name}\0"
    assert not list(repository.top.rglob("sprung*"))


@pytest.mark.parametrize("name", NAMES)
def test_path_without_conflicts_left_is_added(tmp_path: Path, name: str) -> None:
    repository = merging(tmp_path / "r", name, RIVAL)
    assert run("resolve", "--theirs", "--", repository.top / name).exit_code == 0
    assert call(repository, "mergetool", "-y", "-t", "onnxjson").returncode == 0
    assert repository.git("ls-files", "-u") == ""
    assert onnxjson.load(repository.top / name).graph == RIVAL(BASE).graph


@pytest.mark.parametrize("name", ["m.onnx", "m.onnx.json"])
def test_what_git_merged_without_the_driver_is_merged_by_the_tool(tmp_path: Path, name: str) -> None:
    repository = merging(tmp_path / "r", name, THEIRS, has_driver=False)
    assert onnxjson.load(repository.top / name) == OURS(BASE)  # one side, as git leaves what it cannot merge
    assert call(repository, "mergetool", "-y", "-t", "onnxjson").returncode == 0
    merged = onnxjson.load(repository.top / name)
    assert {entry.key for entry in merged.metadata_props} == {"ours", "theirs"}
    assert repository.git("ls-files", "-u") == ""


def test_one_side_that_git_left_is_not_taken_for_a_merge(tmp_path: Path) -> None:
    repository = merging(tmp_path / "r", "m.onnx", RIVAL, has_driver=False)
    assert call(repository, "mergetool", "-y", "-t", "onnxjson").returncode != 0
    assert repository.git("ls-files", "-u") != ""


def test_model_that_both_sides_added_is_listed_whole(tmp_path: Path) -> None:
    repository = merging(tmp_path / "r", "m.onnx", THEIRS)
    repository.commit("mine", **{"n.onnx": content(repository.top, "n.onnx", OURS(BASE))})
    repository.git("checkout", "-q", "topic")
    repository.commit("its", **{"n.onnx": content(repository.top, "n.onnx", RIVAL(BASE))})
    call(repository, "merge", "main")
    result = call(repository, "mergetool", "-y", "-t", "onnxjson", "n.onnx")
    assert result.returncode != 0
    assert "the whole model" in result.stdout


@pytest.mark.parametrize("line", ["/nowhere/python", "sh -c 'kill -KILL $$' -", "sh -c 'exit 70' -"])
def test_broken_tool_leaves_the_path_as_it_was(tmp_path: Path, line: str) -> None:
    repository = merging(tmp_path / "r", "m.onnx", RIVAL)
    key = driver_lines.MERGETOOL
    command = driver_lines.settings_for("/the/python")[key]
    repository.git("config", key, command.replace("/the/python", line))
    before = (repository.top / "m.onnx").read_bytes()
    assert call(repository, "mergetool", "-y", "-t", "onnxjson").returncode != 0
    assert (repository.top / "m.onnx").read_bytes() == before
    assert repository.git("ls-files", "-u") != ""


@pytest.mark.parametrize("count", [2, 3, 5])
def test_wrong_number_of_files_is_said(count: int) -> None:
    assert run("mergetool", *["m.onnx"] * count).exit_code == 2
