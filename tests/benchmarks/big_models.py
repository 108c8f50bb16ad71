"""``python -m tests.benchmarks.big_models``: seconds and memory of commands on decoders of 2.4, 14 and 140 GB.

The first has real weights; the data files of the others are sparse, since the commands do not read weights.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.benchmarks.llama import SHAPES, named, write

NODE: Final = "/layers.3.softmax/Softmax"

COMMANDS: Final = {
    "show": "show m.onnx",
    "convert to digests": "convert m.onnx --weights digest -o m.onnx.json",
    "fmt": "fmt m.onnx.json",
    "edit of one attribute": f"rewrite set-attribute m.onnx {NODE} axis 3 -o ours.onnx",
    "edit of a description": "rewrite set-doc m.onnx other -o theirs.onnx",
    "diff": "diff m.onnx ours.onnx",
    "diff as patch": "diff m.onnx ours.onnx --format patch -o p.json",
    "apply the patch": "apply p.json m.onnx -o again.onnx",
    "merge": "merge m.onnx ours.onnx theirs.onnx -o merged.onnx",
    "optimize, 3 passes": "optimize m.onnx -p onnxoptimizer -p onnxruntime -p onnxsim -o o.onnx --allow-sparse",
    "check": "check m.onnx",
    "git textconv": "textconv",
}


class Measured(NamedTuple):
    """One command."""

    seconds: float
    megabytes: float
    """The most memory that it, or one of its processes, had at a time."""
    code: int


def measured(words: Sequence[str], folder: Path) -> Measured:
    """Run a command and measure it."""
    started = time.monotonic()
    pid = os.posix_spawn(words[0], [*words], os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, str(folder / "out.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ])  # fmt: skip
    _, status, usage = os.wait4(pid, 0)
    return Measured(time.monotonic() - started, usage.ru_maxrss / 1e3, os.waitstatus_to_exitcode(status))


def words_of(command: str) -> list[str]:
    """Return the words that start a command."""
    if command == "textconv":
        return [sys.executable, "-I", "-m", "onnxjson.git.textconv", "m.onnx"]
    return [sys.executable, "-I", "-m", "onnxjson", *command.split()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.big_models", description=__doc__)
    parser.add_argument("--size", action="append", choices=SHAPES, help="only this size")
    parser.add_argument("--folder", type=Path, help="where the temporary folder goes; it needs 3 GB")
    options = parser.parse_args(arguments)
    sizes = options.size or list(SHAPES)
    table: dict[str, list[str]] = {name: [] for name in COMMANDS}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="onnxjson-big-", dir=options.folder) as folder:
            place = Path(folder)
            write(place / "m.onnx", named(size), sparse=size != "2.4g", shards=1 if size == "2.4g" else 30)
            os.chdir(place)
            for name, command in COMMANDS.items():
                found = measured(words_of(command), place)
                wrong = "" if found.code in (0, 1) else f" (exit {found.code})"
                table[name].append(f"{found.seconds:.1f} s, {found.megabytes:.0f} MB{wrong}")
                if wrong:
                    print(name, (place / "out.txt").read_text()[-500:], file=sys.stderr)
            os.chdir("/")
    print(f"| command | {' | '.join(sizes)} |\n|---|{'---|' * len(sizes)}")
    for name, cells in table.items():
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"\nmemory of this program: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


if __name__ == "__main__":
    main()
