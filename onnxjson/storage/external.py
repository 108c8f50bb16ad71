"""The resolver of external data: from the entries of a tensor to an opened file and a range of it.

The files that a model names are untrusted. No file outside the folder of the model is opened, links are not followed,
and lengths are checked: the path is walked one component at a time below an opened folder, and every check is made on
the open file, so that it cannot be exchanged in between. Nothing here writes.

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

import msgspec

from onnxjson.model import errors, system
from onnxjson.model.display import visible
from onnxjson.model.document import Model, StringStringEntry, Tensor
from onnxjson.model.payloads import PROVIDERS, FileSlice, SourceFile
from onnxjson.model.system import Folder
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import replace_records
from onnxjson.storage.remote import open_next_to

KEYS: Final = ("location", "offset", "length", "checksum", "basepath")

SPARSE_FROM: Final = 1 << 20
"""Size in bytes from which at least half of a file must be on the disk; small files may be inside the inode."""

_DIGITS: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


class Entries(tuple[StringStringEntry, ...]):
    """The ``external_data`` of a tensor that knows the file of its model; otherwise the same as any tuple."""

    file: Path


def with_file(model: Model, file: Path) -> Model:
    """Return the same model, whose external tensors know its file if some initializers are external."""
    if not any([is_external(tensor) for tensor in _initializers(model)]):
        return model

    def located(tensor: Tensor) -> Tensor:
        if not is_external(tensor):
            return tensor
        entries = Entries(tensor.external_data)
        entries.file = file.absolute()
        return msgspec.structs.replace(tensor, external_data=entries)

    return replace_records(model, Tensor, located)


def file_of(record: Model | Tensor) -> Path | None:
    """Return the file from which a model with external initializers, or an external tensor, was loaded, if known."""
    tensors = (record,) if isinstance(record, Tensor) else _initializers(record)
    return next((each.external_data.file for each in tensors if isinstance(each.external_data, Entries)), None)


def _initializers(model: Model) -> tuple[Tensor, ...]:
    return () if model.graph is None else model.graph.initializer


class _OpenFile(SourceFile):
    """A source file that is closed when no payload refers to it."""

    __slots__ = ("__weakref__",)


class ExternalSlice(FileSlice):
    """The bytes of a tensor in another file, not read yet."""

    __slots__ = ("location", "offset")

    def __init__(self, source: SourceFile, location: str, offset: int, length: int) -> None:
        super().__init__(source, offset, length)
        self.location = location
        """The location in its spelling, relative to the folder of the model."""
        self.offset = offset
        """Bytes from the start of that file."""


class Resolver:
    """Resolves the external data of one model; a file that several tensors name is opened once.

    Args:
        model_folder: the folder to which locations are relative.
        model_file: the model, which cannot be its own external data; with `trust_links` the real folder of the file is
            trusted too (that of the blobs in a Hugging Face cache).
        trust_links: follow links, and accept files with several names or on another file system, if their target is
            in a trusted folder.
        allow_sparse: accept files that occupy much less of the disk than their size.
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
        """The folder to which locations are relative."""
        self._model_file = model_file
        self._trust_links = trust_links
        self._allow_sparse = allow_sparse
        self._open: WeakValueDictionary[str, _OpenFile] = WeakValueDictionary()

    def resolve(
        self, pairs: Iterable[StringStringEntry], needed_bytes: int | None, *, tensor: str = "", where: str = ""
    ) -> ExternalSlice:
        """Open the bytes that `external_data` of a tensor names, as many as `needed_bytes` if that is known.

        `tensor`, or `where` for data that is not that of a tensor, begins messages.

        Raises:
            UntrustedError: a model must not name the location, the file or the range.
            MissingInputError: the file, or a folder on its path, is missing.
        """
        owner = f"external data of tensor {visible(tensor)!r}"
        entries = _entries(pairs, owner)
        location = entries.get("location", "")
        where = where or f"{owner} in {visible(location)!r}"
        source = self.opened(location, where)
        offset = _number(entries.get("offset", "0"), "offset", where)
        available = source.size - offset
        length = _number(entries["length"], "length", where) if "length" in entries else available
        if available < 0 or length > available:
            end = offset + max(length, 0)
            raise errors.UntrustedError(
                f"{where}: it names bytes {offset:,} to {end:,}, but the file has {source.size:,}"
            )
        if needed_bytes is not None and length != needed_bytes:
            raise errors.UntrustedError(f"{where}: it names {length:,} bytes, but type and shape need {needed_bytes:,}")
        return ExternalSlice(source, location, offset, length)

    def opened(self, location: str, where: str) -> SourceFile:
        """Open a file that a model names; `where` begins messages. See `resolve` for the errors."""
        parts = location_parts(location, where)
        source = self._open.get("/".join(parts))
        if source is None:
            open_next_to(self.folder, parts)
            source = self._open["/".join(parts)] = self._open_file(parts, where)
        return source

    def _open_file(self, parts: list[str], where: str) -> _OpenFile:
        folder = self.folder
        if self._trust_links:
            folder, parts = self._without_links(parts, where)
        try:
            outer = Folder(folder)
        except OSError as error:
            raise _system_error(where, error) from error
        try:
            device = outer.status().st_dev
            for part in parts[:-1]:
                inner = _folder_in(outer, part, where)
                outer.close()
                outer = inner
            file_descriptor = _file_in(outer, parts[-1], where)
        finally:
            outer.close()
        try:
            self._check(os.fstat(file_descriptor), device, where)
        except BaseException:
            os.close(file_descriptor)
            raise
        return _OpenFile(folder.joinpath(*parts), file_descriptor)

    def _check(self, status: os.stat_result, device: int, where: str) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise errors.UntrustedError(f"{where}: it is not a regular file")
        if self._model_file is not None:
            with suppress(OSError):
                if os.path.samestat(status, os.stat(self._model_file)):
                    raise errors.UntrustedError(f"{where}: it is the model itself")
        if not self._trust_links and status.st_nlink != 1:
            raise errors.UntrustedError(
                f"{where}: the file has {status.st_nlink} names (hard links), so it may belong elsewhere; "
                "copy it, or trust links with --trust-links"
            )
        if not self._trust_links and status.st_dev != device:
            raise errors.UntrustedError(
                f"{where}: it is on another file system; copy it, or trust links with --trust-links"
            )
        occupied = system.bytes_on_disk(status)
        is_checked = not self._allow_sparse and (status.st_dev, status.st_ino) not in PROVIDERS
        if is_checked and status.st_size >= SPARSE_FROM and occupied * 2 < status.st_size:
            raise errors.UntrustedError(
                f"{where}: the size of the file is {status.st_size:,} bytes, but only {occupied:,} are on the disk; "
                "if that is correct, --allow-sparse reads it (allow_sparse= in Python)"
            )

    def _without_links(self, parts: list[str], where: str) -> tuple[Path, list[str]]:
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
        raise errors.UntrustedError(f"{where}: it leads out of the model's folder, to {visible(str(real), 200)}")


def _entries(pairs: Iterable[StringStringEntry], owner: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    for pair in pairs:
        key = pair.key if pair.key is not None else ""
        if key not in KEYS:
            raise errors.UntrustedError(f"{owner}: key {visible(key)!r} is not known; known are {', '.join(KEYS)}")
        if key in entries:
            raise errors.UntrustedError(f"{owner}: key {key!r} appears twice")
        if pair.value is None:
            raise errors.UntrustedError(f"{owner}: key {key!r} has no value")
        entries[key] = pair.value
    return entries


def location_parts(location: str, where: str) -> list[str]:
    """Split a location into components, without "."; raise UntrustedError for a path that a model must not name."""
    if not location:
        raise errors.UntrustedError(f"{where}: it names no file")
    if any(character in location for character in "\0\\:"):
        raise errors.UntrustedError(f"{where}: a location must not have a zero byte, a backslash or a colon")
    parts = location.split("/")
    if not parts[0]:
        raise errors.UntrustedError(f"{where}: it is absolute; a location is relative to the folder of the model")
    if ".." in parts:
        raise errors.UntrustedError(f'{where}: ".." would lead out of the model\'s folder')
    if "" in parts or parts[-1] == ".":
        raise errors.UntrustedError(f"{where}: it names a folder, or has an empty component")
    try:
        os.fsencode(location)
    except UnicodeEncodeError:
        raise errors.UntrustedError(f"{where}: it is not a valid file name") from None
    return [part for part in parts if part != "."]


def _number(text: str, key: str, where: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise errors.UntrustedError(f"{where}: {key} {visible(text)!r} is not a number of 1 to 19 digits")
    return int(text)


def _folder_in(outer: Folder, name: str, where: str) -> Folder:
    """Open the folder `name` in an open folder; never follow a link."""
    try:
        _require_no_link(outer.status_of(name), name, where)
        return Folder(name, beside=outer, flags=system.NO_LINK)
    except OSError as error:
        raise _system_error(where, error) from error


def _file_in(outer: Folder, name: str, where: str) -> int:
    """Open the file `name` in an open folder -> its descriptor; never follow a link, never wait."""
    try:
        status = outer.status_of(name)
        _require_no_link(status, name, where)
        if not stat.S_ISREG(status.st_mode):
            # Opening a device may already have an effect.
            raise errors.UntrustedError(f"{where}: it is not a regular file")
        return system.open_file(name, os.O_RDONLY | system.NO_LINK | system.NO_WAITING, beside=outer)
    except OSError as error:
        raise _system_error(where, error) from error


def _require_no_link(status: os.stat_result, name: str, where: str) -> None:
    if system.is_link(status):
        raise errors.UntrustedError(
            f"{where}: {visible(name)!r} is a link; copy the file, or trust links with --trust-links"
        )


def _system_error(where: str, error: OSError) -> errors.OnnxJsonError:
    reason = error.strerror or str(error)
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
        return errors.MissingInputError(f"{where}: the file is missing ({reason}); put it next to the model")
    if error.errno in {errno.ELOOP, errno.ENXIO}:
        return errors.UntrustedError(f"{where}: it is a link, or not a regular file ({reason})")
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return errors.LimitError(f"{where}: too many files are open; raise the limit with ulimit -n")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return errors.AccessDeniedError(f"{where}: {reason}")
    return errors.FileError(f"{where}: {reason}")
