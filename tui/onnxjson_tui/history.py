"""The steps of a session: what each was asked as, what it changed, and where in them the model is now."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from onnxjson.document import Tensor
from onnxjson.edits.declaration import Edit
from onnxjson.edits.spelling import spell_line
from onnxjson.patching import Patch


class Step:
    """One thing that undo takes back as a whole."""

    def __init__(
        self,
        forward: Patch,
        edits: tuple[Edit, ...] = (),
        title: str = "",
        notes: tuple[str, ...] = (),
        files: Mapping[Path, Tensor] | None = None,
    ) -> None:
        self.forward = forward
        """What it changed."""
        self.edits = edits
        """What it was asked as; none where it is a change that was made elsewhere, such as by a pass."""
        self._title = title
        self.notes = notes
        """What a person should hear of it."""
        self.files: Mapping[Path, Tensor] = files or {}
        """Values that go into .npy files when the model is saved."""
        self.is_merge = False
        """Whether it brought what another program had saved to the file."""

    @cached_property
    def backward(self) -> Patch:
        """What takes it back."""
        return self.forward.invert()

    @property
    def commands(self) -> tuple[str, ...]:
        """The words that repeat it, a line for each edit, spelled as on the command line; none where there are none."""
        return tuple([spell_line(edit) for edit in self.edits])

    @property
    def title(self) -> str:
        """What it is called in a list."""
        if self._title:
            return self._title
        commands = self.commands
        return commands[0] if len(commands) == 1 else f"{commands[0]} (and {len(commands) - 1:,} more)"


class History:
    """Steps in their order; those behind `position` are undone and can be redone."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self.position = 0
        """How many steps are made."""
        self._saved: int | None = 0

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    @property
    def made(self) -> tuple[Step, ...]:
        """The steps that the model has."""
        return tuple(self._steps[: self.position])

    @property
    def saved(self) -> int | None:
        """How many steps the saved model has; None where undo and redo no longer lead there."""
        return self._saved

    @property
    def is_changed(self) -> bool:
        """Whether the model is another than the saved one, as far as steps say."""
        return self.position != self._saved

    def add(self, step: Step) -> None:
        """A new step; what was undone is forgotten."""
        if self._saved is not None and self._saved > self.position:
            self._saved = None
        del self._steps[self.position :]
        self._steps.append(step)
        self.position += 1

    def to_undo(self) -> Step | None:
        """The step that undo takes back."""
        return self._steps[self.position - 1] if self.position else None

    def to_redo(self) -> Step | None:
        """The step that redo makes again."""
        return self._steps[self.position] if self.position < len(self._steps) else None

    def mark_saved(self) -> None:
        """The model as it is now is the saved one."""
        self._saved = self.position

    def forget_saved(self) -> None:
        """No number of steps leads to what is saved."""
        self._saved = None
