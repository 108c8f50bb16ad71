"""Regions: adjacent nodes of both models without counterparts, cut out at the values around them."""

import msgspec

from onnxjson.diffing.matching.alignment import GraphPair


class Region(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A part of one graph and the part of the other that replaces it; one of them may have no nodes.

    Replacing the base nodes by the target nodes, with inputs and outputs connected pair by pair, turns one graph into
    the other at this place.
    """

    pair: GraphPair
    """The graphs of the nodes; the names below are names in these graphs."""
    base: tuple[int, ...]
    """Positions of nodes, in the order of the graph."""
    target: tuple[int, ...]
    inputs: tuple[tuple[str | None, str | None], ...]
    """Values from outside that either side consumes, with their counterparts; None if there is none."""
    outputs: tuple[tuple[str, str], ...]
    """Values that are consumed outside: a name in the base, and the name that replaces it in the target.

    Each is produced by a node of its side, is one of `inputs` (a value that is passed through), or is a constant.
    """
    base_constants: tuple[str, ...]
    """Initializers and outputs of Constant nodes that the base nodes consume, or that are in `outputs`."""
    target_constants: tuple[str, ...]

    def nodes(self, side: int) -> tuple[int, ...]:
        """Return the positions of the nodes of the base (0) or the target (1)."""
        return self.target if side else self.base

    def constants(self, side: int) -> tuple[str, ...]:
        """Return the constants of the base (0) or the target (1)."""
        return self.target_constants if side else self.base_constants


class Components:
    """Disjoint sets of adjacent nodes (union-find). A node is (0 for base or 1 for target, position)."""

    def __init__(self) -> None:
        self._above: dict[tuple[int, int], tuple[int, int]] = {}

    def add(self, node: tuple[int, int]) -> None:
        """Add a node as a set of its own."""
        self._above.setdefault(node, node)

    def __contains__(self, node: object) -> bool:
        return node in self._above

    def find(self, node: tuple[int, int]) -> tuple[int, int]:
        """Return the representative of the set of a node."""
        above = self._above
        root = node
        while above[root] != root:
            root = above[root]
        while above[node] != root:
            above[node], node = root, above[node]
        return root

    def join(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        """Join the sets of two nodes."""
        first, second = sorted((self.find(one), self.find(other)))
        self._above[second] = first

    def sets(self) -> list[tuple[list[int], list[int]]]:
        """Return the positions in base and target of each set, ascending; the sets ordered by their first node."""
        found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        for node in sorted(self._above):
            sides = found.setdefault(self.find(node), ([], []))
            sides[node[0]].append(node[1])
        return list(found.values())
