"""The workbench as actions, pages and screens use it: changes of the session, drawer, prompt, bars."""

import textwrap
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

from textual import events

from onnxjson.editing.declaration import Edit
from onnxjson.editing.type_correction import Flow
from onnxjson.model.display import ELLIPSIS, counted, visible
from onnxjson.model.operators import operator_name
from onnxjson.model.types import format_type
from onnxjson.model.weights import held_constants, weight_totals
from onnxjson.rendering.tables import Line, Span, Style, cells, plain, shortened, shortened_name, size, wrapped
from onnxjson_tui.rows.beside_nodes import heads
from onnxjson_tui.rows.nodes import type_change
from onnxjson_tui.session.edited_model import READ_ONLY
from onnxjson_tui.session.following import lanes_differ, place_after
from onnxjson_tui.session.history import Changed, Preview, place_of
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.dialogs import WIDEST_DIFF, preview_lines
from onnxjson_tui.shell.finder import Finder
from onnxjson_tui.shell.graph_screen import PANES, GraphScreen
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.actions import Action, Arguments, key_hints, shown_keys
from onnxjson_tui.widgets.drawer import Page
from onnxjson_tui.widgets.lines import Bar, LineList, Tone

_GAP: Final = 3  # columns between a message and the keys after it
_BESIDE_NAME: Final = 22  # columns of a message beside a name in it
_MOST_FOLLOWED: Final = 10_000  # maximum nodes of a filter that stays after an edit that moves nodes
_MOST_LINES: Final = 3  # maximum lines of a message in the footer


def message_lines(message: str, tone: Tone, width: int, first: int) -> list[Line]:
    """Return a message in a few lines, the first one of other columns; the rest can be read with :messages."""
    width, first = max(width, 20), max(first, 20)
    if cells(message) > first and tone != "bad":
        message = " ".join([shortened_name(word, max(first - _BESIDE_NAME, 20)) for word in message.split(" ")])
    lines = textwrap.wrap(message, width, initial_indent=" " * (width - first), break_on_hyphens=False) or [""]
    lines[0] = lines[0][width - first :]
    shown: list[Line] = [(Span(f" {line}", tone),) for line in lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        more = "   :messages"
        last = " ".join(lines[_MOST_LINES - 1 :])
        shown[-1] = (Span(f" {shortened(last, max(width - len(more), 1))}", tone), Span(more, "quiet"))
    return shown


class Workbench(GraphScreen):
    """Shows a session and changes it, with the actions and pages that it is given."""

    def __init__(
        self,
        session: Session,
        terminal: Terminal,
        actions: Sequence[Action["Workbench"]],
        pages: Sequence[type[Page["Workbench"]]],
        begun: Callable[["Workbench"], Coroutine[Any, Any, None]],
    ) -> None:
        """Prepare the screen; `begun` asks what there is to ask when the model is shown."""
        super().__init__(session, terminal, actions)
        self._pages, self._begun = pages, begun
        self.finder = Finder(self)  # the search in the list of nodes
        self.refused = ""  # the command that was refused last because it breaks nodes; the same again makes it
        self.used: Counter[str] = Counter()  # how often each action was run
        self._counted: tuple[object, int] | None = None  # the graph whose parameters were counted last

    def on_mount(self) -> None:
        """Show the model."""
        self.drawer.pages = {page.name: page(self, self.drawer) for page in self._pages}
        self.prompt.find_offers = partial(self.compute, "offers", "looking for completions")
        self.prompt.shown = self._prompt_shown
        self.prompt.refused_lines = self._refuse_lines
        self.build()
        if self.here is None:
            self.nodes.move_to(1)  # the first line that is not that of the inputs
        self.read_model(infers=self.derived.reading is not None)
        notice = self.session.presence.notice if self.session.presence is not None else ""
        for problem in (*self.session.opened.problems, *([notice] if notice else [])):
            self.say(problem, "changed")
        self.begin(self._begun(self))

    # Bars

    def title_line(self) -> tuple[Line, Line | str]:
        """Return name and facts about the model that fit; at the right findings and undo."""
        session = self.session
        name = visible(session.opened.name, 200)
        if cells(name) > self.size.width // 3:
            name = shortened(name.rpartition("/")[2], max(self.size.width // 3, 12))
        first = [Span(f" {name}", "title"), Span(" *" if session.is_changed else "", "changed")]
        if session.trouble:
            first.append(Span("  EDITS ARE NOT KEPT", "bad"))
        if session.readonly:
            first.append(Span("  read-only", "changed"))
        right = self._state()
        room = self.size.width - sum([cells(span.text) for span in (*first, *right)]) - 2
        for fact in self._facts():
            if cells(fact) + 2 <= room:
                first.append(Span(f"  {fact}", "quiet"))
                room -= cells(fact) + 2
        return tuple(first), right

    def _state(self) -> Line:
        """Return the numbers of errors, warnings and steps to undo."""
        problems, history = self.drawer.pages.get("problems"), self.session.history
        parts = [Span(f"{problems.note}  ", problems.tone)] if problems is not None and problems.note else []
        if len(history):
            text = f"undo {history.position}" + (f"/{len(history)}" if len(history) > history.position else "")
            parts.append(Span(f"{text} "))
        return tuple(parts)

    def _facts(self) -> list[str]:
        """Return opset, nodes, parameters and bytes of the model, the most important first."""
        model, graph = self.session.model, self.session.model.graph
        opset = next((each.version for each in model.opset_import if not each.domain), None)
        facts = [] if opset is None else [f"opset {opset}"]
        if graph is not None:
            if self._counted is None or self._counted[0] is not graph:
                self._counted = graph, weight_totals(held_constants(self.session.index)).parameters
            facts.append(counted(len(graph.node), "node"))
            facts.append(counted(self._counted[1], "parameter"))
        return [*facts, size(self.session.opened.identity.size)]

    def _graph_names(self) -> list[str]:
        """Return the names of the graphs from the outermost to the one that is shown."""
        if self.scope is None:
            return ["no graph"]
        names = []
        for scope in self.scope.chain():
            if scope.owner is not None:
                attribute = scope.address.rpartition("/attribute/")[2].partition("/")[0]
                node = scope.owner.node
                names.append(f"{visible(node.name or node.op_type or '?', 30)}.{visible(attribute, 20)}")
            elif scope.kind == "function":
                names.append(f"function {visible(scope.graph.name or '?', 30)}")
            else:
                names.append("main graph" if scope.kind == "main" else scope.kind)
        return names[::-1]

    def draw_bars(self) -> None:
        """Draw the titles of the panes, too."""
        super().draw_bars()
        if self.is_mounted and self.is_running and self.query("#nodes-title"):
            rows = len(self.inspector.rows)
            is_scrolled = self.pane == "inspector" and rows > self.inspector.page
            hidden = (Span(f"{rows} rows ", "quiet"),) if is_scrolled else ()
            for pane, line, right in (("nodes", *self._list_title()), ("inspector", self._node_title(), hidden)):
                style: Style = "title" if self.pane == pane else "quiet"
                mark = Span("▌" if self.pane == pane else " ", style)
                spans = [Span(span.text, style if span.style == "plain" else span.style) for span in line]
                self.query_one(f"#{pane}-title", Bar).show((mark, *spans), right)

    def _list_title(self) -> tuple[Line, Line]:
        """Return the graph, what is listed and the filter; at the right the titles of columns."""
        spans = [Span(" > ".join(self._graph_names()))]
        scope, places = self.scope, self.session.places
        if self.filter:
            found = counted(len(self.nodes.rows), "node")
            spans.append(Span(f"  {found} of filter {visible(self.filter)}", "changed"))
        elif scope is not None:
            nodes = counted(len(scope.graph.node), "node")
            lines = f"{counted(len(self.nodes.rows), 'row')} of {nodes}" if self.is_folded else nodes
            spans.append(Span(f"  {lines}", "quiet"))
        if self._rows.rows is not None and self._rows.rows.prefix and not self.is_folded:
            spans.append(Span(f"  {self._rows.rows.prefix}{ELLIPSIS}", "quiet"))
        if places.selected:
            spans.append(Span(f"  {len(places.selected):,} selected", "changed"))
        width = self.nodes.scrollable_content_region.width
        titles = heads(self.session.figures, width).strip() if self.session.figures else ""
        return tuple(spans), (Span(titles, "quiet"),) if titles else ()

    def _node_title(self) -> Line:
        """Return the position, the operator and the name of the node of the inspector."""
        ref, fold = self.here, self.fold_here
        if ref is None:
            return (Span("no node"),)
        count = f"  of {counted(len(fold.positions), 'node')} in the line" if fold is not None else ""
        name = f"node {ref.position}  {visible(operator_name(ref.node.domain, ref.node.op_type), 60)}"
        return (Span(name), Span(count, "quiet"))

    def footer_line(self) -> tuple[Line, Line, tuple[Line, ...]]:
        """Return a message, job or keys; typed keys on the right; more lines below."""
        (message, tone), pending = self._message, self._reader.pending
        right: Line = (Span(f"{visible(pending, 20)} "),) if pending else self._keys_on_the_right()
        if self.prompt.is_asking:
            right = ()
        used = sum([cells(span.text) for span in right])
        if message:
            # One space before the text, two after it.
            room = self.size.width - used - 3
            first, *others = message_lines(message, tone, self.size.width - 2, room)
            left = room - sum([cells(span.text) for span in first]) - _GAP
            hints = (Span(" " * _GAP), *self._hints(left)) if left > 0 and not others and right else ()
            return (*first, *hints), right, tuple(others)
        slow = next((job for job in self.jobs.running if job.is_slow), None)
        if slow is not None:
            return (Span(f" {slow.status}", "changed"),), right, ()
        return self._hints(self.size.width - used - 2), right, ()

    def _keys_on_the_right(self) -> Line:
        session = self.session
        wanted = [("u", "undo")] if session.history.position and not session.readonly else []
        wanted += [("ctrl+s", "save")] if session.is_changed and not session.readonly else []
        return key_hints([*wanted, ("?", "keys")], self.size.width)

    def _hints(self, width: int) -> Line:
        """Return as many keys with a footer label as fit, those of the pane first; of an open prompt, its own."""
        if self.prompt.is_asking:
            return key_hints(self.prompt.hints, width)
        wanted = list(self.drawer.page.hints) if self.pane == "drawer" and self.drawer.page is not None else []
        wanted += [
            (shown_keys(action.keys[0]), action.footer)
            for scope in (self.pane, "everywhere")
            for action in self.actions
            if action.footer and action.scope == scope and not (action.changes and self.session.readonly)
        ]
        # These are on the right if they have an effect.
        return key_hints(wanted, width, {"?", "u", "ctrl+s"} if self.session.is_changed else {"?", "u"})

    def on_resize(self, event: events.Resize) -> None:
        """Draw the tabs for another width."""
        if self.drawer.is_open:
            self.call_after_refresh(self.drawer.draw_tabs)

    # Changes

    def preview(
        self,
        make: Callable[[], Preview],
        receive: Callable[[Preview], object],
        failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Compute a preview, in a thread if the model is big, and pass it to `receive`, or an error to `failed`."""
        if self.session.readonly:
            self.say(READ_ONLY, "bad")
            return
        self.compute("edit", "computing the changes", make, receive, failed, holds_keys=True)

    def foresee(self, *edits: Edit) -> None:
        """Show in the list of nodes which types edits would change, without making them; without edits, nothing."""
        self.jobs.drop("flow")
        if edits:
            work = partial(self.session.foresee, *edits)
            self.jobs.start("flow", "inferring types", work, self.show_flow, lambda _: self.show_flow(Flow()))
        else:
            self.show_flow(Flow())

    def show_flow(self, flow: Flow) -> None:
        """Show types that an edit would change, and the nodes that it would break."""
        texts = {
            address: (type_change(format_type(old) if old else None, format_type(new) or "?"), False)
            for address, (old, new) in flow.types.items()
        }
        texts |= {address: (f"! {visible(text, 200)}", True) for address, text in flow.complaints.items()}
        if texts != self.session.places.flow:
            self.session.places.flow = texts
            self.nodes.refresh()
        if flow.complaints and self.prompt.is_asking and self._message[1] != "bad":
            reason = next(iter(flow.complaints.values()))
            self.say(f"it would break a node: {reason}; press enter twice to make the change anyway", "bad", keep=False)

    async def agree(self, preview: Preview) -> bool:
        """Show the diff of a change, and ask whether to make it."""
        width = max(min(self.app.size.width - 8, WIDEST_DIFF), 60)
        notes = [line for note in preview.notes for line in wrapped(note, width, indent=0)]
        answers = [
            ("y", "make the change", "make"),
            ("n", "leave the model as it is", "drop"),
            ("d", "details", "more"),
        ]
        details = False
        while True:
            find = partial(preview_lines, preview, "before", "after", width, details=details)
            diff_lines = await self.jobs.run("preview", "computing the diff", find)
            # The names of the two sides are obvious here, and `--test-rewrites` does not apply to a preview.
            diff_lines = [line for line in diff_lines[1:] if "--test-rewrites" not in plain(line)]
            lines: list[Line] = [*[(Span(note, "changed"),) for note in notes], *diff_lines]
            question = f"This changes {counted(preview.matches, 'place')}."
            answer = await self.confirm(question, answers, lines=lines, escape="drop", is_wide=True)
            if answer != "more":
                return answer == "make"
            details = not details

    def accept(self, preview: Preview) -> Changed | None:
        """Make a previewed change and report it."""
        try:
            changed = self.session.accept(preview)
        except Exception as error:
            self.failed(error)
            return None
        notes = "; ".join(preview.notes)
        if changed is not None and preview.is_forced:
            self.call_after_refresh(self.check_broken)
        if changed is None:
            self.say(f"nothing changes{': ' + notes if notes else ''}", "changed")
            return None
        self.changed(changed)
        places = f"  ({counted(preview.matches, 'place')})" if preview.matches > 1 else ""
        message = f"{changed.step.title}{places}{'  (' + notes + ')' if notes else ''}"
        trouble = visible(self.session.trouble)
        self.say(f"{message}; save, or it is lost: {trouble}" if trouble else message, "bad" if trouble else "good")
        return changed

    def check_broken(self) -> None:
        """Check with onnx after an edit that breaks nodes, which marks them in the list and in the title."""
        check: Callable[[], None] | None = getattr(self.drawer.pages.get("problems"), "run_onnx_checks", None)
        if check is not None:
            check()

    def changed(self, changed: Changed | None) -> None:
        """Show the model after a change of the session."""
        if changed is None:
            return
        if self.session.figures:
            self.show_figures({})
        cursor = self.session.places.cursor
        place = None if cursor is None else place_of(self.session.index, cursor)
        is_elsewhere = place is not None and place[0].address != self._graph
        if place is not None:
            self._graph = place[0].address
        if changed.is_restructured:
            self.derived.follow(changed)
        if changed.is_restructured or is_elsewhere:
            self._filter = None if is_elsewhere else self._filter_after(changed, None if place is None else place[1])
            self.build(place[1] if place else None)
        else:
            self._rows.refresh(self.scope, self.session.saved_nodes(self.scope))
            self.nodes.refresh()
            self.show_details()
            self._follow(lanes_differ(changed.patch.root))
        for page in self.drawer.pages.values():
            page.model_changed()
        self.read_model()
        self.draw_bars()

    def _filter_after(self, changed: Changed, cursor: int | None) -> tuple[str, list[int]] | None:
        """Return the filter with the nodes that are left of it; with that at the cursor if undo has restored it."""
        text, positions = self._filter or ("", [])
        if len(positions) > _MOST_FOLLOWED:
            return None
        places = [place_after(changed.patch, f"{self._graph}/node/{each}") for each in positions]
        rest = {int(each.rpartition("/")[2]) for each in places if each is not None}
        if changed.kind == "undone" and rest and cursor is not None:
            was_removed = place_after(changed.patch.invert(), f"{self._graph}/node/{cursor}") is None
            rest |= {cursor} if was_removed else set()
        return (text, sorted(rest)) if rest else None

    def step(self, count: int) -> tuple[Changed | None, int]:
        """Redo steps, or undo them for a negative count; return the last change, and the number of steps."""
        last, is_restructured, done = None, False, 0
        repeat = self.session.undo if count < 0 else self.session.redo
        while done < abs(count) and (changed := repeat()) is not None:
            last, is_restructured, done = changed, is_restructured or changed.is_restructured, done + 1
        if done > 1:
            self.derived.forget_lines()
            self._filter = None
        if last is not None:
            self.changed(last._replace(is_restructured=is_restructured))
        return last, done

    def _follow(self, lanes_differ: bool) -> None:
        """Update what a change may have altered in all nodes, although it moved none of them."""
        scope, revision, former = self.scope, self.session.revision, self._followed
        self._followed = revision
        is_building = any(job.group == "rows" for job in self.jobs.running)
        is_known = scope is None or scope.knows_names or not self.is_big
        if lanes_differ or is_building or not is_known or former + 1 != revision:
            self.build(is_alike=True)
            return
        if self._all_nodes is not None and self._all_nodes[:2] == (scope, former):
            self._all_nodes = (self._all_nodes[0], revision, self._all_nodes[2])

    # Prompt

    def _refuse_lines(self, count: int) -> None:
        self.say(f"not pasted: this field takes one line, not {count:,}; forms (a) and E take several", "bad")

    def _prompt_shown(self, is_shown: bool) -> None:
        lists = (self.drawer.lines,) if self.drawer.is_open else (self.nodes, self.inspector)
        for lines in (*lists, self.drawer.lines) if not is_shown else lists:
            lines.cover(1 if is_shown else 0)
        if not is_shown:
            self.say("")  # remove the message about the typed text

    def focus_list(self, lines: LineList) -> None:
        """Give the pane of a list the focus."""
        self.focus_pane(next((pane for pane in PANES if lines.id == pane), "drawer"))

    # Actions

    def do(self, action: Action[Any], arguments: Arguments = Arguments()) -> None:  # noqa: B008 - immutable
        """Run an action, unless it changes a read-only model; report its error."""
        if action.changes and self.session.readonly:
            self.say(READ_ONLY, "bad")
        else:
            self.used[action.id] += 1
            super().do(action, arguments)

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Treat a double click as enter."""
        action = next((each for each in self.actions if "enter" in each.keys), None)
        if action is not None:
            self.do(action)
