"""Law: whenever a save with blobs is killed, the text that is there names only blobs that are there and whole."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest

import onnxjson
from onnxjson.model import tensors
from onnxjson.storage.files import load

KILLS = int(os.environ.get("ONNXJSON_KILLS", "100"))
"""Saves that are killed in the long part of the proof; more by hand."""

SAVER = """
import os, sys
import onnxjson, onnxjson.storage.files, onnxjson.storage.weights
models = {name: onnxjson.load(name) for name in sys.argv[2:]}
while line := sys.stdin.readline():
    child = os.fork()
    if not child:
        onnxjson.save(models[line.strip()], sys.argv[1], weights="blobs")
        os._exit(0)
    print(child, flush=True)
    sys.stdin.readline()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def version(folder: Path, number: int) -> Path:
    """A model of ten tensors, all others than those of another version."""
    dice = numpy.random.default_rng(number)
    graph = onnxjson.Graph(
        name="g",
        initializer=tuple(tensors.from_numpy(dice.random((100, 300)).astype("f"), f"w{index}") for index in range(10)),
    )
    path = folder / f"version{number}.onnx"
    onnxjson.save(onnxjson.Model(ir_version=10, graph=graph), path)
    return path


@pytest.mark.parametrize("kills", [30, pytest.param(KILLS, marks=pytest.mark.exhaustive)])
def test_a_killed_save_leaves_a_text_whose_blobs_are_all_there(tmp_path: Path, kills: int) -> None:
    versions = [version(tmp_path, number) for number in range(3)]
    wholes = [onnxjson.load(path) for path in versions]
    text = tmp_path / "m.onnx.json"
    onnxjson.save(wholes[0], text, weights="blobs")
    command = [sys.executable, "-c", SAVER, str(text), *map(str, versions)]
    package = Path(onnxjson.__file__).parents[1]
    dice = random.Random(7)
    killed = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=package) as saver:
        assert saver.stdin
        assert saver.stdout
        longest = 0.0
        for count in range(kills):
            for blob in (tmp_path / "m.blobs").iterdir():
                if count % 4 == 0 and blob.name not in text.read_text():
                    blob.unlink()  # so that they have to be written again
            print(versions[count % 3], file=saver.stdin, flush=True)
            child = int(saver.stdout.readline())
            start = time.perf_counter()
            if count > 3:
                time.sleep(dice.uniform(0, longest))
                os.kill(child, signal.SIGKILL)
            print(file=saver.stdin, flush=True)
            killed += int(saver.stdout.readline()) == -signal.SIGKILL
            if count <= 3:
                longest = max(longest, time.perf_counter() - start)
            found = load(text).model  # every blob is there and has its length
            assert found in wholes
            assert onnxjson.from_proto(onnxjson.to_proto(found)) in wholes  # and its bytes
        saver.stdin.close()
    assert killed > kills // 8
