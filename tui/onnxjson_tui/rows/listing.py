"""The rows of the node list and of the outline as lines with styles, in the columns of a width."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from onnxjson.index import Scope
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson_tui.rows.nodes import NodeRows, node_line
from onnxjson_tui.rows.outline import Outline, OutlineRow
from onnxjson_tui.rows.outline_sections import Row, Sections, row_line
from onnxjson_tui.saved_nodes import SavedNodes

if TYPE_CHECKING:
    from onnxjson_tui.session import Session
    from onnxjson_tui.workbench import Workbench

_EMPTY = "no nodes"

OpenedRows: TypeAlias = tuple[frozenset[str], Sequence[OutlineRow]]
"""Keys of scopes that are open, and the rows of an outline that are seen then."""


class NodeLines:
    """The nodes of one graph; those that are selected are marked, and those that are not as they are saved."""

    def __init__(self, rows: NodeRows | None, session: "Session", saved: SavedNodes | None = None) -> None:
        """Takes the rows.

        Args:
            rows: of the graph; None where there is none.
            session: knows what is selected.
            saved: the nodes of the graph as they are saved; None where no node is to be marked.
        """
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

    def marked(self, saved: SavedNodes | None) -> "NodeLines":
        """The same rows, marked by what is saved now."""
        return NodeLines(self.rows, self._session, saved)

    def light(self, position: int | None) -> list[tuple[range, int]]:
        """Makes the lanes of what a node makes stand out; gives the rows and the column of what looks different now."""
        if self.rows is None:
            return []
        # Only a list of all nodes has lanes, so that rows are positions.
        start = 2 + self._digits
        return [(each.rows, start + 2 * each.lane) for each in self.rows.light(position)]

    def position(self, number: int) -> int | None:
        """The position of the node of a row."""
        if self.rows is None or not 0 <= number < len(self.rows):
            return None
        return self.rows.position_at(number)

    def number_of(self, position: int) -> int | None:
        """The row of a node."""
        return None if self.rows is None else self.rows.number_of(position)

    def refresh(self, scope: Scope | None, saved: SavedNodes | None) -> None:
        """The graph has other nodes at the same places; `saved` as at the beginning."""
        if self.rows is not None and scope is not None:
            self.rows.scope = scope
        self._saved = saved


class OutlineLines:
    """The outline, section by section; what is open is known to the workbench."""

    def __init__(self, outline: Outline | None, bench: "Workbench", known: OpenedRows | None = None) -> None:
        """Finds out which rows there are; `known` are those of the outline with what was open then."""
        self._outline = outline
        self._bench = bench
        opened = frozenset(bench.opened)
        session = bench.session
        if known is None or known[0] != opened:
            known = opened, [] if outline is None else outline.rows(opened)
        self._known = known
        self.sections: Sections = Sections(
            session.model, session.index, bench.scope, known[1], opened, session.places.marks
        )

    def again(self) -> "OutlineLines":
        """The lines after something was opened or closed, or after the model or its marks have changed."""
        return OutlineLines(self._outline, self._bench, self._known)

    def __len__(self) -> int:
        return len(self.sections)

    def row(self, number: int) -> Row | None:
        """What a row stands for; None beyond the last one."""
        return self.sections.row(number) if 0 <= number < len(self.sections) else None

    def line(self, number: int, width: int) -> Line:
        """Indentation, fold mark, label, and at the right how many or of which type."""
        return row_line(self.sections.row(number), width, ascii_only=self._bench.terminal.glyphs == "ascii")
