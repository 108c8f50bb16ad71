"""Law: a process that is killed while it moves weights to data files leaves a whole model, the old or the new one."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

import onnxjson
from onnxjson.model.document import Graph, Model
from onnxjson.model.tensors import from_numpy
from onnxjson.storage.external_files import externalize, internalize

KILLS = int(os.environ.get("ONNXJSON_KILLS", "100"))
TENSORS, ELEMENTS, SHARD = 6, 60_000, 500_000

# The saves are forked from one process, so that a kill costs the time of a save and not that of starting Python.
SAVER = """
import os, pathlib, sys
import onnxjson
from onnxjson.storage.external_files import externalize
folder = pathlib.Path(sys.argv[1])
model = onnxjson.load(folder / "base.onnx")
while sys.stdin.buffer.readline():
    child = os.fork()
    if not child:
        moved = externalize(model, folder / "m" / sys.argv[2], shard_size=500_000)
        onnxjson.save(moved.model, folder / "m" / "m.onnx")
        os._exit(0)
    print(child, flush=True)
    sys.stdin.buffer.readline()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.parametrize("kills", [10, pytest.param(KILLS, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", ["m.data", "m.safetensors"])
def test_a_kill_while_weights_move_leaves_the_old_or_the_new_model(name: str, kills: int, tmp_path: Path) -> None:
    numbers = numpy.random.default_rng(0)
    arrays = [numbers.standard_normal(ELEMENTS).astype(numpy.float32) for _ in range(TENSORS)]
    tensors = tuple([from_numpy(array, f"w{place}") for place, array in enumerate(arrays)])
    model = Model(ir_version=10, graph=Graph(name="g", initializer=tensors))
    folder = tmp_path / "m"
    folder.mkdir()
    onnxjson.save(model, tmp_path / "base.onnx")
    externalize(model, tmp_path / name, shard_size=SHARD)
    content = {path.name: path.read_bytes() for path in tmp_path.glob(f"m-*{Path(name).suffix}")}
    assert len(content) == 3
    dice = random.Random(20)
    killed = old = with_data = 0
    durations: list[float] = []
    package = Path(onnxjson.__file__).parents[1]
    command = [sys.executable, "-c", SAVER, str(tmp_path), name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=package) as saver:

        def save(delay: float | None) -> int:
            assert saver.stdin
            assert saver.stdout
            for path in folder.iterdir():
                path.unlink()
            shutil.copy(tmp_path / "base.onnx", folder / "m.onnx")
            print(file=saver.stdin, flush=True)
            child = int(saver.stdout.readline())
            durations.append(-time.perf_counter())
            if delay is not None:
                time.sleep(delay)
                os.kill(child, signal.SIGKILL)
            print(file=saver.stdin, flush=True)
            status = int(saver.stdout.readline())
            durations[-1] += time.perf_counter()
            return status

        assert [save(None) for _ in range(3)] == [0, 0, 0]
        longest = sorted(durations)[1] * 1.1
        for attempt in range(20 * kills):
            # Where the moments of the kills missed the saves, more follow.
            if attempt >= kills and killed > kills // 5 and old and with_data:
                break
            status = save(dice.uniform(0, longest))
            killed += status == -signal.SIGKILL
            found = {path.name: path.read_bytes() for path in folder.glob(f"m-*{Path(name).suffix}")}
            assert all([content[each] == data for each, data in found.items()]), "a data file is half"
            kept = onnxjson.load(folder / "m.onnx")
            assert kept == model or internalize(kept, folder) == model
            old += kept == model
            with_data += bool(found)
            assert status != 0 or kept != model
        # Where it was killed, the same command finds the files that are there already.
        assert saver.stdin
        saver.stdin.close()
    moved = externalize(model, folder / name, shard_size=SHARD)
    onnxjson.save(moved.model, folder / "m.onnx")
    assert internalize(onnxjson.load(folder / "m.onnx"), folder) == model
    assert killed > kills // 5
    assert old
    assert with_data
