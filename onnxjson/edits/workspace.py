"""The model while edits work on it: found by selectors, changed record by record, with an index that stays right.

What an edit does not touch stays the very record it was, so the patch between before and after costs a comparison of
tuples. Edits that change only attributes or constants cost a copy of one tuple and keep the whole index; edits that
move nodes make the next question find it anew.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from onnxjson.display import visible
from onnxjson.document import Attribute, Function, Graph, Model, Node, SparseTensor, Tensor
from onnxjson.edits.surgery import put
from onnxjson.errors import EditError, SelectorError, UntrustedError
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.operators import plain_domain
from onnxjson.selectors import TensorRef, select_nodes, select_tensor

_HARMLESS: Final = frozenset({"metadata_props", "doc_string", "opset_import"})
"""Fields of a model with which no structure goes wrong as edits change them: another version, never two."""

NodeChange = Node | tuple[Node, ...] | None
"""What stands in the place of a node: another, none, or several."""


class Workspace:
    """A model that is being edited, and where its files are."""

    def __init__(self, model: Model, folder: Path | None = None) -> None:
        self._model = model
        self._index: Index | None = None
        self.before = model
        """The model as it was."""
        self.folder = folder
        """Where files that edits name are looked for; None where none may be read."""
        self.is_contained = False
        """Whether files that edits name must stand in `folder`."""
        self.model_folder: Path | None = folder
        """Where the model stands, and its external data is looked for; None where that is nowhere."""
        self.can_be_wrong = False
        """Whether more than attributes and constants was changed, so that the structure must be checked."""
        self._shifted: set[Scope] = set()
        self.files: dict[Path, Tensor] = {}
        """Values that edits put into .npy files, which are written when all edits are made."""

    @property
    def model(self) -> Model:
        """The model as it is now."""
        return self._model

    @property
    def index(self) -> Index:
        """The index of the model as it is now. What was got from an index is not to be used after nodes moved."""
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
        for scope in self.index.scopes:
            if scope.kind == "main":
                return scope
        raise EditError("the model has no graph")

    # Finding

    def select(self, selector: str) -> tuple[NodeRef, ...]:
        """The nodes that a selector finds, at least one.

        Raises:
            SelectorError: it is misspelled or finds nothing; the message says what is near.
        """
        return select_nodes(self._model, self.index, selector)

    def one(self, selector: str) -> NodeRef:
        """The one node that a selector finds.

        Raises:
            SelectorError: it is misspelled, finds nothing, or several nodes.
        """
        return select_nodes(self._model, self.index, selector, one=True)[0]

    def tensor(self, selector: str) -> TensorRef:
        """The one tensor that a selector finds: a constant, an input, an output of a node.

        Raises:
            SelectorError: it is misspelled, finds nothing, or several tensors.
        """
        return select_tensor(self._model, self.index, selector)

    def value(self, selector: str) -> tuple[Scope, str]:
        """The one value that a selector finds: the graph that defines it, and its name there.

        Raises:
            SelectorError: as `tensor`; or it is a constant inside an attribute, which has no name in a graph.
        """
        found = self.tensor(selector)
        if found.scope is None or not found.name:
            raise SelectorError(f"@{found.address} is a constant inside an attribute; a value of a graph is wanted")
        return found.scope, found.name

    def scope(self, address: str) -> Scope:
        """The graph or function at an address such as ``/graph`` or ``/functions/0``.

        Raises:
            SelectorError: none stands there.
        """
        found = next((scope for scope in self.index.scopes if scope.address == address), None)
        if found is None:
            from onnxjson.suggestions import suggest

            addresses = [scope.address for scope in self.index.scopes]
            hint = suggest(address, addresses) or f"there are {', '.join(addresses[:5])}"
            raise SelectorError(f"no graph stands at {address}; {hint}")
        return found

    def opset(self, scope: Scope | None, domain: str | None) -> int | None:
        """The version of a domain's operators in a graph (a function has its own imports); None where not imported."""
        imports = self._model.opset_import
        for each in scope.chain() if scope is not None else ():
            if isinstance(each.graph, Function):
                imports = each.graph.opset_import
        wanted = plain_domain(domain)
        return next((each.version for each in imports if plain_domain(each.domain) == wanted), None)

    def fresh_name(self, wanted: str, taken: Iterable[str] = ()) -> str:
        """`wanted`, or `wanted` with the first number that makes it a name no value of any graph has."""
        others = set(taken)
        name, number = wanted, 1
        while name in others or any(_knows(scope, name) for scope in self.index.scopes):
            name, number = f"{wanted}_{number}", number + 1
        return name

    def file(self, name: str) -> Path:
        """The place of a file that an edit names.

        Raises:
            EditError: no folder is given.
            UntrustedError: a script names a file outside its folder.
        """
        if self.folder is None:
            raise EditError(f"{visible(name)}: no file is read or written where no folder is given; name it: folder=")
        place = self.folder / name
        if self.is_contained and not _is_inside(place, self.folder):
            raise UntrustedError(f"{visible(name)} is not in the folder of the script, {visible(str(self.folder))}")
        return place

    # Changing

    def write_later(self, path: Path, tensor: Tensor) -> None:
        """Has the elements of a tensor (in ``raw_data`` or ``string_data``) put into a .npy file when all is done.

        Raises:
            EditError: another tensor goes there already, or something stands there.
        """
        if path in self.files or os.path.lexists(path):
            raise EditError(f"{visible(str(path), None)} exists; name another file")
        self.files[path] = tensor

    def replace_node(self, ref: NodeRef, node: Node) -> None:
        """Puts another node in the place of one."""
        self.replace_nodes(ref.scope, {ref.position: node})

    def replace_nodes(self, scope: Scope, changes: Mapping[int, NodeChange]) -> None:
        """Puts other nodes in the place of some: one, none or several for each position."""
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
        changed = msgspec.structs.replace(graph, node=tuple(nodes))
        if is_moving:
            self._moved(scope, changed)
        else:
            self._follow(scope, changed, positions)

    def replace_nodes_in(
        self, changes: Mapping[Scope, Mapping[int, NodeChange]], made_of: Mapping[Scope, tuple[Node, ...]] | None = None
    ) -> None:
        """`replace_nodes` in several graphs of one index, the inner before the outer.

        Args:
            changes: what stands in the place of nodes. Graphs in them that are those of the nodes as they were follow
                what changes inside.
            made_of: the nodes of the graphs when the changes were thought out; as they are now where left out.
        """
        before = {scope: scope.graph.node for scope in changes} if made_of is None else made_of
        for scope in sorted(changes, key=lambda each: each.address.count("/"), reverse=True):
            now = scope.graph.node
            followed = {
                position: new
                if now[position] is before[scope][position]
                else _followed(new, before[scope][position], now[position])
                for position, new in changes[scope].items()
            }
            self.replace_nodes(scope, followed)

    def replace_graph(self, scope: Scope, graph: Graph | Function) -> None:
        """Puts another graph, or body of a function, in the place of one; the nodes may be any."""
        self.can_be_wrong = True
        if graph.node is scope.graph.node and (
            not isinstance(graph, Function) or graph.attribute_proto is scope.graph.attribute_proto  # type: ignore[union-attr]
        ):
            self._follow(scope, graph, ())
        else:
            self._moved(scope, graph)

    def replace_tensor(self, ref: TensorRef, tensor: Tensor | SparseTensor) -> None:
        """Puts another constant in the place of one, under the same name."""
        self.replace_record(ref.address, tensor)

    def replace_record(self, address: str, record: Any) -> None:
        """Puts another record at an address at which no node and no graph stands: a tensor, a type, an attribute."""
        made = put(self._model, address, record)
        if isinstance(record, Attribute) and (record.g is not None or record.graphs):
            self._set(made[""], None)
            return
        if not isinstance(record, Tensor | SparseTensor):
            self.can_be_wrong = True
        index = self._index
        self._set(made[""], index)
        if index is not None:
            graphs = {each: made[each] for each in made if isinstance(made[each], Graph | Function)}
            index.follow(self._model, graphs)

    def replace_model(self, model: Model | None = None, **fields: Any) -> None:
        """Takes another model, or other values for fields of this one; whole graphs may be others."""
        new = model or self._model
        if fields:
            new = msgspec.structs.replace(new, **fields)
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
        """Takes a model that hangs together as this one does, such as one with other names or with less said of it."""
        was = self.can_be_wrong
        self.replace_model(model)
        self.can_be_wrong = was

    def _moved(self, scope: Scope, graph: Graph | Function) -> None:
        """Takes a graph in which nodes or subgraphs came, went or moved."""
        assert not any(outer in self._shifted for outer in scope.chain() if outer is not scope), (
            "an inner graph is changed before the ones around it"
        )
        self.can_be_wrong = True
        made = put(self._model, scope.address, graph)
        # The scopes of the old index still say what stands where, until somebody asks for the new index.
        for each in scope.chain():
            # A step of training sees the names of the main graph, which does not hold it.
            each.graph = made.get(each.address, each.graph)  # type: ignore[assignment]
        self._shifted.add(scope)
        self._set(made[""], None)

    def _follow(self, scope: Scope, graph: Graph | Function, positions: list[int] | tuple[()]) -> None:
        made = put(self._model, scope.address, graph)
        index = self._index
        if index is None:
            for each in scope.chain():
                each.graph = made.get(each.address, each.graph)  # type: ignore[assignment]
        else:
            graphs = {each.address: made[each.address] for each in scope.chain() if each.address in made}
            index.follow(_model(made), graphs, scope, positions)
        self._set(made[""], index)

    def _set(self, model: Any, index: Index | None) -> None:
        self._model = model
        self._index = index


def _followed(new: NodeChange, old: Node, now: Node) -> NodeChange:
    """What is to stand in the place of a node, with its graphs as they are now where it has them as they were."""
    if new is None:
        return None
    if not isinstance(new, Node):
        return tuple([_with_graphs(each, old, now) for each in new])
    return _with_graphs(new, old, now)


def _with_graphs(node: Node, old: Node, now: Node) -> Node:
    graphs = dict(zip(_graphs(old), _graphs_of(now), strict=True))
    attributes = tuple(
        [
            msgspec.structs.replace(
                each,
                g=graphs.get(id(each.g), each.g),
                graphs=tuple([graphs.get(id(graph), graph) for graph in each.graphs]),
            )
            if each.g is not None or each.graphs
            else each
            for each in node.attribute
        ]
    )
    return msgspec.structs.replace(node, attribute=attributes)


def _is_inside(place: Path, folder: Path) -> bool:
    """Whether a path leads to a place in a folder, links followed."""
    return place.resolve().is_relative_to(folder.resolve())


def _model(made: Mapping[str, Any]) -> Model:
    model = made[""]
    assert isinstance(model, Model)
    return model


def _graphs_of(node: Node) -> list[Graph]:
    """The subgraphs of a node."""
    return [graph for each in node.attribute for graph in (each.g, *each.graphs) if graph is not None]


def _graphs(node: Node) -> list[int]:
    """The subgraphs of a node, by identity."""
    return [id(graph) for graph in _graphs_of(node)]


def _same_names(old: Node, new: Node) -> bool:
    return (old.input, old.output, old.op_type, old.domain) == (new.input, new.output, new.op_type, new.domain)


def _knows(scope: Scope, name: str) -> bool:
    return scope.defines(name) or name in scope.takers
