"""``onnxjson demo``."""

from pathlib import Path
from subprocess import CompletedProcess

import onnx
import pytest

from onnxjson.cli import processes
from tests.cli.running import run, run_process


def test_demo_does_what_it_shows_and_shows_what_to_try_next(tmp_path: Path) -> None:
    result = run_process("demo", folder=tmp_path)
    assert result.exit_code == 0, result.stdout + result.stderr
    folder = tmp_path / "onnxjson-demo"
    assert {path.name for path in folder.iterdir()} == {
        "digits.onnx", "digits.onnx.json", "leaky.onnx.json", "leaky.onnx", "exported.onnx", "again.onnx",
        "fast.onnx", "steps",
    }  # fmt: skip
    assert (folder / "again.onnx").read_bytes() == (folder / "digits.onnx").read_bytes()
    digits, leaky = (onnx.load(folder / name) for name in ("digits.onnx", "leaky.onnx"))
    (alpha,) = leaky.graph.node[1].attribute
    assert alpha.f == pytest.approx(0.2)
    digits.graph.node[1].attribute[0].f = alpha.f
    assert digits == leaky
    lines = result.stdout.splitlines()
    assert "$ onnxjson convert digits.onnx" in lines
    assert '-       "alpha": 0.01' in lines
    assert '+       "alpha": 0.2' in lines
    assert "fused              MatMul+Add -> Gemm                             verified equal" in lines
    assert "                   node_1: attribute alpha: 0.01 -> 0.2" in lines
    assert "  MatMulAddFusion: 7 -> 6 nodes (-1)" in lines
    assert "onnxjson convert YOUR_MODEL.onnx" in lines[-3]
    assert "\x1b" not in result.stdout
    assert len(lines) <= 92
    assert max(map(len, lines)) <= 80


def test_demo_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    result = run("demo", tmp_path)
    assert result.exit_code == 73
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert run("demo", tmp_path / "mine").exit_code == 73


def test_step_that_fails_ends_the_demo_with_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(module: str, arguments: list[str], folder: Path) -> CompletedProcess[bytes]:
        return CompletedProcess([], 74, b"onnxjson: error[74]: no space left\n")

    monkeypatch.setattr(processes, "run_module", fail)
    result = run("demo", tmp_path / "d")
    assert result.exit_code == 74
    assert "no space left" in result.stdout
    assert "onnxjson: error[74]: `python -m onnxjson.example digits.onnx` exited with 74" in result.stderr


@pytest.mark.parametrize(
    ("name", "word"),
    [
        pytest.param("it's a dir", "'it'\"'\"'s a dir", marks=pytest.mark.exhaustive),
        pytest.param("-d", "./-d", marks=pytest.mark.exhaustive),
        pytest.param("a;b", "'a;b", marks=pytest.mark.exhaustive),
        ("e\x1b[31mvil\nx", "'e\\u{1b}[31mvil\\u{a}x"),
    ],
)
def test_commands_of_the_demo_can_be_repeated_and_move_no_cursor(name: str, word: str, tmp_path: Path) -> None:
    result = run_process("demo", "--", name, folder=tmp_path)
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / name / "again.onnx").is_file()
    quote = "'" if word.startswith("'") else ""
    lines = result.stdout.splitlines()
    assert f"$ cd {word}{quote}" in lines
    assert f"  less {word}/digits.onnx.json{quote}" in lines
    assert "\x1b" not in result.stdout


def test_an_example_that_cannot_be_written_ends_with_the_code_for_that(tmp_path: Path) -> None:
    made = processes.run_module("onnxjson.example", ["here/digits.onnx"], tmp_path)
    assert (made.returncode, made.stdout) == (74, b"cannot write 'here/digits.onnx': No such file or directory\n")
    (tmp_path / "digits.onnx").write_text("mine")
    assert processes.run_module("onnxjson.example", ["digits.onnx"], tmp_path).returncode == 73
    assert (tmp_path / "digits.onnx").read_text() == "mine"
