"""A repository full of traps: reading a model from it runs none of them."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import onnxjson
from onnxjson.git.repository import open_revision
from onnxjson.git.revisions import is_revision_spec
from onnxjson.model.errors import FileError, MissingInputError

MODEL = b'{"format": "onnxjson/1",\n"ir_version": 8,\n"graph": {\n  "name": "g"\n}\n}\n'

READING = """
import sys
sys.path[:0] = [sys.argv[1]]
from onnxjson.git.repository import open_revision
for spec in sys.argv[2:]:
    with open_revision(spec) as checkout:
        print(checkout.loaded.model.graph.name, checkout.path.read_bytes() == checkout.path.read_bytes())
"""


@pytest.fixture
def trap(tmp_path: Path) -> str:
    """A program that leaves a mark if anybody starts it."""
    program = tmp_path / "trap"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\ncat\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def settings(repository: Any, trap: str) -> None:
    for key in (
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "core.alternateRefsCommand",
        "core.gitProxy",
        "credential.helper",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "gpg.program",
        "pager.cat-file",
        "pager.ls-tree",
        "pager.diff-tree",
        "alias.cat-file",
        "alias.ls-tree",
        "uploadpack.packObjectsHook",
    ):
        repository.git("config", key, trap)
    repository.git("config", "log.showSignature", "true")
    repository.git("config", "core.hooksPath", "hooks")


def test_nothing_of_a_repository_runs(repository: Any, trap: str, tmp_path: Path) -> None:
    repository.commit("one", **{"m.onnx.json": MODEL, "old.onnx.json": MODEL + b"\n"})
    repository.git("mv", "old.onnx.json", "new.onnx.json")
    canary = f"open({str(tmp_path / 'sprung')!r}, 'w')\n".encode()
    modules = dict.fromkeys(("json.py", "sitecustomize.py", "usercustomize.py", "onnx.py", "msgspec.py"), canary)
    repository.commit(
        "two", **modules, **{".gitattributes": b"* filter=evil diff=evil merge=evil text eol=crlf ident\n"}
    )
    for hook in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
        for folder in (repository.top / "hooks", repository.top / ".git" / "hooks"):
            folder.mkdir(exist_ok=True)
            (folder / hook).write_bytes(Path(trap).read_bytes())
            (folder / hook).chmod(0o755)
    settings(repository, trap)
    package = str(Path(onnxjson.__file__).parents[1])
    traps = dict.fromkeys(
        ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "PAGER"), trap
    )
    for spec in ("HEAD:m.onnx.json", ":m.onnx.json", "HEAD~1:m.onnx.json"):
        result = subprocess.run(
            [sys.executable, "-I", "-c", READING, package, spec],
            cwd=repository.top,
            env=os.environ | traps | {"GIT_TRACE": str(tmp_path / "trace")},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (result.stdout, result.stderr) == ("g True\n", ""), spec
        with open_revision(spec) as checkout:
            assert checkout.path.read_bytes() == MODEL  # neither CRLF nor a filter
    for spec in ("HEAD~1:new.onnx.json", "HEAD:old.onnx.json", "HEAD:nothing.onnx", "none:m.onnx.json"):
        with pytest.raises(MissingInputError), open_revision(spec):
            pass
    assert not (tmp_path / "sprung").exists()
    assert not (tmp_path / "trace").exists()


def test_object_that_a_partial_clone_left_out_is_not_fetched(
    repository: Any, trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("one", **{"m.onnx.json": MODEL})
    repository.commit("two", **{"m.onnx.json": MODEL.replace(b"8", b"9")})
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--filter=blob:none", f"file://{repository.top}", str(clone))
    monkeypatch.chdir(clone)
    repository.git("-C", str(clone), "config", "remote.origin.uploadpack", trap)
    with open_revision("HEAD:m.onnx.json") as checkout:
        assert checkout.loaded.model.ir_version == 9
    with pytest.raises(FileError, match="partial clone"), open_revision("HEAD~1:m.onnx.json"):
        pass
    assert not (tmp_path / "sprung").exists()


def test_reading_writes_nothing_into_the_repository(repository: Any) -> None:
    repository.commit("one", **{"m.onnx.json": MODEL})
    (repository.top / "m.onnx.json").touch()  # a refreshed index would be written

    def state() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in repository.top.rglob("*")}

    before = state()
    for spec in ("HEAD:m.onnx.json", ":m.onnx.json"):
        with open_revision(spec):
            assert state() == before
    with pytest.raises(MissingInputError), open_revision("HEAD:n.onnx.json"):
        pass
    assert state() == before


@pytest.mark.parametrize("text", ["HEAD\n:m", "HEAD\0:m", "HEAD:m\0", "H\nEAD~1:m.onnx"])
def test_text_that_git_cannot_be_asked_is_no_spec(text: str) -> None:
    assert not is_revision_spec(text)
