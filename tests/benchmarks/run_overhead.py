"""``python -m tests.benchmarks.run_overhead``: times of `run` and `bench` beside a bare loop over ``session.run``.

A model of two nodes, so that overhead shows. Ratios are held to 1.05. Rounds take turns; the median counts.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import onnx
import onnx.parser

from tests.benchmarks.report import table
from tests.benchmarks.tools import Command, onnxjson, python

MODEL: Final = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,8] x) => (float[1,8] y) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> { t = Relu(x) y = Add(t, w) }"""

BARE: Final = """
import statistics, sys, time
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
values = {"x": numpy.random.default_rng(0).random((1, 8), numpy.float32)}
times = []
for _ in range(int(sys.argv[2])):
    started = time.perf_counter()
    session.run(["y"], values)
    times.append(time.perf_counter() - started)
print(statistics.median(times))
"""


def measured(path: Path, runs: int, rounds: int) -> dict[str, float]:
    """The median time of a run in seconds: of a bare loop, `run` and `bench`."""
    found: dict[str, list[float]] = {"bare": [], "run": [], "bench": []}
    for _ in range(rounds):
        found["bare"].append(float(_printed(python("-c", BARE, path, str(runs)))))
        found["run"].append(json.loads(_printed(onnxjson("run", path, "-n", str(runs), "--json")))["timed"]["p50"])
        bench = json.loads(_printed(onnxjson("bench", path, "-n", str(runs), "--json")))
        found["bench"].append(bench["rows"][0]["time"]["median"])
    return {name: statistics.median(times) for name, times in found.items()}


def _printed(command: Command) -> str:
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.run_overhead", description=__doc__)
    parser.add_argument("--runs", type=int, default=5000, metavar="N", help="timed runs (5000)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds; the median counts (5)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="onnxjson-benchmarks-") as folder:
        path = Path(folder) / "two.onnx"
        onnx.save(onnx.parser.parse_model(MODEL), path)
        times = measured(path, options.runs, options.rounds)
    rows = [[name, f"{1e6 * each:.2f}", f"{each / times['bare']:.3f}"] for name, each in times.items()]
    print(table("A model of two nodes", ["", "µs a run", "ratio"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
