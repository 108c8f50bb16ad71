"""Processes, their time and their memory.

The kernel counts the memory of the process that starts another towards the peak of that other one, until it runs its
own program. So this package's main process imports neither onnx nor numpy: its own 20 MB are below every figure.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

LONGEST_RUN: Final = 900.0
"""Seconds after which a process is ended and counts as failed."""

_BYTES_PER_UNIT: Final = 1 if sys.platform == "darwin" else 1024
"""What ru_maxrss counts in."""


@dataclass(frozen=True)
class Run:
    """One process that ended."""

    seconds: float
    cpu_seconds: float
    """Of the processor, in the program and in the kernel; it hardly depends on what else the machine does."""
    peak_bytes: int
    exit_code: int
    printed: str
    error: str
    """The last line it wrote to its standard error, "" without one."""


@dataclass
class Figures:
    """All runs of one command."""

    runs: list[Run] = field(default_factory=list)
    skipped: str = ""
    """Why there is none, "" if there are."""

    @property
    def seconds(self) -> float:
        """The median of wall times."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def cpu_seconds(self) -> float:
        """The median of processor times."""
        return statistics.median(run.cpu_seconds for run in self.runs)

    @property
    def peak_bytes(self) -> float:
        """The median of the largest resident set of each run."""
        return statistics.median(run.peak_bytes for run in self.runs)

    @property
    def spent(self) -> float:
        """Seconds of all runs together."""
        return sum(run.seconds for run in self.runs)

    def add(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> bool:
        """Run `command` once more unless it failed before; whether it succeeded."""
        if self.skipped:
            return False
        run = run_process(command, environment)
        if run.exit_code:
            self.skipped = run.error or f"exit code {run.exit_code}"
            self.runs.clear()
            return False
        self.runs.append(run)
        return True


def run_process(command: Sequence[str | Path], environment: Mapping[str, str]) -> Run:
    """Run a command to its end, with nothing to read, after what earlier ones wrote has reached the disk."""
    os.sync()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env={**os.environ, **environment}
        )
        limit = threading.Timer(LONGEST_RUN, process.kill)
        limit.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        limit.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        lines = errors.read().decode("utf-8", "replace").strip().splitlines() or [""]
        printed = output.read().decode("utf-8", "replace")
    peak_bytes = usage.ru_maxrss * _BYTES_PER_UNIT
    return Run(seconds, usage.ru_utime + usage.ru_stime, peak_bytes, process.returncode, printed, lines[-1])
