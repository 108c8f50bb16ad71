"""Nodes and tensors at their places in a model, and their changes: `Model.select`, `Model.edit`.

Places belong to an editor. The changes of one that `Model.edit` made change the editor, and its places follow their
nodes; those of `Model.select` return a changed model only.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import msgspec

from onnxjson.editing.applying import Change, apply_changes, broken_text, default_folder, new_findings, settle_types
from onnxjson.editing.attributes import RemoveAttribute, SetAttribute, attribute_value
from onnxjson.editing.declaration import Edit
from onnxjson.editing.deletion import DeleteNode
from onnxjson.editing.names import Rename
from onnxjson.editing.nodes import AddNode
from onnxjson.editing.tensor_values import set_elements
from onnxjson.editing.workspace import Chosen, NodeChange, Workspace
from onnxjson.model.by_name import NamedValues
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Function, Graph, Model, Node, Tensor, Type
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index, NodeRef, Scope, Use
from onnxjson.model.methods import Guessed, Tabular, refuse_assignment
from onnxjson.model.operators import attribute_types
from onnxjson.patching.patch import Patch
from onnxjson.patterns.names import TensorRef
from onnxjson.patterns.selector_terms import in_quotes

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Editor:
    """A model that is changed step by step; the end of the ``with`` statement checks its structure."""

    def __init__(self, model: Model, *, is_fixed: bool = False) -> None:
        self._before = model
        self._is_fixed = is_fixed
        self.workspace = Workspace(model, default_folder(model))
        """The changed model and its index, for changes that are not methods."""

    def __repr__(self) -> str:
        return f"<Editor: {counted(len(self.workspace.index.node_refs), 'node')}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self.workspace.can_be_wrong and self.model is not self._before:
            new = new_findings(self._before, self.model)
            if new:
                raise EditError(broken_text(new), new[0].address)
        if kind is None:
            settle_types(self.workspace)

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
        return Places([Place(self, ref) for ref in self.workspace.select(selector)])

    def node(self, selector: str) -> "Place":
        """Return the only node that a selector finds now; see `Model.node`."""
        return Place(self, self.workspace.one(selector))

    def tensor(self, selector: str) -> "TensorPlace":
        """Return the only tensor that a selector finds now; see `Model.tensor`."""
        return TensorPlace(self, self.workspace.tensor(selector))

    def nodes(self) -> "Places":
        """Return the nodes of the main graph."""
        return Places([Place(self, ref) for ref in self.workspace.index.nodes() if ref.scope is self.workspace.main])

    def value(self, name: str) -> "TensorPlace":
        """Return a value of the main graph by its exact name.

        Raises:
            SelectorError: the main graph has none of that name.
        """
        return TensorPlace(self, self.workspace.tensor(in_quotes(name)))

    def rewrite(self, *changes: Change | Iterable[Change]) -> Model:
        """Apply edits, scripts or patches, and return the changed model; see `onnxjson.apply`."""
        return self.change(lambda workspace: apply_changes(workspace, changes))

    def change(self, change: Callable[[Workspace], object]) -> Model:
        """Call a function that changes the workspace, and return the changed model."""
        if self._is_fixed:
            with Editor(self.model) as editor:
                editor.change(change)
            return editor.model
        change(self.workspace)
        return self.model

    def consumers(self, uses: Iterable[Use]) -> tuple["Place", ...]:
        """Return the nodes among the consumers of values, each once."""
        found = dict.fromkeys([NodeRef(use.scope, use.position) for use in uses if use.position is not None])
        return tuple([Place(self, ref) for ref in found])


class NodeChanges:
    """Changes of one or several nodes at once; each returns the changed model."""

    __slots__ = ()

    def set_attribute(self, name: str, value: Any) -> Model:
        """Set an attribute: a number, str, bytes, a list of them, an array, or a record."""

        def edit(nodes: Chosen) -> Edit:
            node = nodes.refs[0].node
            old = next((each.type for each in node.attribute if each.name == name), None)
            kind = attribute_types(node.domain, node.op_type).get(name, old)
            return SetAttribute(node=nodes, attribute=name, value=attribute_value(value, kind))

        return self._edited(edit)

    def remove_attribute(self, name: str) -> Model:
        """Remove an attribute from the nodes that have it, so that the operator's default applies."""
        return self._edited(lambda nodes: RemoveAttribute(node=nodes, attribute=name))

    def delete(self, bypass: int | None = None) -> Model:
        """Delete the nodes; `bypass` is the position of the input that their consumers then use, if several could."""
        return self._edited(lambda nodes: DeleteNode(node=nodes, bypass=bypass))

    def update(self, **fields: Any) -> Model:
        """Replace fields of the records, such as ``name="conv1"`` or ``input=["x", "w"]``."""
        fields = {name: tuple(each) if isinstance(each, list) else each for name, each in fields.items()}
        return replace_places([(place, (msgspec.structs.replace(place.node, **fields),)) for place in self._places])

    def _edited(self, make: Callable[[Chosen], Edit]) -> Model:
        def change(workspace: Workspace) -> None:
            apply_changes(workspace, make(Chosen.of([place.within(workspace) for place in self._places])))

        return self._places[0].editor.change(change)

    @property
    def _places(self) -> "Sequence[Place]":
        raise NotImplementedError


class Place(Guessed, NodeChanges):
    """A node at its place in a model."""

    __slots__ = ("_model", "_position", "_record", "_scope", "editor")

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None:
            """Set a field of the place itself; anything else is refused with how to change the model."""
            if name not in Place.__slots__:
                refuse_assignment(self, name, value)
            object.__setattr__(self, name, value)

    def __init__(self, editor: Editor, ref: NodeRef) -> None:
        self.editor = editor
        self._model = editor.model
        self._scope = ref.scope.address
        self._position = ref.position
        self._record = ref.node

    def __repr__(self) -> str:
        return f"<Place {visible(' '.join(filter(None, (f'{self.address}:', self.node.op_type, self.node.name))))}>"

    @property
    def node(self) -> Node:
        """The record."""
        return self._ref.node

    @property
    def name(self) -> str:
        """The name of the node, "" if it has none."""
        return self._ref.name

    @property
    def op_type(self) -> str:
        """The operator, such as "Conv"."""
        return self._ref.op_type

    @property
    def domain(self) -> str:
        """The domain of the operator; "" for those of ONNX."""
        return self.node.domain or ""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The values of the attributes by name, read-only."""
        return self.node.attributes

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs; "" for one that is omitted."""
        return self.node.input

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return self.node.output

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
        """The node that produces each input; None for inputs of the graph, constants, and omitted inputs."""
        ref, index = self._ref, self.editor.workspace.index
        found = [index.producer(ref.scope, name) if name else None for name in ref.node.input]
        return tuple([None if each is None else Place(self.editor, each) for each in found])

    @property
    def consumers(self) -> tuple["Place", ...]:
        """The nodes that consume its outputs, each once, those in subgraphs last."""
        ref, index = self._ref, self.editor.workspace.index
        return self.editor.consumers([use for name in ref.node.output for use in index.consumers(ref.scope, name)])

    def replace(self, *nodes: Node, fused: Iterable["Place"] = ()) -> Model:
        """Replace the node, and those of `fused`, with `nodes`; without `nodes`, remove them."""
        return replace_places([(self, nodes), *[(place, ()) for place in fused]])

    @property
    def _ref(self) -> NodeRef:
        return self.within(self.editor.workspace)

    @property
    def _places(self) -> "Sequence[Place]":
        return (self,)

    def within(self, workspace: Workspace) -> NodeRef:
        """Return the node in a workspace, even if others were added, removed or moved since it was found.

        Raises:
            EditError: it was deleted.
        """
        if self._model is not workspace.model:
            scope = workspace.index.scope(self._scope)
            nodes = () if scope is None else scope.graph.node
            if not (self._position < len(nodes) and nodes[self._position] is self._record):
                self._follow(workspace, [position for position, node in enumerate(nodes) if node is self._record])
            self._record = workspace.index.by_address[self._scope].graph.node[self._position]
            self._model = workspace.model
        return NodeRef(workspace.index.by_address[self._scope], self._position)

    def become(self, node: Node) -> None:
        """Record the node that has replaced this one."""
        self._record = node

    def _follow(self, workspace: Workspace, same: Sequence[int]) -> None:
        """Find the node again; `same` are the positions of its record in the graph."""
        before = f"{self._scope}/node/{self._position}"
        address = f"{self._scope}/node/{same[0]}" if len(same) == 1 else None
        address = address or Patch.between(self._model, workspace.model).where(before)
        if address is None:
            raise EditError(f"the node that was {before} is no longer in the model", before)
        self._scope, _, position = address.rpartition("/node/")
        self._position = int(position)


class Places(Guessed, Tabular, NodeChanges, NamedValues[Place]):
    """Nodes at their places in a model; ``Places(each for each in places if ...)`` selects some of them."""

    __slots__ = ()

    def __repr__(self) -> str:
        kinds = Counter(visible(place.op_type) for place in self)
        shown = listed([f"{count} {kind}" for kind, count in kinds.most_common()], 4)
        return f"<Places: {counted(len(self), 'node')}{f': {shown}' if shown else ''}>"

    @property
    def _places(self) -> Sequence[Place]:
        if not self:
            raise EditError("there are no nodes to change")
        return self


def replace_places(changes: Sequence[tuple[Place, tuple[Node, ...]]]) -> Model:
    """Replace nodes at their places by others, and return the changed model; its places follow single nodes."""
    editor = changes[0][0].editor

    def replace(workspace: Workspace) -> None:
        by_scope: dict[Scope, dict[int, NodeChange]] = {}
        for place, new in changes:
            ref = place.within(workspace)
            by_scope.setdefault(ref.scope, {})[ref.position] = new[0] if len(new) == 1 else new
        workspace.replace_nodes_in(by_scope)
        for place, new in changes:
            if len(new) == 1 and workspace is editor.workspace:
                place.become(new[0])

    return editor.change(replace)


class TensorPlace(Guessed):
    """An input, a constant or a node output in a model; methods that change it return the changed model."""

    def __init__(self, editor: Editor, ref: TensorRef) -> None:
        self.editor = editor
        self._model = editor.model
        self._found = ref

    def __repr__(self) -> str:
        return f"<TensorPlace {visible(f'{self.address}: {self.name}')}>"

    @property
    def _ref(self) -> TensorRef:
        if self._model is not self.editor.model:
            self._found = self.editor.workspace.tensor(in_quotes(self.name) if self.name else f"@{self._found.address}")
            self._model = self.editor.model
        return self._found

    @property
    def name(self) -> str:
        """The name; "" for a constant in an attribute."""
        return self._found.name

    @property
    def address(self) -> str:
        """The address of the constant if there is one, else of the input or node output."""
        return self._ref.address

    @property
    def tensor(self) -> Tensor | None:
        """The record of a constant; None for other tensors."""
        return self._ref.tensor if isinstance(self._ref.tensor, Tensor) else None

    @property
    def type(self) -> Type | None:
        """The declared type."""
        return None if self._ref.scope is None else Index.type_of(self._ref.scope, self.name)

    @property
    def producer(self) -> Place | None:
        """The node that produces it."""
        found = None if self._ref.scope is None else self._ref.scope.producer(self.name)
        return None if found is None else Place(self.editor, found)

    @property
    def consumers(self) -> tuple[Place, ...]:
        """The nodes that consume it, each once, those in subgraphs last."""
        scope = self._ref.scope
        uses = () if scope is None else self.editor.workspace.index.consumers(scope, self.name)
        return self.editor.consumers(uses)

    def numpy(self) -> "NDArray[Any]":
        """Return the elements of a constant as an array; see `Tensor.numpy`.

        Raises:
            EditError: it is not a constant.
        """
        if self.tensor is None:
            raise EditError(f'"{visible(self.name)}" is not a constant', self.address)
        return self.tensor.numpy()

    def set_values(self, values: Any, dtype: str | None = None, *, lossy: bool = False) -> Model:
        """Set the elements of a constant; dtype and shape stay, unless others are given, such as "float16[2,8]".

        Raises:
            EditError: it is not a constant, or has another number of elements; or its dtype cannot represent a value,
                which `lossy` allows.
        """
        selector = f"@{self.address}"
        return self.editor.change(lambda workspace: set_elements(workspace, selector, values, dtype, lossy=lossy))

    def rename(self, name: str) -> Model:
        """Rename it with all references to it."""
        before = self.editor.model
        model = self.editor.rewrite(Rename(kind="tensor", names={self.name: name}))
        if self.editor.model is not before:
            self._found = self.editor.workspace.tensor(in_quotes(name))
            self._model = model
        return model

    def insert(self, op_type: str, *more: str, output: str | None = None, **attributes: Any) -> Model:
        """Insert a node between it and its consumers; `more` are further inputs, `output` names the new value."""
        table = attribute_types(None, op_type)
        edit = AddNode(
            op_type=op_type,
            input=(self.name, *more),
            output=(output or self.editor.workspace.fresh_name(f"{self.name}_{op_type}"),),
            attribute={name: attribute_value(each, table.get(name)) for name, each in attributes.items()},
            graph="/graph" if self._ref.scope is None else self._ref.scope.address,
            insert=True,
        )
        return self.editor.rewrite(edit)
