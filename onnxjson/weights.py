"""Weights that stand apart from the text: blobs beside it, or the model that has the bytes of digests.

A blob is a file that holds exactly the bytes `raw_data` would hold and is named by their SHA-256, so an unchanged
tensor costs nothing in git and a text can be checked against its weights. A digest is bound by SHA-256 and length, not
by the name of its tensor. Bytes are checked against their SHA-256 whenever they are used.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from onnxjson.canonical.payload_forms import Weights, payloads, sha256_of
from onnxjson.display import visible
from onnxjson.document import Model, StringStringEntry, Tensor
from onnxjson.errors import DecodeError, OutputError, UntrustedError, WeightsMissingError
from onnxjson.external import Resolver
from onnxjson.identity import reading_error
from onnxjson.identity import sha256_of as sha256_of_file
from onnxjson.payloads import Data, Digest, Payload, pieces
from onnxjson.saving import make_folder, save_file
from onnxjson.sinks import Sink, system_errors
from onnxjson.tensor_replacement import replace_tensors
from onnxjson.tensors import raw_bytes
from onnxjson.types import format_tensor_type
from onnxjson.walking import walk

_FIELDS: Final = ("raw_data", "float_data", "double_data")
"""Where a tensor can have a digest instead of bytes."""

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_DIGEST: Final = re.compile(rb'(?<=")[0-9a-f]{64}(?=")')


class Blob(Payload):
    """The bytes of a blob, read and checked each time they are asked for."""

    __slots__ = ("_resolver", "folder")

    def __init__(self, digest: Digest, resolver: Resolver) -> None:
        super().__init__(digest.length)
        self._sha256 = digest.sha256
        self._resolver = resolver
        self.folder = digest.folder
        """The folder of blobs, as the text names it."""

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
    return path.name.removesuffix(".json").removesuffix(".onnx") + ".blobs"


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
    target = _checked_folder(folder, name)
    written = 0
    for data in _distinct(model):
        place = target / sha256_of(data)
        if _holds(place, data):
            continue
        if isinstance(data, Digest):
            raise WeightsMissingError(f"the bytes with the sha256 {data.sha256} are not here, and no blob has them")
        make_folder(target)
        save_file(place, _writer(data))
        written += 1
    return written


def prune_blobs(path: Path, model: Model) -> list[Path]:
    """Removes the blobs that no text names any more -> what was removed.

    Args:
        path: a text; the other texts of its folder (``*.json``) are looked through too, and keep what they name.
        model: the model of the text, its blobs unbound.

    Raises:
        UntrustedError: the folder leads elsewhere.
        MissingInputError, FileError, AccessDeniedError: a text cannot be read or a blob not removed.
    """
    names = {digest.folder for data, _ in payloads(model) if (digest := _unbound_blob(data)) is not None}
    removed: list[Path] = []
    for name in sorted(name for name in names if name):
        folder = _checked_folder(path.parent, name)
        used = {data.sha256 for data, _ in payloads(model) if isinstance(data, Digest)}
        for text in path.parent.glob("*.json"):
            used |= _digests_in(text)
        for blob in sorted(folder.glob("*")) if folder.is_dir() else ():
            if _NAME.fullmatch(blob.name) and blob.name not in used and blob.is_file() and not blob.is_symlink():
                with system_errors(f"{visible(str(blob), None)} cannot be removed"):
                    blob.unlink()
                removed.append(blob)
    return removed


def _unbound_blob(data: Data) -> Digest | None:
    return data if isinstance(data, Digest) and data.folder is not None else None


def _digests_in(text: Path) -> set[str]:
    """Whatever in a file looks like the name of a blob; rather too much than too little."""
    found: set[str] = set()
    tail = b""
    try:
        with text.open("rb") as file:
            while block := file.read(1 << 20):
                found.update(match.decode() for match in _DIGEST.findall(tail + block))
                tail = block[-80:]
    except OSError as error:
        raise reading_error(text, error) from error
    return found


def _distinct(model: Model) -> list[Data]:
    probe = Weights("blobs")
    found = {sha256_of(data): data for data, storage in payloads(model) if probe.kind(data, storage) == "blob"}
    return list(found.values())


def _checked_folder(folder: Path, name: str) -> Path:
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts or "\\" in name or name != "/".join(parts):
        raise UntrustedError(f"{visible(name)!r} is no folder for blobs; name one below the folder of the text")
    place = folder
    for part in parts:
        place = place / part
        if place.is_symlink():
            raise UntrustedError(f"{visible(str(place), None)} is a link; blobs stand in a folder of their own")
        if place.exists() and not place.is_dir():
            raise OutputError(f"{visible(str(place), None)} stands where the folder of blobs should be")
    return place


def _holds(place: Path, data: Data) -> bool:
    """Whether a blob is there and holds what its name says; one that does not is written again."""
    if place.is_symlink() or not place.is_file() or place.stat().st_size != len(data):
        return False
    return sha256_of_file(place) == place.name


def _writer(data: Data) -> Callable[[Sink], None]:
    def write(sink: Sink) -> None:
        for piece in pieces(data):
            sink.write(piece)

    return write
