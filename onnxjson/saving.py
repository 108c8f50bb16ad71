"""The one module that writes files: all or nothing, checked before it replaces.

A save goes through a temporary file in the folder of the target: write, fsync, read back, compare, and only then
rename and fsync of the folder. Whatever stops it (a kill, a full disk, an error of the caller), the path holds exactly
the old or exactly the new bytes.
"""

import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from onnxjson.display import visible
from onnxjson.errors import (
    AccessDeniedError,
    ChangedUnderneathError,
    DecodeError,
    EncodeError,
    FileError,
    OutputError,
)
from onnxjson.identity import Identity, sha256_of
from onnxjson.sinks import Output, system_error, system_errors

LOCK_SECONDS = 5.0
"""How long a save waits while another one replaces a file in the same folder."""


def save_file(
    path: Path,
    write: Callable[[Output], None],
    *,
    verify: Callable[[Path], object] | None = None,
    expect: Identity | None = None,
    replace: bool = True,
    backup: Callable[[Path], object] | None = None,
    fsync: bool = True,
    break_hardlink: bool = False,
    mode: int | None = None,
) -> None:
    """Replace or make the file `path` with what `write` gives; return only when it is safely there.

    Args:
        path: a link is followed and kept; what it points to is replaced. Permissions, extended attributes and, where
            the system allows it, owner and group of an existing file are kept.
        write: called once with where the content goes; see `sinks.Sink`.
        verify: called with the temporary file after its bytes were found to be those written; an exception stops it.
        expect: what was opened at `path`; refuse if something else stands there by now.
        replace: whether a file that exists may be replaced.
        backup: called with the existing file just before it is replaced; an exception stops the save.
        fsync: whether to wait until the disk has it. Without, a power cut (not a kill) can leave an empty file.
        break_hardlink: whether a file with several names may be replaced under this one alone.
        mode: permissions of a file that does not exist yet; as the umask says where it is None.

    Raises:
        OutputError: the folder is missing, or something stands in the way.
        FileError: the system could not write, or gave back other bytes.
        AccessDeniedError: the system forbids it.
        ChangedUnderneathError: `path` is not the file that was opened.
        EncodeError: what was written cannot be read again (a `DecodeError` of `verify`).
        Exception: whatever `write`, `verify` and `backup` raise.
    """
    target, status = _target(path, break_hardlink)
    name = visible(str(path), None)
    if not replace:
        _refuse_existing(target, name)
    remove_leftovers(target.parent, _prefix(target))
    descriptor, temporary = _temporary_file(target, status, mode)
    try:
        output = Output(descriptor, name)
        write(output)
        output.flush()
        with system_errors(f"{name} cannot be written"):
            _keep_attributes(descriptor, target, status)
            if fsync:
                os.fsync(descriptor)
        _read_back(temporary, output.sha256(), name, verify)
        if backup is not None and status is not None:
            backup(target)
        with _locked_folder(target.parent, name) as folder:
            if expect is not None:
                expect.check(target)
            if not replace:
                _refuse_existing(target, name)
            with system_errors(f"{name} cannot be replaced"):
                os.replace(temporary, target)
            if fsync:
                _sync_folder(folder, name)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        # The lock on the temporary file goes with the descriptor: until here it says that this run is alive.
        with suppress(OSError):
            os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make a folder in one that is there; do nothing if it is there already.

    Raises:
        OutputError, FileError, AccessDeniedError: the system does not make it.
    """
    name = visible(str(path), None)
    if path.is_dir():
        return
    with system_errors(f"the folder {name} cannot be made"):
        path.mkdir(exist_ok=True)
    with _locked_folder(path.parent, name) as parent:
        _sync_folder(parent, name)


def require_savable(path: Path) -> None:
    """Find out that nothing can be saved at a path before anybody is asked whether to replace what stands there.

    Raises:
        OutputError, AccessDeniedError, FileError: nothing can be saved there: a folder, a device, a file that is
            read-only, no such folder.
    """
    _target(path, break_hardlink=False)


def _target(path: Path, break_hardlink: bool) -> tuple[Path, os.stat_result | None]:
    """The file that a save of `path` replaces, and what stands there now.

    Raises:
        OutputError, AccessDeniedError, FileError: nothing can be saved there.
    """
    name = visible(str(path), None)
    if "\0" in str(path):
        raise OutputError(f"{name} cannot be the name of a file: it holds a zero byte")
    with system_errors(f"{name} cannot be written"):
        try:
            status = os.stat(path)
        except FileNotFoundError:
            target = Path(os.path.realpath(path))
            if not target.parent.is_dir():
                folder = visible(str(target.parent), None)
                raise OutputError(
                    f"{name} cannot be written: the folder {folder} does not exist; make it first"
                ) from None
            return target, None
        target = Path(os.path.realpath(path, strict=True)) if stat.S_ISREG(status.st_mode) else path
    if stat.S_ISDIR(status.st_mode):
        raise OutputError(f"{name} is a folder; give the name of a file")
    if not stat.S_ISREG(status.st_mode):
        raise OutputError(f"{name} is a pipe, socket or device; write to a file, or to standard output with -")
    if status.st_nlink > 1 and not break_hardlink:
        raise OutputError(
            f"{name} has {status.st_nlink} names (hard links), and saving would part this one from the others; "
            "save under another name"
        )
    if not os.access(target, os.W_OK):
        with suppress(OSError):
            if os.statvfs(target).f_flag & os.ST_RDONLY:
                raise AccessDeniedError(
                    f"{name} is on a file system that is read-only; save under another name elsewhere"
                )
        raise AccessDeniedError(f"{name} is read-only; allow writing with chmod u+w, or save under another name")
    return target, status


def _refuse_existing(target: Path, name: str) -> None:
    if os.path.lexists(target):
        raise OutputError(f"{name} exists already; name another file, or say that it may be replaced")


def _prefix(target: Path) -> str:
    # A hash, since the name itself may already have the 255 bytes that a name can have.
    return f".onnxjson-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"


def _temporary_file(target: Path, status: os.stat_result | None, mode: int | None) -> tuple[int, Path]:
    """A new, locked file beside `target`, named after it and this process."""
    temporary = target.with_name(f"{_prefix(target)}{os.getpid()}-{secrets.token_hex(8)}.tmp")
    # What stands there may be private: its permissions come once the content is complete.
    first_mode = 0o600 if status is not None or mode is not None else 0o666
    with system_errors(f"{visible(str(target), None)} cannot be written: no file can be made in its folder"):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, first_mode)
        try:
            with suppress(OSError):  # Some network file systems have no locks; then leftovers stay where they are.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if status is None and mode is not None:
                os.fchmod(descriptor, mode & 0o777)
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                os.unlink(temporary)
            raise
    return descriptor, temporary


def remove_leftovers(folder: Path, prefix: str = ".onnxjson-") -> None:
    """Remove temporary files of killed saves: of this user, no such process, and nobody holding the lock."""
    pattern = re.compile(re.escape(prefix) + r"(?:[0-9a-f]{16}-)?([0-9]{1,10})-[0-9a-f]{16}\.tmp")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = pattern.fullmatch(entry.name)
            if found and not _is_running(int(found[1])):
                with suppress(OSError):
                    _remove_if_abandoned(entry.path)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _remove_if_abandoned(path: str) -> None:
    # The process may live in another container or on another machine, where its number means nothing: ask the lock too.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    finally:
        os.close(descriptor)


def _keep_attributes(descriptor: int, target: Path, status: os.stat_result | None) -> None:
    """Give the new file the owner, attributes and permissions of the one it replaces."""
    if status is None:
        return
    mode = stat.S_IMODE(status.st_mode)
    new = os.fstat(descriptor)
    if new.st_gid != status.st_gid:
        try:
            os.fchown(descriptor, -1, status.st_gid)
        except OSError:
            # What its group may do, the new group may only as far as everybody may.
            mode &= ~0o070 | (mode & 0o007) << 3
    if new.st_uid != status.st_uid:
        with suppress(OSError):
            os.fchown(descriptor, status.st_uid, -1)
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for name in os.listxattr(target):
                with suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(target, name))
    os.fchmod(descriptor, mode)


def _read_back(temporary: Path, sha256: str, name: str, verify: Callable[[Path], object] | None) -> None:
    found = sha256_of(temporary)
    if found != sha256:
        raise FileError(f"{name} was not saved: the disk gave back other bytes than were written; check the disk")
    if verify is None:
        return
    try:
        verify(temporary)
    except DecodeError as error:
        message = f"{name} was not saved: what was written cannot be read again: {error}"
        raise EncodeError(message, error.findings) from error


@contextmanager
def _locked_folder(folder: Path, name: str) -> Iterator[int]:
    """The folder's descriptor, locked, so that two saves cannot both find a file unchanged and both replace it."""
    with system_errors(f"{name} cannot be replaced"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(descriptor, name)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, name: str) -> None:
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise ChangedUnderneathError(
                    f"{name} was not saved: another program holds the lock on its folder; save again"
                ) from None
            time.sleep(0.01)
        except OSError:  # A file system without locks.
            return None


def _sync_folder(descriptor: int, name: str) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # Some file systems cannot, and need not.
            what = f"{name} holds the new content, but the system did not confirm that it stays after a power cut"
            raise system_error(what, error) from error
