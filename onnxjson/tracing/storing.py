"""A trace in a folder, ``onnxjson-trace/1`` (docs/trace.md): trace.json, the first model, a patch for each part.

No payload stands twice: a patch leaves out those of the first model and of the patches before it. The last model is
kept as its hash; the patches lead to it.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pybase64

from onnxjson.canonical.payload_forms import sha256_of
from onnxjson.canonical.strings import is_text
from onnxjson.display import visible
from onnxjson.document import Model, Tensor
from onnxjson.errors import OutputError
from onnxjson.patching.storing import PatchWriter
from onnxjson.payloads import Data, Digest
from onnxjson.saving import make_folder, save_file
from onnxjson.sinks import Sink, system_errors
from onnxjson.tensors import raw_bytes
from onnxjson.tracing.records import Part, Trace
from onnxjson.walking import walk
from onnxjson.wire.writing import write_message

FORMAT: Final = "onnxjson-trace/1"
"""What the key "format" of trace.json says."""

INDEX: Final = "trace.json"
FIRST: Final = "first.onnx"
PATCHES: Final = "patches"
PATCH_FILE: Final = re.compile(r"[0-9]{4,6}\.json")


def write_trace(trace: Trace, folder: Path) -> None:
    """Writes a trace to a folder that is new, is empty, or holds a trace, which it replaces.

    Raises:
        OutputError: the folder holds something else.
        AccessDeniedError, FileError: something cannot be written.
        LimitError: the first model has more bytes than protobuf reads.
    """
    require_room(folder)
    make_folder(folder)
    with system_errors(f"{visible(str(folder), None)} cannot be written"):
        # What is half written is no trace.
        (folder / INDEX).unlink(missing_ok=True)
        if (folder / PATCHES).is_dir():
            shutil.rmtree(folder / PATCHES)
    save_file(folder / FIRST, lambda sink: write_message(trace.first, sink.write), fsync=False)
    make_folder(folder / PATCHES)
    known = set(payloads(trace.first))
    for position, part in enumerate(trace.parts(), 1):
        if part.patch:
            save_file(folder / patch_name(position), _patch_writer(part, known), fsync=False)
    text = json.dumps(tree(trace), indent=1, ensure_ascii=True, allow_nan=False) + "\n"
    save_file(folder / INDEX, lambda sink: sink.write(text.encode()))


def require_room(folder: Path) -> None:
    """Do nothing if a trace can be written to a folder.

    Raises:
        OutputError: it is a file, or holds something else than a trace.
    """
    name = visible(str(folder), None)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise OutputError(f"{name} is no folder; a trace is written to a new one")
    with system_errors(f"{name} cannot be read"):
        for each in folder.iterdir():
            if each.name not in (INDEX, FIRST, PATCHES):
                raise OutputError(f"{name} holds {visible(each.name)}, which is no part of a trace; name a new folder")
        patches = folder / PATCHES
        if patches.is_symlink() or (
            patches.is_dir() and not all(PATCH_FILE.fullmatch(each.name) for each in patches.iterdir())
        ):
            raise OutputError(f"{visible(str(patches), None)} holds something else than patches; name a new folder")


def payloads(model: Model) -> Iterator[str]:
    """The sha256 of every payload of a model."""
    return (sha256_of(data) for data in payload_data(model))


def payload_data(model: Model) -> Iterator[Data]:
    """The bytes of the tensors of a model, as ``raw_data`` holds or would hold them."""
    for tensor in walk(model, Tensor):
        found = raw_bytes(tensor)
        if found is not None and not isinstance(found[0], Digest) and len(found[0]):
            yield found[0]


def patch_name(position: int) -> str:
    """Where the patch of a part stands, counted from 1."""
    return f"{PATCHES}/{position:04d}.json"


def _patch_writer(part: Part, known: set[str]) -> Any:
    def write(sink: Sink) -> None:
        writer = PatchWriter(sink.write, known)
        writer.patch(part.patch)
        known.update(writer.table)

    return write


def tree(trace: Trace) -> dict[str, Any]:
    """What trace.json says."""
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
    """Records, lists and texts as JSON; texts that are not UTF-8 as ``{"base64": "..."}``."""
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
