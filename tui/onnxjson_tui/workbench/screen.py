"""The workbench: panes, drawer, prompt and footer on one session; it implements `onnxjson_tui.shell.bench.Bench`."""

import gc
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, Final, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

from onnxjson.editing.applying import Change
from onnxjson.model.display import visible
from onnxjson.model.index import NodeRef, Scope
from onnxjson_tui.actions.catalogue import ACTIONS
from onnxjson_tui.keys.action import Action, Given, KeyReader, Pane
from onnxjson_tui.names.model_names import Names
from onnxjson_tui.pages.changes import ChangesPage, HistoryPage
from onnxjson_tui.pages.problems import ProblemsPage
from onnxjson_tui.pages.tensor import TensorPage
from onnxjson_tui.rows.inspector import InspectorRows, inspected
from onnxjson_tui.rows.nodes import NodeLines, NodeRows
from onnxjson_tui.rows.outline import Outline
from onnxjson_tui.rows.outline_sections import OpenedRows, OutlineLines
from onnxjson_tui.screens.dialogs import pressed_key
from onnxjson_tui.screens.recovery import offer_recovery
from onnxjson_tui.session.answers import Changed, Preview
from onnxjson_tui.session.edited_model import READ_ONLY
from onnxjson_tui.session.following import Redrawn, redrawn
from onnxjson_tui.session.selection import place_of
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.entering import failure_text
from onnxjson_tui.shell.finder import Finder
from onnxjson_tui.shell.jobs import Jobs
from onnxjson_tui.shell.node_marks import NodeMarks
from onnxjson_tui.shell.status_bars import footer_line, scope_path, title_line
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.bars import Bar, Tone
from onnxjson_tui.widgets.drawer import Drawer
from onnxjson_tui.widgets.lines import LineList
from onnxjson_tui.widgets.page import Page
from onnxjson_tui.widgets.prompt import Prompt

_T = TypeVar("_T")

SETTLES: Final = 0.12
"""Seconds that the cursor rests on a node before the inspector and the drawer show it."""

AWAITS: Final = 0.15
"""Seconds before the footer shows the beginning of a key sequence."""

BIG: Final = 3_000
"""Nodes from which work on all of them is done in a thread."""

_KEPT: Final = 200
"""Messages that are kept."""

_PAGES: Final[tuple[type[Page[Bench]], ...]] = (ProblemsPage, ChangesPage, TensorPage, HistoryPage)
"""In the order of the tabs."""

_PANES: Final[tuple[Pane, ...]] = ("outline", "nodes", "inspector", "drawer")


class Workbench(Screen[int]):
    """Shows a session, which keeps all state that outlives the screen."""

    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = "#nodes"
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """As in Textual, but a change of focus does not redraw the whole screen."""

    def __init__(self, session: Session, terminal: Terminal) -> None:
        super().__init__()
        self.session = session
        self.terminal = terminal
        self.actions: Sequence[Action[Bench]] = ACTIONS
        """All actions, in the order of the palette and the help."""
        self._keys = KeyReader(ACTIONS)
        self.finder = Finder(self)
        """The search in the list of nodes."""
        self.names: tuple[int, Names] | None = None
        """The names of the model at a revision, for the palette."""
        self.said: deque[tuple[str, Tone]] = deque(maxlen=_KEPT)
        """Messages shown so far, the newest last."""
        self._graph = session.index.scopes[0].address if session.index.scopes else ""
        self._rows = NodeLines(None, session)
        self.marks = NodeMarks(self)
        self._filter: tuple[str, list[int]] | None = None
        self._whole: tuple[Scope, int, NodeRows] | None = None
        """The rows of a graph without a filter, and their revision."""
        self.opened: set[str] = set()
        """Keys of the open scopes and groups of the outline."""
        self._message: tuple[str, Tone, float] = ("", "plain", 0.0)
        self._settling: Any = None
        self._awaiting: Any = None
        self._followed = -1
        self._is_frozen = False

    # Widgets

    def compose(self) -> ComposeResult:
        """Title, panes, drawer, prompt, footer."""
        yield Bar(id="title")
        with Horizontal(id="panes"):
            yield LineList(id="outline")
            yield LineList(id="nodes")
            yield LineList(id="inspector")
        yield Drawer(id="drawer")
        yield Prompt(id="prompt")
        yield Bar(id="footer")

    def on_mount(self) -> None:
        """Show the model."""
        self.jobs = Jobs(self, self.failed, self.draw_chrome)
        self.drawer.pages = {page.name: page(self) for page in _PAGES}
        self.prompt.find_offers = self._find_offers
        self.prompt.shown = self._prompt_shown
        self.prompt.refused_lines = lambda count: self.say(
            f"not pasted: {count:,} lines do not fit in one; forms (a) and E accept several", "bad"
        )
        self.build(0)
        for problem in self.session.opened.problems:
            self.say(problem, "changed")
        self.begin(offer_recovery(self))

    @property
    def nodes(self) -> LineList:
        """The list of nodes."""
        return self.query_one("#nodes", LineList)

    @property
    def outline(self) -> LineList:
        """The outline."""
        return self.query_one("#outline", LineList)

    @property
    def inspector(self) -> LineList:
        """The fields of the node under the cursor."""
        return self.query_one("#inspector", LineList)

    @property
    def drawer(self) -> Drawer:
        """The drawer at the bottom."""
        return self.query_one(Drawer)

    @property
    def prompt(self) -> Prompt:
        """The line to type in."""
        return self.query_one(Prompt)

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
        for pane in _PANES:
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
    def chosen(self) -> "list[int] | None":
        """Positions of the nodes that the filter found; None if all nodes are listed."""
        return self._filter[1] if self._filter else None

    @property
    def ascii_only(self) -> bool:
        """Whether lines are drawn with ASCII characters only."""
        return self.terminal.glyphs == "ascii"

    def show_only(self, text: str, positions: "list[int] | None") -> None:
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
        self.draw_chrome()

    def go(self, address: str, *, remember: bool = True) -> bool:
        """Go to the node that an element is, is part of, or is consumed by; return whether there is one.

        Args:
            address: such as ``/graph/node/3/attribute/axis``.
            remember: whether ``back`` returns to the current node.
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

    def build(self, position: int | None = None, *, is_alike: bool = False) -> None:
        """Build the rows of the graph again, in a thread if it is big.

        Args:
            position: the node that gets the cursor; None keeps its row.
            is_alike: whether the old rows may stay until the new ones are ready.
        """
        scope, chosen = self.scope, None if self._filter is None else self._filter[1]
        self._graph = "" if scope is None else scope.address
        revision, session = self.session.revision, self.session
        self._followed = revision
        if scope is None:
            self._take(NodeLines(None, session), OutlineLines(None, self), position)
            return
        graph, glyphs = scope, self.terminal.glyphs
        if self._whole is not None and self._whole[:2] == (graph, revision):
            # Lanes and outline do not depend on the filter.
            whole = self._whole[2]
            shown = whole if chosen is None else whole.restricted(chosen)
            self._take(NodeLines(shown, session, self.marks.of(graph)), None, position)
            return
        opened = frozenset(self.opened)

        def make() -> tuple[NodeRows, Outline, OpenedRows]:
            # Facts about all nodes are computed here, not when the cursor first rests.
            graph.find_names()
            rows, outline = NodeRows(graph, chosen, glyphs=glyphs), Outline(graph.graph.node)
            assert rows.operators_width >= 0
            return rows, outline, (opened, outline.rows(opened))

        def made(found: tuple[NodeRows, Outline, OpenedRows]) -> None:
            if self.session.revision == revision:
                self._whole = (graph, revision, found[0]) if chosen is None else None
                rows = NodeLines(found[0], session, self.marks.of(graph))
                self._take(rows, OutlineLines(found[1], self, found[2]), position)
                self._settle_memory()

        if len(scope.graph.node) < BIG:
            made(make())
            return
        if not is_alike:
            # Nodes are shown before lanes, types and outline are ready.
            bare = NodeRows(graph, chosen, glyphs=glyphs, is_bare=True)
            self._take(NodeLines(bare, session, self.marks.of(graph)), None, position)
        self.jobs.start("rows", "drawing the graph", make, made)

    def _settle_memory(self) -> None:
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
        self.settle()
        self.draw_chrome()

    def settle(self) -> None:
        """Show the node under the cursor in the inspector and on the page of the drawer."""
        here = self.here
        self.session.places.cursor = None if here is None else here.address
        for numbers, column in self._rows.light(None if here is None else here.position):
            self.nodes.column_changed(numbers, column)
        if here is None or (not here.scope.knows_names and len(here.scope.graph.node) >= BIG):
            # While names are being read; this is called again afterwards.
            self.inspector.show(InspectorRows([]))
        else:
            self.inspector.show(inspected(self.session.model, self.session.index, here, self.marks.was(here)))
        if self.drawer.page is not None:
            self.drawer.page.settled()

    def draw_marks(self) -> None:
        """Draw the marks of changed nodes again, after a save or after they were computed."""
        self._rows = self._rows.marked(self.marks.of(self.scope))
        self.nodes.show(self._rows)

    def draw_outline(self) -> None:
        """Draw the outline again after folding, or after its names, types or marks have changed."""
        lines = self.outline.rows
        if isinstance(lines, OutlineLines):
            self.outline.show(lines.again())

    def draw_chrome(self) -> None:
        """Draw title and footer; only differences are sent to the terminal."""
        if not self.is_mounted or not self.is_running:
            return
        self.query_one("#title", Bar).show(title_line(self), scope_path(self))
        text, tone, _ = self._message
        left, right, below = footer_line(self, text, tone, self._keys.pending)
        self.query_one("#footer", Bar).show(left, right, below)
        self.prompt.place_above(1 + len(below))

    def say(self, text: str, tone: Tone = "plain", *, keep: bool = True) -> None:
        """Show a message in the footer until the next key; `text` is made visible here.

        Args:
            text: the message.
            tone: its style.
            keep: whether ``:messages`` lists it; not for messages at every letter.
        """
        self._message = (visible(text, 1000), tone, time.monotonic())
        if text and keep:
            self.said.append(self._message[:2])
        self.draw_chrome()

    def failed(self, error: BaseException) -> None:
        """Show an error; errors of the program itself are also recorded."""
        self.say(failure_text(self.app, error), "bad")

    # Changes

    def perform(self, *changes: Change, title: str = "") -> None:
        """Make edits, scripts or patches as one step and report it; in a thread if the model is big."""
        session = self.session
        self.preview(lambda: session.preview(*changes, title=title), self.accept)

    def preview(
        self,
        make: Callable[[], Preview],
        then: Callable[[Preview], object],
        failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Compute a preview, in a thread if the model is big, and pass it on.

        Args:
            make: calls `Session.preview` or a similar method.
            then: gets the preview.
            failed: gets an error of `make`; without it, the error is shown.
        """
        if self.session.readonly:
            self.say(READ_ONLY, "bad")
            return
        self.compute("edit", "computing the changes", make, then, failed, holds_keys=True)

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

    def accept(self, preview: Preview) -> Changed | None:
        """Make a previewed change and report it."""
        try:
            changed = self.session.accept(preview)
        except Exception as error:
            self.failed(error)
            return None
        notes = "; ".join(preview.notes)
        if changed is None:
            self.say(f"nothing changes{': ' + notes if notes else ''}", "changed")
            return None
        self.changed(changed)
        said = f"{changed.step.title}{'  (' + notes + ')' if notes else ''}"
        if self.session.trouble:
            self.say(f"lost unless you save: {said}; {visible(self.session.trouble)}", "bad")
        else:
            self.say(said, "good")
        return changed

    def changed(self, changed: Changed | None) -> None:
        """Show the model after a change of the session."""
        if changed is None:
            return
        cursor = self.session.places.cursor
        place = None if cursor is None else place_of(self.session.index, cursor)
        is_elsewhere = place is not None and place[0].address != self._graph
        if place is not None:
            self._graph = place[0].address
        if changed.is_restructured or is_elsewhere:
            # The filter belongs to the old nodes or to another graph.
            self._filter = None
        if changed.is_restructured or is_elsewhere:
            self.build(place[1] if place else None)
        else:
            self._rows.refresh(self.scope, self.marks.of(self.scope))
            self.nodes.redraw_changed()
            self.draw_outline()
            self.settle()
            self._follow(redrawn(changed.patch.root))
        for page in self.drawer.pages.values():
            page.model_changed()
        self.draw_chrome()

    def _follow(self, needed: Redrawn) -> None:
        """Update what a change may have altered in all nodes, although it moved none of them."""
        scope, revision, former = self.scope, self.session.revision, self._followed
        self._followed = revision
        is_building = any(job.group == "rows" for job in self.jobs.running)
        is_known = scope is None or scope.knows_names or not self.is_big
        if needed.lanes or is_building or not is_known or former + 1 != revision:
            self.build(is_alike=True)
            return
        if self._whole is not None and self._whole[:2] == (scope, former):
            self._whole = (self._whole[0], revision, self._whole[2])
        if needed.outline and scope is not None:
            self._build_outline()

    def _build_outline(self) -> None:
        scope, revision, opened = self.scope, self.session.revision, frozenset(self.opened)
        assert scope is not None
        nodes = scope.graph.node

        def make() -> tuple[Outline, OpenedRows]:
            outline = Outline(nodes)
            return outline, (opened, outline.rows(opened))

        def made(found: tuple[Outline, OpenedRows]) -> None:
            if self.session.revision == revision:
                self.outline.show(OutlineLines(found[0], self, found[1]))

        self.compute("rows", "drawing the outline", make, made)

    def _prompt_shown(self, is_shown: bool) -> None:
        lists = (self.drawer.lines,) if self.drawer.is_open else (self.outline, self.nodes, self.inspector)
        for lines in (*lists, self.drawer.lines) if not is_shown else lists:
            lines.cover(1 if is_shown else 0)

    def _find_offers(self, find: Callable[[], Sequence[str]], then: Callable[[Sequence[str]], None]) -> None:
        self.compute("offers", "looking for completions", find, then)

    @property
    def is_big(self) -> bool:
        """Whether work on all nodes is done in a thread."""
        return sum(len(scope.graph.node) for scope in self.session.index.scopes) >= BIG

    # Keys

    def on_key(self, event: events.Key) -> None:
        """Read a key, unless the prompt is open."""
        if self.prompt.is_asking:
            return
        event.stop()
        event.prevent_default()
        key = pressed_key(event)
        heard = self._keys.feed(key, self.pane)
        if self._message[0]:
            self._message = ("", "plain", 0.0)
        if self._awaiting is not None:
            self._awaiting.stop()
        if heard.kind == "more" and self._keys.pending:
            # A fast typist does not need it, and drawing it would delay the next key.
            self._awaiting = self.set_timer(AWAITS, self.draw_chrome)
        else:
            self.draw_chrome()
        if heard.kind == "action" and heard.action is not None:
            self.do(heard.action, heard.given)
        elif heard.kind == "nothing":
            self.say(f"{visible(key)} does nothing here; ? lists the keys", "plain")

    def do(self, action: Action[Bench], given: Given = Given()) -> None:  # noqa: B008 - immutable
        """Run an action; report its error."""
        if action.changes and self.session.readonly:
            self.say(READ_ONLY, "bad")
            return
        try:
            work = action.run(self, given)
        except Exception as error:
            self.failed(error)
            return
        if work is not None:
            self.begin(work)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that waits for something, such as an answer; report its error."""
        self.run_worker(self._finish(work), group="actions", exit_on_error=False)

    async def _finish(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self.failed(error)

    def on_resize(self, event: events.Resize) -> None:
        """Draw the bars for another width."""
        self.call_after_refresh(self.draw_chrome)
        if self.drawer.is_open:
            self.call_after_refresh(self.drawer.draw_tabs)

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Show another node in the inspector when the cursor rests."""
        if event.lines is self.nodes:
            if self._settling is not None:
                self._settling.stop()
            self._settling = self.set_timer(SETTLES, self.settle)

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Treat a double click as enter."""
        action = next((each for each in self.actions if each.scope == self.pane and "enter" in each.keys), None)
        if action is not None:
            self.do(action)
