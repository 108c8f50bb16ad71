"""Process of the server that runs sandboxed jobs: started, kept for the next worker, ended with all that it started.

Its environment is the variables listed here and no others, the packages of the user, and a folder. Variables configure
libraries: sympy evaluates ``SYMPY_*`` as Python, onnxsim and onnxruntime write profiles, and the loader of shared
libraries preloads code. Variables also contain secrets, which native code must not read.
"""

import atexit
import os
import secrets
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from onnxjson.model.errors import WorkerError
from onnxjson.model.system import FORKS, OPENS_FOLDERS, open_lockable
from onnxjson.running.box import warn_once
from onnxjson.running.box_processes import end_marked
from onnxjson.storage.locks import lock, take_leftover

_NAMES: Final = frozenset([
    "PATH", "HOME", "TMPDIR", "TZ", "TZDIR", "LANG", "LANGUAGE",
    # Windows starts no process without the first one, and has the others for temporary files and the home folder.
    "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE",
    # Folders of shared libraries, often separate ones for graphics processors.
    "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
    # Selection of graphics processors.
    "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR",
])  # fmt: skip

_PREFIXES: Final = (
    "LC_",
    # Graphics processors.
    "CUDA_", "NVIDIA_", "ROCR_", "HIP_", "HSA_",
    # Threads and instruction sets of linear algebra.
    "OMP_", "KMP_", "MKL_", "OPENBLAS_",
)  # fmt: skip

_FIXED: Final = {
    # Forking is safe only with one thread, so the server must not start others.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Otherwise onnxruntime stores an identifier of this machine in the user's cache and sends events over the network.
    "ORT_DISABLE_TELEMETRY": "1",
}

SERVER_MARK: Final = "ONNXJSON_SERVER"
"""Variable with a unique value in all processes of one server, so that none of them outlives a server that crashed."""

_NEVER: Final = frozenset(["ORT_LOAD_CONFIG_FROM_MODEL"])
"""Removed even for trusted code, since it lets a model configure the session that runs it."""

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


def server_environment() -> dict[str, str]:
    """Return the variables of the sandboxed process, which are also all variables of a job that is not trusted."""
    return {name: os.environ[name] for name in os.environ if name in _NAMES or name.startswith(_PREFIXES)} | _FIXED


def trusted_environment() -> tuple[tuple[bytes, bytes], ...]:
    """Return all other variables of the user, for jobs that are trusted."""
    kept = {*map(os.fsencode, server_environment()), *map(os.fsencode, _NEVER)}
    variables = [(os.fsencode(name), os.fsencode(value)) for name, value in os.environ.items()]
    return tuple([each for each in variables if each[0] not in kept])


def user_packages() -> list[str]:
    """Return the user's own site-packages, which -I leaves out, if this process uses it."""
    if not site.ENABLE_USER_SITE:
        return []
    folder = site.getusersitepackages()
    return [folder] if folder in sys.path and Path(folder).is_absolute() else []


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """Create a private folder for the time of the block; remove those that killed processes left."""
    folder = tempfile.mkdtemp(prefix=prefix)
    held = open_lockable(folder)
    try:
        lock(held)
        _remove_stale(Path(folder).parent, prefix)
        yield Path(folder)
    finally:
        os.close(held)
        _empty(folder)
        os.rmdir(folder)


def _remove_stale(around: Path, prefix: str) -> None:
    """Remove own folders that no process holds, as after SIGKILL; a folder that resists stays for the next run."""
    with os.scandir(around) as found:
        names = [each.path for each in found if each.name.startswith(prefix)]
    for name in names:
        if (held := take_leftover(name)) is not None:
            with suppress(OSError):
                _empty(name)
                os.rmdir(name)
            os.close(held)


def _empty(folder: str) -> None:
    """Remove what is in a folder; one folder is open at a time, since jobs can nest them to any depth."""
    if not OPENS_FOLDERS:
        for place in Path(folder).iterdir():
            shutil.rmtree(place) if place.is_dir() else place.unlink()
        return
    descriptor = _opened(folder)
    try:
        above: list[tuple[str, list[str]]] = []
        left = _without_files(descriptor)
        while left or above:
            if left:
                name = left.pop()
                os.chmod(name, 0o700, dir_fd=descriptor)
                above.append((name, left))
                descriptor = _moved(descriptor, name)
                left = _without_files(descriptor)
            else:
                name, left = above.pop()
                descriptor = _moved(descriptor, "..")
                os.rmdir(name, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _without_files(folder: int) -> list[str]:
    """Remove everything except folders from a folder; return the names of those folders."""
    with os.scandir(folder) as found:
        entries = list(found)
    for each in entries:
        if not each.is_dir(follow_symlinks=False):
            os.unlink(each.name, dir_fd=folder)
    return [each.name for each in entries if each.is_dir(follow_symlinks=False)]


def _opened(name: str, beside: int | None = None) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=beside)


def _moved(descriptor: int, name: str) -> int:
    """Close a folder and return the one that `name` leads to from there."""
    opened = _opened(name, descriptor)
    os.close(descriptor)
    return opened


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
                cwd=os.path.abspath(os.sep),
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
        if FORKS:
            os.set_blocking(self.requests, False)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def killed_after(self, seconds: float) -> threading.Timer:
        """Kill it after some seconds, unless the timer is cancelled."""
        timer = threading.Timer(seconds, self.process.kill)
        timer.daemon = True
        timer.start()
        return timer

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
            assert pipe
            with suppress(OSError):
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


def end_idle_server() -> None:
    """End the server that waits for work, if there is one."""
    while _idle:
        _idle.pop().end()


@atexit.register
def _end_at_exit() -> None:
    if _idle and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # The work is done; Ctrl-C would print a traceback.
    end_idle_server()
