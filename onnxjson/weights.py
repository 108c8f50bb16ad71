"""Weights that stand apart from the text: blobs beside it, or the model that has the bytes of digests.

A blob is a file that holds exactly the bytes `raw_data` would hold and is named by their SHA-256, so an unchanged
tensor costs nothing in git and a text can be checked against its weights. A digest is bound by SHA-256 and length, not
by the name of its tensor. Bytes are checked against their SHA-256 whenever they are used.
"""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from onnxjson.canonical.payload_forms import Weights, payloads, sha256_of
from onnxjson.display import visible
from onnxjson.document import Model, StringStringEntry, Tensor
from onnxjson.errors import ChangedUnderneathError, DecodeError, OutputError, UntrustedError, WeightsMissingError
from onnxjson.external import Resolver, location_parts
from onnxjson.identity import sha256_of as sha256_of_file
from onnxjson.payloads import Data, Digest, Payload, pieces
from onnxjson.saving import make_folder, save_file
from onnxjson.sinks import Sink
from onnxjson.tensor_replacement import replace_tensors
from onnxjson.tensors import raw_bytes
from onnxjson.types import format_tensor_type
from onnxjson.walking import walk

_FIELDS: Final = ("raw_data", "float_data", "double_data")
"""Where a tensor can have a digest instead of bytes."""


_NAME: Final = re.compile(r"[0-9a-f]{64}")
"""The name of a blob."""


class Blob(Payload):
    """The bytes of a blob, read and checked each time they are asked for."""

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
        """See `Payload.chunks`.

        Raises:
            MissingInputError, UntrustedError: the blob is not there any more, or is no file that a model may name.
            DecodeError: it does not hold the bytes that its name says.
        """
        found = hashlib.sha256()
        for piece in _opened(self, self._resolver).chunks():
            found.update(piece)
            yield piece
        if found.hexdigest() != self.sha256:
            place = visible(f"{self.folder}/{self.sha256}", None)
            raise DecodeError(f"the blob {place} does not hold the bytes that its name says; get it from git again")


def _opened(blob: "Digest | Blob", resolver: Resolver) -> Payload:
    place = f"{blob.folder}/{blob.sha256}"
    where = f"the blob {visible(place, None)} cannot be used"
    return resolver.resolve((StringStringEntry("location", place),), blob.length, where=where)


def missing(model: Model) -> list[Tensor]:
    """The tensors of which only the sha256 is here."""
    return [tensor for tensor in walk(model, Tensor) if _digest(tensor) is not None]


def require_whole(model: Model) -> None:
    """Do nothing if all bytes of a model are here.

    Raises:
        WeightsMissingError: of some tensors only the sha256 is.
    """
    tensors = missing(model)
    if tensors:
        raise _missing_error(tensors)


def _missing_error(tensors: list[Tensor]) -> WeightsMissingError:
    count, first = len(tensors), _called(tensors[0])
    which = "one tensor" if count == 1 else f"{count:,} tensors, the first of them"
    return WeightsMissingError(
        f"only the sha256 of {which} {first} is here; name a model that has the bytes with --weights-from "
        "(weights_from= in Python)",
        count,
        first,
    )


def _called(tensor: Tensor) -> str:
    if tensor.name:
        return f'"{visible(tensor.name)}"'
    return f"(a {format_tensor_type(tensor.data_type or 0, tensor.dims)} without a name)"


def _digest(tensor: Tensor) -> tuple[str, Digest] | None:
    for field in _FIELDS:
        data = getattr(tensor, field)
        if isinstance(data, Digest):
            return field, data
    return None


def bind(model: Model, *, folder: Path | None = None, source: Model | None = None) -> Model:
    """`model` with bytes for its digests: from the folder of blobs beside its text, and from a model that has them.

    Args:
        model: stays as it is.
        folder: that of the text; None leaves blobs unbound.
        source: where digests, and blobs that are not there, are looked for.

    Raises:
        MissingInputError, UntrustedError: a blob is not there, has another length, or is no file that a text may name.
        WeightsMissingError: `source` does not have the bytes of some digest.
    """
    resolver = None if folder is None else Resolver(folder)
    found = None if source is None else _Source(source)
    unbound: list[Tensor] = []

    def bound(tensor: Tensor) -> Tensor:
        held = _digest(tensor)
        if held is None:
            return tensor
        field, digest = held
        data: Data | None = None if found is None else found.get(digest)
        if data is None and digest.folder is not None and resolver is not None:
            _opened(digest, resolver)
            data = Blob(digest, resolver)
        if data is None:
            unbound.append(tensor)
            return tensor
        return msgspec.structs.replace(tensor, **{field: data})

    result = replace_tensors(model, bound)
    if unbound and source is not None:
        raise _missing_error(unbound)
    return result


class _Source:
    """The payloads of a model by length and SHA-256; only those are hashed whose length is asked for."""

    def __init__(self, model: Model) -> None:
        self._unhashed: dict[int, list[Data]] = {}
        self._hashed: dict[tuple[int, str], Data] = {}
        for tensor in walk(model, Tensor):
            found = raw_bytes(tensor)
            if found is not None and not isinstance(found[0], Digest):
                self._unhashed.setdefault(len(found[0]), []).append(found[0])

    def get(self, digest: Digest) -> Data | None:
        """The bytes of a digest, if the model has them."""
        for data in self._unhashed.pop(digest.length, ()):
            self._hashed[digest.length, sha256_of(data)] = data
        return self._hashed.get((digest.length, digest.sha256))


def blobs_folder_for(path: Path) -> str:
    """The folder of blobs of a text that names none: ``model.blobs`` beside ``model.onnx.json``."""
    stem = path.name.removesuffix(".json").removesuffix(".onnx")
    return re.sub(r"[\\:]", "_", stem) + ".blobs"


def write_blobs(model: Model, folder: Path, name: str) -> int:
    """Makes sure that every payload of a model that its text names is a blob; adds files, changes and removes none.

    Args:
        model: the model.
        folder: that of the text.
        name: the folder of blobs, relative to it.

    Returns:
        How many blobs were added.

    Raises:
        WeightsMissingError: of some tensor only the sha256 is here, and the folder does not have the blob.
        UntrustedError: the folder leads elsewhere.
        OutputError, FileError, AccessDeniedError: a blob cannot be written.
    """
    target = checked_folder(folder, name)
    written = 0
    for data in _distinct(model):
        place = target / sha256_of(data)
        if _holds(place, data):
            continue
        if isinstance(data, Digest):
            raise _missing_error(missing(model))
        make_folder(target)
        save_file(place, _writer(data))
        written += 1
    return written


def bring_blobs(model: Model, folder: Path, name: str) -> int:
    """Copies the blobs of a model that was read elsewhere to where its text, if it names them as before, will say.

    A blob that is there already, or whose bytes are not here, is left alone.

    Args:
        model: the model.
        folder: that of the text.
        name: the folder of blobs, relative to it.

    Returns:
        How many blobs were added.

    Raises:
        MissingInputError, DecodeError: a blob is not there any more, or does not hold what its name says.
        UntrustedError: the folder leads elsewhere.
        OutputError, FileError, AccessDeniedError: a blob cannot be written.
    """
    target = checked_folder(folder, name)
    blobs = {data.sha256: data for data, _ in payloads(model) if isinstance(data, Blob)}
    away = [(target / sha256, data) for sha256, data in blobs.items() if not os.path.lexists(target / sha256)]
    # One that was removed from where it was read is missing there as before; nobody can bring it.
    lost = {place for place, data in away if os.path.realpath(place) == os.path.realpath(data.place)}
    for place, data in away:
        if place not in lost:
            make_folder(target)
            save_file(place, _writer(data))
    return len(away) - len(lost)


def require_blobs(model: Model, folder: Path, name: str) -> None:
    """Do nothing if every blob that the text of a model names is there: somebody may remove blobs at the same time.

    Raises:
        ChangedUnderneathError: one is not there any more.
    """
    for data in _distinct(model):
        if not (folder / name / sha256_of(data)).is_file():
            place = visible(f"{name}/{sha256_of(data)}", None)
            raise ChangedUnderneathError(f"the blob {place} was removed while the text was written; save again")


def _distinct(model: Model) -> list[Data]:
    probe = Weights("blobs")
    found = {sha256_of(data): data for data, storage in payloads(model) if probe.kind(data, storage) == "blob"}
    return list(found.values())


def is_blob_of(path: Path, model: Model, folder: Path) -> bool:
    """Whether a file is a blob that the text of a model in `folder` names."""
    if not _NAME.fullmatch(path.name):
        return False
    return any(
        (place := folder / str(data.folder) / data.sha256).exists() and place.samefile(path)
        for tensor in walk(model, Tensor)
        for data in (getattr(tensor, field) for field in _FIELDS)
        if isinstance(data, Digest | Blob) and data.folder is not None and data.sha256 == path.name
    )


def checked_folder(folder: Path, name: str) -> Path:
    """The folder of blobs that a text in `folder` names, which need not be there yet.

    Raises:
        UntrustedError: it is no name that a text may have, or leads through a link.
        OutputError: something else stands there.
    """
    place = folder
    for part in location_parts(name, f"the folder of blobs {visible(name)!r}"):
        place = place / part
        if place.is_symlink():
            raise UntrustedError(f"{visible(str(place), None)} is a link; blobs stand in a folder of their own")
        if place.exists() and not place.is_dir():
            raise OutputError(f"{visible(str(place), None)} stands where the folder of blobs should be")
    return place


def _holds(place: Path, data: Data) -> bool:
    """Whether a blob is there and holds what its name says; a file that does not is written again.

    Raises:
        UntrustedError: it is a link, or has other names, so that writing it would change a file elsewhere.
    """
    try:
        status = place.lstat()
    except OSError:
        return False
    if stat.S_ISLNK(status.st_mode) or status.st_nlink > 1:
        raise UntrustedError(f"{visible(str(place), None)} is a link; remove it, and the blob is written in its place")
    return stat.S_ISREG(status.st_mode) and status.st_size == len(data) and sha256_of_file(place) == place.name


def _writer(data: Data) -> Callable[[Sink], None]:
    def write(sink: Sink) -> None:
        for piece in pieces(data):
            sink.write(piece)

    return write
