"""Tensors between a model and the files beside it: taken in, put out, copied along.

A tensor whose ``data_location`` is EXTERNAL names a file below the folder of the model, and a range of it
(docs/ExternalData.md of ONNX). Everything here treats tensors wherever they can stand, and streams: no tensor is ever
whole in memory.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from onnxjson.display import visible
from onnxjson.document import Model, StringStringEntry, Tensor
from onnxjson.errors import DecodeError, MissingInputError, OutputError, UntrustedError
from onnxjson.external import Resolver, location_parts
from onnxjson.names import DATA_LOCATIONS
from onnxjson.payloads import LAZY_FROM, Data, pieces
from onnxjson.saving import make_folder, save_file
from onnxjson.sinks import Sink
from onnxjson.tensor_replacement import replace_tensors
from onnxjson.tensors import is_external, needed_bytes
from onnxjson.walking import walk

ALIGNMENT: Final = 4096
"""Tensors begin at multiples of this many bytes, so that a runtime can map them into memory."""

THRESHOLD: Final = 1024
"""Bytes from which a tensor is put into a data file if nobody says otherwise; that of onnx.save."""

_EXTERNAL: Final = DATA_LOCATIONS["EXTERNAL"]
_INSIDE: Final = (None, DATA_LOCATIONS["DEFAULT"])
_TYPED_FIELDS: Final = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


class Externalized(NamedTuple):
    """What `externalize` did."""

    model: Model
    """To be saved beside the data file."""
    moved: int
    """How many tensors went to the data file; where it is 0 there is none."""
    left: int
    """How many tensors of the threshold and more stay in the model, since their elements are not in ``raw_data`` or do
    not fit dtype and dims."""


def locations(model: Model) -> tuple[str, ...]:
    """The files that tensors of a model stand in, as they spell them, each once."""
    named = (
        entry.value
        for tensor in walk(model, Tensor)
        if is_external(tensor)
        for entry in tensor.external_data
        if entry.key == "location" and entry.value
    )
    return tuple(dict.fromkeys(named))


def is_data_of(path: Path, model: Model, folder: Path) -> bool:
    """Whether a file, under this name or another, is one that tensors of a model in `folder` stand in."""
    try:
        status = path.stat()
    except OSError:
        return False
    for location in locations(model):
        # A location that no file can have is somebody else's trouble.
        with suppress(OSError, ValueError):
            if os.path.samestat(status, os.stat(folder / location)):
                return True
    return False


def internalize(
    model: Model,
    folder: str | Path,
    *,
    model_file: Path | None = None,
    trust_links: bool = False,
    allow_sparse: bool = False,
) -> Model:
    """`model` with all of its tensors in ``raw_data``; big ones stay in their files until they are asked for.

    Args:
        model: stays as it is.
        folder: where the model stands, and the locations begin.
        model_file: the model's own file, which is not its external data.
        trust_links: see `onnxjson.external.Resolver`.
        allow_sparse: see there too.

    Returns:
        `model` itself where no tensor stands in another file.

    Raises:
        MissingInputError: a file is not there; the message names tensor and file.
        UntrustedError: a location, a file or a range is not what a model may name.
        DecodeError: a tensor has elements both in a file and in the model.
        AccessDeniedError, FileError, LimitError: the system does not open or read a file.
    """
    resolver = Resolver(Path(folder), model_file=model_file, trust_links=trust_links, allow_sparse=allow_sparse)

    def taken_in(tensor: Tensor) -> Tensor:
        if not is_external(tensor):
            return tensor
        if tensor.raw_data or _typed(tensor):
            raise DecodeError(
                f"tensor {visible(tensor.name or '')!r} has elements in another file and in the model too; "
                "delete those that are wrong"
            )
        found = resolver.resolve(tensor.external_data, needed_bytes(tensor), tensor=tensor.name or "")
        raw: Data = found if len(found) >= LAZY_FROM else found.read()
        return msgspec.structs.replace(tensor, raw_data=raw, external_data=(), data_location=None)

    return replace_tensors(model, taken_in)


def externalize(model: Model, data_file: str | Path, *, threshold: int = THRESHOLD) -> Externalized:
    """Writes big tensors into one new file, and gives the model that names them there.

    The file is complete and on the disk when this returns; then save the model, in the same folder. Each tensor begins
    at a multiple of 4096 bytes. Tensors in typed fields (``float_data`` ...) and strings stay in the model, as do those
    that are in other files already.

    Args:
        model: stays as it is.
        data_file: where to; nothing may be there.
        threshold: bytes from which a tensor is moved; those of no bytes never are.

    Raises:
        OutputError: something is there, the model names such a file already, or a location cannot spell the name.
        WeightsMissingError: of some tensors only the sha256 is here.
        AccessDeniedError, FileError: the file cannot be written; none is left behind.
        ChangedUnderneathError: a file that holds tensors of `model` was changed.
    """
    data_file = Path(data_file)
    _check_data_file(model, data_file)
    ranges: list[tuple[int, Data]] = []
    end = left = 0

    def put_out(tensor: Tensor) -> Tensor:
        nonlocal end, left
        raw = _movable(tensor)
        if raw is None:
            left += not is_external(tensor) and _size(tensor) >= max(threshold, 1)
            return tensor
        if len(raw) < max(threshold, 1):
            return tensor
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        end = offset + len(raw)
        ranges.append((offset, raw))
        pairs = {"location": data_file.name, "offset": str(offset), "length": str(len(raw))}
        entries = tuple(StringStringEntry(key=key, value=value) for key, value in pairs.items())
        return msgspec.structs.replace(tensor, raw_data=None, external_data=entries, data_location=_EXTERNAL)

    changed = replace_tensors(model, put_out)
    if ranges:
        save_file(data_file, _writer(ranges), replace=False)
    return Externalized(changed, len(ranges), left)


@contextmanager
def removed_on_failure(data_file: Path, model_file: Path) -> Iterator[None]:
    """Take a data file away again if the model that names it is not saved; `data_file` must be new."""
    before = _state(model_file)
    try:
        yield
    except BaseException:
        # A save can also fail after the model has got its name; then it needs the data.
        if _state(model_file) == before:
            with suppress(OSError):
                os.unlink(data_file)
        raise


def copy_files(
    model: Model,
    folder: str | Path,
    destination: str | Path,
    *,
    model_file: Path | None = None,
    taken: Path | None = None,
    trust_links: bool = False,
    allow_sparse: bool = False,
) -> tuple[Path, ...]:
    """Copies the files that a model names to the same places below another folder.

    Every range is checked first, and nothing is copied if one file is in the way. Each copy is all or nothing; a file
    that is there with the same bytes is left alone.

    Args:
        model: the model.
        folder: where it stands.
        destination: the other folder.
        model_file: the model's own file, which is not its external data.
        taken: a path below `destination` that the model itself will have.
        trust_links: see `onnxjson.external.Resolver`.
        allow_sparse: see there too.

    Returns:
        The new files.

    Raises:
        MissingInputError, UntrustedError: as for `internalize`.
        OutputError: something else is there, or stands in the way.
        AccessDeniedError, FileError, LimitError: the system does not read or write a file.
    """
    resolver = Resolver(Path(folder), model_file=model_file, trust_links=trust_links, allow_sparse=allow_sparse)
    there = Resolver(Path(destination), allow_sparse=True)
    owners: dict[str, str] = {}
    for tensor in walk(model, Tensor):
        if is_external(tensor):
            name = tensor.name or ""
            found = resolver.resolve(tensor.external_data, needed_bytes(tensor), tensor=name)
            owners.setdefault("/".join(location_parts(found.location, name)), name)
    missing = []
    for location, owner in owners.items():
        target = Path(destination, location)
        if taken is not None and os.path.realpath(target) == os.path.realpath(taken):
            raise OutputError(f"{_shown(target)} is to be both the model and a file that it names; name it otherwise")
        if not _is_copied(target, location, there, _whole_file(resolver, location, owner)):
            missing.append((location, owner, target))
    for location, owner, target in missing:
        for parent in reversed(target.relative_to(destination).parents[:-1]):
            make_folder(Path(destination, parent))
        save_file(target, _writer([(0, _whole_file(resolver, location, owner))]), replace=False)
    return tuple(target for _, _, target in missing)


def _whole_file(resolver: Resolver, location: str, owner: str) -> Data:
    return resolver.resolve((StringStringEntry(key="location", value=location),), None, tensor=owner)


def _is_copied(target: Path, location: str, there: Resolver, data: Data) -> bool:
    """Whether a file has just these bytes; False where nothing is.

    Raises:
        OutputError: something else stands there, or a link is on the way.
    """
    try:
        found = _whole_file(there, location, "")
    except MissingInputError:
        return False
    except UntrustedError:
        raise OutputError(
            f"{_shown(target)} is in the way: a link, a folder, or no file of its own; "
            "remove it, or write to another folder"
        ) from None
    if found != data:
        raise OutputError(f"{_shown(target)} is already there with other bytes; remove it, or write to another folder")
    return True


def _check_data_file(model: Model, data_file: Path) -> None:
    name = visible(data_file.name, None)
    try:
        location_parts(data_file.name, name)
    except UntrustedError as error:
        raise OutputError(f"no model can name such a data file: {error}; name another with --file") from None
    if os.path.lexists(data_file):
        raise OutputError(f"{_shown(data_file)} is already there; name another data file with --file")
    if any(os.path.normpath(location) == data_file.name for location in locations(model)):
        raise OutputError(f"the model has other tensors in a file {name}; name another data file with --file")


def _movable(tensor: Tensor) -> Data | None:
    """The bytes of a tensor that can stand in a file and come back as it is."""
    if tensor.data_location not in _INSIDE or tensor.external_data or tensor.segment is not None or _typed(tensor):
        return None
    raw = tensor.raw_data
    return raw if raw is not None and len(raw) == needed_bytes(tensor) else None


def _typed(tensor: Tensor) -> bool:
    return any(len(getattr(tensor, field)) for field in _TYPED_FIELDS)


def _size(tensor: Tensor) -> int:
    """Bytes of the elements of a tensor as they stand in it; strings count for nothing."""
    return len(tensor.raw_data or b"") + sum(
        len(getattr(tensor, field)) for field in _TYPED_FIELDS if field != "string_data"
    )


def _writer(ranges: list[tuple[int, Data]]) -> Callable[[Sink], None]:
    """What writes data at their offsets, which grow, with zeros between."""

    def write(sink: Sink) -> None:
        position = 0
        for offset, data in ranges:
            sink.write(bytes(offset - position))
            for piece in pieces(data):
                sink.write(piece)
            position = offset + len(data)

    return write


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _shown(path: Path) -> str:
    return visible(str(path), None)
