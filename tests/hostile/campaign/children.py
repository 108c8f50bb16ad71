"""A command, or any function, in a child process with limits: how it ended, its time, its memory, its output."""

import importlib
import os
import pkgutil
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import onnxjson as onnxjson_package
import onnxjson_tui
from onnxjson.cli.group import onnxjson
from onnxjson.running import server_process
from onnxjson.running.server_process import ServerProcess, end_idle_server

SECONDS = 60.0
MEMORY = 6 << 30


class Outcome(NamedTuple):
    """One case of the campaign."""

    name: str
    problem: str = ""
    """What is wrong; "" for nothing."""
    seconds: float = 0.0
    peak: int = 0
    """Largest resident memory in MB; 0 where it was not measured."""


class Ended(NamedTuple):
    """How a child ended."""

    code: int
    """Its exit code; minus the number of the signal that ended it."""
    seconds: float
    peak: int
    output: str
    """Standard output, then standard error."""
    error: str
    """Standard error alone."""


def warm_up() -> None:
    """Import all modules, so that no child has to."""
    for found in (onnxjson_package, onnxjson_tui):
        for module in pkgutil.walk_packages(found.__path__, f"{found.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def command(*words: str) -> Callable[[], int]:
    """A function that runs a command and returns its exit code."""

    def run() -> int:
        try:
            onnxjson.main(list(words), prog_name="onnxjson")
        except SystemExit as error:
            return error.code if isinstance(error.code, int) else int(error.code is not None)
        return 0

    return run


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder with a folder ``files``, which is the current one, and folders for home, state and temporary files."""
    with tempfile.TemporaryDirectory(prefix="onnxjson-campaign-") as name:
        before, place = Path.cwd(), Path(name)
        homes = {f"XDG_{kind}_HOME": str(place / kind.lower()) for kind in ("STATE", "CACHE", "CONFIG")}
        (place / "files").mkdir()
        (place / "tmp").mkdir()
        os.chdir(place / "files")
        try:
            with mock.patch.dict(os.environ, {**homes, "HOME": name, "TMPDIR": str(place / "tmp"), "COLUMNS": "80"}):
                yield place
        finally:
            os.chdir(before)


@contextmanager
def shared_server() -> Iterator[None]:
    """Let all children use one sandboxed process, which takes a second to start."""
    warm_up()
    server = server_process.idle_or_new_server()
    server_process._idle.append(server)
    try:
        yield
    finally:
        end_idle_server()


def _take_over() -> None:
    """In a child: use the server of the parent, which alone ends it."""
    for server in server_process._idle:
        server._started_as = os.getpid(), *server._started_as[1:]
        running = server.process.pid
        server.process.poll = lambda pid=running: None if Path(f"/proc/{pid}").exists() else 1  # type: ignore[method-assign,misc]
    ServerProcess.leave = lambda self: None  # type: ignore[method-assign]


def started(function: Callable[[], int], out: Path, *, memory: int = MEMORY, stopped: bool = False) -> int:
    """Start a function in a child whose streams go to files; its process number."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        _take_over()
        tempfile.tempdir = None
        for number, mode in ((0, None), (1, "stdout"), (2, "stderr")):
            flags = os.O_RDONLY if mode is None else os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
            descriptor = os.open(os.devnull if mode is None else f"{out}.{mode}", flags, 0o600)
            os.dup2(descriptor, number)
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        if stopped:
            os.kill(os.getpid(), signal.SIGSTOP)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        code = function()
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code & 0xFF)


def ended(child: int, out: Path, *, seconds: float = SECONDS) -> Ended:
    """Wait for a child, or kill it after a time."""
    start = time.monotonic()
    descriptor = os.pidfd_open(child)
    try:
        if not select.select([descriptor], [], [], seconds)[0]:
            os.kill(child, signal.SIGKILL)
        _, status, used = os.wait4(child, 0)
    finally:
        os.close(descriptor)
    streams = [Path(f"{out}.{mode}").read_text("utf-8", "surrogateescape") for mode in ("stdout", "stderr")]
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        end_idle_server()
        server_process._idle.append(server_process.idle_or_new_server())
    return Ended(code, time.monotonic() - start, used.ru_maxrss >> 10, "".join(streams), streams[1])


def in_child(function: Callable[[], int], place: Path, *, seconds: float = SECONDS, memory: int = MEMORY) -> Ended:
    """Run a function in a child."""
    return ended(started(function, place / "out", memory=memory), place / "out", seconds=seconds)
