"""The result of matching two models: pairs of graphs, of their nodes and of their values.

What is not in a pair has no counterpart: it was added, removed, or is part of a rewrite (`onnxjson.diffing.events`
says which). Nothing here says that two things that are paired are equal.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from onnxjson.index import Index, Scope

UNMATCHED = -1
"""What stands in `GraphPair.target_of` and `base_of` for a node without a counterpart."""


class GraphPair(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Two graphs (main graphs, subgraphs, function bodies, training graphs) that are one and the same graph."""

    base: Scope
    target: Scope
    target_of: Sequence[int]
    """For each node of `base` the position of its counterpart in `target`, or `UNMATCHED`."""
    base_of: Sequence[int]
    """For each node of `target` the position of its counterpart in `base`, or `UNMATCHED`: the inverse."""
    values: Mapping[str, str]
    """Names of values that `base` defines -> the names of their counterparts in `target`; one to one.

    Outputs of paired nodes by slot, graph inputs, initializers (paired by the paired nodes that take them, then by
    name), and a Constant node's output with the initializer that took its place, or the other way round.
    """
    base_aliases: Mapping[str, str]
    """Names that in `base` are another name for a value, by Identity or a Cast that changes nothing -> that value."""
    target_aliases: Mapping[str, str]
    """The same for `target`."""


class Alignment(msgspec.Struct, frozen=True, gc=False, eq=False):
    """All pairs of graphs of two models."""

    base: Index
    target: Index
    graphs: tuple[GraphPair, ...]
    """The main graphs first; a subgraph after the graph around it. Graphs of unmatched nodes are in none."""
    by_base: Mapping[str, GraphPair]
    """The pairs by the address of their base graph."""
    functions: tuple[tuple[int, int], ...]
    """Positions of functions that are counterparts."""
    degraded: str | None
    """Why some nodes were left unmatched without a full search, for a person; None where nothing was."""

    @property
    def matched(self) -> int:
        """How many nodes of the base have a counterpart."""
        return sum([len(pair.target_of) - pair.target_of.count(UNMATCHED) for pair in self.graphs])

    def node_pairs(self) -> Iterator[tuple[str, str]]:
        """Every pair of nodes as two addresses, graph by graph in the order of the base."""
        for pair in self.graphs:
            base, target = f"{pair.base.address}/node/", f"{pair.target.address}/node/"
            for position, counterpart in enumerate(pair.target_of):
                if counterpart != UNMATCHED:
                    yield f"{base}{position}", f"{target}{counterpart}"
