"""Session on one model: opening, editing, saving, merging and recovery, without the screen.

::

    with Session.open("model.onnx") as session:
        for journal in session.recoverable():       # journals of killed sessions
            session.recover(journal)
        preview = session.preview(edits.SetAttribute(node="op:Conv", attribute="group", value=1))
        session.accept(preview)                      # one undo step; in the journal when this returns
        session.undo()
        session.save()

Nothing here uses or waits for widgets. On a model of 100,000 nodes an edit takes longer than a frame: call `preview` in
a thread and `accept` in the thread that uses the session.
"""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from onnxjson.codecs.tensor_text import WeightsMode
from onnxjson.editing.applying import Result
from onnxjson.model.display import counted
from onnxjson.model.errors import ChangedUnderneathError, EditError, OutputError, UnloadableError
from onnxjson.patching.patch import Patch
from onnxjson.storage import files
from onnxjson.storage.external_files import copy_files, files_written
from onnxjson.storage.files import Format, format_for
from onnxjson.storage.identity import identity
from onnxjson.storage.named_files import locations
from onnxjson.storage.saving import require_savable
from onnxjson_tui.session.edited_model import EditedModel
from onnxjson_tui.session.history import Changed, MergeAnswer, Preview, SaveAnswer, Step
from onnxjson_tui.session.opening import Opened, Unreadable, open_file, open_model
from onnxjson_tui.session.presence import Presence
from onnxjson_tui.session.recording import Base
from onnxjson_tui.session.recovery import Abandoned, Replay, abandoned

_REVERTS_OTHERS: Final = "the merge was undone, so the model lacks changes of another program that the file has"


class Session(EditedModel):
    """A model that is viewed, edited and saved."""

    def __init__(self, opened: Opened, *, readonly: bool = False, resources: ExitStack | None = None) -> None:
        """Begin with an opened model; `resources` are released at the end."""
        super().__init__(opened, readonly=readonly)
        self._resources = resources or ExitStack()
        self.presence = None if readonly or opened.path is None else Presence(opened.key)
        self._merged: tuple[Step, ...] = ()  # merges whose other side is in the file
        self.abandoned: tuple[Abandoned, ...] = ()
        """Journals of earlier sessions that await a decision; see `find_abandoned`."""

    @classmethod
    def open(cls, name: str | Path, *, readonly: bool = False) -> "Session | Unreadable":
        """Open a session on a file or ``REV:path``; return `Unreadable` if it is not a model.

        Raises:
            MissingInputError, AccessDeniedError, FileError: the file cannot be read.
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
        """Release all resources; a journal of unsaved changes is kept for recovery."""
        if not self.is_changed:
            self._recorder.discard()
        self._recorder.close()
        self._release()

    def discard(self) -> None:
        """Release all resources and discard unsaved changes."""
        self._recorder.discard()
        self._release()

    def _release(self) -> None:
        for journal in self.abandoned:
            journal.release()
        self.abandoned = ()
        if self.presence is not None:
            self.presence.end()
        self._resources.close()

    # Files

    def save(
        self,
        path: str | Path | None = None,
        format: Format | None = None,  # noqa: A002 - the word of files.save
        *,
        overwrite: bool = False,
        revert_others: bool = False,
        copy_external: bool | None = None,
        unloadable: bool = False,
    ) -> SaveAnswer:
        """Save the model atomically and verify it by reading it back; the session continues with the saved file.

        A replaced file is kept as a backup (``onnxjson undo-save``).

        Args:
            path: the file; None for the opened one.
            format: the format; by default that of the opened file, or of the extension of another path.
            overwrite: replace a file that another program changed, or another existing file.
            revert_others: replace a file with changes of another program whose merge was undone; otherwise the result
                is "reverts-others".
            copy_external: whether to copy files with weights to another folder; with None the result is
                "weights-elsewhere" if the model would not find them there.
            unloadable: save a model that onnxruntime loads before its edits and not after them; otherwise the result
                is "unloadable".

        Raises:
            AccessDeniedError: the session is read-only, or the system forbids it.
            OutputError: a revision is saved without a name.
            OnnxJsonError: see `files.save`; the file is unchanged.
        """
        self._require_writable()
        with self._changing:
            target, is_same = self._target(path)
            form = format or (self.opened.format if is_same else format_for(target))
            # Tensors are stored as before if a text remains a text.
            weights: WeightsMode = "keep" if form == "json" and self.opened.format == "json" else "inline"
            replace = is_same or overwrite
            if not is_same:
                require_savable(target)
            if not replace and target.exists():
                return SaveAnswer("exists", target, "the file already exists; confirm to replace it", 73)
            if is_same and not revert_others and not set(self._merged) <= set(self.history.made):
                return SaveAnswer("reverts-others", target, _REVERTS_OTHERS, 75)
            away = () if is_same or copy_external is False else self._external_elsewhere(target)
            if away and copy_external is None:
                message = f"{counted(len(away), 'file')} with weights of the model would be missing in that folder"
                return SaveAnswer("weights-elsewhere", target, message, 73, away)
            try:
                notes = () if unloadable else self._tried()
            except UnloadableError as error:
                return SaveAnswer("unloadable", target, str(error), error.exit_code)
            if away and self.opened.folder is not None:
                folder = target.resolve().parent
                copy_files(self._model, self.opened.folder, folder, model_file=self.opened.path, taken=target)
            expect = self.opened.identity if is_same and not overwrite else None
            if is_same:
                self._recorder.saving()
            try:
                pending = {path: tensor for step in self.history.made for path, tensor in step.files.items()}
                with files_written(Result(self._model, (), pending).new_files(), target):
                    files.save(
                        self._model, target, form,
                        weights=weights, expect=expect, replace=replace, backup=True
                    )  # fmt: skip
            except ChangedUnderneathError as error:
                return SaveAnswer("changed-on-disk", target, str(error), error.exit_code)
            self._saved(target, form)
            return SaveAnswer("saved", target, "; ".join(notes), 0)

    def _tried(self) -> tuple[str, ...]:
        """Load the changed model in onnxruntime; return remarks."""
        from onnxjson.editing.sandbox import worker
        from onnxjson.running.loading import require_loadable

        return require_loadable(self._saved_model, self._model, self.opened.folder, worker(), advice="")

    def _target(self, path: str | Path | None) -> tuple[Path, bool]:
        """Return the file to save to, and whether it is the opened one."""
        opened_path = self.opened.path
        if path is None and opened_path is None:
            raise OutputError("a revision of a repository cannot be changed; save to a file with another name")
        target = Path(path) if path is not None else opened_path
        assert target is not None
        return target, opened_path is not None and (path is None or _same_file(target, opened_path))

    def _external_elsewhere(self, target: Path) -> tuple[str, ...]:
        """Return the files with weights that the model refers to, if it is saved to another folder."""
        folder = self.opened.folder
        if folder is None or _same_file(folder, target.resolve().parent):
            return ()
        return locations(self._model)

    def merge_with_disk(self) -> MergeAnswer:
        """Merge this session's steps with what another program wrote to the file, without changing anything.

        Raises:
            OutputError: the model is from a revision.
            EditError: the file is no longer a model.
            OnnxJsonError: the file cannot be read.
        """
        from onnxjson.merging.merge import merge

        if self.opened.path is None:
            raise OutputError("a revision of a repository does not change, so there is nothing to merge")
        on_disk = open_file(self.opened.path)
        if isinstance(on_disk, Unreadable):
            raise EditError(f"what another program wrote is not a model: {on_disk.message}")
        merged = merge(self._saved_model, self._model, on_disk.model)
        preview = self.preview_model(self.with_types(merged.model), "merge with what another program saved")
        return MergeAnswer(preview, tuple(merged.conflicts), on_disk)

    def accept_merge(self, answer: MergeAnswer) -> Changed | None:
        """Apply the merge as one step, and treat the current file as the opened one.

        Raises:
            AccessDeniedError, EditError: see `accept`.
        """
        changed = self.accept(answer.preview)
        if changed is not None:
            changed.step.is_merge = True
            self._merged += (changed.step,)
        on_disk = answer.theirs
        self.opened = on_disk
        self._saved_model = on_disk.model
        self.to_saved = Patch.between(self._model, on_disk.model)
        # A journal for the previous file content would be useless now.
        self._recorder.finish(Base(on_disk.key, on_disk.name, on_disk.model, on_disk.identity))
        if self.to_saved:
            self.history.saved = None
            self._recorder.rewrite()
        else:
            self.history.saved = self.history.position
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
        self._merged = tuple([step for step in self.history.made if step.is_merge])
        self.history.saved = self.history.position
        self._saved_model, self.to_saved = self._model, Patch()
        self._recorder.finish(Base(self.opened.key, self.opened.name, self._model, self.opened.identity))

    def sync(self) -> None:
        """Sync the journal to the disk before the process may end, as on SIGHUP and SIGTERM."""
        self._recorder.sync()

    # Recovery

    def recoverable(self) -> tuple[Abandoned, ...]:
        """Lock and return the journals of sessions on this model that ended without saving, newest first.

        Pass each to `recover`, or call its ``discard`` or, to keep it for later, its ``release``. The journal of a
        session that ended just after a save has nothing to recover and is removed.
        """
        journals: list[Abandoned] = []
        for journal in abandoned(self.opened.key):
            if self.why_not(journal) and journal.is_saved_in(self.opened.model):
                journal.discard()
            else:
                journals.append(journal)
        return tuple(journals)

    def find_abandoned(self) -> None:
        """Set `abandoned` to what is `recoverable`, and compute what `why_not` needs; may read the whole file."""
        self.abandoned = self.recoverable()
        for journal in self.abandoned:
            self.why_not(journal)

    def why_not(self, journal: Abandoned) -> str:
        """Return why a journal can only be shown and exported; "" if `recover` accepts it."""
        return journal.why_not(self.opened.identity)

    def preview_recovery(self, journal: Abandoned) -> tuple[Preview, str]:
        """Return what a journal would change, and why some of its steps cannot be applied."""
        replay = self._replay(journal)
        return self.preview_model(replay.model, "recovered"), replay.trouble

    def recover(self, journal: Abandoned) -> Replay:
        """Apply the steps of a journal; each can be undone. The session continues with that journal.

        If some steps cannot be applied, the others are written to a new journal, and the old one is kept.

        Raises:
            AccessDeniedError: the session is read-only.
            EditError: the model was already changed, or the journal is from another version or for another file.
        """
        with self._alone():
            if len(self.history):
                raise EditError("recover a journal before any other change; save or undo, then open the model again")
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
            self.to_saved = Patch.between(replay.model, self._saved_model)
            self._index = None
            self.revision += 1
            if replay.trouble:
                journal.release()
                self._recorder.rewrite()
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
