"""Find and kill all descendants of this process, so that nothing that a job starts outlives it.

After `onnxjson.running.box_syscalls.adopt_orphans`, a process remains a descendant even if it creates its own session
or its parent ends.
"""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_PATIENCE: Final = 5.0
"""Seconds until `end_children` gives up; each round kills all processes that it finds."""


def descendants(of: Iterable[int]) -> list[int]:
    """Return all descendants of some processes, parents first; none if the system has no /proc."""
    parents: dict[int, list[int]] = {}
    for process in _processes():
        with suppress(OSError, ValueError, IndexError):
            # The state and the parent follow the name, which may contain parentheses and spaces.
            parent = int(Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[1])
            parents.setdefault(parent, []).append(process)
    family: list[int] = []
    waiting = list(of)
    while waiting:
        below = parents.get(waiting.pop(0), [])
        family += below
        waiting += below
    return family


def children() -> frozenset[int]:
    """Return the children of this process, including those that ended but were not waited for."""
    try:
        # Most kernels have this file, which is faster than all of /proc.
        return frozenset(
            [
                int(each)
                for task in Path("/proc/self/task").iterdir()
                for each in (task / "children").read_text().split()
            ]
        )
    except OSError:
        return frozenset(descendants([os.getpid()]))


def end_marked(mark: bytes) -> None:
    """Kill all processes that were started with an environment variable ``NAME=value``, and their descendants."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and (found := [each for each in _processes() if _is_marked(each, mark)]):
        _kill([*found, *descendants(found)])
        time.sleep(0.0005)


def _is_marked(process: int, mark: bytes) -> bool:
    with suppress(OSError):
        return mark in Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return False


def _processes() -> list[int]:
    """Return all processes; none if the system has no /proc."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()] if os.path.isdir("/proc/self") else []


def _kill(processes: Iterable[int]) -> None:
    everything = list(processes)
    for number in (signal.SIGSTOP, signal.SIGKILL):  # A stopped process cannot fork.
        for process in everything:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)


def end_children(but: frozenset[int]) -> bool:
    """Kill the children of this process, except `but`, and their descendants; return whether none is left.

    When a parent is killed, its children become children of this process; so this repeats until there are none.
    """
    until = time.monotonic() + _PATIENCE
    while left := children() - but:
        if time.monotonic() > until:
            return False
        _kill([*left, *descendants(left)])
        for process in left:
            with suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.0005)
    return True
