"""What stands beside the nodes of one graph: lanes, and numbers, which also colour the map.

Lanes are drawn as by ``git log --graph``: one for each value that is still needed, from its producer to its last
consumer; free lanes are used for later values. Values with many consumers, or with a distant one, have no lane, and
neither have inputs and constants of the graph, nor values that are computed from constants alone. A node is on the lane
of its output::

    *        a produces a value that b and d consume
    | *      b consumes it and produces another one
    | *      c consumes that
    *-'      d consumes the outputs of a and c
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Final, NamedTuple

from onnxjson.model.constants import constant_values
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.document import Node
from onnxjson.model.index import Scope
from onnxjson.rendering.tables import Span, Style, cells, clipped, padded

MOST_CONSUMERS: Final = 8  # maximum consumers of a value with a lane
LONGEST: Final = 500  # maximum rows from the producer to the last consumer of a value with a lane
MOST_LANES: Final = 12  # maximum lanes that are drawn; the others are counted
_BLOCK: Final = 128  # rows that are computed together

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
BOXES: Final = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"  # the character for each sum of directions
_HEAVY: Final = " ╹╻┃╸┛┓┫╺┗┏┣━┻┳╋"
"""Characters of a highlighted lane, which differ even without colours."""
_NODES: Final = "●○"  # a node that produces a value with a lane, and one that does not
_HEAVY_NODES: Final = "◉◎"
"""The characters for a node on a highlighted lane that consumes its value."""

HEAVY: Final = frozenset(_HEAVY + _HEAVY_NODES) - {" "}
"""All characters of highlighted lanes."""

CHANGES: Final = "changes"

MACS: Final = "MACs"

NAN: Final = "NaN"

DIFFERENCE: Final = "diff"  # of several nodes, the largest number counts, not the sum

_COLOURS: Final = (CHANGES, DIFFERENCE, "ms", MACS, NAN)  # numbers that colour the map, in the order of its key

COLUMN: Final = 9  # columns of a number with the space before it

_NAMES: Final = 30  # columns for the rest of a row

Columns = Mapping[str, Mapping[str, float | str]]  # what a number is -> address of a node -> number, or a formula

_HOT, _WARM = 0.5, 0.1  # parts of the largest number

_TINY: Final = 0.005  # part of the sum that is not worth a word


class Row(NamedTuple):
    """The lanes next to one node."""

    before: tuple[int, ...]  # lanes that come from above, ascending
    after: tuple[int, ...]  # lanes that continue below, ascending
    consumed: tuple[int, ...]  # lanes of consumed values
    produced: tuple[int, ...]  # lanes of produced values
    column: int  # lane of the node


class Lit(NamedTuple):
    """A highlighted lane in the rows of one value."""

    lane: int
    rows: range  # the rows below the producer, down to the last consumer


class Lanes:
    """The lanes of one graph, found in one pass over its nodes; rows are computed on demand."""

    def __init__(self, scope: Scope) -> None:
        self._nodes: Sequence[Node] = scope.graph.node
        owners = [child.owner for child in scope.children if child.owner is not None]
        self._inner = {owner.position: consumed_names(owner.node) for owner in owners}
        """All values that nodes with graphs inside consume."""
        # Values are numbered in the order of their producers; the arrays store their properties.
        self._starts = array("i")
        self._ends = array("i")
        self._lanes = array("i")
        self.width = 0  # maximum number of lanes in use at once
        self._assign(self._find(scope))
        self._block: tuple[int, list[Row]] = (-1, [])

    def __len__(self) -> int:
        return len(self._nodes)

    def row(self, position: int) -> Row:
        """Return the lanes next to the node at a position."""
        block = position // _BLOCK
        if self._block[0] != block:
            self._block = (block, list(self._rows(block * _BLOCK)))
        return self._block[1][position - block * _BLOCK]

    def produced_by(self, position: int) -> tuple[Lit, ...]:
        """Return the lanes of the outputs of a node."""
        number = bisect_left(self._starts, position)
        lit = []
        while number < len(self._starts) and self._starts[number] == position:
            if self._lanes[number] >= 0:
                lit.append(Lit(self._lanes[number], range(position + 1, self._ends[number] + 1)))
            number += 1
        return tuple(lit)

    def _find(self, scope: Scope) -> list[int]:
        """Find the producer and last consumer of each value; return the numbers of consumers."""
        values: dict[str, int] = {}
        starts, ends, inner = self._starts, self._ends, self._inner
        constants = constant_values(scope)
        counts: list[int] = []
        number_of = values.get
        for position, node in enumerate(self._nodes):
            for name in inner.get(position, node.input):
                value = number_of(name)
                if value is not None:
                    ends[value] = position
                    counts[value] += 1
            for name in node.output:
                if name not in constants:
                    values[name] = len(starts)
                    starts.append(position)
                    ends.append(-1)
                    counts.append(0)
        return counts

    def _assign(self, counts: list[int]) -> None:
        """Assign each value the lowest lane that is free at its producer."""
        free: list[int] = []
        ending: list[tuple[int, int]] = []
        add = self._lanes.append
        width = 0
        for start, end, consumers in zip(self._starts, self._ends, counts, strict=True):
            while ending and ending[0][0] <= start:
                heappush(free, heappop(ending)[1])
            if end <= start or consumers > MOST_CONSUMERS or end - start > LONGEST:
                add(-1)
                continue
            if free:
                lane = heappop(free)
            else:
                lane, width = width, width + 1
            add(lane)
            heappush(ending, (end, lane))
        self.width = width

    def _name(self, number: int) -> str:
        position = self._starts[number]
        names = [name for name in self._nodes[position].output if name]
        return names[number - bisect_left(self._starts, position)]

    def _rows(self, first: int) -> Iterator[Row]:
        starts, ends, lanes = self._starts, self._ends, self._lanes
        # No lane is longer than that, so all lanes from above begin there or later.
        number = bisect_left(starts, first - LONGEST)
        live: dict[int, str] = {}
        while number < len(starts) and starts[number] < first:
            if lanes[number] >= 0 and ends[number] >= first:
                live[number] = self._name(number)
            number += 1
        for position in range(first, min(first + _BLOCK, len(self._nodes))):
            before = sorted([lanes[value] for value in live])
            names = set(self._inner.get(position, self._nodes[position].input))
            consumed = sorted([lanes[value] for value, name in live.items() if name in names])
            live = {value: name for value, name in live.items() if ends[value] != position}
            produced = []
            while number < len(starts) and starts[number] == position:
                if lanes[number] >= 0:
                    live[number] = self._name(number)
                    produced.append(lanes[number])
                number += 1
            after = sorted([lanes[value] for value in live])
            column = produced[0] if produced else next(lane for lane in count() if lane not in after)
            yield Row(tuple(before), tuple(after), tuple(consumed), tuple(produced), column)


def drawn(row: Row, most: int = MOST_LANES, *, heavy: Sequence[int] = ()) -> str:
    """Return a row as text: at most `most` lanes, two columns apart; `heavy` lanes are highlighted.

    A node that neither consumes nor produces a value with a lane, such as a constant, has no circle.
    """
    is_apart = not (row.consumed or row.produced)
    joined = (*row.consumed, *row.produced, row.column)
    left, right = min(joined), max(joined)
    used = max((*row.before, *row.after, right)) + 1
    cells = []
    for lane in range(min(used, most)):
        sides = (_UP if lane in row.before else 0) | (_DOWN if lane in row.after else 0)
        if left <= lane <= right and (lane in joined or not sides) and not is_apart:
            # A lane that only passes remains vertical, so that it does not look connected.
            sides |= (_LEFT if lane > left else 0) | (_RIGHT if lane < right else 0)
        kind, circles = (_HEAVY, _HEAVY_NODES) if lane in heavy else (BOXES, _NODES)
        cells.append(circles[not row.produced] if lane == row.column and not is_apart else kind[sides])
        cells.append(BOXES[_LEFT | _RIGHT] if left <= lane < right else " ")
    return "".join(cells).rstrip()


def hidden(row: Row, most: int) -> int:
    """Return the number of lanes beyond the `most` that are drawn."""
    own = {row.column} if row.consumed or row.produced else set()
    return len([lane for lane in {*row.before, *row.after, *own} if lane >= most])


# Numbers


def shown(found: Columns, width: int) -> list[str]:
    """Return the numbers for which a list of some columns has room."""
    return list(found)[: max((width - _NAMES) // COLUMN, 1)]


def heads(found: Columns, width: int) -> str:
    """Return the line above a list."""
    return padded("".join([padded(each, COLUMN, right=True) for each in shown(found, width)]), width, right=True)


def cell(title: str, value: float | str | None) -> Span:
    """Return a number in its column."""
    if value is None or (title in (NAN, DIFFERENCE) and not value):
        return Span(" " * COLUMN, "quiet")
    from onnxjson.rendering.cost_text import amount

    is_whole = not isinstance(value, str) and title in (MACS, NAN)
    text = amount(int(value)) if is_whole else value if isinstance(value, str) else f"{value:.3g}"
    text = f"{value:.2g}" if isinstance(value, float) and cells(text) >= COLUMN else text
    style: Style = "bad" if title == NAN else "changed" if title == DIFFERENCE and value else "quiet"
    return Span(padded(clipped(text, COLUMN - 1), COLUMN, right=True), style)


class Figures(NamedTuple):
    """A number about each node that colours the map."""

    title: str
    values: "array[float]"

    @property
    def is_sum(self) -> bool:
        """Whether the number of several nodes is the sum of theirs, else the largest."""
        return self.title != DIFFERENCE

    def of_parts(self, owner: "array[int]", count: int) -> tuple[float, ...]:
        """Return the numbers of boxes, by the number of the box of each node."""
        numbers = [0.0] * count
        for part, value in zip(owner, self.values, strict=True):
            if part >= 0 and value:
                numbers[part] = numbers[part] + value if self.is_sum else max(numbers[part], value)
        return tuple(numbers)

    def text(self, value: float, total: float) -> str:
        """Return the number of a box: its part of the sum, or the number itself; "" if it is next to nothing."""
        if not value or (self.title == CHANGES or not self.is_sum):
            return "" if not value else f"~{value:.0f}" if self.is_sum else f"{value:.2g}"
        return f"{100 * value / total:.0f}%" if value >= _TINY * total else ""

    def style(self, share: float) -> Style:
        """Return the style of a number by its part of the largest one."""
        if share <= 0:
            return "plain"
        return "changed" if self.title == CHANGES or _WARM <= share < _HOT else "bad" if share >= _HOT else "good"


def figures_of(scope: Scope, columns: Columns, changed: "list[int] | None" = None) -> dict[str, Figures]:
    """Return what colours the map of a graph; nodes inside of a node count for it. `changed` are positions."""
    count, start = len(scope.graph.node), f"{scope.address}/node/"
    figures: dict[str, Figures] = {}
    marked = {CHANGES: {f"{start}{place}": 1.0 for place in changed or ()}}
    for title, numbers in {**marked, **columns}.items():
        values = array("d", [0.0]) * count
        for address, value in numbers.items():
            place = address.removeprefix(start).partition("/")[0]
            if place.isdecimal() and not isinstance(value, str):
                values[int(place)] = max(values[int(place)], abs(value))
        if any(values):
            figures[title] = Figures(title, values)
    return {title: figures[title] for title in _COLOURS if title in figures}
