"""The workbench as actions, pages and screens use it: changes of the session, search, drawer, prompt."""

from collections.abc import Callable, Sequence
from typing import Any

from textual import events

from onnxjson.model.display import visible
from onnxjson.rendering.spans import Line
from onnxjson_tui.keys.action import Action, Arguments
from onnxjson_tui.names.model_names import Names
from onnxjson_tui.rows.node_text import NodeText, Wanted
from onnxjson_tui.session.answers import Changed, Preview
from onnxjson_tui.session.edited_model import READ_ONLY
from onnxjson_tui.session.following import Redrawn, redrawn
from onnxjson_tui.session.selection import place_of
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.graph_screen import PANES, GraphScreen
from onnxjson_tui.shell.status_bars import footer_line, scope_path, title_line
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.drawer import Page
from onnxjson_tui.widgets.lines import LineList


class Finder:
    """Search of one workbench. Places are rows of its list of nodes."""

    def __init__(self, bench: GraphScreen) -> None:
        self._bench = bench
        self._text: NodeText | None = None
        self._text_of: object = None
        self._places: Sequence[int] = ()
        self._places_of: object = None
        self.wanted: Wanted | None = None
        """The search that ``n`` continues."""
        self.selector = ""
        """Selector of the filter, for editing it; "" if the nodes were chosen in another way."""

    def with_text(self, then: Callable[[NodeText], None]) -> None:
        """Pass the text of the listed nodes to `then`; built in a thread for a big graph."""
        bench, scope = self._bench, self._bench.scope
        if scope is None:
            bench.say("there are no nodes")
            return
        shown = (bench.session.revision, scope.address, bench.filter)
        if self._text is not None and self._text_of == shown:
            then(self._text)
            return
        positions = bench.chosen
        graph = scope

        def made(text: NodeText) -> None:
            if (bench.session.revision, graph.address, bench.filter) == shown:
                self._text, self._text_of = text, shown
                then(text)

        bench.compute("search", "reading the names", lambda: NodeText(graph, positions), made)

    def with_places(self, what: Wanted, then: Callable[[Sequence[int]], None]) -> None:
        """Pass every match to `then`; found in a thread for a big graph. An invalid pattern is reported."""

        bench = self._bench

        def look(text: NodeText) -> None:
            def keep(found: list[int]) -> None:
                self._places, self._places_of = found, (what, id(text))
                then(found)

            if self._places_of == (what, id(text)):
                then(self._places)
            else:
                bench.compute("search", "searching", lambda: text.all(what), keep)

        self.with_text(look)


class Bench(GraphScreen):
    """Shows a session and changes it; the workbench without its own actions and pages."""

    def __init__(
        self,
        session: Session,
        terminal: Terminal,
        actions: Sequence[Action["Bench"]],
        pages: Sequence[type[Page["Bench"]]],
    ) -> None:
        """Prepare the screen.

        Args:
            session: the session.
            terminal: the terminal.
            actions: all actions, in the order of the palette and the help.
            pages: the pages of the drawer, in the order of the tabs.
        """
        super().__init__(session, terminal, actions)
        self._pages = pages
        self.finder = Finder(self)
        """The search in the list of nodes."""
        self.names: tuple[int, Names] | None = None
        """The names of the model at a revision, for the palette."""

    def on_mount(self) -> None:
        """Show the model."""
        self.drawer.pages = {page.name: page(self, self.drawer) for page in self._pages}
        self.prompt.find_offers = self._find_offers
        self.prompt.shown = self._prompt_shown
        self.prompt.refused_lines = lambda count: self.say(
            f"not pasted: {count:,} lines do not fit in one; forms (a) and E accept several", "bad"
        )
        self.build(0)
        for problem in self.session.opened.problems:
            self.say(problem, "changed")
        self.started()

    def started(self) -> None:
        """Handle that the model is shown."""

    # Bars

    def title_line(self) -> tuple[Line, str]:
        """Return the title, and problems and steps at its right."""
        return title_line(self), scope_path(self)

    def footer_line(self) -> tuple[Line, Line, tuple[Line, ...]]:
        """Return the footer."""
        return footer_line(self, *self._message, self._reader.pending)

    def on_resize(self, event: events.Resize) -> None:
        """Draw the tabs for another width."""
        if self.drawer.is_open:
            self.call_after_refresh(self.drawer.draw_tabs)

    # Changes

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
        message = f"{changed.step.title}{'  (' + notes + ')' if notes else ''}"
        if self.session.trouble:
            self.say(f"lost unless you save: {message}; {visible(self.session.trouble)}", "bad")
        else:
            self.say(message, "good")
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
            self.show_details()
            self._follow(redrawn(changed.patch.root))
        for page in self.drawer.pages.values():
            page.model_changed()
        self.draw_bars()

    def step(self, count: int) -> tuple[Changed | None, int]:
        """Redo steps, or undo them for a negative count; return the last change, and the number of steps."""
        last, is_restructured, done = None, False, 0
        repeat = self.session.undo if count < 0 else self.session.redo
        while done < abs(count) and (changed := repeat()) is not None:
            last, is_restructured, done = changed, is_restructured or changed.is_restructured, done + 1
        if last is not None:
            self.changed(last._replace(is_restructured=is_restructured))
        return last, done

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

    # Prompt

    def _prompt_shown(self, is_shown: bool) -> None:
        lists = (self.drawer.lines,) if self.drawer.is_open else (self.outline, self.nodes, self.inspector)
        for lines in (*lists, self.drawer.lines) if not is_shown else lists:
            lines.cover(1 if is_shown else 0)

    def _find_offers(self, find: Callable[[], Sequence[str]], then: Callable[[Sequence[str]], None]) -> None:
        self.compute("offers", "looking for completions", find, then)

    def focus_list(self, lines: LineList) -> None:
        """Give the pane of a list the focus."""
        self.focus_pane(next((pane for pane in PANES if lines.id == pane), "drawer"))

    # Actions

    def do(self, action: Action[Any], arguments: Arguments = Arguments()) -> None:  # noqa: B008 - immutable
        """Run an action, unless it changes a read-only model; report its error."""
        if action.changes and self.session.readonly:
            self.say(READ_ONLY, "bad")
        else:
            super().do(action, arguments)

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Treat a double click as enter."""
        action = next((each for each in self.actions if each.scope == self.pane and "enter" in each.keys), None)
        if action is not None:
            self.do(action)
