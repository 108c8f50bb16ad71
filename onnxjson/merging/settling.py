"""Conflicts of a merge as a person settles them: shown, a side chosen for each, a choice taken back, saved."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from onnxjson import files
from onnxjson.checking import Finding
from onnxjson.conflicts import SIDES, Choice, Conflict
from onnxjson.display import visible
from onnxjson.document import Model
from onnxjson.errors import ConflictError, DecodeError, MissingInputError
from onnxjson.identity import Identity, identity
from onnxjson.merging.choosing import mistakes
from onnxjson.merging.merge import merge
from onnxjson.merging.resolving import resolve
from onnxjson.merging.storing import save, value_lines

__all__ = ["SIDES", "Place", "Settling", "Shown", "errors_of", "open_settling", "way_back"]


class Place(NamedTuple):
    """A slot of the model that both sides changed."""

    address: str
    """In the model of the file; empty for the whole model."""
    title: str
    """The address, made visible; of the whole model, words."""
    values: Mapping[Choice, tuple[str, ...] | None]
    """What each side has: its canonical text by lines, made visible, payloads as SHA-256; None for nothing."""


class Shown(NamedTuple):
    """What is decided at once."""

    id: str
    places: tuple[Place, ...]


class Settling:
    """The conflicts of one file, and what was chosen so far.

    Attributes:
        path: the file that is written.
        conflicts: what there is to decide, in the order of the file; it stays while one chooses.
        model: with what was chosen; with what ours has where nothing was.
        is_under_git: whether ``git mergetool`` waits, which puts the file back as it was where this fails.
        exit_code: that of `ConflictError` where conflicts stand in the file; 1 where what was saved without conflicts
            has errors; else 0.
        errors: what is wrong with the structure of what was saved without conflicts; empty before.
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
        """Begins with no choice made.

        Args:
            path: the file.
            model: with what ours has in the slots of the conflicts.
            conflicts: all of them.
            expect: what was found at `path`; None where nothing was.
            is_under_git: whether ``git mergetool`` waits.
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
        """What was chosen, by the id of the conflict, in the order of choosing."""
        return MappingProxyType(self._choices)

    @property
    def left(self) -> tuple[Conflict, ...]:
        """The conflicts without a choice, as they stand in `model`."""
        return self._left

    @property
    def remaining(self) -> int:
        """How many conflicts have no choice."""
        return len(self.conflicts) - len(self._choices)

    @property
    def is_changed(self) -> bool:
        """Whether there is something to save."""
        return not self._is_stored

    def choose(self, id: str, choice: Choice) -> None:  # noqa: A002 - as the text calls it
        """Settle a conflict by what one side has, also where another side was chosen before.

        Raises:
            SelectorError: no conflict has this id.
            ConflictError: the side cannot be taken: its name is that of something else, or the slot was edited since
                the merge. Nothing changes then.
        """
        if self._choices.get(id) == choice:
            return
        if id in self._choices:
            self._choose_anew({key: kept for key, kept in self._choices.items() if key != id} | {id: choice})
            return
        self.model, self._left = resolve(self.model, self._left, choice, (id,))
        self._choices[id] = choice
        self._is_stored = False

    def choose_all(self, choice: Choice) -> None:
        """Settle all conflicts that have no choice by one side; names that were swapped go only so.

        Raises:
            ConflictError: see `choose`.
        """
        self._choose_anew(self._choices | {each.id: choice for each in self.conflicts if each.id not in self._choices})

    def take_back(self, id: str) -> None:  # noqa: A002 - as the text calls it
        """Let a conflict stand again; nothing happens where it has no choice.

        Raises:
            ConflictError: another choice goes only with this one. Nothing changes then.
        """
        if id in self._choices:
            self._choose_anew({key: kept for key, kept in self._choices.items() if key != id})

    def _choose_anew(self, choices: dict[str, Choice]) -> None:
        model, left = self._start
        for side in SIDES:
            ids = {key for key, choice in choices.items() if choice == side}
            if ids:
                model, left = resolve(model, left, side, ids)
        self.model, self._left, self._choices = model, left, choices
        self._is_stored = False

    def save(self) -> None:
        """Write the file, all or nothing: a text with the conflicts that are left, or the model as its name says.

        What was there goes to the user's state folder (`onnxjson undo-save`). Choices can be changed afterwards.

        Raises:
            ChangedUnderneathError: another program changed the file.
            LimitError, WeightsMissingError, OutputError, AccessDeniedError, FileError, EncodeError: see `storing.save`.
        """
        form = files.format_for(self.path)
        model = self.model
        if form != "json" and not self._left:
            model = files.bound(model, folder=self.path.resolve().parent, weights_from=None)
        save(model, self._left, self.path, form, expect=self._expect, backup=True)
        self._expect = identity(self.path)
        self._is_stored = True
        self.errors = () if self._left else errors_of(self.model)
        self.exit_code = ConflictError.exit_code if self._left else int(bool(self.errors))


def errors_of(model: Model) -> tuple[Finding, ...]:
    """What is wrong with the structure of a model whose conflicts were settled; choices may not go together.

    Of the `mistakes` that no merge may bring, a missing opset is a warning: with it the model still is what was chosen.
    """
    return tuple([each for each in mistakes(model) if each.severity == "error"])


def way_back(path: Path) -> str:
    """What a person does about a file that was written and has errors, in words."""
    name = visible(str(path))
    return (
        f"choices that were made do not go together, or a side had them before: `onnxjson undo-save {name}` brings the "
        f"conflicts back, and so does `git checkout -m {name}` while git merges"
    )


def open_settling(path: Path, sides: tuple[Path, Path, Path] | None = None) -> Settling:
    """The conflicts of a file, to be settled.

    Args:
        path: the file.
        sides: files of the base, ours and theirs, as ``git mergetool`` makes them; an empty base is none. Where `path`
            is missing, is no model, or holds one of the sides alone, they are merged anew.

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
            raise DecodeError(f"{'ours' if ours is None else 'theirs'} is an empty file, which is no model")
        if loaded is None or loaded.model in (base, ours, theirs):
            merged = merge(base, ours, theirs)
            expect = identity(path) if path.exists() else None
            return Settling(path, merged.model, merged.conflicts, expect, is_under_git=is_under_git, is_stored=False)
    assert loaded is not None
    return Settling(path, loaded.model, loaded.conflicts, loaded.identity, is_under_git=is_under_git)


def _side(path: Path, *, is_base: bool = False) -> Model | None:
    if path.is_file() and not path.stat().st_size:
        return None
    return files.load(path, bind=False, conflicted=is_base).model


def _shown(conflicts: Sequence[Conflict]) -> tuple[Shown, ...]:
    places: dict[str, list[Place]] = {}
    for each in conflicts:
        values = {side: value_lines(each, side) for side in SIDES}
        places.setdefault(each.id, []).append(Place(each.at, visible(each.at, None) or "the whole model", values))
    return tuple(Shown(key, tuple(found)) for key, found in places.items())
