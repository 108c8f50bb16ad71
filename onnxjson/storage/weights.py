"""Weights outside the text: blobs next to it, or the model that has the bytes of digests.

A blob is a file with exactly the bytes of `raw_data` and is named by their SHA-256, so an unchanged tensor adds
nothing to a git repository, and a text can be checked against its weights. A digest is bound by SHA-256 and length, not
by the name of its tensor. Bytes are checked against their SHA-256 whenever they are used.
"""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from onnxjson.codecs.tensor_text import Weights, payloads, sha256_of
from onnxjson.model import errors
from onnxjson.model.addresses import walk as walk_with_addresses
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Model, StringStringEntry, Tensor
from onnxjson.model.payloads import Data, Digest, Payload, hash_all
from onnxjson.model.tensors import raw_bytes
from onnxjson.model.types import format_tensor_type
from onnxjson.model.walking import replace_records, tensors_of
from onnxjson.storage.external import Resolver, location_parts
from onnxjson.storage.external_files import writer_of
from onnxjson.storage.identity import sha256_of as sha256_of_file
from onnxjson.storage.saving import make_folder, save_file

_FIELDS: Final = ("raw_data", "float_data", "double_data")
"""The fields in which a tensor can have a digest instead of bytes."""


_NAME: Final = re.compile(r"[0-9a-f]{64}")
"""The name of a blob."""

_HINT: Final = "fetch it with `git lfs pull` or from git, or write it again from a model that has the bytes"


class Blob(Payload):
    """The bytes of a blob, read and checked at each use."""

    __slots__ = ("_resolver", "folder")

    def __init__(self, digest: Digest, resolver: Resolver) -> None:
        super().__init__(digest.length)
        self._sha256 = digest.sha256
        self._resolver = resolver
        self.folder = digest.folder
        """The folder of blobs, as the text names it."""

    @property
    def place(self) -> Path:
        """Its file."""
        return self._resolver.folder / str(self.folder) / self.sha256

    def chunks(self) -> Iterator[bytes]:
        """See `Payload.chunks`; raises DecodeError if the bytes do not have the hash in the name of the blob."""
        hasher = hashlib.sha256()
        for piece in _open_blob(self, self._resolver).chunks():
            hasher.update(piece)
            yield piece
        if hasher.hexdigest() != self.sha256:
            place = visible(f"{self.folder}/{self.sha256}", None)
            raise errors.DecodeError(
                f"the bytes of the blob {place} do not have the hash in its name; get it from git again"
            )


def _open_blob(blob: "Digest | Blob", resolver: Resolver) -> Payload:
    place = f"{blob.folder}/{blob.sha256}"
    where = f"the blob {visible(place, None)} cannot be used"
    return resolver.resolve((StringStringEntry("location", place),), blob.length, where=where)


def missing(model: Model) -> list[Tensor]:
    """The tensors of which only the sha256 is available."""
    return [tensor for tensor in tensors_of(model) if digest_of(tensor) is not None]


def require_whole(model: Model) -> None:
    """Raise WeightsMissingError unless all bytes of a model are available."""
    tensors = missing(model)
    if tensors:
        raise _missing_error(tensors)


def _missing_error(tensors: list[Tensor]) -> errors.WeightsMissingError:
    count, first = len(tensors), _called(tensors[0])
    which = "one tensor" if count == 1 else f"{count:,} tensors, the first of them"
    return errors.WeightsMissingError(
        f"only the sha256 of {which} {first} is available; name a model that has the bytes with --weights-from "
        "(weights_from= in Python)",
        count,
        first,
    )


def _called(tensor: Tensor) -> str:
    if tensor.name:
        return f'"{visible(tensor.name)}"'
    return f"(a {format_tensor_type(tensor.data_type or 0, tensor.dims)} without a name)"


def digest_of(tensor: Tensor) -> tuple[str, Digest] | None:
    """The field of a tensor that has a digest instead of bytes, and the digest; None if it has its bytes."""
    for field in _FIELDS:
        data = getattr(tensor, field)
        if isinstance(data, Digest):
            return field, data
    return None


def bind(model: Model, *, folder: Path | None = None, source: Model | None = None) -> Model:
    """Bind the digests of a model to their bytes: from the folder of blobs of its text, and from another model.

    Without `folder`, blobs stay unbound; `source` can also have the bytes of missing blobs.

    Raises:
        MissingInputError, UntrustedError: a blob is missing, has another length, or a text must not name its file.
        WeightsMissingError: `source` does not have the bytes of some digest.
    """
    result, unbound = _bound(model, None if folder is None else Resolver(folder), source)
    if unbound and source is not None:
        raise _missing_error(unbound)
    return result


def bind_known(model: Model, source: Model) -> tuple[Model, list[Tensor]]:
    """Bind digests to the bytes of `source`, or to its own digests; also return the tensors for which it has neither.

    These tensors stay the same records.
    """
    return _bound(model, None, source, has_digests=True)


def _bound(
    model: Model, resolver: Resolver | None, source: Model | None, *, has_digests: bool = False
) -> tuple[Model, list[Tensor]]:
    known = None if source is None else _Source(source, has_digests=has_digests)
    unbound: list[Tensor] = []

    def bind_tensor(tensor: Tensor) -> Tensor:
        held = digest_of(tensor)
        if held is None:
            return tensor
        field, digest = held
        data: Data | None = None if known is None else known.get(digest)
        if data is None and digest.folder is not None and resolver is not None:
            _open_blob(digest, resolver)
            data = Blob(digest, resolver)
        if data is None:
            unbound.append(tensor)
            return tensor
        return msgspec.structs.replace(tensor, **{field: data})

    return replace_records(model, Tensor, bind_tensor), unbound


class _Source:
    """The payloads of a model by length and SHA-256; only those of a requested length are hashed."""

    def __init__(self, model: Model, *, has_digests: bool) -> None:
        self._model = model
        self._has_digests = has_digests
        self._hashed: dict[tuple[int, str], Data] = {}

    @cached_property
    def _unhashed(self) -> dict[int, list[Data]]:
        by_length: dict[int, list[Data]] = {}
        for tensor in tensors_of(self._model):
            stored = raw_bytes(tensor)
            if stored is not None and (self._has_digests or not isinstance(stored[0], Digest)):
                by_length.setdefault(len(stored[0]), []).append(stored[0])
        return by_length

    def get(self, digest: Digest) -> Data | None:
        """The bytes of a digest; None if the model does not have them."""
        for data in self._unhashed.pop(digest.length, ()):
            self._hashed[digest.length, sha256_of(data)] = data
        return self._hashed.get((digest.length, digest.sha256))


def write_blobs(model: Model, folder: Path, name: str, undo: ExitStack) -> list[Path]:
    """Write the missing blobs of a text in `folder` to its folder of blobs, `name`; valid ones stay -> all blobs.

    If `undo` is left before the text is saved, what was written is removed.

    WeightsMissingError if only the sha256 of a tensor is available, UntrustedError if the folder leads elsewhere.
    """
    target = checked_folder(folder, name)
    probe = Weights("blobs")
    blobs = [data for data, storage in payloads(model) if probe.kind(data, storage) == "blob"]
    hash_all(blobs)
    blobs.sort(key=lambda data: not isinstance(data, Digest))  # bytes last, so that they replace an equal digest
    by_sha256 = {sha256_of(data): data for data in blobs}
    for sha256, data in by_sha256.items():
        if _holds(target / sha256, data):
            continue
        if isinstance(data, Digest):
            raise _missing_error(missing(model))
        _save_blob(target / sha256, data, undo)
    return [target / sha256 for sha256 in by_sha256]


def _save_blob(place: Path, data: Data, undo: ExitStack) -> None:
    """Save a new blob; the hash in its name proves that it is complete, so no other hash is computed."""
    if not place.parent.exists():
        undo.callback(_without_error, place.parent.rmdir)
    make_folder(place.parent)
    if not os.path.lexists(place):
        undo.callback(_without_error, place.unlink)
    save_file(place, writer_of([(0, data)]), sha256=place.name)


def _without_error(remove: Callable[[], None]) -> None:
    with suppress(OSError):
        remove()


def bring_blobs(model: Model, folder: Path, name: str, undo: ExitStack) -> None:
    """Copy the blobs of a model, as far as they are available, to `name`, the folder of blobs of a text in `folder`.

    For `undo` see `write_blobs`.
    """
    target = checked_folder(folder, name)
    blobs = {data.sha256: data for data, _ in payloads(model) if isinstance(data, Blob)}
    away = [(target / sha256, data) for sha256, data in blobs.items() if not os.path.lexists(target / sha256)]
    # A blob that was removed from this folder cannot be copied.
    lost = {place for place, data in away if os.path.realpath(place) == os.path.realpath(data.place)}
    for place, data in away:
        if place not in lost:
            _save_blob(place, data, undo)


def require_blobs(blobs: list[Path], folder: Path) -> None:
    """Raise ChangedUnderneathError unless every blob of a text exists; another process may have removed some."""
    for blob in blobs:
        if not blob.is_file():
            place = visible(str(blob.relative_to(folder)), None)
            raise errors.ChangedUnderneathError(f"the blob {place} was removed while the text was written; save again")


def is_blob_of(path: Path, model: Model, folder: Path) -> bool:
    """Whether a file is a blob that the text of a model in `folder` names."""
    if not _NAME.fullmatch(path.name):
        return False
    return any(
        (place := folder / str(data.folder) / data.sha256).exists() and place.samefile(path)
        for tensor in tensors_of(model)
        for data in (getattr(tensor, field) for field in _FIELDS)
        if isinstance(data, Digest | Blob) and data.folder is not None and data.sha256 == path.name
    )


def checked_folder(folder: Path, name: str) -> Path:
    """The folder of blobs that a text in `folder` names, if it may; it may not exist."""
    place = folder
    for part in location_parts(name, f"the folder of blobs {visible(name)!r}"):
        place = place / part
        if place.is_symlink():
            raise errors.UntrustedError(f"{visible(str(place), None)} is a link; blobs need a folder of their own")
        if place.exists() and not place.is_dir():
            raise errors.OutputError(f"{visible(str(place), None)} is not a folder of blobs; move it away")
    return place


def _holds(place: Path, data: Data) -> bool:
    """Whether a blob exists and its bytes have the hash in its name; raise UntrustedError if it is a link."""
    try:
        status = place.lstat()
    except OSError:
        return False
    if stat.S_ISLNK(status.st_mode) or status.st_nlink > 1:
        raise errors.UntrustedError(f"{visible(str(place), None)} is a link; remove it, and save again")
    return stat.S_ISREG(status.st_mode) and status.st_size == len(data) and sha256_of_file(place) == place.name


def check_blobs(model: Model, folder: Path) -> Iterator[errors.Finding]:
    """Report missing and unusable blobs of a model, each with the address of the tensor; no blob is read.

    The model was loaded with unbound blobs (``files.load(path, bind=False)``); `folder` is that of the text.
    """
    resolver = Resolver(folder)
    for address, record in walk_with_addresses(model):
        if not isinstance(record, Tensor):
            continue
        for field in _FIELDS:
            digest = getattr(record, field)
            if isinstance(digest, Digest) and digest.folder is not None:
                mistake = _mistake(digest, resolver)
                if mistake is not None:
                    code, message = mistake
                    yield errors.Finding(severity="error", code=code, address=address, message=message, hint=_HINT)


def _mistake(blob: Digest, resolver: Resolver) -> tuple[str, str] | None:
    place = f"{blob.folder}/{blob.sha256}"
    called = f"the blob {visible(place, None)}"
    try:
        stored = resolver.resolve((StringStringEntry("location", place),), None, where=f"{called} cannot be used")
    except errors.MissingInputError:
        return "missing-blob", f"{called} is missing"
    except errors.OnnxJsonError as error:
        return "unusable-blob", str(error)
    if len(stored) != len(blob):
        return "unusable-blob", f"{called} has {counted(len(stored), 'byte')}; the tensor needs {len(blob):,}"
    return None
