"""Nodes and tensors at their places in a model, and their changes: `Model.select`, `Model.edit`.

A place belongs to a model or to an editor. Its changes return a changed model; those of an editor also change the
editor, and its places follow their nodes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

import msgspec

from onnxjson.editing.applying import Change, apply_changes, broken_text, default_folder, new_findings
from onnxjson.editing.attributes import RemoveAttribute, SetAttribute
from onnxjson.editing.declaration import Edit
from onnxjson.editing.deletion import DeleteNode
from onnxjson.editing.making import attribute_value
from onnxjson.editing.names import Rename
from onnxjson.editing.nodes import AddNode
from onnxjson.editing.tensor_values import set_elements
from onnxjson.editing.workspace import Chosen, NodeChange, Workspace
from onnxjson.model.display import visible
from onnxjson.model.document import Function, Graph, Model, Node, Tensor, Type
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, NodeRef, Scope, Use, index_of
from onnxjson.model.operators import attribute_types
from onnxjson.model.selector_terms import in_quotes
from onnxjson.model.selectors import TensorRef, select_nodes, select_tensor
from onnxjson.patching import Patch

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Editor:
    """A model during many changes; its structure is checked at the end of the ``with`` statement."""

    def __init__(self, model: Model) -> None:
        self._before = model
        self.workspace = Workspace(model, default_folder(model))
        """The changed model and its index, for changes that are not methods."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.workspace.can_be_wrong and self.model is not self._before:
            new = new_findings(self._before, self.model)
            if new:
                raise EditError(broken_text(new), new[0].address)

    @property
    def model(self) -> Model:
        """The changed model."""
        return self.workspace.model

    @property
    def patch(self) -> Patch:
        """All changes as one patch."""
        return Patch.between(self._before, self.model)

    def select(self, selector: str) -> "Places":
        """Return the nodes that a selector finds now; see `Model.select`."""
        return Places(self, self.workspace.select(selector))

    def node(self, selector: str) -> "Place":
        """Return the only node that a selector finds now; see `Model.node`."""
        return Place(self, self.workspace.one(selector))

    def tensor(self, selector: str) -> "TensorPlace":
        """Return the only tensor that a selector finds now; see `Model.tensor`."""
        return TensorPlace(self, self.workspace.tensor(selector))

    def rewrite(self, *changes: Change | Iterable[Change]) -> Model:
        """Apply edits, scripts or patches, and return the changed model; see `onnxjson.apply`."""
        apply_changes(self.workspace, changes)
        return self.model


Owner = Model | Editor


def select(model: Model, selector: str) -> "Places":
    """Return the nodes of a model that a selector finds."""
    index = index_of(model)
    return Places(model, select_nodes(model, index, selector))


def select_one(model: Model, selector: str) -> "Place":
    """Return the only node of a model that a selector finds."""
    index = index_of(model)
    return Place(model, select_nodes(model, index, selector, one=True)[0])


def select_value(model: Model, selector: str) -> "TensorPlace":
    """Return the only tensor of a model that a selector finds."""
    index = index_of(model)
    return TensorPlace(model, select_tensor(model, index, selector))


def _changed(owner: Owner, change: Callable[[Workspace], object]) -> Model:
    """Make a change in an editor, or in a new one of a model; return the changed model."""
    if isinstance(owner, Editor):
        change(owner.workspace)
        return owner.model
    with Editor(owner) as editor:
        change(editor.workspace)
    return editor.model


class _Owned:
    """A part of a model or an editor."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        # It is kept, so that all parts of a model have the same graphs.
        self._kept = None if isinstance(owner, Editor) else index_of(owner)
        self._seen = owner.model if isinstance(owner, Editor) else owner

    @property
    def _index(self) -> Index:
        if isinstance(self._owner, Editor):
            return self._owner.workspace.index
        assert self._kept is not None
        return self._kept

    def _consumers(self, uses: Iterable[Use]) -> "tuple[Place, ...]":
        found = dict.fromkeys([NodeRef(use.scope, use.position) for use in uses if use.position is not None])
        return tuple([Place(self._owner, ref) for ref in found])


class Nodes(_Owned):
    """Changes of one or several nodes at once; each returns the changed model."""

    def __init__(self, owner: Owner, places: Sequence["Place"]) -> None:
        super().__init__(owner)
        self._places: Sequence[Place] = places

    def set_attribute(self, name: str, value: Any) -> Model:
        """Set an attribute: a number, str, bytes, a list of them, an array, or a record."""

        def edit(nodes: Chosen) -> Edit:
            node = nodes.refs[0].node
            old = next((each.type for each in node.attribute if each.name == name), None)
            kind = attribute_types(node.domain, node.op_type).get(name, old)
            return SetAttribute(node=nodes, attribute=name, value=attribute_value(value, kind))

        return self._edited(edit, keeps=True)

    def remove_attribute(self, name: str) -> Model:
        """Remove an attribute from the nodes that have it, so that the operator's default applies."""
        return self._edited(lambda nodes: RemoveAttribute(node=nodes, attribute=name), keeps=True)

    def delete(self, bypass: int | None = None) -> Model:
        """Delete the nodes; `bypass` is the position of the input that their consumers get, if it is not clear."""
        return self._edited(lambda nodes: DeleteNode(node=nodes, bypass=bypass))

    def update(self, **fields: Any) -> Model:
        """Replace fields of the records, such as ``name="conv1"`` or ``input=["x", "w"]``."""
        fields = {name: tuple(each) if isinstance(each, list) else each for name, each in fields.items()}
        return self._replaced(lambda node: (msgspec.structs.replace(node, **fields),))

    def _edited(self, make: Callable[[Chosen], Edit], *, keeps: bool = False) -> Model:
        """Apply an edit to the nodes; `keeps` is whether all of them are there afterwards."""

        def change(workspace: Workspace) -> None:
            apply_changes(workspace, make(Chosen.of([place.within(workspace) for place in self._places])))
            for place in self._places if keeps else ():
                place.see(workspace)

        return _changed(self._owner, change)

    def _replaced(self, change: Callable[[Node], tuple[Node, ...]]) -> Model:
        def replace(workspace: Workspace) -> None:
            changes: dict[Scope, dict[int, NodeChange]] = {}
            for place in self._places:
                ref = place.within(workspace)
                new = change(ref.node)
                changes.setdefault(ref.scope, {})[ref.position] = new[0] if len(new) == 1 else new
            workspace.replace_nodes_in(changes)
            if not any([isinstance(new, tuple) for of_scope in changes.values() for new in of_scope.values()]):
                for place in self._places:
                    place.see(workspace)

        return _changed(self._owner, replace)


class Place(Nodes):
    """A node at its place in a model."""

    def __init__(self, owner: Owner, ref: NodeRef) -> None:
        super().__init__(owner, (self,))
        self._scope = ref.scope.address
        self._position = ref.position
        self._record = ref.node

    def __repr__(self) -> str:
        words = (f"{self._scope}/node/{self._position}:", self._record.op_type, self._record.name)
        return f"<Place {visible(' '.join(filter(None, words)))}>"

    @property
    def node(self) -> Node:
        """The record."""
        return self._ref.node

    @property
    def address(self) -> str:
        """Its address in the model, such as ``/graph/node/3``."""
        return self._ref.address

    @property
    def graph(self) -> Graph | Function:
        """The graph or function that contains it."""
        return self._ref.scope.graph

    @property
    def producers(self) -> tuple["Place | None", ...]:
        """The node that computes each input; None for inputs of the graph, constants, and omitted inputs."""
        ref, index = self._ref, self._index
        found = [index.producer(ref.scope, name) if name else None for name in ref.node.input]
        return tuple([None if each is None else Place(self._owner, each) for each in found])

    @property
    def consumers(self) -> tuple["Place", ...]:
        """The nodes that consume its outputs, each once, those in subgraphs last."""
        ref, index = self._ref, self._index
        return self._consumers([use for name in ref.node.output for use in index.consumers(ref.scope, name)])

    def replace(self, *nodes: Node) -> Model:
        """Put nodes in its place; without any, only remove it (`delete` also connects its consumers)."""
        return self._replaced(lambda _: nodes)

    @property
    def _ref(self) -> NodeRef:
        if isinstance(self._owner, Editor):
            return self.within(self._owner.workspace)
        scope = self._index.by_address[self._scope]
        return NodeRef(scope, self._position)

    def within(self, workspace: Workspace) -> NodeRef:
        """Return the node in a workspace; it is followed if others were added, removed or moved since it was found.

        Raises:
            EditError: it was deleted.
        """
        if self._seen is not workspace.model:
            self._follow(workspace)
        return NodeRef(workspace.scope(self._scope), self._position)

    def _follow(self, workspace: Workspace) -> None:
        scope = workspace.index.scope(self._scope)
        nodes = () if scope is None else scope.graph.node
        if not (self._position < len(nodes) and nodes[self._position] is self._record):
            same = [position for position, node in enumerate(nodes) if node is self._record]
            if len(same) == 1:
                self._position = same[0]
            else:
                before = f"{self._scope}/node/{self._position}"
                address = Patch.between(self._seen, workspace.model).where(before)
                if address is None:
                    raise EditError(f"the node that was {before} is not in the model any more", before)
                self._scope, _, position = address.rpartition("/node/")
                self._position = int(position)
        self.see(workspace)

    def see(self, workspace: Workspace) -> None:
        """Note the node that is at this place in a workspace now."""
        if isinstance(self._owner, Editor):
            self._record = workspace.scope(self._scope).graph.node[self._position]
            self._seen = workspace.model


class Places(Nodes, Sequence[Place]):
    """Nodes at their places in a model, in the order of the file."""

    def __init__(self, owner: Owner, refs: Iterable[NodeRef]) -> None:
        super().__init__(owner, [Place(owner, ref) for ref in refs])

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Place]:
        return iter(self._places)

    @overload
    def __getitem__(self, at: int) -> Place: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Place]: ...

    def __getitem__(self, at: int | slice) -> Place | Sequence[Place]:
        return self._places[at]

    def __repr__(self) -> str:
        return f"<Places: {len(self._places):,}>"


class TensorPlace(_Owned):
    """An input, a constant or an output of a node in a model; changes return the changed model."""

    def __init__(self, owner: Owner, ref: TensorRef) -> None:
        super().__init__(owner)
        self._found = ref

    def __repr__(self) -> str:
        return f"<TensorPlace {visible(f'{self._found.address}: {self.name}')}>"

    @property
    def _ref(self) -> TensorRef:
        if isinstance(self._owner, Editor) and self._seen is not self._owner.model:
            self._found = self._owner.workspace.tensor(in_quotes(self.name) if self.name else f"@{self._found.address}")
            self._seen = self._owner.model
        return self._found

    @property
    def name(self) -> str:
        """The name; "" for a constant in an attribute."""
        return self._found.name

    @property
    def address(self) -> str:
        """The address of the constant if there is one, else of the input or of the output of a node."""
        return self._ref.address

    @property
    def tensor(self) -> Tensor | None:
        """The record of a constant; None for other tensors."""
        return self._ref.tensor if isinstance(self._ref.tensor, Tensor) else None

    @property
    def type(self) -> Type | None:
        """The type that the model states."""
        return None if self._ref.scope is None else Index.type_of(self._ref.scope, self.name)

    @property
    def producer(self) -> Place | None:
        """The node that computes it."""
        found = None if self._ref.scope is None else self._ref.scope.producer(self.name)
        return None if found is None else Place(self._owner, found)

    @property
    def consumers(self) -> tuple[Place, ...]:
        """The nodes that consume it, each once, those in subgraphs last."""
        scope = self._ref.scope
        return () if scope is None else self._consumers(self._index.consumers(scope, self.name))

    def numpy(self) -> "NDArray[Any]":
        """Return the elements of a constant as an array; see `Tensor.numpy`.

        Raises:
            EditError: it is not a constant.
        """
        if self.tensor is None:
            raise EditError(f'"{visible(self.name)}" is not a constant', self.address)
        return self.tensor.numpy()

    def set_values(self, values: Any, dtype: str | None = None, *, lossy: bool = False) -> Model:
        """Set the elements and the shape of a constant; its dtype stays, unless another is given.

        Raises:
            EditError: it is not a constant; or its dtype cannot represent a value, which `lossy` allows.
        """
        address = f"@{self.address}"
        return _changed(self._owner, lambda workspace: set_elements(workspace, address, values, dtype, lossy=lossy))

    def rename(self, name: str) -> Model:
        """Rename it with all references to it."""
        edit = Rename(kind="tensor", names={self.name: name})
        model = _changed(self._owner, lambda workspace: apply_changes(workspace, edit))
        if isinstance(self._owner, Editor):
            self._found = self._owner.workspace.tensor(in_quotes(name))
            self._seen = model
        return model

    def insert(self, op_type: str, *more: str, output: str | None = None, **attributes: Any) -> Model:
        """Insert a node between it and its consumers.

        Args:
            op_type: the operator.
            more: further inputs of the node.
            output: the name of its output; one made of `name` and `op_type` by default.
            attributes: its attributes.
        """
        table = attribute_types(None, op_type)
        values = {name: attribute_value(each, table.get(name)) for name, each in attributes.items()}

        def change(workspace: Workspace) -> None:
            names = (output or workspace.fresh_name(f"{self.name}_{op_type}"),)
            graph = "/graph" if self._ref.scope is None else self._ref.scope.address
            edit = AddNode(
                op_type=op_type, input=(self.name, *more), output=names, attribute=values, graph=graph, insert=True
            )
            apply_changes(workspace, edit)

        return _changed(self._owner, change)
