"""The door for models at URLs: a URL becomes a local file, of which only the bytes that are read are fetched.

fsspec reads the objects (https, s3, gs, az, hf, zip, memory and others) and finds the credentials, by its own means.
What a reader of the model needs is fetched at the door. The local file has holes instead of the elements of weights:
`SourceFile` fetches them when they are read, and a process that opens files by name needs all of them (`fetch_for`)::

    objects/5d41...92/                        one version of one object (`onnxjson.storage.store`)
        01760000000000000000-4711-9f.../
            files/m.onnx                      the bytes that were fetched, at their places; other files next to it
            ranges/9b1c...e0                  those places, as JSON, by the hash of the object's URL
"""

import atexit
import hashlib
import json
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final

from onnxjson.codecs.serde import needed_parts
from onnxjson.model import system
from onnxjson.model.display import visible
from onnxjson.model.errors import (
    AccessDeniedError,
    ChangedUnderneathError,
    FileError,
    LimitError,
    MissingInputError,
    OnnxJsonError,
    UntrustedError,
    WireError,
)
from onnxjson.model.payloads import PROVIDERS
from onnxjson.storage import safetensors
from onnxjson.storage.identity import called
from onnxjson.storage.saving import save_file, system_errors
from onnxjson.storage.store import Store, discard, take_entry
from onnxjson.storage.urls import LOCAL, is_url, shown

CACHE_BYTES: Final = 10 * 10**9
"""Maximum bytes of all copies, unless the environment variable ONNXJSON_CACHE_BYTES has another number."""

_WEB: Final = ("http://", "https://")
_VERSION: Final = ("ETag", "etag", "LastModified", "last_modified", "Last-Modified", "mtime", "updated", "sha256")
"""What file systems call the version of an object."""

_FIRST: Final = 512
_AHEAD: Final = 1 << 20
_PATIENCE: Final = 120
_SLOWEST: Final = 10_000
"""Seconds of waiting for an object until it is refused, unless this many bytes have come in each second."""
_SKIPPED_FROM: Final = 16 * 1024
"""Bytes of a tensor from which a new request costs less than reading them."""


def path_of(name: str | Path) -> Path:
    """The path for the name of a file, or of the local file for a URL; see `open_url`."""
    return open_url(name) if isinstance(name, str) and is_url(name) else Path(name)


def open_url(url: str) -> Path:
    """Return the path of the local file of an object, with the structure of the model in it, or all of a text.

    Raises:
        MissingInputError: there is no such object, or fsspec or a package that it needs is not installed.
        AccessDeniedError, FileError: the object cannot be read.
        ChangedUnderneathError: it was changed while it was read.
    """
    copy = _copies.get(url)
    if copy is None:
        copy = _copies[url] = _Copy(url)
        copy.fetch_for_reader()
    return called(copy.path, shown(url))


def open_next_to(folder: Path, parts: list[str]) -> None:
    """Open a file next to an object whose local file is in `folder`, so that it exists there; no other folder has any.

    Errors are those of `open_url`; UntrustedError for a name that would not remain a name in the URL.
    """
    first = next((copy for copy in _copies.values() if os.fspath(copy.folder) == os.fspath(folder)), None)
    if first is not None and (url := _url_next_to(first.url, parts)) not in _copies:
        _copies[url] = _Copy(url, first, parts)


def _url_next_to(url: str, parts: list[str]) -> str:
    """The URL of a file that a model names; its name stays one, whatever characters it has."""
    head, mark, rest = url.partition("::")
    if head.startswith(_WEB):
        from urllib.parse import quote

        head, parts = head.partition("?")[0], [quote(part, safe="") for part in parts]
    elif any(character in part for part in parts for character in "?#"):
        raise UntrustedError(f"{visible('/'.join(parts))!r}: the name of a file next to {shown(url)} has a ? or #")
    return "/".join([head.rpartition("/")[0], *parts]) + mark + rest


def fetch_for(folder: Path) -> None:
    """Fetch all of the objects whose local files are in `folder`, for a process that opens them by name."""
    for copy in list(_copies.values()):
        if os.fspath(copy.folder) == os.fspath(folder):
            copy.fetch_all()


def forget() -> None:
    """Remove the local files of this process, for one that reads many objects once."""
    for copy in _copies.values():
        copy.remove()
    _copies.clear()


def read_so_far() -> tuple[tuple[str, int, int], ...]:
    """URL, fetched bytes and size of each object that this process has opened."""
    return tuple((shown(copy.url), copy.fetched, copy.size) for copy in _copies.values())


def _store() -> Store:
    given = os.environ.get("ONNXJSON_CACHE_BYTES", "") or str(CACHE_BYTES)
    if not given.isdecimal():
        raise OnnxJsonError(f"the variable ONNXJSON_CACHE_BYTES is {visible(given, 100)!r}; set a number of bytes")
    return Store("cache", "objects", int(given), entries_a_key=1)


class _Copy:
    """One object, and what is here of it."""

    def __init__(self, url: str, first: "_Copy | None" = None, parts: Sequence[str] = ()) -> None:
        """Open an object; if the model `first` names it, its local file is at `parts` next to that of the model."""
        self.url = url
        self._system, self._name = file_system(url)
        self._version, self.size = self._present()
        self.fetched = 0
        self._waited = 0.0
        self._ranges: list[list[int]] = []
        self._next = 0
        self._ahead = _FIRST
        self._lock = threading.Lock()
        with system_errors(f"{self._label()} cannot be kept among the caches"):
            entry, held = self._own_entry() if first is None else (first._entry, os.dup(first._held))
            self._entry: Path = entry
            self._held: int = held
            self.folder = entry / "files"
            name = PurePosixPath(shown(url).partition("::")[0]).name.replace("\0", "") or "model"
            self.path = self.folder.joinpath(*(parts or [name]))
            self._state = self._entry / "ranges" / hashlib.sha256(url.encode()).hexdigest()[:32]
            for folder in (self.path.parent, self._state.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._load()
            self._file = system.open_file(self.path, os.O_RDWR | os.O_CREAT | system.NO_LINK, 0o600)
            os.ftruncate(self._file, self.size)
        status = os.fstat(self._file)
        self._place = status.st_dev, status.st_ino
        PROVIDERS[self._place], LOCAL[str(self.path)] = self, url
        atexit.register(self._keep)

    def _own_entry(self) -> tuple[Path, int]:
        """An entry of this version of the object that no other process uses, and the descriptor of its lock."""
        store, key = _store(), f"{self.url}\n{self._version}"
        for entry in store.entries(key) if self._version else ():
            held = take_entry(entry)
            if held is not None:
                store.evict()
                return Path(os.path.realpath(entry)), held
        entry, held = store.create(key, is_folder=True)
        return Path(os.path.realpath(entry)), held

    def _present(self) -> tuple[str, int]:
        """The version of the object, "" if the file system does not report it, and its size in bytes."""
        with failures(self.url):
            info: dict[str, Any] = self._system.info(self._name)
        if info.get("type") == "directory":
            raise MissingInputError(f"{self._label()} is a folder; a model is read from a file")
        size = info.get("size")
        if size is None:
            with failures(self.url):
                size = len(self._system.cat_file(self._name))
        return " ".join(str(info[key]) for key in _VERSION if info.get(key)), int(size)

    def _label(self) -> str:
        return visible(shown(self.url), None)

    def _load(self) -> None:
        with suppress(OSError, ValueError):
            if self._version and self.path.stat().st_size == self.size:
                self._ranges = [[int(start), int(end)] for start, end in json.loads(self._state.read_bytes())]
        if not self._ranges:
            with suppress(OSError):
                self.path.unlink()

    def _keep(self) -> None:
        """Record the ranges for later processes; without a version they cannot be trusted, so the entry is removed."""
        if not self._version:
            self.remove()
        elif self.fetched:
            with suppress(OSError, OnnxJsonError):
                system.sync(self._file)  # Ranges must not outlive the bytes if the machine crashes.
                save_file(self._state, lambda output: output.write(json.dumps(self._ranges).encode()), mode=0o600)

    def remove(self) -> None:
        """Remove what is here of the object, and of those next to it; nothing can be read afterwards."""
        atexit.unregister(self._keep)
        del PROVIDERS[self._place], LOCAL[str(self.path)]
        os.close(self._file)
        os.close(self._held)
        discard(self._entry)

    def provide(self, start: int, length: int) -> None:
        """See `Provider`."""
        end = min(start + length, self.size)
        with self._lock:
            if not self.has(start, end):
                self._fetch(start, end)

    def fetch_for_reader(self) -> None:
        """Fetch what a reader of the model needs before it asks for tensors."""
        from onnxjson.codecs import text_file

        head = self.read(0, min(self.size, 4096))
        if text_file.looks_like_text(head) or text_file.is_printable(head):
            self.fetch_all()
        elif self.path.suffix != safetensors.ENDING:
            self.fetch_structure()

    def read(self, start: int, length: int) -> bytes:
        """Return bytes of the object, fetched if they are not here."""
        self.provide(start, length)
        return system.read_at(self._file, length, start)

    def has(self, start: int, end: int) -> bool:
        """Whether these bytes are here."""
        at = bisect_right(self._ranges, start, key=lambda each: each[0]) - 1
        return start >= end or (at >= 0 and self._ranges[at][1] >= end)

    def _fetch(self, start: int, end: int) -> None:
        # Requests in a row become longer, as a system reads ahead; one that skips something begins small again.
        self._ahead = min(2 * self._ahead, _AHEAD) if start <= self._next <= end else _FIRST
        at = bisect_right(self._ranges, start, key=lambda each: each[0]) - 1
        if at >= 0:
            start = max(start, min(self._ranges[at][1], end))
        end = min(max(end, start + self._ahead), self.size)
        begun = time.monotonic()
        with failures(self.url):
            data: bytes = self._system.cat_file(self._name, start=start, end=end)
        self._waited += time.monotonic() - begun
        if len(data) == self.size > end - start:  # a server that knows no ranges sends everything
            start, end = 0, self.size
        if len(data) != end - start:
            raise ChangedUnderneathError(f"{self._label()} was changed while it was read; try again")
        system.write_at(self._file, data, start)
        self.fetched += len(data)
        if self._waited > _PATIENCE + self.fetched / _SLOWEST:
            raise FileError(f"{self._label()} comes with less than {_SLOWEST:,} bytes per second; download it first")
        self._next = end
        self._add(start, end)

    def _add(self, start: int, end: int) -> None:
        touching = [each for each in self._ranges if each[0] <= end and each[1] >= start]
        start, end = min([start, *[each[0] for each in touching]]), max([end, *[each[1] for each in touching]])
        self._ranges = sorted([*[each for each in self._ranges if each not in touching], [start, end]])

    def fetch_all(self) -> None:
        """Fetch what is missing, piece by piece, then check that the object is still the same."""
        for start in range(0, self.size, 16 * _AHEAD):
            self.read(start, 16 * _AHEAD)
        self.check()

    def fetch_structure(self) -> None:
        """Fetch all of a serialised model except the elements of its big tensors; damage is left to the parser."""
        with suppress(IndexError, WireError, LimitError):
            for start, end in needed_parts(_Window(self), _SKIPPED_FROM):
                self.read(start, end - start)
        self.check()

    def check(self) -> None:
        """Raise ChangedUnderneathError unless the object is still the version that was opened."""
        if self._present() != (self._version, self.size):
            raise ChangedUnderneathError(f"{self._label()} was changed while it was read; try again")


class _Window:
    """The bytes of a copy as a parser reads them, fetched a few at a time."""

    def __init__(self, copy: _Copy) -> None:
        self._copy = copy
        self._bytes, self._start = b"", 0

    def __len__(self) -> int:
        return self._copy.size

    def __getitem__(self, position: int) -> int:
        if not self._start <= position < self._start + len(self._bytes):
            length = 64 if self._copy.has(position, position + 1) else _FIRST
            self._bytes, self._start = self._copy.read(position, length), position
        return self._bytes[position - self._start]


_copies: Final[dict[str, _Copy]] = {}
"""All objects of this process by URL."""


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of fsspec for a URL, and the name of the object in it."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingInputError(
            f"{visible(shown(url), None)}: URLs need the package fsspec; pip install 'fsspec[http]'"
        ) from error
    protocol, settings = url.rpartition("::")[2].partition("://")[0], {}
    if protocol in {"http", "https"}:
        with failures(url):
            from onnxjson.storage.web import client_settings

            settings["client_kwargs"] = client_settings()
    with failures(url):
        try:
            system, name = fsspec.core.url_to_fs(url, **{protocol: settings})
        except ValueError as error:
            if "::" not in url or "range requests" not in str(error):
                raise
            # Without ranges, the whole archive is fetched, into memory.
            system, name = fsspec.core.url_to_fs(url, **{protocol: {**settings, "cache_type": "all"}})
        return system, str(name)


@contextmanager
def failures(url: str) -> Iterator[None]:
    """Turn what file systems raise, each in its own way, into the errors of this package."""
    name = visible(shown(url), None)
    try:
        yield
    except OnnxJsonError:
        raise
    except ImportError as error:
        raise MissingInputError(f"{name}: {visible(str(error), 300)}") from error
    except Exception as raised:
        # What went wrong on the way is the cause of a FileNotFoundError, too.
        cause = raised.__cause__ or raised if isinstance(raised, FileNotFoundError) else raised
        status = getattr(cause, "status", None)
        if isinstance(cause, FileNotFoundError) or status in {404, 410}:
            raise MissingInputError(f"{name} does not exist") from raised
        text = visible(str(cause) or type(cause).__name__, 300)
        if isinstance(cause, PermissionError) or status in {401, 403} or "Credentials" in type(cause).__name__:
            raise AccessDeniedError(f"{name} may not be read: {text}") from raised
        raise FileError(f"{name} cannot be read: {text}") from raised
