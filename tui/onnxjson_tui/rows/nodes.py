"""The list of the nodes of one graph: position, lanes, operator, name, type of the first output.

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
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Final, Literal, NamedTuple

from onnxjson.model.dataflow import consumed_names
from onnxjson.model.display import visible
from onnxjson.model.document import Node
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import operator_name
from onnxjson.model.types import format_type
from onnxjson.rendering.tables import Line, Span, Style, cells, padded, shortened, shortened_name
from onnxjson_tui.session.following import SavedNodes
from onnxjson_tui.session.session import Session

MOST_CONSUMERS: Final = 8  # maximum consumers of a value with a lane
LONGEST: Final = 500  # maximum rows from the producer to the last consumer of a value with a lane
MOST_LANES: Final = 12  # maximum lanes that are drawn; the others are counted
_BLOCK: Final = 128  # rows that are computed together

Glyphs = Literal["unicode", "ascii"]

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_BOXES: Final = {"unicode": " ╵╷│╴┘┐┤╶└┌├─┴┬┼", "ascii": " '.|-'.+-'.+-'.+"}  # the character for each sum of directions
_HEAVY: Final = {"unicode": " ╹╻┃╸┛┓┫╺┗┏┣━┻┳╋", "ascii": " ###############"}
"""Characters of a highlighted lane, which differ even without colours."""
_NODES: Final = {"unicode": "●○", "ascii": "*o"}  # a node that produces a value with a lane, and one that does not
_HEAVY_NODES: Final = {"unicode": "◉◎", "ascii": "@@"}
"""The characters for a node on a highlighted lane that consumes its value."""


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

    def text(self, position: int, glyphs: Glyphs = "unicode", lit: Sequence[Lit] = ()) -> str:
        """Return the lanes next to the node at a position as text."""
        return drawn(self.row(position), glyphs, heavy=[each.lane for each in lit if position in each.rows])

    def produced_by(self, position: int) -> tuple[Lit, ...]:
        """Return the lanes of the outputs of a node."""
        number = bisect_left(self._starts, position)
        found = []
        while number < len(self._starts) and self._starts[number] == position:
            if self._lanes[number] >= 0:
                found.append(Lit(self._lanes[number], range(position + 1, self._ends[number] + 1)))
            number += 1
        return tuple(found)

    def _find(self, scope: Scope) -> list[int]:
        """Find the producer and last consumer of each value; return the numbers of consumers."""
        values: dict[str, int] = {}
        starts, ends, inner = self._starts, self._ends, self._inner
        constants = scope.initializers.keys() | scope.sparse_initializers.keys() | {""}
        counts: list[int] = []
        number_of = values.get
        for position, node in enumerate(self._nodes):
            is_constant = position not in inner
            for name in node.input if is_constant else inner[position]:
                value = number_of(name)
                if value is not None:
                    ends[value] = position
                    counts[value] += 1
                    is_constant = False
                elif name not in constants:
                    is_constant = False
            if not is_constant:
                for name in node.output:
                    if name:
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


def drawn(row: Row, glyphs: Glyphs = "unicode", most: int = MOST_LANES, *, heavy: Sequence[int] = ()) -> str:
    """Return a row as text: lanes two columns apart, and the number of hidden lanes; `heavy` lanes are highlighted."""
    boxes = _BOXES[glyphs]
    joined = (*row.consumed, *row.produced, row.column)
    left, right = min(joined), max(joined)
    used = max((*row.before, *row.after, right)) + 1
    cells = []
    for lane in range(min(used, most)):
        sides = (_UP if lane in row.before else 0) | (_DOWN if lane in row.after else 0)
        if left <= lane <= right and (lane in joined or not sides):
            # A lane that only passes remains vertical, so that it does not look connected.
            sides |= (_LEFT if lane > left else 0) | (_RIGHT if lane < right else 0)
        kind, circles = (_HEAVY[glyphs], _HEAVY_NODES[glyphs]) if lane in heavy else (boxes, _NODES[glyphs])
        cells.append(circles[not row.produced] if lane == row.column else kind[sides])
        cells.append(boxes[_LEFT | _RIGHT] if left <= lane < right else " ")
    hidden = len({lane for lane in (*row.before, *row.after, row.column) if lane >= most})
    return "".join(cells).rstrip() + (f" +{hidden}" if hidden else "")


_LONGEST_NAME: Final = 1000  # maximum characters of a name; more never fit in a row
_LOOKED_AT: Final = 2_000  # number of nodes whose operators determine the first width of the column
MOST_OPERATOR: Final = 20  # columns of the longest operator that is not shortened


class NodeRow(NamedTuple):
    """One row; all texts are without control characters."""

    position: int  # position of the node in its graph
    lanes: str
    operator: str
    name: str  # name of the node, or else of its first output
    output: str  # type of its first output; "" if the model does not declare it


class NodeRows:
    """Rows of all nodes of a graph, or of those of a filter, computed on demand."""

    def __init__(
        self, scope: Scope, positions: Sequence[int] | None = None, *, glyphs: Glyphs = "unicode", is_bare: bool = False
    ) -> None:
        """Prepare the rows of some nodes, ascending, or of all; those of a filter have no lanes.

        Bare rows lack what must be computed for all nodes: lanes, and types unless they are known.
        """
        self.scope = scope
        self.positions = range(len(scope.graph.node)) if positions is None else positions
        self._glyphs: Glyphs = glyphs
        self._is_bare = is_bare
        self._lanes = Lanes(scope) if positions is None and not is_bare else None
        self._lit: tuple[Lit, ...] = ()
        self._operators_width: int | None = None

    def __len__(self) -> int:
        return len(self.positions)

    def row(self, number: int) -> NodeRow:
        """Return a row, numbered from 0, of the current node."""
        position = self.positions[number]
        node = self.scope.graph.node[position]
        name = node.name or next((each for each in node.output if each), "")
        return NodeRow(
            position,
            "" if self._lanes is None else self._lanes.text(position, self._glyphs, self._lit),
            visible(operator_name(node.domain, node.op_type)),
            visible(name, _LONGEST_NAME),
            "" if self._is_bare and not self.scope.knows_types else output_type(self.scope, node.output),
        )

    def light(self, position: int | None) -> tuple[Lit, ...]:
        """Highlight only the lanes of the outputs of a node; return the lanes to redraw."""
        before = self._lit
        self._lit = () if self._lanes is None or position is None else self._lanes.produced_by(position)
        return () if before == self._lit else (*before, *self._lit)

    def number_of(self, position: int) -> int | None:
        """Return the row of a node; None if a filter excludes it."""
        number = bisect_left(self.positions, position)
        return number if number < len(self) and self.positions[number] == position else None

    def restricted(self, positions: Sequence[int]) -> "NodeRows":
        """Return rows of some nodes of the same graph, ascending, with the same column widths."""
        rows = NodeRows(self.scope, positions, glyphs=self._glyphs)
        rows._operators_width = self.operators_width
        return rows

    @property
    def operators_width(self) -> int:
        """Columns that operators need, at most `MOST_OPERATOR`."""
        if self._operators_width is None:
            nodes = self.scope.graph.node[:_LOOKED_AT] if self._is_bare else self.scope.graph.node
            keys = {(node.domain, node.op_type) for node in nodes}
            widths = [cells(visible(operator_name(*key), MOST_OPERATOR + 1)) for key in keys]
            self._operators_width = min(max(widths, default=0), MOST_OPERATOR)
        return self._operators_width

    @property
    def lanes_width(self) -> int:
        """Columns that lanes need."""
        if self._lanes is None:
            return 0
        # A node without a lane of its own is to the right of all lanes.
        width = self._lanes.width + 1
        return 2 * min(width, MOST_LANES) + (3 if width > MOST_LANES else 0)


def output_type(scope: Scope, outputs: Sequence[str]) -> str:
    """Return the declared type of the first output, without control characters."""
    first = next((each for each in outputs if each), None)
    found = None if first is None else Index.type_of(scope, first)
    return "" if found is None else visible(format_type(found) or "?")


def filtered(refs: Sequence[NodeRef], scope: Scope) -> list[int]:
    """Return the positions of those found nodes that are in one graph, ascending."""
    return sorted([ref.position for ref in refs if ref.scope is scope])


def node_line(row: NodeRow, width: int, *, digits: int, lanes: int, operators: int = MOST_OPERATOR) -> str:
    """Return a row as text of `width` columns, with columns of `digits` for the position, of `lanes` and `operators`.

    Names are shortened first, between the parts of a path.
    """
    start = f"{row.position:>{digits}} " + (padded(row.lanes, lanes) if lanes else "")
    room = max(width - cells(start), 0)
    operator = shortened(row.operator, operators)
    output = shortened(row.output, max(room // 3, 1)) if row.output else ""
    middle = max(room - operators - 1 - (cells(output) + 1 if output else 0), 0)
    name = shortened_name(row.name, middle) if middle else ""
    line = start + padded(operator, operators + 1) + padded(name, middle) + (f" {output}" if output else "")
    return padded(shortened(line, width), width) if cells(line) > width else padded(line, width)


class NodeLines:
    """The nodes of one graph, with marks for selected, changed and new ones."""

    def __init__(self, rows: NodeRows | None, session: Session, saved: SavedNodes | None = None) -> None:
        """Use the rows of a graph, if there is one, and its saved nodes; None to mark no node as changed."""
        self.rows = rows
        self._session = session
        self._saved = saved
        self._digits = len(str(len(rows.scope.graph.node))) if rows is not None else 1

    def __len__(self) -> int:
        return len(self.rows) if self.rows is not None else 0

    def line(self, number: int, width: int) -> Line:
        """A mark for selected nodes, then position, a mark for changed and new ones, lanes, operator, name, type."""
        assert self.rows is not None
        row = self.rows.row(number)
        lanes = min(self.rows.lanes_width, max(width // 3, 8))
        room = max(width - 1, 1)
        operators = min(self.rows.operators_width, max(room // 4, 10))
        text = node_line(row, room, digits=self._digits, lanes=lanes, operators=operators)
        is_selected = f"{self.rows.scope.address}/node/{row.position}" in self._session.places.selected
        mark = "" if self._saved is None else self._saved.mark(row.position)
        if is_selected:
            return (Span("*" + text[: self._digits] + (mark or " ") + text[self._digits + 1 :], "changed"),)
        if mark:
            style: Style = "added" if mark == "+" else "changed"
            return Span(" " + text[: self._digits]), Span(mark, style), Span(text[self._digits + 1 :])
        return (Span(" " + text),)

    def light(self, position: int | None) -> list[tuple[range, int]]:
        """Highlight the lanes of the outputs of a node; return the rows and the column to redraw."""
        if self.rows is None:
            return []
        # Only a list of all nodes has lanes, so that rows are positions.
        start = 2 + self._digits
        return [(each.rows, start + 2 * each.lane) for each in self.rows.light(position)]

    def position(self, number: int) -> int | None:
        """Return the position of the node of a row."""
        if self.rows is None or not 0 <= number < len(self.rows):
            return None
        return self.rows.positions[number]

    def number_of(self, position: int) -> int | None:
        """Return the row of a node."""
        return None if self.rows is None else self.rows.number_of(position)

    def refresh(self, scope: Scope | None, saved: SavedNodes | None) -> None:
        """Use changed nodes at the same positions, and other saved nodes."""
        if self.rows is not None and scope is not None:
            self.rows.scope = scope
        self._saved = saved
