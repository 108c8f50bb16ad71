"""What a session answers: previews, changes, and how a save went."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from onnxjson.edits.applying import Change, Result
from onnxjson.edits.declaration import Edit
from onnxjson.edits.script import Script
from onnxjson.patching import Patch
from onnxjson_tui.history import Step
from onnxjson_tui.opening import Opened

if TYPE_CHECKING:
    from onnxjson.conflicts import Conflict
    from onnxjson.diffing.difference import Diff
    from onnxjson.document import Model
    from onnxjson.rendering.unified import DiffLine


class Preview:
    """What edits would do. Nothing of the session is changed until it is given this to `Session.accept`."""

    def __init__(
        self,
        base: "Model",
        result: Result,
        changes: tuple[Change, ...],
        revision: int,
        title: str,
        path: Path | None = None,
    ) -> None:
        self.base = base
        self.result = result
        self.changes = changes
        self.revision = revision
        """Of the session when it was asked."""
        self.title = title
        self.path = path
        """The file beside which both models find their external data."""

    @property
    def model(self) -> "Model":
        """The model as it would be."""
        return self.result.model

    @cached_property
    def patch(self) -> Patch:
        """What would change."""
        return Patch.between(self.base, self.model)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that it is of; none where a change is not said in edits."""
        return edits_in(self.changes)

    @property
    def matches(self) -> int:
        """How many elements the edits are about."""
        return self.result.matches

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should hear, such as which nodes could not be changed."""
        return tuple([note for outcome in self.result.outcomes for note in outcome.notes])

    def difference(self) -> "Diff":
        """The diff that would be seen, grouped into events."""
        from onnxjson.diffing.difference import diff_models

        return diff_models(self.base, self.model, paths=(self.path, self.path), names=("before", "after"))

    def lines(self, name: str) -> "Iterator[DiffLine]":
        """The diff of the texts of both models, line by line, weights as digests."""
        from onnxjson.rendering.unified import diff_models

        return diff_models(self.base, self.model, name, f"{name} (edited)")


def edits_in(changes: tuple[Change, ...]) -> tuple[Edit, ...]:
    """The edits that changes consist of; none where one of them is a patch, since only all of them say the change."""
    found: list[Edit] = []
    for change in changes:
        if isinstance(change, Edit):
            found.append(change)
        elif isinstance(change, Script):
            found += change.edits
        else:
            return ()
    return tuple(found)


class Changed(NamedTuple):
    """The model became another one."""

    kind: Literal["made", "undone", "redone", "recovered"]
    step: Step
    patch: Patch
    """From the model before to the one that is there now."""
    is_restructured: bool
    """Whether nodes or graphs came, went or moved, so that rows must be made anew."""


class SaveAnswer(NamedTuple):
    """How a save went. Only "saved" means that the file has the model."""

    kind: Literal["saved", "changed-on-disk", "takes-back", "exists", "weights-elsewhere"]
    path: Path
    message: str
    exit_code: int
    """That of the command line: 0, 75 or 73."""
    locations: tuple[str, ...] = ()
    """For "weights-elsewhere" the files with weights that the model needs beside it, as it names them."""


class MergeAnswer(NamedTuple):
    """The steps of a session merged with what another program wrote to the file."""

    preview: Preview
    """What the merge changes of the session's model; to be looked at, then for `Session.accept_merge`."""
    conflicts: "tuple[Conflict, ...]"
    """Slots that both changed; the merged model has the session's value."""
    theirs: Opened
    """The file as it is now."""


class Exported(NamedTuple):
    """The edits of a session as a script."""

    script: Script
    left_out: tuple[str, ...]
    """Steps that cannot be said in edits, and why."""
