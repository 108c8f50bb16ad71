"""What an edit changes of the types of a model: the nodes and values that differ, and those that follow them.

Records that an edit does not change stay the same objects, so comparing models is fast.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from onnxjson.editing.type_relations import dims_of, may_be_shape
from onnxjson.model.constants import is_constant_node, own_constant, type_of_constant
from onnxjson.model.correspondence import Correspondence
from onnxjson.model.document import Attribute, Function, Graph, Node, Tensor, TensorShape, Type
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import function_key, operator_key, plain_domain

_FLOAT: Final = 1
"""The type of an attribute that is one number: an epsilon or alpha changes no type."""

_OPERATORS_OF_NUMBERS: Final = ("Constant", "Upsample")
"""Operators whose numbers may decide a shape."""


class Difference(Correspondence):
    """The difference of two models."""

    def __init__(self, old: Index, new: Index) -> None:
        old.take_over(new)
        super().__init__(old, new)
        self.changed: dict[Scope, set[int]] = {scope: set() for scope in new.scopes}
        """Nodes whose results may have other types, whatever their inputs are."""
        self.around: dict[Scope, set[int]] = {scope: set() for scope in new.scopes}
        """These nodes, and the nodes around them."""
        self.stated: dict[Scope, set[str]] = {scope: set() for scope in new.scopes}
        """Values whose shape was stated by the edit."""
        for scope in new.scopes:
            self._compare(scope)
        self._compare_functions()

    @cached_property
    def only_narrows(self) -> bool:
        """Whether the edit only states open sizes of inputs, so that the sizes stated of other values still hold."""
        main, former = self.new.main, self.old.main
        if main is None or former is None or self.old.model.functions is not self.new.model.functions:
            return False
        before, after = former.graph, main.graph
        assert isinstance(before, Graph)
        assert isinstance(after, Graph)
        if before.node is not after.node or before.initializer is not after.initializer:
            return False
        pairs = [(dims_of(former.types.get(name)), dims_of(main.types.get(name))) for name in main.inputs]
        return list(former.inputs) == list(main.inputs) and all([
            old == new
            or (old is not None and new is not None and len(old) == len(new)
                and all([not isinstance(a, int) or a == b for a, b in zip(old, new, strict=True)]))
            for old, new in pairs
        ])  # fmt: skip

    def _compare(self, scope: Scope) -> None:
        twin = self.twins.get(scope)
        if twin is not None and twin.graph is scope.graph:
            return
        known = {id(node) for node in twin.graph.node} if twin is not None else set()
        is_same = twin is not None and twin.graph.node is scope.graph.node
        for position, node in enumerate(() if is_same else scope.graph.node):
            if id(node) in known or self._is_same_node(scope, position):
                continue
            if not is_constant_node(node) or not _is_same_constant(twin, scope, node.output[0] if node.output else ""):
                self._add(scope, position)
        if isinstance(scope.graph, Function):
            return
        fields = ("input", "output", "value_info")
        if twin is None or any([getattr(twin.graph, each) is not getattr(scope.graph, each) for each in fields]):
            types = twin.types.values() if twin is not None else ()
            known = {id(shape) for each in types if (shape := _shape(each)) is not None}
            for name, each in scope.types.items():
                if (shape := _shape(each)) is not None and id(shape) not in known:
                    self.stated[scope].add(name)
        for name in _changed_values(scope, twin):
            producer = scope.producer_position(name)
            if producer is not None:
                self._add(scope, producer)
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


def first_followers(
    index: Index, pending: Iterable[int], size: int, done: Collection[int] = ()
) -> tuple[set[int], list[int]]:
    """Return the first `size` of some nodes of the main graph and their descendants, and the nodes to continue with.

    `done` are other nodes, of which it does not matter whether they are among the descendants.
    """
    main = index.main
    assert main is not None
    heap = sorted(pending)
    if len(heap) + len(done) == len(main.graph.node):
        return set(heap[:size]), heap[size:]
    seen, followers = set(heap), set[int]()
    while heap and len(followers) < size:
        position = heapq.heappop(heap)
        followers.add(position)
        for name in main.graph.node[position].output:
            for follower in index.consuming_nodes(main, name) if name else ():
                if follower is not None and follower not in seen:
                    seen.add(follower)
                    heapq.heappush(heap, follower)
    return followers, heap


def results(index: Index, positions: Collection[int]) -> dict[Scope, set[str]]:
    """Return the values that some nodes of the main graph produce, also in their subgraphs, by graph."""
    main = index.main
    assert main is not None
    values_of = {main: {name for each in positions for name in main.graph.node[each].output if name}}
    for scope in index.scopes:
        owner = scope.owner
        if owner is not None and (owner.position in positions if owner.scope is main else owner.scope in values_of):
            values_of[scope] = {*scope.producers}
    return values_of


def _changed_values(scope: Scope, former: Scope | None) -> Iterator[str]:
    """Yield the constants, inputs and stated types that differ."""
    graph, before = scope.graph, former.graph if former is not None else None
    assert isinstance(graph, Graph)
    if former is None or not isinstance(before, Graph):
        former, before, constants = None, Graph(), {}
    else:
        constants = {**former.initializers, **former.sparse_initializers}
    if graph.initializer is not before.initializer or graph.sparse_initializer is not before.sparse_initializer:
        for name in {**scope.initializers, **scope.sparse_initializers, **constants}:
            if not _is_same_constant(former, scope, name):
                yield name
    for values, others in (
        (graph.input, before.input),
        (graph.output, before.output),
        (graph.value_info, before.value_info),
    ):
        if values is not others:
            known, types = {id(each) for each in others}, {} if former is None else former.types
            yield from [
                each.name
                for each in values
                if each.name and id(each) not in known and types.get(each.name) != each.type
            ]
    if graph.input is not before.input and former is not None:
        yield from former.inputs.keys() - scope.inputs.keys()


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


def _shape(stated: Type) -> TensorShape | None:
    tensor = stated.tensor_type or stated.sparse_tensor_type
    return None if tensor is None else tensor.shape
