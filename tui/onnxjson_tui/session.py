"""One model that is looked at and edited: everything but the screen.

::

    with Session.open("model.onnx") as session:
        for journal in session.recoverable():       # of sessions that were killed
            session.recover(journal)
        preview = session.preview(edits.SetAttribute(node="op:Conv", attribute="group", value=1))
        session.accept(preview)                      # one undo step; in the journal when this returns
        session.undo()
        session.save()

Nothing here knows of widgets, and no call waits for one. On a model of 100,000 nodes an edit takes longer than a frame:
call `preview` in a thread and `accept` where the session is used.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

import msgspec

from onnxjson import files
from onnxjson.canonical.payload_forms import WeightsMode
from onnxjson.checking import Finding
from onnxjson.display import counted
from onnxjson.document import Model, Tensor
from onnxjson.edits.applying import Change, Result, files_written, run
from onnxjson.edits.declaration import Edit, name_of
from onnxjson.edits.parameters import parameters
from onnxjson.edits.script import Script
from onnxjson.errors import (
    AccessDeniedError,
    ChangedUnderneathError,
    EditError,
    OnnxJsonError,
    OutputError,
    ParameterError,
)
from onnxjson.external_files import copy_files, locations
from onnxjson.files import Format, format_for
from onnxjson.identity import identity
from onnxjson.index import Index, NodeRef
from onnxjson.patching import Patch
from onnxjson.selectors import select_nodes
from onnxjson.structure import check_structure
from onnxjson_tui.answers import Changed, Exported, MergeAnswer, Preview, SaveAnswer
from onnxjson_tui.history import History, Step
from onnxjson_tui.index_following import follow
from onnxjson_tui.opening import Opened, Unreadable, open_file, open_model
from onnxjson_tui.recording import Base, Recorder
from onnxjson_tui.recovery import Abandoned, Replay, abandoned
from onnxjson_tui.selection import Lost, Places, selector_of

READ_ONLY: Final = "the model is opened to be read only; start without --readonly to change it"
"""What is said where a session that is read-only would be changed."""


class Session:
    """A model with its history, its places and its journal."""

    def __init__(self, opened: Opened, *, readonly: bool = False, resources: ExitStack | None = None) -> None:
        """Takes over what was opened.

        Args:
            opened: the model and where it comes from.
            readonly: whether every edit and every save is refused.
            resources: what is let go of at the end.
        """
        self.opened = opened
        """Where the model comes from, and since the last save where it is."""
        self.readonly = readonly
        self._resources = resources or ExitStack()
        self._model = opened.model
        self._index: Index | None = None
        self._former_index: Index | None = None
        """Of a model before, which knows what the next one need not find out again."""
        self.history = History()
        self.places = Places()
        self.revision = 0
        """Grows with every change of the model; what was found out about another revision is stale."""
        self.edits_folder = Path()
        """Where files that edits name are looked for."""
        self._saved_model = opened.model
        self.abandoned: tuple[Abandoned, ...] = ()
        """Journals of earlier sessions that somebody has yet to decide on; see `find_abandoned`."""
        self._changing = threading.Lock()
        """Held while the model changes or is saved, which may be in another thread."""
        self._lost: dict[int, Lost] = {}
        """What each step that is made left without its element, by the identity of the step."""
        base = Base(opened.key, opened.name, opened.model, opened.identity)
        self._recorder = Recorder(base, lambda: self._model)

    @classmethod
    def open(cls, name: str | Path, *, readonly: bool = False) -> "Session | Unreadable":
        """A session on a file, or on ``REV:path``; `Unreadable` says what is wrong with what is no model.

        Raises:
            MissingInputError, AccessDeniedError, FileError: it cannot be read.
        """
        with ExitStack() as stack:
            opened = open_model(name, stack)
            if isinstance(opened, Unreadable):
                return opened
            return cls(opened, readonly=readonly, resources=stack.pop_all())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of everything; a journal of changes that are not saved stays, to be recovered."""
        if not self.is_changed:
            self._recorder.discard()
        self._recorder.close()
        self._let_go()

    def discard(self) -> None:
        """Let go of everything, changes that are not saved too: a person said so."""
        self._recorder.discard()
        self._let_go()

    def _let_go(self) -> None:
        for journal in self.abandoned:
            journal.release()
        self.abandoned = ()
        self._resources.close()

    # What is there

    @property
    def model(self) -> Model:
        """The model as it is now."""
        return self._model

    @property
    def index(self) -> Index:
        """The index of the model as it is now; valid until the next change that moves nodes."""
        if self._index is None:
            self._index = Index(self._model)
            if self._former_index is not None:
                self._index.take_over(self._former_index)
                self._former_index = None
        return self._index

    @property
    def is_changed(self) -> bool:
        """Whether the model is another than the saved one; undoing all makes it no longer so."""
        return self.history.is_changed

    @property
    def is_saving(self) -> bool:
        """Whether another thread is saving the model, so that no change can be made now."""
        return self._changing.locked()

    @property
    def trouble(self) -> str:
        """Why the last step would be lost if this process ended now; "" where it would not."""
        return self._recorder.trouble

    @property
    def journal_path(self) -> Path | None:
        """The journal; None where nothing was changed."""
        return None if self._recorder.journal is None else self._recorder.journal.path

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the reader said of the file."""
        return self.opened.findings

    def check(self) -> tuple[Finding, ...]:
        """What is wrong with the structure of the model as it is now."""
        return check_structure(self._model)

    def unsaved(self) -> Preview:
        """Everything that was changed since the model was opened or saved, to be shown."""
        result = Result(self._model, (), {})
        return Preview(self._saved_model, result, (), self.revision, "unsaved changes", self.opened.path)

    def select(self, selector: str) -> tuple[NodeRef, ...]:
        """The nodes that a selector finds become the selection.

        Raises:
            SelectorError: it is misspelled or finds nothing.
        """
        found = select_nodes(self._model, self.index, selector)
        self.places.select([ref.address for ref in found])
        return found

    def selector_of(self, ref: NodeRef) -> str:
        """Words that find one node, by its name or output where they are its alone, else by its address."""
        return selector_of(self.index, ref)

    # Edits

    def preview(self, *changes: Change, title: str = "") -> Preview:
        """What edits, scripts or patches would do, all of them together one step.

        Raises:
            EditError: one cannot do what it is asked for.
            SelectorError: a selector finds nothing.
            PatchError: a patch does not fit.
        """
        model, revision = self._model, self.revision
        result = run(model, changes, folder=self.edits_folder, model_folder=self.opened.folder)
        preview = Preview(model, result, changes, revision, title, self.opened.path)
        # Is found out here, where a thread may wait for it, and not by `accept`.
        assert preview.patch is not None
        return preview

    def preview_model(self, model: Model, title: str, edits: Sequence[Edit] = ()) -> Preview:
        """What another model would be for a change: from an editor, a pass, a merge.

        Args:
            model: shares with the one of the session what is not changed.
            title: what the step is called, such as the command that repeats it.
            edits: edits that do the same, where there are some.
        """
        return Preview(self._model, Result(model, (), {}), tuple(edits), self.revision, title, self.opened.path)

    def accept(self, preview: Preview) -> Changed | None:
        """Makes a previewed change; None where it changes nothing. It is in the journal when this returns.

        Raises:
            AccessDeniedError: the session is read-only.
            EditError: the model was changed since the preview.
        """
        with self._alone():
            if preview.revision != self.revision or preview.base is not self._model:
                raise EditError("the model was changed since the preview was made; look at it again")
            if not preview.patch:
                return None
            title = preview.title or ("" if preview.edits else "patch")
            step = Step(preview.patch, preview.edits, title, preview.notes, preview.result.files)
            restructured = self._go_to(preview.model, step.forward, step)
            self.history.add(step)
            self._recorder.made(step)
            return Changed("made", step, step.forward, restructured)

    def edit(self, *changes: Change, title: str = "") -> Changed | None:
        """`preview` and `accept` at once.

        Raises:
            EditError, SelectorError, PatchError, AccessDeniedError: see there.
        """
        self._require_writable()
        return self.accept(self.preview(*changes, title=title))

    def on_selection(self, edit: Edit, parameter: str = "node") -> tuple[Edit, ...]:
        """An edit for each selected node, last one first, so that those before it stay where they are.

        Args:
            edit: what `forms.fill` makes; what it says of `parameter` is replaced.
            parameter: its field that names nodes.

        Raises:
            ParameterError: the edit has no such field.
            EditError: nothing is selected.
        """
        if not any(each.field == parameter and each.role in ("node", "nodes") for each in parameters(type(edit))):
            raise ParameterError(f"{name_of(edit)} is not for a selection of nodes")
        if not self.places.selected:
            raise EditError("no node is selected")
        wanted = self.places.selected
        refs = [ref for ref in self.index.node_refs if ref.address in wanted]
        return tuple([msgspec.structs.replace(edit, **{parameter: self.selector_of(ref)}) for ref in reversed(refs)])

    def undo(self) -> Changed | None:
        """Takes the last step back; None where there is none.

        Raises:
            AccessDeniedError: the session is read-only.
        """
        with self._alone():
            step = self.history.to_undo()
            if step is None:
                return None
            restructured = self._go_to(step.backward.apply(self._model), step.backward, None)
            lost = self._lost.pop(id(step), None)
            if lost is not None:
                self.places.restore(lost)
            self.history.position -= 1
            self._recorder.taken_back(step)
            return Changed("undone", step, step.backward, restructured)

    def redo(self) -> Changed | None:
        """Makes the step that was undone last again; None where there is none.

        Raises:
            AccessDeniedError: the session is read-only.
        """
        with self._alone():
            step = self.history.to_redo()
            if step is None:
                return None
            restructured = self._go_to(step.forward.apply(self._model), step.forward, step)
            self.history.position += 1
            self._recorder.made(step)
            return Changed("redone", step, step.forward, restructured)

    def _go_to(self, model: Model, patch: Patch, step: Step | None) -> bool:
        """Takes another model; whether nodes or graphs came, went or moved."""
        followed = self._index is not None and follow(self._index, model, patch.root)
        if not followed and self._index is not None:
            self._index, self._former_index = None, self._index
        self._model = model
        self.revision += 1
        lost = self.places.follow(patch)
        if step is not None:
            self._lost[id(step)] = lost
        return not followed

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nothing else changes or saves the model meanwhile.

        Raises:
            AccessDeniedError: the session is read-only.
            EditError: the model is being saved.
        """
        self._require_writable()
        if not self._changing.acquire(blocking=False):
            raise EditError("the model is being saved; change it when that is done")
        try:
            yield
        finally:
            self._changing.release()

    def _require_writable(self) -> None:
        if self.readonly:
            raise AccessDeniedError(READ_ONLY)

    # Scripts

    def export_script(self) -> Exported:
        """The steps as a rewrite script; those that are no edits are said in edits where that can be done."""
        parts: list[tuple[Edit, ...]] = []
        left_out: list[str] = []
        model = self._model
        is_plain = all(step.edits for step in self.history.made)
        for step in reversed(self.history.made):
            before = model if is_plain else step.backward.apply(model)
            found, reason = (step.edits, "") if step.edits else _expressed(before, model)
            parts.append(found)
            left_out += [f"{step.title}: {reason}"] if reason else []
            model = before
        return Exported(Script(tuple([edit for found in reversed(parts) for edit in found])), tuple(left_out[::-1]))

    # Files

    def disk_state(self) -> Literal["same", "changed", "none"]:
        """Whether the file still is what was opened or saved; "none" for a revision, which no program changes.

        Raises:
            FileError: the system could not look.
        """
        if self.opened.path is None:
            return "none"
        try:
            self.opened.identity.check(self.opened.path)
        except ChangedUnderneathError:
            return "changed"
        return "same"

    def save(
        self,
        path: str | Path | None = None,
        format: Format | None = None,  # noqa: A002 - the word of files.save
        *,
        overwrite: bool = False,
        weights: WeightsMode | None = None,
        lossy: bool = False,
        copy_external: bool | None = None,
    ) -> SaveAnswer:
        """Saves the model, all or nothing, read back and verified; the session goes on with the file that was saved.

        What is replaced is kept as a backup (``onnxjson undo-save``).

        Args:
            path: another file; that which was opened if it is None.
            format: what to write; else that of the opened file, or what the ending of another path says.
            overwrite: replace a file that another program has changed, or another file that is there.
            weights: how tensors stand in a text; as they were read where a text stays one, else inline.
            lossy: write proto-JSON even where it cannot hold all of the model.
            copy_external: whether files with weights are copied to another folder; for None the answer is
                "weights-elsewhere" where the model would not find them there.

        Raises:
            AccessDeniedError: the session is read-only, or the system forbids it.
            OutputError: a revision is saved without a name.
            OnnxJsonError: see `files.save`; the file is as it was.
        """
        self._require_writable()
        with self._changing:
            return self._save(path, format, overwrite, weights, lossy, copy_external)

    def _save(
        self,
        path: str | Path | None,
        format: Format | None,  # noqa: A002
        overwrite: bool,
        weights: WeightsMode | None,
        lossy: bool,
        copy_external: bool | None,
    ) -> SaveAnswer:
        here = self.opened.path
        if path is None and here is None:
            raise OutputError("a revision of a repository is not written to; save under the name of a file")
        target = Path(path) if path is not None else here
        assert target is not None
        is_same = here is not None and (path is None or _same_file(target, here))
        form = format or (self.opened.format if is_same else format_for(target))
        if weights is None:
            weights = "keep" if form == "json" and self.opened.format == "json" else "inline"
        expect = self.opened.identity if is_same and not overwrite else None
        if not is_same and not overwrite and target.exists():
            return SaveAnswer("exists", target, "the file is there already; it is replaced only if you say so", 73)
        away = () if is_same or copy_external is False else self._external_elsewhere(target)
        if away and copy_external is None:
            message = f"{counted(len(away), 'file')} with weights of the model would not be beside it there"
            return SaveAnswer("weights-elsewhere", target, message, 73, away)
        if away and self.opened.folder is not None:
            copy_files(self._model, self.opened.folder, target.resolve().parent, model_file=here, taken=target)
        if is_same:
            self._recorder.saving()
        try:
            with files_written(Result(self._model, (), self._pending_files()), target):
                files.save(
                    self._model,
                    target,
                    form,
                    lossy=lossy,
                    weights=weights,
                    expect=expect,
                    replace=is_same or overwrite,
                    backup=True,
                )
        except ChangedUnderneathError as error:
            return SaveAnswer("changed-on-disk", target, str(error), error.exit_code)
        self._saved(target, form)
        return SaveAnswer("saved", target, "", 0)

    def _external_elsewhere(self, target: Path) -> tuple[str, ...]:
        """The files with weights that the model names, where it is saved away from them."""
        folder = self.opened.folder
        if folder is None or _same_file(folder, target.resolve().parent):
            return ()
        return locations(self._model)

    def merge_with_disk(self) -> MergeAnswer:
        """What comes of merging this session's steps with what another program wrote to the file; nothing is changed.

        Raises:
            OutputError: the model is that of a revision.
            EditError: what stands there is no model.
            OnnxJsonError: it cannot be read.
        """
        from onnxjson.merging.merge import merge

        if self.opened.path is None:
            raise OutputError("a revision of a repository does not change, so there is nothing to merge")
        theirs = open_file(self.opened.path)
        if isinstance(theirs, Unreadable):
            raise EditError(f"what another program wrote is no model: {theirs.message}")
        merged = merge(self._saved_model, self._model, theirs.model)
        preview = self.preview_model(merged.model, "merge with what another program saved")
        return MergeAnswer(preview, tuple(merged.conflicts), theirs)

    def accept_merge(self, answer: MergeAnswer) -> Changed | None:
        """Makes the merge one step, and takes the file as it is now for the one that was opened.

        Raises:
            AccessDeniedError, EditError: see `accept`.
        """
        changed = self.accept(answer.preview)
        theirs = answer.theirs
        self.opened = theirs
        self._saved_model = theirs.model
        # A journal on the file as it was would fit nothing any more.
        self._recorder.finish(Base(theirs.key, theirs.name, theirs.model, theirs.identity))
        if Patch.between(theirs.model, self._model):
            self.history.forget_saved()
            self._recorder.write_anew()
        else:
            self.history.mark_saved()
        return changed

    def _saved(self, path: Path, form: Format) -> None:
        real = path.resolve()
        self.opened = msgspec.structs.replace(
            self.opened,
            name=str(path),
            key=str(real),
            path=path,
            model=self._model,
            format=form,
            identity=identity(path),
            folder=real.parent,
        )
        for step in self.history.made:
            step.files = {}
        self.history.mark_saved()
        self._saved_model = self._model
        self._recorder.finish(Base(self.opened.key, self.opened.name, self._model, self.opened.identity))

    def _pending_files(self) -> dict[Path, Tensor]:
        """The values that steps put into files, and that no save has written yet."""
        return {path: tensor for step in self.history.made for path, tensor in step.files.items()}

    def sync(self) -> None:
        """Wait until the disk has the journal: before the process may end, as on SIGHUP and SIGTERM."""
        self._recorder.sync()

    # Recovery

    def recoverable(self) -> tuple[Abandoned, ...]:
        """Journals of sessions on this model that ended without saving, newest first; this process holds them now.

        Give each to `recover`, or call its ``discard`` or, to keep it for later, its ``release``. One of a session that
        ended between a save and the end of its journal has nothing to recover, and goes.
        """
        found: list[Abandoned] = []
        for journal in abandoned(self.opened.key):
            if self.why_not(journal) and journal.is_saved_in(self.opened.model):
                journal.discard()
            else:
                found.append(journal)
        return tuple(found)

    def find_abandoned(self) -> None:
        """Puts what is `recoverable` into `abandoned`, and finds out what `why_not` needs; may read the whole file."""
        self.abandoned = self.recoverable()
        for journal in self.abandoned:
            self.why_not(journal)

    def why_not(self, journal: Abandoned) -> str:
        """Why a journal is only to be shown and exported; "" where `recover` takes it."""
        return journal.why_not(self.opened.identity)

    def preview_recovery(self, journal: Abandoned) -> tuple[Preview, str]:
        """What a journal would change, and why not all of it can be made again."""
        replay = self._replay(journal)
        result = Result(replay.model, (), {})
        return Preview(self._model, result, (), self.revision, "recovered", self.opened.path), replay.trouble

    def recover(self, journal: Abandoned) -> Replay:
        """Makes the steps of a journal again; each of them can be undone. The session goes on with that journal.

        Where not all of them can be made, those that can are in a journal of this session, and the old one is left.

        Raises:
            AccessDeniedError: the session is read-only.
            EditError: the model was changed already, or the journal is of another version or another file.
        """
        with self._alone():
            if len(self.history):
                raise EditError("a journal is recovered before anything else is changed; save or undo, and open again")
            reason = self.why_not(journal)
            if reason:
                raise EditError(f"{reason}; look at its edits, or export them as a script")
            replay = self._replay(journal)
            for step in replay.made:
                self.history.add(step)
            for step in reversed(replay.undone):
                self.history.add(step)
            self.history.position = len(replay.made)
            self._model = replay.model
            self._index = None
            self.revision += 1
            if replay.trouble:
                journal.release()
                self._recorder.write_anew()
            else:
                self._recorder.adopt(journal.take_over(), tuple(replay.known), replay.made, replay.undone)
            return replay

    def _replay(self, journal: Abandoned) -> Replay:
        return journal.replay(self.opened.model, self.edits_folder, self.opened.folder)


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one.resolve() == other.resolve()


def _expressed(before: Model, after: Model) -> tuple[tuple[Edit, ...], str]:
    from onnxjson.diffing.difference import diff
    from onnxjson.edits.expressing import express

    try:
        found = express(before, after, diff(before, after).alignment)
    except OnnxJsonError as error:
        return (), str(error)
    return found.edits, found.reason
