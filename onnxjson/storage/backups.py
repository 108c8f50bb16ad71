"""Backups of files that commands replace: a store whose keys are absolute paths (`onnxjson.storage.store`).

::

    backups/a91f...c3/                       a path
        path                                 that path
        01760000000000000000-644-2585-5e...  one backup: time in ns, permissions, size in bytes, SHA-256
        restored                             the name of the backup that was restored last, until the next save
"""

import hashlib
import os
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from onnxjson.model import system
from onnxjson.model.display import visible
from onnxjson.model.errors import AccessDeniedError, FileError, MissingInputError, OutputError
from onnxjson.storage.identity import reading_errors, sha256_of
from onnxjson.storage.saving import PIECE, Output, save_file, system_errors
from onnxjson.storage.store import Content, Store, way_out

STORE: Final = Store("state", "backups", bytes_in_all=5 * 10**9, entries_a_key=20)

_RESTORED = "restored"
"""The file that names the backup with the content of the file, while that is not the newest one."""


def backups(path: Path) -> list[Content]:
    """The backups of `path`, newest first."""
    return STORE.contents(os.path.realpath(path))


class History(NamedTuple):
    """The former contents of a path, and where its present content is among them."""

    path: Path
    kept: tuple[Content, ...]
    """The backups, oldest first; at least one."""
    present: int
    """Position of the backup with the present content, or of the last one of a removed file; else their number."""
    sha256: str
    """Of the present content; "" if the file does not exist."""

    def neighbour(self, step: int) -> int:
        """Return the position of the next older (-1) or newer (1) content that differs, or raise MissingInputError."""
        if not self.sha256 and step < 0:
            return self.present
        found = range(self.present + step, len(self.kept) if step > 0 else -1, step)
        position = next((each for each in found if self.kept[each].sha256 != self.sha256), None)
        if position is None:
            which, name = "older" if step < 0 else "newer", visible(str(self.path), None)
            raise MissingInputError(f"no {which} version of {name} is kept; `onnxjson undo-save --list` shows all")
        return position


def history(path: Path) -> History:
    """Return the history of `path`, or raise MissingInputError if it has no backup."""
    kept = tuple(reversed(backups(path)))
    if not kept:
        name = visible(str(path), None)
        raise MissingInputError(f"there is no backup of {name}; only commands that change a file in place make backups")
    sha256 = sha256_of(path) if os.path.exists(path) else ""
    try:
        restored = (STORE.folder(os.path.realpath(path)) / _RESTORED).read_text(encoding="ascii")
    except (OSError, ValueError):
        restored = ""
    present = next((each for each, backup in enumerate(kept) if backup.file.name == restored), len(kept) - 1)
    return History(path, kept, len(kept) if sha256 and kept[present].sha256 != sha256 else present, sha256)


def keep_backup(path: Path, known: str | None = None) -> None:
    """Add a backup of `path`, and remove the oldest backups beyond the limits; the message of an error has ways out.

    Blocks are shared with the file if the file system supports it. Nothing is added if the newest backup, or one with
    the SHA-256 `known` that is restored at the time, has the same content.
    """
    with reading_errors(path):
        descriptor = system.open_for_reading(path, os.O_RDONLY)
    name = visible(str(path), None)
    with system_errors(f"no backup of {name} can be kept"):
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OutputError(f"{name} is not a regular file, so it has no backup")
            _keep(path, descriptor, status, known)
        finally:
            os.close(descriptor)


def restore(history: History, position: int) -> None:
    """Restore a former content of a path, also of a removed file; the present one becomes a backup unless it is one.

    FileError if the backup is damaged, others as `saving.save_file`.
    """
    path, chosen = history.path, history.kept[position]

    def write(output: Output) -> None:
        descriptor = system.open_file(chosen.file, os.O_RDONLY | system.NO_LINK)
        try:
            _copy(descriptor, output)
        finally:
            os.close(descriptor)

    known = history.sha256 if history.present < len(history.kept) else ""
    with reading_errors(chosen.file):
        if sha256_of(chosen.file) != chosen.sha256:
            file = visible(str(chosen.file), None)
            raise FileError(f"the backup {file} is damaged; {visible(str(path), None)} was not changed")
        backup = partial(keep_backup, known=known)
        save_file(path, write, backup=backup, mode=chosen.mode, sha256=chosen.sha256)
    save_file(chosen.file.with_name(_RESTORED), lambda sink: sink.write(chosen.file.name.encode()), mode=0o600)


def _keep(path: Path, descriptor: int, status: os.stat_result, known: str | None) -> None:
    name = visible(str(path), None)
    if status.st_size > STORE.bytes_in_all:
        limit = f"{STORE.bytes_in_all:,} bytes"
        raise OutputError(f"{name} is bigger than the limit for all backups ({limit}); save under another name")
    real = os.path.realpath(path)
    kept, folder = STORE.contents(real), STORE.folder(real)
    with open(descriptor, "rb", buffering=0, closefd=False) as file:  # by its name, it may be another file by now
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if known is None:
        with suppress(OSError):
            (folder / _RESTORED).unlink()
    if digest in (known, kept[0].sha256 if kept else ""):
        return
    try:
        with system_errors(f"the folder {visible(str(folder), None)}"):
            STORE.make_folder(real)
            if not (folder / "path").exists():
                save_file(folder / "path", lambda sink: sink.write(os.fsencode(real)), mode=0o600)
            STORE.keep(real, partial(_copy, descriptor), status.st_size, digest, stat.S_IMODE(status.st_mode))
    except (OutputError, FileError, AccessDeniedError) as error:
        error.add_place(f"no backup of {name} can be kept")
        error.hint = way_out("state")
        raise


def _copy(descriptor: int, output: Output) -> None:
    """Copy a whole file, or share its blocks."""
    if not output.clone(descriptor):
        offset = 0
        while piece := system.read_at(descriptor, PIECE, offset):
            output.write(piece)
            offset += len(piece)
