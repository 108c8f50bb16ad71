"""``python -m tests.hostile.bounds``: each case at n and 2n; seconds, their ratio, peak of memory."""

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.cli.running import command_line
from tests.hostile.bounds.cases import CASES, Case

SECONDS = 60
"""Processor time after which a process is ended."""

_PR_SET_CHILD_SUBREAPER = 36


class Measurement(NamedTuple):
    """What a command took, with all its processes."""

    exit_code: int
    seconds: float
    """Processor time: other work of the machine does not change it."""
    peak: int
    """Largest resident memory of a process, in MB."""
    error: str
    """The last line of standard error."""


def measure(case: Case, n: int) -> Measurement:
    """Run the command of a case in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="onnxjson-bounds-") as name:
        folder = Path(name)
        case.write(folder, n)
        homes = ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
        with (folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                command_line(*case.command),
                cwd=folder,
                env=os.environ | dict.fromkeys(homes, name),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)),
            )
            exit_code, seconds, peak = _ended(process.pid)
        error = (folder / "stderr").read_text(errors="replace").strip().rpartition("\n")[2]
    return Measurement(exit_code, seconds, peak >> 10, error)


def _ended(pid: int) -> tuple[int, float, int]:
    """Wait for a process and those that it left behind: exit code, seconds, peak of memory in KB."""
    exit_code, seconds, peak = 0, 0.0, 0
    while True:
        try:
            found, status, used = os.wait4(-1, 0)
        except ChildProcessError:
            return exit_code, seconds, peak
        seconds += used.ru_utime + used.ru_stime
        peak = max(peak, used.ru_maxrss)
        if found == pid:
            exit_code = os.waitstatus_to_exitcode(status)


def main() -> int:
    """Measure the cases whose names contain a word; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.bounds", description=__doc__)
    parser.add_argument("words", nargs="*", help="only cases whose names contain one of these")
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    words = parser.parse_args().words
    print(f"{'case':48} {'n':>12} {'s at n':>7} {'s at 2n':>8} {'ratio':>6} {'peak MB':>8}  exit")
    for case in CASES:
        if words and not any(word in case.name for word in words):
            continue
        one, two = (measure(case, size) for size in (case.size, 2 * case.size))
        ratio = two.seconds / one.seconds
        print(
            f"{case.name:48} {case.size:12,} {one.seconds:7.1f} {two.seconds:8.1f} {ratio:6.1f} "
            f"{max(one.peak, two.peak):8,}  {one.exit_code} {two.exit_code} {two.error[:150]}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
