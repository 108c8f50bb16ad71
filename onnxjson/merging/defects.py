"""Defects of one model: undefined, duplicate and disputed names, cycles; and the topological order of nodes."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import TypeVar

from onnxjson.model import document as d
from onnxjson.model.constants import type_of_constant
from onnxjson.model.dataflow import consumed_names, consumes_any, is_ordered, producers_among, topological_order
from onnxjson.model.document import Node
from onnxjson.model.index import Index, Scope
from onnxjson.model.types import contradict

Key = TypeVar("Key", bound=Hashable)


def in_topological_order(items: list[Key], nodes: Mapping[Key, Node]) -> list[Key]:
    """Return the items as they are if their order is topological; else each as early as its inputs allow.

    Where nodes form a cycle all items keep their order.
    """
    given = [nodes[item] for item in items]
    if is_ordered(given):
        return items
    order = topological_order(producers_among(given))
    return items if len(order) < len(items) else [items[place] for place in order]


def _cycle(nodes: tuple[Node, ...]) -> list[int]:
    if is_ordered(nodes):
        return []
    return sorted(set(range(len(nodes))).difference(topological_order(producers_among(nodes))))


def fitting_place(node: Node, nodes: tuple[Node, ...], place: int) -> int:
    """Position nearest to `place` that is after all producers of a node's inputs and before all its consumers.

    If a consumer comes before a producer, no position fits; the result is then after the producers.
    """
    names = set(consumed_names(node))
    produced = {name for name in node.output if name}
    behind = next((at + 1 for at in range(len(nodes) - 1, -1, -1) if not names.isdisjoint(nodes[at].output)), 0)
    before = next((at for at, each in enumerate(nodes) if consumes_any(each, produced)), len(nodes))
    return max(min(place, before), behind)


def is_consumed_before(node: Node, nodes: tuple[Node, ...], place: int) -> bool:
    """Whether one of the nodes before a position consumes an output of a node."""
    produced = {name for name in node.output if name}
    return any([consumes_any(each, produced) for each in nodes[:place]])


def is_misplaced(nodes: tuple[Node, ...], place: int) -> bool:
    """Whether the node at a position consumes what is produced there or later, or produces what is consumed before."""
    node = nodes[place]
    taken = set(consumed_names(node))
    return any([not taken.isdisjoint(each.output) for each in nodes[place:]]) or is_consumed_before(node, nodes, place)


class Defects:
    """Defects of a model.

    Attributes:
        undefined: names that are consumed and not defined -> the first graph with this defect, and the name.
        duplicates: the same for names that are defined twice in a graph.
        disputed: the same for names whose declared types contradict each other.
        cycles: graphs with the positions of the nodes that have no topological order.
    """

    def __init__(self, index: Index) -> None:
        self.undefined: dict[str, tuple[Scope, str]] = {}
        self.duplicates: dict[str, tuple[Scope, str]] = {}
        self.disputed: dict[str, tuple[Scope, str]] = {}
        self.cycles: list[tuple[Scope, list[int]]] = []
        for scope in index.scopes:
            others = [name for name in scope.consumers if name not in scope.producers]
            missing = [name for name in others if index.defining_scope(scope, name) is None]
            defects = (
                (self.undefined, missing),
                (self.duplicates, _duplicates(scope)),
                (self.disputed, _disputed(scope)),
            )
            for found, names in defects:
                for name in names:
                    found.setdefault(name, (scope, name))
            if cycle := _cycle(scope.graph.node):
                self.cycles.append((scope, cycle))


def _duplicates(scope: Scope) -> Iterator[str]:
    graph = scope.graph
    inputs: list[str | None] = list(graph.input) if isinstance(graph, d.Function) else [x.name for x in graph.input]
    constants: list[str | None] = []
    if isinstance(graph, d.Graph):
        constants += [each.name for each in graph.initializer]
        constants += [each.values.name for each in graph.sparse_initializer if each.values]
    for names in (constants, inputs):
        if len(set(names)) < len(names):
            yield from [name for name, count in Counter(names).items() if name and count > 1]
    seen = {*constants, *inputs}
    for node in graph.node:
        for name in node.output:
            if name and name in seen:
                yield name
            seen.add(name)


def _disputed(scope: Scope) -> Iterator[str]:
    graph = scope.graph
    if isinstance(graph, d.Function):
        return
    known = {tensor.name: type_of_constant(tensor) for tensor in graph.initializer}
    for info in (*graph.input, *graph.output, *graph.value_info):
        if not info.name or info.type is None or info.type.tensor_type is None:
            continue
        if contradict(known.setdefault(info.name, info.type), info.type):
            yield info.name
