"""Undo history of a session: the edits and patch of each step, and the current position."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from onnxjson.editing.declaration import Edit
from onnxjson.editing.spelling import spell_line
from onnxjson.model.document import Tensor
from onnxjson.patching import Patch


@dataclass(eq=False)
class Step:
    """A change that is undone as a whole."""

    forward: Patch
    """Patch of the change."""
    edits: tuple[Edit, ...] = ()
    """Edits of the change; () for a change from elsewhere, such as a pass."""
    given_title: str = ""
    notes: tuple[str, ...] = ()
    """Notes for the user."""
    files: Mapping[Path, Tensor] = field(default_factory=dict)
    """Tensors that are written to .npy files when the model is saved."""
    is_merge: bool = False
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
        if self.given_title:
            return self.given_title
        commands = self.commands
        return commands[0] if len(commands) == 1 else f"{commands[0]} (and {len(commands) - 1:,} more)"


class History:
    """Steps in order; those after `position` are undone and can be redone."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self.position = 0
        """Number of applied steps."""
        self.saved: int | None = 0
        """Number of steps in the saved model; None if undo and redo no longer lead there."""

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
