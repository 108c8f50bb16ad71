"""Steps of a session, its undo history, and the results of its operations: previews, saves, merges, exports."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from onnxjson.editing.applying import Change, Result
from onnxjson.editing.declaration import Edit
from onnxjson.editing.script import Script
from onnxjson.editing.spelling import spell_line
from onnxjson.model.document import Tensor
from onnxjson.patching.patch import Patch
from onnxjson_tui.session.opening import Opened

if TYPE_CHECKING:
    from onnxjson.diffing.difference import Diff
    from onnxjson.model.document import Model
    from onnxjson.model.errors import Conflict


@dataclass(eq=False)
class Step:
    """A change that is undone as a whole."""

    forward: Patch  # patch of the change
    edits: tuple[Edit, ...] = ()  # edits of the change; () for a change from elsewhere, such as a pass
    given_title: str = ""
    notes: tuple[str, ...] = ()  # notes for the user
    files: Mapping[Path, Tensor] = field(default_factory=dict)
    """Tensors that are written to .npy files when the model is saved."""
    before: "tuple[Model, Patch] | None" = None  # the saved model at that time, and the patch to it from the one before
    is_merge: bool = False  # whether it merged changes that another program saved to the file

    @cached_property
    def backward(self) -> Patch:
        """Patch that undoes the change."""
        return self.forward.invert()

    @property
    def commands(self) -> tuple[str, ...]:
        """Commands that repeat the change, one line for each edit; () without edits."""
        return tuple([spell_line(edit) for edit in self.edits])

    @property
    def title(self) -> str:
        """Title in the list of steps."""
        if self.given_title:
            return self.given_title
        commands = self.commands
        return commands[0] if len(commands) == 1 else f"{commands[0]} (and {len(commands) - 1:,} more)"


class History:
    """Steps in order; those after `position` are undone and can be redone."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self.position = 0  # number of applied steps
        self.saved: int | None = 0  # number of steps in the saved model; None if undo and redo no longer lead there

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    @property
    def made(self) -> tuple[Step, ...]:
        """The applied steps."""
        return tuple(self._steps[: self.position])

    @property
    def is_changed(self) -> bool:
        """Whether the model differs from the saved one, according to the steps."""
        return self.position != self.saved

    def add(self, step: Step) -> None:
        """Add a step; undone steps are discarded."""
        if self.saved is not None and self.saved > self.position:
            self.saved = None
        del self._steps[self.position :]
        self._steps.append(step)
        self.position += 1

    def to_undo(self) -> Step | None:
        """Return the step that undo would undo."""
        return self._steps[self.position - 1] if self.position else None

    def to_redo(self) -> Step | None:
        """Return the step that redo would apply."""
        return self._steps[self.position] if self.position < len(self._steps) else None


@dataclass(eq=False)
class Preview:
    """Preview of edits. The session does not change until `Session.accept` is called with it."""

    base: "Model"
    result: Result
    changes: tuple[Change, ...]
    revision: int  # revision of the session at the time of the preview
    title: str
    saved: Patch  # from the model before to the saved one
    path: Path | None = None  # the file relative to which both models find their external data

    @property
    def model(self) -> "Model":
        """The model after the change."""
        return self.result.model

    @cached_property
    def patch(self) -> Patch:
        """The patch from the model before to the model after."""
        return Patch.between(self.base, self.model)

    @cached_property
    def to_saved(self) -> Patch:
        """The patch from the model after to the saved one."""
        return self.patch.invert().then(self.saved)

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
    patch: Patch  # from the previous model to the current one
    is_restructured: bool  # whether nodes or graphs were added, removed or moved, so that rows must be rebuilt


class SaveAnswer(NamedTuple):
    """Result of a save. Only "saved" means that the file contains the model."""

    kind: Literal["saved", "changed-on-disk", "reverts-others", "exists", "weights-elsewhere"]
    path: Path
    message: str
    exit_code: int  # exit code of the command line for this result: 0, 75 or 73
    locations: tuple[str, ...] = ()
    """The files with weights, as the model refers to them; only if `kind` is "weights-elsewhere"."""


class MergeAnswer(NamedTuple):
    """Merge of the steps of a session with the file that another program wrote."""

    preview: Preview  # changes of the session's model by the merge; for review, then for `Session.accept_merge`
    conflicts: "tuple[Conflict, ...]"  # slots that both sides changed; the merged model has the session's value
    theirs: Opened  # the current file


class Exported(NamedTuple):
    """The edits of a session as a script."""

    script: Script
    left_out: tuple[str, ...]  # steps that cannot be expressed as edits, and why
