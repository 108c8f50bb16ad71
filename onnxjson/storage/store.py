"""Stores: what the program keeps outside of models, in the user's folders.

::

    $XDG_STATE_HOME/onnxjson/            without the variable ~/.local/state/onnxjson/; mode 0700, as all below;
                                         both on Windows ~/AppData/Local/onnxjson/
        backups/                         a store; others are journals and drafts
            a91f...c3/                   a key, such as the path of a model, by its hash
                01760000000000000000-... an entry, a file or a folder: time in ns, then facts that its store knows
    $XDG_CACHE_HOME/onnxjson/            without the variable ~/.cache/onnxjson/
        texts/                           others are objects

All stores have one contract:

- An entry gets its name last: it is complete, or a process works in it and holds its lock, or that process was killed.
- Beyond the limits of a store, entries go that no process holds: of a key the oldest, of all keys the least recently
  used.
- A content that is written once has its SHA-256 in its name.
- Nothing is read from, or written to, a folder that another user can change.
- What the user cannot have made again (state) is synced to the disk, what can be made again (caches) is not.
"""

import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from onnxjson.model import system
from onnxjson.storage.locks import is_running, lock, take

if TYPE_CHECKING:  # loaded where it is needed: git's driver reads a text in its cache without the rest of the package
    from onnxjson.storage.saving import Output

Home = Literal["state", "cache"]

_HOMES: Final[dict[Home, tuple[str, str]]] = {
    "state": ("XDG_STATE_HOME", ".local/state" if system.HAS_OWNERS else "AppData/Local"),
    "cache": ("XDG_CACHE_HOME", ".cache" if system.HAS_OWNERS else "AppData/Local"),
}

_ENTRY: Final = re.compile(r"[0-9]{20}-.*", re.DOTALL)
_WORKED_IN: Final = re.compile(r"[0-9]{20}-([0-9]{1,10})-[0-9a-f]{16}")
_CONTENT: Final = re.compile(r"([0-9]{20})-([0-7]{1,4})-([0-9]{1,19})-([0-9a-f]{64})")


def user_folder(home: Home) -> Path:
    """Return the folder of this program among the user's folders of state or caches; it may not exist.

    Raises:
        AccessDeniedError: the user has no home folder.
    """
    variable, default = _HOMES[home]
    given = os.environ.get(variable, "")
    if not os.path.isabs(given):  # Relative paths are ignored: XDG Base Directory Specification 0.8.
        user = os.path.expanduser("~")
        if not os.path.isabs(user):
            from onnxjson.model.errors import AccessDeniedError

            raise AccessDeniedError(f"there is no home folder; {way_out(home)}")
        given = os.path.join(user, default)
    return Path(given, "onnxjson")


def way_out(home: Home) -> str:
    """Return the advice for a user's folder that cannot be used."""
    return f"set {_HOMES[home][0]} to a folder that can be written"


class Content(NamedTuple):
    """An entry that was written once."""

    time_ns: int
    """When it was written, in ns since 1970, UTC; later than all older contents of its key."""
    mode: int
    """Permission bits of what it is a copy of."""
    size: int
    """Bytes."""
    sha256: str
    """Hexadecimal, of the content."""
    file: Path
    """The file with the content; for this user alone."""

    def read(self) -> bytes | None:
        """Return the bytes, and count this as a use; None if they are damaged or gone: then the entry is removed."""
        try:
            data = self.file.read_bytes()
            if hashlib.sha256(data).hexdigest() == self.sha256:
                os.utime(self.file)
                return data
        except OSError:
            return None
        discard(self.file)
        return None


class Store:
    """One kind of things that are kept: its folder and its limits."""

    def __init__(self, home: Home, name: str, bytes_in_all: int, entries_a_key: int) -> None:
        self._home: Home = home
        self._name = name
        self.bytes_in_all = bytes_in_all
        self.entries_a_key = entries_a_key

    @property
    def root(self) -> Path:
        """The folder of the store; it may not exist. AccessDeniedError if the user has no home folder."""
        return user_folder(self._home) / self._name

    def folder(self, key: str | bytes | Path) -> Path:
        """Return the folder of a key; it may not exist."""
        return self.root / hashlib.sha256(os.fsencode(key)).hexdigest()[:32]

    def is_own(self) -> bool:
        """Whether no other user can have put something into the folder of the store, or exchange it; if it exists."""
        root = self.root
        if not system.HAS_OWNERS:
            return True
        try:
            around = root.parent.parent.stat().st_mode
            owners = {status.st_uid for each in (root.parent, root) for status in (each.lstat(), each.stat())}
        except OSError:
            return True
        return owners == {system.user_id()} and not (around & stat.S_IWOTH and not around & stat.S_ISVTX)

    def make_root(self) -> Path:
        """Create the folder of the store, if necessary; no other user may open it.

        Raises:
            OSError: it cannot be created, or is another user's.
        """
        root = self.root
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.is_own():
            raise PermissionError(errno.EACCES, "another user can change it", str(root))
        for place in (root.parent, root):
            if stat.S_IMODE(place.stat().st_mode) != 0o700:
                place.chmod(0o700)
        return root

    def make_folder(self, key: str | bytes | Path) -> Path:
        """Create the folder of a key, if necessary, as `make_root` does."""
        self.make_root()
        folder = self.folder(key)
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def entries(self, key: str | bytes | Path) -> list[Path]:
        """Return the entries of a key, newest first; none if another user could have put them there."""
        return _entries_in(self.folder(key)) if self.is_own() else []

    def contents(self, key: str | bytes | Path) -> list[Content]:
        """Return the contents of a key that were written once, newest first."""
        return [
            Content(int(facts[1]), int(facts[2], 8), int(facts[3]), facts[4], entry)
            for entry in self.entries(key)
            if (facts := _CONTENT.fullmatch(entry.name))
        ]

    def keep(
        self, key: str | bytes | Path, write: "Callable[[Output], object]", size: int, sha256: str, mode: int = 0o600
    ) -> None:
        """Add a content with that size, hash and mode, written once by `write`; remove what is beyond the limits.

        Raises:
            OSError, OutputError, FileError, AccessDeniedError: it cannot be written, or is read back differently.
        """
        from onnxjson.storage.saving import save_file

        moment = max([time.time_ns(), *[content.time_ns + 1 for content in self.contents(key)]])
        place = self.make_folder(key) / f"{moment:020d}-{mode:o}-{size}-{sha256}"
        save_file(place, write, mode=0o600, sha256=sha256, fsync=self._home == "state")
        self.evict()

    def create(self, key: str | bytes | Path, *, is_folder: bool = False) -> tuple[Path, int]:
        """Create an entry that this process works in; return it, and the descriptor that holds its lock.

        What is beyond the limits is removed.

        Raises:
            OSError: it cannot be created.
        """
        try:
            entry = self._create(self.make_folder(key), is_folder=is_folder)
        except FileNotFoundError:
            # Another process has just removed the folder with its last entry.
            entry = self._create(self.make_folder(key), is_folder=is_folder)
        self.evict()
        return entry

    def _create(self, folder: Path, *, is_folder: bool) -> tuple[Path, int]:
        number = f"{os.getpid()}-{os.urandom(8).hex()}"
        place = folder / f"{time.time_ns():020d}-{number}"
        if is_folder:
            place.mkdir(mode=0o700)
            descriptor = system.open_lockable(place, os.O_RDONLY | system.NO_LINK)
            lock(descriptor)
            return place, descriptor
        # Locked before it has its name, so that no other process takes it for one of a killed process.
        hidden = folder / f".onnxjson-{number}.tmp"
        descriptor = system.open_file(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | system.NO_LINK, 0o600)
        try:
            lock(descriptor)
            hidden.rename(place)
        except BaseException:
            os.close(descriptor)
            raise
        return place, descriptor

    def evict(self) -> None:
        """Remove entries beyond the limits that no process holds, and what killed processes left unfinished."""
        from onnxjson.storage.saving import remove_leftovers

        kept: list[Path] = []
        with suppress(OSError):
            for folder in self.root.iterdir():
                remove_leftovers(folder)
                entries = _entries_in(folder)
                kept += entries[: self.entries_a_key]
                for entry in entries[self.entries_a_key :]:
                    discard(entry)
        total = 0
        for _, _, size, entry in sorted(map(_use_of, kept), reverse=True):
            total += size
            if total > self.bytes_in_all:
                discard(entry)


def _entries_in(folder: Path) -> list[Path]:
    try:
        return sorted([folder / name for name in os.listdir(folder) if _ENTRY.fullmatch(name)], reverse=True)
    except OSError:
        return []


def _use_of(entry: Path) -> tuple[int, str, int, Path]:
    """Return when an entry was used last, in ns; its name; the bytes on the disk, without holes; and the entry."""
    last = size = 0
    with suppress(OSError):
        for place in (entry, *entry.rglob("*")):
            status = place.lstat()
            last = max(last, status.st_mtime_ns)
            if stat.S_ISREG(status.st_mode):
                size += min(status.st_size, system.bytes_on_disk(status))
    return last, entry.name, size, entry


def take_entry(entry: Path, patience: float = 0.0, access: int = os.O_RDONLY) -> int | None:
    """Lock an entry that no process holds; return its descriptor. None if one does, or it belongs to somebody else.

    See `locks.take` for the arguments.
    """
    worked_in = _WORKED_IN.fullmatch(entry.name)
    without_locks = worked_in is None or not is_running(int(worked_in[1]))
    return take(entry, patience, access, without_locks=without_locks)


def discard(entry: Path, descriptor: int | None = None) -> None:
    """Remove an entry, and the folder of its key with the last one; nothing if another process holds the entry.

    `descriptor` holds its lock, and is closed.
    """
    if descriptor is None and (descriptor := take_entry(entry)) is None:
        return
    with suppress(OSError):
        if entry.is_dir():
            import shutil

            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()
    os.close(descriptor)
    with suppress(OSError):
        entry.parent.rmdir()
