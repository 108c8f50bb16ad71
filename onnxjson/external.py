"""The one resolver of external data: from what a tensor says to an opened file and a range of it.

A model that somebody else made names files. None outside its own folder is opened, through no link, and nothing is
believed about lengths: the path is walked one component at a time below an opened folder, and every check is made on
the file that is open, so that it cannot be exchanged in between. Nothing here writes.

The keys are those of docs/ExternalData.md of ONNX: location, offset, length, checksum, basepath (the last two are not
used).
"""

import errno
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from onnxjson.display import visible
from onnxjson.document import StringStringEntry
from onnxjson.errors import (
    AccessDeniedError,
    FileError,
    LimitError,
    MissingInputError,
    OnnxJsonError,
    UntrustedError,
)
from onnxjson.payloads import FileSlice, SourceFile

KEYS: Final = ("location", "offset", "length", "checksum", "basepath")

SPARSE_FROM: Final = 1 << 20
"""Bytes from which a file must have at least half of its size on the disk; small files may lie within the inode."""

_DIGITS: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


class _OpenFile(SourceFile):
    """A source file that is closed when no payload refers to it any more."""

    __slots__ = ("__weakref__",)


class ExternalSlice(FileSlice):
    """The bytes of a tensor in another file, not read yet."""

    __slots__ = ("location", "offset")

    def __init__(self, source: SourceFile, location: str, offset: int, length: int) -> None:
        super().__init__(source, offset, length)
        self.location = location
        """As the tensor spells it, relative to the folder of the model."""
        self.offset = offset
        """Bytes from the start of that file."""


class Resolver:
    """Resolves the external data of one model; a file that several tensors name is opened once.

    Args:
        model_folder: where locations begin.
        model_file: the model, which is not its own external data; with `trust_links` the folder that it really stands
            in is trusted too (that of the blobs in a Hugging Face cache).
        trust_links: follow links, and take files with several names or of another file system, as long as what they
            lead to is in a trusted folder.
        allow_sparse: take files that occupy much less of the disk than their size.
    """

    def __init__(
        self,
        model_folder: Path,
        *,
        model_file: Path | None = None,
        trust_links: bool = False,
        allow_sparse: bool = False,
    ) -> None:
        self.folder = model_folder
        """Where locations begin."""
        self._model_file = model_file
        self._trust_links = trust_links
        self._allow_sparse = allow_sparse
        self._open: WeakValueDictionary[str, _OpenFile] = WeakValueDictionary()

    def resolve(
        self, pairs: Iterable[StringStringEntry], needed_bytes: int | None, *, tensor: str = "", where: str = ""
    ) -> ExternalSlice:
        """The bytes that `external_data` of a tensor names.

        Args:
            pairs: the entries of `external_data`.
            needed_bytes: what dtype and dims of the tensor need; None where they do not say.
            tensor: its name, for messages.
            where: what messages begin with, where they are not to speak of external data of a tensor.

        Raises:
            UntrustedError: the location, the file or the range is not what a model may name.
            MissingInputError: the file, or a folder on the way to it, is not there.
            AccessDeniedError, FileError, LimitError: the system does not open it.
        """
        owner = f"external data of tensor {visible(tensor)!r}"
        entries = _entries(pairs, owner)
        location = entries.get("location", "")
        where = where or f"{owner} in {visible(location)!r}"
        parts = location_parts(location, where)
        source = self._open.get("/".join(parts))
        if source is None:
            source = self._open["/".join(parts)] = self._opened(parts, where)
        offset = _number(entries.get("offset", "0"), "offset", where)
        available = source.size - offset
        length = _number(entries["length"], "length", where) if "length" in entries else available
        if available < 0 or length > available:
            end = offset + max(length, 0)
            raise UntrustedError(f"{where}: bytes {offset:,} to {end:,} are named, but the file has {source.size:,}")
        if needed_bytes is not None and length != needed_bytes:
            raise UntrustedError(f"{where}: it names {length:,} bytes, but type and shape need {needed_bytes:,}")
        return ExternalSlice(source, location, offset, length)

    def _opened(self, parts: list[str], where: str) -> _OpenFile:
        folder = self.folder
        if self._trust_links:
            folder, parts = self._without_links(parts, where)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _system_error(where, error) from error
        try:
            device = os.fstat(descriptor).st_dev
            for part in parts[:-1]:
                inner = _step(descriptor, part, os.O_DIRECTORY, where)
                os.close(descriptor)
                descriptor = inner
            found = _step(descriptor, parts[-1], os.O_NONBLOCK | os.O_NOCTTY, where)
        finally:
            os.close(descriptor)
        try:
            self._check(os.fstat(found), device, where)
        except BaseException:
            os.close(found)
            raise
        return _OpenFile(folder.joinpath(*parts), found)

    def _check(self, status: os.stat_result, device: int, where: str) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedError(f"{where}: it is not a regular file")
        if self._model_file is not None:
            with suppress(OSError):
                if os.path.samestat(status, os.stat(self._model_file)):
                    raise UntrustedError(f"{where}: that is the model itself")
        if not self._trust_links and status.st_nlink != 1:
            raise UntrustedError(
                f"{where}: the file has {status.st_nlink} names (hard links), so it may belong elsewhere; "
                "copy it, or trust links"
            )
        if not self._trust_links and status.st_dev != device:
            raise UntrustedError(f"{where}: it is on another file system; copy it, or trust links")
        occupied = status.st_blocks * 512
        if not self._allow_sparse and status.st_size >= SPARSE_FROM and occupied * 2 < status.st_size:
            raise UntrustedError(
                f"{where}: the file says {status.st_size:,} bytes, but only {occupied:,} are on the disk; "
                "if that is right, --allow-sparse reads it (allow_sparse= in Python)"
            )

    def _without_links(self, parts: list[str], where: str) -> tuple[Path, list[str]]:
        """The trusted folder that the location really leads into, and the way from there."""
        try:
            real = Path(os.path.realpath(self.folder.joinpath(*parts), strict=True))
            roots = [Path(os.path.realpath(self.folder, strict=True))]
            if self._model_file is not None:
                roots.append(Path(os.path.realpath(self._model_file, strict=True)).parent)
        except OSError as error:
            raise _system_error(where, error) from error
        for root in roots:
            if real.is_relative_to(root) and real != root:
                return root, list(real.relative_to(root).parts)
        raise UntrustedError(f"{where}: it leads out of the model's folder, to {visible(str(real), 200)}")


def _entries(pairs: Iterable[StringStringEntry], owner: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    for pair in pairs:
        key = pair.key if pair.key is not None else ""
        if key not in KEYS:
            raise UntrustedError(f"{owner}: key {visible(key)!r} is not known; known are {', '.join(KEYS)}")
        if key in entries:
            raise UntrustedError(f"{owner}: key {key!r} stands twice")
        if pair.value is None:
            raise UntrustedError(f"{owner}: key {key!r} has no value")
        entries[key] = pair.value
    return entries


def location_parts(location: str, where: str) -> list[str]:
    """The components of a location, "." left out.

    Args:
        location: as a tensor spells it.
        where: what messages begin with.

    Raises:
        UntrustedError: it is no path that a model may name.
    """
    if not location:
        raise UntrustedError(f"{where}: it names no file")
    if any(character in location for character in "\0\\:"):
        raise UntrustedError(f"{where}: a location holds no zero byte, backslash or colon")
    parts = location.split("/")
    if not parts[0]:
        raise UntrustedError(f"{where}: an absolute path; a location is relative to the folder of the model")
    if ".." in parts:
        raise UntrustedError(f'{where}: ".." would lead out of the model\'s folder')
    if "" in parts or parts[-1] == ".":
        raise UntrustedError(f"{where}: it names a folder, or has an empty component")
    try:
        os.fsencode(location)
    except UnicodeEncodeError:
        raise UntrustedError(f"{where}: no file can have that name") from None
    return [part for part in parts if part != "."]


def _number(text: str, key: str, where: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise UntrustedError(f"{where}: {key} {visible(text)!r} is not a number of 1 to 19 digits")
    return int(text)


def _step(folder: int, name: str, flags: int, where: str) -> int:
    """The descriptor of what `name` is in an opened folder; never a link, never waited for."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise UntrustedError(f"{where}: {visible(name)!r} is a link; copy the file, or trust links")
        if not flags & os.O_DIRECTORY and not stat.S_ISREG(mode):
            # Opening a device can already do something.
            raise UntrustedError(f"{where}: it is not a regular file")
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=folder)
    except OSError as error:
        raise _system_error(where, error) from error


def _system_error(where: str, error: OSError) -> OnnxJsonError:
    reason = error.strerror or str(error)
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
        return MissingInputError(f"{where}: the file is not there ({reason}); put it beside the model")
    if error.errno in {errno.ELOOP, errno.ENXIO}:
        return UntrustedError(f"{where}: a link or no regular file ({reason})")
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return LimitError(f"{where}: too many files are open; raise the limit with ulimit -n")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return AccessDeniedError(f"{where}: {reason}")
    return FileError(f"{where}: {reason}")
