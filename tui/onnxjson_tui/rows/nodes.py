"""The list of the nodes of one graph: position, lanes, operator, name, type of the first output."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import operator_name
from onnxjson.model.types import format_type
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson.rendering.tables import cells, padded, shortened, shortened_name
from onnxjson_tui.rows.lanes import MOST_LANES, Glyphs, Lanes, Lit
from onnxjson_tui.session.comparing import SavedNodes
from onnxjson_tui.session.session import Session

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
        mark = "" if self._saved is None else self._saved.mark(self.rows.scope.graph.node, row.position)
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
