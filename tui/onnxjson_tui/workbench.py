"""The screen on which a model is read and edited: panes, drawer, prompt, and what every action may ask of them."""

import gc
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

from onnxjson.display import visible
from onnxjson.edits.applying import Change
from onnxjson.index import NodeRef, Scope
from onnxjson.rendering.spans import Span
from onnxjson_tui.action import Action, Given, Pane
from onnxjson_tui.actions.catalogue import ACTIONS
from onnxjson_tui.answers import Changed, Preview
from onnxjson_tui.chrome import footer_line, scope_path, title_line
from onnxjson_tui.edited_model import READ_ONLY
from onnxjson_tui.entering import failure_said
from onnxjson_tui.finder import Finder
from onnxjson_tui.jobs import Jobs
from onnxjson_tui.key_reader import KeyReader
from onnxjson_tui.model_names import Names
from onnxjson_tui.node_marks import NodeMarks
from onnxjson_tui.pages.catalogue import PAGES
from onnxjson_tui.places import place_of
from onnxjson_tui.redrawing import Redrawn, redrawn
from onnxjson_tui.rows.inspector import InspectorRows, inspected
from onnxjson_tui.rows.listing import NodeLines, OpenedRows, OutlineLines
from onnxjson_tui.rows.nodes import NodeRows
from onnxjson_tui.rows.outline import Outline
from onnxjson_tui.screens.recovery import offer_recovery
from onnxjson_tui.session import Session
from onnxjson_tui.terminal import Terminal
from onnxjson_tui.widgets.bars import Bar, Tone
from onnxjson_tui.widgets.drawer import Drawer
from onnxjson_tui.widgets.lines import LineList
from onnxjson_tui.widgets.prompt import Prompt

SETTLES: Final = 0.12
"""Seconds that the cursor rests on a node before the inspector and the drawer follow."""

AWAITS: Final = 0.15
"""Seconds before keys that are the beginning of something stand at the bottom."""

BIG: Final = 3_000
"""Nodes from which work on all of them is done in a thread."""

_KEPT: Final = 200
"""Messages that can be read again."""

_PANES: Final[tuple[Pane, ...]] = ("outline", "nodes", "inspector", "drawer")


class Workbench(Screen[int]):
    """Shows a session; whatever holds longer than the screen is in the session."""

    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = "#nodes"
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """As any screen has it, but that the whole screen is not drawn again when another widget has the focus."""

    def __init__(self, session: Session, terminal: Terminal) -> None:
        super().__init__()
        self.session = session
        self.terminal = terminal
        self.actions = ACTIONS
        """What can be done, in the order of the palette and the help."""
        self._keys = KeyReader(ACTIONS)
        self.finder = Finder(self)
        """What is searched for."""
        self.names: tuple[int, Names] | None = None
        """The names of the model at a revision, for the palette."""
        self.said: deque[tuple[str, Tone]] = deque(maxlen=_KEPT)
        """What was said at the bottom, the newest last."""
        self._graph = session.index.scopes[0].address if session.index.scopes else ""
        self._rows = NodeLines(None, session)
        self.marks = NodeMarks(self)
        self._filter: tuple[str, list[int]] | None = None
        self._whole: tuple[Scope, int, NodeRows] | None = None
        """The rows of a graph without a filter, and the revision that they are of."""
        self.opened: set[str] = set()
        """Scopes and groups of the outline that are open, by their keys."""
        self._message: tuple[str, Tone, float] = ("", "plain", 0.0)
        self._settling: Any = None
        self._awaiting: Any = None
        self._followed = -1
        self._is_frozen = False

    # What is on it

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
        self.drawer.pages = {page.name: page(self) for page in PAGES}
        self.prompt.find_offers = self._find_offers
        self.prompt.shown = self._prompt_shown
        self.prompt.refused_lines = lambda count: self.say(
            f"nothing was pasted: it has {count:,} lines, and this is one; forms (a) and E take several", "bad"
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
        """What there is to know of one node."""
        return self.query_one("#inspector", LineList)

    @property
    def drawer(self) -> Drawer:
        """The drawer at the bottom."""
        return self.query_one(Drawer)

    @property
    def prompt(self) -> Prompt:
        """The line to type in."""
        return self.query_one(Prompt)

    # Where the person is

    @property
    def scope(self) -> Scope | None:
        """The graph that is shown; None where the model has none."""
        scopes = self.session.index.scopes
        return next((each for each in scopes if each.address == self._graph), scopes[0] if scopes else None)

    @property
    def here(self) -> NodeRef | None:
        """The node under the cursor; None where there is none."""
        scope, position = self.scope, self._rows.position(self.nodes.cursor)
        if scope is None or position is None or position >= len(scope.graph.node):
            return None
        return NodeRef(scope, position)

    def position_of(self, number: int) -> int | None:
        """The position of the node of a row of the list of nodes; None where there is no such row."""
        return self._rows.position(number)

    def number_of(self, position: int) -> int | None:
        """The row of the node at a position; None where it is not shown."""
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
        """What the list of nodes is restricted to; "" where it has all of them."""
        return self._filter[0] if self._filter else ""

    @property
    def chosen(self) -> "list[int] | None":
        """The positions of the nodes that the list is restricted to; None where it has all of them."""
        return self._filter[1] if self._filter else None

    @property
    def is_small(self) -> bool:
        """Whether work on all nodes may be done at once."""
        return not self.is_big

    def show_only(self, text: str, positions: "list[int] | None") -> None:
        """Shows some nodes of the graph, found by `text`; all again where `positions` is None."""
        here = self.here
        position = None if here is None else here.position
        self._filter = None if positions is None else (text, positions)
        if positions and position is not None:
            position = positions[min(bisect_left(positions, position), len(positions) - 1)]
        self.build(position)

    def focus_pane(self, pane: Pane) -> None:
        """Gives a pane the focus; where there is no room for it, instead of another one."""
        if pane == "drawer" and not self.drawer.is_open:
            return
        self.set_class(pane == "outline", "show-outline")
        self.set_class(pane == "inspector", "show-inspector")
        if pane != "nodes":
            self.remove_class("full")
        lines = self.drawer.lines if pane == "drawer" else self.query_one(f"#{pane}", LineList)
        if lines.focusable:
            # `focus` would draw all of it again.
            self.set_focus(lines, scroll_visible=False)
        else:
            lines.focus()
        self.draw_chrome()

    def go(self, address: str, *, remember: bool = True) -> bool:
        """Goes to an element: to the node that it is, belongs to, or is taken by. Whether there is such a place.

        Args:
            address: such as ``/graph/node/3/attribute/axis``.
            remember: whether ``back`` leads here again.
        """
        place = place_of(self.session, address)
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

    # What is seen

    def build(self, position: int | None = None, *, is_alike: bool = False) -> None:
        """Makes the rows of the graph anew, the cursor on a node; in a thread for a big graph.

        Args:
            position: that of the node; the cursor stays in its row for None.
            is_alike: whether the rows that are seen may stay until the new ones are there.
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
            # Lanes and outline are those of the graph, whatever is left out of the list.
            whole = self._whole[2]
            shown = whole if chosen is None else whole.restricted(chosen)
            self._take(NodeLines(shown, session, self.marks.of(graph)), None, position)
            return
        opened = frozenset(self.opened)

        def make() -> tuple[NodeRows, Outline, OpenedRows]:
            # What is asked of every node is found out here, not when the cursor first rests.
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
            # Until lanes, types and outline are there, the nodes are.
            bare = NodeRows(graph, chosen, glyphs=glyphs, is_bare=True)
            self._take(NodeLines(bare, session, self.marks.of(graph)), None, position)
        self.jobs.start("rows", "drawing the graph", make, made)

    def _settle_memory(self) -> None:
        """What is known of a big model is there to stay: full collections need not look through it each time."""
        if not self._is_frozen and self.is_big:
            self._is_frozen = True
            gc.freeze()

    def _take(self, rows: NodeLines, outline: OutlineLines | None, position: int | None) -> None:
        self._rows = rows
        number = None if position is None else rows.number_of(position)
        # Lanes stand out from the beginning, not only when the cursor rests.
        rows.light(rows.position(min(self.nodes.cursor if number is None else number, len(rows) - 1)))
        self.nodes.show(rows, number)
        if outline is not None:
            self.outline.show(outline)
        self.settle()
        self.draw_chrome()

    def settle(self) -> None:
        """Shows the node under the cursor in the inspector, and tells the page of the drawer."""
        here = self.here
        self.session.places.cursor = None if here is None else here.address
        for numbers, column in self._rows.light(None if here is None else here.position):
            self.nodes.column_changed(numbers, column)
        if here is None or (not here.scope.knows_names and len(here.scope.graph.node) >= BIG):
            # Where names are still being found out, this is called again when they are.
            self.inspector.show(InspectorRows([]))
        else:
            self.inspector.show(inspected(self.session.model, self.session.index, here, self.marks.was(here)))
        if self.drawer.page is not None:
            self.drawer.page.settled()

    def draw_marks(self) -> None:
        """Draws the marks of changed nodes again: what is saved is another model now, or is known by now."""
        self._rows = self._rows.marked(self.marks.of(self.scope))
        self.nodes.show(self._rows)

    def draw_outline(self) -> None:
        """Draws the outline again: something in it was opened or closed, or its names, types or marks have changed."""
        lines = self.outline.rows
        if isinstance(lines, OutlineLines):
            self.outline.show(lines.again())

    def draw_chrome(self) -> None:
        """Draws title and footer; they cost bytes only where they differ."""
        if not self.is_mounted or not self.is_running:
            return
        self.query_one("#title", Bar).show(title_line(self), scope_path(self))
        text, tone, _ = self._message
        left, right, below = footer_line(self, text, tone, self._keys.pending)
        self.query_one("#footer", Bar).show(left, right, below)
        self.prompt.stand_above(1 + len(below))

    def say(self, text: str, tone: Tone = "plain", *, keep: bool = True) -> None:
        """Says something at the bottom until the next key; `text` is made visible here.

        Args:
            text: what is said.
            tone: whether it is good or bad.
            keep: whether it can be read again later; not what is said at every letter.
        """
        self._message = (visible(text, 1000), tone, time.monotonic())
        if text and keep:
            self.said.append(self._message[:2])
        self.draw_chrome()

    def failed(self, error: BaseException) -> None:
        """Says what went wrong; errors of the program itself are kept for tests and for the end."""
        self.say(failure_said(self.app, error), "bad")

    # Changes

    def perform(self, *changes: Change, title: str = "") -> None:
        """Makes edits, scripts or patches one step, and says what came of it; in a thread for a big model."""
        session = self.session
        self.preview(lambda: session.preview(*changes, title=title), self.accept)

    def preview(
        self,
        make: Callable[[], Preview],
        then: Callable[[Preview], object],
        failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Finds out what a change would do, in a thread for a big model, and goes on with the `Preview`.

        Args:
            make: what `Session.preview` and its like give.
            then: what is done with it.
            failed: is given the error where it cannot be made; otherwise it is said.
        """
        if self.session.readonly:
            self.say(READ_ONLY, "bad")
            return
        if self.is_big:
            self.jobs.start("edit", "finding out what changes", make, then, failed, holds_keys=True)
            return
        try:
            preview = make()
        except Exception as error:
            (failed or self.failed)(error)
        else:
            then(preview)

    def accept(self, preview: Preview) -> Changed | None:
        """Makes a previewed change, and says what came of it."""
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
            self.say(f"lost if this program ends before it is saved: {said}; {visible(self.session.trouble)}", "bad")
        else:
            self.say(said, "good")
        return changed

    def changed(self, changed: Changed | None) -> None:
        """Shows the model after a change that the session made."""
        if changed is None:
            return
        cursor = self.session.places.cursor
        place = None if cursor is None else place_of(self.session, cursor)
        is_elsewhere = place is not None and place[0].address != self._graph
        if place is not None:
            self._graph = place[0].address
        if changed.is_restructured or is_elsewhere:
            # A filter is about the nodes that were there, or about those of another graph.
            self._filter = None
        if changed.is_restructured or is_elsewhere:
            self.build(place[1] if place else None)
        else:
            self._rows.refresh(self.scope, self.marks.of(self.scope))
            self.nodes.look_again()
            self.draw_outline()
            self.settle()
            self._follow(redrawn(changed.patch.root))
        for page in self.drawer.pages.values():
            page.model_changed()
        self.draw_chrome()

    def _follow(self, needed: Redrawn) -> None:
        """Finds out about all nodes what a change that moved none of them made different."""
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

        if self.is_small:
            made(make())
        else:
            self.jobs.start("rows", "drawing the outline", make, made)

    def _prompt_shown(self, is_shown: bool) -> None:
        lists = (self.drawer.lines,) if self.drawer.is_open else (self.outline, self.nodes, self.inspector)
        for lines in (*lists, self.drawer.lines) if not is_shown else lists:
            lines.cover(1 if is_shown else 0)

    def _find_offers(self, find: Callable[[], Sequence[str]], then: Callable[[Sequence[str]], None]) -> None:
        if self.is_big:
            self.jobs.start("offers", "looking for what fits", find, then)
        else:
            then(find())

    @property
    def is_big(self) -> bool:
        """Whether work on all nodes is done in a thread."""
        return sum(len(scope.graph.node) for scope in self.session.index.scopes) >= BIG

    # Keys

    def on_key(self, event: events.Key) -> None:
        """Keys that no field takes are those of the table of actions."""
        if self.prompt.is_asking:
            return
        event.stop()
        event.prevent_default()
        key = event.character if event.is_printable and event.character != " " else event.key
        heard = self._keys.feed(key or event.key, self.pane)
        if self._message[0]:
            self._message = ("", "plain", 0.0)
        if self._awaiting is not None:
            self._awaiting.stop()
        if heard.kind == "more" and self._keys.pending:
            # Whoever goes on typing does not read it, and what the last key does would be drawn two frames later.
            self._awaiting = self.set_timer(AWAITS, self.draw_chrome)
        else:
            self.draw_chrome()
        if heard.kind == "action" and heard.action is not None:
            self.do(heard.action, heard.given)
        elif heard.kind == "nothing":
            self.say(f"{visible(key or event.key)} means nothing here; ? lists the keys", "plain")

    def do(self, action: Action, given: Given = Given()) -> None:  # noqa: B008 - immutable
        """Does what an action says."""
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
        """Goes on with work that waits for something, such as an answer; what it raises is said."""
        self.run_worker(self._finish(work), group="actions", exit_on_error=False)

    async def _finish(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self.failed(error)

    def on_resize(self, event: events.Resize) -> None:
        """Another width has room for other words."""
        self.call_after_refresh(self.draw_chrome)
        if self.drawer.is_open:
            self.call_after_refresh(self.drawer.draw_tabs)

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """The inspector follows when the cursor rests."""
        if event.lines is self.nodes:
            if self._settling is not None:
                self._settling.stop()
            self._settling = self.set_timer(SETTLES, self.settle)

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Twice with the mouse is enter."""
        action = next((each for each in self.actions if each.scope == self.pane and "enter" in each.keys), None)
        if action is not None:
            self.do(action)

    def title_span(self) -> Span:
        """The name of what is open."""
        return Span(visible(self.session.opened.name, 200), "title")
