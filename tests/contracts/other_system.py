"""Python as on Windows, as far as that can be had elsewhere: without the modules, functions and signals it lacks there.

``python other_system.py modules`` prints the modules of this package that cannot be imported, with the reasons, as
JSON; ``python other_system.py 'show m.onnx' ...`` runs commands; ``take_away()`` does it in the running process.
"""

import asyncio  # noqa: F401 - what has a branch for Windows is loaded with that of this system
import concurrent.futures.process  # noqa: F401
import importlib
import json
import multiprocessing.context  # noqa: F401
import os
import pkgutil
import re
import select
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import types
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("fcntl", "termios", "resource", "pwd", "grp", "tty", "pty", "syslog", "curses", "readline")
LIBRARIES = (
    "numpy", "onnx.checker", "textual.app", "textual.widgets", "textual.drivers.linux_driver", "platformdirs.unix",
    "mcp.server", "pygls.lsp.server",
)  # fmt: skip
OF_OS = tuple(
    re.split(
        r"\s+",
        """
    fork forkpty geteuid getuid getegid getgid getgroups setsid setpgid killpg getpgid pread preadv pwrite pwritev
    sysconf confstr fchmod fchown chown lchown getxattr setxattr listxattr removexattr statvfs fstatvfs
    sched_getaffinity sched_setaffinity waitid WEXITED WNOWAIT P_PID mkfifo mknod environb getenvb nice
    set_blocking get_blocking posix_fadvise posix_fallocate copy_file_range sendfile memfd_create pipe2 uname getloadavg
    getpriority openpty ttyname ctermid tcgetpgrp wait wait3 wait4 chroot sync fdatasync
    O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK O_NOCTTY O_PATH O_SYNC O_DSYNC
""".strip(),
    )
)
OF_SIGNAL = tuple(
    re.split(
        r"\s+",
        """
    SIGALRM SIGHUP SIGKILL SIGPIPE SIGXCPU SIGXFSZ SIGPROF SIGVTALRM SIGSTOP SIGTSTP SIGCONT SIGCHLD SIGWINCH SIGUSR1
    SIGUSR2 SIGQUIT SIGTTIN SIGTTOU setitimer getitimer alarm ITIMER_REAL ITIMER_PROF ITIMER_VIRTUAL pthread_sigmask
    pthread_kill sigwait pause
""".strip(),
    )
)


def take_away(libraries: Sequence[str] = ("numpy", "onnx.checker", "onnxruntime")) -> None:
    """Take away what Windows lacks, and put a module for locks there as its Python has one.

    `libraries` would ask for functions of this system when they are imported, so they are imported before.
    """
    fcntl: Any = importlib.import_module("fcntl")
    for name in libraries:
        with suppress(ImportError):
            importlib.import_module(name)
    held = os.kill, signal.SIGKILL

    def locking(descriptor: int, mode: int, _: int) -> None:
        try:
            fcntl.flock(descriptor, mode)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error

    real_open = os.open

    def open_no_folder(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, flags, mode)

    # What the library itself calls when it does its work here.
    subprocess._PopenSelector = selectors.SelectSelector  # type: ignore[attr-defined]
    subprocess.Popen.kill = lambda self: held[0](self.pid, held[1])  # type: ignore[method-assign]
    library: Any = shutil
    library._use_fd_functions = False
    if hasattr(library, "_rmtree_impl"):
        library._rmtree_impl = library._rmtree_unsafe
    tempfile.gettempdir()
    for name in OF_OS:
        if hasattr(os, name):
            delattr(os, name)
    for name in OF_SIGNAL:
        if hasattr(signal, name):
            delattr(signal, name)
    del select.poll
    sys.platform = "other"
    os.open = open_no_folder
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # importing it fails
    locks: Any = types.ModuleType("msvcrt")
    locks.locking, locks.LK_NBLCK = locking, fcntl.LOCK_EX | fcntl.LOCK_NB
    sys.modules["msvcrt"] = locks


def broken_modules() -> dict[str, str]:
    """Import every module of both packages; return the reasons of those that cannot be imported."""
    broken = {}
    for folder, package in ((ROOT / "onnxjson", "onnxjson"), (ROOT / "tui" / "onnxjson_tui", "onnxjson_tui")):
        for module in pkgutil.walk_packages([str(folder)], f"{package}."):
            if not module.name.endswith("__main__"):
                try:
                    importlib.import_module(module.name)
                except Exception as error:
                    broken[module.name] = f"{type(error).__name__}: {error}"
    return broken


def run_commands(lines: list[str]) -> None:
    """Run command lines of ``onnxjson`` one after the other, and print the exit code of each."""
    from onnxjson.cli import main
    from onnxjson.running import server_process

    here = f"import runpy\nrunpy.run_path({__file__!r})['take_away']()\n"
    server_process.START = here + server_process.START  # type: ignore[misc]
    for line in lines:
        sys.argv = ["onnxjson", *line.split()]
        try:
            main()
        except SystemExit as error:
            sys.stdout.flush()
            print(f"[{line}] {error.code}", flush=True)


if __name__ == "__main__":
    sys.path[0:1] = [str(ROOT), str(ROOT / "tui")]
    if sys.argv[1:] == ["modules"]:
        take_away(LIBRARIES)
        print(json.dumps(broken_modules()))
    else:
        take_away()
        run_commands(sys.argv[1:])
