"""Layered layout of small directed graphs, from top to bottom, with few crossings and short lines.

Sugiyama's method ("Methods for visual understanding of hierarchical system structures", IEEE Transactions on Systems,
Man, and Cybernetics 11(2), 1981): layers by longest paths, invisible boxes where a line crosses a layer, an order
within each layer by the mean position of the neighbours, then the positions nearest to those means. It is meant for a
few dozen boxes; the same graph always gets the same drawing.
"""

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

BETWEEN_BOXES: Final = 18.0
BETWEEN_LAYERS: Final = 30.0
_LINE: Final = 6.0  # width of a line that crosses a layer
_ROUNDS: Final = 12


class Box(NamedTuple):
    """Size of a box, in units of the drawing."""

    width: float
    height: float


class Point(NamedTuple):
    """Position from the left and from the top."""

    x: float
    y: float


class Layout(NamedTuple):
    """Positions of boxes and lines."""

    width: float
    height: float
    centres: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]
    """Points of the line for each edge, from the lower side of one box to the upper side of the other."""


def lay_out(boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> Layout:
    """Compute the positions of boxes and of lines for edges from start to end box; cycles and loops are allowed."""
    if not boxes:
        return Layout(0, 0, (), ())
    return _Layers(boxes, edges).layout()


class _Layers:
    """The boxes, followed by the invisible ones, in layers."""

    def __init__(self, boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> None:
        self.boxes = boxes
        self.edges = edges
        self.widths = [box.width for box in boxes]
        self.layer = _layers(len(boxes), edges)
        self.chains: list[list[int]] = []  # boxes on the path of each edge, visible or not
        self.above: list[list[int]] = [[] for _ in boxes]
        self.below: list[list[int]] = [[] for _ in boxes]
        for start, end in edges:
            self._add_chain(start, end)
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        self._fill_rows()

    def _add_chain(self, start: int, end: int) -> None:
        """Split an edge into steps from one layer to the next, downwards."""
        upper, lower = (start, end) if self.layer[start] <= self.layer[end] else (end, start)
        chain = [upper]
        for layer in range(self.layer[upper] + 1, self.layer[lower]):
            self.layer.append(layer)
            self.widths.append(_LINE)
            self.above.append([])
            self.below.append([])
            chain.append(len(self.layer) - 1)
        chain.append(lower)
        if self.layer[upper] != self.layer[lower]:
            for one, other in itertools.pairwise(chain):
                self.below[one].append(other)
                self.above[other].append(one)
        self.chains.append(chain if upper == start else chain[::-1])

    def _fill_rows(self) -> None:
        """Order the boxes by depth-first search from the top, then reduce crossings."""
        seen: set[int] = set()
        starts = sorted(range(len(self.layer)), key=lambda box: (self.layer[box], box))
        for start in starts:
            pending = [start]
            while pending:
                box = pending.pop()
                if box not in seen:
                    seen.add(box)
                    self.rows[self.layer[box]].append(box)
                    pending += reversed(self.below[box])
        best, crossings = [list(row) for row in self.rows], self._crossings()
        for turn in range(_ROUNDS):
            self._reorder(downwards=turn % 2 == 0)
            found = self._crossings()
            if found < crossings:
                best, crossings = [list(row) for row in self.rows], found
        self.rows = best

    def _reorder(self, *, downwards: bool) -> None:
        near = self.above if downwards else self.below
        rows = self.rows if downwards else self.rows[::-1]
        for before, row in itertools.pairwise(rows):
            place = {box: position for position, box in enumerate(before)}
            own = {box: position for position, box in enumerate(row)}

            def mean(box: int, place: dict[int, int] = place, own: dict[int, int] = own) -> float:
                found = [place[each] for each in near[box]]
                return sum(found) / len(found) if found else own[box]

            row.sort(key=mean)

    def _crossings(self) -> int:
        total = 0
        for row, next_row in itertools.pairwise(self.rows):
            place = {box: position for position, box in enumerate(next_row)}
            ends = [place[each] for box in row for each in sorted(self.below[box], key=place.__getitem__)]
            total += sum(1 for at, end in enumerate(ends) for later in ends[at + 1 :] if later < end)
        return total

    def layout(self) -> Layout:
        x = self._columns()
        spans: list[tuple[float, float]] = []  # upper and lower side of each layer
        top = 0.0
        for row in self.rows:
            height = max((self.boxes[box].height for box in row if box < len(self.boxes)), default=0)
            spans.append((top, top + height))
            top += height + BETWEEN_LAYERS
        points = [Point(x[box], sum(spans[layer]) / 2) for box, layer in enumerate(self.layer)]
        lines = [self._line(chain, points, edge, spans) for chain, edge in zip(self.chains, self.edges, strict=True)]
        width = max(x[box] + self.widths[box] / 2 for box in range(len(self.layer)))
        return Layout(width, top - BETWEEN_LAYERS, tuple(points[: len(self.boxes)]), tuple(lines))

    def _line(
        self, chain: list[int], points: list[Point], edge: tuple[int, int], spans: list[tuple[float, float]]
    ) -> tuple[Point, ...]:
        start, end = edge
        sign = 1 if self.layer[start] <= self.layer[end] else -1
        first = Point(points[start].x, points[start].y + sign * self.boxes[start].height / 2)
        last = Point(points[end].x, points[end].y - sign * self.boxes[end].height / 2)
        inner = [Point(points[box].x, y) for box in chain[1:-1] for y in spans[self.layer[box]][::sign]]
        return (first, *inner, last)

    def _columns(self) -> list[float]:
        """Return the horizontal centre of each box: rows are packed, then moved towards their neighbours."""
        x = [0.0] * len(self.layer)
        for row in self.rows:
            at = 0.0
            for box in row:
                x[box] = at + self.widths[box] / 2
                at += self.widths[box] + BETWEEN_BOXES
        for turn in range(_ROUNDS):
            near = self.above if turn % 2 == 0 else self.below
            for row in self.rows if turn % 2 == 0 else self.rows[::-1]:
                wanted = []
                for box in row:
                    found = near[box] or (self.below if turn % 2 == 0 else self.above)[box]
                    wanted.append(sum(x[each] for each in found) / len(found) if found else x[box])
                for box, place in zip(row, self._packed(row, wanted), strict=True):
                    x[box] = place
        left = min(x[box] - self.widths[box] / 2 for box in range(len(x)))
        return [place - left for place in x]

    def _packed(self, row: Sequence[int], wanted: Sequence[float]) -> list[float]:
        """Return the positions nearest to the wanted ones at which the boxes of a row keep their order and distance.

        After subtracting the space that each box needs to its left, positions only have to increase: an isotonic
        regression, solved by pooling adjacent boxes that would overtake each other.
        """
        offsets, at = [], 0.0
        for position, box in enumerate(row):
            if position:
                at += (self.widths[row[position - 1]] + self.widths[box]) / 2 + BETWEEN_BOXES
            offsets.append(at)
        pools: list[tuple[float, int]] = []
        for want, offset in zip(wanted, offsets, strict=True):
            mean, count = want - offset, 1
            while pools and pools[-1][0] > mean:
                other, size = pools.pop()
                mean, count = (other * size + mean * count) / (size + count), size + count
            pools.append((mean, count))
        means = [mean for mean, count in pools for _ in range(count)]
        return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each box: below its predecessors; sources just above their first successor."""
    below: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for start, end in edges:
        if start != end:
            below[start].append(end)
            waiting[end] += 1
    layer = [0] * count
    ready = [box for box in range(count) if not waiting[box]]
    sources, left = list(ready), set(range(count))
    while left:
        # A box that waits for itself is in a cycle; the first such box starts it.
        box = ready.pop(0) if ready else min(left)
        if box not in left:
            continue
        left.remove(box)
        for successor in below[box]:
            if successor in left:
                layer[successor] = max(layer[successor], layer[box] + 1)
                waiting[successor] -= 1
                if not waiting[successor]:
                    ready.append(successor)
    for box in sources:
        if below[box]:
            layer[box] = max(min(layer[each] for each in below[box]) - 1, 0)
    lowest = min(layer)
    return [each - lowest for each in layer]
