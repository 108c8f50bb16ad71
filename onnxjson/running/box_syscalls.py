"""System calls of Linux for which Python has no function, through ctypes: prctl and capabilities.

On other systems, `die_with` and `adopt_orphans` do nothing, and the rest must not be called.
"""

import ctypes
import errno
import os
import signal
import sys
from functools import cache
from typing import Any, Final

NO_NEW_PRIVS: Final = 38
"""PR_SET_NO_NEW_PRIVS: programs that this process starts cannot have more rights than it has."""

SET_PDEATHSIG: Final = 1
"""PR_SET_PDEATHSIG; the seccomp filter refuses it, or a job could undo `die_with` and outlive its server."""

_SET_CHILD_SUBREAPER: Final = 36
_CAP_AMBIENT: Final = 47
_CAP_AMBIENT_CLEAR_ALL: Final = 4

_CAPABILITY_VERSION: Final = 0x20080522
_DAC_READ_SEARCH: Final = 2


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@cache
def _library() -> Any:
    """Return the C library of this process; `ctypes.get_errno` returns the error of its last function."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.argtypes = [ctypes.c_long] * 5
    library.syscall.restype = ctypes.c_long
    library.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    return library


def checked(result: int, what: str) -> int:
    """Return the result of a system call unchanged.

    Raises:
        OSError: the result is negative; `strerror` begins with `what`.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def system_call(number: int, first: int = 0, second: int = 0, third: int = 0, fourth: int = 0) -> int:
    """Make a system call by its number; return its result, negative if it failed. Addresses are passed as numbers."""
    return int(_library().syscall(number, first, second, third, fourth))


def process_control(option: int, first: int = 0, second: int = 0) -> int:
    """Call prctl; return its result, negative if it failed. Addresses are passed as numbers."""
    return int(_library().prctl(option, first, second, 0, 0))


def die_with(parent: int) -> None:
    """Make the kernel kill this process when its parent process `parent` ends for any reason.

    Raises:
        OSError: the kernel refuses.
    """
    if sys.platform == "linux":
        checked(process_control(SET_PDEATHSIG, signal.SIGKILL), "PR_SET_PDEATHSIG")
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)  # The parent ended before the call of prctl.


def adopt_orphans() -> bool:
    """Become the parent of all orphaned descendants of this process; return whether the kernel supports that."""
    return sys.platform == "linux" and process_control(_SET_CHILD_SUBREAPER, 1) == 0


def drop_capabilities() -> None:
    """Drop all capabilities of root except the one to read files of other users, which Landlock limits instead.

    Without it, root could not read packages and models in private folders of a user. The bounding set is not changed,
    which would cost a millisecond: with `NO_NEW_PRIVS`, no program can regain a capability.

    Raises:
        OSError: the kernel refuses.
    """
    calls = _library()
    header = _Header(_CAPABILITY_VERSION, 0)
    sets = (_Sets * 2)()
    checked(calls.capget(ctypes.byref(header), sets), "capget")
    kept = sets[0].permitted & 1 << _DAC_READ_SEARCH
    if process_control(_CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL) < 0 and ctypes.get_errno() != errno.EINVAL:
        checked(-1, "PR_CAP_AMBIENT_CLEAR_ALL")
    sets[0] = _Sets(kept, kept, 0)
    sets[1] = _Sets(0, 0, 0)
    checked(calls.capset(ctypes.byref(header), sets), "capset")
