"""Lanes beside the nodes of a graph, as ``git log --graph`` draws them: one lane for each value that is still needed.

A value has a lane from the node that makes it to the last one that takes it; lanes that are free again are taken by
the next values. Values that many nodes take, or a node far below, would only be lines past everything: they have none,
and neither have inputs and constants of the graph, nor what nodes make of constants alone. A node stands on the lane of what it makes:

    *        a makes one value
    +-*      b takes it, and c will
    * |      c
    *-'      d takes what b and c make
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Final, Literal, NamedTuple

from onnxjson.document import Node
from onnxjson.index import Scope

MOST_TAKERS: Final = 8
"""Nodes that take a value, up to which it has a lane."""

LONGEST: Final = 500
"""Rows down to the last node that takes a value, up to which it has a lane."""

MOST_LANES: Final = 12
"""Lanes that are drawn; of those beyond, their number."""

Glyphs = Literal["unicode", "ascii"]

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_BOXES: Final = {"unicode": " ╵╷│╴┘┐┤╶└┌├─┴┬┼", "ascii": " '.|-'.+-'.+-'.+"}
"""The character for each sum of directions."""
_NODES: Final = {"unicode": "●○", "ascii": "*o"}
"""A node that makes a value with a lane, and one that does not."""


class Row(NamedTuple):
    """What is drawn beside one node."""

    before: tuple[int, ...]
    """Lanes that come from above, ascending."""
    after: tuple[int, ...]
    """Lanes that go on below, ascending."""
    taken: tuple[int, ...]
    """Lanes of values that the node takes."""
    made: tuple[int, ...]
    """Lanes of values that it makes."""
    column: int
    """The lane on which the node stands."""


class Lanes:
    """The lanes of one graph. Finding them takes a pass over its nodes; rows are made when they are asked for."""

    _EVERY: Final = 256
    """Rows between two that are remembered, from which those between are found."""

    def __init__(self, scope: Scope) -> None:
        self._nodes: Sequence[Node] = scope.graph.node
        self._ends, self._inner = _needed(scope)
        self._lane: dict[str, int] = {}
        self._columns: list[int] = []
        self._live_at: list[dict[str, int]] = []
        self.width = 0
        """Lanes that are in use at once."""
        self._assign()
        self._block: tuple[int, list[Row]] = (-1, [])

    def __len__(self) -> int:
        return len(self._nodes)

    def row(self, position: int) -> Row:
        """What is drawn beside the node at a position."""
        block = position // self._EVERY
        if self._block[0] != block:
            self._block = (block, list(self._rows(block)))
        return self._block[1][position - block * self._EVERY]

    def text(self, position: int, glyphs: Glyphs = "unicode") -> str:
        """The characters beside the node at a position."""
        return drawn(self.row(position), glyphs)

    def _assign(self) -> None:
        """Gives each value its lane: the lowest that is free where it is made."""
        ends, lanes, columns = self._ends, self._lane, self._columns
        free: list[int] = []
        width = 0
        live: dict[str, int] = {}
        ending: dict[int, list[str]] = {}
        for position, node in enumerate(self._nodes):
            if not position % self._EVERY:
                self._live_at.append(live.copy())
            for name in ending.pop(position, ()):
                heappush(free, live.pop(name))
            column = -1
            for name in node.output:
                end = ends.get(name, -1)
                if end > position and name not in lanes:
                    if free:
                        lane = heappop(free)
                    else:
                        lane, width = width, width + 1
                    lanes[name] = live[name] = lane
                    if column < 0:
                        column = lane
                    if end in ending:
                        ending[end].append(name)
                    else:
                        ending[end] = [name]
            columns.append(column if column >= 0 else free[0] if free else width)
        self.width = max(width, max(columns, default=-1) + 1)

    def _rows(self, block: int) -> Iterator[Row]:
        start = block * self._EVERY
        live = dict(self._live_at[block])
        for position in range(start, min(start + self._EVERY, len(self._nodes))):
            node = self._nodes[position]
            before = tuple(sorted(live.values()))
            names = dict.fromkeys((*node.input, *self._inner.get(position, ())))
            taken = tuple(sorted([live[name] for name in names if name in live]))
            for name in names:
                if self._ends.get(name) == position:
                    live.pop(name, None)
            made = []
            for name in node.output:
                if self._ends.get(name, -1) > position and name in self._lane and name not in live:
                    live[name] = self._lane[name]
                    made.append(self._lane[name])
            after = tuple(sorted(live.values()))
            yield Row(before, after, taken, tuple(made), self._columns[position])


def _needed(scope: Scope) -> tuple[dict[str, int], dict[int, list[str]]]:
    """The last node that takes each value with a lane, and what subgraphs of nodes take from this graph."""
    nodes = scope.graph.node
    made: dict[str, int] = {}
    constants = scope.initializers.keys() | scope.sparse_initializers.keys() | {""}
    for position, node in enumerate(nodes):
        if not constants.issuperset(node.input):  # else it is a constant in another dress, such as of Identity
            for name in node.output:
                if name not in made:
                    made[name] = position
    inner = {owner: [name for name in names if name in made] for owner, names in _captured(scope).items()}
    ends: dict[str, int] = {}
    counts: dict[str, int] = {}
    for position, node in enumerate(nodes):
        for name in node.input:
            if name in made:
                ends[name] = position
                counts[name] = counts.get(name, 0) + 1
        if position in inner:
            for name in inner[position]:
                ends[name] = position
                counts[name] = counts.get(name, 0) + 1
    for name in [name for name, end in ends.items() if counts[name] > MOST_TAKERS or end - made[name] > LONGEST]:
        del ends[name]
    ends.pop("", None)
    return ends, inner


def _captured(scope: Scope) -> dict[int, list[str]]:
    """The names that graphs inside each node use and do not define themselves."""
    found: dict[int, list[str]] = {}
    for child in scope.children:
        if child.owner is None:
            continue
        names: dict[str, None] = {}
        pending = [(child, frozenset[str]())]
        while pending:
            inner, hidden = pending.pop()
            own = hidden | frozenset((*inner.makers, *inner.inputs, *inner.initializers, *inner.sparse_initializers))
            names |= dict.fromkeys([name for name in inner.takers if name not in own])
            pending += [(each, own) for each in inner.children]
        found.setdefault(child.owner.position, []).extend(names)
    return found


def drawn(row: Row, glyphs: Glyphs = "unicode", most: int = MOST_LANES) -> str:
    """A row as text: lanes two columns apart, and how many are not drawn."""
    boxes = _BOXES[glyphs]
    joined = (*row.taken, *row.made, row.column)
    left, right = min(joined), max(joined)
    used = max((*row.before, *row.after, right)) + 1
    cells = []
    for lane in range(min(used, most)):
        sides = (_UP if lane in row.before else 0) | (_DOWN if lane in row.after else 0)
        if left <= lane <= right and (lane in joined or not sides):
            # A lane that only passes stays a line down, so that nobody takes it for one that is joined.
            sides |= (_LEFT if lane > left else 0) | (_RIGHT if lane < right else 0)
        cells.append(_NODES[glyphs][not row.made] if lane == row.column else boxes[sides])
        cells.append(boxes[_LEFT | _RIGHT] if left <= lane < right else " ")
    hidden = len({lane for lane in (*row.before, *row.after, row.column) if lane >= most})
    return "".join(cells).rstrip() + (f" +{hidden}" if hidden else "")
