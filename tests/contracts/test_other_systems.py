"""The package on systems that lack what Linux has: everything can be imported, and what needs no sandbox works."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from onnxjson.model import system
from onnxjson.model.errors import OnnxJsonError
from onnxjson.storage.saving import save_file
from tests.contracts import other_system

SCRIPT = str(Path(other_system.__file__))


def without_posix(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=110)


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    done = without_posix("modules", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {}


def test_models_are_converted_edited_saved_restored_and_run(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "onnxjson.example", "m.onnx"], cwd=tmp_path, check=True, timeout=60)
    before = (tmp_path / "m.onnx").read_bytes()
    (tmp_path / "sub").mkdir()
    codes = {
        "convert m.onnx": 0,
        "convert m.onnx.json -o again.onnx": 0,
        "convert m.onnx --externalize -o sub/e.onnx": 0,
        "diff m.onnx sub/e.onnx": 1,
        "rewrite set-attribute m.onnx op:LeakyRelu alpha 0.3 -i": 0,
        "diff again.onnx m.onnx": 1,
        "undo-save m.onnx": 0,
        "check --deep sub/e.onnx": 0,
        "run m.onnx": 0,
        "optimize m.onnx -p onnxoptimizer -o small.onnx": 0,
        "fleet check m.onnx": 2,
        "doctor": 1,
    }
    done = without_posix(*codes, folder=tmp_path)
    assert [line for line in done.stdout.splitlines() if line.startswith("[")] == [
        f"[{line}] {code}" for line, code in codes.items()
    ], done.stdout + done.stderr
    assert (tmp_path / "m.onnx").read_bytes() == (tmp_path / "again.onnx").read_bytes() == before
    assert "NO  reading files of the user" in done.stdout
    assert "ok  time beyond the limit" in done.stdout
    assert (
        "so passes that evaluate text from models need --trust: onnxslim, transformers, symbolic-shapes" in done.stdout
    )
    assert not [each.name for each in tmp_path.rglob("*") if "onnxjson-" in each.name]


def test_a_lock_of_windows_holds(tmp_path: Path) -> None:
    program = (
        "import sys; from tests.contracts import other_system; other_system.take_away()\n"
        "from onnxjson.storage.locks import take\n"
        "held = take('f', without_locks=False)\n"
        "print(held is not None, flush=True)\n"
        "sys.stdin.read()\n"
    )
    (tmp_path / "f").write_bytes(b"content")
    environment = os.environ | {"PYTHONPATH": str(other_system.ROOT)}
    words = [sys.executable, "-c", program]
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "True\n"
        second = subprocess.run(
            words, cwd=tmp_path, env=environment, input="", capture_output=True, text=True, check=True, timeout=60
        )
        assert second.stdout == "False\n"
        first.communicate("", timeout=60)
    third = subprocess.run(
        words, cwd=tmp_path, env=environment, input="", capture_output=True, text=True, check=True, timeout=60
    )
    assert third.stdout == "True\n"


@pytest.mark.parametrize("is_movable", [True, False])
def test_an_open_file_is_moved_aside_to_be_replaced(
    is_movable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "m.onnx", os.replace
    path.write_bytes(b"old")

    def replace(source: str, target: str, **_: object) -> None:
        if os.path.exists(target) or not is_movable:
            raise PermissionError(13, "Permission denied")
        real(source, target)

    monkeypatch.setattr(system, "OPENS_FOLDERS", False)
    monkeypatch.setattr(os, "replace", replace)
    if is_movable:
        save_file(path, lambda sink: sink.write(b"new"))
    else:
        with pytest.raises(OnnxJsonError, match="cannot be replaced"):
            save_file(path, lambda sink: sink.write(b"new"))
    assert path.read_bytes() == (b"new" if is_movable else b"old")
    assert os.listdir(tmp_path) == ["m.onnx"]


def test_a_junction_is_a_link() -> None:
    status = SimpleNamespace(st_mode=0o040777, st_file_attributes=0x400)
    assert system.is_link(status)  # type: ignore[arg-type]
