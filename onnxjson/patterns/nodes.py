"""Nodes of a model as patterns see them: their operators, their attributes, and the producers of their inputs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Final, TypeAlias

from onnxjson.model.document import Attribute, Function, Model, Node
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.messages import value_of
from onnxjson.model.operators import attribute_defaults, plain_domain, table_signature
from onnxjson.patterns.expression import AttributeValue, Bound, Operator
from onnxjson.patterns.literals import Literals, Value

Bindings: TypeAlias = dict[str, Value | Attribute]

_PLAIN: Final = (None, "", "ai.onnx")

new_ref: Final[Callable[[tuple[Scope, int]], NodeRef]] = partial(tuple.__new__, NodeRef)
new_value: Final[Callable[[tuple[Scope | None, str]], Value]] = partial(tuple.__new__, Value)
"""Create records twice as fast as their classes do."""


class Nodes:
    """The nodes of one model; constants are equal within a relative `tolerance`."""

    def __init__(self, model: Model, index: Index, tolerance: float) -> None:
        self.index = index
        self.literals = Literals(index, tolerance)
        self.computed = cache(_computed)
        """The nodes and outputs of the values that a graph computes; of two definitions, the first one counts."""
        self.are_calling = cache(_are_calling)
        """For each node of a graph, whether it calls one of the operators."""
        self._versions = {plain_domain(each.domain): each.version or 0 for each in model.opset_import}

    def calling(self, operators: Sequence[Operator]) -> Sequence[NodeRef]:
        """Return the nodes that call one of the operators, in the order of the file."""
        if any([each.name == "*" for each in operators]):
            return self.index.node_refs
        scopes = self.index.scopes
        return self.index.in_order(
            [NodeRef(scope, at) for scope in scopes for at in positions_calling(scope, operators)]
        )

    def producer(self, scope: Scope, name: str) -> NodeRef | None:
        """Return the node that produces a value; see `Index.producer`."""
        place = self.computed(scope).get(name)
        if place is not None:
            return new_ref((scope, place[0]))
        return None if scope.outer is None else self.index.producer(scope, name)

    def attribute(self, ref: NodeRef, name: str) -> Attribute | None:
        """Return an attribute of a node, or its default."""
        node = ref.node
        for each in node.attribute:
            if each.name == name:
                return each
        return attribute_defaults(node.domain, node.op_type, self._version(ref)).get(name)

    def binds(self, name: str, want: AttributeValue, ref: NodeRef, bindings: Bindings) -> bool:
        """Whether an attribute of a node fits; if the pattern names it, bind the name."""
        found = self.attribute(ref, name)
        if found is None or not isinstance(want, Bound):
            return found is not None and self.literals.has(found, want)
        before = bindings.setdefault(want.name, found)
        return before is found or (isinstance(before, Attribute) and value_of(before) == value_of(found))

    def is_optional(self, ref: NodeRef, slot: int) -> bool:
        """Whether the input of a node at a position may be omitted."""
        signature = table_signature(ref.node.domain, ref.node.op_type, self._version(ref))
        formal = None if signature is None or slot >= len(signature.inputs) else signature.inputs[slot]
        return formal is not None and formal.option == "optional"

    def _version(self, ref: NodeRef) -> int:
        graph = ref.scope.graph
        domain = plain_domain(ref.node.domain)
        if isinstance(graph, Function):
            stated = {plain_domain(each.domain): each.version or 0 for each in graph.opset_import}
            return stated.get(domain, self._versions.get(domain, 0))
        return self._versions.get(domain, 0)


def is_calling(node: Node, operators: Sequence[Operator]) -> bool:
    """Whether a node calls one of the operators."""
    for each in operators:
        if each.name == "*" or (node.op_type == each.name and plain_domain(node.domain) == each.domain):
            return True
    return False


def positions_calling(scope: Scope, operators: Sequence[Operator]) -> Iterable[int]:
    """Return the positions of the nodes of a graph that call one of the operators, in their order."""
    nodes = scope.graph.node
    domains: dict[str, set[str | None]] = {}
    for each in operators:
        domains.setdefault(each.name, set()).update((each.domain,) if each.domain else _PLAIN)
    if "*" in domains:
        return range(len(nodes))
    found = [at for name in domains for at in scope.callers.get(name, ()) if nodes[at].domain in domains[name]]
    return found if len(domains) == 1 else sorted(found)


def _are_calling(scope: Scope, operators: Sequence[Operator]) -> bytearray:
    found = bytearray(len(scope.graph.node))
    for position in positions_calling(scope, operators):
        found[position] = 1
    return found


def _computed(scope: Scope) -> Mapping[str, tuple[int, int]]:
    others = {*scope.inputs, *scope.initializers, *scope.sparse_initializers}
    if scope.producers.keys().isdisjoint(others):
        return scope.producers
    return {name: place for name, place in scope.producers.items() if name not in others}
