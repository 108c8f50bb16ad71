"""Tensor bytes that stay in a file until they are needed.

A payload knows its length without being read and can be read in pieces, so that a model of many gigabytes can be kept,
compared and written without ever being in memory. Small bytes are plain ``bytes``; ``Data`` is either.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from onnxjson.model import system
from onnxjson.model.display import visible
from onnxjson.model.errors import ChangedUnderneathError, FileError, MissingInputError, WeightsMissingError

CHUNK = 768 * 1024
"""Bytes read at a time; a multiple of 3, so that base64 of the pieces joins to the base64 of the whole."""

_THREADS_FROM = 32 * 1024 * 1024
"""Minimum bytes of payloads that are hashed in threads."""

LAZY_FROM = 4096
"""Bytes from which a tensor's payload is left in its file."""


class Provider(Protocol):
    """What brings the bytes of a file that are not in it yet, as `onnxjson.storage.remote` does."""

    def provide(self, start: int, length: int) -> None:
        """Write those of the bytes to the file that are not in it yet; raise an error of this package otherwise."""


PROVIDERS: Final[dict[tuple[int, int], Provider]] = {}
"""By device and inode of the file. Until its bytes are read, the file has holes where they belong."""


class SourceFile:
    """One opened file, read at offsets; reading fails once another program has changed it."""

    __slots__ = ("_file", "_identity", "_provider", "path", "size", "status")

    def __init__(self, path: Path, descriptor: int | None = None) -> None:
        """Open `path`, or use a `descriptor` that is open on it; it is closed with this object.

        Anything but a regular file (a folder, a pipe, a device) is refused without waiting: MissingInputError.
        """
        self.path = path
        file: int | Path = path if descriptor is None else descriptor
        opener = system.open_for_reading if descriptor is None else None
        self._file = open(file, "rb", buffering=0, opener=opener)  # noqa: SIM115 - closed with the object
        self.status = os.fstat(self._file.fileno())
        """The status of the file when it was opened."""
        if not stat.S_ISREG(self.status.st_mode):
            self._file.close()
            raise MissingInputError(f"{visible(str(path), None)} is not a regular file; a model is read from one")
        self.size = self.status.st_size
        self._provider = PROVIDERS.get((self.status.st_dev, self.status.st_ino))
        self._identity = (self.status.st_size, self.status.st_mtime_ns)

    def __del__(self) -> None:
        # Closed explicitly: Python prints a warning if it has to close a file itself, and for Ctrl-C while it does so.
        with suppress(AttributeError, OSError, KeyboardInterrupt):
            self._file.close()

    def fileno(self) -> int:
        """The descriptor, for a memory map."""
        return self._file.fileno()

    @property
    def is_complete(self) -> bool:
        """Whether all bytes are in the file, so that a memory map of it has them."""
        return self._provider is None

    def read_at(self, offset: int, length: int) -> bytes:
        """Read exactly `length` bytes from `offset`; raise ChangedUnderneathError if the file was changed."""
        if self._provider is not None:
            self._provider.provide(offset, length)
        try:
            data = system.read_at(self._file.fileno(), length, offset)
            while len(data) < length and (
                more := system.read_at(self._file.fileno(), length - len(data), offset + len(data))
            ):
                data += more
            status = os.fstat(self._file.fileno())
        except OSError as error:
            raise FileError(f"{visible(str(self.path), None)} cannot be read: {error.strerror}") from error
        is_same = self._provider is not None or (status.st_size, status.st_mtime_ns) == self._identity
        if len(data) != length or not is_same:
            raise ChangedUnderneathError(
                f"{visible(str(self.path), None)} was changed while it was open; open it again"
            )
        return data


class Payload:
    """Bytes that are not in memory: a length, and a way to read them in pieces."""

    __slots__ = ("_sha256", "length")

    def __init__(self, length: int) -> None:
        self.length = length
        """Number of bytes."""
        self._sha256: str | None = None

    def chunks(self) -> Iterator[bytes]:
        """The bytes in order, in pieces of `CHUNK` (the last one shorter)."""
        raise NotImplementedError

    def read(self) -> bytes:
        """All bytes at once."""
        return b"".join(self.chunks())

    def part(self, start: int, length: int) -> bytes:
        """Return some of the bytes, fewer at the end; those before them are read only where this cannot be avoided."""
        content, at = b"", 0
        for piece in self.chunks():
            content += piece[max(start - at, 0) : max(start + length - at, 0)]
            at += len(piece)
            if at >= start + length:
                break
        return content

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the bytes, computed on first use."""
        if self._sha256 is None:
            digest = hashlib.sha256()
            for piece in self.chunks():
                digest.update(piece)
            self._sha256 = digest.hexdigest()
        return self._sha256

    def __len__(self) -> int:
        return self.length

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Payload):
            return self.length == other.length and self.sha256 == other.sha256
        if isinstance(other, bytes):
            return self.length == len(other) and self.sha256 == hashlib.sha256(other).hexdigest()
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.read())

    def __repr__(self) -> str:
        return f"<{self.length:,} bytes in a file>"


class Digest(Payload):
    """Bytes that are not available: only their length and their SHA-256 are known."""

    __slots__ = ("folder",)

    def __init__(self, sha256: str, length: int, folder: str | None = None) -> None:
        super().__init__(length)
        self._sha256 = sha256
        self.folder = folder
        """The folder of blobs that has them, as the text names it; None if the text has only the digest."""

    def chunks(self) -> Iterator[bytes]:
        """Raise WeightsMissingError, since there are no bytes."""
        raise WeightsMissingError(f"the bytes with the sha256 {self.sha256} are not here")

    def __repr__(self) -> str:
        return f"<{self.length:,} bytes elsewhere, sha256 {self.sha256[:12]}>"


class FileSlice(Payload):
    """Bytes that are stored in a file as they are."""

    __slots__ = ("_source", "offset")

    def __init__(self, source: SourceFile, offset: int, length: int) -> None:
        super().__init__(length)
        self._source = source
        self.offset = offset
        """Where they begin in the file."""

    def __repr__(self) -> str:
        return f"<{self.length:,} bytes from {self.offset:,} of file {id(self._source)}>"

    @property
    def path(self) -> Path | None:
        """The file, without links; None if another one has its name by now, or it was changed."""
        try:
            path = self._source.path.resolve()
            status, opened = path.stat(), self._source.status
        except OSError:
            return None
        same = os.path.samestat(status, opened) and (status.st_size, status.st_mtime_ns) == (
            opened.st_size,
            opened.st_mtime_ns,
        )
        return path if same else None

    def chunks(self) -> Iterator[bytes]:
        for start in range(0, self.length, CHUNK):
            yield self._source.read_at(self.offset + start, min(CHUNK, self.length - start))

    def part(self, start: int, length: int) -> bytes:
        length = min(length, self.length - start)
        return self._source.read_at(self.offset + start, length) if length > 0 else b""


class Base64Slice(Payload):
    """Bytes that are stored in a file as canonical base64, which the reader has checked."""

    __slots__ = ("_offset", "_source", "_text_length")

    def __init__(self, source: SourceFile, offset: int, text_length: int, length: int) -> None:
        super().__init__(length)
        self._source = source
        self._offset = offset
        self._text_length = text_length

    def chunks(self) -> Iterator[bytes]:
        import pybase64

        text_chunk = CHUNK // 3 * 4
        for start in range(0, self._text_length, text_chunk):
            text = self._source.read_at(self._offset + start, min(text_chunk, self._text_length - start))
            yield pybase64.b64decode(text, validate=True)


Data = bytes | Payload
"""The value of a field with the bytes of a tensor: in memory, or still in a file."""


def hash_all(found: Iterable[Data]) -> None:
    """Compute the SHA-256 of payloads; if they are big, in threads, since hashing releases the interpreter's lock."""
    waiting = [data for data in found if isinstance(data, Payload) and data.length >= CHUNK]
    if sum([data.length for data in waiting]) >= _THREADS_FROM:
        from concurrent.futures import ThreadPoolExecutor  # here, since importing it takes as long as small models

        with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
            list(pool.map(lambda data: data.sha256, waiting))


def pieces(data: Data) -> Iterator[bytes]:
    """Iterate over the bytes of `data`, in pieces."""
    if isinstance(data, bytes):
        yield data
    else:
        yield from data.chunks()


def even_pieces(data: Data) -> Iterator[bytes]:
    """The bytes of `data` in pieces of `CHUNK` at most that no element crosses: `CHUNK` is a multiple of 48 bytes."""
    for piece in pieces(data):
        for start in range(0, len(piece), CHUNK):
            yield piece[start : start + CHUNK]


def whole(data: Data) -> bytes:
    """Return the bytes of `data` in one piece."""
    return data if isinstance(data, bytes) else data.read()


def part(data: Data, start: int, length: int) -> bytes:
    """Return some of the bytes of `data`, fewer at the end."""
    return data[start : start + length] if isinstance(data, bytes) else data.part(start, length)
