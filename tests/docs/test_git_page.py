"""docs/git.md: the job for pull requests does what the page says, in a repository where a request is merged."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.git.conftest import Repository
from tests.git.small_models import binary, text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "git.md").read_text(encoding="utf-8")


def steps() -> dict[str, str]:
    """The commands of the job, by the name of their step."""
    job = next(block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "pull_request" in block)
    found = {}
    for name, body in re.findall(r"- name: ([^\n]+)\n(.*?)(?=\n      - |\Z)", job, re.DOTALL):
        lines = re.search(r"run: (?:\|\n(.*)|([^\n]+))", body, re.DOTALL)
        assert lines is not None
        found[name] = re.sub(r"^ {10}", "", lines[1] or lines[2], flags=re.MULTILINE)
    return found


@pytest.fixture
def request_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository as the server checks it out: the merge of a branch, whose commits are its parents."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    repository = Repository(tmp_path / "repository")
    for key in ("name", "email"):
        repository.git("config", f"user.{key}", "t@example.org")
    repository.commit("one", **{"m.onnx.json": text(), "b.onnx": binary()})
    repository.git("checkout", "-q", "-b", "request")
    repository.commit("theirs", **{"m.onnx.json": text(beta=0.75), "b.onnx": binary(beta=0.75)})
    repository.git("checkout", "-q", "main")
    repository.commit("ours", **{"m.onnx.json": text(alpha=0.2)})
    repository.git("merge", "-q", "-m", "merged", "request")
    repository.git("checkout", "-q", "--detach")
    return repository


def run(command: str, made: Repository) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-e", "-c", command], cwd=made.top, capture_output=True, text=True, timeout=100, check=False
    )


def test_comment_says_what_the_request_changes_and_no_more(request_of: Repository) -> None:
    result = run(steps()["What changed"], request_of)
    assert result.returncode == 0, result.stderr
    comment = (request_of.top / "comment.md").read_text(encoding="utf-8")
    assert comment.count("| attribute-changed | `Elu.alpha`: `alpha: 0.5 -> 0.75` | `second` |") == 2
    assert "LeakyRelu.alpha" not in comment


def test_merge_of_the_server_is_checked_and_compared(request_of: Repository) -> None:
    command = next(command for name, command in steps().items() if name.startswith("The server"))
    server = request_of.git("rev-parse", "HEAD")
    result = run(command, request_of)
    assert result.returncode == 0, result.stdout + result.stderr
    # A merge that lost an edit is found.
    request_of.git("checkout", "-q", "--detach", server)
    request_of.write("m.onnx.json", text(alpha=0.2))
    request_of.git("commit", "-q", "-a", "--amend", "-m", "merged, and lost")
    result = run(command, request_of)
    assert result.returncode != 0
    assert '-       "alpha": 0.5\n+       "alpha": 0.75' in result.stdout


def test_hooks_of_the_page_are_those_of_the_repository() -> None:
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    block = next(block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "repos:" in block)
    assert re.findall(r"- id: (\S+)", block) == re.findall(r"^- id: (\S+)", hooks, re.MULTILINE)
