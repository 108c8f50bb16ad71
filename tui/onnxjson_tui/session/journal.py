"""Journal of a session, to which every step is appended before it is shown: an entry of a store.

::

    journals/a91f...c3/                     a model (`onnxjson.storage.store`)
        01760000000000000000-4711-9f...     one session, which holds the lock: time in ns, process, a random number

A line is ``CRC32 JSON``, so that a line truncated by a kill or a full disk is detected. The first line is the header;
each other line is a step (its edits and its patch), an undo, a redo, or the start of a save.

A line is written to the operating system before the edit returns, so it survives any end of this process, even SIGKILL.
It is synced to the disk (fsync) within half a second: only a crash of the whole machine needs that, and it can be slow
if the home folder is on a network.
"""

import json
import os
import threading
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.errors import FileError
from onnxjson.model.system import sync, write_at
from onnxjson.storage.saving import system_errors
from onnxjson.storage.store import Store, discard

FORMAT: Final = "onnxjson-journal/1"  # value of the key "format" of a header
SYNC_SECONDS: Final = 0.5  # maximum seconds until a written line is synced to the disk

STORE: Final = Store("state", "journals", bytes_in_all=2 * 10**9, entries_a_key=8)


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
        self._changing = threading.RLock()  # the handler of a signal syncs, perhaps in the middle of `append`
        self._is_dirty = False
        self._is_closed = False

    def append(self, record: Header | Line) -> None:
        """Append a line; it is written to the operating system when this returns.

        Raises:
            FileError, AccessDeniedError, OutputError: the write failed; the journal is unchanged.
        """
        data = encoded(record)
        with self._changing:
            if self._is_closed:
                raise FileError(f"the journal {visible(str(self.path), None)} is closed")
            try:
                with system_errors(f"the journal {visible(str(self.path), None)} cannot be written"):
                    done = 0
                    while done < len(data):
                        done += write_at(self._descriptor, data[done:], self.size + done)
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self.size)
                raise
            self.size += len(data)
            if not self._is_dirty:
                self._is_dirty = True
                timer = threading.Timer(SYNC_SECONDS * 0.8, self._sync_apart)
                timer.daemon = True
                try:
                    timer.start()
                except RuntimeError:  # the system starts no more threads
                    self._sync()

    def sync(self) -> None:
        """Sync every line to the disk; for the end of a session and for signals."""
        with self._changing:
            self._sync()

    def close(self) -> None:
        """Sync and release the lock, so that other sessions can recover the journal."""
        with self._changing:
            if self._is_closed:
                return
            self._sync()
            self._is_closed = True
            with suppress(OSError):
                os.close(self._descriptor)

    def remove(self) -> None:
        """Remove the journal, because nothing is to be recovered."""
        with self._changing:
            discard(self.path, None if self._is_closed else self._descriptor)
            self._is_closed = True

    def _sync(self) -> None:
        if not self._is_closed:
            with suppress(OSError):  # Some file systems do not support it; the line is written all the same.
                sync(self._descriptor)
            self._is_dirty = False

    def _sync_apart(self) -> None:
        with self._changing:
            if not self._is_dirty or self._is_closed:
                return
            self._is_dirty = False
            descriptor = os.dup(self._descriptor)
        # Outside the lock, so that no edit waits for the disk.
        with suppress(OSError):
            sync(descriptor)
        os.close(descriptor)


def begin(header: Header) -> Journal:
    """Create a locked journal with its header.

    Raises:
        FileError, AccessDeniedError, OutputError: the state folder cannot be written.
    """
    with system_errors(f"no journal can be kept in {visible(str(STORE.root), None)}"):
        path, descriptor = STORE.create(header.key)
    journal = Journal(path, descriptor, 0)
    try:
        journal.append(header)
    except BaseException:
        journal.remove()
        raise
    return journal


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
