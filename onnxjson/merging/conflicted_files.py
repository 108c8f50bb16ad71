"""Files of merge results: a model in the requested form, or a text with conflicts, and their interactive resolution.

A text with conflicts is written under any name, like a source file with conflict markers: no runtime reads it as a
model, and `git add` stores all sides with it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from onnxjson.codecs.canonical_values import INDENTS, string
from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.codecs.tensor_text import Weights
from onnxjson.codecs.text_file import read
from onnxjson.merging.merge import merge, structural_errors
from onnxjson.merging.resolving import resolve
from onnxjson.merging.slots import wrapped
from onnxjson.model import document as d
from onnxjson.model.addresses import SIDES, Choice, Slot, slot_at
from onnxjson.model.conflicts import Conflict, ConflictError
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.errors import DecodeError, Finding, LimitError, MissingInputError
from onnxjson.model.limits import CONFLICT_TEXT_BYTES
from onnxjson.model.payloads import Data
from onnxjson.patching.patch_text import PatchWriter
from onnxjson.storage import files
from onnxjson.storage.files import Format
from onnxjson.storage.identity import Identity, identity, open_source
from onnxjson.storage.saving import Sink, save_file


def save(
    model: d.Model,
    conflicts: Sequence[Conflict],
    path: Path,
    format: Format,  # noqa: A002 - as in files.save
    *,
    expect: Identity | None = None,
    backup: bool = False,
) -> None:
    """Write a merged model to a file, all or nothing: in `format`, or as text if it has conflicts.

    Raises:
        LimitError: the text with conflicts would be longer than `CONFLICT_TEXT_BYTES`.
        OnnxJsonError: see `files.save`.
    """
    if not conflicts:
        weights = "keep" if format == "json" else "inline"
        files.save(model, path, format, weights=weights, expect=expect, backup=backup)  # type: ignore[arg-type]
        return
    keep: Callable[[Path], object] | None = None
    if backup:
        from onnxjson.storage.backups import keep_backup

        keep = keep_backup
    save_file(
        path,
        lambda sink: write_conflicted(model, conflicts, sink),
        verify=lambda written: read(open_source(written), conflicted=True),
        expect=expect,
        backup=keep,
    )


def write_conflicted(model: d.Model, conflicts: Sequence[Conflict], sink: Sink) -> None:
    """Stream the text of a model with conflicts.

    Raises:
        LimitError: it is longer than `CONFLICT_TEXT_BYTES`, or nests too deep.
        WeightsMissingError, ChangedUnderneathError, FileError: payloads cannot be read.
    """
    written = 0

    def write(piece: bytes) -> None:
        nonlocal written
        written += len(piece)
        if written > CONFLICT_TEXT_BYTES:
            raise LimitError(
                f"the text with both sides of the conflicts has more than {CONFLICT_TEXT_BYTES >> 20} MiB; keep the "
                "weights in other files, or choose one side with git checkout --ours or --theirs"
            )
        sink.write(piece)

    ConflictWriter(write, model, conflicts).model(model)


class ConflictWriter(PatchWriter):
    """Writer of one model with conflicts; payloads are inline, as in a text without conflicts."""

    def __init__(self, write: Callable[[bytes], object], model: d.Model, conflicts: Sequence[Conflict]) -> None:
        super().__init__(write)
        self._conflicts = conflicts
        self._weights = _weights(model, conflicts)

    def after_format(self) -> None:
        if self._conflicts:
            self._block(b'"conflicts": [', self._conflicts, self._conflict, b"]")

    def payload(self, data: Data, storage: str | None) -> None:
        TextWriter.payload(self, data, storage)

    def _tensor_data(self, field: Any, data: Data) -> None:
        TextWriter._tensor_data(self, field, data)

    def slot_value(self, slot: Slot, value: Any, weights: Weights) -> None:
        """Write the value of a slot alone, with payloads in a form."""
        self._weights = weights
        self._slot_value(slot, value, 0)
        self.flush()

    def _conflict(self, conflict: Conflict) -> None:
        self.out.append(b'{"id": %b, "at": %b' % (string(conflict.id), string(conflict.at)))
        slot = slot_at(conflict.at)
        for key in ("base", "ours", "theirs"):
            value = getattr(conflict, key)
            if value is not None:
                self.key(b'"%b": ' % key.encode(), INDENTS[3])
                self._slot_value(slot, value, 3)
        self.out.append(b"}")

    def _slot_value(self, slot: Slot, value: Any, indent: int) -> None:
        field = slot.field
        if isinstance(value, d.Model):
            self.exact(value, indent)
        elif isinstance(value, d.Record):
            self._record(value, indent)
        elif slot.member is not None:
            self.out.append(string(value))
        elif field is not None and field.message is not None:
            self.items(value, self._record, indent)
        else:
            self._set_value(field, value, indent)


def value_lines(conflict: Conflict, side: str) -> list[str] | None:
    """Return the value of a side as lines of canonical text, with the SHA-256 of payloads; None if it has no value."""
    value = getattr(conflict, side)
    if value is None:
        return None
    if isinstance(value, d.Model):
        nodes = 0 if value.graph is None else len(value.graph.node)
        return [f"a model of {nodes:,} nodes"]
    parts: list[bytes] = []
    writer = ConflictWriter(parts.append, d.Model(), ())
    writer.slot_value(slot_at(conflict.at), value, Weights("digest"))
    return b"".join(parts).decode("utf-8").split("\n")


def value_text(conflict: Conflict, side: str) -> str | None:
    """Return the value of a side as one line; see `value_lines`."""
    lines = value_lines(conflict, side)
    return None if lines is None else " ".join([line.lstrip(" ") for line in lines])


def _weights(model: d.Model, conflicts: Sequence[Conflict]) -> Weights:
    """Form of payloads: digests and blobs that were read are kept, in the model and in the conflicts."""
    found = [Weights.of(each, "keep") for each in (model, *_models(conflicts))]
    folders = [each.blobs for each in found if each.blobs is not None]
    return Weights("keep", any(each.has_digests for each in found), folders[0] if folders else None)


def _models(conflicts: Sequence[Conflict]) -> Iterator[d.Model]:
    """Yield the values of conflicts, each wrapped in a model."""
    for conflict in conflicts:
        slot = slot_at(conflict.at)
        for value in (conflict.base, conflict.ours, conflict.theirs):
            for member in value if isinstance(value, tuple) else (value,):
                if isinstance(member, d.Model):
                    yield member
                elif (wrapper := wrapped(member, slot)) is not None:
                    yield wrapper[0]


class ConflictSlot(NamedTuple):
    """A slot of the model that both sides changed."""

    address: str
    """Address in the model of the file; empty for the whole model."""
    title: str
    """The address, made visible; "the whole model" if it is empty."""
    values: Mapping[Choice, tuple[str, ...] | None]
    """By side: lines of canonical text, made visible, with payloads as SHA-256; None if the side has no value."""


class ShownConflict(NamedTuple):
    """Slots that are resolved together."""

    id: str
    places: tuple[ConflictSlot, ...]


class ResolutionSession:
    """The conflicts of one file and the choices so far.

    Attributes:
        path: the file to write.
        conflicts: all conflicts in the order of the file; choices do not change them.
        model: the model with the chosen values, else those of ours.
        choices: by id of the conflict, in the order in which they were made.
        left: the conflicts without a choice, with addresses in `model`.
        is_changed: whether there are unsaved choices.
        is_under_git: whether ``git mergetool`` is waiting, which restores the file if the session fails.
        exit_code: that of `ConflictError` while the file has conflicts; 1 if the saved model has errors; else 0.
        errors: the structural errors of a model saved without conflicts.
        start: the model and the conflicts before any choice.
    """

    def __init__(
        self,
        path: Path,
        model: Model,
        conflicts: Sequence[Conflict],
        expect: Identity | None,
        *,
        is_under_git: bool = False,
        is_changed: bool = False,
    ) -> None:
        self.path = path
        self.is_under_git = is_under_git
        self.is_changed = is_changed
        self.exit_code = ConflictError.exit_code if conflicts or is_changed else 0
        self.errors: tuple[Finding, ...] = ()
        self.conflicts = _shown(conflicts)
        self.model = model
        self.left: tuple[Conflict, ...] = tuple(conflicts)
        self.choices: Mapping[str, Choice] = {}
        self.start = model, self.left
        self._expect = expect

    @property
    def remaining(self) -> int:
        """Number of conflicts without a choice."""
        return len(self.conflicts) - len(self.choices)

    def sides(self) -> tuple[dict[Choice, Model], Sequence[Conflict]]:
        """Return the model with all conflicts resolved by each side, where that is possible, and all conflicts."""
        model, conflicts = self.start
        by_choice: dict[Choice, Model] = {}
        for side in SIDES:
            with suppress(ConflictError):
                by_choice[side] = model if side == "ours" else resolve(model, conflicts, side)[0]
        return by_choice, conflicts

    def choose(self, id: str, choice: Choice) -> None:  # noqa: A002 - as the text calls it
        """Resolve a conflict with the value of one side, even if another side was chosen before.

        Raises:
            SelectorError: no conflict has this id.
            ConflictError: the side cannot be chosen: its name is taken, or the slot was edited since the merge. The
                session is unchanged then.
        """
        if self.choices.get(id) == choice:
            return
        others = {key: kept for key, kept in self.choices.items() if key != id}
        if id in self.choices:
            self._replay(others | {id: choice})
            return
        self.model, self.left = resolve(self.model, self.left, choice, (id,))
        self.choices = others | {id: choice}
        self.is_changed = True

    def undo_choice(self, id: str) -> None:  # noqa: A002 - as the text calls it
        """Undo the choice for a conflict, if there is one.

        Raises:
            ConflictError: another choice depends on this one. The session is unchanged then.
        """
        if id in self.choices:
            self._replay({key: kept for key, kept in self.choices.items() if key != id})

    def _replay(self, choices: dict[str, Choice]) -> None:
        model, left = self.start
        for side in SIDES:
            ids = {key for key, choice in choices.items() if choice == side}
            if ids:
                model, left = resolve(model, left, side, ids)
        self.model, self.left, self.choices = model, left, choices
        self.is_changed = True

    def save(self) -> None:
        """Write the file, all or nothing: a text with the remaining conflicts, or the model in the form of its name.

        The previous file is kept in the user's state folder (`onnxjson undo-save`). Choices can be changed afterwards.

        Raises:
            ChangedUnderneathError: another program changed the file.
            LimitError, WeightsMissingError, OutputError, AccessDeniedError, FileError, EncodeError: see `storing.save`.
        """
        form = files.format_for(self.path)
        model = self.model
        if form != "json" and not self.left:
            model = files.bind_digests(model, folder=self.path.resolve().parent, weights_from=None)
        save(model, self.left, self.path, form, expect=self._expect, backup=True)
        self._expect = identity(self.path)
        self.is_changed = False
        self.errors = () if self.left else errors_of(self.model)
        self.exit_code = ConflictError.exit_code if self.left else int(bool(self.errors))


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
        sides: files of the base, ours and theirs from ``git mergetool``; an empty base means none. They are merged
            again if `path` is missing, is not a model, or contains only one side.

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
                path, merged.model, merged.conflicts, expect, is_under_git=is_under_git, is_changed=True
            )
    assert loaded is not None
    return ResolutionSession(path, loaded.model, loaded.conflicts, loaded.identity, is_under_git=is_under_git)


def _side(path: Path, *, is_base: bool = False) -> Model | None:
    if path.is_file() and not path.stat().st_size:
        return None
    return files.load(path, bind=False, conflicted=is_base).model


def _shown(conflicts: Sequence[Conflict]) -> tuple[ShownConflict, ...]:
    places: dict[str, list[ConflictSlot]] = {}
    for conflict in conflicts:
        values: dict[Choice, tuple[str, ...] | None] = {}
        for side in SIDES:
            lines = value_lines(conflict, side)
            values[side] = None if lines is None else tuple([visible(line, None) for line in lines])
        title = visible(conflict.at, None) or "the whole model"
        places.setdefault(conflict.id, []).append(ConflictSlot(conflict.at, title, values))
    return tuple(ShownConflict(key, tuple(slots)) for key, slots in places.items())
