"""External data of a model: load it into the model, move tensors to a data file, copy the files.

A tensor whose ``data_location`` is EXTERNAL names a file below the folder of the model, and a range of it
(docs/ExternalData.md of ONNX). All functions apply to tensors anywhere in the model, and stream them: no tensor is in
memory as a whole.
"""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.document import Model, StringStringEntry, Tensor
from onnxjson.model.dtypes import DTYPES
from onnxjson.model.errors import DecodeError, MissingInputError, OutputError, UntrustedError
from onnxjson.model.messages import DATA_LOCATIONS
from onnxjson.model.payloads import LAZY_FROM, Data, FileSlice, pieces
from onnxjson.model.tensors import is_external, needed_bytes, typed_fields
from onnxjson.model.walking import replace_records, tensors_of
from onnxjson.storage import safetensors
from onnxjson.storage.external import Resolver, location_parts
from onnxjson.storage.identity import open_source
from onnxjson.storage.named_files import contexts, locations
from onnxjson.storage.saving import Sink, make_folder, save_file

ALIGNMENT: Final = 4096
"""Tensors start at multiples of this many bytes, so that a runtime can map them into memory."""

THRESHOLD: Final = 1024
"""Default size in bytes from which a tensor is moved to a data file; the same as for onnx.save."""

_EXTERNAL: Final = DATA_LOCATIONS["EXTERNAL"]
_INSIDE: Final = (None, DATA_LOCATIONS["DEFAULT"])

APART: Final = 64 << 20
"""Bytes from which an inline tensor is left in the file of its model, see `in_own_file`."""

_Shard = list[tuple[Tensor, Data]]


class Externalized(NamedTuple):
    """The result of `externalize`."""

    model: Model
    """The model to save in the folder of the data file."""
    moved: int
    """Number of tensors in the data file; if it is 0, the file does not exist."""
    left: int
    """Number of tensors above the threshold that stay in the model: their elements are not in ``raw_data``, or do not
    fit dtype and dims."""
    new_files: tuple[Path, ...]
    """The data files that were written; others had these bytes already, as after a kill, or are not needed."""


def in_own_file(tensor: Tensor, folder: Path) -> Tensor:
    """Return a big tensor as a reference to its bytes in the file of its model, in `folder`; others unchanged.

    So native code can map them into memory instead of getting copies.
    """
    raw = tensor.raw_data
    path = raw.path if isinstance(raw, FileSlice) and len(raw) >= APART and needed_bytes(tensor) == len(raw) else None
    if path is None or path.parent != folder.resolve():
        return tensor
    assert isinstance(raw, FileSlice)
    entries = _range_entries(path.name, raw.offset, len(raw))
    return msgspec.structs.replace(tensor, raw_data=None, external_data=entries, data_location=_EXTERNAL)


def _range_entries(location: str, offset: int, length: int) -> tuple[StringStringEntry, ...]:
    pairs = {"location": location, "offset": str(offset), "length": str(length)}
    return tuple([StringStringEntry(key=key, value=value) for key, value in pairs.items()])


def internalize(
    model: Model,
    folder: str | Path,
    *,
    model_file: Path | None = None,
    trust_links: bool = False,
    allow_sparse: bool = False,
) -> Model:
    """Load all external data of a model into ``raw_data``; big tensors stay in their files until they are used.

    See `onnxjson.storage.external.Resolver` for the options and the errors.

    Raises:
        DecodeError: a tensor has elements in a file and in the model.
    """
    resolver = Resolver(Path(folder), model_file=model_file, trust_links=trust_links, allow_sparse=allow_sparse)

    def load_in(tensor: Tensor) -> Tensor:
        if not is_external(tensor):
            return tensor
        if tensor.raw_data or typed_fields(tensor):
            raise DecodeError(
                f"tensor {visible(tensor.name or '')!r} has elements in another file and in the model; "
                "delete the wrong ones"
            )
        found = resolver.resolve(tensor.external_data, needed_bytes(tensor), tensor=tensor.name or "")
        raw: Data = found if len(found) >= LAZY_FROM else found.read()
        return msgspec.structs.replace(tensor, raw_data=raw, external_data=(), data_location=None)

    return replace_records(model, Tensor, load_in)


def externalize(
    model: Model,
    data_file: str | Path,
    *,
    threshold: int = THRESHOLD,
    shard_size: int | None = None,
    is_chosen: Callable[[str], bool] = lambda name: True,
) -> Externalized:
    """Move tensors of at least `threshold` bytes to one new data file, which must not exist; empty ones stay.

    When this returns, the file is complete and on the disk; save the model in the same folder afterwards. Strings,
    tensors in typed fields (``float_data`` ...) and external data stay. A data file whose name ends in ``.safetensors``
    has the header of that format; tensors without a name of their own or a dtype of the format stay.

    Args:
        shard_size: maximum size of a data file with several tensors; the files are ``m-00001-of-00003.data`` and so on.
        is_chosen: whether a tensor with this name ("" without one) may move; all others stay.

    Raises:
        OutputError: the file exists, the model already names it, or its name is not valid as a location.
        WeightsMissingError: only the sha256 of some tensors is available.
    """
    data_file = Path(data_file)
    is_safetensors = data_file.suffix == safetensors.ENDING
    least = max(threshold, 1)
    movable: dict[int, tuple[Tensor, Data]] = {}
    names = Counter(tensor.name for tensor in tensors_of(model))
    left = 0

    def look(tensor: Tensor) -> Tensor:
        nonlocal left
        if not is_chosen(tensor.name or ""):
            return tensor
        raw = _movable(tensor)
        is_named = bool(tensor.name) and names[tensor.name] == 1 and safetensors.can_hold(tensor)
        if raw is None or (len(raw) >= least and is_safetensors and not is_named):
            left += not is_external(tensor) and _size(tensor) >= least
        elif len(raw) >= least:
            movable[id(tensor)] = tensor, raw
        return tensor

    replace_records(model, Tensor, look)
    entries: dict[int, tuple[StringStringEntry, ...]] = {}
    with ExitStack() as stack:
        new_files = []
        for path, shard in _shards(data_file, list(movable.values()), shard_size):
            ranges = _ranges(shard, safetensors.header(shard, ALIGNMENT) if is_safetensors else b"")
            is_there = _check_data_file(model, path)
            if is_there and not _has(path, ranges):
                raise OutputError(f"{_shown(path)} already exists; choose another data file with --data-file")
            if not is_there:
                save_file(path, writer_of(ranges), replace=False)
                stack.callback(path.unlink)
                new_files.append(path)
            for (tensor, raw), (offset, _) in zip(shard, ranges[-len(shard) :], strict=True):
                entries[id(tensor)] = _range_entries(path.name, offset, len(raw))
        stack.pop_all()  # all files are complete
    if not movable and _check_data_file(model, data_file):
        raise OutputError(f"{_shown(data_file)} already exists; choose another data file with --data-file")

    def move_out(tensor: Tensor) -> Tensor:
        found = entries.get(id(tensor))
        fields = {"raw_data": None, "external_data": found, "data_location": _EXTERNAL}
        return tensor if found is None else msgspec.structs.replace(tensor, **fields)

    return Externalized(replace_records(model, Tensor, move_out), len(entries), left, tuple(new_files))


def _shards(data_file: Path, tensors: _Shard, shard_size: int | None) -> Iterator[tuple[Path, _Shard]]:
    """Yield data files with the tensors of each; in .safetensors the widest elements first, which aligns all."""
    if data_file.suffix == safetensors.ENDING:
        tensors = sorted(tensors, key=lambda each: -DTYPES[each[0].data_type or 0].bits)
    shards: list[_Shard] = []
    end = 0
    for tensor, raw in tensors:
        end = -(-end // ALIGNMENT) * ALIGNMENT + len(raw)
        if not shards or (shard_size is not None and end > shard_size):
            shards.append([])
            end = len(raw)
        shards[-1].append((tensor, raw))
    for number, shard in enumerate(shards, 1):
        part = "" if shard_size is None else f"-{number:05}-of-{len(shards):05}"
        yield data_file.with_name(f"{data_file.stem}{part}{data_file.suffix}"), shard


def _ranges(shard: _Shard, start: bytes = b"") -> list[tuple[int, Data]]:
    """Return where the tensors are in a file: without gaps after its start, or aligned if there is none."""
    ranges: list[tuple[int, Data]] = [(0, start)] if start else []
    end = len(start)
    for _, raw in shard:
        offset = end if start else -(-end // ALIGNMENT) * ALIGNMENT
        end = offset + len(raw)
        ranges.append((offset, raw))
    return ranges


@contextmanager
def removed_on_failure(data_file: Path, model_file: Path) -> Iterator[None]:
    """Remove a new data file if saving the model that names it fails."""
    before = _state(model_file)
    try:
        yield
    except BaseException:
        # A save can also fail after the model was replaced; then the model needs the data.
        if _state(model_file) == before:
            with suppress(OSError):
                os.unlink(data_file)
        raise


class NewFile(NamedTuple):
    """A file to write; its path must not exist yet."""

    path: Path
    write: Callable[[Sink], None]


@contextmanager
def files_written(files: Iterable[NewFile], model_file: Path | None = None) -> Iterator[None]:
    """Write files on entry; remove them again if one cannot be written, or the body fails to save the model there."""
    with ExitStack() as stack:
        for path, write in files:
            save_file(path, write, replace=False)
            stack.enter_context(removed_on_failure(path, path if model_file is None else model_file))
        yield


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
    """Copy the external data of a model in one folder to another folder; return the new files.

    Every range is checked first, and nothing is copied if another file is in the way (OutputError). Each copy is all or
    nothing; a file that exists with the same bytes stays. `taken` is the path of the model itself below `destination`;
    see `onnxjson.storage.external.Resolver` for the other options and errors.
    """
    resolver = Resolver(Path(folder), model_file=model_file, trust_links=trust_links, allow_sparse=allow_sparse)
    target_resolver = Resolver(Path(destination), allow_sparse=True)
    owners: dict[str, str] = {}
    for tensor in tensors_of(model):
        if is_external(tensor):
            name = tensor.name or ""
            stored = resolver.resolve(tensor.external_data, needed_bytes(tensor), tensor=name)
            where = f"external data of tensor {visible(name)!r} in {visible(stored.location)!r}"
            owners.setdefault("/".join(location_parts(stored.location, name)), where)
    for location, node in contexts(model):
        where = f"context of node {visible(node.name or '')!r} in {visible(location)!r}"
        owners.setdefault("/".join(location_parts(location, where)), where)
    missing = []
    for location, owner in owners.items():
        target = Path(destination, location)
        if taken is not None and os.path.realpath(target) == os.path.realpath(taken):
            raise OutputError(f"{_shown(target)} would be both the model and its external data; choose another name")
        if not _is_copied(target, location, target_resolver, _whole_file(resolver, location, owner)):
            missing.append((location, owner, target))
    for location, owner, target in missing:
        for parent in reversed(target.relative_to(destination).parents[:-1]):
            make_folder(Path(destination, parent))
        data = _whole_file(resolver, location, owner)
        try:
            save_file(target, writer_of([(0, data)]), replace=False)
        except OutputError:  # another process may have written the same file
            if not _is_copied(target, location, target_resolver, data):
                raise
    return tuple(target for _, _, target in missing)


def _whole_file(resolver: Resolver, location: str, where: str) -> Data:
    return resolver.resolve((StringStringEntry(key="location", value=location),), None, where=where)


def _is_copied(target: Path, location: str, resolver: Resolver, data: Data) -> bool:
    """Whether a file has exactly these bytes; raise OutputError if another file, or a link, is there."""
    try:
        existing = _whole_file(resolver, location, location)
    except MissingInputError:
        return False
    except UntrustedError:
        raise OutputError(
            f"{_shown(target)} is in the way: it is a link, a folder, or a file with several names; "
            "remove it, or write to another folder"
        ) from None
    if existing != data:
        raise OutputError(f"{_shown(target)} already exists with other bytes; remove it, or write to another folder")
    return True


def _has(data_file: Path, ranges: list[tuple[int, Data]]) -> bool:
    """Whether a file holds all these bytes, and no more, as one that a killed command wrote does."""
    status = os.lstat(data_file)
    if not stat.S_ISREG(status.st_mode) or status.st_size != ranges[-1][0] + len(ranges[-1][1]):
        return False
    source = open_source(data_file)
    for offset, data in ranges:
        for piece in pieces(data):
            if source.read_at(offset, len(piece)) != piece:
                return False
            offset += len(piece)
    return True


def _check_data_file(model: Model, data_file: Path) -> bool:
    """Return whether a file of this name exists; raise OutputError if the model cannot have it as its data file."""
    name = visible(data_file.name, None)
    try:
        location_parts(data_file.name, name)
    except UntrustedError as error:
        problem = f"a model cannot name such a data file: {error}"
        raise OutputError(f"{problem}; choose another with --data-file") from None
    if any(os.path.normpath(location) == data_file.name for location in locations(model)):
        raise OutputError(f"the model already has tensors in a file {name}; choose another data file with --data-file")
    return os.path.lexists(data_file)


def _movable(tensor: Tensor) -> Data | None:
    """The bytes of a tensor, if it can be moved to a file and back without loss."""
    raw = tensor.raw_data
    is_elsewhere = tensor.data_location not in _INSIDE or bool(tensor.external_data)
    if raw is None or is_elsewhere or tensor.segment is not None or typed_fields(tensor):
        return None
    return raw if len(raw) == needed_bytes(tensor) else None


def _size(tensor: Tensor) -> int:
    return len(tensor.raw_data or b"") + sum(
        len(getattr(tensor, field)) for field in typed_fields(tensor) if field != "string_data"
    )


def writer_of(ranges: list[tuple[int, Data]]) -> Callable[[Sink], None]:
    """Return a function that writes data at ascending offsets, with zeros between."""

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
