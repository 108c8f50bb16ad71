"""The graph of a session on the screen: nodes with lanes and marks, outline, inspector, drawer."""

import gc
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from textual import getters
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.reactive import Reactive
from textual.strip import Strip
from textual.widget import Widget

from onnxjson.model.display import visible
from onnxjson.model.document import Node
from onnxjson.model.index import NodeRef, Scope
from onnxjson.patching.patch import Patch
from onnxjson.rendering.tables import Span
from onnxjson_tui.rows.beside_nodes import Columns, heads, shown
from onnxjson_tui.rows.inspector import InspectorRows, inspected
from onnxjson_tui.rows.nodes import NodeLines, NodeRows
from onnxjson_tui.rows.outline import Outline
from onnxjson_tui.rows.outline_sections import OpenedRows, OutlineLines
from onnxjson_tui.session.following import SavedNodes
from onnxjson_tui.session.history import place_of
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.keyed import KeyedScreen
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.actions import Action, Pane
from onnxjson_tui.widgets.drawer import Drawer
from onnxjson_tui.widgets.lines import LineList, StyledWidget, one_strip

_T = TypeVar("_T")

BIG: Final = 3_000  # nodes from which work on all of them is done in a thread
PANES: Final[tuple[Pane, ...]] = ("outline", "nodes", "inspector", "drawer")  # panes in the order of the tab key


class _Heads(StyledWidget):
    """The line above a list with numbers."""

    def render_line(self, y: int) -> Strip:
        """Draw the line; only now the width of the list is known."""
        assert isinstance(self.screen, GraphScreen)
        width = self.screen.nodes.scrollable_content_region.width
        line = (Span(heads(self.screen.session.figures, width), "quiet"),)
        return one_strip(line, self.size.width, self.span_style("plain"), None, self.span_style)


class GraphScreen(KeyedScreen[int]):
    """Shows one graph of a session, which keeps all state that outlives the screen."""

    AUTO_FOCUS = "#nodes"
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """As in Textual, but a change of focus does not redraw the whole screen."""

    def __init__(self, session: Session, terminal: Terminal, actions: Sequence[Action[Any]]) -> None:
        super().__init__(terminal, actions)
        self.session = session
        self._graph = session.index.scopes[0].address if session.index.scopes else ""
        self._rows = NodeLines(None, session)
        self._marks: tuple[Scope, Patch, SavedNodes] | None = None
        self._filter: tuple[str, list[int]] | None = None
        self._whole: tuple[Scope, int, NodeRows] | None = None
        """The rows of a graph without a filter, and their revision."""
        self.opened: set[str] = set()  # keys of the open scopes and groups of the outline
        self._followed = -1  # the revision that the rows show
        self._is_frozen = False

    # Widgets

    def body(self) -> ComposeResult:
        """Panes, drawer."""
        with Horizontal(id="panes"):
            yield LineList(id="outline")
            with Vertical(id="middle"):
                yield _Heads(id="heads")
                yield LineList(id="nodes")
            yield LineList(id="inspector")
        yield Drawer(id="drawer")

    nodes = getters.query_one("#nodes", LineList)  # the list of nodes
    outline = getters.query_one("#outline", LineList)  # the outline
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

    def position_of(self, number: int) -> int | None:
        """Return the position of the node in a row of the list; None if there is no such row."""
        return self._rows.position(number)

    def number_of(self, position: int) -> int | None:
        """Return the row of the node at a position, if it is listed."""
        return self._rows.number_of(position)

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
        self.set_class(pane == "outline", "show-outline")
        self.set_class(pane == "inspector", "show-inspector")
        if pane != "nodes":
            self.remove_class("full")
        lines = self.drawer.lines if pane == "drawer" else self.query_one(f"#{pane}", LineList)
        if lines.focusable:
            # `focus` would redraw the whole list.
            self.set_focus(lines, scroll_visible=False)
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
        if scope.address != self._graph or self._rows.number_of(position) is None:
            self._graph = scope.address
            self._filter = None
            self.build(position)
        else:
            self.nodes.move_to(self._rows.number_of(position) or 0)
        return True

    # Drawing

    def show_figures(self, found: Columns) -> None:
        """Show numbers in the list, which gets the whole width if it has no room for all; {} for none."""
        if len(shown(found, self.nodes.size.width)) < len(found):
            self.add_class("full")
        elif not found:
            self.remove_class("full")
        self.session.figures = found
        self.query_one(_Heads).display = bool(found)
        self.query_one(_Heads).refresh()
        self.nodes.refresh()

    def build(self, position: int | None = None, *, is_alike: bool = False) -> None:
        """Build the rows of the graph again, in a thread if it is big; the node at `position` gets the cursor.

        With `is_alike`, the old rows may stay until the new ones are ready.
        """
        scope, chosen = self.scope, None if self._filter is None else self._filter[1]
        self._graph = "" if scope is None else scope.address
        revision, session = self.session.revision, self.session
        self._followed = revision
        if scope is None:
            self._take(NodeLines(None, session), self._outlined(), position)
            return
        graph, glyphs = scope, self.terminal.glyphs
        if self._whole is not None and self._whole[:2] == (graph, revision):
            # Lanes and outline do not depend on the filter.
            whole = self._whole[2]
            shown = whole if chosen is None else whole.restricted(chosen)
            self._take(NodeLines(shown, session, self.saved_nodes(graph)), None, position)
            return
        opened = frozenset(self.opened)

        def make() -> tuple[NodeRows, Outline, OpenedRows]:
            # Facts about all nodes are computed here, not when the cursor first rests.
            graph.find_names()
            rows, outline = NodeRows(graph, chosen, glyphs=glyphs), Outline(graph.graph.node)
            assert rows.widths
            return rows, outline, (opened, outline.rows(opened))

        def made(found: tuple[NodeRows, Outline, OpenedRows]) -> None:
            if self.session.revision == revision:
                self._whole = (graph, revision, found[0]) if chosen is None else None
                rows = NodeLines(found[0], session, self.saved_nodes(graph))
                self._take(rows, self._outlined(found[1], found[2]), position)
                self._freeze_memory()

        if len(scope.graph.node) < BIG:
            made(make())
            return
        if not is_alike:
            # Nodes are shown before lanes, types and outline are ready.
            bare = NodeRows(graph, chosen, glyphs=glyphs, is_bare=True)
            self._take(NodeLines(bare, session, self.saved_nodes(graph)), None, position)
        self.jobs.start("rows", "drawing the graph", make, made)

    def _freeze_memory(self) -> None:
        """Exclude the records of a big model from garbage collection, since they stay."""
        if not self._is_frozen and self.is_big:
            self._is_frozen = True
            gc.freeze()

    def _take(self, rows: NodeLines, outline: OutlineLines | None, position: int | None) -> None:
        self._rows = rows
        number = None if position is None else rows.number_of(position)
        # Highlight lanes from the beginning, not only when the cursor rests.
        rows.light(rows.position(min(self.nodes.cursor if number is None else number, len(rows) - 1)))
        self.nodes.show(rows, number)
        if outline is not None:
            self.outline.show(outline)
        self.show_details()
        self.draw_bars()

    def show_details(self) -> None:
        """Show the node under the cursor in the inspector and on the page of the drawer."""
        here = self.here
        self.session.places.cursor = None if here is None else here.address
        for numbers, column in self._rows.light(None if here is None else here.position):
            self.nodes.column_changed(numbers, column)
        if here is None or (not here.scope.knows_names and len(here.scope.graph.node) >= BIG):
            # While names are being read; this is called again afterwards.
            self.inspector.show(InspectorRows([]))
        else:
            self.inspector.show(inspected(self.session.model, self.session.index, here, self._saved_node(here)))

    def saved_nodes(self, scope: Scope | None) -> SavedNodes | None:
        """Return the saved counterparts of the nodes of a graph; None if nothing changed since."""
        if scope is None or not self.session.is_changed:
            return None
        patch = self.session.to_saved
        if self._marks is None or self._marks[0] is not scope or self._marks[1] is not patch:
            self._marks = scope, patch, SavedNodes.of(patch, scope)
        return self._marks[2]

    def _saved_node(self, ref: NodeRef) -> Node | None:
        """Return the saved version of a node; None if it is unchanged or new."""
        saved = self.saved_nodes(ref.scope)
        return None if saved is None or not saved.mark(ref.position) else saved.counterpart(ref.position)

    def draw_marks(self) -> None:
        """Draw the marks of changed nodes again, after a save."""
        self._rows.refresh(self.scope, self.saved_nodes(self.scope))
        self.nodes.show(self._rows)

    def draw_outline(self) -> None:
        """Draw the outline again after folding, or after its names, types or marks have changed."""
        lines = self.outline.rows
        if isinstance(lines, OutlineLines):
            self.outline.show(self._outlined(lines.outline, lines.known))

    def _outlined(self, outline: Outline | None = None, known: OpenedRows | None = None) -> OutlineLines:
        ascii_only = self.terminal.glyphs == "ascii"
        return OutlineLines(self.session, self.scope, self.opened, outline, known, ascii_only=ascii_only)

    def _build_outline(self) -> None:
        scope, revision, opened = self.scope, self.session.revision, frozenset(self.opened)
        assert scope is not None
        nodes = scope.graph.node

        def make() -> tuple[Outline, OpenedRows]:
            outline = Outline(nodes)
            return outline, (opened, outline.rows(opened))

        def made(found: tuple[Outline, OpenedRows]) -> None:
            if self.session.revision == revision:
                self.outline.show(self._outlined(*found))

        self.compute("rows", "drawing the outline", make, made)

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Show another node in the inspector when the cursor rests."""
        if event.lines is self.nodes:
            self.after_rest(self.show_details)

    # Work on all nodes

    @property
    def is_big(self) -> bool:
        """Whether work on all nodes is done in a thread."""
        return sum(len(scope.graph.node) for scope in self.session.index.scopes) >= BIG

    def compute(
        self,
        group: str,
        label: str,
        work: Callable[[], _T],
        then: Callable[[_T], object],
        failed: Callable[[BaseException], None] | None = None,
        *,
        holds_keys: bool = False,
    ) -> None:
        """Run work on all nodes, in a thread if the model is big; the arguments are those of `Jobs.start`."""
        if self.is_big:
            self.jobs.start(group, label, work, then, failed, holds_keys=holds_keys)
            return
        try:
            result = work()
        except Exception as error:
            (failed or self.failed)(error)
        else:
            then(result)
