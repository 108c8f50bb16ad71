"""The process of a worker in which commands run, one model after the other, with limits of time and memory.

A model that crashes, hangs or fills the memory ends this process only; the next model gets a new one.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Limits for one model."""

    seconds: float = 600.0
    memory: int = 0
    """Bytes of address space; 0 is no limit."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended."""

    code: int | None
    """Its exit code; None if the process ended, or was ended, before the command did."""
    stdout: str = ""
    stderr: str = ""
    problem: str = ""
    """Why there is no exit code."""
    seconds: float = 0.0
    bytes: int | None = None
    """Size of the model, if it was read from a URL."""


_idle: Final[dict[tuple[str, int], list[subprocess.Popen[bytes]]]] = {}
"""The processes of this worker that wait, by program and memory limit; a worker has several if it has threads."""

_busy: Final[set[subprocess.Popen[bytes]]] = set()


def run_limited(program: str, words: Sequence[str], limits: Limits) -> Outcome:
    """Run a command line in the process of this worker; `program` is the module that serves it (see `serve`)."""
    idle = _idle.setdefault((program, limits.memory), [])
    process = idle.pop() if idle else _started(program, limits)
    if process.poll() is not None:
        process = _started(program, limits)
    _busy.add(process)
    begin = time.monotonic()
    line = b""
    try:
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(list(words)) + b"\n")
        process.stdin.flush()
        line = _answer(process, begin + limits.seconds)
    except OSError:
        line = b""
    seconds = time.monotonic() - begin
    _busy.discard(process)
    if line.endswith(b"\n"):
        idle.append(process)
        return msgspec.structs.replace(msgspec.json.decode(line, type=Outcome), seconds=seconds)
    is_late = seconds >= limits.seconds
    _end(process)
    status = process.returncode
    reason = f"it was ended after {limits.seconds:g} s (--timeout)" if is_late else _reason(status)
    return Outcome(code=None, problem=reason, seconds=seconds)


def dask_setup(_worker: object) -> None:
    """Make a worker of this machine ignore ctrl-c, which a terminal sends to all processes; Dask calls it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _reason(status: int) -> str:
    with suppress(ValueError):
        return f"its process crashed ({signal.Signals(-status).name})"
    return f"its process ended with the code {status}"


def _started(program: str, limits: Limits) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", program, str(os.getpid()), str(limits.memory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _answer(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """The line that the process answers; without a line feed if it ended, or did not answer in time."""
    assert process.stdout is not None
    line = bytearray()
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            return bytes(line[:-1])
        piece = os.read(process.stdout.fileno(), 1 << 20)
        if not piece:
            return b""
        line += piece
    return bytes(line)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def end_processes(*, all_: bool) -> None:
    """End the processes of this worker that wait, or all."""
    for process in _busy if all_ else ():
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    for processes in _idle.values():
        while processes:
            _end(processes.pop())
