"""The model during edits: find elements by selectors, replace records, and keep the index up to date.

Records that an edit does not change stay the same objects, so comparing the models before and after is cheap. Edits
that change only attributes or constants copy one tuple and keep the whole index; after edits that move nodes, the
index is built again when it is needed.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from onnxjson.editing.pinned_addresses import unpinned
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Attribute, Function, Graph, Model, Node, SparseTensor, Tensor
from onnxjson.model.errors import EditError, SelectorError, UntrustedError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import plain_domain
from onnxjson.model.renaming import fresh_name
from onnxjson.model.walking import replace_at
from onnxjson.patterns.names import TensorRef
from onnxjson.patterns.selectors import select_nodes, select_tensor, select_tensors
from onnxjson.storage.constant_reading import with_elements
from onnxjson.storage.external import Resolver

_HARMLESS: Final = frozenset({"metadata_props", "doc_string", "opset_import"})
"""Fields of a model that edits can change without breaking its structure."""

NodeChange = Node | tuple[Node, ...] | None
"""Replacement of a node: another node, none, or several."""


class NewModel(NamedTuple):
    """A new model, and remarks for the user."""

    model: Model
    notes: tuple[str, ...]


class Chosen(str):
    """A selector for nodes that are already found, in the index of a workspace."""

    refs: tuple[NodeRef, ...]

    @classmethod
    def of(cls, refs: Iterable[NodeRef]) -> "Chosen":
        """Return the selector of nodes."""
        found = tuple(refs)
        made = cls(f"@{found[0].address}")
        made.refs = found
        return made


class Workspace:
    """A model that is being edited, and the folders of its files."""

    def __init__(self, model: Model, folder: Path | None = None) -> None:
        self._model = model
        self._index: Index | None = None
        self.before = model
        """The model before the edits."""
        self.folder = folder
        """Folder of files that edits name; None if no file may be read."""
        self.is_contained = False
        """Whether files that edits name must be inside `folder`."""
        self.model_folder: Path | None = folder
        """Folder of the model and its external data; None if there is none."""
        self.can_be_wrong = False
        """Whether more than attributes and constants changed, so that the structure must be checked."""
        self.typed = model
        """The model, as it was when its stated types were correct; see `inference.propagate_types`."""
        self.complaints: dict[str, str] = {}
        """Mistakes of types and shapes since `before`, by address of the node."""
        self.examples: dict[str, int] = {}
        """Sizes with which the nodes must work as well, by new names of dimensions."""
        self.is_resized = False
        """Whether an edit changed the shape of an input."""
        self.is_forced = False
        """Whether an edit allows such mistakes."""
        self._shifted: set[Scope] = set()
        self.files: dict[Path, Tensor] = {}
        """Values that are written to .npy files after all edits."""

    @property
    def model(self) -> Model:
        """The current model."""
        return self._model

    @property
    def index(self) -> Index:
        """Index of the current model. Do not use results of an older index after nodes moved."""
        if self._index is None:
            self._index = Index(self._model)
            self._shifted = set()
        return self._index

    @property
    def graph(self) -> Graph:
        """The main graph.

        Raises:
            EditError: there is none.
        """
        if self._model.graph is None:
            raise EditError("the model has no graph")
        return self._model.graph

    @property
    def main(self) -> Scope:
        """The scope of the main graph.

        Raises:
            EditError: there is none.
        """
        return main_scope(self.index)

    # Finding

    def select(self, selector: str) -> tuple[NodeRef, ...]:
        """Return the nodes that a selector matches, at least one.

        Raises:
            SelectorError: it is not valid or matches nothing; the message suggests similar names.
        """
        if isinstance(selector, Chosen):
            return selector.refs
        return select_nodes(self._model, self.index, unpinned(self._model, selector))

    def one(self, selector: str) -> NodeRef:
        """Return the only node that a selector matches.

        Raises:
            SelectorError: it is not valid, or does not match exactly one node.
        """
        return select_nodes(self._model, self.index, unpinned(self._model, selector), one=True)[0]

    def tensor(self, selector: str) -> TensorRef:
        """Return the only tensor that a selector matches: a constant, an input, or an output of a node.

        Raises:
            SelectorError: it is not valid, or does not match exactly one tensor.
        """
        return select_tensor(self._model, self.index, unpinned(self._model, selector))

    def value(self, selector: str) -> tuple[Scope, str]:
        """Return the only value that a selector matches: the graph that defines it, and its name there.

        Raises:
            SelectorError: as `tensor`; or it is a constant in an attribute, which has no name in a graph.
        """
        ref = self.tensor(selector)
        if ref.scope is None or not ref.name:
            raise SelectorError(f"@{ref.address} is a constant inside an attribute; a value of a graph is needed")
        return ref.scope, ref.name

    def tensors(self, selector: str) -> list[TensorRef]:
        """Return the tensors that a selector matches, as `tensor`; a pattern may match several."""
        return select_tensors(self._model, self.index, unpinned(self._model, selector))

    def values(self, selector: str) -> list[tuple[str, str]]:
        """Return the values that a selector matches, as `value`, with addresses of graphs; a pattern may match several.

        Constants, inputs and outputs of the model are left out where several match.
        """
        refs = self.tensors(selector)
        if len(refs) == 1:
            scope, name = self.value(selector)
            return [(scope.address, name)]
        outer = {*self.main.inputs, *self.main.output_names}
        values = [
            (ref.scope.address, ref.name)
            for ref in refs
            if ref.scope is not None and ref.tensor is None and not (ref.scope is self.main and ref.name in outer)
        ]
        if not values:
            raise SelectorError(f"{visible(selector)} matches only constants, inputs and outputs of the model")
        return values

    def scope(self, address: str) -> Scope:
        """Return the scope of the graph or function at an address such as ``/graph`` or ``/functions/0``.

        Raises:
            SelectorError: there is none.
        """
        address = unpinned(self._model, address)
        at_address = self.index.by_address.get(address)
        if at_address is None:
            addresses = [scope.address for scope in self.index.scopes]
            hint = suggest(address, addresses) or f"there are {listed(addresses, 5)}"
            raise SelectorError(f"there is no graph at {address}; {hint}")
        return at_address

    def opset(self, scope: Scope | None, domain: str | None) -> int | None:
        """Return the version of an operator set in a graph (functions have their own imports); None if not imported."""
        graph = None if scope is None else scope.root.graph
        imports = graph.opset_import if isinstance(graph, Function) else self._model.opset_import
        wanted = plain_domain(domain)
        return next((each.version for each in imports if plain_domain(each.domain) == wanted), None)

    def fresh_name(self, wanted: str, taken: Iterable[str] = ()) -> str:
        """See `onnxjson.model.renaming.fresh_name`."""
        return fresh_name(self.index, wanted, taken)

    def file(self, name: str) -> Path:
        """Return the path of a file that an edit names.

        Raises:
            EditError: there is no folder.
            UntrustedError: a script names a file outside its folder.
        """
        if self.folder is None:
            raise EditError(f"{visible(name)}: no file is read or written without a folder; pass folder=")
        place = self.folder / name
        if self.is_contained and not place.resolve().is_relative_to(self.folder.resolve()):
            raise UntrustedError(f"{visible(name)} is not in the folder of the script, {visible(str(self.folder))}")
        return place

    def with_elements(self, tensor: Tensor) -> Tensor:
        """Return a constant with its elements; those of external data are read, next to the model."""
        return with_elements(tensor, Resolver(self.model_folder or Path()))

    # Changing

    def write_later(self, path: Path, tensor: Tensor) -> None:
        """Write the elements of a tensor (in ``raw_data`` or ``string_data``) to a .npy file after all edits.

        Raises:
            EditError: the file exists, or another tensor is to be written there.
        """
        if path in self.files or os.path.lexists(path):
            raise EditError(f"{visible(str(path), None)} exists; name another file")
        self.files[path] = tensor

    def replace_node(self, ref: NodeRef, node: Node) -> None:
        """Replace a node."""
        self.replace_nodes(ref.scope, {ref.position: node})

    def replace_nodes(self, scope: Scope, changes: Mapping[int, NodeChange]) -> None:
        """Replace nodes of a graph by one, none or several nodes each."""
        graph = scope.graph
        nodes = list(graph.node)
        positions = []
        is_moving = False
        for position in sorted(changes, reverse=True):
            new = changes[position]
            if isinstance(new, Node):
                is_moving = is_moving or _graphs(nodes[position]) != _graphs(new)
                self.can_be_wrong = self.can_be_wrong or not _same_names(nodes[position], new)
                nodes[position] = new
                positions.append(position)
            else:
                is_moving = True
                nodes[position : position + 1] = new or ()
        changed = replace(graph, node=tuple(nodes))
        if is_moving:
            self._moved(scope, changed)
        else:
            self._follow(scope, changed, positions)

    def replace_nodes_in(
        self, changes: Mapping[Scope, Mapping[int, NodeChange]], made_of: Mapping[Scope, tuple[Node, ...]] | None = None
    ) -> None:
        """`replace_nodes` in several graphs of one index, inner graphs first.

        Subgraphs in new nodes that are those of the old nodes get the changes that are made inside them. `made_of` are
        the nodes of the graphs when the replacements were built; the current ones by default.
        """
        before = {scope: scope.graph.node for scope in changes} if made_of is None else made_of
        for scope in sorted(changes, key=lambda each: each.address.count("/"), reverse=True):
            nodes = scope.graph.node
            followed = {
                position: new
                if nodes[position] is before[scope][position]
                else _followed(new, before[scope][position], nodes[position])
                for position, new in changes[scope].items()
            }
            self.replace_nodes(scope, followed)

    def replace_graph(self, scope: Scope, graph: Graph | Function) -> None:
        """Replace a graph or the body of a function; all nodes may be different."""
        self.can_be_wrong = True
        if graph.node is scope.graph.node and (
            not isinstance(graph, Function) or graph.attribute_proto is scope.graph.attribute_proto  # type: ignore[union-attr]
        ):
            self._follow(scope, graph, ())
        else:
            self._moved(scope, graph)

    def replace_record(self, address: str, record: Any) -> None:
        """Replace a record that is neither a node nor a graph: a tensor, a type, an attribute."""
        changed = replace_at(self._model, address, record)
        if isinstance(record, Attribute) and (record.g is not None or record.graphs):
            self._set(changed[""], None)
            return
        if not isinstance(record, Tensor | SparseTensor):
            self.can_be_wrong = True
        index = self._index
        self._set(changed[""], index)
        if index is not None:
            graphs = {each: changed[each] for each in changed if isinstance(changed[each], Graph | Function)}
            index.follow(self._model, graphs)

    def replace_model(self, model: Model | None = None, **fields: Any) -> None:
        """Replace the model, or fields of it; whole graphs may be different."""
        new = model or self._model
        if fields:
            new = replace(new, **fields)
        if new is self._model:
            return
        self.can_be_wrong = self.can_be_wrong or model is not None or not fields.keys() <= _HARMLESS
        is_same = all(
            [getattr(new, name) is getattr(self._model, name) for name in ("graph", "functions", "training_info")]
        )
        index = self._index if is_same else None
        self._set(new, index)
        if index is not None:
            index.follow(new, {})

    def replace_equivalent(self, model: Model) -> None:
        """Replace the model by one with the same structure, such as one with other names or without doc strings."""
        was, is_typed = self.can_be_wrong, self.typed is self._model
        self.replace_model(model)
        self.can_be_wrong = was
        if is_typed:
            self.keep_types()

    def keep_types(self) -> None:
        """Record that the stated types are correct, or as the user wants them."""
        self.typed = self._model

    def _moved(self, scope: Scope, graph: Graph | Function) -> None:
        """Replace a graph in which nodes or subgraphs were added, removed or moved."""
        assert not any(outer in self._shifted for outer in scope.chain() if outer is not scope), (
            "an inner graph is changed before the ones around it"
        )
        self.can_be_wrong = True
        changed = replace_at(self._model, scope.address, graph)
        # The scopes of the old index are still used until the new index is needed.
        for outer_scope in scope.chain():
            # A step of training sees the names of the main graph, which does not contain it.
            outer_scope.graph = changed.get(outer_scope.address, outer_scope.graph)  # type: ignore[assignment]
        self._shifted.add(scope)
        self._set(changed[""], None)

    def _follow(self, scope: Scope, graph: Graph | Function, positions: list[int] | tuple[()]) -> None:
        changed = replace_at(self._model, scope.address, graph)
        index = self._index
        if index is None:
            for each in scope.chain():
                each.graph = changed.get(each.address, each.graph)  # type: ignore[assignment]
        else:
            graphs = {each.address: changed[each.address] for each in scope.chain() if each.address in changed}
            model = changed[""]
            assert isinstance(model, Model)
            index.follow(model, graphs, scope, positions)
        self._set(changed[""], index)

    def _set(self, model: Any, index: Index | None) -> None:
        self._model, self._index = model, index


def main_scope(index: Index, which: str = "the model") -> Scope:
    """Return the scope of the main graph.

    Raises:
        EditError: there is none; the message names the model as `which`.
    """
    if index.main is None:
        raise EditError(f"{which} has no graph")
    return index.main


def _followed(new: NodeChange, old: Node, current: Node) -> NodeChange:
    """Return the replacement of a node, with the current subgraphs where it has those of the old node."""
    if new is None:
        return None
    if not isinstance(new, Node):
        return tuple([_with_graphs(each, old, current) for each in new])
    return _with_graphs(new, old, current)


def _with_graphs(node: Node, old: Node, now: Node) -> Node:
    current = dict(zip(_graphs(old), _graphs_of(now), strict=True))
    attributes = []
    for attribute in node.attribute:
        if attribute.g is not None or attribute.graphs:
            graphs = tuple([current.get(id(graph), graph) for graph in attribute.graphs])
            attribute = replace(attribute, g=current.get(id(attribute.g), attribute.g), graphs=graphs)
        attributes.append(attribute)
    return replace(node, attribute=tuple(attributes))


def _graphs_of(node: Node) -> list[Graph]:
    return [graph for each in node.attribute for graph in (each.g, *each.graphs) if graph is not None]


def _graphs(node: Node) -> list[int]:
    """Return the identities of the subgraphs of a node."""
    return [id(graph) for graph in _graphs_of(node)]


def _same_names(old: Node, new: Node) -> bool:
    return (old.input, old.output, old.op_type, old.domain) == (new.input, new.output, new.op_type, new.domain)
