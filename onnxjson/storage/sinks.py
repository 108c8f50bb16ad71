"""Sinks for written bytes, and the errors of the system as errors of this package."""

import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from onnxjson.model.errors import AccessDeniedError, FileError, OnnxJsonError, OutputError
from onnxjson.storage.identity import StreamHash

PIECE = 1 << 20
"""Bytes that are collected before the system is asked to write."""

_FICLONE = 0x40049409
"""The request of linux/fs.h that lets two files share their blocks until one of them changes."""

_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_IN_THE_WAY = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EEXIST, errno.ENXIO}


class Sink(Protocol):
    """The destination of the content of a file."""

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Write all of `data`.

        Raises:
            FileError: the system cannot write, for example because the disk is full.
        """


class Output:
    """A sink for a descriptor: writes pieces of about `PIECE` bytes and computes the hash of all."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name
        self._gathered = bytearray()
        self._digest = StreamHash()

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """See `Sink.write`."""
        if len(data) < PIECE and not isinstance(data, memoryview):
            self._gathered += data
            if len(self._gathered) >= PIECE:
                self.flush()
            return
        self.flush()
        with memoryview(data) as view, view.cast("B") as octets:
            self._put(octets)
        # Bytes that the caller may still change are copied.
        self._digest.update(data if isinstance(data, bytes) else bytes(data))

    def flush(self) -> None:
        """Write the collected bytes."""
        if self._gathered:
            gathered, self._gathered = self._gathered, bytearray()
            with memoryview(gathered) as view:
                self._put(view)
            self._digest.update(gathered)

    def clone(self, source: int) -> bool:
        """Become a copy of the file with descriptor `source` that shares its blocks; False if that is impossible.

        Only for an output to which nothing was written.
        """
        if sys.platform != "linux":
            return False
        try:
            fcntl.ioctl(self._descriptor, _FICLONE, source)
        except OSError:
            return False
        with system_errors(f"{self._name} cannot be written"):
            offset = 0
            while piece := os.pread(source, PIECE, offset):
                self._digest.update(piece)
                offset += len(piece)
        return True

    def sha256(self) -> str:
        """Hexadecimal SHA-256 of all written bytes."""
        return self._digest.hexdigest()

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


def system_error(what: str, error: OSError) -> OnnxJsonError:
    """The error of this package for `error`; exit code 77 if forbidden, 73 if something is in the way, else 74."""
    reason = f"{what}: {error.strerror or error}"
    if error.errno in _FORBIDDEN:
        return AccessDeniedError(reason)
    if error.errno in _IN_THE_WAY:
        return OutputError(reason)
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return FileError(f"{reason}; free some space and save again")
    return FileError(reason)
