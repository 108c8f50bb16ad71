"""A trace: the passes of a pipeline in their order, with the diff of each pass or part of a pass."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from textual import getters
from textual.app import ComposeResult

from onnxjson.model.display import visible
from onnxjson.model.index import Index
from onnxjson.optimizing.provenance import provenance
from onnxjson.optimizing.trace_records import Size, Trace
from onnxjson.optimizing.trace_storing import load_trace
from onnxjson.rendering.diff_report import Count
from onnxjson.rendering.tables import Line, Span, Style, clipped, padded, shortened, wrapped
from onnxjson.rendering.trace_text import headline, node_counts, story_lines, subjects_of
from onnxjson_tui.screens.difference_view import DIFFERENCE_KEYS, DifferenceScreen
from onnxjson_tui.session.comparing import Compared, Side, of_sizes
from onnxjson_tui.shell.dialogs import TextScreen
from onnxjson_tui.shell.keyed import FIRST_AND_LAST, HELP, screen_key
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.actions import Arguments
from onnxjson_tui.widgets.lines import LineList, TextRows


class Stop(NamedTuple):
    """One row: a pass, or one part of a pass."""

    step: int
    part: int  # -1 for a pass without parts, which changed nothing or failed
    number: int  # number of the part among all parts; -1 without a part
    name: str  # visible
    before: Size
    after: Size
    seconds: float | None  # none except for the first part of a pass
    failure: str | None
    level: int


class StopRows:
    """The passes and their parts."""

    def __init__(self, stops: list[Stop]) -> None:
        self.stops = stops
        self._texts = [(_nodes(each), _bytes(each), f"{each.seconds:.1f} s" if each.seconds else "") for each in stops]
        self._widths = [max(map(len, column)) for column in zip(*self._texts, strict=True)] if stops else []

    def __len__(self) -> int:
        return len(self.stops)

    def line(self, number: int, width: int) -> Line:
        """Return name, nodes before and after, bytes, seconds."""
        each, texts, widths = self.stops[number], self._texts[number], self._widths
        room = max(width - sum(widths) - 8, width // 3, 8)
        name = padded(shortened("  " * each.level + each.name, room), room)
        numbers = f"  {texts[0]:<{widths[0]}}  {texts[1]:>{widths[1]}}"
        left = width - room - 1 - len(numbers)
        seconds = f"  {texts[2]:>{widths[2]}}" if left > widths[2] + 1 else ""
        return Span(f" {name}"), Span(clipped(numbers, width - room - 1), _style(each)), Span(seconds, "quiet")


def _nodes(stop: Stop) -> str:
    if stop.failure is not None:
        return "failed"
    return "changed nothing" if stop.part < 0 else node_counts(stop.before, stop.after)


def _bytes(stop: Stop) -> str:
    return Count("bytes", stop.before.bytes, stop.after.bytes).bytes_change_text


def _style(stop: Stop) -> Style:
    if stop.failure is not None:
        return "bad"
    change = stop.after.nodes - stop.before.nodes
    return "added" if change > 0 else "removed" if change < 0 else "quiet" if stop.part < 0 else "plain"


def stops(trace: Trace) -> Iterator[Stop]:
    """Yield the rows of a trace in order."""
    before, number = trace.before, 0
    for position, step in enumerate(trace.steps):
        name = visible(step.name, 300)
        if not step.parts:
            yield Stop(position, -1, -1, name, before, before, step.seconds, step.failure, 0)
            continue
        for place, part in enumerate(step.parts):
            called = visible(part.name, 300) if part.name else ""
            label = f"{name}: {called}" if called and not place else called or name
            seconds = None if place else step.seconds
            yield Stop(position, place, number, label, before, part.after, seconds, None, int(place > 0))
            before, number = part.after, number + 1


class TraceScreen(DifferenceScreen):
    """Shows the passes above, the diff of one in the middle, and details of a row below."""

    AUTO_FOCUS = "#stops"
    KEYS = (
        screen_key(("q", "escape", "ctrl+c"), "leave", "_leave", "leave"),
        HELP,
        screen_key(
            ("] p", ")"), "next pass", lambda screen, given: screen.stops.move_by(given.number or 1), "next pass"
        ),
        screen_key(("[ p", "("), "previous pass", lambda screen, given: screen.stops.move_by(-(given.number or 1))),
        *DIFFERENCE_KEYS,
        screen_key(("w",), "the origin and fate of the nodes of the row", "_where", "origin"),
        *FIRST_AND_LAST,
    )

    def __init__(self, name: str, load: Callable[[], Trace], terminal: Terminal) -> None:
        super().__init__(terminal)
        self._source, self._load = name, load
        self.trace: Trace | None = None
        self._models: list[Any] = []  # the first model, then the model after each part, as far as they were needed
        self._stop: Stop | None = None

    def body(self) -> ComposeResult:
        """The list of passes above the lists of a diff."""
        yield LineList(id="stops")
        yield from super().body()

    stops = getters.query_one("#stops", LineList)  # the list of passes

    def on_mount(self) -> None:
        """Start to read the trace."""
        self.rows.show(TextRows([(Span(f" reading {visible(self._source, 500)} ...", "changed"),)]))

        self.jobs.start("trace", f"reading {visible(self._source)}", self._load, self._read, self.refuse)

    def _read(self, trace: Trace) -> None:
        self.trace = trace
        self._models = [trace.first]
        rows = StopRows(list(stops(trace)))
        self.stops.styles.height = min(len(rows), max(self.size.height // 3, 3)) + 1
        first = next((number for number, each in enumerate(rows.stops) if each.part >= 0), 0)
        self.stops.show(rows, first)
        self.draw_bars()
        self._show_stop()

    def title_line(self) -> tuple[Line, str]:
        """Return the source, and the effect of all passes."""
        if self.trace is None:
            return (Span(f" trace {visible(self._source, 300)}", "title"),), ""
        return (Span(f" {shortened(headline(self.trace), max(self.size.width - 2, 20))}", "title"),), ""

    def on_line_list_moved(self, event: LineList.Moved) -> None:
        """Update the other lists when the cursor rests."""
        if event.lines is self.stops:
            self.after_rest(self._show_stop)

    def _show_stop(self) -> None:
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
            lines = wrapped(stop.failure or "the pass changed nothing", max(self.rows.size.width - 2, 40), indent=1)
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

        self.jobs.start("stop", f"applying {stop.name}", work, made)

    # Keys

    def _open_row(self, arguments: Arguments) -> None:
        if self.stops.has_focus:
            self.rows.focus()
        else:
            super()._open_row(arguments)

    def _go_to(self, arguments: Arguments) -> None:
        self._toggle_text(arguments)

    def _where(self, arguments: Arguments) -> None:
        found, trace, stop = self.at_cursor(), self.trace, self._stop
        if found is None or trace is None or stop is None:
            self.say("there is no node in this row")
            return
        _, member = found
        models = list(self._models)
        width = max(min(self.size.width * 24 // 25, 110) - 5, 40)

        def work() -> list[Line]:
            return list(stories(trace, stop, models, (member.base, member.target), width))

        def found_stories(lines: list[Line]) -> None:
            self.app.push_screen(TextScreen("Origin and fate of the nodes", lines or ["this row names no node"]))

        self.jobs.start("where", "following the nodes", work, found_stories)

    def _leave(self, arguments: Arguments) -> None:
        self.jobs.drop_all()
        self.close()


def stories(
    trace: Trace, stop: Stop, models: list[Any], sides: tuple[tuple[str, ...], tuple[str, ...]], width: int
) -> Iterator[Line]:
    """Yield where nodes come from in the passes up to a stop, and what became of them in later ones."""
    until = _up_to(trace, stop)
    after = _from(trace, stop, models[stop.number + 1])
    made_of, became = provenance(until), provenance(after)
    here = {ref.address: ref for ref in Index(models[stop.number + 1]).nodes()}
    before = {ref.address: ref for ref in Index(models[stop.number]).nodes()}
    old, new = ([_node(each) for each in side] for side in sides)
    targets = [here[each] for each in dict.fromkeys(new) if each in here]
    if targets:
        yield (Span("origin", "title"),)
        yield from story_lines(until, subjects_of(until, made_of, [], targets), width)
        yield ()
        yield (Span("later", "title"),)
        yield from story_lines(after, subjects_of(after, became, targets, []), width)
        return
    removed = [before[each] for each in dict.fromkeys(old) if each in before]
    if removed:
        earlier = msgspec.structs.replace(until, steps=_up_to(trace, stop, with_it=False).steps)
        yield (Span("removed by this pass; origin", "title"),)
        yield from story_lines(earlier, subjects_of(earlier, provenance(earlier), [], removed), width)


def _node(address: str) -> str:
    """Return the address of the innermost node of an address."""
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
    """Return the screen that reads and shows the trace in a folder."""
    return TraceScreen(folder, lambda: load_trace(folder), terminal)
