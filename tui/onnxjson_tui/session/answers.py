"""Results of session operations: previews, changes, saves, merges and exports."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from onnxjson.editing.applying import Change, Result
from onnxjson.editing.declaration import Edit
from onnxjson.editing.script import Script
from onnxjson.patching import Patch
from onnxjson_tui.session.history import Step
from onnxjson_tui.session.opening import Opened

if TYPE_CHECKING:
    from onnxjson.diffing.difference import Diff
    from onnxjson.model.document import Model
    from onnxjson.model.errors import Conflict


@dataclass(eq=False)
class Preview:
    """Preview of edits. The session does not change until `Session.accept` is called with it."""

    base: "Model"
    result: Result
    changes: tuple[Change, ...]
    revision: int
    """Revision of the session at the time of the preview."""
    title: str
    path: Path | None = None
    """The file relative to which both models find their external data."""

    @property
    def model(self) -> "Model":
        """The model after the change."""
        return self.result.model

    @cached_property
    def patch(self) -> Patch:
        """The patch from the model before to the model after."""
        return Patch.between(self.base, self.model)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The previewed edits; () if one of the changes is a patch, since the edits would be incomplete."""
        found: list[Edit] = []
        for change in self.changes:
            if isinstance(change, Patch):
                return ()
            found += change.edits if isinstance(change, Script) else [change]
        return tuple(found)

    @property
    def matches(self) -> int:
        """Number of elements that the edits match."""
        return self.result.matches

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user, such as which nodes could not be changed."""
        return tuple([note for outcome in self.result.outcomes for note in outcome.notes])

    def difference(self) -> "Diff":
        """Return the diff of both models, grouped into events."""
        from onnxjson.diffing.difference import diff_models

        return diff_models(self.base, self.model, paths=(self.path, self.path), names=("before", "after"))


class Changed(NamedTuple):
    """A change of the session's model."""

    kind: Literal["made", "undone", "redone", "recovered"]
    step: Step
    patch: Patch
    """From the previous model to the current one."""
    is_restructured: bool
    """Whether nodes or graphs were added, removed or moved, so that rows must be rebuilt."""


class SaveAnswer(NamedTuple):
    """Result of a save. Only "saved" means that the file contains the model."""

    kind: Literal["saved", "changed-on-disk", "reverts-others", "exists", "weights-elsewhere"]
    path: Path
    message: str
    exit_code: int
    """Exit code of the command line for this result: 0, 75 or 73."""
    locations: tuple[str, ...] = ()
    """The files with weights, as the model refers to them; only if `kind` is "weights-elsewhere"."""


class MergeAnswer(NamedTuple):
    """Merge of the steps of a session with the file that another program wrote."""

    preview: Preview
    """Changes of the session's model by the merge; for review, then for `Session.accept_merge`."""
    conflicts: "tuple[Conflict, ...]"
    """Slots that both sides changed; the merged model has the session's value."""
    theirs: Opened
    """The current file."""


class Exported(NamedTuple):
    """The edits of a session as a script."""

    script: Script
    left_out: tuple[str, ...]
    """Steps that cannot be expressed as edits, and why."""


def python_script(edits: Sequence[Edit]) -> str:
    """Return the source of a module with ``rewrite(model)``, for ``onnxjson apply``."""
    steps = "".join([f"        {_call(edit)},\n" for edit in edits])
    listed = f"[\n{steps}    ]" if steps else "[]"
    return (
        '"""Edits of a session of onnxjson tui: onnxjson apply THIS_FILE MODEL -o OUTPUT applies them."""\n\n'
        "from onnxjson import edits\n\n\n"
        "def rewrite(model):\n"
        '    """Return the edits in order; all of them are applied, or none."""\n'
        f"    return {listed}\n"
    )


def _call(edit: Edit) -> str:
    given = [
        f"{field.name}={_value(value)}"
        for field in msgspec.structs.fields(edit)
        if (value := getattr(edit, field.name)) != field.default or field.required
    ]
    return f"edits.{type(edit).__name__}({', '.join(given)})"


def _value(value: Any) -> str:
    """Return a Python literal for exactly this value."""
    match value:
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case Mapping():
            return "{" + ", ".join([f"{_value(key)}: {_value(each)}" for key, each in value.items()]) + "}"
        case tuple():
            return "(" + "".join([f"{_value(each)}, " for each in value]).rstrip(" ") + ")"
        case list():
            return "[" + ", ".join([_value(each) for each in value]) + "]"
    return ascii(value)
