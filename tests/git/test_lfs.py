"""Models in Git LFS, with the real git-lfs: shown, compared, merged, and said where they were not fetched."""

import os
import shutil
import subprocess
from itertools import product
from typing import Any

import pytest

from onnxjson.git import installation
from tests.cli.running import run
from tests.git.small_models import binary, text
from tests.git.test_shown_by_git import set_up

pytestmark = pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")


@pytest.fixture
def tracked(repository: Any) -> Any:
    """A repository in which binaries are in Git LFS; two commits, and theirs on a side branch."""
    repository.git("lfs", "install", "--local")
    set_up(repository)
    repository.git("lfs", "track", "*.onnx")
    installation.put_block(repository.top / ".gitattributes")
    repository.commit("one", **{"m.onnx": binary()})
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("theirs", **{"m.onnx": binary(beta=0.75)})
    repository.git("checkout", "-q", "main")
    repository.commit("two", **{"m.onnx": binary(alpha=0.2)})
    assert repository.git("cat-file", "-p", "HEAD:m.onnx").startswith("version https://git-lfs")
    return repository


def test_what_was_fetched_is_shown_and_compared(tracked: Any) -> None:
    assert '-       "alpha": 0.1\n+       "alpha": 0.2' in tracked.git("log", "-p", "-1")
    tracked.write("m.onnx", binary(alpha=0.3))
    assert '-       "alpha": 0.2\n+       "alpha": 0.3' in tracked.git("diff")
    assert "attribute alpha: 0.2 -> 0.3" in run("diff", "HEAD").stdout


def test_what_was_not_fetched_is_one_line(tracked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_LFS_SKIP_SMUDGE", "1")
    shutil.rmtree(tracked.top / ".git" / "lfs" / "objects")
    shown = tracked.git("log", "-p", "--format=%s")
    assert shown.count("weights not fetched: git lfs pull") == 3
    result = run("diff", "HEAD~1", "HEAD")
    assert result.exit_code == 66
    assert "weights not fetched" in result.stderr


def test_merge_gives_a_pointer_to_the_merged_model(tracked: Any) -> None:
    subprocess.run(["git", "merge", "-q", "-m", "merged", "side"], cwd=tracked.top, check=True, timeout=60)
    assert (tracked.top / "m.onnx").read_bytes() == binary(alpha=0.2, beta=0.75)
    assert tracked.git("cat-file", "-p", "HEAD:m.onnx").startswith("version https://git-lfs")
    assert tracked.git("lfs", "fsck") == "Git LFS fsck OK"
    assert tracked.git("status", "--short") == ""


def test_text_with_blobs_in_lfs_is_shown_without_them(repository: Any) -> None:
    repository.git("lfs", "install", "--local")
    set_up(repository)
    repository.git("lfs", "track", "**/*.blobs/*")
    repository.commit("one", **{"m.onnx.json": text(), f"m.blobs/{'a' * 64}": os.urandom(4096)})
    assert repository.git("cat-file", "-p", f"HEAD:m.blobs/{'a' * 64}").startswith("version https://git-lfs")
    repository.write("m.onnx.json", text(alpha=0.2))
    assert '+       "alpha": 0.2' in repository.git("diff")


@pytest.mark.parametrize("tracked_sides", list(product((False, True), repeat=3)))
@pytest.mark.parametrize("base_is", ["another", "ours", "theirs"])
def test_pointers_on_any_of_the_three_sides(
    repository: Any, tracked_sides: tuple[bool, bool, bool], base_is: str
) -> None:
    repository.git("lfs", "install", "--local")
    set_up(repository)
    own = (repository.top / ".gitattributes").read_bytes()
    models = {"base": binary(), "ours": binary(alpha=0.2), "theirs": binary(beta=0.75)}
    models["base"] = models.get(base_is, models["base"])
    base, ours, theirs = tracked_sides

    def is_pointer() -> bool:
        command = ["git", "cat-file", "blob", "HEAD:m.onnx"]
        return subprocess.check_output(command, cwd=repository.top).startswith(b"version https://git-lfs")

    def commit(side: str, is_tracked: bool) -> None:
        lines = b"*.onnx filter=lfs -text\n" if is_tracked else b""
        repository.write(".gitattributes", lines + own)
        repository.write("m.onnx", models[side])
        repository.git("add", "--renormalize", "-A", ".")
        repository.commit(side)
        assert is_pointer() == is_tracked

    commit("base", base)
    repository.git("checkout", "-q", "-b", "side")
    commit("theirs", theirs)
    repository.git("checkout", "-q", "main")
    commit("ours", ours)
    subprocess.run(["git", "merge", "-q", "-m", "merged", "side"], cwd=repository.top, check=True, timeout=60)
    wanted = {"another": binary(alpha=0.2, beta=0.75), "ours": models["theirs"], "theirs": models["ours"]}[base_is]
    assert is_pointer() == (theirs if ours == base else ours)
    assert (repository.top / "m.onnx").read_bytes() == wanted
    assert repository.git("status", "--short") == ""
    assert repository.git("lfs", "fsck") == "Git LFS fsck OK"
