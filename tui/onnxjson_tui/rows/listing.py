"""Rows of the node list and of the outline as styled lines of a given width."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from onnxjson.model.index import Scope
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson_tui.rows.nodes import NodeRows, node_line
from onnxjson_tui.rows.outline import Outline, OutlineRow
from onnxjson_tui.rows.outline_sections import Row, Sections, row_line
from onnxjson_tui.session.saved_nodes import SavedNodes

if TYPE_CHECKING:
    from onnxjson_tui.session.session import Session

_EMPTY = "no nodes"

OpenedRows: TypeAlias = tuple[frozenset[str], Sequence[OutlineRow]]
"""Keys of open scopes, and the visible rows of the outline."""


class NodeLines:
    """The nodes of one graph, with marks for selected, changed and new ones."""

    def __init__(self, rows: NodeRows | None, session: "Session", saved: SavedNodes | None = None) -> None:
        """Use the rows of a graph.

        Args:
            rows: rows of the graph; None without a graph.
            session: the session, with its selection.
            saved: the saved nodes of the graph; None to mark no node as changed.
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
        """Return the same rows with marks for other saved nodes."""
        return NodeLines(self.rows, self._session, saved)

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
        return self.rows.position_at(number)

    def number_of(self, position: int) -> int | None:
        """Return the row of a node."""
        return None if self.rows is None else self.rows.number_of(position)

    def refresh(self, scope: Scope | None, saved: SavedNodes | None) -> None:
        """Use changed nodes at the same positions, and other saved nodes."""
        if self.rows is not None and scope is not None:
            self.rows.scope = scope
        self._saved = saved


class OutlineOwner(Protocol):
    """The screen that an outline is part of."""

    opened: set[str]
    """Keys of the open scopes and groups."""

    @property
    def session(self) -> "Session":
        """The session on the model."""
        ...

    @property
    def scope(self) -> Scope | None:
        """The graph that is shown, if there is one."""
        ...

    @property
    def ascii_only(self) -> bool:
        """Whether lines are drawn with ASCII characters only."""
        ...


class OutlineLines:
    """The outline, section by section; the workbench stores what is open."""

    def __init__(self, outline: Outline | None, bench: OutlineOwner, known: OpenedRows | None = None) -> None:
        """Compute the rows; `known` are the previous rows with their open keys."""
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
        """Return the lines after something was opened or closed, or after the model or its marks changed."""
        return OutlineLines(self._outline, self._bench, self._known)

    def __len__(self) -> int:
        return len(self.sections)

    def row(self, number: int) -> Row | None:
        """Return a row; None after the last one."""
        return self.sections.row(number) if 0 <= number < len(self.sections) else None

    def line(self, number: int, width: int) -> Line:
        """Indentation, fold mark, label, and at the right how many or of which type."""
        return row_line(self.sections.row(number), width, ascii_only=self._bench.ascii_only)
