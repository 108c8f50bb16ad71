"""A trace from its folder."""

import json
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import pybase64

from onnxjson import files
from onnxjson.canonical.payload_forms import sha256_of
from onnxjson.diffing.events import Event
from onnxjson.display import visible
from onnxjson.errors import DecodeError, MissingInputError
from onnxjson.identity import open_source
from onnxjson.patching import Patch
from onnxjson.patching.loading import load_patch
from onnxjson.payloads import Data
from onnxjson.tracing.records import Part, Size, Step, Trace
from onnxjson.tracing.storing import FIRST, FORMAT, INDEX, patch_name, payload_data

_LARGEST: Final = 512 << 20
"""Bytes of trace.json."""


class _Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sha256: str
    size: Size | None = None


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    after: Size
    events: tuple[Event, ...]
    incomplete: tuple[str, ...]
    patch: str | None


class _Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    packages: dict[str, str]
    seconds: float
    rounds: int
    notes: tuple[str, ...]
    failure: str | None
    parts: tuple[_Part, ...]


class _Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: Literal["onnxjson-trace/1"]
    source: str
    first: _Model
    last: _Model
    steps: tuple[_Step, ...]


def load_trace(folder: str | Path) -> Trace:
    """The trace in a folder; big payloads stay in its files until they are asked for.

    Raises:
        MissingInputError: there is no trace.
        AccessDeniedError, FileError: a file cannot be read.
        DecodeError: what is there is no trace, or was changed.
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
            parts.append(_part(folder, part, position, known))
        steps.append(
            Step(
                name=step.name,
                packages=step.packages,
                seconds=step.seconds,
                rounds=step.rounds,
                notes=step.notes,
                failure=step.failure,
                parts=tuple(parts),
            )
        )
    assert stored.first.size is not None
    return Trace(
        source=stored.source,
        first=first,
        before=stored.first.size,
        steps=tuple(steps),
        first_sha256=stored.first.sha256,
        last_sha256=stored.last.sha256,
    )


def _read(folder: Path) -> _Stored:
    place = folder / INDEX
    name = visible(str(place), None)
    if not place.exists():
        what = "there is no such folder" if not folder.exists() else f"it has no {INDEX}"
        hint = "`onnxjson optimize MODEL -p PASS --trace DIR` makes one"
        raise MissingInputError(f"{visible(str(folder), None)} holds no trace: {what}; {hint}")
    source = open_source(place)
    if source.size > _LARGEST:
        raise DecodeError(f"{name} has {source.size:,} bytes; a trace has at most {_LARGEST:,}")
    try:
        tree = json.loads(source.read_at(0, source.size))
        if isinstance(tree, dict) and tree.get("format") != FORMAT:
            raise DecodeError(f'{name} does not say "format": "{FORMAT}"; it is no trace, or one of a newer onnxjson')
        stored = msgspec.convert(_texts(tree), _Stored)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{name} is no trace: {visible(str(error), 400)}") from error
    if stored.first.size is None:
        raise DecodeError(f"{name} is no trace: it does not say the size of the first model")
    return stored


def _texts(tree: Any) -> Any:
    """The tree with texts for ``{"base64": "..."}``."""
    if isinstance(tree, dict):
        if tree.keys() == {"base64"} and isinstance(tree["base64"], str):
            return pybase64.b64decode(tree["base64"], validate=True).decode("utf-8", "surrogateescape")
        return {key: _texts(each) for key, each in tree.items()}
    if isinstance(tree, list):
        return [_texts(each) for each in tree]
    return tree


def _part(folder: Path, part: _Part, position: int, known: dict[str, Data]) -> Part:
    patch = Patch()
    if part.patch is not None:
        if part.patch != patch_name(position):
            raise DecodeError(
                f"{visible(str(folder / INDEX), None)}: patch {position} stands in {patch_name(position)}"
            )
        patch = load_patch(folder / patch_name(position), known)
    return Part(name=part.name, after=part.after, events=part.events, incomplete=part.incomplete, patch=patch)
