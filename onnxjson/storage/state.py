"""The user's state folder: backups of files that commands replace.

::

    $XDG_STATE_HOME/onnxjson/backups/            without the variable ~/.local/state/onnxjson/backups/; mode 0700
        a91f...c3/                               a path, by the hash of its absolute name
            path                                 that name
            01760000000000000000-644-2585-5e...  one backup: time in ns, permissions, size in bytes, SHA-256
            restored                             the name of the backup that was restored last, until the next save

A backup is complete or does not exist: its name has all facts except the content, and it gets its name last.
"""

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.errors import AccessDeniedError, FileError, MissingInputError, OutputError
from onnxjson.storage.identity import reading_errors, sha256_of
from onnxjson.storage.saving import PIECE, Output, remove_leftovers, save_file, system_error, system_errors

BACKUPS_A_PATH = 20
"""Maximum number of backups of one path."""

BYTES_IN_ALL = 5 * 10**9
"""Maximum bytes of all backups."""

_NAME = re.compile(r"([0-9]{20})-([0-7]{1,4})-([0-9]{1,19})-([0-9a-f]{64})")

_RESTORED = "restored"
"""The file that names the backup with the content of the file, while that is not the newest one."""

_WAY_OUT = "set XDG_STATE_HOME to a folder that can be written"


class Backup(msgspec.Struct, frozen=True, order=True):
    """A former content of a path."""

    time_ns: int
    """When it was replaced, in ns since 1970, UTC."""
    mode: int
    """Permission bits of the file."""
    size: int
    """Bytes."""
    sha256: str
    """Hexadecimal, of the content."""
    file: Path
    """The file with the content."""


def state_folder() -> Path:
    """The folder of this program in the user's state folder; it may not exist."""
    home = os.environ.get("XDG_STATE_HOME", "")
    if home.startswith("/"):  # Relative paths are ignored: XDG Base Directory Specification 0.8.
        return Path(home, "onnxjson")
    try:
        return Path.home() / ".local" / "state" / "onnxjson"
    except RuntimeError as error:
        raise AccessDeniedError(f"there is no home folder for backups; {_WAY_OUT}") from error


def backups(path: Path) -> tuple[Backup, ...]:
    """The backups of `path`, newest first."""
    return tuple(sorted(_kept_in(_folder_of(path)), reverse=True))


class History(NamedTuple):
    """The former contents of a path, and where its present content is among them."""

    path: Path
    kept: tuple[Backup, ...]
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
        restored = (_folder_of(path) / _RESTORED).read_text(encoding="ascii")
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
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
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
        descriptor = os.open(chosen.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
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
    if status.st_size > BYTES_IN_ALL:
        limit = f"{BYTES_IN_ALL:,} bytes"
        raise OutputError(f"{name} is bigger than the limit for all backups ({limit}); save under another name")
    kept = backups(path)
    with open(descriptor, "rb", buffering=0, closefd=False) as file:  # by its name, it may be another file by now
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    folder = _folder_of(path)
    if known is None:
        with suppress(OSError):
            (folder / _RESTORED).unlink()
    if digest in (known, kept[0].sha256 if kept else ""):
        return
    moment = max([time.time_ns(), *(backup.time_ns + 1 for backup in kept)])
    mode = stat.S_IMODE(status.st_mode)
    place = folder / f"{moment:020d}-{mode:o}-{status.st_size}-{digest}"

    try:
        make_private(folder)
        if not (folder / "path").exists():
            original = os.fsencode(os.path.realpath(path))
            save_file(folder / "path", lambda sink: sink.write(original), mode=0o600)
        save_file(place, partial(_copy, descriptor), mode=0o600, sha256=digest)
        _remove_old()
    except OSError as error:
        what = f"no backup of {name} can be kept in {visible(str(folder), None)}"
        raise type(found := system_error(what, error))(f"{found}; {_WAY_OUT}") from error
    except (OutputError, FileError, AccessDeniedError) as error:
        raise type(error)(f"no backup of {name} can be kept: {error}; {_WAY_OUT}") from error


def _copy(descriptor: int, output: Output) -> None:
    """Copy a whole file, or share its blocks."""
    if not output.clone(descriptor):
        offset = 0
        while piece := os.pread(descriptor, PIECE, offset):
            output.write(piece)
            offset += len(piece)


def make_private(folder: Path) -> None:
    """Create a folder two levels below the state folder, if necessary; no other user may open any of the three."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for place in (state_folder(), folder.parent, folder):
        if stat.S_IMODE(place.stat().st_mode) != 0o700:
            place.chmod(0o700)


def _folder_of(path: Path) -> Path:
    real = os.fsencode(os.path.realpath(path))
    return state_folder() / "backups" / hashlib.sha256(real).hexdigest()[:32]


def _kept_in(folder: Path) -> Iterator[Backup]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if found := _NAME.fullmatch(name):
            moment, mode, size, sha256 = found.groups()
            yield Backup(int(moment), int(mode, 8), int(size), sha256, folder / name)


def _remove_old() -> None:
    root = state_folder() / "backups"
    kept: list[Backup] = []
    for name in os.listdir(root):
        remove_leftovers(root / name)
        of_path = sorted(_kept_in(root / name), reverse=True)
        kept += of_path[:BACKUPS_A_PATH]
        for backup in of_path[BACKUPS_A_PATH:]:
            backup.file.unlink(missing_ok=True)
    total = 0
    for backup in sorted(kept, reverse=True):
        total += backup.size
        if total > BYTES_IN_ALL:
            backup.file.unlink(missing_ok=True)
