"""Models in files: loading by content, saving by name or by the name of a form."""

import mmap
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple

from onnxjson.codecs import serde, text_file
from onnxjson.codecs.canonical_writer import write_text
from onnxjson.codecs.tensor_text import Weights, WeightsMode
from onnxjson.codecs.wire_format import Buffer
from onnxjson.codecs.wire_writing import write_message
from onnxjson.model import errors
from onnxjson.model.conflicts import Conflict
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.limits import MESSAGE_BYTES
from onnxjson.model.payloads import SourceFile
from onnxjson.model.system import Folder
from onnxjson.storage import safetensors
from onnxjson.storage import weights as weights_apart
from onnxjson.storage.external import Resolver
from onnxjson.storage.identity import Identity, open_source
from onnxjson.storage.named_files import is_data_of
from onnxjson.storage.saving import Sink, save_file

Format = Literal["onnx", "json", "protojson"]
"""The form of a model file: serialised protobuf, the text onnxjson/1, protobuf's own JSON."""

_MAPPED_FROM: Final = 32 * 1024 * 1024
"""Size in bytes from which a binary is mapped into memory instead of being read."""

_LFS_POINTER: Final = b"version https://git-lfs"

ENDINGS: Final[dict[Format, str]] = {"onnx": ".onnx", "json": ".onnx.json", "protojson": ".onnxjson"}
"""The ending of a new file by its form."""

KNOWN_ENDINGS: Final = (".onnx.json", ".onnxjson", ".onnx", ".json", ".pb")
"""The endings that `stem_and_ending` splits off, longer ones first."""


class Loaded(NamedTuple):
    """A model, and facts about the file from which it was loaded."""

    model: Model
    format: Format
    warnings: tuple[errors.Finding, ...]
    identity: Identity
    """The opened file; as `expect` of `save` it prevents that a file changed by another program is replaced."""
    conflicts: tuple[Conflict, ...] = ()
    """Unresolved conflicts of a merge; the model has the values of ours."""


def load(
    path: str | Path,
    *,
    drop_orphans: bool = False,
    weights_from: str | Path | Model | None = None,
    bind: bool = True,
    conflicted: bool = False,
) -> Loaded:
    """Load the model in a file: binary, onnxjson/1 text or proto-JSON, recognised by content, or .safetensors.

    Big payloads stay in the file until they are used; external data is not opened. With `drop_orphans`, metadata of
    elements that do not exist is left out; without `bind`, blobs stay digests; with `conflicted`, the text may have
    conflicts of a merge. `weights_from` is a model, or the file of one, that has the bytes of digests.

    Raises:
        ConflictError: the text has conflicts, and `conflicted` is false.
        WeightsMissingError: `weights_from` does not have all the bytes that the text lacks.
        OtherJsonError: it is JSON of another program.
        DecodeError: it is not a model; ``findings`` has all reasons with their positions.
        OnnxJsonError: the file cannot be read, a text must not name the file of a blob, or it is too big or too deep.
    """
    path = Path(path) if isinstance(path, str) else path  # that of a URL shows it
    source = open_source(path)
    identity = Identity(path, source.status)
    name = visible(str(path), None)
    if source.size == 0:
        raise errors.DecodeError(f"{name} is empty")
    head = source.read_at(0, min(source.size, 4096))
    if head.startswith(_LFS_POINTER):
        raise errors.DecodeError(f"{name} is a Git LFS pointer, not the model; fetch it with `git lfs pull`")
    if head.startswith(b"\x93NUMPY"):
        what = f"{name} is an array of NumPy, not a model"
        raise errors.DecodeError(f"{what}; read it with run --input or set-tensor --file")
    if path.suffix == safetensors.ENDING:
        return Loaded(safetensors.read(source, name), "onnx", (), identity)
    if path.name.endswith(safetensors.INDEX_ENDING):
        listed = safetensors.read_index(source, name, Resolver(path.parent, model_file=path).opened)
        return Loaded(listed, "onnx", (), identity)
    if not text_file.looks_like_text(head):
        try:
            model, warnings = _load_binary(source, name)
            return Loaded(model, "onnx", warnings, identity)
        except errors.DecodeError:
            if not text_file.is_printable(head):
                raise
    try:
        read = text_file.read(source, drop_orphans=drop_orphans, conflicted=conflicted)
    except errors.DecodeError as error:
        if text_file.is_other_json(source):
            raise errors.OtherJsonError(f"{name} is JSON of another program, not a model") from error
        raise
    model = read.model
    if read.has_digests:
        model = bind_digests(model, folder=real_folder(path) if bind else None, weights_from=weights_from)
    return Loaded(model, read.format, read.findings, identity, read.conflicts)


def real_folder(path: Path) -> Path:
    """The real folder of a file: a save follows links, so its blobs must follow them too."""
    return Path(os.path.realpath(path)).parent


def bind_digests(model: Model, *, folder: Path | None, weights_from: str | Path | Model | None) -> Model:
    """Bind the digests of a model to their bytes, from blobs in `folder` and from `weights_from`; errors as `bind`."""
    source = load(weights_from).model if isinstance(weights_from, str | Path) else weights_from
    return weights_apart.bind(model, folder=folder, source=source)


def _load_binary(source: SourceFile, name: str) -> tuple[Model, tuple[errors.Finding, ...]]:
    if source.size > MESSAGE_BYTES:
        raise errors.LimitError(
            f"{name} has {source.size:,} bytes; protobuf reads no more than {MESSAGE_BYTES:,}; "
            "keep its weights outside, as `onnxjson convert --externalize` does"
        )
    with _content(source) as data:
        return _parse_binary(data, source, name)


@contextmanager
def _content(source: SourceFile) -> Iterator[Buffer]:
    if source.size < _MAPPED_FROM and source.is_complete:
        yield source.read_at(0, source.size)
        return
    with mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        yield mapped


def _parse_binary(data: Buffer, source: SourceFile, name: str) -> tuple[Model, tuple[errors.Finding, ...]]:
    try:
        twice = serde.repeated_top_level(data)
        if twice is not None:
            raise errors.DecodeError(
                f"{name}: {twice} appears twice at top level; this looks like two models in one file"
            )
        parsed = serde.parse(data, source)
    except (errors.WireError, IndexError) as error:
        reason = error if isinstance(error, errors.WireError) else f"the bytes end within a field (byte {len(data):,})"
        raise errors.DecodeError(f"{name} is not an ONNX model, or is cut off: {reason}") from error
    except errors.LimitError as error:
        raise errors.LimitError(f"{name}: {error}") from error
    if parsed.model.graph is None:
        raise errors.DecodeError(f"{name} has no graph; it is not a complete ONNX model")
    if not parsed.reserialised:
        return parsed.model, ()
    message = "protobuf would write other bytes for this model; its content is exact, but a save changes the bytes"
    return parsed.model, (errors.Finding(severity="warning", code="not-canonical-bytes", message=message, file=name),)


def format_for(path: str | Path) -> Format:
    """Return the form for a file name: .onnxjson proto-JSON, any other .json onnxjson/1, all but .ort binary."""
    name = Path(path).name.lower()
    if name.endswith(".ort"):
        raise errors.OutputError(
            f"{visible(str(path), None)}: .ort is onnxruntime's own format, which is not supported; write a .onnx, and "
            "convert that with: python -m onnxruntime.tools.convert_onnx_models_to_ort MODEL"
        )
    if name.endswith(".onnxjson"):
        return "protojson"
    return "json" if name.endswith(".json") else "onnx"


def stem_and_ending(path: str | Path) -> tuple[str, str]:
    """Split the name of a model file: ``m.onnx.json`` -> ``("m", ".onnx.json")``; the ending is "" if not known."""
    name = Path(path).name
    length = next((len(each) for each in KNOWN_ENDINGS if name.lower().endswith(each) and len(name) > len(each)), 0)
    return name[: len(name) - length], name[len(name) - length :]


def _blobs_folder_for(path: Path) -> str:
    """The folder of blobs of a text that names none: ``model.blobs`` next to ``model.onnx.json``."""
    return re.sub(r"[\\:]", "_", stem_and_ending(path)[0]) + ".blobs"


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
    beneath: Folder | None = None,
) -> None:
    """Save a model to a file, all or nothing.

    The bytes are read back and their hash is compared before the file gets its name; if it replaces another, it is also
    loaded as a model first.

    Args:
        model, path, format, weights, blobs: as for `onnxjson.storage.api.save`; a link at `path` is followed and kept.
        lossy: write proto-JSON even if it cannot represent all of the model.
        expect: the file that was opened at `path`; raise if another program has changed it.
        replace: whether an existing file may be replaced.
        backup: keep the replaced file in the user's state folder (`onnxjson undo-save`).
        beneath: an open folder in which the file must be; see `save_file`.

    Raises:
        OutputError, AccessDeniedError, FileError: the file cannot be written, or has weights of `model`; an existing
            file is unchanged.
        ChangedUnderneathError: `path`, or a file with payloads of the model, was changed.
        EncodeError, LimitError: the form cannot represent the model.
        WeightsMissingError: only the sha256 of some tensors is available.
    """
    form = format or format_for(path)
    path = Path(path)
    if path.suffix == safetensors.ENDING:
        raise errors.OutputError(
            f"{visible(str(path), None)} would not be a model; convert --externalize --data-file FILE.safetensors "
            "writes the tensors of a model to such a file"
        )
    if is_data_of(path, model, real_folder(path)):
        name = visible(str(path), None)
        raise errors.OutputError(f"{name} has tensors of the model; save under another name")

    def written(sink: Sink) -> None:
        write(model, sink, form, lossy=lossy, weights=weights, blobs=blobs)

    def read_back(temporary: Path) -> None:
        # The hash has shown that the bytes are those that were written. Before they replace a file, perhaps the only
        # copy, they are also read as a user would read them.
        if os.path.exists(path):
            verify(temporary, form)
        weights_apart.require_blobs(named, real_folder(path))

    kept: Callable[[Path], object] | None = None
    if backup:
        from onnxjson.storage.backups import keep_backup as kept
    named: list[Path] = []
    with ExitStack() as undo:
        if form == "json" and weights == "blobs":
            blobs = blobs or _blobs_folder_for(path)
            named = weights_apart.write_blobs(model, real_folder(path), blobs, undo)
        elif form == "json" and weights == "keep":
            blobs = blobs or Weights.of(model, "keep").blobs
            if blobs is not None:
                weights_apart.bring_blobs(model, real_folder(path), blobs, undo)
        save_file(path, written, verify=read_back, expect=expect, replace=replace, backup=kept, beneath=beneath)
        undo.pop_all()


def verify(path: Path, form: Format) -> None:
    """Read a written file as a user would load it, to find a model that cannot be read again, such as one too deep."""
    source = open_source(path)
    if source.size == 0:
        return  # the binary of an empty message
    if form != "onnx":
        text_file.require_readable(source)
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
    """Stream a model to a sink; errors as in `save`. Blobs are only named."""
    try:
        if form == "onnx":
            write_message(model, sink.write)
        elif form == "json":
            write_text(model, sink.write, Weights.of(model, weights, blobs))
        else:
            from onnxjson.codecs import protojson

            sink.write(protojson.dumps(model, lossy=lossy))
    except errors.WeightsMissingError:
        # The caught error names one tensor; the new one counts all of them.
        weights_apart.require_whole(model)
        raise


def is_canonical(path: Path, loaded: Loaded) -> bool:
    """Whether the text in a file, loaded with `bind` false, is canonical, byte by byte."""
    with path.open("rb") as file:
        comparison = _Comparison(file)
        write(loaded.model, comparison, "json", weights="keep")
        return comparison.same and not file.read(1)


class _Comparison:
    """A sink that compares the written bytes with a file, so that the text of a big model is not in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.same = True

    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Compare the next bytes."""
        self.same = self.same and self._file.read(len(data)) == data
