"""``python -m tests.hostile.campaign.others``: what other tools do on the same files, where they have the job.

A row for each part of the campaign and each tool: read a model (onnx.load), read and write it (onnx.save), through JSON
and back (json_format), simplify it (onnxsim, onnxslim); saves of onnx.save that fail or are killed. The worst time and
memory are at the end of a row. `python -m tests.hostile.campaign` prints the same parts for onnxjson.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import onnx
from google.protobuf import json_format

from onnxjson.model.errors import OnnxJsonError
from onnxjson.storage.files import load
from tests.hostile.campaign.children import ended, in_child, started, workplace
from tests.hostile.campaign.crashers import crasher
from tests.hostile.campaign.machines import CALLS, ERRORS, traced
from tests.hostile.campaign.recipes import KINDS

SECONDS = 20.0
MEMORY = 4 << 30

REFUSED, WRONG, ODD = 1, 3, 4


def read() -> int:
    """0 if the model is read."""
    onnx.load("a.onnx")
    return 0


def write() -> int:
    """0 if the model is read and written."""
    onnx.save(onnx.load("a.onnx"), "out.onnx")
    return 0


def through_json() -> int:
    """0 if the model is the same after JSON, `WRONG` if it is another one."""
    model = onnx.ModelProto.FromString(Path("a.onnx").read_bytes())
    again = json_format.Parse(json_format.MessageToJson(model), onnx.ModelProto())
    return 0 if again.SerializeToString(deterministic=True) == model.SerializeToString(deterministic=True) else WRONG


def simplified() -> int:
    """0 if onnxsim ends."""
    import onnxsim

    onnxsim.simplify(onnx.load("a.onnx"))
    return 0


def slimmed() -> int:
    """0 if onnxslim ends."""
    import onnxslim

    onnxslim.slim("a.onnx", "out.onnx")
    return 0


TOOLS: dict[str, Callable[[], int]] = {
    "onnx.load": read, "onnx.save": write, "json_format": through_json, "onnxsim": simplified, "onnxslim": slimmed,
}  # fmt: skip


def guarded(tool: Callable[[], int]) -> Callable[[], int]:
    """The same, with `REFUSED` for an exception."""

    def run() -> int:
        try:
            return tool()
        except MemoryError:
            return ODD
        except Exception:
            return REFUSED

    return run


def on_files(made: Iterable[dict[str, bytes]]) -> dict[str, str]:
    """Read files with each tool; by its name what happened, and the worst time and memory."""
    for module in ("onnxsim", "onnxslim"):
        with contextlib.suppress(ImportError):
            __import__(module)
    found = {name: Counter[str]() for name in TOOLS}
    worst = dict.fromkeys(TOOLS, (0.0, 0))
    with workplace() as place:
        for files in made:
            for name, data in files.items():
                Path(name).write_bytes(data)
            try:
                load(Path("a.onnx"))
                is_broken = False
            except OnnxJsonError as error:
                is_broken = error.exit_code in (65, 71)
            for name, tool in TOOLS.items():
                end = in_child(guarded(tool), place, seconds=SECONDS, memory=MEMORY)
                outcome = {0: "accepted although broken" if is_broken else "fine", REFUSED: "refused",
                           WRONG: "another model"}  # fmt: skip
                slow = end.seconds >= SECONDS
                what = "over 20 s" if slow else "crashed" if end.code < 0 else outcome.get(end.code, "out of memory")
                found[name][what] += 1
                worst[name] = max(worst[name][0], end.seconds), max(worst[name][1], end.peak)
            for path in Path().iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return {
        name: f"of {counts.total():,}: {', '.join(f'{number:,} {what}' for what, number in counts.most_common())}; "
        f"{worst[name][0]:.1f} s, {worst[name][1]:,} MB"
        for name, counts in found.items()
    }


def generated(count: int, first: int) -> Iterator[dict[str, bytes]]:
    """The binary files of the part `commands`."""
    for number in range(first, first + count):
        files = Random(number)
        made = files.choice(KINDS)(files)
        if "a.onnx" in made:
            yield made


def crashing(count: int, first: int) -> Iterator[dict[str, bytes]]:
    """The models of the part `crashers`."""
    return ({"a.onnx": crasher(seed)} for seed in range(first, first + count))


Fail = Callable[[Callable[[], int], Path, Random, float], object]
"""Saves in a way that may fail: the function that saves, the folder, random numbers, seconds that a save takes."""


def killed(save: Callable[[], int], place: Path, rng: Random, seconds: float) -> None:
    """Kill a save at a random moment."""
    child = started(save, place / "out")
    time.sleep(rng.uniform(0, 1.5 * seconds))
    os.kill(child, signal.SIGKILL)
    ended(child, place / "out")


def starved(save: Callable[[], int], place: Path, rng: Random, _: float) -> None:
    """Save with some memory more than this process has."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    in_child(save, place, memory=now + rng.randrange(64 << 20))


def failing(save: Callable[[], int], place: Path, rng: Random, _: float) -> None:
    """Let a system call fail."""
    group, error = rng.choice(["write", "open", "close", "fsync"]), rng.choice(ERRORS[:-1])
    bench: Any = SimpleNamespace(place=place, saving=SimpleNamespace(run=save))
    traced(bench, CALLS[group], f"error={error}:when={rng.randrange(1, 4)}")


def on_saves(fail: Fail, count: int, first: int) -> dict[str, str]:
    """Let onnx.save replace a file; how often it is torn."""
    rng, torn = Random(first), 0
    versions = [onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [])) for _ in range(2)]
    for number, model in enumerate(versions):
        tensor = onnx.TensorProto(name="w", data_type=1, dims=[8 << 20], raw_data=bytes([number]) * (32 << 20))
        model.graph.initializer.append(tensor)
    contents = [model.SerializeToString() for model in versions]

    def save() -> int:
        onnx.save(versions[1], "m.onnx")
        return 0

    with workplace() as place:
        for _ in range(count):
            begin = time.monotonic()
            save()
            taken = time.monotonic() - begin
            Path("m.onnx").write_bytes(contents[0])
            fail(guarded(save), place, rng, taken)
            torn += Path("m.onnx").read_bytes() not in contents
    return {"onnx.save": f"of {count:,}: {torn:,} torn files"}


JOBS: dict[str, Callable[[int, int], dict[str, str]]] = {
    "commands": lambda count, first: on_files(generated(count, first)),
    "crashers": lambda count, first: on_files(crashing(count, first)),
    "faults": lambda count, first: on_saves(failing, count, first),
    "kills": lambda count, first: on_saves(killed, count, first),
    "memory": lambda count, first: on_saves(starved, count, first),
}
"""The parts of the campaign that are a job of other tools, too."""


def main() -> int:
    """Print all rows; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.campaign.others", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(JOBS)}; default: all")
    parser.add_argument("--cases", type=int, default=100, help="number of cases of each part")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    print("| part | tool | what happened |\n|---|---|---|")
    for part in options.parts or JOBS:
        for tool, found in JOBS[part](options.cases, options.first).items():
            print(f"| {part} | {tool} | {found} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
