"""A merge driver that is missing, crashes, is killed, hangs or finds no room: git stops, and no side is lost.

Whatever git was asked for, afterwards nothing claims to be merged: no reference moved, no path is unmerged, no merge is
under way that a commit would end, and the file is what it was or gone.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import onnxjson
from onnxjson.git import driver_lines
from tests.git.conftest import Repository
from tests.git.test_merge_driver import OURS, THEIRS, Merging
from tests.merging.models import BASE, metadata

LINE = driver_lines.settings_for(sys.executable)["merge.onnx.driver"]
PYTHON = shlex.quote(sys.executable)

STATES = {
    "missing": "/nowhere/python",
    "crashing": "sh -c 'exit 70' -",
    "ending as if all was well, with findings": "sh -c 'exit 1' -",
    "killed": "sh -c 'kill -KILL $$' -",
    "killed with its guard": "sh -c 'kill -KILL $PPID' -",
    "out of disk": f"""sh -c 'ulimit -f 0; exec "$@"' - {PYTHON}""",
    "out of memory": f"""sh -c 'ulimit -v 20000; exec "$@"' - {PYTHON}""",
    "writing half": """sh -c 'head -c 100 "$5" >"$9"; exit 1' -""",
    "writing half, killed": """sh -c 'head -c 100 "$5" >"$9"; kill -KILL $$' -""",
}


def merge(_: Merging) -> list[str]:
    return ["merge", "topic"]


def recursive(_: Merging) -> list[str]:
    return ["merge", "-s", "recursive", "topic"]


def rebase(_: Merging) -> list[str]:
    return ["rebase", "topic"]


def cherry_pick(_: Merging) -> list[str]:
    return ["cherry-pick", "topic"]


def revert(repository: Merging) -> list[str]:
    repository.git("merge", "-q", "topic")
    return ["revert", "--no-edit", "topic"]


def stash_pop(repository: Merging) -> list[str]:
    repository.git("checkout", "-q", "HEAD~1")
    repository.write("m.onnx", repository.bytes_of(OURS(BASE)))
    repository.git("stash", "-q")
    repository.git("checkout", "-q", "topic")
    return ["stash", "pop"]


def merge_tree(_: Merging) -> list[str]:
    return ["merge-tree", "--write-tree", "main", "topic"]


def other_work_tree(repository: Merging) -> list[str]:
    other = str(repository.top.parent / "other")
    repository.git("worktree", "add", "-q", "-b", "third", other, "topic")
    return ["-C", other, "merge", "main"]


def cross(repository: Merging) -> None:
    """Each branch merges what the other one was; topic goes on from there, and main is checked out."""
    first, second = repository.git("rev-parse", "main"), repository.git("rev-parse", "topic")
    repository.git("merge", "-q", "-m", "one", second)
    repository.git("checkout", "-q", "topic")
    repository.git("merge", "-q", "-m", "other", first)
    onnxjson.save(metadata("late", "1")(onnxjson.load(repository.path)), repository.path)
    repository.commit("late")
    repository.git("checkout", "-q", "main")


def criss_cross(repository: Merging) -> list[str]:
    cross(repository)
    onnxjson.save(metadata("later", "1")(onnxjson.load(repository.path)), repository.path)
    repository.commit("later")
    return ["merge", "topic"]


def ancestors_only(repository: Merging) -> list[str]:
    """One side has the model as the merge of both common ancestors has it: the driver is needed for these alone."""
    cross(repository)
    return ["merge", "topic"]


def both_added(repository: Merging) -> list[str]:
    repository.git("checkout", "-q", "--orphan", "alone", "topic")
    repository.commit("alone")
    return ["merge", "--allow-unrelated-histories", "main"]


def moved(repository: Merging) -> list[str]:
    repository.git("checkout", "-q", "topic")
    repository.git("mv", "m.onnx", "moved.onnx")
    repository.git("commit", "-q", "-m", "moved")
    repository.git("checkout", "-q", "main")
    return [
        "-c", "merge.renames=true", "-c", "merge.directoryRenames=false", "merge", "-X", "find-renames=10%", "topic",
    ]  # fmt: skip


def patch(repository: Merging) -> list[str]:
    repository.git("format-patch", "-q", "--binary", "--full-index", "-o", str(repository.top.parent), "main..topic")
    return ["am", "-3", str(repository.top.parent / "0001-theirs.patch")]


SCENES: dict[str, Callable[[Merging], list[str]]] = {
    each.__name__: each
    for each in (
        merge,
        recursive,
        rebase,
        cherry_pick,
        revert,
        stash_pop,
        merge_tree,
        other_work_tree,
        criss_cross,
        ancestors_only,
        both_added,
        moved,
        patch,
    )
}


def _cases(whats: Iterable[str], *, always: str) -> list[Any]:
    """Everything with three scenes, one thing with all; the rest is the long part of the proof."""
    always_scenes = ("merge", "stash_pop", "ancestors_only")
    marks = {
        (scene, what): () if what == always or scene in always_scenes else pytest.mark.exhaustive
        for scene in SCENES
        for what in whats
    }
    return [pytest.param(*case, marks=mark) for case, mark in marks.items()]


class State:
    """What git says of a repository, before and after."""

    def __init__(self, repository: Repository) -> None:
        self.references = repository.git(
            "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/stash"
        )
        self.files = {
            str(path.relative_to(repository.top.parent)): path.read_bytes()
            for top in (repository.top, repository.top.parent / "other")
            for path in top.rglob("*.onnx")
        }


def assert_nothing_is_merged(repository: Merging, before: State) -> None:
    after = State(repository)
    assert after.references == before.references
    for folder in [repository.top, *(path for path in [repository.top.parent / "other"] if path.exists())]:
        here = ["-C", str(folder)]
        assert repository.git(*here, "ls-files", "-u") == ""
        for name in ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"):
            assert not Path(folder, repository.git(*here, "rev-parse", "--git-path", name)).exists(), name
        assert repository.git(*here, "diff", "--name-only", "--cached") == ""
    # In a rebase git has gone to the other branch before it merges.
    known = {*before.files.values(), repository.bytes_of(THEIRS(BASE))}
    assert set(after.files.values()) <= known


@pytest.mark.parametrize(("scene", "state"), _cases(STATES, always="killed with its guard"))
def test_broken_driver_stops_git_and_loses_nothing(tmp_path: Path, scene: str, state: str) -> None:
    repository = Merging(tmp_path / "r", "m.onnx")
    words = SCENES[scene](repository)
    assert PYTHON in LINE
    repository.use_driver(LINE.replace(PYTHON, STATES[state], 1))
    before = State(repository)
    assert repository.run(*words) != 0
    assert_nothing_is_merged(repository, before)


@pytest.mark.parametrize("scene", SCENES)
def test_same_with_a_healthy_driver_succeeds(tmp_path: Path, scene: str) -> None:
    repository = Merging(tmp_path / "r", "m.onnx")
    words = SCENES[scene](repository)
    assert repository.run(*words) == (1 if scene == "both_added" else 0)


@pytest.mark.parametrize(("scene", "ending"), _cases(("SIGINT", "SIGTERM", "SIGKILL"), always="SIGINT"))
def test_driver_that_hangs_is_ended_with_git_and_loses_nothing(tmp_path: Path, scene: str, ending: str) -> None:
    repository = Merging(tmp_path / "r", "m.onnx")
    words = SCENES[scene](repository)
    started = tmp_path / "started"
    repository.use_driver(LINE.replace(PYTHON, f"sh -c 'touch {started}; sleep 60' -", 1))
    before = State(repository)
    with subprocess.Popen(["git", *words], cwd=repository.top, start_new_session=True, stderr=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL) as process:  # fmt: skip
        end = time.monotonic() + 30
        while not started.exists():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.01)
        os.killpg(process.pid, signal.Signals[ending])
        assert process.wait(10) != 0
    for lock in (repository.top / ".git").rglob("*.lock"):
        lock.unlink()
    assert_nothing_is_merged(repository, before)


def test_edit_that_git_takes_to_another_branch_is_found_again(tmp_path: Path) -> None:
    """`git checkout -m` gives up after it has put the other branch's file there; what was edited it has stored."""
    repository = Merging(tmp_path / "r", "m.onnx")
    repository.git("checkout", "-q", "HEAD~1")
    edited = repository.write("m.onnx", repository.bytes_of(metadata("edited", "1")(BASE))).read_bytes()
    repository.use_driver(LINE.replace(PYTHON, STATES["missing"], 1))
    assert repository.run("checkout", "-m", "topic") != 0
    (tree,) = repository.git("fsck", "--lost-found").removeprefix("dangling tree ").splitlines()
    repository.git("restore", "--source", tree, "m.onnx")
    assert repository.path.read_bytes() == edited


def test_python_that_moved_away_is_named_with_what_to_do(tmp_path: Path) -> None:
    line = driver_lines.settings_for("/nowhere/python")["merge.onnx.driver"]
    (tmp_path / "ours").write_text("mine")
    for mark, value in {"%A": "ours", "%O": "base", "%B": "theirs", "%L": "7", "%P": "m.onnx"}.items():
        line = line.replace(mark, value)
    result = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 130
    assert result.stderr.endswith("onnxjson cannot start: /nowhere/python; run onnxjson git install again\n")
