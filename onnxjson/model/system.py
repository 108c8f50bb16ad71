"""What differs between Linux, macOS and Windows: files, locks, processes. Other modules ask here, not for the system.

Windows has no descriptors of folders, and by default a file that is open can be neither renamed nor removed there. So
files are opened with permission to do both (`open_file`), and paths take the place of descriptors (`Folder`). What is
weaker there is said in SECURITY.md. `tests/contracts/test_other_systems.py` takes away what Windows lacks.
"""

import errno
import os
import stat
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, Final


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


_fcntl, _msvcrt = _module("fcntl"), _module("msvcrt")

FORKS: Final = hasattr(os, "fork")
"""Whether a process can be copied: then each guarded job runs in a copy of its server, else in the server itself."""

HAS_OWNERS: Final = hasattr(os, "geteuid")
"""Whether files have an owner and permissions that Python shows; on Windows the folders of a user are private."""

OPENS_FOLDERS: Final = hasattr(os, "O_DIRECTORY")

_FOLDER: Final = getattr(os, "O_DIRECTORY", 0)
NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
"""Flag of `open_file`: refuse a symbolic link; on Windows, `is_link` is asked before."""
NO_WAITING: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""Flag of `open_file`: never wait for the other end of a pipe."""
_ALWAYS: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)

_FICLONE: Final = 0x40049409
"""The request of linux/fs.h that lets two files share their blocks until one of them changes."""

_LOCKED_BYTE: Final = 1 << 42
"""The byte that a lock on Windows covers, behind the content of all files: others could not read a locked byte."""

_seeking: Final = threading.RLock()
"""Held where a position is set and used: a handler of a signal may write while a write is running."""


def user_id() -> int:
    """Return the ID of the user of this process; 0, as the owner of all files, on Windows."""
    return os.geteuid() if HAS_OWNERS else 0


def open_file(path: str | Path, flags: int, mode: int = 0o666, *, beside: "Folder | None" = None) -> int:
    """Open a file, or a name in the folder `beside`, as `os.open` does; return its descriptor, which no child gets."""
    if beside is not None:
        path = beside.at(os.fspath(path))
    if sys.platform == "win32":
        return _opened_on_windows(os.fspath(path), flags)
    return os.open(path, flags | _ALWAYS, mode, dir_fd=None if beside is None else beside.descriptor)


def open_lockable(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a file or folder for `try_lock`; where folders cannot be opened, a file in it that has no other use."""
    if not OPENS_FOLDERS and os.path.isdir(path):
        path, flags = os.path.join(path, ".lock"), os.O_RDWR | os.O_CREAT
    return open_file(path, flags)


def open_for_reading(path: str | Path, flags: int) -> int:
    """Open a file without waiting; an opener of Python's `open`."""
    return open_file(path, flags | NO_WAITING)


class Folder:
    """An open folder, in which files have plain names; the same folder also if another one gets its path."""

    def __init__(self, path: str | Path, *, beside: "Folder | None" = None, flags: int = 0) -> None:
        """Open a folder, or a name in the folder `beside`; OSError if there is none."""
        self.path = path if beside is None else beside.at(os.fspath(path))
        self.descriptor: int | None = None
        if OPENS_FOLDERS:
            self.descriptor = open_file(path, os.O_RDONLY | _FOLDER | flags, beside=beside)
        elif not os.path.isdir(self.path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self.path))

    def at(self, name: str) -> str:
        """Return the name of a file in this folder for functions that also get the descriptor."""
        return name if self.descriptor is not None else os.path.join(self.path, name)

    def status(self) -> os.stat_result:
        """Return the status of the folder."""
        return os.stat(self.path if self.descriptor is None else self.descriptor)

    def status_of(self, name: str) -> os.stat_result:
        """Return the status of what has that name in this folder; links are not followed."""
        return os.stat(self.at(name), dir_fd=self.descriptor, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self.at(name), dir_fd=self.descriptor)

    def sync(self) -> None:
        """Wait until the names in this folder are on the disk; Windows does so itself."""
        if self.descriptor is not None:
            sync(self.descriptor)

    def is_beneath(self, top: "Folder") -> bool:
        """Whether this folder is `top` or inside it, by going up from it."""
        if self.descriptor is None or top.descriptor is None:
            return Path(os.path.realpath(self.path)).is_relative_to(os.path.realpath(top.path))
        wanted, at = os.fstat(top.descriptor), os.dup(self.descriptor)
        flags = _FOLDER | _ALWAYS | getattr(os, "O_PATH", os.O_RDONLY)
        try:
            while not os.path.samestat(below := os.fstat(at), wanted):
                above = os.open("..", flags, dir_fd=at)
                os.close(at)
                at = above
                if os.path.samestat(below, os.fstat(at)):
                    return False
        finally:
            os.close(at)
        return True

    def close(self) -> None:
        """Close the descriptor, which releases its lock."""
        if self.descriptor is not None:
            descriptor, self.descriptor = self.descriptor, None
            os.close(descriptor)


def try_lock(descriptor: int) -> None:
    """Lock an open file or folder until it is closed, without waiting.

    Raises:
        BlockingIOError: another process holds the lock.
        OSError: there are no locks on that file system.
    """
    if _fcntl is not None:
        _fcntl.flock(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        return
    if _msvcrt is None:
        raise OSError(errno.ENOTSUP, "this system has no locks")
    with _seeking:
        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            _msvcrt.locking(descriptor, _msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(errno.EAGAIN, "another process holds the lock") from error
        finally:
            os.lseek(descriptor, position, os.SEEK_SET)


def read_at(descriptor: int, length: int, offset: int) -> bytes:
    """Read at most `length` bytes from `offset` of an open file."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    with _seeking:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, length)


def write_at(descriptor: int, data: bytes | memoryview, offset: int) -> int:
    """Write bytes from `offset` of an open file on; return how many were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, offset)
    with _seeking:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.write(descriptor, data)


def sync(descriptor: int) -> None:
    """Wait until an open file or folder is on the disk; on macOS, `os.fsync` leaves it in the cache of the disk."""
    if hasattr(_fcntl, "F_FULLFSYNC"):
        try:
            _fcntl.fcntl(descriptor, _fcntl.F_FULLFSYNC)
        except OSError:  # as of a file system on a network
            os.fsync(descriptor)
    else:
        os.fsync(descriptor)


def share_blocks(source: int, target: int) -> bool:
    """Let an empty open file become a copy of another one that shares its blocks; False if that is impossible."""
    if sys.platform != "linux" or _fcntl is None:
        return False
    try:
        _fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def set_mode(descriptor: int, mode: int) -> None:
    """Set the permissions of an open file, where they are more than a bit."""
    if HAS_OWNERS:
        os.fchmod(descriptor, mode)


def is_link(status: os.stat_result) -> bool:
    """Whether a status that followed no link is that of a link; on Windows also of a junction."""
    reparse = getattr(status, "st_file_attributes", 0) & getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0)
    return stat.S_ISLNK(status.st_mode) or bool(reparse)


def bytes_on_disk(status: os.stat_result) -> int:
    """Return how many bytes of a file are on the disk, without its holes; on Windows its size."""
    blocks = getattr(status, "st_blocks", None)
    return status.st_size if blocks is None else int(blocks) * 512


def memory_bytes() -> int:
    """Return the memory of this machine in bytes; 0 where Python does not know it, as on Windows."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0


def show_colours() -> None:
    """Let the console of Windows draw colours and other control sequences, as all other terminals do."""
    if sys.platform == "win32":
        import ctypes

        windows = ctypes.windll.kernel32
        for number in (-11, -12):  # standard output and standard error
            console, settings = windows.GetStdHandle(number), ctypes.c_uint32()
            if windows.GetConsoleMode(console, ctypes.byref(settings)):
                windows.SetConsoleMode(console, settings.value | 4)  # ENABLE_VIRTUAL_TERMINAL_PROCESSING


def _opened_on_windows(path: str, flags: int) -> int:
    """Open a file that may be renamed and removed while it is open."""
    if sys.platform != "win32":
        raise NotImplementedError
    import ctypes
    import msvcrt

    windows = ctypes.WinDLL("kernel32", use_last_error=True)
    windows.CreateFileW.restype = ctypes.c_void_p
    windows.CreateFileW.argtypes = [ctypes.c_wchar_p, *[ctypes.c_uint32] * 2, ctypes.c_void_p, *[ctypes.c_uint32] * 2,
                                    ctypes.c_void_p]  # fmt: skip
    access = {os.O_RDONLY: 0x80000000, os.O_WRONLY: 0x40000000}.get(flags & 3, 0xC0000000)  # GENERIC_READ, _WRITE
    if flags & os.O_CREAT:
        creation = 1 if flags & os.O_EXCL else 2 if flags & os.O_TRUNC else 4  # CREATE_NEW, _ALWAYS, OPEN_ALWAYS
    else:
        creation = 5 if flags & os.O_TRUNC else 3  # TRUNCATE_EXISTING, OPEN_EXISTING
    shared, normal = 0x7, 0x80  # FILE_SHARE_READ, _WRITE and _DELETE; FILE_ATTRIBUTE_NORMAL
    handle = windows.CreateFileW(path, access, shared, None, creation, normal, None)
    if handle == ctypes.c_void_p(-1).value:
        error = ctypes.get_last_error()
        raise OSError(None, ctypes.FormatError(error), path, error)
    return msvcrt.open_osfhandle(handle, flags & (os.O_RDWR | os.O_WRONLY | os.O_APPEND) | os.O_BINARY)
