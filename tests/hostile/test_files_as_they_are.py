"""Two commands that save one file at once, and file names as systems allow them."""

import os
import shutil
from pathlib import Path

import pytest
from onnx import helper

import onnxjson
from tests.cli.running import run
from tests.hostile.bounds.cases import model
from tests.seeds import portions

NAMES = (
    "-a.onnx", "--help.onnx", "a\nb.onnx", "a b.onnx", " .onnx", "a\x1b[31m.onnx", "a:b.onnx", "a=b.onnx", "*.onnx",
    "[x].onnx", "$(x).onnx", "~.onnx", "é\u202e.onnx", os.fsdecode(b"a\xff\xfe.onnx"), "x" * 250 + ".onnx",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "files").mkdir()
    monkeypatch.chdir(tmp_path / "files")
    made = model([helper.make_node("Relu", ["x"], ["y"], name="n")])
    (tmp_path / "model").write_bytes(made.SerializeToString())
    return tmp_path / "files"


def started(pipe: tuple[int, int], path: str, key: str) -> int:
    """A process that sets an entry of the metadata as soon as the pipe is closed."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        os.close(pipe[1])
        os.read(pipe[0], 1)
        code = run("rewrite", "set-metadata", path, "--key", key, "--value", "1", "-i").exit_code
    finally:
        os._exit(code)


@pytest.mark.parametrize("rounds", portions(200, always=4, size=4))
def test_of_two_writers_at_once_none_loses_a_change_silently(rounds: range, folder: Path) -> None:
    for _ in rounds:
        shutil.copy(folder.parent / "model", "m.onnx")
        pipe = os.pipe()
        children = {}
        for key in ("one", "other"):
            children[started(pipe, "m.onnx", key)] = key
        os.close(pipe[1])
        codes = {children[child]: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}
        os.close(pipe[0])
        kept = {each.key for each in onnxjson.load("m.onnx").metadata_props}
        assert set(codes.values()) <= {0, 75}, codes
        assert kept == {key for key, code in codes.items() if code == 0}
        assert kept
        assert os.listdir() == ["m.onnx"]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_every_name_of_a_file_works_and_is_shown_on_one_line(name: str, folder: Path) -> None:
    shutil.copy(folder.parent / "model", name)
    path = f"./{name}"
    for command in (
        ("check", path),
        ("show", path),
        ("convert", path, "-o", f"{path[:-5]}.onnx.json"[-240:] if len(path) < 200 else "./long.onnx.json"),
        ("diff", path, path),
        ("rewrite", "set-metadata", path, "--key", "k", "--value", "1", "-i"),
        ("undo-save", path),
        ("check", path + ".missing"),
    ):
        result = run(*command)
        assert result.exit_code in ((66, 74) if command[1].endswith("missing") else (0,)), (command, result.stderr)
        assert not {"\x1b", "\u202e", "\udcff"} & set(result.stdout + result.stderr)
        assert f"\n{name.partition(chr(10))[2]}" not in result.stderr or "\n" not in name
    assert Path(name).read_bytes() == (folder.parent / "model").read_bytes()
    assert len(os.listdir()) == 2


def test_a_name_that_begins_with_a_dash_follows_two_dashes(folder: Path) -> None:
    shutil.copy(folder.parent / "model", "-a.onnx")
    assert run("check", "--", "-a.onnx").exit_code == 0
    assert run("check", "-a.onnx").exit_code == 2
