"""Models in files: what a file holds is decided by its content, what is written by the name or the word for it."""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple

from onnxjson import serde, text_file
from onnxjson import weights as weights_apart
from onnxjson.canonical.payload_forms import Weights, WeightsMode
from onnxjson.canonical.writer import write_text
from onnxjson.checking import Finding
from onnxjson.conflicts import Conflict
from onnxjson.display import visible
from onnxjson.document import Model
from onnxjson.errors import DecodeError, LimitError, OutputError, WeightsMissingError, WireError
from onnxjson.external_files import is_data_of
from onnxjson.identity import Identity, open_source
from onnxjson.payloads import SourceFile
from onnxjson.saving import save_file
from onnxjson.sinks import Sink
from onnxjson.wire.varints import LARGEST_MESSAGE, Buffer
from onnxjson.wire.writing import write_message

Format = Literal["onnx", "json", "protojson"]
"""Serialised protobuf, the text onnxjson/1, protobuf's own JSON."""

_MAPPED_FROM: Final = 32 * 1024 * 1024
"""Bytes from which a binary is looked at through a memory map instead of being read."""

_LFS_POINTER: Final = b"version https://git-lfs"


class Loaded(NamedTuple):
    """A model with what is worth knowing about the file it came from."""

    model: Model
    format: Format
    warnings: tuple[Finding, ...]
    identity: Identity
    """What was opened; give it to `save` as `expect` to be refused when another program has changed the file."""
    conflicts: tuple[Conflict, ...] = ()
    """Of a merge, not settled yet; the model has what ours has."""


def load(
    path: str | Path,
    *,
    drop_orphans: bool = False,
    weights_from: str | Path | Model | None = None,
    bind: bool = True,
    conflicted: bool = False,
) -> Loaded:
    """The model in a file: binary, onnxjson/1 text or proto-JSON, told apart by content.

    Big payloads stay in the file until they are asked for; external data is not opened.

    Args:
        path: the file.
        drop_orphans: leave out metadata whose element is not there any more, instead of refusing the text.
        weights_from: the model, or the file of one, that has the bytes of tensors of which the text has the sha256.
        bind: whether blobs are looked for beside the text; without, they stay digests.
        conflicted: whether conflicts of a merge may stand in the text.

    Raises:
        ConflictError: they may not, and do.
        WeightsMissingError: `weights_from` does not have all the bytes that the text lacks.
        UntrustedError: a blob is no file that a text may name.
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
        DecodeError: it holds no model; `findings` say why and where.
        LimitError: it is too big or nests too deep.
    """
    path = Path(path)
    source = open_source(path)
    identity = Identity(path, source.status)
    name = visible(str(path), None)
    if source.size == 0:
        raise DecodeError(f"{name} is empty")
    head = source.read_at(0, min(source.size, 4096))
    if head.startswith(_LFS_POINTER):
        raise DecodeError(f"{name} is a Git LFS pointer, not the model; fetch it with `git lfs pull`")
    if not text_file.looks_like_text(head):
        try:
            model, warnings = _load_binary(source, name)
            return Loaded(model, "onnx", warnings, identity)
        except DecodeError:
            if not text_file.is_printable(head):
                raise
    read = text_file.read(source, drop_orphans=drop_orphans, conflicted=conflicted)
    model = read.model
    if read.has_digests:
        model = bound(model, folder=_folder_of(path) if bind else None, weights_from=weights_from)
    return Loaded(model, read.format, read.findings, identity, read.conflicts)


def _folder_of(path: Path) -> Path:
    """The folder in which a file really stands: a save follows links, so what stands beside it must too."""
    return Path(os.path.realpath(path)).parent


def bound(model: Model, *, folder: Path | None, weights_from: str | Path | Model | None) -> Model:
    """`model` with the bytes of its digests, as far as blobs in `folder` and `weights_from` have them.

    Raises:
        WeightsMissingError: `weights_from` does not have all of them.
        MissingInputError, UntrustedError: a blob is not there, or is no file that a text may name.
    """
    source = load(weights_from).model if isinstance(weights_from, str | Path) else weights_from
    return weights_apart.bind(model, folder=folder, source=source)


def _load_binary(source: SourceFile, name: str) -> tuple[Model, tuple[Finding, ...]]:
    if source.size > LARGEST_MESSAGE:
        raise LimitError(f"{name} has {source.size:,} bytes; protobuf reads no more than {LARGEST_MESSAGE:,}")
    with _content(source) as data:
        return _parse_binary(data, source, name)


@contextmanager
def _content(source: SourceFile) -> Iterator[Buffer]:
    """The bytes of a file that is not empty, those of a big one through a memory map."""
    if source.size < _MAPPED_FROM:
        yield source.read_at(0, source.size)
        return
    with mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        yield mapped


def _parse_binary(data: Buffer, source: SourceFile, name: str) -> tuple[Model, tuple[Finding, ...]]:
    try:
        twice = serde.repeated_top_level(data)
        if twice is not None:
            raise DecodeError(f"{name}: {twice} stands twice at top level; this looks like two models in one file")
        parsed = serde.parse(data, source)
    except (WireError, IndexError) as error:
        reason = error if isinstance(error, WireError) else f"the bytes end within a field (byte {len(data):,})"
        raise DecodeError(f"{name} is not an ONNX model, or is cut off: {reason}") from error
    except LimitError as error:
        raise LimitError(f"{name}: {error}") from error
    if parsed.model.graph is None:
        raise DecodeError(f"{name} has no graph; it is not a whole ONNX model")
    if not parsed.reserialised:
        return parsed.model, ()
    message = "the file is not as protobuf writes it; its content is exact, but saved again it has other bytes"
    return parsed.model, (Finding(severity="warning", code="not-canonical-bytes", message=message, file=name),)


def format_for(path: str | Path) -> Format:
    """The form that the ending of a name asks for: .onnxjson proto-JSON, any other .json ours, all else binary."""
    name = Path(path).name.lower()
    if name.endswith(".onnxjson"):
        return "protojson"
    return "json" if name.endswith(".json") else "onnx"


def save(
    model: Model,
    path: str | Path,
    format: Format | None = None,  # noqa: A002 - the word everybody knows, as in onnx.save
    *,
    lossy: bool = False,
    weights: WeightsMode = "inline",
    blobs: str | None = None,
    expect: Identity | None = None,
    replace: bool = True,
    backup: bool = False,
) -> None:
    """Writes a model to a file, all or nothing.

    The bytes are read back and their hash compared before they get the name; where they replace a file, they are also
    loaded as a model first.

    Args:
        model: the model.
        path: the file; a link is followed and kept.
        format: what to write; else the ending of `path` decides (`format_for`).
        lossy: write proto-JSON even where it cannot hold all of the model.
        weights: how tensors of more than 64 elements stand in a text: "inline" (base64), "blobs" (each in a file beside
            the text), "digest" (sha256 only), "keep" (as they were read; blobs go along to another folder).
        blobs: the folder of blobs, relative to that of `path`; ``model.blobs`` for ``model.onnx.json`` if it is None.
        expect: what was opened at `path`; refuse if another program has changed it since.
        replace: whether a file that is there may be replaced.
        backup: keep what is replaced in the user's state folder (`onnxjson undo-save`).

    Raises:
        OutputError, AccessDeniedError, FileError: the file cannot be written, or holds weights of `model`; what was
            there is untouched.
        ChangedUnderneathError: `path`, or a file that the model's payloads are in, was changed.
        EncodeError, LimitError: the model has no such form.
        WeightsMissingError: of some tensors only the sha256 is here.
    """
    form = format or format_for(path)
    path = Path(path)
    if is_data_of(path, model, _folder_of(path)):
        name = visible(str(path), None)
        raise OutputError(f"{name} is the file that tensors of the model stand in; save under another name")
    if form == "json" and weights == "blobs":
        blobs = blobs or weights_apart.blobs_folder_for(path)
        weights_apart.write_blobs(model, _folder_of(path), blobs)
    elif form == "json" and weights == "keep":
        blobs = blobs or Weights.of(model, "keep").blobs
        if blobs is not None:
            weights_apart.bring_blobs(model, _folder_of(path), blobs)

    def written(sink: Sink) -> None:
        write(model, sink, form, lossy=lossy, weights=weights, blobs=blobs)

    def read_back(temporary: Path) -> None:
        # That the bytes are those that were written is known by their hash. Before they take the place of a file,
        # perhaps the only copy, they are also read as a user would read them.
        if path.exists():
            verify(temporary, form)
        if form == "json" and weights == "blobs" and blobs is not None:
            weights_apart.require_blobs(model, _folder_of(path), blobs)

    if backup:
        from onnxjson.state import keep_backup

        save_file(path, written, verify=read_back, expect=expect, replace=replace, backup=keep_backup)
    else:
        save_file(path, written, verify=read_back, expect=expect, replace=replace)


def verify(path: Path, form: Format) -> None:
    """Reads what was written as a user would load it.

    Its bytes are known to be those that were written (`saving` compares their hash); what this finds is a model that
    was written and cannot be read again, such as one that nests too deep.

    Raises:
        OnnxJsonError: it cannot be read.
    """
    source = open_source(path)
    if source.size == 0:
        return  # the binary of an empty message
    if form != "onnx":
        text_file.read(source)
        return
    with _content(source) as data:
        serde.parse(data, source)


def write(
    model: Model,
    sink: Sink,
    form: Format,
    *,
    lossy: bool = False,
    weights: WeightsMode = "inline",
    blobs: str | None = None,
) -> None:
    """Streams a model to anything with `write`; see `save` for the errors. Blobs are only named."""
    try:
        if form == "onnx":
            write_message(model, sink.write)
        elif form == "json":
            write_text(model, sink.write, Weights.of(model, weights, blobs))
        else:
            from onnxjson import protojson

            sink.write(protojson.dumps(model, lossy=lossy))
    except WeightsMissingError:
        # The first tensor that was asked for its bytes says so; all of them say more.
        weights_apart.require_whole(model)
        raise


def is_canonical(path: Path, loaded: Loaded) -> bool:
    """Whether a file that holds a text holds the canonical one, byte by byte.

    Args:
        path: the file.
        loaded: what was read from it, with `bind` false.
    """
    with path.open("rb") as file:
        comparison = _Comparison(file)
        write(loaded.model, comparison, "json", weights="keep")
        return comparison.same and not file.read(1)


class _Comparison:
    """A stream that compares what is written with a file, so that no text of a big model stands in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.same = True

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Compare the next bytes."""
        self.same = self.same and self._file.read(len(data)) == data
