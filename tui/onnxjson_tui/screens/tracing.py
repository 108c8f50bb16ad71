"""A trace: the passes of a pipeline one after the other, and what each of them, and each part of one, did."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from textual.app import ComposeResult

from onnxjson.display import visible
from onnxjson.index import Index
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import shortened, wrapped
from onnxjson.rendering.trace_text import headline, story_lines, subjects_of
from onnxjson.tracing import Trace, load_trace, provenance
from onnxjson_tui.action import Given
from onnxjson_tui.comparing import Compared, Side, of_sizes
from onnxjson_tui.jobs import said
from onnxjson_tui.rows.trace_stops import Stop, StopRows, stops
from onnxjson_tui.screens.choosing import TextScreen
from onnxjson_tui.screens.difference_view import DIFFERENCE_KEYS, SETTLES, DifferenceScreen
from onnxjson_tui.screens.keyed import HELP, MOVING, ScreenKey
from onnxjson_tui.terminal import Terminal
from onnxjson_tui.widgets.lines import LineList, TextRows


class _Loaded(NamedTuple):
    trace: Trace
    stops: list[Stop]


class TraceScreen(DifferenceScreen):
    """The passes above, what the one under the cursor did in the middle, what there is to say of a row below."""

    DEFAULT_CSS = """
    TraceScreen #stops { height: auto; max-height: 35%; border-bottom: solid $panel; }
    """
    AUTO_FOCUS = "#stops"

    def __init__(self, name: str, load: Callable[[], Trace], terminal: Terminal) -> None:
        super().__init__(terminal)
        self._source, self._load = name, load
        self.trace: Trace | None = None
        self._models: list[Any] = []
        """The first model, then that after each part, as far as they were needed."""
        self._stop: Stop | None = None

    def body(self) -> ComposeResult:
        """The passes, then what the others have."""
        yield LineList(id="stops")
        yield from super().body()

    @property
    def stops(self) -> LineList:
        """The list of passes."""
        return self.query_one("#stops", LineList)

    def on_mount(self) -> None:
        """Read the trace."""
        self.rows.show(TextRows([(Span(f" reading {visible(self._source, 500)} ...", "changed"),)]))

        def work() -> _Loaded:
            trace = self._load()
            return _Loaded(trace, list(stops(trace)))

        self.jobs.start("trace", f"reading {visible(self._source)}", work, self._read, self._refused)

    def _refused(self, error: BaseException) -> None:
        self.failed(error)
        width = max(self.rows.size.width - 2, 40)
        self.rows.show(TextRows([(Span(f" {text}", "bad"),) for text in wrapped(said(error), width, indent=0)]))

    def _read(self, found: _Loaded) -> None:
        self.trace = found.trace
        self._models = [found.trace.first]
        rows = StopRows(found.stops)
        self.stops.styles.height = min(len(rows), max(self.size.height // 3, 3)) + 1
        first = next((number for number, each in enumerate(found.stops) if each.part >= 0), 0)
        self.stops.show(rows, first)
        self.draw_chrome()
        self._show_stop()

    def title_line(self) -> tuple[Line, str]:
        """The source, and what all passes came to."""
        if self.trace is None:
            return (Span(f" trace {visible(self._source, 300)}", "title"),), ""
        return (Span(f" {shortened(headline(self.trace), max(self.size.width - 2, 20))}", "title"),), ""

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """The other lists follow when the cursor rests."""
        if event.lines is self.stops:
            if self._settling is not None:
                self._settling.stop()
            self._settling = self.set_timer(SETTLES, self._show_stop)

    def _show_stop(self) -> None:
        """Shows what the pass under the cursor did."""
        trace, rows = self.trace, self.stops.rows
        if trace is None or not isinstance(rows, StopRows) or not rows.stops:
            return
        stop = rows.stops[min(self.stops.cursor, len(rows.stops) - 1)]
        if stop == self._stop:
            return
        self._stop = stop
        step = trace.steps[stop.step]
        if stop.part < 0:
            self.compared = None
            lines = wrapped(stop.failure or "it changed nothing", max(self.rows.size.width - 2, 40), indent=1)
            notes = [(Span(f" {visible(note, 1000)}", "quiet"),) for note in step.notes]
            self.rows.show(
                TextRows([*[(Span(line, "bad" if stop.failure else "quiet"),) for line in lines], *notes]), 0
            )
            self.about.show(TextRows([]), 0)
            return
        part = step.parts[stop.part]
        models = list(self._models)

        def work() -> tuple[Compared, list[Any]]:
            while len(models) < stop.number + 2:
                models.append(trace.parts()[len(models) - 1].patch.apply(models[-1]))
            base = Side(f"before {stop.name}", models[stop.number])
            target = Side(f"after {stop.name}", models[stop.number + 1])
            found = of_sizes(base, target, (stop.before, stop.after), part.events, part.incomplete)
            return found._replace(notes=step.notes if stop.part == len(step.parts) - 1 else ()), models

        def made(found: tuple[Compared, list[Any]]) -> None:
            self._models = found[1]
            self.show(found[0])

        self.jobs.start("stop", f"looking at {stop.name}", work, made)

    # Keys

    def next_pass(self, given: Given) -> None:
        """To the next pass, or part of one."""
        self.stops.move_by(given.number or 1)

    def previous_pass(self, given: Given) -> None:
        """To the one before."""
        self.stops.move_by(-(given.number or 1))

    def switch(self, given: Given) -> None:
        """The focus goes on: passes, what happened, what there is to say."""
        order = [self.stops, self.rows, self.about]
        at = next((number for number, each in enumerate(order) if each.has_focus), 0)
        order[(at + 1) % 3].focus()

    def choose(self, given: Given) -> None:
        """From a pass to what it did; there as on every difference."""
        if self.stops.has_focus:
            self.rows.focus()
        else:
            super().choose(given)

    def go_to(self, given: Given) -> None:
        """The text of both sides: none of these models is open."""
        self.toggle_text(given)

    def where(self, given: Given) -> None:
        """Where the nodes of the row come from, and what became of them."""
        found, trace, stop = self.at_cursor(), self.trace, self._stop
        if found is None or trace is None or stop is None:
            self.say("there is no node on this row")
            return
        _, member = found
        models = list(self._models)
        width = max(min(self.size.width * 24 // 25, 110) - 5, 40)

        def work() -> list[Line]:
            return list(stories(trace, stop, models, (member.base, member.target), width))

        def told(lines: list[Line]) -> None:
            self.app.push_screen(TextScreen("Where from, where to", lines or ["no node is named here"]))

        self.jobs.start("where", "following the nodes", work, told)

    def leave(self, given: Given) -> None:
        """Goes back to where this was asked for."""
        self.jobs.drop_all()
        if len(self.app.screen_stack) <= 2:
            self.app.exit(0)
        else:
            self.dismiss(None)


TraceScreen.KEYS = (
    ScreenKey(("q", "escape", "ctrl+c"), "leave", TraceScreen.leave, "leave"),
    HELP,
    ScreenKey(("] p", ")"), "next pass", TraceScreen.next_pass, "next pass"),
    ScreenKey(("[ p", "("), "pass before", TraceScreen.previous_pass),
    *DIFFERENCE_KEYS,
    ScreenKey(("w",), "where the nodes of the row come from, where they went", TraceScreen.where, "where from, to"),
    *MOVING,
)


def stories(
    trace: Trace, stop: Stop, models: list[Any], sides: tuple[tuple[str, ...], tuple[str, ...]], width: int
) -> Iterator[Line]:
    """What nodes were made of by the passes up to a stop, and what became of them in those behind it."""
    until = _up_to(trace, stop)
    after = _from(trace, stop, models[stop.number + 1])
    made_of, became = provenance(until), provenance(after)
    here = {ref.address: ref for ref in Index(models[stop.number + 1]).nodes()}
    before = {ref.address: ref for ref in Index(models[stop.number]).nodes()}
    old, new = ([_node(each) for each in side] for side in sides)
    targets = [here[each] for each in dict.fromkeys(new) if each in here]
    if targets:
        yield (Span("made of", "title"),)
        yield from story_lines(until, subjects_of(until, made_of, [], targets), width)
        yield ()
        yield (Span("became", "title"),)
        yield from story_lines(after, subjects_of(after, became, targets, []), width)
        return
    gone = [before[each] for each in dict.fromkeys(old) if each in before]
    if gone:
        earlier = msgspec.structs.replace(until, steps=_up_to(trace, stop, with_it=False).steps)
        yield (Span("gone in this pass; made of", "title"),)
        yield from story_lines(earlier, subjects_of(earlier, provenance(earlier), [], gone), width)


def _node(address: str) -> str:
    """The innermost node of an address."""
    head, node, tail = address.rpartition("/node/")
    return f"{head}{node}{tail.partition('/')[0]}"


def _up_to(trace: Trace, stop: Stop, *, with_it: bool = True) -> Trace:
    last = trace.steps[stop.step]
    kept = msgspec.structs.replace(last, parts=last.parts[: stop.part + with_it])
    return msgspec.structs.replace(trace, steps=(*trace.steps[: stop.step], kept))


def _from(trace: Trace, stop: Stop, first: Any) -> Trace:
    own = trace.steps[stop.step]
    rest = msgspec.structs.replace(own, parts=own.parts[stop.part + 1 :])
    return msgspec.structs.replace(trace, first=first, before=stop.after, steps=(rest, *trace.steps[stop.step + 1 :]))


def trace_of_folder(folder: str, terminal: Terminal) -> TraceScreen:
    """A screen on the trace in a folder, which it reads itself."""
    return TraceScreen(folder, lambda: load_trace(folder), terminal)
