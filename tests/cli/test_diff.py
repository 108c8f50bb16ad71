"""``onnxjson diff``."""

import os
from pathlib import Path

import pytest

from tests.cli.running import run, run_process
from tests.cli.terminal import Terminal


@pytest.fixture
def leaky(text: Path) -> Path:
    """The text with another alpha."""
    path = text.with_name("leaky.onnx.json")
    path.write_text(text.read_text(encoding="utf-8").replace('"alpha": 0.01', '"alpha": 0.2'), encoding="utf-8")
    return path


def test_same_model_in_two_forms_prints_nothing_and_exits_0(binary: Path, text: Path) -> None:
    result = run("diff", binary, text)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_different_models_exit_1(binary: Path, leaky: Path) -> None:
    result = run("diff", binary, leaky, "-U", "0")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[2:] == [
        '@@ -26 +26 @@ {"op_type": "LeakyRelu", "output": ["active"]',
        '-       "alpha": 0.01',
        '+       "alpha": 0.2',
    ]
    assert result.stderr == ""


def test_exit_zero_is_for_differences_only(binary: Path, leaky: Path) -> None:
    result = run("diff", "--exit-zero", binary, leaky)
    assert result.exit_code == 0
    assert result.stdout
    assert run("diff", "--exit-zero", binary, binary.with_name("none")).exit_code == 66


def test_trouble_exits_above_1(binary: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx.json"
    broken.write_text("{")
    result = run("diff", binary, broken)
    assert result.exit_code == 65
    assert "broken.onnx.json:1:" in result.stderr


def test_weights_are_compared_by_their_sha256_wherever_they_stand(binary: Path, tmp_path: Path) -> None:
    for mode in ("blobs", "digest"):
        apart = tmp_path / mode / "m.onnx.json"
        apart.parent.mkdir()
        assert run("convert", binary, "-o", apart, "--weights", mode).exit_code == 0
        assert run("diff", binary, apart).exit_code == 0
        for blob in tmp_path.glob("blobs/m.blobs/*"):
            blob.unlink()
        assert run("diff", apart, binary).exit_code == 0


def test_colours_only_when_asked_for_and_never_in_a_pipe(binary: Path, leaky: Path) -> None:
    assert "\x1b" not in run_process("diff", binary, leaky).stdout
    assert '\x1b[31m-       "alpha": 0.01\x1b[0m' in run_process("diff", "--color", "always", binary, leaky).stdout


def test_terminal_has_colours_and_a_pager(binary: Path, leaky: Path, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged\ncat\n")
    pager.chmod(0o755)
    with Terminal("diff", binary, leaky, more={"PAGER": os.fspath(pager)}) as terminal:
        shown, code = terminal.until_end()
    assert code == 1
    assert "paged" in shown
    assert '\x1b[32m+       "alpha": 0.2' in shown
    with Terminal("diff", binary, leaky, more={"PAGER": "no-such-pager", "NO_COLOR": "1"}) as terminal:
        shown, code = terminal.until_end()
    assert code == 1
    assert '+       "alpha": 0.2' in shown
    assert "\x1b" not in shown


def test_pager_that_ends_early_is_no_failure(binary: Path, leaky: Path) -> None:
    with Terminal("diff", binary, leaky, more={"PAGER": "true"}) as terminal:
        shown, code = terminal.until_end()
    assert (shown, code) == ("", 1)
