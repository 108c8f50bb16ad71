"""`git onnxdiff ... -- PATH` and its revisions mean what they mean to `git diff`."""

import json
from pathlib import Path
from typing import Any

import pytest

from onnxjson.git.revisions import is_range, literal_path
from tests.cli.running import run
from tests.git.small_models import binary

NAMES = ("m.onnx", "[m].onnx", "sub/n.onnx", "weights")

PATHSPECS = ["m.onnx", "*.onnx", ":(literal)m.onnx", ":(literal)[m].onnx", "[m].onnx", ":(icase)M.ONNX", ":!foo",
             ":!m.onnx", ":^sub", ":/", ":/m.onnx", ":(top)m.onnx", ":(glob)**/*.onnx", ":(top,literal)[m].onnx",
             "./m.onnx", ".", "sub", "sub/", "*.nothing", ":/*.onnx", "weights",
             ":(top)weights", ":/weights", ":/!sub", ":/^m.onnx", ":/:m.onnx", "://m.onnx", ":/:!sub"]  # fmt: skip


@pytest.fixture
def two(repository: Any) -> Any:
    """A repository with two commits, in which every model and one file of another name changed."""
    for content, message in ((binary(), "base"), (binary(alpha=0.2), "changed")):
        for name in NAMES:
            repository.write(name, content)
        repository.commit(message)
    repository.git("branch", "topic")
    return repository


def compared(*words: str) -> tuple[int, list[str]]:
    """The exit code, and the files on the second side."""
    result = run("diff", "--git", "--format", "json", *words)
    found = json.loads(result.stdout)["files"] if result.stdout else []
    return result.exit_code, [(each["new"] or each["old"]).rpartition(":")[2] for each in found]


def by_git(repository: Any, *words: str) -> list[str]:
    """The files that `git diff` lists."""
    return [
        name for name in repository.git("-C", str(Path.cwd()), "diff", "--name-only", "-z", *words).split("\0") if name
    ]


@pytest.mark.parametrize("folder", ["", "sub"])
@pytest.mark.parametrize("sides", [("HEAD~1", "HEAD"), ("--staged", "HEAD~1"), ("HEAD~1",)])
def test_files_are_those_of_git(two: Any, folder: str, sides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(two.top / folder)
    for pathspec in PATHSPECS if len(sides) == 1 else PATHSPECS[::3]:
        code, found = compared(*sides, "--", pathspec)
        wanted = by_git(two, *sides, "--", pathspec)
        if "weights" not in pathspec:
            wanted = [name for name in wanted if name.endswith(".onnx")]
        if sides == ("HEAD~1",):  # what is on the disk is named from here
            found = [str((Path.cwd() / name).resolve().relative_to(two.top.resolve())) for name in found]
        assert sorted(found) == sorted(wanted), pathspec
        is_missing = not wanted and literal_path(pathspec, two.top) is not None
        assert code == (66 if is_missing else bool(wanted)), pathspec


def test_several_are_taken_together_and_one_that_git_does_not_know_is_said(two: Any) -> None:
    assert compared("HEAD~1", "HEAD", "--", "*.onnx", ":!sub", ":(exclude,glob)[[]*") == (1, ["m.onnx"])
    result = run("diff", "HEAD~1", "HEAD", "--", ":(nothing)m.onnx")
    assert result.exit_code == 66
    assert "git rejects the arguments after --: fatal: Invalid pathspec magic 'nothing'" in result.stderr


@pytest.mark.parametrize("sides", [("HEAD~1", "HEAD"), ("--staged", "HEAD~1"), ("HEAD~1",), ()])
def test_broken_repository_is_not_blamed_on_a_pathspec(two: Any, sides: tuple[str, ...]) -> None:
    if sides == ("HEAD~1", "HEAD"):
        name = two.git("rev-parse", "HEAD:sub")
        (two.top / ".git/objects" / name[:2] / name[2:]).unlink()
    else:
        two.write(".git/index", b"garbage")
    result = run("diff", "--git", *sides, "--", "*.onnx", "m.onnx")
    assert result.exit_code == 74
    assert "git cannot compare: " in result.stderr
    assert "behind --" not in result.stderr


def test_model_that_was_renamed_is_found_by_either_name(two: Any) -> None:
    two.git("mv", "m.onnx", "new.onnx")
    two.commit("renamed", **{"new.onnx": binary(alpha=0.2, beta=0.75)})
    for pathspec in ("new.*", "m.*"):
        result = run("diff", "HEAD~1", "HEAD", "--format", "json", "--", pathspec)
        assert [each["status"] for each in json.loads(result.stdout)["files"]] == ["renamed"]


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [
        (("..topic",), None, None), (("HEAD~1..",), "HEAD~1", "HEAD"), (("topic^!",), "topic^1", "topic"),
        (("topic^-",), "topic^1", "topic"), (("topic^-1",), "topic^1", "topic"),
        (("main~1^{tree}", "main^{tree}"), "main~1^{tree}", "main^{tree}"), (("...topic",), None, None),
    ],
)  # fmt: skip
def test_revisions_are_those_of_git(two: Any, words: tuple[str, ...], old: str | None, new: str | None) -> None:
    result = run("diff", *words, "--format", "json", "--git")
    assert result.exit_code == (0 if old is None else 1), result.stderr
    found = {(each["old"], each["new"]) for each in json.loads(result.stdout)["files"]}
    assert found == ({(f"{old}:{name}", f"{new}:{name}") for name in NAMES[:3]} if old is not None else set())
    assert by_git(two, *words) == ([] if old is None else sorted(NAMES))


def test_tree_is_compared_with_what_is_on_the_disk_and_a_first_commit_with_nothing(two: Any) -> None:
    assert compared("main~1^{tree}") == (1, ["[m].onnx", "m.onnx", "sub/n.onnx"])
    result = run("diff", "main~1^!", "--format", "json")
    assert {each["status"] for each in json.loads(result.stdout)["files"]} == {"added"}
    assert '"main^2" is not a revision' in run("diff", "main^-2").stderr


def test_paths_with_dots_are_no_ranges() -> None:
    assert not any(map(is_range, ("..", "../m.onnx", "../..", "./a..b", "a/../b", "/a..b", "m.onnx", ".../x")))
    assert all(map(is_range, ("..t", "...t", "a..b", "a...b", "a..", "t^!", "t^-", "t^-2")))
