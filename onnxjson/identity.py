"""Which file was opened, so that a save can tell whether it still is that file."""

import os
from pathlib import Path

from onnxjson.display import visible
from onnxjson.errors import AccessDeniedError, ChangedUnderneathError, FileError, MissingInputError, OnnxJsonError
from onnxjson.hashing import StreamHash
from onnxjson.payloads import CHUNK, SourceFile


class Identity:
    """A file as it was at one moment: device, inode, size in bytes, time of the last change in ns, and its content."""

    __slots__ = ("_sha256", "device", "inode", "mtime_ns", "path", "size")

    def __init__(self, path: Path, status: os.stat_result, sha256: str | None = None) -> None:
        self.path = path
        self.device = status.st_dev
        self.inode = status.st_ino
        self.size = status.st_size
        self.mtime_ns = status.st_mtime_ns
        self._sha256 = sha256

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the content, read on first use.

        A file of which only the time changes later (``touch``) counts as unchanged if its hash was taken before.

        Raises:
            ChangedUnderneathError: the file is not what it was, so its hash can no longer be had.
            FileError: the system could not read.
        """
        if self._sha256 is None:
            digest = sha256_of(self.path)
            self.check()
            self._sha256 = digest
        return self._sha256

    def check(self, path: Path | None = None) -> None:
        """Do nothing if `path` (that of this identity where it is None) still holds this file with this content.

        Raises:
            ChangedUnderneathError: another program changed, replaced or removed it.
            FileError: the system could not read.
        """
        path = path or self.path
        try:
            now = os.stat(path)
        except FileNotFoundError as error:
            name = visible(str(path), None)
            raise ChangedUnderneathError(f"{name} was removed since it was opened; save under another name") from error
        except OSError as error:
            raise reading_error(path, error) from error
        if self._same(now):
            return
        same_place = (now.st_dev, now.st_ino, now.st_size) == (self.device, self.inode, self.size)
        if not (same_place and self._sha256 is not None and sha256_of(path) == self._sha256):
            name = visible(str(path), None)
            raise ChangedUnderneathError(
                f"{name} was changed by another program since it was opened; open it again, or save under another name"
            )

    def _same(self, status: os.stat_result) -> bool:
        found = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        return found == (self.device, self.inode, self.size, self.mtime_ns)


def identity(path: Path) -> Identity:
    """What `path` is now; links are followed.

    Raises:
        MissingInputError, AccessDeniedError, FileError: it cannot be looked at.
    """
    try:
        return Identity(path, os.stat(path))
    except OSError as error:
        raise reading_error(path, error) from error


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of the content of a file.

    Raises:
        MissingInputError, AccessDeniedError, FileError: it cannot be read.
    """
    digest = StreamHash()
    try:
        with path.open("rb", buffering=0) as file:
            while piece := file.read(CHUNK):
                digest.update(piece)
    except OSError as error:
        raise reading_error(path, error) from error
    return digest.hexdigest()


def open_source(path: Path) -> SourceFile:
    """A file, opened to be read.

    Raises:
        MissingInputError, AccessDeniedError, FileError: it cannot be opened, or is no regular file.
    """
    try:
        return SourceFile(path)
    except (OSError, ValueError) as error:
        raise reading_error(path, error) from error


def reading_error(path: Path, error: OSError | ValueError) -> OnnxJsonError:
    """The error of this package that says why `path` cannot be read; a ValueError is about its name."""
    name = visible(str(path), None)
    if isinstance(error, ValueError):
        return MissingInputError(f"{name} does not exist: no file can have that name")
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return MissingInputError(f"{name} does not exist")
    if isinstance(error, IsADirectoryError):
        return MissingInputError(f"{name} is a folder; a model is read from a file")
    if isinstance(error, PermissionError):
        return AccessDeniedError(f"{name} may not be read: {error.strerror}")
    return FileError(f"{name} cannot be read: {error.strerror}")
