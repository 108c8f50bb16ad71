"""``python -m tests.hostile.campaign.others``: what other tools do on the same files, where they have the job.

A row for each: read a model (onnx.load), read and write it (onnx.save), through JSON and back (json_format), simplify
it (onnxsim, onnxslim); then saves of onnx.save that are killed.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import onnx
from google.protobuf import json_format

from onnxjson.model.errors import OnnxJsonError
from onnxjson.storage.files import load
from tests.hostile.campaign.children import ended, in_child, started, workplace
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


def compare(count: int, first: int) -> None:
    """Print a row for each tool."""
    for module in ("onnxsim", "onnxslim"):
        with contextlib.suppress(ImportError):
            __import__(module)
    found = {name: Counter[str]() for name in TOOLS}
    worst = dict.fromkeys(TOOLS, (0.0, 0))
    with workplace() as place:
        for number in range(first, first + count):
            files = Random(number)
            made = files.choice(KINDS)(files)
            if "a.onnx" not in made:
                continue
            for name, data in made.items():
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
    for name, counts in found.items():
        shown = ", ".join(f"{number:,} {what}" for what, number in counts.most_common())
        print(f"{name:12} {counts.total():6,} cases; worst {worst[name][0]:.1f} s, {worst[name][1]:,} MB: {shown}")


def kill(count: int, first: int) -> None:
    """Print how many of the saves of onnx.save that are killed leave a torn file."""
    rng, torn = Random(first), 0
    versions = [onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [])) for _ in range(2)]
    for number, model in enumerate(versions):
        tensor = onnx.TensorProto(name="w", data_type=1, dims=[8 << 20], raw_data=bytes([number]) * (32 << 20))
        model.graph.initializer.append(tensor)
    contents = [model.SerializeToString() for model in versions]
    with workplace() as place:
        for _ in range(count):
            Path("m.onnx").write_bytes(contents[0])
            begin = time.monotonic()
            onnx.save(versions[1], "m.onnx")
            taken = time.monotonic() - begin
            Path("m.onnx").write_bytes(contents[0])

            def save() -> int:
                onnx.save(versions[1], "m.onnx")
                return 0

            child = started(save, place / "out")
            time.sleep(rng.uniform(0, 1.5 * taken))
            os.kill(child, signal.SIGKILL)
            ended(child, place / "out")
            torn += Path("m.onnx").read_bytes() not in contents
    print(f"onnx.save, killed {count:,} times: {torn:,} torn files")


def main() -> int:
    """Print all rows; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.campaign.others", description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000, help="number of files")
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--kills", type=int, default=40, help="number of saves to kill")
    options = parser.parse_args()
    compare(options.cases, options.first)
    kill(options.kills, options.first)
    return 0


if __name__ == "__main__":
    sys.exit(main())
