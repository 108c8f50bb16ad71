"""Identity of an opened file, so that a save can tell whether it is still that file; SHA-256 of files and streams."""

import difflib
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from onnxjson.model.display import visible
from onnxjson.model.errors import AccessDeniedError, ChangedUnderneathError, FileError, MissingInputError, OnnxJsonError
from onnxjson.model.payloads import SourceFile

if sys.platform == "win32":
    from pathlib import WindowsPath as _SystemPath
else:
    from pathlib import PosixPath as _SystemPath

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_MOST_NAMES: Final = 1000
"""Maximum number of files among which a similar name is looked for."""

THREAD_FROM: Final = 32 * 1024 * 1024
"""Bytes that are hashed before a thread is started."""


class Identity:
    """A file at one moment: device, inode, size in bytes, times of the last change in ns, and content."""

    __slots__ = ("_facts", "_sha256", "mtime_ns", "path", "size")

    def __init__(self, path: Path, status: os.stat_result, sha256: str | None = None) -> None:
        self.path = path
        self.size = status.st_size
        self.mtime_ns = status.st_mtime_ns
        self._facts = _facts(status)
        self._sha256 = sha256

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the content, read on first use.

        If only the times of a file change later (``touch``, ``chmod``), it counts as unchanged if its hash was read
        before.
        """
        if self._sha256 is None:
            digest = sha256_of(self.path)
            self.check()
            self._sha256 = digest
        return self._sha256

    def check(self, path: Path | None = None) -> None:
        """Raise unless `path` still is this file with this content; by default the path of this identity.

        Raises:
            ChangedUnderneathError: another program changed, replaced or removed it.
            FileError: the system cannot read it.
        """
        path = path or self.path
        try:
            facts = _facts(os.stat(path))
        except FileNotFoundError as error:
            name = visible(str(path), None)
            raise ChangedUnderneathError(f"{name} was removed since it was opened; save under another name") from error
        except OSError as error:
            raise reading_error(path, error) from error
        if facts == self._facts:
            return
        if not (facts[:3] == self._facts[:3] and self._sha256 is not None and sha256_of(path) == self._sha256):
            name = visible(str(path), None)
            raise ChangedUnderneathError(
                f"{name} was changed by another program since it was opened; open it again, or save under another name"
            )


def _facts(status: os.stat_result) -> tuple[int, ...]:
    # No program can set back the time of the last change of the entry (ctime); chmod and new links change it too.
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def identity(path: Path) -> Identity:
    """The identity of the file at `path`; links are followed."""
    with reading_errors(path):
        return Identity(path, os.stat(path))


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of the content of a file."""
    with reading_errors(path), path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class CalledPath(_SystemPath):
    """The path of a file that messages call by another name, which is its text; made by `called`."""

    name_in_messages = ""

    def __str__(self) -> str:
        return self.name_in_messages or super().__str__()

    def __fspath__(self) -> str:
        return str(super().__str__())


def called(path: Path, name: str) -> Path:
    """The path of a file with a name for messages, such as that of git's temporary file."""
    renamed = CalledPath(path)
    renamed.name_in_messages = name
    return renamed


def open_source(path: Path) -> SourceFile:
    """Open a file for reading; raise an error of this package if it is missing, denied or not a regular file."""
    with reading_errors(path):
        return SourceFile(path)


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Convert an error of the system that a file cannot be read to one of this package, as `reading_error` does."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise reading_error(path, error) from error


def reading_error(path: Path, error: OSError | ValueError) -> OnnxJsonError:
    """The error of this package for a file that cannot be read; a ValueError is caused by its name."""
    name = visible(str(path), None)
    if isinstance(error, ValueError):
        return MissingInputError(f"{name} does not exist: it is not a valid file name")
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return MissingInputError(f"{name} does not exist{_alike(path)}")
    if isinstance(error, IsADirectoryError):
        return MissingInputError(f"{name} is a folder; a file is expected")
    if isinstance(error, PermissionError):
        return AccessDeniedError(f"{name} may not be read: {error.strerror}")
    return FileError(f"{name} cannot be read: {error.strerror}")


def _alike(path: Path) -> str:
    """The end of the message about a file that does not exist: models, or files of its kind, beside it."""
    endings = (".onnx", ".onnx.json", ".onnxjson", *filter(None, [path.suffix]))
    revision, _, name = str(path).partition(":")
    if revision and name.endswith(endings[:3]) and "://" not in str(path):
        ending = "".join(Path(name).suffixes[-2:])
        return (
            f"; diff and verify read revisions; others a file: git show {visible(quote(str(path)), None)} > old{ending}"
        )
    with suppress(OSError, ValueError):
        names = [each.name for each in islice(path.parent.iterdir(), _MOST_NAMES)]
        names = sorted([each for each in names if each.endswith(endings)], key=lambda each: each.endswith(path.suffix))
        models = {each.partition(".onnx")[0]: each for each in names}
        near = difflib.get_close_matches(path.name.partition(".onnx")[0], models, n=1, cutoff=0.75)
        return f'; did you mean "{visible(str(path.with_name(models[near[0]])), None)}"?' if near else ""
    return ""


class StreamHash:
    """SHA-256 of a stream of pieces; a piece must not change after `update`.

    Hashing takes as long as writing, and both release the interpreter's lock: from `THREAD_FROM` bytes on, a
    thread hashes one piece while the next one is made and written. At most one piece waits, so that memory is reused.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._length = 0
        self._thread: ThreadPoolExecutor | None = None
        self._last: Future[None] | None = None

    def update(self, piece: bytes | bytearray) -> None:
        """Add a piece."""
        self._length += len(piece)
        if self._length < THREAD_FROM:
            self._digest.update(piece)
            return
        if self._thread is None:
            from concurrent.futures import ThreadPoolExecutor  # here, since importing it takes as long as small saves

            self._thread = ThreadPoolExecutor(1)
        if self._last is not None:
            self._last.result()
        self._last = self._thread.submit(self._digest.update, piece)

    def hexdigest(self) -> str:
        """The hash of all pieces in hexadecimal; no piece can be added afterwards."""
        if self._thread is not None:
            self._thread.shutdown()
        return self._digest.hexdigest()
