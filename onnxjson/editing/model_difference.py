"""Which values may have other types after an edit, and which of them have, among the first nodes that it affects.

Graphs, nodes and values of the model after an edit are compared with those before. Records that an edit does not change
stay the same objects, so this is fast.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from onnxjson.editing.partial_inference import InferredPart, Part, complaint
from onnxjson.editing.type_relations import may_be_shape
from onnxjson.model.constants import is_constant_node, own_constant, type_of_constant
from onnxjson.model.document import Attribute, Function, Graph, Model, Node, Tensor, TensorShape, Type
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import function_key, operator_key, plain_domain
from onnxjson.model.types import format_type

_FLOAT: Final = 1
"""The type of an attribute that is one number: an epsilon or alpha changes no type."""

_OPERATORS_OF_NUMBERS: Final = ("Constant", "Upsample")
"""Operators whose numbers may decide a shape."""


class Difference:
    """The difference of two models."""

    def __init__(self, old: Index, new: Index) -> None:
        old.take_over(new)
        self.old = old
        self.new = new
        self.twins = _twins(old, new)
        """The graph before, by each graph."""
        self.changed: dict[Scope, set[int]] = {scope: set() for scope in new.scopes}
        """Nodes whose results may have other types, whatever their inputs are."""
        self.around: dict[Scope, set[int]] = {scope: set() for scope in new.scopes}
        """These nodes, and the nodes around them."""
        self.stated: dict[Scope, set[str]] = {scope: set() for scope in new.scopes}
        """Values whose shape was stated by the edit."""
        for scope in new.scopes:
            self._compare(scope)
        self._compare_functions()

    def _compare(self, scope: Scope) -> None:
        there = self.twins.get(scope)
        if there is not None and there.graph is scope.graph:
            return
        known = {id(node) for node in there.graph.node} if there is not None else set()
        is_same = there is not None and there.graph.node is scope.graph.node
        for position, node in enumerate(() if is_same else scope.graph.node):
            if id(node) in known or self._is_same_node(scope, position):
                continue
            if not is_constant_node(node) or not _is_same_constant(there, scope, node.output[0] if node.output else ""):
                self._add(scope, position)
        if isinstance(scope.graph, Function):
            return
        known = {id(shape) for each in (there.types.values() if there else ()) if (shape := _shape(each)) is not None}
        for name, each in scope.types.items():
            if (shape := _shape(each)) is not None and id(shape) not in known:
                self.stated[scope].add(name)
        for name in _changed_values(scope, there):
            producer = scope.producer(name)
            if producer is not None:
                self._add(*producer)
                continue
            for use in self.new.consumers(scope, name):
                if use.position is not None:
                    self._add(use.scope, use.position)

    def _add(self, scope: Scope, position: int) -> None:
        self.changed[scope].add(position)
        self.around[scope].add(position)
        owner = scope.owner
        while owner is not None:
            self.around[owner.scope].add(owner.position)
            owner = owner.scope.owner

    def _is_same_node(self, scope: Scope, position: int) -> bool:
        node, twin = scope.graph.node[position], self.counterpart(scope, position)
        if twin is None or operator_key(twin.node) != operator_key(node):
            return False
        return (twin.node.input, twin.node.output) == (node.input, node.output) and _plain(twin.node) == _plain(node)

    def counterpart(self, scope: Scope, position: int) -> NodeRef | None:
        """Return the old node that produces the same values, or has the same name."""
        there, node = self.twins.get(scope), scope.graph.node[position]
        if there is None:
            return None
        if position < len(there.graph.node) and there.graph.node[position] is node:
            return NodeRef(there, position)
        place = next((there.producers[name][0] for name in node.output if name in there.producers), None)
        if place is None and node.name:
            place = next(
                (each.position for each in self.old.nodes_with("name", node.name) if each.scope is there), None
            )
        return None if place is None else NodeRef(there, place)

    def former_name(self, scope: Scope, name: str) -> str:
        """Return the name that a value had before."""
        there = self.twins.get(scope)
        if there is not None and name not in there.producers and name in scope.producers:
            position, slot = scope.producers[name]
            twin = self.counterpart(scope, position)
            if twin is not None and slot < len(twin.node.output):
                return twin.node.output[slot]
        return name

    def _compare_functions(self) -> None:
        """Record the calls of changed functions as changed nodes."""
        before = {function_key(each): each for each in self.old.model.functions}
        changed = {key for each in self.new.model.functions if before.get(key := function_key(each)) is not each}
        count = 0
        while len(changed) > count:
            count = len(changed)
            for scope in self.new.scopes:
                for position, node in enumerate(scope.graph.node):
                    if operator_key(node) in changed:
                        self._add(scope, position)
                        if isinstance(graph := scope.root.graph, Function):
                            changed.add(function_key(graph))


def first_followers(index: Index, pending: Iterable[int], size: int) -> tuple[set[int], list[int]]:
    """Return the first `size` of some nodes of the main graph and their descendants, and the nodes to continue with."""
    main = index.main
    assert main is not None
    heap = sorted(pending)
    seen, found = set(heap), set[int]()
    while heap and len(found) < size:
        position = heapq.heappop(heap)
        found.add(position)
        for name in main.graph.node[position].output:
            for each in index.consuming_nodes(main, name) if name else ():
                if each is not None and each not in seen:
                    seen.add(each)
                    heapq.heappush(heap, each)
    return found, heap


def results(index: Index, positions: Collection[int]) -> dict[Scope, set[str]]:
    """Return the values that some nodes of the main graph produce, also in their subgraphs, by graph."""
    main = index.main
    assert main is not None
    found = {main: {name for each in positions for name in main.graph.node[each].output if name}}
    for scope in index.scopes:
        owner = scope.owner
        if owner is not None and (owner.position in positions if owner.scope is main else owner.scope in found):
            found[scope] = {*scope.producers}
    return found


def _twins(old: Index, new: Index) -> dict[Scope, Scope]:
    """Return the old graph for each graph; subgraphs correspond if the nodes around them produce the same value."""
    before = {key: scope for scope, key in _keys(old)}
    return {scope: before[key] for scope, key in _keys(new) if key in before}


def _keys(index: Index) -> Iterator[tuple[Scope, object]]:
    keys: dict[Scope, object] = {}
    for scope in index.scopes:
        key: object = scope.address
        if scope.owner is not None:
            around, node = scope.owner.scope, scope.owner.node
            key = (keys[around], *node.output[:1], scope.address.removeprefix(scope.owner.address))
        keys[scope] = key
        yield scope, key


def _changed_values(scope: Scope, there: Scope | None) -> Iterator[str]:
    """Yield the constants, inputs and stated types that differ."""
    graph, before = scope.graph, there.graph if there is not None else None
    assert isinstance(graph, Graph)
    if there is None or not isinstance(before, Graph):
        before, constants, types = Graph(), {}, {}
    else:
        constants, types = {**there.initializers, **there.sparse_initializers}, there.types
    if graph.initializer is not before.initializer or graph.sparse_initializer is not before.sparse_initializer:
        for name in {**scope.initializers, **scope.sparse_initializers, **constants}:
            if not _is_same_constant(there, scope, name):
                yield name
    for values, others in (
        (graph.input, before.input),
        (graph.output, before.output),
        (graph.value_info, before.value_info),
    ):
        if values is not others:
            known = {id(each) for each in others}
            yield from [
                each.name
                for each in values
                if each.name and id(each) not in known and types.get(each.name) != each.type
            ]
    if graph.input is not before.input and there is not None:
        yield from there.inputs.keys() - scope.inputs.keys()


def _shape(stated: Type) -> TensorShape | None:
    tensor = stated.tensor_type or stated.sparse_tensor_type
    return None if tensor is None else tensor.shape


def _is_same_constant(there: Scope | None, scope: Scope, name: str) -> bool:
    """Whether a name stands for a constant that decides the same shapes, be it an initializer or a node Constant."""
    before, after = (own_constant(each, name) if each is not None else None for each in (there, scope))
    old, new = (each.value if each is not None else None for each in (before, after))
    if old is None or new is None or (kind := type_of_constant(new)) != type_of_constant(old):
        return False
    if old is new or not may_be_shape(kind):
        return True
    if isinstance(old, Tensor) and isinstance(new, Tensor):  # in a node Constant it has another name, or none
        return replace(old, name=None) == replace(new, name=None)
    return old == new


def _plain(node: Node) -> tuple[Attribute, ...]:
    """Return the attributes without what does not matter for types."""
    is_standard = not plain_domain(node.domain) and node.op_type not in _OPERATORS_OF_NUMBERS
    kept = [each for each in node.attribute if not (is_standard and each.type == _FLOAT)]
    return tuple([replace(each, doc_string=None, g=None, graphs=()) for each in kept])


_MOST: Final = 96  # nodes that are inferred; more would not be seen


class Flow(NamedTuple):
    """What an edit changes in the nodes after it, by address of the node before the edit."""

    types: Mapping[str, tuple[Type | None, Type]] = {}
    """Types of the first output before and after, where they differ."""
    complaints: Mapping[str, str] = {}
    """New mistakes: nodes that cannot have their inputs."""


class TypeFlow:
    """Predicts changes of the types in the main graph of one model."""

    def __init__(self, before: Index, folder: Path | None) -> None:
        self.model = before.model
        self._before, self._folder = before, folder
        self._known: dict[tuple[int, ...], InferredPart] = {}  # Most edits that are typed affect the same nodes.

    def to(self, after: Model) -> Flow:
        """Return how an edit that leads to `after` changes the types of the first nodes that it affects.

        Raises:
            WorkerError, EditError, UntrustedError: see `Part.infer`.
        """
        difference = Difference(self._before, Index(after))
        main = difference.new.main
        if main is None or main not in difference.twins or not difference.around[main]:
            return Flow()
        positions = sorted(first_followers(difference.new, difference.around[main], _MOST)[0])
        twins = {position: difference.counterpart(main, position) for position in positions}
        old = tuple([twin.position for twin in twins.values() if twin is not None])
        if old not in self._known:
            self._known = {old: self._inferred(self._before, old)}
        was, now = self._known[old], self._inferred(difference.new, positions)
        types: dict[str, tuple[Type | None, Type]] = {}
        complaints: dict[str, str] = {}
        for position, twin in twins.items():
            outputs = main.graph.node[position].output
            if twin is None or not outputs:
                continue
            new = now.types.get(main.address, {}).get(outputs[0])
            name = difference.former_name(main, outputs[0])
            former = was.types.get(twin.scope.address, {}).get(name) or twin.scope.types.get(name)
            if new is not None and format_type(new) != (former and format_type(former)):
                types[twin.address] = former, new
            text = complaint(now, NodeRef(main, position))
            if text is not None and complaint(was, twin) is None:
                complaints[twin.address] = text.rpartition("InferenceError] ")[2]
        return Flow(types, complaints)

    def _inferred(self, index: Index, positions: Sequence[int]) -> InferredPart:
        names = {scope.address: names for scope, names in results(index, set(positions)).items()}
        return Part(index, positions, {}).infer(names, {}, self._folder)
