"""Locks on files and folders, which end with the process that holds them, however it ends."""

import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from onnxjson.model import system

SETTLED_SECONDS: Final = 60.0
"""Age from which a file without a lock is one that a killed process left, not one that is just being created."""


def lock(descriptor: int, patience: float = 0.0) -> bool:
    """Lock an open file or folder; return False on a file system without locks.

    `patience` are seconds to wait. A process that is killed while it starts a child leaves its locks to the child until
    the child runs its program.

    Raises:
        BlockingIOError: another process holds the lock.
    """
    end = time.monotonic() + patience
    while True:
        try:
            system.try_lock(descriptor)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise
        except OSError:
            return False
        else:
            return True
        time.sleep(0.005)


def take(path: str | Path, patience: float = 0.0, access: int = os.O_RDONLY, *, without_locks: bool) -> int | None:
    """Open and lock a file or folder of this user that no process holds; return its descriptor, otherwise None.

    `without_locks`: what to assume on a file system without locks, true if no process holds it.
    """
    try:
        descriptor = system.open_lockable(path, access | system.NO_LINK | system.NO_WAITING)
    except OSError:
        return None
    with suppress(OSError):
        status = os.fstat(descriptor)
        is_known = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
        is_own = is_known and status.st_uid == system.user_id()
        is_free = is_own and (lock(descriptor, patience) or without_locks)
        if is_free and os.fstat(descriptor).st_nlink > 0:  # the previous holder may have removed it
            return descriptor
    os.close(descriptor)
    return None


def take_leftover(path: str | Path, process: int = 0) -> int | None:
    """Return `take`, but None for what a running process may have created just now, and not locked yet.

    `process` is the ID of that process if it is known; it may be one of another container, so the lock decides.
    """
    try:
        age = time.time() - os.lstat(path).st_mtime
    except OSError:
        return None
    is_settled = age > SETTLED_SECONDS or (process != 0 and not is_running(process))
    return take(path, without_locks=False) if is_settled else None


def is_running(process: int) -> bool:
    """Whether a process with this ID is running; True where that cannot be known."""
    if not system.FORKS:  # on Windows, the call below would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
