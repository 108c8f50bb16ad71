"""The values that nodes consume, and the order of nodes that follows from that.

A node consumes its inputs and what the subgraphs in its attributes capture: names that they use and do not define.
"""

import heapq
from collections.abc import Iterable, Sequence
from itertools import filterfalse

from onnxjson.model.document import Function, Graph, Node


def consumed_names(node: Node) -> list[str]:
    """Return the values that a node consumes: its inputs, then what its subgraphs capture; one may appear twice."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.g is not None:
            names += captured_names(attribute.g)
        for graph in attribute.graphs:
            names += captured_names(graph)
    return names


def consumes_any(node: Node, names: set[str]) -> bool:
    """Whether a node consumes one of some values; faster than `consumed_names` where it has no subgraphs."""
    if not names.isdisjoint(node.input):
        return True
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            if graph is not None and not names.isdisjoint(captured_names(graph)):
                return True
    return False


def captured_names(graph: Graph | Function) -> dict[str, None]:
    """Return the names that a graph and those inside it use from the graphs around it, each once, in order."""
    defined = set(_defined_names(graph))
    captured: dict[str, None] = {}
    for node in graph.node:
        for name in consumed_names(node):
            if name not in defined:
                captured[name] = None
    if not isinstance(graph, Function):
        for output in graph.output:
            if output.name and output.name not in defined:
                captured[output.name] = None
    return captured


def _defined_names(graph: Graph | Function) -> Iterable[str]:
    if isinstance(graph, Function):
        yield from graph.input
    else:
        yield from [value.name for value in graph.input if value.name]
        yield from [tensor.name for tensor in graph.initializer if tensor.name]
        yield from [each.values.name for each in graph.sparse_initializer if each.values and each.values.name]
    for node in graph.node:
        yield from node.output


def producers_among(nodes: Sequence[Node]) -> list[set[int]]:
    """Return for each node the positions, in `nodes`, of the producers of what it consumes; its own in a self-loop."""
    producers: dict[str, int] = {}
    for position, node in enumerate(nodes):
        for name in node.output:
            if name:
                producers.setdefault(name, position)
    return [{producers[name] for name in consumed_names(node) if name in producers} for node in nodes]


def topological_order(needs: Sequence[set[int]]) -> list[int]:
    """Return positions in an order in which producers come first, each as near to its old place as possible.

    `needs` has for each position those that must come before it, as `producers_among` returns them. Positions on a
    cycle, and those that depend on one, are left out.
    """
    followers: dict[int, list[int]] = {}
    waiting = [len(each) for each in needs]
    for position, each in enumerate(needs):
        for need in each:
            followers.setdefault(need, []).append(position)
    ready = [position for position, count in enumerate(waiting) if not count]
    order: list[int] = []
    while ready:
        position = heapq.heappop(ready)
        order.append(position)
        for follower in followers.get(position, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, follower)
    return order


def node_order(nodes: Sequence[Node]) -> list[int]:
    """Return positions in topological order, that of `nodes` if it is one; see `topological_order` for cycles."""
    return list(range(len(nodes))) if is_ordered(nodes) else topological_order(producers_among(nodes))


def sort_nodes(nodes: tuple[Node, ...]) -> tuple[Node, ...] | None:
    """Return the nodes in topological order: `nodes` itself where they already are, None where there is a cycle."""
    if is_ordered(nodes):
        return nodes
    order = node_order(nodes)
    return None if len(order) < len(nodes) else tuple([nodes[position] for position in order])


def is_ordered(nodes: Sequence[Node]) -> bool:
    """Whether every producer already comes before its consumers."""
    produced, missing = {""}, set[str]()
    for node in nodes:
        missing.update(filterfalse(produced.__contains__, consumed_names(node) if node.attribute else node.input))
        if not missing.isdisjoint(node.output):
            return False
        produced.update(node.output)
    return True
