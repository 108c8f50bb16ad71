"""A model that is edited in steps: what is there, previews, undo and redo, each step in a journal."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from onnxjson.checking import Finding
from onnxjson.document import Model
from onnxjson.edits.applying import Change, Result, run
from onnxjson.edits.declaration import Edit, name_of
from onnxjson.edits.parameters import parameters
from onnxjson.edits.script import Script
from onnxjson.errors import (
    AccessDeniedError,
    EditError,
    OnnxJsonError,
    ParameterError,
)
from onnxjson.index import Index, NodeRef
from onnxjson.patching import Patch
from onnxjson.selectors import select_nodes
from onnxjson.structure import check_structure
from onnxjson_tui.answers import Changed, Exported, Preview
from onnxjson_tui.history import History, Step
from onnxjson_tui.index_following import follow
from onnxjson_tui.opening import Opened
from onnxjson_tui.recording import Base, Recorder
from onnxjson_tui.selection import Lost, Places, selector_of

READ_ONLY: Final = "the model is opened to be read only; start without --readonly to change it"
"""What is said where a session that is read-only would be changed."""


class EditedModel:
    """A model with its history, its places and its journal; `Session` opens, saves and recovers it."""

    def __init__(self, opened: Opened, *, readonly: bool = False) -> None:
        """Takes over what was opened.

        Args:
            opened: the model and where it comes from.
            readonly: whether every change is refused.
        """
        self.opened = opened
        """Where the model comes from, and since the last save where it is."""
        self.readonly = readonly
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
        self._changing = threading.Lock()
        """Held while the model changes or is saved, which may be in another thread."""
        self._lost: dict[int, Lost] = {}
        """What each step that is made left without its element, by the identity of the step."""
        base = Base(opened.key, opened.name, opened.model, opened.identity)
        self._recorder = Recorder(base, lambda: self._model)

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


def _expressed(before: Model, after: Model) -> tuple[tuple[Edit, ...], str]:
    from onnxjson.diffing.difference import diff
    from onnxjson.edits.expressing import express

    try:
        found = express(before, after, diff(before, after).alignment)
    except OnnxJsonError as error:
        return (), str(error)
    return found.edits, found.reason
