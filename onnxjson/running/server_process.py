"""Process of the server that runs guarded jobs: started, kept for the next worker, ended with all that it started."""

import atexit
import os
import secrets
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from onnxjson.model.errors import WorkerError
from onnxjson.running.box import warn_once
from onnxjson.running.box_processes import end_marked
from onnxjson.running.environment import SERVER_MARK, server_environment, user_packages

# -I excludes the current folder and PYTHONPATH, so that a json.py next to a model is never imported. The folder of the
# package is passed explicitly, since with -I Python may not find it (for example in a checkout).
START: Final = """
import importlib.util, sys
folder = sys.argv[1]
spec = importlib.util.spec_from_file_location("onnxjson", f"{folder}/__init__.py", submodule_search_locations=[folder])
sys.modules["onnxjson"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
sys.path += sys.argv[2:]
from onnxjson.running.worker_server import main
main()
"""


class ServerProcess:
    """A running server."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._started_as = os.getpid(), command, environment
        self._mark = secrets.token_hex(16)
        self._interrupted = False
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env={**environment, SERVER_MARK: self._mark},
                start_new_session=True,  # Control-C interrupts only the client, which then ends the server.
            )
        except OSError as error:
            raise WorkerError(f"no process can be started with {sys.executable!r}: {error.strerror}") from error
        assert self.process.stdin
        assert self.process.stdout
        self.requests = self.process.stdin.fileno()
        """Descriptor to write requests to; it does not block."""
        self.answers = self.process.stdout.fileno()
        os.set_blocking(self.requests, False)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def is_like(self, command: list[str], environment: dict[str, str]) -> bool:
        """Whether this process started it with this command and environment."""
        return self._started_as == (os.getpid(), command, environment)

    def interrupt(self) -> None:
        """End its running job; another thread may be about to write to it."""
        self._interrupted = True
        if self.process.stdin is None or self.process.stdin.closed:
            return
        # The server and its child end when the input of the server is closed. The descriptor itself stays open, since
        # the other thread may be about to write to it.
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            os.dup2(nothing, self.requests, inheritable=False)
        finally:
            os.close(nothing)

    def leave(self) -> None:
        """Keep it for the next worker if it works and no other one is kept; else end it."""
        if _idle or self._interrupted or not self.is_running:
            self.end()
        else:
            _idle.append(self)

    def end(self) -> None:
        """End it with everything that its jobs started."""
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if pipe:
                    pipe.close()
        # Its input is closed, so it kills its child and ends.
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.returncode != 0:  # It could not end what its jobs started.
            end_marked(f"{SERVER_MARK}={self._mark}".encode())


_idle: Final[list[ServerProcess]] = []
"""The server of the last worker that was closed: starting one takes longer than most jobs."""


def idle_or_new_server() -> ServerProcess:
    """Return the server that waits for work, or a new one."""
    warn_once()
    package = str(Path(__file__).resolve().parents[1])
    command, environment = [sys.executable, "-I", "-c", START, package, *user_packages()], server_environment()
    with suppress(IndexError):
        idle = _idle.pop()
        if idle.is_running and idle.is_like(command, environment):
            return idle
        idle.end()
    return ServerProcess(command, environment)


@atexit.register
def end_idle_server() -> None:
    """End the server that waits for work, if there is one."""
    while _idle:
        _idle.pop().end()
