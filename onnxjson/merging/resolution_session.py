"""Interactive resolution of the conflicts of one file: show them, choose sides, undo choices, save."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from onnxjson.merging.merge import merge, structural_errors
from onnxjson.merging.resolving import resolve
from onnxjson.merging.storing import save, value_lines
from onnxjson.model.addresses import SIDES, Choice
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.errors import Conflict, ConflictError, DecodeError, Finding, MissingInputError
from onnxjson.storage import files
from onnxjson.storage.identity import Identity, identity

__all__ = ["SIDES", "ConflictSlot", "ResolutionSession", "ShownConflict", "errors_of", "open_session", "recovery_hint"]


class ConflictSlot(NamedTuple):
    """A slot of the model that both sides changed."""

    address: str
    """Address in the model of the file; empty for the whole model."""
    title: str
    """The address, made visible; "the whole model" if it is empty."""
    values: Mapping[Choice, tuple[str, ...] | None]
    """By side: lines of canonical text, made visible, with payloads as SHA-256; None if the side has nothing."""


class ShownConflict(NamedTuple):
    """Slots that are resolved together."""

    id: str
    places: tuple[ConflictSlot, ...]


class ResolutionSession:
    """The conflicts of one file and the choices so far.

    Attributes:
        path: the file to write.
        conflicts: all conflicts in the order of the file; choices do not change them.
        model: the model with the chosen values, and those of ours where nothing is chosen.
        is_under_git: whether ``git mergetool`` is waiting, which restores the file if the session fails.
        exit_code: that of `ConflictError` while the file holds conflicts; 1 if the saved model has errors; else 0.
        errors: the structural errors of a model saved without conflicts.
    """

    def __init__(
        self,
        path: Path,
        model: Model,
        conflicts: Sequence[Conflict],
        expect: Identity | None,
        *,
        is_under_git: bool = False,
        is_stored: bool = True,
    ) -> None:
        """Begin without choices.

        Args:
            path: the file to write.
            model: the model with the values of ours in the slots of the conflicts.
            conflicts: all conflicts.
            expect: identity of the file at `path`; None if there is none.
            is_under_git: whether ``git mergetool`` is waiting.
            is_stored: whether the file holds these conflicts.
        """
        self.path = path
        self.is_under_git = is_under_git
        self._is_stored = is_stored
        self.exit_code = ConflictError.exit_code if conflicts or not is_stored else 0
        self.errors: tuple[Finding, ...] = ()
        self.conflicts = _shown(conflicts)
        self.model = model
        self._left: tuple[Conflict, ...] = tuple(conflicts)
        self._choices: dict[str, Choice] = {}
        self._start = model, self._left
        self._expect = expect

    @property
    def choices(self) -> Mapping[str, Choice]:
        """The choices by id of the conflict, in the order in which they were made."""
        return MappingProxyType(self._choices)

    @property
    def left(self) -> tuple[Conflict, ...]:
        """The conflicts without a choice, with addresses in `model`."""
        return self._left

    @property
    def remaining(self) -> int:
        """Number of conflicts without a choice."""
        return len(self.conflicts) - len(self._choices)

    @property
    def is_changed(self) -> bool:
        """Whether there are unsaved choices."""
        return not self._is_stored

    def choose(self, id: str, choice: Choice) -> None:  # noqa: A002 - as the text calls it
        """Resolve a conflict with the value of one side, even if another side was chosen before.

        Raises:
            SelectorError: no conflict has this id.
            ConflictError: the side cannot be chosen: its name is taken, or the slot was edited since the merge. The
                session is unchanged then.
        """
        if self._choices.get(id) == choice:
            return
        if id in self._choices:
            self._replay({key: kept for key, kept in self._choices.items() if key != id} | {id: choice})
            return
        self.model, self._left = resolve(self.model, self._left, choice, (id,))
        self._choices[id] = choice
        self._is_stored = False

    def choose_all(self, choice: Choice) -> None:
        """Resolve all conflicts without a choice with one side, which is the only way for names that were swapped.

        Raises:
            ConflictError: see `choose`.
        """
        self._replay(self._choices | {each.id: choice for each in self.conflicts if each.id not in self._choices})

    def undo_choice(self, id: str) -> None:  # noqa: A002 - as the text calls it
        """Undo the choice for a conflict, if there is one.

        Raises:
            ConflictError: another choice depends on this one. The session is unchanged then.
        """
        if id in self._choices:
            self._replay({key: kept for key, kept in self._choices.items() if key != id})

    def _replay(self, choices: dict[str, Choice]) -> None:
        model, left = self._start
        for side in SIDES:
            ids = {key for key, choice in choices.items() if choice == side}
            if ids:
                model, left = resolve(model, left, side, ids)
        self.model, self._left, self._choices = model, left, choices
        self._is_stored = False

    def save(self) -> None:
        """Write the file, all or nothing: a text with the remaining conflicts, or the model in the form of its name.

        The file before is kept in the user's state folder (`onnxjson undo-save`). Choices can be changed afterwards.

        Raises:
            ChangedUnderneathError: another program changed the file.
            LimitError, WeightsMissingError, OutputError, AccessDeniedError, FileError, EncodeError: see `storing.save`.
        """
        form = files.format_for(self.path)
        model = self.model
        if form != "json" and not self._left:
            model = files.bind_digests(model, folder=self.path.resolve().parent, weights_from=None)
        save(model, self._left, self.path, form, expect=self._expect, backup=True)
        self._expect = identity(self.path)
        self._is_stored = True
        self.errors = () if self._left else errors_of(self.model)
        self.exit_code = ConflictError.exit_code if self._left else int(bool(self.errors))


def errors_of(model: Model) -> tuple[Finding, ...]:
    """Return the structural errors of a resolved model, since choices may contradict each other.

    A missing opset import is not an error here: the model is still what was chosen.
    """
    return tuple([each for each in structural_errors(model) if each.severity == "error"])


def recovery_hint(path: Path) -> str:
    """Explain what to do about a resolved file that has errors."""
    name = visible(str(path))
    return (
        f"the choices contradict each other, or a side had these errors before: `onnxjson undo-save {name}` restores "
        f"the conflicts, and so does `git checkout -m {name}` during a merge of git"
    )


def open_session(path: Path, sides: tuple[Path, Path, Path] | None = None) -> ResolutionSession:
    """Open the conflicts of a file.

    Args:
        path: the file.
        sides: files of the base, ours and theirs from ``git mergetool``; an empty base means none. They are merged
            again if `path` is missing, is not a model, or holds one side alone.

    Raises:
        OnnxJsonError: a file cannot be read.
    """
    is_under_git = sides is not None
    try:
        loaded = files.load(path, bind=False, conflicted=True)
    except (DecodeError, MissingInputError):
        if sides is None:
            raise
        loaded = None
    if sides is not None and (loaded is None or not loaded.conflicts):
        base, ours, theirs = _side(sides[0], is_base=True), _side(sides[1]), _side(sides[2])
        if ours is None or theirs is None:
            raise DecodeError(f"{'ours' if ours is None else 'theirs'} is an empty file, not a model")
        if loaded is None or loaded.model in (base, ours, theirs):
            merged = merge(base, ours, theirs)
            expect = identity(path) if path.exists() else None
            return ResolutionSession(
                path, merged.model, merged.conflicts, expect, is_under_git=is_under_git, is_stored=False
            )
    assert loaded is not None
    return ResolutionSession(path, loaded.model, loaded.conflicts, loaded.identity, is_under_git=is_under_git)


def _side(path: Path, *, is_base: bool = False) -> Model | None:
    if path.is_file() and not path.stat().st_size:
        return None
    return files.load(path, bind=False, conflicted=is_base).model


def _shown(conflicts: Sequence[Conflict]) -> tuple[ShownConflict, ...]:
    places: dict[str, list[ConflictSlot]] = {}
    for each in conflicts:
        values = {side: value_lines(each, side) for side in SIDES}
        places.setdefault(each.id, []).append(
            ConflictSlot(each.at, visible(each.at, None) or "the whole model", values)
        )
    return tuple(ShownConflict(key, tuple(found)) for key, found in places.items())
