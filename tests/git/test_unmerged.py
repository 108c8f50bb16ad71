"""`onnxjson conflicts` names every model that git has not merged, also where no conflict stands in it."""

import errno
import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from onnxjson.git.unmerged_models import unmerged
from tests.cli.running import run
from tests.git.test_merge_driver import OURS, RIVAL, Merging, stored
from tests.merging.models import BASE

TEXT, BINARY = "m.onnx.json", "m.onnx"


@pytest.fixture
def merging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Merging:
    """A repository in which main and topic changed one slot differently, and which is the current folder."""
    repository = Merging(tmp_path / "r", getattr(request, "param", BINARY), theirs=RIVAL)
    monkeypatch.chdir(repository.top)
    return repository


def listed() -> list[tuple[str, str]]:
    """The files and states of what is listed; what a person reads says the same."""
    result, found = run("conflicts"), json.loads(run("conflicts", "--json").stdout)
    assert result.exit_code == (16 if found else 0)
    for each in found:
        assert f"{each['file']}: not merged by git ({each['state']}): {each['what']}\n" in result.stdout
        assert f"       {each['advice']}\n" in result.stdout
    return [(each["file"], each["state"]) for each in found]


def advised(repository: Merging) -> list[str]:
    """The first command of each piece of advice, which is run."""
    commands = [each.advice.split(" keeps ")[0].split(" merges ")[0].split(" restores ")[0].split(" records ")[0]
                for each in unmerged(Path()).leftovers]  # fmt: skip
    for command in commands:
        words = shlex.split(command)
        if words[0] == "git":
            subprocess.run(words, cwd=Path.cwd(), check=True, capture_output=True)
        else:
            assert run(*words[1:]).exit_code in (0, 16)
    return commands


@pytest.mark.parametrize(("branch", "other", "state"), [("main", "gone", "UD"), ("gone", "main", "DU")])
def test_change_of_what_the_other_side_removed(merging: Merging, branch: str, other: str, state: str) -> None:
    merging.git("checkout", "-q", "-b", "gone", "main~1")
    merging.git("rm", "-q", BINARY)
    merging.git("commit", "-q", "-m", "gone")
    assert listed() == []
    merging.git("checkout", "-q", branch)
    assert merging.run("merge", other) == 1
    assert listed() == [(BINARY, state)]
    assert advised(merging) == [f"git add -- {BINARY}"]
    assert listed() == []


def test_two_new_names_of_one_model(merging: Merging) -> None:
    for branch, name in (("main", "mine.onnx"), ("topic", "its name.onnx")):
        merging.git("checkout", "-q", "-B", f"{branch}2", "main~1")
        merging.git("mv", BINARY, name)
        merging.git("commit", "-q", "-m", "moved")
    assert merging.run("merge", "main2") == 1
    assert listed() == [("its name.onnx", "AU"), (BINARY, "DD"), ("mine.onnx", "UA")]
    assert advised(merging) == ["git add -- 'its name.onnx'", f"git rm -- {BINARY}", "git add -- mine.onnx"]
    assert listed() == []


def test_what_an_octopus_leaves_is_merged_by_structure(merging: Merging) -> None:
    merging.git("checkout", "-q", "-b", "third", "main~1")
    assert merging.run("merge", "main", "topic") == 1
    assert listed() == [(BINARY, "UU")]
    assert "the file is that of ours alone" in run("conflicts").stdout
    assert advised(merging) == [f"onnxjson merge :1:{BINARY} :2:{BINARY} :3:{BINARY} -o {BINARY}"]
    assert run("conflicts").stdout.startswith(f"{BINARY}: 1 conflict\n")


@pytest.mark.parametrize("merging", [TEXT], indirect=True)
def test_markers_of_git_are_named_from_a_subfolder(merging: Merging, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = merging.write("it's a folder/other.txt", b"").parent
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ONNXJSON_GIT", "off")
    assert merging.run("merge", "topic") == 1
    assert b"<<<<<<<" in merging.path.read_bytes()
    assert listed() == [(f"../{TEXT}", "UU")]
    assert "git merged its lines and left markers in it" in run("conflicts").stdout
    assert advised(merging) == [f"onnxjson merge :1:{TEXT} :2:{TEXT} :3:{TEXT} -o ../{TEXT}"]
    assert run("conflicts").stdout.startswith(f"../{TEXT}: 1 conflict\n")


def test_settled_model_is_listed_until_git_is_told(merging: Merging) -> None:
    assert merging.run("merge", "topic") == 1
    assert run("resolve", BINARY, "--theirs").exit_code == 0
    assert listed() == [(BINARY, "UU")]
    assert "it no longer has conflicts" in run("conflicts").stdout
    assert run("conflicts").stdout.endswith(f"if the file is right: git add -- {BINARY}\n")
    merging.git("add", BINARY)
    assert listed() == []


def test_file_that_cannot_be_read_is_said_and_does_not_end_the_list(
    merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    merging.git("checkout", "-q", "-b", "third", "main~1")
    assert merging.run("merge", "main", "topic") == 1
    opened = Path.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:  # the mode of a file means nothing to root
        if path.name == BINARY:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    assert listed() == [(BINARY, "UU")]
    assert "both sides changed it, and the file cannot be read\n" in run("conflicts").stdout


def test_conflicts_in_a_text_of_any_name_are_listed(merging: Merging) -> None:
    assert merging.run("merge", "topic") == 1
    content = merging.path.read_bytes()
    for name in ("m.json", "n.onnx~topic"):
        merging.write(name, content)
        merging.git("add", name)
    assert [str(path) for path in unmerged(Path()).models] == ["m.json", BINARY, "n.onnx~topic"]
    assert unmerged(Path()).leftovers == []


def test_models_added_on_both_sides_without_a_driver(merging: Merging) -> None:
    merging.write(".gitattributes", b"*.onnx binary\n")
    merging.commit("mine", **{"n.onnx": stored(OURS(BASE), merging.top.parent, "n.onnx")})
    merging.git("checkout", "-q", "topic")
    merging.write(".gitattributes", b"*.onnx binary\n")
    merging.commit("its", **{"n.onnx": stored(RIVAL(BASE), merging.top.parent, "n.onnx")})
    assert merging.run("merge", "main") == 1
    assert listed() == [(BINARY, "UU"), ("n.onnx", "AA")]
    assert advised(merging)[1] == "git checkout --ours -- n.onnx"


def test_files_that_are_no_models_are_for_git_alone(merging: Merging) -> None:
    for branch, content in (("main", b"1\n"), ("topic", b"2\n")):
        merging.git("checkout", "-q", "-B", f"{branch}2", f"{branch}~1")
        merging.commit("more", **{"package.json": content})
    assert merging.run("merge", "main2") == 1
    assert listed() == []
