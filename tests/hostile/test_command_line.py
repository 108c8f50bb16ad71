"""Broken files on the command line: the right exit code, one clear line, no traceback, nothing written."""

from pathlib import Path

import pytest

from tests.cli.running import Result, run, run_process
from tests.hostile import binaries, documents

SAMPLE = 7
"""One in so many of the broken files is converted in this process."""


def unclear(result: Result, exit_code: int, name: str) -> str | None:
    """What is wrong with how a command failed; None if it is as it should be."""
    last = result.stderr.rstrip("\n").rpartition("\n")[2]
    if result.exit_code != exit_code:
        return f"exit code {result.exit_code} for {exit_code}: {last}"
    if not last.startswith(f"onnxjson: error[{exit_code}]: "):
        return f"the last line is {last!r}"
    if name not in result.stderr:
        return "the file is not named"
    if "Traceback" in result.stderr or result.stdout:
        return "a traceback, or output on standard output"
    if any(character in result.stderr for character in "\x1b\x00\u202e"):
        return "characters that a terminal obeys"
    return None


def remains(folder: Path, name: str, data: bytes) -> bool:
    """Whether the folder holds the broken file as it was, and nothing else."""
    return [one.name for one in folder.iterdir()] == [name] and (folder / name).read_bytes() == data


@pytest.mark.parametrize("category", binaries.CATEGORIES)
def test_converting_a_broken_binary_writes_nothing_and_says_why(category: str, tmp_path: Path) -> None:
    wrong = []
    for one in binaries.binaries(category)[::SAMPLE]:
        (tmp_path / "model.onnx").write_bytes(one.data)
        result = run("convert", tmp_path / "model.onnx", "-o", tmp_path / "model.onnx.json")
        problem = unclear(result, one.exit_code, "model.onnx")
        if problem or not remains(tmp_path, "model.onnx", one.data):
            wrong.append((one.name, problem))
    assert wrong == []


@pytest.mark.parametrize("category", documents.CATEGORIES)
def test_converting_a_broken_text_writes_nothing_and_says_where(category: str, tmp_path: Path) -> None:
    wrong = []
    for one in documents.documents(category)[::SAMPLE]:
        (tmp_path / "model.onnx.json").write_bytes(one.text)
        result = run("convert", tmp_path / "model.onnx.json", "-o", tmp_path / "model.onnx")
        problem = unclear(result, 65, "model.onnx.json")
        if problem or not remains(tmp_path, "model.onnx.json", one.text):
            wrong.append((one.name, problem))
    assert wrong == []


def test_whole_processes_fail_as_cleanly(tmp_path: Path) -> None:
    cases = {
        "empty.onnx": (b"", 65),
        "twice.onnx": (binaries.base() * 2, 65),
        "deep.onnx": (binaries.graphs(20_000), 71),
        "cut.onnx.json": (documents.BASE[:700].encode(), 65),
        "deep.onnx.json": (documents.documents("depth")[-1].text, 65),
    }
    for name, (data, exit_code) in cases.items():
        (tmp_path / name).write_bytes(data)
        result = run_process("convert", tmp_path / name, "-o", tmp_path / "out.onnx")
        assert unclear(result, exit_code, name) is None, name
        assert not (tmp_path / "out.onnx").exists()
