"""The graph of a session on the screen: lines and nodes with marks, inspector, drawer."""

import gc
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, TypeVar

from textual import getters
from textual.app import ComposeResult
from textual.containers import Container, Vertical

from onnxjson.model.display import visible
from onnxjson.model.index import NodeRef, Scope
from onnxjson.outline.places import INFERRED, LARGEST
from onnxjson.rendering.tables import wrapped
from onnxjson_tui.rows.beside_nodes import Columns, shown
from onnxjson_tui.rows.derived import Derived
from onnxjson_tui.rows.folding import Fold, folded_around
from onnxjson_tui.rows.inspector import InspectorRows, inspected
from onnxjson_tui.rows.nodes import NodeLines, NodeRows
from onnxjson_tui.rows.page import PageLines
from onnxjson_tui.session.history import place_of
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.keyed import KeyedScreen
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.actions import Action, Pane
from onnxjson_tui.widgets.drawer import Drawer
from onnxjson_tui.widgets.lines import Bar, LineList

_T = TypeVar("_T")

BIG: Final = 3_000  # nodes from which work on all of them is done in a thread
FEW: Final = 24
"""Nodes up to which a graph is listed unfolded at first: all of them fit on a screen."""

PANES: Final[tuple[Pane, ...]] = ("nodes", "inspector", "drawer")  # panes in the order of the tab key


class GraphScreen(KeyedScreen[int]):
    """Shows one graph of a session, which keeps all state that outlives the screen."""

    AUTO_FOCUS = "#nodes"

    def __init__(self, session: Session, terminal: Terminal, actions: Sequence[Action[Any]]) -> None:
        super().__init__(terminal, actions)
        self.session = session
        self._graph = session.index.scopes[0].address if session.index.scopes else ""
        self._rows = NodeLines(None, session)
        self._filter: tuple[str, list[int]] | None = None
        self._all_nodes: tuple[Scope, int, NodeRows] | None = None
        """The rows of a graph without a filter, and their revision."""
        self._flat: dict[str, bool] = {}  # by address of a graph, whether its nodes are listed instead of its lines
        self.derived = Derived(session)  # inferred types and lines
        self.toggled: set[str] = set()  # keys of lines that are unfolded, or for repeats folded
        self._followed = -1  # the revision that the rows show
        self._is_frozen = False

    # Widgets

    def body(self) -> ComposeResult:
        """Panes with their titles, drawer."""
        with Container(id="panes"):
            with Vertical(id="middle"):
                yield Bar(id="nodes-title")
                yield LineList(id="nodes")
            with Vertical(id="side"):
                yield Bar(id="inspector-title")
                yield LineList(id="inspector")
        yield Drawer(id="drawer")

    nodes = getters.query_one("#nodes", LineList)  # the list of nodes
    inspector = getters.query_one("#inspector", LineList)  # the fields of the node under the cursor
    drawer = getters.query_one(Drawer)  # the drawer at the bottom

    # Position

    @property
    def scope(self) -> Scope | None:
        """The graph that is shown; None if the model has none."""
        scopes = self.session.index.scopes
        return next((each for each in scopes if each.address == self._graph), scopes[0] if scopes else None)

    @property
    def here(self) -> NodeRef | None:
        """The node under the cursor, if there is one."""
        scope, position = self.scope, self._rows.position(self.nodes.cursor)
        if scope is None or position is None or position >= len(scope.graph.node):
            return None
        return NodeRef(scope, position)

    @property
    def fold_here(self) -> Fold | None:
        """The line of several nodes under the cursor; None if there is a node."""
        return self._rows.fold_at(self.nodes.cursor)

    def positions_of(self, number: int) -> tuple[int, ...]:
        """Return the positions of the nodes in a row of the list, in the order of the graph."""
        fold, position = self._rows.fold_at(number), self._rows.position(number)
        return fold.positions if fold is not None else () if position is None else (position,)

    def number_of(self, position: int) -> int | None:
        """Return the row of the node at a position, if it is listed."""
        return self._rows.number_of(position)

    def show_position(self, position: int) -> None:
        """Move the cursor to a node of the graph, whose line is unfolded if needed."""
        rows = self._rows
        if isinstance(rows, PageLines) and rows.number_of(position) is None:
            self.toggled ^= folded_around(rows.folds, self.toggled, position)
            rows.fold_again(self.toggled)
            self.nodes.show(rows, rows.number_around(position))
            self.after_rest(self.show_details)
            self.draw_bars()
        else:
            self.nodes.move_to(rows.number_of(position) or 0)

    # Folding

    def fold_as(self, toggled: Collection[str]) -> None:
        """Fold and unfold lines as they were."""
        if self.toggled != toggled:
            self.toggled = set(toggled)
            if isinstance(self._rows, PageLines):
                self._rows.fold_again(self.toggled)
                self.nodes.show(self._rows)

    @property
    def is_folded(self) -> bool:
        """Whether the list shows lines, each for several nodes."""
        return isinstance(self._rows, PageLines)

    def is_open(self, number: int) -> bool:
        """Whether a row is an unfolded line."""
        return isinstance(self._rows, PageLines) and self._rows.listed[number].is_open

    def turn_fold(self) -> bool:
        """Unfold the line under the cursor, or fold it or the one around; return whether there is one."""
        rows, number = self._rows, self.nodes.cursor
        if not isinstance(rows, PageLines):
            return False
        fold = rows.fold_at(number)
        if fold is None or not fold.is_foldable:
            number = rows.line_around(number)
            fold = rows.fold_at(number)
        if fold is None or not fold.is_foldable:
            return False
        self.toggled ^= {fold.key}
        rows.fold_again(self.toggled)
        self.nodes.show(rows, number)
        self.show_details()
        return True

    def turn_all(self) -> None:
        """List the nodes of the graph instead of its lines, or the other way round."""
        scope, ref = self.scope, self.here
        if scope is None:
            return
        self._flat[scope.address] = self.is_folded
        self._filter = None
        self.build(None if ref is None else ref.position)
        if not self.is_folded and not self._flat[scope.address]:
            few = f"; it has more than {LARGEST:,} nodes" if self.count > LARGEST else ""
            self.say(f"there are no lines to fold{few}")

    @property
    def count(self) -> int:
        """Number of nodes of the model."""
        return sum(len(scope.graph.node) for scope in self.session.index.scopes)

    def _lines_of(self, scope: Scope) -> tuple[Fold, ...]:
        """Return the lines of a graph; () if they are not known, or its nodes are listed."""
        few = len(scope.graph.node) <= FEW
        is_flat = self._filter is not None or self._flat.get(scope.address, few)
        return () if is_flat else self.derived.folds_of(scope)

    def read_model(self, *, infers: bool = True) -> None:
        """Derive types and lines of the model again, in a thread; the list follows."""
        if self.count > LARGEST:
            return
        is_inferred = self.count <= INFERRED
        work = self.derived.work(self._graph, infers=infers and is_inferred)

        def have(result: Any) -> None:
            if self.derived.take(result):
                self._show_reading()
                if not infers and is_inferred:
                    self.read_model()

        # Without it the list would keep the types from before the last edit.
        self.jobs.start("reading", "inferring types", work, have, is_kept=True)

    def _show_reading(self) -> None:
        scope = self.scope
        if scope is None:
            return
        if self.is_folded or self._lines_of(scope):
            self.build(is_alike=True, keeps_row=True)
        elif self._rows.rows is not None:
            self._rows.rows.infer(self.derived.typed(scope))
            self.nodes.refresh()
        self.show_details()

    @property
    def pane(self) -> Pane:
        """The pane that has the focus."""
        focused = self.focused
        for pane in PANES:
            if focused is not None and focused.id == ("drawer-rows" if pane == "drawer" else pane):
                return pane
        return "nodes"

    @property
    def lines(self) -> LineList:
        """The list that has the focus."""
        return self.focused if isinstance(self.focused, LineList) else self.nodes

    @property
    def filter(self) -> str:
        """The text of the filter; "" if all nodes are listed."""
        return self._filter[0] if self._filter else ""

    @property
    def chosen(self) -> list[int] | None:
        """Positions of the nodes that the filter found; None if all nodes are listed."""
        return self._filter[1] if self._filter else None

    def show_only(self, text: str, positions: list[int] | None) -> None:
        """List the nodes of the graph that `text` found; all of them if `positions` is None."""
        here = self.here
        position = None if here is None else here.position
        self._filter = None if positions is None else (text, positions)
        if positions and position is not None:
            position = positions[min(bisect_left(positions, position), len(positions) - 1)]
        self.build(position)

    def focus_pane(self, pane: Pane) -> None:
        """Give a pane the focus; on a narrow screen, show it instead of another one."""
        if pane == "drawer" and not self.drawer.is_open:
            return
        self.set_class(pane == "inspector", "show-inspector")
        if pane != "nodes":
            self.remove_class("full")
        lines = self.drawer.lines if pane == "drawer" else self.query_one(f"#{pane}", LineList)
        if lines.focusable:
            self.set_focus(lines, scroll_visible=False)  # at once, as the bars are drawn
        else:
            lines.focus()
        self.draw_bars()

    def go(self, address: str, *, remember: bool = True) -> bool:
        """Go to the node that an element is, is part of, or is consumed by; return whether there is one.

        With `remember`, ``back`` returns to the current node.
        """
        place = place_of(self.session.index, address)
        if place is None:
            self.say(f"there is nothing at {visible(address)}", "bad")
            return False
        scope, position = place
        here = self.here
        if remember and here is not None:
            self.session.places.jumps.leave(here.address)
        if self._filter is not None and position not in self._filter[1]:
            self._filter = None
        if scope.address != self._graph or (self._rows.number_of(position) is None and not self.is_folded):
            self._graph = scope.address
            self._filter = None
            self.build(position)
        self.show_position(position)
        return True

    # Drawing

    def show_figures(self, columns: Columns) -> None:
        """Show numbers in the list, which gets the whole width if it has no room for all; {} for none."""
        if len(shown(columns, self.nodes.size.width)) < len(columns):
            self.add_class("full")
        elif not columns:
            self.remove_class("full")
        self.session.figures = columns
        self.draw_bars()
        self.nodes.refresh()

    def build(self, position: int | None = None, *, is_alike: bool = False, keeps_row: bool = False) -> None:
        """Build the rows of the graph again, in a thread if it is big; the node at `position` gets the cursor.

        With `is_alike`, the old rows may stay until the new ones are ready; with `keeps_row`, the cursor stays on its
        line or node.
        """
        scope, chosen = self.scope, None if self._filter is None else self._filter[1]
        self._graph = "" if scope is None else scope.address
        revision, session = self.session.revision, self.session
        self._followed = revision
        if scope is None:
            self._take(NodeLines(None, session), position)
            return
        graph = scope
        if not self.is_big:
            self.derived.begin()
        typed = self.derived.typed(graph)
        if folds := self._lines_of(graph):
            nodes = NodeRows(graph, range(len(graph.graph.node)), typed=typed)
            page = PageLines(nodes, session, session.saved_nodes(graph), folds, self.toggled)
            at = self._rows.fold_at(self.nodes.cursor) if keeps_row else None
            if keeps_row and at is None and isinstance(self._rows, PageLines):
                position = self._rows.position(self.nodes.cursor)
                if position is not None:  # a node that is read stays in sight, whatever line it is in now
                    self.toggled ^= folded_around(folds, self.toggled, position)
                    page.fold_again(self.toggled)
            self._take(page, position, None if at is None else page.number_of_key(at.key))
            return
        if self._all_nodes is not None and self._all_nodes[:2] == (graph, revision):
            # Lanes do not depend on the filter.
            whole = self._all_nodes[2]
            rows = whole if chosen is None else whole.restricted(chosen)
            self._take(NodeLines(rows, session, session.saved_nodes(graph)), position)
            return

        def make() -> NodeRows:
            # Facts about all nodes are computed here, not when the cursor first rests.
            graph.find_names()
            rows = NodeRows(graph, chosen, typed=typed)
            assert rows.widths
            return rows

        def show(rows: NodeRows) -> None:
            if self.session.revision == revision:
                self._all_nodes = (graph, revision, rows) if chosen is None else None
                self._take(NodeLines(rows, session, session.saved_nodes(graph)), position)
                if self.is_big and not self._is_frozen:
                    self._is_frozen = True
                    gc.freeze()  # the records of a big model stay, and need no garbage collection

        if len(scope.graph.node) < BIG:
            show(make())
            return
        if not is_alike:
            # Nodes are shown before lanes and types are ready.
            bare = NodeRows(graph, chosen, is_bare=True)
            self._take(NodeLines(bare, session, session.saved_nodes(graph)), position)
        self.jobs.start("rows", "drawing the graph", make, show, is_kept=True)

    def _take(self, rows: NodeLines, position: int | None, number: int | None = None) -> None:
        if position is None and number is None and isinstance(rows, PageLines) and self.is_folded:
            position = self._rows.position(self.nodes.cursor)
        self._rows = rows
        if number is None and position is not None:
            number = rows.number_around(position)
        # Highlight lanes from the beginning, not only when the cursor rests.
        rows.light(rows.position(min(self.nodes.cursor if number is None else number, len(rows) - 1)))
        self.nodes.show(rows, number)
        self.show_details()

    def show_details(self) -> None:
        """Show the node under the cursor in the inspector, and its title."""
        ref = self.here
        self.session.places.cursor = None if ref is None else ref.address
        if self._rows.light(None if ref is None else ref.position):
            self.nodes.refresh()
        if ref is None or (not ref.scope.knows_names and len(ref.scope.graph.node) >= BIG):
            # While names are being read; this is called again afterwards.
            self.inspector.show(InspectorRows([]))
        else:
            width = max(self.inspector.scrollable_content_region.width - 1, 20)
            text = self._rows.cut_text(self.nodes.cursor, self.nodes.scrollable_content_region.width)
            line = wrapped(text, width, indent=2) if text else []
            saved, typed = self.session.saved_node(ref), self.derived.typed(ref.scope)
            self.inspector.show(inspected(self.session.model, self.session.index, ref, saved, typed, line=line))
        self.draw_bars()

    def draw_marks(self) -> None:
        """Draw the marks of changed nodes again, after a save."""
        self._rows.refresh(self.scope, self.session.saved_nodes(self.scope))
        self.nodes.show(self._rows)

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Show another node in the inspector when the cursor rests."""
        if event.lines is self.nodes:
            self.after_rest(self.show_details)

    # Work on all nodes

    @property
    def is_big(self) -> bool:
        """Whether work on all nodes is done in a thread."""
        return self.count >= BIG

    def compute(
        self,
        group: str,
        label: str,
        work: Callable[[], _T],
        receive: Callable[[_T], object],
        failed: Callable[[BaseException], None] | None = None,
        *,
        holds_keys: bool = False,
    ) -> None:
        """Run work on all nodes, in a thread if the model is big; the arguments are those of `Jobs.start`."""
        if self.is_big:
            self.jobs.start(group, label, work, receive, failed, holds_keys=holds_keys)
            return
        try:
            result = work()
        except Exception as error:
            (failed or self.failed)(error)
        else:
            receive(result)
