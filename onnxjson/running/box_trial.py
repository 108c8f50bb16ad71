"""Trial of what protects this machine: a process in the box attempts each thing that it must not do.

::

    for each in try_protections():
        print(each.name, each.is_refused)
"""

import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.model.system import FORKS
from onnxjson.running.box import Box, landlock_missing, seccomp_missing
from onnxjson.running.worker_protocol import Answer, Limits
from onnxjson.running.worker_server import run_sandboxed


class Protection(NamedTuple):
    """Something that native code must not do, and whether the kernel refuses it."""

    name: str
    by: str
    """Parts of the kernel that refuse it."""
    is_refused: bool
    detail: str = ""
    """Reason if it is not refused."""


def _reach(_: Path) -> None:
    with suppress(PermissionError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"", ("127.0.0.1", 9))
        return
    with socket.socket() as client:  # Landlock alone refuses TCP, but no datagrams.
        client.settimeout(0.2)
        client.connect(("127.0.0.1", 9))


def _fork(_: Path) -> None:
    if os.fork() == 0:
        os._exit(0)


_ATTEMPTS: Final[dict[str, tuple[str, Callable[[Path], object]]]] = {
    "reading files of the user": ("Landlock", lambda place: (place / "secret").read_bytes()),
    "writing outside of its own folder": ("Landlock", lambda place: (place / "planted").write_bytes(b"")),
    "the network": ("seccomp", _reach),
    "running programs": ("seccomp", lambda _: os.execv(sys.executable, [sys.executable, "-c", ""])),
    "starting processes": ("seccomp", _fork),
    "stopping other processes": ("seccomp, Landlock", lambda _: os.kill(os.getppid(), 0)),
}


_EXCESSES: Final[dict[str, Callable[[], object]]] = {
    "memory beyond the limit": lambda: bytearray(4 << 30),
    "time beyond the limit": lambda: time.sleep(60),
}


def try_protections() -> list[Protection]:
    """Try each protection of this machine in a process inside the box; on Windows they are known without a trial.

    Raises:
        OSError: a process or a folder cannot be created.
    """
    with tempfile.TemporaryDirectory(prefix="onnxjson-doctor-") as folder:
        (Path(folder) / "secret").write_bytes(b"x")
        tried = [_try_one(name, by, attempt, Path(folder)) for name, (by, attempt) in _ATTEMPTS.items()]
    return [*tried, *map(_try_excess, _EXCESSES)]


def _try_one(name: str, by: str, attempt: Callable[[Path], object], folder: Path) -> Protection:
    reason = landlock_missing() if by == "Landlock" else seccomp_missing()
    if not FORKS:
        return Protection(name, by, False, reason)

    def job() -> tuple[Answer, bytes]:
        try:
            attempt(folder)
        except PermissionError:
            return Answer(outcome="done"), b"refused"
        except OSError as error:
            return Answer(outcome="done"), f"not refused, but it failed: {error}".encode()
        return Answer(outcome="done"), b""

    limits = Limits(wall_seconds=10.0, file_bytes=1 << 20, may_start_threads=True)
    answer, outcome = run_sandboxed(job, limits, box=Box())
    if outcome == b"refused":
        return Protection(name, by, True)
    return Protection(name, by, False, reason or outcome.decode() or answer.detail or "nothing refuses it")


def _try_excess(name: str) -> Protection:
    if not FORKS:
        is_ended = name.startswith("time")
        reason = "" if is_ended else f"{sys.platform} does not limit it"
        return Protection(name, "limits of the process", is_ended, reason)

    def job() -> tuple[Answer, bytes]:
        _EXCESSES[name]()
        return Answer(outcome="done"), b""

    limits = Limits(memory=2 << 30, wall_seconds=0.3, may_start_threads=True)
    answer, _ = run_sandboxed(job, limits, box=None)
    is_ended = answer.outcome in ("memory", "time")
    return Protection(name, "limits of the process", is_ended, "" if is_ended else "nothing ends it")
