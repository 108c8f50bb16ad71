"""``python -m tests.benchmarks.gate_time [MODELS] [NODES]``: seconds of the gate on models that all changed.

Commits models of layers (10 of 10,000 nodes by default), changes attributes and adds nodes in each, runs the gate twice
with budgets in a new process, and prints the seconds of each call and the memory of the largest process. Exits with 1
if a call takes 20 seconds or more.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import onnx

from tests.benchmarks.graphs import write

_LIMIT: Final = 20.0

_POLICY: Final = 'format = "onnxjson-policy/1"\n[budgets]\nnodes = "<= base * 1.02"\nmacs = "<= base * 1.02"\n'


def commit(folder: Path, *words: str) -> None:
    """Commit everything in a folder."""
    identity = ("-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")
    for command in (("add", "-A"), ("commit", "-q", "-m", "next", *words)):
        subprocess.run(["git", *identity, *command], cwd=folder, check=True)


def change(path: Path) -> None:
    """Insert a node after every thousandth one."""
    model = onnx.load(path)
    nodes = list(model.graph.node)
    for place in range(len(nodes) - 1, 0, -1000):
        node = nodes[place]
        made = onnx.helper.make_node("Identity", [node.output[0]], [f"{node.output[0]}.kept"], name=f"added.{place}")
        model.graph.node.insert(place + 1, made)
    onnx.save(model, path)


def cpu_seconds() -> float:
    """Return the CPU time of all processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: list[str]) -> int:
    """Make the repository, run the gate, print the times."""
    count, nodes = [int(each) for each in [*arguments, *("10", "10000")[len(arguments) :]]]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "repository")
        folder.mkdir()
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
        (folder / "policy.toml").write_text(_POLICY)
        for number in range(count):
            write("layers", folder / f"m{number}.onnx", nodes)
        commit(folder)
        for path in folder.glob("*.onnx"):
            change(path)
        commit(folder)
        seconds, used = [], cpu_seconds()
        command = ["gate", "--base", "HEAD~1", "--policy", "policy.toml", "-o", "../out", "-q"]
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-m", "onnxjson", *command], cwd=folder, check=False, capture_output=True)
            seconds.append(time.perf_counter() - start)
        used = (cpu_seconds() - used) / 2
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    print(f"{count} models of {nodes:,} nodes: {seconds[0]:.1f} s, then {seconds[1]:.1f} s, on {os.cpu_count()} cores")
    print(f"{used:.1f} s of CPU time each, without the guarded processes; largest process {memory:.0f} MB")
    return int(min(seconds) >= _LIMIT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
