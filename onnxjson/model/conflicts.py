"""A conflict of a merge: its record, and the refusal of a file that contains one.

`onnxjson.merging.conflicts` finds conflicts, `onnxjson.merging.conflict_text` says them in words, and
`onnxjson.merging.resolving` resolves them; `onnxjson.codecs.reading.model` reads them from a text.
"""

import shlex
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from onnxjson.model.display import listed, visible
from onnxjson.model.errors import OnnxJsonError

_SHOWN: Final = 3
"""Places that the refusal of a file names."""


class Conflict(msgspec.Struct, frozen=True):
    """A slot that both sides changed differently."""

    id: str
    at: str
    """The address of the slot in the model of the text. If ours has nothing, the address that it would have."""
    base: Any
    """The value in the base: a record or the value of a field; None for nothing."""
    ours: Any
    theirs: Any


class ConflictError(OnnxJsonError):
    """A file contains merge conflicts, so that it is not a model yet."""

    exit_code = 16

    def __init__(self, message: str, conflicts: Sequence[Conflict] = ()) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)


def refuse_conflicts(conflicts: Sequence[Conflict], file: str) -> None:
    """Raise ConflictError if there are conflicts."""
    if not conflicts:
        return
    name = visible(file, None) if file else "the text"
    count = len({conflict.id for conflict in conflicts})
    places = [visible(conflict.at) or "the whole model" for conflict in conflicts]
    shown = listed(places, _SHOWN)
    quoted = f" {visible(shlex.quote(file), None)}" if file else ""
    number = "a conflict" if count == 1 else f"{count:,} conflicts"
    raise ConflictError(
        f"{name} contains {number} of a merge, at {shown}; see them with `onnxjson conflicts{quoted}`, "
        f"resolve them with `onnxjson resolve{quoted} --ours` or --theirs",
        conflicts,
    )
