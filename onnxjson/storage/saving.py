"""The only module that writes files: all or nothing, verified before an existing file is replaced.

A save writes a temporary file in the folder of the target: write, fsync, read back, compare, and only then rename and
fsync of the folder. Whatever stops it (a kill, a full disk, an error of the caller), the path has exactly the old or
exactly the new bytes.
"""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from onnxjson.model import errors, system
from onnxjson.model.display import visible
from onnxjson.storage.identity import Identity, StreamHash, sha256_of
from onnxjson.storage.locks import lock, take_leftover
from onnxjson.storage.urls import refuse_writing

PIECE = 1 << 20
"""Number of bytes that are collected before each write."""

_GATHERED = 1 << 16
"""Only shorter pieces are collected: copying longer ones would take as long as writing them."""

_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_IN_THE_WAY = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EEXIST, errno.ENXIO}

LOCK_SECONDS = 5.0
"""Seconds that a save waits while another one replaces a file in the same folder."""


class Sink(Protocol):
    """The destination of the content of a file."""

    def write(self, data: bytes | bytearray | memoryview, /) -> object:
        """Write all of `data`.

        Raises:
            FileError: the system cannot write, for example because the disk is full.
        """


class Output:
    """A sink for a descriptor: writes pieces of about `PIECE` bytes; computes the hash of all unless it is known."""

    def __init__(self, descriptor: int, name: str, sha256: str | None = None) -> None:
        self._descriptor = descriptor
        self._name = name
        self._gathered = bytearray()
        self._sha256 = sha256
        self._digest = StreamHash()

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """See `Sink.write`."""
        if len(data) < _GATHERED and not isinstance(data, memoryview):
            self._gathered += data
            if len(self._gathered) >= PIECE:
                self.flush()
            return
        self.flush()
        with memoryview(data) as view, view.cast("B") as octets:
            self._put(octets)
        if self._sha256 is None:
            # Bytes that the caller may still change are copied.
            self._digest.update(data if isinstance(data, bytes) else bytes(data))

    def flush(self) -> None:
        """Write the collected bytes."""
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            with memoryview(gathered) as view:
                self._put(view)
            if self._sha256 is None:
                self._digest.update(gathered)

    def clone(self, source: int) -> bool:
        """Let an empty output become a copy of an open file that shares its blocks; False if that is impossible.

        The hash of the copy is that of `save_file`, and is not computed here.
        """
        return system.share_blocks(source, self._descriptor)

    def sha256(self) -> str:
        """Hexadecimal SHA-256 of all bytes that were to be written."""
        return self._sha256 or self._digest.hexdigest()

    def _put(self, view: memoryview) -> None:
        start = 0
        with system_errors(f"{self._name} cannot be written"):
            while start < len(view):
                start += os.write(self._descriptor, view[start : start + PIECE])


@contextmanager
def system_errors(what: str) -> Iterator[None]:
    """Convert an `OSError` to an error of this package whose message begins with `what`."""
    try:
        yield
    except OSError as error:
        raise system_error(what, error) from error


def system_error(what: str, error: OSError) -> errors.OnnxJsonError:
    """The error of this package for `error`; exit code 77 if forbidden, 73 if something is in the way, else 74."""
    reason = f"{what}: {error.strerror or error}"
    if error.errno in _FORBIDDEN:
        return errors.AccessDeniedError(reason)
    if error.errno in _IN_THE_WAY:
        return errors.OutputError(reason)
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return errors.FileError(f"{reason}; free some space and save again")
    return errors.FileError(reason)


def save_file(
    path: Path,
    write: Callable[[Output], object],
    *,
    verify: Callable[[Path], object] | None = None,
    expect: Identity | None = None,
    replace: bool = True,
    backup: Callable[[Path], object] | None = None,
    fsync: bool = True,
    mode: int | None = None,
    sha256: str | None = None,
    beneath: system.Folder | None = None,
) -> None:
    """Create or replace a file; return only when it is safely on the disk.

    Args:
        path: a link is followed and kept; its target is replaced. Permissions, extended attributes and, if the system
            allows it, owner and group of an existing file are kept.
        write: called once with the sink for the content.
        verify: called with the temporary file after its bytes were compared; an exception stops the save.
        expect: the file that was opened at `path`; raise if it was changed.
        replace: whether an existing file may be replaced.
        backup: called with the existing file just before it is replaced; an exception stops the save.
        fsync: whether to wait until the file is on the disk; if not, a power cut (not a kill) can leave an empty file.
        mode: permissions of a new file; by default those of the umask.
        sha256: hash of the content, if it is known before it is written; the bytes that are read back must have it.
        beneath: an open folder in which the file must be, whatever links were exchanged meanwhile.

    Raises:
        UntrustedError: the file would not be beneath the folder.
        OutputError: the folder is missing, or something else is in the way.
        FileError: the system cannot write, or reads back other bytes.
        AccessDeniedError: permission denied.
        ChangedUnderneathError: `path` is no longer the file that was opened.
        EncodeError: the written file cannot be read again (a `DecodeError` of `verify`).
        Exception: whatever `write`, `verify` and `backup` raise.
    """
    refuse_writing(path)
    target, status = _target(path)
    name = visible(str(path), None)
    if not replace:
        _refuse_existing(target, name)
    # From here on the folder is the one that is open: another one under the same path is not written to.
    with _open_folder(target.parent, name) as folder:
        if beneath is not None and not folder.is_beneath(beneath):
            raise errors.UntrustedError(f"{name} is not in the folder that --allow-write names")
        remove_leftovers(target.parent, _prefix(target))
        descriptor, temporary = _temporary_file(target, folder, status, mode)
        try:
            output = Output(descriptor, name, sha256)
            write(output)
            output.flush()
            with system_errors(f"{name} cannot be written"):
                _keep_attributes(descriptor, target, status)
                if fsync:
                    system.sync(descriptor)
            _read_back(temporary, output.sha256(), name, verify)
            if backup is not None and status is not None:
                backup(target)
            _lock(folder, name)
            if expect is not None:
                expect.check(target)
            if not replace:
                _refuse_existing(target, name)
            with system_errors(f"{name} cannot be replaced"):
                _replace(folder, temporary.name, target.name)
            if fsync:
                _sync_folder(folder, name)
        except BaseException:
            with suppress(OSError):
                folder.remove(temporary.name)
            raise
        finally:
            # Closing the descriptor releases the lock on the temporary file, which shows that this process is alive.
            with suppress(OSError):
                os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder in an existing one, unless it exists."""
    name = visible(str(path), None)
    if path.is_dir():
        return
    with system_errors(f"the folder {name} cannot be created"):
        path.mkdir(exist_ok=True)
    with _open_folder(path.parent, name) as parent:
        _lock(parent, name)
        _sync_folder(parent, name)


def require_savable(path: Path) -> None:
    """Raise unless a file can be saved at a path; to call before the user is asked whether to replace a file."""
    _target(path)


def _target(path: Path) -> tuple[Path, os.stat_result | None]:
    """The file that a save of `path` replaces, and its status if it exists; raise if a file cannot be saved there."""
    name = visible(str(path), None)
    if "\0" in str(path):
        raise errors.OutputError(f"{name} cannot be the name of a file: it has a zero byte")
    with system_errors(f"{name} cannot be written"):
        try:
            status = os.stat(path)
        except FileNotFoundError:
            target = Path(os.path.realpath(path))
            if not target.parent.is_dir():
                folder = visible(str(target.parent), None)
                raise errors.OutputError(
                    f"{name} cannot be written: the folder {folder} does not exist; create it first"
                ) from None
            return target, None
        target = Path(os.path.realpath(path, strict=True)) if stat.S_ISREG(status.st_mode) else path
    if stat.S_ISDIR(status.st_mode):
        raise errors.OutputError(f"{name} is a folder; choose the name of a file")
    if not stat.S_ISREG(status.st_mode):
        raise errors.OutputError(f"{name} is a pipe, socket or device; write to a file, or to standard output with -")
    if status.st_nlink > 1:
        raise errors.OutputError(
            f"{name} has {status.st_nlink} names (hard links), and a save would separate this one from the others; "
            "save under another name"
        )
    if not os.access(target, os.W_OK):
        with suppress(OSError):
            if system.HAS_OWNERS and os.statvfs(target).f_flag & os.ST_RDONLY:
                raise errors.AccessDeniedError(f"{name} is on a read-only file system; save it elsewhere")
        raise errors.AccessDeniedError(f"{name} is read-only; allow writing with chmod u+w, or save under another name")
    return target, status


def _refuse_existing(target: Path, name: str) -> None:
    if os.path.lexists(target):
        raise errors.OutputError(f"{name} already exists; choose another file, or allow replacing it")


def _prefix(target: Path) -> str:
    # A hash, since the name may already have the maximum of 255 bytes.
    return f".onnxjson-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"


def _temporary_file(
    target: Path, folder: system.Folder, status: os.stat_result | None, mode: int | None
) -> tuple[int, Path]:
    temporary = target.with_name(f"{_prefix(target)}{os.getpid()}-{os.urandom(8).hex()}.tmp")
    # An existing file may be private: its permissions are set once the content is complete.
    first_mode = 0o600 if status is not None or mode is not None else 0o666
    with system_errors(f"{visible(str(target), None)} cannot be written: its folder does not allow new files"):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.NO_LINK
        descriptor = system.open_file(temporary.name, flags, first_mode, beside=folder)
        try:
            lock(descriptor)
            if status is None and mode is not None:
                system.set_mode(descriptor, mode & 0o777)
        except BaseException:
            os.close(descriptor)
            with suppress(OSError):
                folder.remove(temporary.name)
            raise
    return descriptor, temporary


def remove_leftovers(folder: Path, prefix: str = ".onnxjson-") -> None:
    """Remove temporary files of killed saves: those of this user without a lock.

    A file without a lock may be one that a running process is just creating, unless it is a minute old.
    """
    pattern = re.compile(re.escape(prefix) + r"(?:[0-9a-f]{16}-)?([0-9]{1,10})-[0-9a-f]{16}\.tmp")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = pattern.fullmatch(entry.name)
            descriptor = take_leftover(entry.path, int(found[1])) if found else None
            if descriptor is not None:
                with suppress(OSError):
                    os.unlink(entry.path)
                os.close(descriptor)


def _keep_attributes(descriptor: int, target: Path, status: os.stat_result | None) -> None:
    if status is None or not system.HAS_OWNERS:
        return
    mode = stat.S_IMODE(status.st_mode)
    new = os.fstat(descriptor)
    if new.st_gid != status.st_gid:
        try:
            os.fchown(descriptor, -1, status.st_gid)
        except OSError:
            # The new group gets only those permissions of the old group that all users have.
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
    if sha256_of(temporary) != sha256:
        what = (
            "the disk returned other bytes than were to be written; check the disk, or save again if a source changed"
        )
        raise errors.FileError(f"{name} was not saved: {what}")
    if verify is None:
        return
    try:
        verify(temporary)
    except errors.DecodeError as error:
        message = f"{name} was not saved: the written file cannot be read again: {error}"
        raise errors.EncodeError(message, error.findings) from error


@contextmanager
def _open_folder(path: Path, name: str) -> Iterator[system.Folder]:
    """Open a folder, whose lock is released at the end."""
    with system_errors(f"{name} cannot be written"):
        folder = system.Folder(path)
    try:
        yield folder
    finally:
        with suppress(OSError):
            folder.close()


def _replace(folder: system.Folder, name: str, target: str) -> None:
    before, after = folder.at(name), folder.at(target)
    try:
        os.replace(before, after, src_dir_fd=folder.descriptor, dst_dir_fd=folder.descriptor)
    except PermissionError:
        # On Windows a file that is open, such as the model with its weights, is not replaced, but it can be renamed.
        if system.OPENS_FOLDERS or not os.path.isfile(after):
            raise
        aside = f"{after}.onnxjson-old"
        os.replace(after, aside)
        try:
            os.replace(before, after)
        except BaseException:
            os.replace(aside, after)
            raise
        with suppress(OSError):
            os.unlink(aside)


def _lock(folder: system.Folder, name: str) -> None:
    """Lock a folder, so that two saves cannot both find a file unchanged and both replace it."""
    try:
        if folder.descriptor is not None:  # Windows has no locks on folders
            lock(folder.descriptor, LOCK_SECONDS)
    except BlockingIOError:
        message = f"{name} was not saved: another program holds the lock on its folder; save again"
        raise errors.ChangedUnderneathError(message) from None


def _sync_folder(folder: system.Folder, name: str) -> None:
    try:
        folder.sync()
    except OSError as error:
        if error.errno not in {
            errno.EINVAL,
            errno.ENOTSUP,
        }:  # Some file systems do not support this, and do not need it.
            what = f"{name} has the new content, but the system did not confirm that it survives a power cut"
            raise system_error(what, error) from error
