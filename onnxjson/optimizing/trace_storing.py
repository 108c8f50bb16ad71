"""Traces in folders, ``onnxjson-trace/1`` (docs/trace.md): trace.json, the first model, a patch for each part.

No payload is stored twice: a patch omits those of the first model and of earlier patches. The last model is stored as
its hash only; applying the patches to the first model yields it.
"""

import json
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import pybase64
from msgspec.structs import asdict

from onnxjson.codecs.canonical_values import is_text
from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.codecs.wire_writing import write_message
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, MissingInputError, OutputError
from onnxjson.model.limits import TRACE_BYTES
from onnxjson.model.payloads import Data, Digest
from onnxjson.model.tensors import raw_bytes
from onnxjson.model.walking import tensors_of
from onnxjson.optimizing.trace_records import Part, Size, Step, Trace
from onnxjson.patching.patch import Patch
from onnxjson.patching.patch_text import PatchWriter, load_patch
from onnxjson.storage import files
from onnxjson.storage.identity import open_source
from onnxjson.storage.saving import Sink, make_folder, save_file, system_errors

FORMAT: Final = "onnxjson-trace/1"

INDEX: Final = "trace.json"
FIRST: Final = "first.onnx"
PATCHES: Final = "patches"
PATCH_FILE: Final = re.compile(r"[0-9]{4,6}\.json")


def write_trace(trace: Trace, folder: str | Path) -> None:
    """Write a trace to a folder that is new, empty, or contains a trace, which is replaced.

    Raises:
        OutputError: the folder contains something else.
        AccessDeniedError, FileError: something cannot be written.
        LimitError: the first model is larger than protobuf can read.
    """
    folder = Path(folder)
    require_room(folder)
    make_folder(folder)
    with system_errors(f"{visible(str(folder), None)} cannot be written"):
        # Without trace.json, a half-written folder is not read as a trace.
        (folder / INDEX).unlink(missing_ok=True)
        if (folder / PATCHES).is_dir():
            shutil.rmtree(folder / PATCHES)
    save_file(folder / FIRST, lambda sink: write_message(trace.first, sink.write), fsync=False)
    make_folder(folder / PATCHES)
    known = set(map(sha256_of, payload_data(trace.first)))
    for position, part in enumerate(trace.parts(), 1):
        if part.patch:
            save_file(folder / patch_name(position), partial(_write_patch, part.patch, known), fsync=False)
    text = json.dumps(tree(trace), indent=1, ensure_ascii=True, allow_nan=False) + "\n"
    save_file(folder / INDEX, lambda sink: sink.write(text.encode()))


def require_room(folder: Path) -> None:
    """Raise unless a trace can be written to a folder.

    Raises:
        OutputError: it is a file, or contains files that are not part of a trace.
    """
    name = visible(str(folder), None)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise OutputError(f"{name} is not a folder; name a new folder for the trace")
    with system_errors(f"{name} cannot be read"):
        for path in folder.iterdir():
            if path.name not in (INDEX, FIRST, PATCHES):
                raise OutputError(
                    f"{name} contains {visible(path.name)}, which is not part of a trace; name a new folder"
                )
        patches = folder / PATCHES
        held = [each.name for each in patches.iterdir()] if patches.is_dir() else []
        if patches.is_symlink() or not all(map(PATCH_FILE.fullmatch, held)):
            raise OutputError(f"{visible(str(patches), None)} contains files other than patches; name a new folder")


def payload_data(model: Model) -> Iterator[Data]:
    """Yield the bytes of the tensors of a model, as ``raw_data`` has or would have them."""
    for tensor in tensors_of(model):
        found = raw_bytes(tensor)
        if found is not None and not isinstance(found[0], Digest) and len(found[0]):
            yield found[0]


def patch_name(position: int) -> str:
    """Return the path of the patch of a part inside the folder; parts are counted from 1."""
    return f"{PATCHES}/{position:04d}.json"


def _write_patch(patch: Patch, known: set[str], sink: Sink) -> None:
    writer = PatchWriter(sink.write, known)
    writer.patch(patch)
    known.update(writer.table)


def tree(trace: Trace) -> dict[str, Any]:
    """Return the contents of trace.json."""
    steps = []
    position = 0
    for step in trace.steps:
        parts = []
        for part in step.parts:
            position += 1
            plain = _plain(msgspec.structs.replace(part, patch=None))
            plain["patch"] = patch_name(position) if part.patch else None
            parts.append(plain)
        steps.append(_plain(msgspec.structs.replace(step, parts=())) | {"parts": parts})
    return {
        "format": FORMAT,
        "source": _plain(trace.source),
        "first": {"sha256": trace.first_sha256, "size": _plain(trace.before)},
        "last": {"sha256": trace.last_sha256},
        "steps": steps,
    }


def _plain(value: object) -> Any:
    """Convert records, lists and texts to JSON; texts that are not UTF-8 become ``{"base64": "..."}``."""
    match value:
        case str():
            if is_text(value):
                return value
            return {"base64": pybase64.b64encode(value.encode("utf-8", "surrogateescape")).decode()}
        case msgspec.Struct():
            return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        case tuple():
            return [_plain(each) for each in value]
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case _:
            return value


class _StoredModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sha256: str
    size: Size | None = None


def _stored(record: type[msgspec.Struct], **types: Any) -> Any:
    """Return the type of a record in trace.json: its fields, of which some have other types, and no others."""
    fields = {field.name: field.type for field in msgspec.structs.fields(record)} | types
    return msgspec.defstruct(f"Stored{record.__name__}", list(fields.items()), frozen=True, forbid_unknown_fields=True)


_StoredPart: Any = _stored(Part, patch=str | None)
_StoredStep: Any = _stored(Step, parts=tuple[_StoredPart, ...])


class _StoredTrace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: Literal["onnxjson-trace/1"]
    source: str
    first: _StoredModel
    last: _StoredModel
    steps: tuple[_StoredStep, ...]


def load_trace(folder: str | Path) -> Trace:
    """Load the trace in a folder; large payloads stay in its files until they are needed.

    Raises:
        MissingInputError: the folder does not exist or contains no trace.
        AccessDeniedError, FileError: a file cannot be read.
        DecodeError: a file is not part of a valid trace, or was changed.
    """
    folder = Path(folder)
    stored = _read(folder)
    first = files.load(folder / FIRST).model
    known: dict[str, Data] = {sha256_of(data): data for data in payload_data(first)}
    steps = []
    position = 0
    for step in stored.steps:
        parts = []
        for part in step.parts:
            position += 1
            parts.append(_load_part(folder, part, position, known))
        steps.append(Step(**(asdict(step) | {"parts": tuple(parts)})))
    assert stored.first.size is not None
    return Trace(
        source=stored.source,
        first=first,
        before=stored.first.size,
        steps=tuple(steps),
        first_sha256=stored.first.sha256,
        last_sha256=stored.last.sha256,
    )


def _read(folder: Path) -> _StoredTrace:
    place = folder / INDEX
    name = visible(str(place), None)
    if not place.exists():
        what = "the folder does not exist" if not folder.exists() else f"it has no {INDEX}"
        hint = "`onnxjson optimize MODEL -p PASS --trace DIR` creates one"
        raise MissingInputError(f"{visible(str(folder), None)} contains no trace: {what}; {hint}")
    source = open_source(place)
    if source.size > TRACE_BYTES:
        raise DecodeError(f"{name} has {source.size:,} bytes; a trace has at most {TRACE_BYTES:,}")
    try:
        tree = json.loads(source.read_at(0, source.size))
        if isinstance(tree, dict) and tree.get("format") != FORMAT:
            raise DecodeError(
                f'{name} does not have "format": "{FORMAT}"; it is not a trace, or is from a newer onnxjson'
            )
        stored = msgspec.convert(_texts(tree), _StoredTrace)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{name} is not a valid trace: {visible(str(error), 400)}") from error
    if stored.first.size is None:
        raise DecodeError(f"{name} is not a valid trace: the size of the first model is missing")
    return stored


def _texts(tree: Any) -> Any:
    if isinstance(tree, dict):
        if tree.keys() == {"base64"} and isinstance(tree["base64"], str):
            return pybase64.b64decode(tree["base64"], validate=True).decode("utf-8", "surrogateescape")
        return {key: _texts(each) for key, each in tree.items()}
    if isinstance(tree, list):
        return [_texts(each) for each in tree]
    return tree


def _load_part(folder: Path, part: Any, position: int, known: dict[str, Data]) -> Part:
    patch = Patch()
    if part.patch is not None:
        if part.patch != patch_name(position):
            raise DecodeError(
                f"{visible(str(folder / INDEX), None)}: patch {position} must be in {patch_name(position)}"
            )
        patch = load_patch(Patch, folder / patch_name(position), known)
    return Part(**(asdict(part) | {"patch": patch}))
