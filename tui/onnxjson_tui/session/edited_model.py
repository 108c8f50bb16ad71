"""Model that is edited in steps, with previews, undo and redo; each step is in a journal, or in a script of edits."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from onnxjson.editing.applying import Change, Result, apply_changes, run
from onnxjson.editing.declaration import Edit, name_of
from onnxjson.editing.parameters import parameters
from onnxjson.editing.pinned_addresses import PINNED, digest
from onnxjson.editing.script import Script
from onnxjson.editing.type_correction import Flow, correct_types, flow_of_types
from onnxjson.editing.workspace import Workspace
from onnxjson.model.document import Model, Node
from onnxjson.model.errors import (
    AccessDeniedError,
    EditError,
    Finding,
    OnnxJsonError,
    ParameterError,
    UntrustedError,
    WorkerError,
)
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operator_checks import check_model
from onnxjson.patching.patch import Patch
from onnxjson.patterns.selector_terms import spelled
from onnxjson.patterns.selectors import select_nodes, select_tensor
from onnxjson_tui.session.following import SavedNodes, follow
from onnxjson_tui.session.history import Changed, History, Lost, Places, Preview, Step, selector_of
from onnxjson_tui.session.opening import Opened
from onnxjson_tui.session.recording import Base, Recorder

READ_ONLY: Final = "the model is open read-only; start without --readonly to change it"
"""Message about an attempt to change a read-only session."""

_ROLES: Final = {"node": "node", "nodes": "node", "tensor": "tensor", "tensors": "tensor", "constant": "tensor"}

_ADDRESSES: Final = frozenset({*_ROLES, "graph", "address", "input", "output"})


class EditedModel:
    """A model with its history, selection and journal; `Session` opens, saves and recovers it."""

    def __init__(self, opened: Opened, *, readonly: bool = False) -> None:
        """Begin with an opened model; with `readonly`, every change is refused."""
        self.opened = opened  # origin of the model, or its file since the last save
        self.readonly = readonly
        self._model = opened.model
        self._index: Index | None = None
        self._former_index: Index | None = None  # index of the previous model, whose results the next index reuses
        self.history = History()
        self.places = Places()
        self.revision = 0  # increases with every change of the model; results about other revisions are stale
        self.figures: Mapping[str, Mapping[str, float | str]] = {}
        """Numbers of nodes by address, for each column of the list; {} if the model changed since."""
        self.edits_folder = Path()  # folder of files that edits refer to
        self._saved_model = opened.model
        self.to_saved = Patch()  # from the model to the saved one
        self._marks: tuple[Scope, Patch, SavedNodes] | None = None
        self._changing = threading.Lock()  # held while the model changes or is saved, possibly in another thread
        self._lost: dict[int, Lost] = {}  # places whose elements each applied step removed, by the identity of the step
        base = Base(opened.key, opened.name, opened.model, opened.identity)
        self._recorder = Recorder(base, lambda: self._model)

    # State

    @property
    def model(self) -> Model:
        """The current model."""
        return self._model

    @property
    def index(self) -> Index:
        """Index of the current model; valid until the next change that moves nodes."""
        if self._index is None:
            self._index = Index(self._model)
            if self._former_index is not None:
                self._index.take_over(self._former_index)
                self._former_index = None
        return self._index

    @property
    def is_changed(self) -> bool:
        """Whether the model differs from the saved one; False again after undoing everything."""
        return self.history.is_changed

    @property
    def is_saving(self) -> bool:
        """Whether another thread is saving the model, so that it cannot be changed now."""
        return self._changing.locked()

    @property
    def trouble(self) -> str:
        """Why the last step would be lost if this process ended now; "" if it would not."""
        return self._recorder.trouble

    @property
    def journal_path(self) -> Path | None:
        """File of the journal; None if nothing was changed."""
        return None if self._recorder.journal is None else self._recorder.journal.path

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the reader about the file."""
        return self.opened.findings

    def check(self) -> tuple[Finding, ...]:
        """Check the structure of the current model, and its use of operators."""
        return check_model(self._model)

    def unsaved(self) -> Preview:
        """Return a preview of everything that changed since the model was opened or saved."""
        result = Result(self._model, (), {})
        return Preview(self._saved_model, result, (), self.revision, "unsaved changes", Patch(), self.opened.path)

    def saved_nodes(self, scope: Scope | None) -> SavedNodes | None:
        """Return the saved counterparts of the nodes of a graph; None if nothing changed since."""
        if scope is None or not self.is_changed:
            return None
        patch = self.to_saved
        if self._marks is None or self._marks[0] is not scope or self._marks[1] is not patch:
            self._marks = scope, patch, SavedNodes.of(patch, scope)
        return self._marks[2]

    def saved_node(self, ref: NodeRef) -> Node | None:
        """Return the saved version of a node; None if it is unchanged or new."""
        saved = self.saved_nodes(ref.scope)
        return None if saved is None or not saved.mark(ref.position) else saved.counterpart(ref.position)

    @property
    def selected(self) -> tuple[NodeRef, ...]:
        """The selected nodes, in the order of the model."""
        wanted = self.places.selected
        return tuple([ref for ref in self.index.node_refs if ref.address in wanted])

    def select(self, selector: str) -> tuple[NodeRef, ...]:
        """Replace the selection by the nodes that a selector finds.

        Raises:
            SelectorError: the selector is invalid or finds nothing.
        """
        found = select_nodes(self._model, self.index, selector)
        self.places.select([ref.address for ref in found])
        return found

    def selector_of(self, ref: NodeRef) -> str:
        """Return a selector for one node: by name or output if they are unique, otherwise by address."""
        return selector_of(self.index, ref)

    # Edits

    def preview(self, *changes: Change, title: str = "", force: bool = False) -> Preview:
        """Preview edits, scripts or patches as one step; with `force`, also one that breaks nodes.

        Raises:
            BrokenNodesError: nodes could not have the shapes afterwards.
            EditError: an edit cannot be applied.
            SelectorError: a selector finds nothing.
            PatchError: a patch does not match the model.
        """
        model, revision, to_saved = self._model, self.revision, self.to_saved
        result = run(model, changes, folder=self.edits_folder, model_folder=self.opened.folder, force=force)
        preview = Preview(model, result, changes, revision, title, to_saved, self.opened.path, is_forced=force)
        # Computed here, possibly in a thread, and not in `accept`.
        assert preview.to_saved is not None
        return preview

    def foresee(self, *edits: Edit) -> Flow:
        """Return how edits would change the types of the nodes after them.

        Raises:
            EditError, SelectorError, WorkerError: an edit cannot be applied, or the types cannot be inferred.
        """
        workspace = Workspace(self._model)
        workspace.model_folder = self.opened.folder
        apply_changes(workspace, edits, self.edits_folder)
        return flow_of_types(self.index, workspace.model, self.opened.folder)

    def preview_model(self, model: Model, title: str, edits: Sequence[Edit] = ()) -> Preview:
        """Preview another model as a change: from an editor, a pass or a merge; `edits` have the same effect, if given.

        The model should share unchanged parts with that of the session.
        """
        result, path = Result(model, (), {}), self.opened.path
        return Preview(self._model, result, tuple(edits), self.revision, title, self.to_saved, path)

    def with_types(self, model: Model) -> Model:
        """Return another version of the model with types that follow its changes, as in an edit, where possible."""
        with suppress(EditError, UntrustedError, WorkerError):
            return correct_types(self._model, Index(model), self.opened.folder).model
        return model

    def accept(self, preview: Preview) -> Changed | None:
        """Apply a previewed change and write it to the journal; return None if it changes nothing.

        Raises:
            AccessDeniedError: the session is read-only.
            EditError: the model changed since the preview.
        """
        with self._alone():
            if preview.revision != self.revision or preview.base is not self._model:
                raise EditError("the model changed since the preview; preview the edit again")
            if not preview.patch:
                return None
            title = preview.title or ("" if preview.edits else "patch")
            step = Step(preview.patch, preview.edits, title, preview.notes, preview.result.files)
            step.is_forced = preview.is_forced
            restructured = self._go_to(preview.model, step.forward, step)
            step.before = self._saved_model, self.to_saved
            self.to_saved = preview.to_saved
            self.history.add(step)
            self._recorder.made(step)
            return Changed("made", step, step.forward, restructured)

    def edit(self, *changes: Change, title: str = "") -> Changed | None:
        """Preview and accept changes.

        Raises:
            EditError, SelectorError, PatchError, AccessDeniedError: see `preview` and `accept`.
        """
        self._require_writable()
        return self.accept(self.preview(*changes, title=title))

    def on_selection(self, edit: Edit, parameter: str = "node") -> tuple[Edit, ...]:
        """Return an edit for each selected node, last node first, so that the positions of the others stay valid.

        Raises:
            ParameterError: the edit has no such field for nodes.
            EditError: nothing is selected.
        """
        if not any(each.field == parameter and each.role in ("node", "nodes") for each in parameters(type(edit))):
            raise ParameterError(f"{name_of(edit)} is not for a selection of nodes")
        if not self.places.selected:
            raise EditError("no node is selected")
        selectors = map(self.selector_of, reversed(self.selected))
        return tuple([msgspec.structs.replace(edit, **{parameter: selector}) for selector in selectors])

    def undo(self) -> Changed | None:
        """Undo the last step; return None if there is none.

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
            saved, known = step.before or (None, Patch())
            self.to_saved = known if saved is self._saved_model else step.forward.then(self.to_saved)
            self.history.position -= 1
            self._recorder.undone_step(step)
            return Changed("undone", step, step.backward, restructured)

    def redo(self) -> Changed | None:
        """Redo the step that was undone last; return None if there is none.

        Raises:
            AccessDeniedError: the session is read-only.
        """
        with self._alone():
            step = self.history.to_redo()
            if step is None:
                return None
            restructured = self._go_to(step.forward.apply(self._model), step.forward, step)
            self.to_saved = step.backward.then(self.to_saved)
            self.history.position += 1
            self._recorder.made(step)
            return Changed("redone", step, step.forward, restructured)

    def _go_to(self, model: Model, patch: Patch, step: Step | None) -> bool:
        """Set the current model; return whether nodes or graphs were added, removed or moved."""
        index, self._index = self._index, None  # an index that fails on the way belongs to no model
        if index is not None and follow(index, model, patch.root):
            self._index = index
        elif index is not None:
            self._former_index = index
        lost = self.places.follow(patch)
        self._model = model
        self.revision += 1
        if step is not None:
            self._lost[id(step)] = lost
        return self._index is None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Prevent other changes and saves of the model.

        Raises:
            AccessDeniedError: the session is read-only.
            EditError: the model is being saved.
        """
        self._require_writable()
        if not self._changing.acquire(blocking=False):
            raise EditError("the model is being saved; try again when the save has finished")
        try:
            yield
        finally:
            self._changing.release()

    def _require_writable(self) -> None:
        if self.readonly:
            raise AccessDeniedError(READ_ONLY)

    # Scripts

    def export(self) -> tuple[Script | Patch, ...]:
        """Return the steps as changes to apply one after the other: edits as scripts, other steps as patches."""
        changes: list[Script | Patch] = []
        model = self._model
        for step in reversed(self.history.made):
            model = step.backward.apply(model)
            edits = self._portable(model, step.edits)
            change: Script | Patch = Script(edits) if edits else step.forward
            later = changes[-1] if changes else None
            if isinstance(change, Script) and isinstance(later, Script):
                changes[-1] = Script((*change.edits, *later.edits))
            elif isinstance(change, Patch) and isinstance(later, Patch):
                changes[-1] = change.then(later)
            else:
                changes.append(change)
        return tuple(changes[::-1])

    def _portable(self, before: Model, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        """Return edits of one step that select by names, or by addresses with digests."""
        workspace = Workspace(before)
        workspace.model_folder = self.opened.folder
        portable_edits: list[Edit] = []
        for number, edit in enumerate(edits):
            portable_edits.append(portable(workspace.model, edit))
            if number + 1 < len(edits):
                apply_changes(workspace, edit, self.edits_folder)
        return tuple(portable_edits)


def portable(model: Model, edit: Edit) -> Edit:
    """Return an edit that means the same elements in other models: by name if that is unique, else with a digest."""
    index = Index(model)
    fields: dict[str, object] = {}
    for parameter in parameters(type(edit)):
        value = getattr(edit, parameter.field)
        if parameter.role in _ADDRESSES and isinstance(value, str):
            fields[parameter.field] = _portable(model, index, value, parameter.role)
        elif parameter.role in _ADDRESSES and isinstance(value, tuple):
            fields[parameter.field] = tuple([_portable(model, index, each, parameter.role) for each in value])
    return replace(edit, **fields) if fields else edit


def _portable(model: Model, index: Index, text: object, role: str) -> object:
    is_address = isinstance(text, str) and text.startswith("@" if role in _ROLES else ("@/", "/"))
    if not isinstance(text, str) or not is_address or PINNED.fullmatch(text) or text.removeprefix("@") == "/graph":
        return text
    try:
        name = _unique_name(model, index, text, _ROLES.get(role, ""))
        return name or f"{text}#{digest(model, text.removeprefix('@'))}"
    except OnnxJsonError:
        return text


def _unique_name(model: Model, index: Index, text: str, kind: str) -> str:
    """Return a selector by name for what is at an address; "" if no name means only that."""
    choices: list[str] = []
    if kind == "node":
        node = select_nodes(model, index, text)[0].node
        choices = [spelled("name", node.name or ""), *[spelled("output", each) for each in node.output if each]]
    elif kind == "tensor":
        ref = select_tensor(model, index, text)
        names = [ref.name]
        if ref.scope is None and "/attribute/" in text:
            names = list(select_nodes(model, index, text.rpartition("/attribute/")[0])[0].node.output)
        choices = [spelled("name", name).removeprefix("name:") for name in names if name]
    for selector in choices:
        try:
            if kind == "node" and select_nodes(model, index, selector) == select_nodes(model, index, text):
                return selector
            if (
                kind == "tensor"
                and select_tensor(model, index, selector).address == select_tensor(model, index, text).address
            ):
                return selector
        except OnnxJsonError:
            continue
    return ""
