"""Landlock: the kernel of Linux limits the files that a process may read and write.

https://docs.kernel.org/userspace-api/landlock.html
"""

import ctypes
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from onnxjson.running.box_syscalls import checked, system_call

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1

# Rights; `_LATER` has those that a later version of the interface added.
EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_FOLDERS, _REMOVE_FILE, _MAKE_CHAR, _MAKE_DIR, _MAKE_REG = 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8
_MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = 1 << 9, 1 << 10, 1 << 11, 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

_FIRST: Final = (1 << 13) - 1
TRUNCATION: Final = 3
"""The first version that guards the length of files."""
_LATER: Final = ((2, _REFER), (TRUNCATION, _TRUNCATE), (5, _IOCTL_DEV))
_NETWORK: Final = 4
_SCOPES: Final = 6

_OF_FILES: Final = EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
"""Rights that a rule for a single file may contain."""

READ: Final = _READ_FILE | _READ_DIR
USE: Final = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
"""Rights to use a device."""
WRITE: Final = (
    READ
    | _WRITE_FILE
    | _TRUNCATE
    | _REFER
    | REMOVE_FOLDERS
    | _REMOVE_FILE
    | _MAKE_DIR
    | _MAKE_REG
    | _MAKE_FIFO
    | _MAKE_SYM
)

_BIND_AND_CONNECT_TCP: Final = 3
_ABSTRACT_SOCKETS_AND_SIGNALS: Final = 3


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Return the version of the interface that this kernel offers; 0 if it has no Landlock, or it is switched off."""
    return max(0, system_call(_CREATE_RULESET, 0, 0, _VERSION))


def restrict(rules: Iterable[tuple[str, int]], offered: int) -> None:
    """Remove all rights to files, TCP ports and other processes from this process, except those in `rules`.

    Args:
        rules: paths of files and folders, each with the rights there and below; paths that do not exist are ignored.
        offered: version of the interface, at least 1; see `version`.

    Raises:
        OSError: the kernel refuses.
    """
    known = _FIRST
    for first, right in _LATER:
        known |= right if offered >= first else 0
    wanted = _Ruleset(
        known,
        _BIND_AND_CONNECT_TCP if offered >= _NETWORK else 0,
        _ABSTRACT_SOCKETS_AND_SIGNALS if offered >= _SCOPES else 0,
    )
    # Older kernels accept the longer structure if the fields that they do not know are 0.
    ruleset = system_call(_CREATE_RULESET, ctypes.addressof(wanted), ctypes.sizeof(wanted), 0)
    checked(ruleset, "landlock_create_ruleset")
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & known)
        checked(system_call(_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    # Without its rule, a path that cannot be opened stays forbidden.
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(opened).st_mode):
                rights &= _OF_FILES
            rule = _Beneath(rights, opened)
            added = system_call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.addressof(rule), 0)
            checked(added, f"landlock_add_rule {path}")
        finally:
            os.close(opened)
