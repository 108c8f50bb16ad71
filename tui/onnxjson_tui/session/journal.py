"""Journal of a session: a file in the state folder to which every step is appended before it is shown.

::

    $XDG_STATE_HOME/onnxjson/journals/      mode 0700
        a91f...c3/                          one model: hash of its key
            01760000000000000000-4711-9f...  one session: time in ns, process, a random number

A line is ``CRC32 JSON``, so that a line truncated by a kill or a full disk is detected. The first line is the header;
each other line is a step (its edits and its patch), an undo, a redo, or the start of a save.

A line is written to the operating system before the edit returns, so it survives any end of this process, even SIGKILL.
A thread syncs it to the disk (fsync) within half a second: only a crash of the whole machine needs that, and it can be
slow if the home folder is on a network.

The lock on the file shows that its session is running; it is released with the process, however that ends.
"""

import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.errors import FileError
from onnxjson.storage.saving import is_running as process_is_running
from onnxjson.storage.saving import system_errors
from onnxjson.storage.state import make_private, state_folder

FORMAT: Final = "onnxjson-journal/1"  # value of the key "format" of a header
SYNC_SECONDS: Final = 0.5  # maximum seconds until a written line is synced to the disk

JOURNALS_A_MODEL: Final = 8
"""Maximum number of journals of unsaved sessions that are kept for a model; the oldest are removed first."""

BYTES_IN_ALL: Final = 2 * 10**9  # maximum bytes of all such journals

PATIENCE_SECONDS: Final = 0.25
"""Seconds to wait for the lock of a journal. A process that is killed while it starts a child leaves the lock to the
child until the child runs its program; until then the journal looks as if its session were still running."""

_NAME: Final = re.compile(r"([0-9]{20})-([0-9]{1,10})-[0-9a-f]{16}")


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: the model and the program version of the session."""

    format: str
    version: str  # version of this package
    key: str
    name: str  # name of the model as the user gave it
    size: int  # size of the opened file in bytes
    mtime_ns: int
    sha256: str | None = None  # SHA-256 of that file in hexadecimal; for a big file it is in a later line
    started: int  # start time in ns since 1970


class StepLine(msgspec.Struct, frozen=True, kw_only=True):
    """An applied step."""

    patch: str  # text of the patch, ``onnxjson-patch/1``; payloads of the opened model and earlier lines are references
    edits: tuple[str, ...] = ()  # edits as in a rewrite script
    title: str = ""
    apart: dict[str, int] = {}  # payloads of the opened model that the patch references: SHA-256 -> number of bytes
    has_files: bool = False  # whether the edits write tensors to files when the model is saved


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line after the header; exactly one field is set."""

    step: StepLine | None = None
    undo: bool = False
    redo: bool = False
    saving: bool = False  # the steps are about to be saved to the opened file
    sha256: str | None = None  # SHA-256 of the opened file


class Journal:
    """A journal that this process writes. All methods are thread-safe."""

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        """Use an open and locked file with `size` bytes of complete lines."""
        self.path = path
        self._descriptor = descriptor
        self.size = size  # bytes of complete lines
        self._changed = threading.Condition()
        self._is_dirty = False
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def append(self, record: Header | Line) -> None:
        """Append a line; it is written to the operating system when this returns.

        Raises:
            FileError, AccessDeniedError, OutputError: the write failed; the journal is unchanged.
        """
        data = encoded(record)
        with self._changed:
            if self._is_closed:
                raise FileError(f"the journal {visible(str(self.path), None)} is closed")
            try:
                with system_errors(f"the journal {visible(str(self.path), None)} cannot be written"):
                    done = 0
                    while done < len(data):
                        done += os.pwrite(self._descriptor, data[done:], self.size + done)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self.size)
                raise
            self.size += len(data)
            self._is_dirty = True
            if self._thread is None:
                thread = threading.Thread(target=self._sync_later, name="journal", daemon=True)
                try:
                    thread.start()
                    self._thread = thread
                except RuntimeError:  # the system starts no more threads
                    self._sync()
            self._changed.notify_all()

    def sync(self) -> None:
        """Sync every line to the disk; for the end of a session and for signals."""
        with self._changed:
            self._sync()

    def close(self) -> None:
        """Sync and release the lock, so that other sessions can recover the journal."""
        with self._changed:
            if self._is_closed:
                return
            self._sync()
            self._is_closed = True
            with suppress(OSError):
                os.close(self._descriptor)
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def remove(self) -> None:
        """Remove the journal, because nothing is to be recovered."""
        with suppress(OSError):
            self.path.unlink()
        self.close()
        with suppress(OSError):
            self.path.parent.rmdir()  # if it was the last one of the model

    def _sync(self) -> None:
        if not self._is_closed:
            with suppress(OSError):  # Some file systems do not support it; the line is written all the same.
                os.fsync(self._descriptor)
            self._is_dirty = False

    def _sync_later(self) -> None:
        while True:
            with self._changed:
                while not self._is_dirty and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    return
                self._changed.wait_for(lambda: self._is_closed, SYNC_SECONDS * 0.8)
                if self._is_closed:
                    return
                descriptor = os.dup(self._descriptor)
                self._is_dirty = False
            # Outside the lock, so that no edit waits for the disk.
            with suppress(OSError):
                os.fsync(descriptor)
            with suppress(OSError):
                os.close(descriptor)


def begin(header: Header) -> Journal:
    """Create a locked journal with its header.

    Raises:
        FileError, AccessDeniedError, OutputError: the state folder cannot be written.
    """
    folder = folder_of(header.key)
    with system_errors(f"no journal can be kept in {visible(str(folder), None)}"):
        try:
            path, descriptor = _create_in(folder)
        except FileNotFoundError:
            # Another session has just removed the folder with its last journal.
            path, descriptor = _create_in(folder)
    journal = Journal(path, descriptor, 0)
    try:
        journal.append(header)
    except BaseException:
        journal.remove()
        raise
    return journal


def _create_in(folder: Path) -> tuple[Path, int]:
    make_private(folder)
    _remove_excess(folder)
    path = folder / f"{time.time_ns():020d}-{os.getpid()}-{secrets.token_hex(8)}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    with suppress(OSError):  # Some network file systems have no locks; there the process id decides.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return path, descriptor


def encoded(record: Header | Line) -> bytes:
    """Return a record as a line."""
    # Paths that are not UTF-8 are escaped as lone surrogates, which only the standard library writes and reads.
    text = json.dumps(msgspec.to_builtins(record), ensure_ascii=True, allow_nan=False).encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


def decoded(line: bytes) -> Any:
    """Parse a line without its line end.

    Raises:
        ValueError: the line is damaged.
    """
    check, _, text = line.partition(b" ")
    if len(check) != 8 or int(check, 16) != zlib.crc32(text):
        raise ValueError("the checksum does not match")
    return json.loads(text)


def folder_of(key: str) -> Path:
    """Return the folder of the journals of a model."""
    return state_folder() / "journals" / hashlib.sha256(os.fsencode(key)).hexdigest()[:32]


def in_folder(folder: Path) -> list[Path]:
    """Return the journals in a folder, newest first."""
    try:
        return sorted([folder / name for name in os.listdir(folder) if _NAME.fullmatch(name)], reverse=True)
    except OSError:
        return []


def lock_abandoned(path: Path, patience: float = 0.0) -> int | None:
    """Lock a journal whose session has ended and return its descriptor; None if it is running or not accessible.

    `patience` are seconds to wait for the lock; see `PATIENCE_SECONDS`.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise BlockingIOError
        try:
            _lock(descriptor, patience)
        except BlockingIOError:
            raise
        except OSError:
            if is_running(path):
                raise
        # The previous owner of the lock may have removed the file.
        if os.fstat(descriptor).st_nlink == 0:
            raise BlockingIOError
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _lock(descriptor: int, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise
        time.sleep(0.005)


def is_running(path: Path) -> bool:
    """Whether the process that created a journal is still running."""
    found = _NAME.fullmatch(path.name)
    return found is None or process_is_running(int(found[2]))


def _remove_excess(folder: Path) -> None:
    """Remove journals of ended sessions beyond the limits, oldest first."""
    for path in in_folder(folder)[JOURNALS_A_MODEL - 1 :]:
        _remove_abandoned(path)
    total = 0
    for size, path in sorted(_all_journals(folder.parent), key=lambda each: each[1].name, reverse=True):
        total += size
        if total > BYTES_IN_ALL:
            _remove_abandoned(path)


def _all_journals(root: Path) -> Iterator[tuple[int, Path]]:
    with suppress(OSError):
        for name in os.listdir(root):
            for path in in_folder(root / name):
                with suppress(OSError):
                    yield path.stat().st_size, path


def _remove_abandoned(path: Path) -> None:
    descriptor = lock_abandoned(path)
    if descriptor is not None:
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)
