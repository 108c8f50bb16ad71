"""What git's own commands show with the lines that are installed: healthy, missing, crashing, killed, off."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onnxjson.git.driver_lines import ATTRIBUTES, settings_for
from tests.git.small_models import binary, text

_BROKEN = {
    "missing": None,
    "crashing": "#!/bin/sh\nexit 3\n",
    "killed": "#!/bin/sh\nkill -9 $$\n",
    "killed after a line": "#!/bin/sh\necho half a\nkill -9 $$\n",
    "not executable": "",
    "ended by an alarm": "#!/bin/sh\nkill -PROF $$\n",
}

COMMANDS = (
    ("diff", "HEAD~1"), ("log", "-p"), ("show",), ("blame", "m.onnx"), ("blame", "m.onnx.json"),
    ("grep", "--textconv", "-c", "", "--", "m.onnx"), ("log", "-S0.2", "--textconv", "--format=%s"),
    ("cat-file", "--textconv", "HEAD:m.onnx"), ("diff", "--word-diff", "HEAD~1"), ("diff", "--stat", "HEAD~1"),
)  # fmt: skip


def set_up(repository: Any, python: str = sys.executable) -> None:
    """Write the settings without trying them out."""
    for key, value in settings_for(python).items():
        repository.git("config", key, value)
    repository.write(".gitattributes", "".join(f"{line}\n" for line in ATTRIBUTES).encode())


@pytest.fixture
def history(repository: Any) -> Any:
    """Two versions of a model in both forms."""
    set_up(repository)
    repository.commit("one", **{"m.onnx": binary(), "m.onnx.json": text()})
    repository.commit("two", **{"m.onnx": binary(alpha=0.2), "m.onnx.json": text(alpha=0.2)})
    return repository


def test_every_command_shows_the_text_of_both_forms(history: Any) -> None:
    for words in (("diff", "HEAD~1"), ("show",), ("log", "-p", "-1")):
        printed = history.git(*words)
        assert printed.count('-       "alpha": 0.1\n+       "alpha": 0.2') == 2, words
        assert printed.count('@@ {"op_type": "LeakyRelu", "output": ["y"]\n') == 2
    assert history.git("diff", "--word-diff", "-U0", "HEAD~1").count('"alpha": [-0.1-]{+0.2+}') == 2
    assert history.git("log", "-S0.2", "--textconv", "--format=%s", "--", "m.onnx") == "two"
    for name in ("m.onnx", "m.onnx.json"):
        lines = history.git("blame", "-s", name).splitlines()
        assert sum(not line.startswith("^") for line in lines) == 1
    assert '"alpha": 0.2' in history.git("grep", "--textconv", "alpha", "--", "m.onnx")


def test_line_log_follows_a_node(history: Any) -> None:
    for place in (':"y"', ":LeakyRelu"):
        printed = history.git("log", "--format=%s", f"-L{place}:m.onnx.json")
        assert [line for line in printed.splitlines() if line in ("one", "two")] == ["two", "one"]
    assert "two" not in history.git("log", "--format=%s", "-L:Elu:m.onnx.json").splitlines()


@pytest.mark.parametrize("what", _BROKEN)
def test_broken_interpreter_never_fails_git(what: str, history: Any, tmp_path: Path) -> None:
    python = tmp_path / "a python"
    script = _BROKEN[what]
    if script is not None:
        python.write_text(script)
        python.chmod(0o755 if script else 0o644)
    set_up(history, str(python))
    for words in COMMANDS:
        assert history.git(*words), words
    shown = history.git("diff", "HEAD~1", "--", "m.onnx")
    assert len(re.findall(r"^[-+]not shown: onnxjson did not run, .*; sha256 [0-9a-f]{64}$", shown, re.MULTILINE)) == 2
    # A text needs nobody to be read.
    assert '-       "alpha": 0.1\n+       "alpha": 0.2' in history.git("diff", "HEAD~1", "--", "m.onnx.json")


def test_switched_off_it_shows_what_is_there(history: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXJSON_GIT", "off")
    big = text().replace(b'"op_type"', b' "op_type"')
    history.write("m.onnx.json", big)
    assert '+    { "op_type": "Elu"' in history.git("diff", "--", "m.onnx.json")
    shown = history.git("diff", "HEAD~1", "HEAD", "--", "m.onnx")
    assert "+not shown: ONNXJSON_GIT=off; sha256 " in shown
    assert "diff --git" in history.git("onnxdiff", "HEAD~1")


def test_damaged_version_in_the_middle_hides_no_other(history: Any) -> None:
    history.commit("three", **{"m.onnx": binary()[:60], "m.onnx.json": text()[:60]})
    history.commit("four", **{"m.onnx": binary(alpha=0.4), "m.onnx.json": text(alpha=0.4)})
    printed = history.git("log", "-p", "--format=%s")
    assert [line for line in printed.splitlines() if line in ("one", "two", "three", "four")] == [
        "four", "three", "two", "one",
    ]  # fmt: skip
    assert printed.count("+not shown: the file is not an ONNX model, or is cut off") == 1


def test_clone_without_the_settings_is_as_usable_as_ever(history: Any, tmp_path: Path) -> None:
    history.git("clone", "-q", str(history.top), str(tmp_path / "clone"))
    printed = subprocess.run(
        ["git", "diff", "HEAD~1"], cwd=tmp_path / "clone", capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert '+       "alpha": 0.2' in printed
    assert "m.onnx differ" in printed


def test_switched_off_a_merge_is_that_of_lines(history: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXJSON_GIT", "off")
    history.git("checkout", "-q", "-b", "side", "HEAD~1")
    history.commit("theirs", **{"m.onnx.json": text(beta=0.75)})
    history.git("checkout", "-q", "main")
    history.git("merge", "-q", "-m", "merged", "side")
    assert (history.top / "m.onnx.json").read_bytes() == text(alpha=0.2, beta=0.75)
    history.git("checkout", "-q", "-b", "third", "main")
    history.commit("ours", **{"m.onnx.json": text(alpha=0.3)})
    history.git("checkout", "-q", "side")
    history.commit("theirs", **{"m.onnx.json": text(alpha=0.4)})
    merged = subprocess.run(["git", "merge", "third"], cwd=history.top, capture_output=True, timeout=60, check=False)
    assert merged.returncode == 1
    content = (history.top / "m.onnx.json").read_bytes()
    assert b"<<<<<<<" in content
    assert b"0.3" in content
    assert b"0.4" in content
