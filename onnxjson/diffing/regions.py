"""Regions: neighbouring nodes of both models that have no counterpart, cut out at the values around them."""

from collections.abc import Iterable

import msgspec

from onnxjson.document import Function, Graph, Node
from onnxjson.matching.alignment import GraphPair


class Region(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A part of one graph and the part of the other that took its place; one of them may have no nodes.

    Taking the base nodes out and putting the target nodes in, with the inputs and outputs connected pair by pair,
    turns one graph into the other at this place.
    """

    pair: GraphPair
    """The graphs that the nodes are in; names below are names in these."""
    base: tuple[int, ...]
    """Positions of nodes, in the order of the graph."""
    target: tuple[int, ...]
    inputs: tuple[tuple[str | None, str | None], ...]
    """Values that either side takes from around it, with their counterparts; None where there is none."""
    outputs: tuple[tuple[str, str], ...]
    """Values that are taken outside: a name in the base, and what stands in its place in the target.

    Either is made by a node of its side, is one of `inputs` (a value that is passed through), or is a constant.
    """
    base_constants: tuple[str, ...]
    """Initializers and outputs of Constant nodes that the base nodes take, or that stand in `outputs`."""
    target_constants: tuple[str, ...]

    def nodes(self, side: int) -> tuple[int, ...]:
        """The positions of the nodes of the base (0) or the target (1)."""
        return self.target if side else self.base

    def constants(self, side: int) -> tuple[str, ...]:
        """The constants of the base (0) or the target (1)."""
        return self.target_constants if side else self.base_constants


class Components:
    """Sets that are joined: which nodes are neighbours. A node is (0 for base or 1 for target, position)."""

    def __init__(self) -> None:
        self._above: dict[tuple[int, int], tuple[int, int]] = {}

    def add(self, node: tuple[int, int]) -> None:
        """A node on its own."""
        self._above.setdefault(node, node)

    def __contains__(self, node: object) -> bool:
        return node in self._above

    def find(self, node: tuple[int, int]) -> tuple[int, int]:
        """The node that stands for all of its set."""
        above = self._above
        root = node
        while above[root] != root:
            root = above[root]
        while above[node] != root:
            above[node], node = root, above[node]
        return root

    def join(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        """Make two sets one."""
        first, second = sorted((self.find(one), self.find(other)))
        self._above[second] = first

    def sets(self) -> list[tuple[list[int], list[int]]]:
        """The positions in base and target of each set, ascending; the sets by their first node."""
        found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        for node in sorted(self._above):
            sides = found.setdefault(self.find(node), ([], []))
            sides[node[0]].append(node[1])
        return list(found.values())


def taken_names(node: Node) -> list[str]:
    """The values that a node takes: its inputs, then what the graphs in its attributes take from around it."""
    found = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.g is not None:
            found += free_names(attribute.g)
        for graph in attribute.graphs:
            found += free_names(graph)
    return found


def free_names(graph: Graph | Function) -> dict[str, None]:
    """The names that a graph takes from around it, each once, in order; nested graphs included."""
    defined = set(_defined(graph))
    free: dict[str, None] = {}
    for node in graph.node:
        for name in taken_names(node):
            if name not in defined:
                free[name] = None
    if not isinstance(graph, Function):
        for output in graph.output:
            if output.name and output.name not in defined:
                free[output.name] = None
    return free


def _defined(graph: Graph | Function) -> Iterable[str]:
    if isinstance(graph, Function):
        yield from graph.input
    else:
        yield from [value.name for value in graph.input if value.name]
        yield from [tensor.name for tensor in graph.initializer if tensor.name]
        yield from [each.values.name for each in graph.sparse_initializer if each.values and each.values.name]
    for node in graph.node:
        yield from node.output
