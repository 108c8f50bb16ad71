"""The order of nodes: kept as it is, but for those that would stand before what they need."""

import heapq
from collections.abc import Sequence

from onnxjson.document import Graph, Node


def needed_names(node: Node) -> set[str]:
    """The names that a node takes, itself or in its subgraphs, from outside of those."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            if graph is not None:
                names |= _captured(graph)
    return names


def _captured(graph: Graph) -> set[str]:
    """The names that a graph and those inside it take from around."""
    made = {each.name for each in graph.input} | {each.name for each in graph.initializer}
    made |= {each.values.name for each in graph.sparse_initializer if each.values is not None}
    taken = {each.name for each in graph.output if each.name}
    for node in graph.node:
        made.update(node.output)
        taken |= needed_names(node)
    return {name for name in taken if name not in made}


def in_order(nodes: Sequence[Node]) -> tuple[Node, ...] | None:
    """The nodes so that each stands after those that make what it takes, as near to their old places as can be.

    None where they need each other.
    """
    maker: dict[str, int] = {}
    for position, node in enumerate(nodes):
        for name in node.output:
            if name:
                maker.setdefault(name, position)
    waiting: list[int] = []
    followers: dict[int, list[int]] = {}
    for position, node in enumerate(nodes):
        before = {maker[name] for name in needed_names(node) if name in maker}
        waiting.append(len(before))
        for each in before:
            followers.setdefault(each, []).append(position)
    ready = [position for position, count in enumerate(waiting) if not count]
    ordered: list[Node] = []
    while ready:
        position = heapq.heappop(ready)
        ordered.append(nodes[position])
        for follower in followers.get(position, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, follower)
    return tuple(ordered) if len(ordered) == len(nodes) else None
