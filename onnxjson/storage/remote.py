"""Models at URLs: local copies of objects, of which only the ranges that are read are fetched.

fsspec reads the objects (https, s3, gs, az, hf, zip, memory and others) and finds the credentials, by its own means.
A copy is a sparse file in the user's cache folder; processes that open it by name need all of it (`fetch_for`)::

    $XDG_CACHE_HOME/onnxjson/urls/            without the variable ~/.cache/onnxjson/urls/; mode 0700
        5d41...92/                            one version of one object, by the hash of its URL and its version
            m.onnx                            the bytes that were fetched, at their places
            ranges                            those places, as JSON
"""

import atexit
import hashlib
import os
import re
import stat
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any, Final

from onnxjson.codecs.serde import needed_parts
from onnxjson.model.display import visible
from onnxjson.model.errors import (
    AccessDeniedError,
    ChangedUnderneathError,
    FileError,
    LimitError,
    MissingInputError,
    OnnxJsonError,
    OutputError,
    UntrustedError,
    WireError,
)
from onnxjson.model.payloads import SourceFile

CACHE_BYTES: Final = 10 * 10**9
"""Maximum bytes of all copies, unless the environment variable ONNXJSON_CACHE_BYTES has another number."""

_WEB: Final = ("http://", "https://")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_VERSION: Final = ("ETag", "etag", "LastModified", "last_modified", "Last-Modified", "mtime", "updated", "sha256")
"""What file systems call the version of an object."""

_FIRST: Final = 512
_AHEAD: Final = 1 << 20
_PATIENCE: Final = 120
_SLOWEST: Final = 10_000
"""Seconds of waiting for an object until it is refused, unless this many bytes have come in each second."""
_SKIPPED_FROM: Final = 16 * 1024
"""Bytes of a tensor from which a new request costs less than reading them."""


def is_url(text: str) -> bool:
    """Whether a text is a URL, such as ``https://host/m.onnx`` or ``zip://m.onnx::s3://bucket/a.zip``."""
    return _URL.match(text) is not None


def shown(url: str) -> str:
    """The URL without what may be secret in it: user, password and query."""
    return re.sub(r"//[^/@]*@", "//", url).partition("?")[0]


class RemotePath(PosixPath):
    """The path of a local copy; its text is the URL."""

    url: str

    def __str__(self) -> str:
        return shown(self.url) if hasattr(self, "url") else str(super().__str__())

    def __fspath__(self) -> str:
        return str(super().__str__())


def open_url(url: str) -> Path:
    """Return the path of the local copy of an object, of which nothing is fetched yet.

    Raises:
        MissingInputError: there is no such object, or fsspec or a package that it needs is not installed.
        AccessDeniedError, FileError: the object cannot be read.
    """
    copy = _by_url.get(url) or _Copy(url)
    _by_url[url] = _copies[str(copy.path)] = copy
    _bases.setdefault(str(copy.path.parent), copy)
    path = RemotePath(str(copy.path))
    path.url = url
    return path


def path_of(name: str | Path) -> Path:
    """The path for the name of a file, or for a URL; see `open_url`."""
    return open_url(name) if isinstance(name, str) and is_url(name) else Path(name)


def refuse_writing(name: str | Path) -> None:
    """Raise OutputError for a URL, and for the local copy of one: they are only read."""
    copy = _copies.get(os.fspath(name))
    if copy is not None or is_url(str(name)):
        url = shown(str(name) if copy is None else copy.url)
        raise OutputError(f"{visible(url, None)} is a URL, which is only read; write a file with -o OUT")


def source_at(path: Path) -> "RemoteFile | None":
    """The copy at a path, opened; None if no copy of a URL is there."""
    copy = _copies.get(os.fspath(path))
    return None if copy is None else RemoteFile(copy)


def file_next_to(folder: Path, parts: list[str]) -> "RemoteFile | None":
    """Return a file next to the object whose copy is in `folder`; None if `folder` has no copy."""
    first = _bases.get(os.fspath(folder))
    if first is None:
        return None
    path = folder.joinpath(*parts)
    copy = _copies.get(os.fspath(path))
    if copy is None:
        copy = _copies[os.fspath(path)] = _Copy(_url_next_to(first.url, parts), path)
    return RemoteFile(copy)


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
    """Fetch all of the objects whose copies are in `folder`, for a process that opens them by name."""
    for place, copy in list(_copies.items()):
        if Path(place).is_relative_to(folder) and os.fspath(folder) in _bases:
            copy.fetch_all()


def forget() -> None:
    """Remove the copies that this process made, for one that reads many objects once."""
    for copy in _copies.values():
        copy.remove()
    for known in (_copies, _by_url, _bases):
        known.clear()


def read_so_far() -> tuple[tuple[str, int, int], ...]:
    """URL, fetched bytes and size of each object that this process has opened."""
    return tuple((shown(copy.url), copy.fetched, copy.size) for copy in _copies.values())


class _Copy:
    """One object, and what is here of it."""

    def __init__(self, url: str, path: Path | None = None) -> None:
        self.url = url
        self._system, self._name = file_system(url)
        self._version, size = self._present()
        self.size = size
        self.fetched = 0
        self._waited = 0.0
        self._ranges: list[list[int]] = []
        self._next = 0
        self._ahead = _FIRST
        self._lock = threading.Lock()
        if path is None:
            _remove_oldest()
            key = hashlib.sha256(f"{url}\n{self._version}".encode()).hexdigest()[:40]
            name = PurePosixPath(shown(url).partition("::")[0]).name.replace("\0", "") or "model"
            path = _folder() / key / name
        self.path = path
        self._state = path.with_name(f"{path.name}.ranges")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._load()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._file, size)
        atexit.register(self._keep)

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
        import json  # here and below, since few models are remote

        with suppress(OSError, ValueError):
            if self._version and self.path.stat().st_size == self.size:
                self._ranges = [[int(start), int(end)] for start, end in json.loads(self._state.read_bytes())]
        if not self._ranges:
            with suppress(OSError):
                self.path.unlink()

    def _keep(self) -> None:
        """Record the ranges for later processes; without a version they cannot be trusted, so the copy is removed."""
        import json

        with suppress(OSError):
            if self._version:
                temporary = self._state.with_name(f"{self._state.name}.{os.getpid()}")
                temporary.write_text(json.dumps(self._ranges))
                temporary.replace(self._state)
            else:
                self.path.unlink()

    def remove(self) -> None:
        """Remove the copy; nothing can be read afterwards."""
        atexit.unregister(self._keep)
        os.close(self._file)
        for each in (self.path, self._state):
            with suppress(OSError):
                each.unlink()
        with suppress(OSError):
            self.path.parent.rmdir()

    def read(self, start: int, length: int) -> bytes:
        """Return bytes of the object, fetched if they are not here."""
        end = min(start + length, self.size)
        with self._lock:
            if not self.has(start, end):
                self._fetch(start, end)
            return os.pread(self._file, length, start)

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
        os.pwrite(self._file, data, start)
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
"""All copies of this process by path."""

_by_url: Final[dict[str, _Copy]] = {}
_limited: Final[list[bool]] = []
"""Not empty once this process has looked at the bytes of all copies."""

_bases: Final[dict[str, _Copy]] = {}
"""By folder: the copy of the model that the other files in it belong to."""


class RemoteFile(SourceFile):
    """The local copy of an object, which fetches the bytes that are read."""

    __slots__ = ("__weakref__", "_copy")

    def __init__(self, copy: _Copy) -> None:
        super().__init__(copy.path)
        self._copy = copy

    def read_at(self, offset: int, length: int) -> bytes:
        """See `SourceFile.read_at`; raises FileError if the object cannot be read."""
        data = self._copy.read(offset, length)
        if len(data) != length:
            raise ChangedUnderneathError(f"{visible(shown(self._copy.url), None)} is shorter than it was")
        return data

    def fetch_structure(self) -> None:
        """Fetch a serialised model without the elements of its big tensors, which stay holes in the local file."""
        self._copy.fetch_structure()

    def fetch_all(self) -> None:
        """Fetch the whole object."""
        self._copy.fetch_all()


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


def _folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME", "")
    try:
        home = home if home.startswith("/") else str(Path.home() / ".cache")
        return Path(os.path.realpath(home), "onnxjson", "urls")
    except RuntimeError as error:
        raise AccessDeniedError("there is no home folder for copies; set XDG_CACHE_HOME to a folder") from error


def _remove_oldest() -> None:
    """Remove the copies that were used least recently, above the limit; once per process, and none of its own."""
    if _limited:
        return
    _limited.append(True)
    given = os.environ.get("ONNXJSON_CACHE_BYTES", "") or str(CACHE_BYTES)
    if not given.isdecimal():
        raise OnnxJsonError(f"the variable ONNXJSON_CACHE_BYTES is {visible(given, 100)!r}; set a number of bytes")
    limit = int(given)
    found = []
    with suppress(OSError):
        for folder in _folder().iterdir():
            facts = [each.lstat() for each in folder.rglob("*")]
            used = sum(each.st_blocks * 512 for each in facts if stat.S_ISREG(each.st_mode))
            found.append((max([each.st_mtime for each in facts], default=0.0), used, folder))
    total = 0
    for _, used, folder in sorted(found, reverse=True):
        total += used
        if total > limit:
            import shutil

            shutil.rmtree(folder, ignore_errors=True)
