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

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from onnxjson import files
from onnxjson.canonical.payload_forms import WeightsMode
from onnxjson.display import counted
from onnxjson.document import Tensor
from onnxjson.edits.applying import Result, files_written
from onnxjson.errors import (
    ChangedUnderneathError,
    EditError,
    OutputError,
)
from onnxjson.external_files import copy_files, locations
from onnxjson.files import Format, format_for
from onnxjson.identity import identity
from onnxjson.patching import Patch
from onnxjson.saving import require_savable
from onnxjson_tui.answers import Changed, MergeAnswer, Preview, SaveAnswer
from onnxjson_tui.edited_model import EditedModel
from onnxjson_tui.history import Step
from onnxjson_tui.opening import Opened, Unreadable, open_file, open_model
from onnxjson_tui.recording import Base
from onnxjson_tui.recovery import Abandoned, Replay, abandoned


class Session(EditedModel):
    """A model that is looked at, edited and saved."""

    def __init__(self, opened: Opened, *, readonly: bool = False, resources: ExitStack | None = None) -> None:
        """Takes over what was opened.

        Args:
            opened: the model and where it comes from.
            readonly: whether every edit and every save is refused.
            resources: what is let go of at the end.
        """
        super().__init__(opened, readonly=readonly)
        self._resources = resources or ExitStack()
        self._merged: tuple[Step, ...] = ()
        """The merges whose other side the file has."""
        self.abandoned: tuple[Abandoned, ...] = ()
        """Journals of earlier sessions that somebody has yet to decide on; see `find_abandoned`."""

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
        take_back: bool = False,
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
            take_back: replace a file that has what another program saved and an undone step had merged; else the answer
                is "takes-back" there.
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
            return self._save(path, format, overwrite, take_back, weights, lossy, copy_external)

    def _save(
        self,
        path: str | Path | None,
        format: Format | None,  # noqa: A002
        overwrite: bool,
        take_back: bool,
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
        if not is_same:
            require_savable(target)
        if not is_same and not overwrite and target.exists():
            return SaveAnswer("exists", target, "the file is there already; it is replaced only if you say so", 73)
        if is_same and not take_back and not set(self._merged) <= set(self.history.made):
            message = "the file has what another program saved, and the model does not any more: the merge is undone"
            return SaveAnswer("takes-back", target, message, 75)
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
        if changed is not None:
            changed.step.is_merge = True
            self._merged += (changed.step,)
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
        self._merged = tuple([step for step in self.history.made if step.is_merge])
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
