"""Law: Ctrl-C at any moment ends a command with its exit code; files are old or new, none is half or temporary."""

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

import numpy
import pytest

import onnxjson
from onnxjson.model import document as d
from onnxjson.model.tensors import from_numpy
from onnxjson.model.types import parse_type
from tests.cli.running import command_line

COMMANDS: Final = {
    "convert": "convert a.onnx -o new.onnx.json",
    "convert back": "convert c.onnx.json -o new.onnx",
    "fmt": "fmt t.onnx.json",
    "diff": "diff a.onnx b.onnx -o new.html",
    "patch": "diff a.onnx b.onnx --format patch -o new.json",
    "optimize": "optimize a.onnx -p onnxoptimizer:eliminate_identity -o new.onnx",
    "verify": "verify a.onnx b.onnx --samples 1",
    "externalize": "convert a.onnx -o new.onnx --externalize",
}
ENDS: Final = {"diff": (0, 1), "patch": (0, 1), "verify": (0, 1)}


def write_models(folder: Path, count: int, size: int) -> None:
    """Write two models of some square weights of float32, which differ in one, and texts of the first."""
    numbers = numpy.random.default_rng(0)
    arrays = [(numbers.standard_normal((size, size)) / size**0.5).astype(numpy.float32) for _ in range(count)]
    nodes = [d.Node(op_type="MatMul", input=(f"x{at}", f"w{at}"), output=(f"x{at + 1}",)) for at in range(count)]
    nodes.insert(1, d.Node(op_type="Identity", input=("x1",), output=("i",)))
    nodes[2] = d.Node(op_type="MatMul", input=("i", "w1"), output=("x2",))
    kind = parse_type(f"float32[1,{size}]")
    for name in ("a", "b"):
        weights = tuple([from_numpy(array, f"w{at}") for at, array in enumerate(arrays)])
        graph = d.Graph(
            name="g", node=tuple(nodes), initializer=weights,
            input=(d.ValueInfo(name="x0", type=kind),), output=(d.ValueInfo(name=f"x{count}", type=kind),),
        )  # fmt: skip
        model = d.Model(ir_version=10, opset_import=(d.OperatorSetId(domain="", version=20),), graph=graph)
        onnxjson.save(model, folder / f"{name}.onnx")
        if name == "a":
            onnxjson.save(model, folder / "c.onnx.json")
        arrays[0] = arrays[0] + numpy.outer(arrays[1][0], arrays[1][1]).astype(numpy.float32)
    (folder / "t.onnx.json").write_bytes((folder / "c.onnx.json").read_bytes().replace(b"\n", b"\n\n", 1))


def run(folder: Path, scratch: Path, words: str, delay: float | None) -> tuple[int, str, float]:
    """Run a command, interrupted after some seconds as by a terminal: exit code, messages, seconds."""
    environment = {**os.environ, "TMPDIR": str(scratch), "HOME": str(folder.parent / "home")}
    began = time.monotonic()
    with subprocess.Popen(
        command_line(*words.split()), cwd=folder, env=environment, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        if delay is not None:
            try:
                process.wait(delay)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGINT)
        _, messages = process.communicate(timeout=60)
    seconds = time.monotonic() - began
    for _ in range(100):  # processes that it started are gone
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        raise AssertionError(f"{words}: processes are left")
    return process.returncode, messages, seconds


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Size, and bytes of the start and the end, of all files."""
    found = {}
    for path in folder.rglob("*"):
        with path.open("rb") as file:
            data = file.read(1 << 16)
            file.seek(max(path.stat().st_size - (1 << 16), 0))
            found[path.name] = (path.stat().st_size, data + file.read())
    return found


@pytest.mark.parametrize(
    ("count", "size", "moments"), [(3, 256, 1), pytest.param(18, 2048, 50, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.timeout(600)
def test_ctrl_c_leaves_nothing_half(command: str, count: int, size: int, moments: int, tmp_path: Path) -> None:
    folder, scratch, words = tmp_path / "m", tmp_path / "scratch", COMMANDS[command]
    for each in (folder, scratch, tmp_path / "home"):
        each.mkdir()
    write_models(folder, count, size)
    before, text = contents(folder), (folder / "t.onnx.json").read_bytes()
    code, messages, seconds = run(folder, scratch, words, None)
    assert code in ENDS.get(command, (0,)), messages
    after, interrupted = contents(folder), 0
    dice = random.Random(23)
    for _ in range(moments):
        for path in folder.glob("new*"):
            path.unlink()
        (folder / "t.onnx.json").write_bytes(text)
        delay = dice.uniform(0.05, seconds)
        found, messages, _ = run(folder, scratch, words, delay)
        assert found in (130, code, -signal.SIGINT), (delay, found, messages)
        assert "Traceback" not in messages, (delay, messages)
        interrupted += found != code
        now = contents(folder)
        known = [after] if found == code else [before, after]
        assert set(now) in [set(each) for each in known], (delay, found, set(now))
        assert all([data in (before.get(name), after.get(name)) for name, data in now.items()]), delay
        assert list(scratch.iterdir()) == [], delay
    assert interrupted or moments < 10
    shutil.rmtree(folder)
