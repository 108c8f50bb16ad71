"""Undo history of a session: the edits and patch of each step, and the current position."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from onnxjson.editing.declaration import Edit
from onnxjson.editing.spelling import spell_line
from onnxjson.model.document import Tensor
from onnxjson.patching import Patch


class Step:
    """A change that is undone as a whole."""

    def __init__(
        self,
        forward: Patch,
        edits: tuple[Edit, ...] = (),
        title: str = "",
        notes: tuple[str, ...] = (),
        files: Mapping[Path, Tensor] | None = None,
    ) -> None:
        self.forward = forward
        """Patch of the change."""
        self.edits = edits
        """Edits of the change; () for a change from elsewhere, such as a pass."""
        self._title = title
        self.notes = notes
        """Notes for the user."""
        self.files: Mapping[Path, Tensor] = files or {}
        """Tensors that are written to .npy files when the model is saved."""
        self.is_merge = False
        """Whether it merged changes that another program saved to the file."""

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
        if self._title:
            return self._title
        commands = self.commands
        return commands[0] if len(commands) == 1 else f"{commands[0]} (and {len(commands) - 1:,} more)"


class History:
    """Steps in order; those after `position` are undone and can be redone."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self.position = 0
        """Number of applied steps."""
        self._saved: int | None = 0

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    @property
    def made(self) -> tuple[Step, ...]:
        """The applied steps."""
        return tuple(self._steps[: self.position])

    @property
    def saved(self) -> int | None:
        """Number of steps in the saved model; None if undo and redo no longer lead there."""
        return self._saved

    @property
    def is_changed(self) -> bool:
        """Whether the model differs from the saved one, according to the steps."""
        return self.position != self._saved

    def add(self, step: Step) -> None:
        """Add a step; undone steps are discarded."""
        if self._saved is not None and self._saved > self.position:
            self._saved = None
        del self._steps[self.position :]
        self._steps.append(step)
        self.position += 1

    def to_undo(self) -> Step | None:
        """Return the step that undo would undo."""
        return self._steps[self.position - 1] if self.position else None

    def to_redo(self) -> Step | None:
        """Return the step that redo would apply."""
        return self._steps[self.position] if self.position < len(self._steps) else None

    def mark_saved(self) -> None:
        """Record that the current model is saved."""
        self._saved = self.position

    def forget_saved(self) -> None:
        """Record that undo and redo do not lead to the saved model."""
        self._saved = None
