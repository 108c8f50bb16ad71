"""Passes: one on the model of a session, chosen, run and applied; those of a trace, with the diff of each."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from textual import getters
from textual.app import ComposeResult

from onnxjson.editing.declaration import Edit
from onnxjson.model.display import visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.optimizing.passes import Pipeline, files_written, parse_step
from onnxjson.optimizing.passes.catalogue import Entry, entries
from onnxjson.optimizing.passes.user import EditPass
from onnxjson.optimizing.provenance import provenance
from onnxjson.optimizing.trace_records import Size, Trace
from onnxjson.optimizing.trace_storing import load_trace
from onnxjson.rendering.diff_report import Count
from onnxjson.rendering.pass_list import lines
from onnxjson.rendering.tables import Line, Span, Style, clipped, padded, shortened, wrapped
from onnxjson.rendering.trace_text import headline, node_counts, story_lines, subjects_of
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.rows.difference import Compared, Side, compared, of_sizes
from onnxjson_tui.screens.comparison import ComparisonScreen
from onnxjson_tui.screens.difference_view import DIFFERENCE_KEYS, DifferenceScreen
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.dialogs import TextScreen
from onnxjson_tui.shell.keyed import FIRST_AND_LAST, HELP, screen_key
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.actions import Arguments
from onnxjson_tui.widgets.lines import LineList, TextRows

if TYPE_CHECKING:
    from onnxjson.model.document import Model
    from onnxjson.optimizing.passes import NewFile


def pass_choices() -> list[Choice]:
    """Return all passes except edits, which have forms; those that can run here come first."""
    found = [
        Choice(each.name, visible(each.name, 200), visible(each.summary, 300), visible(each.problem or "", 300))
        for each in entries()
        if each.kind != "edit"
    ]
    return sorted(found, key=lambda choice: bool(choice.refused))


def first_spec(entry: Entry) -> str:
    """Return the line that runs a pass, with the options that it requires: ``cast{to=``."""
    needed = ",".join([f"{each.name}=" for each in entry.options if each.required])
    return f"{entry.name}{{{needed}" if needed else entry.name


def spec_offers(entry: Entry, typed: str) -> list[str]:
    """Return a line with each of the options that it lacks, whose value is still to be typed: ``onnxsim{fold=``."""
    head = typed.rstrip("*}")
    between = "{" if "{" not in head else "" if head.endswith("{") else ","
    return [f"{head}{between}{each.name}=" for each in entry.options if f"{each.name}=" not in head]


def spec_hint(entry: Entry, typed: str) -> str:
    """Describe the option that is being typed, or else name all options."""
    name = re.split("[{,]", typed)[-1].partition("=")[0]
    option = next((each for each in entry.options if each.name == name), None)
    if option is None:
        return f"options: {', '.join([each.name for each in entry.options]) or 'none'}; * at the end repeats the pass"
    return f"{name}: {option.description or ''} (accepts {', '.join(option.choices) or option.type})"


def closed_spec(typed: str) -> str:
    """Return a line with the brace that may be missing at its end."""
    return f"{typed.strip()}}}" if typed.count("{") > typed.count("}") else typed.strip()


def spec_mistake(typed: str) -> str:
    """Return the mistake in a line, or ""."""
    try:
        parse_step(closed_spec(typed))
    except OnnxJsonError as error:
        return str(error)
    return ""


class PassRun:
    """One pass on the model of a session, unsaved changes included."""

    def __init__(self, bench: Bench, spec: str) -> None:
        """Prepare the pass.

        Raises:
            ParameterError: `spec` is not a pass.
        """
        self.step = parse_step(spec)
        session = bench.session
        self._bench = bench
        self._model, self._revision = session.model, session.revision
        self._side = Side(session.opened.name, session.model, session.opened.path, session=session)
        self._folder = session.opened.folder
        self._pipeline: Pipeline | None = None
        self._files: tuple[NewFile, ...] = ()

    def screen(self) -> ComparisonScreen:
        """Return the screen that runs the pass and shows the diff."""
        bench, accept = self._bench, None if self._bench.session.readonly else self.accept
        doing, stop = f"running {visible(str(self.step), 200)}", self.stop
        return ComparisonScreen(doing, self.work, bench.terminal, bench=bench, side="base", stop=stop, accept=accept)

    def work(self) -> Compared:
        """Run the pass and compare the models, in a thread.

        Raises:
            PassError: the pass crashed, hung, is not installed, or returned an invalid model.
            OnnxJsonError: external data is missing.
        """
        from onnxjson.optimizing.passes.big_constants import InternalizedModel

        inside = InternalizedModel(self._model, self._folder or Path())
        with Pipeline() as pipeline:
            self._pipeline = pipeline
            (made,) = pipeline.run(inside.model, [self.step], self._folder)
        after = inside.restored(made.after.model) if made.is_changed else self._model
        if self.step.subject.is_guarded:  # the others are edits, which correct types themselves
            after = self._bench.session.with_types(after)
        self._files = made.files
        written = [f"applying it also writes {visible(str(each.path), None)}" for each in made.files]
        notes = [line.strip() for line in lines(made)]
        return compared(self._side, Side(f"after {self.step}", after, self._side.path), [*notes, *written])

    def stop(self) -> None:
        """Kill the pass."""
        if self._pipeline is not None:
            self._pipeline.interrupt()

    def _edits(self, model: "Model") -> tuple[Edit, ...]:
        """Return the edit of a pass that is an edit, if it has the same result."""
        subject = self.step.subject
        if not isinstance(subject, EditPass) or self.step.repeats or self._files:
            return ()
        edit = subject.edit
        try:
            return (edit,) if self._bench.session.preview(edit).model == model else ()
        except OnnxJsonError:
            return ()

    def accept(self, found: Compared) -> None:
        """Apply the result as one step, named by the command that repeats it."""
        bench, title, model = self._bench, f"optimize -p {self.step}", found.target.model
        if bench.session.revision != self._revision:
            bench.say("the model was changed since the pass ran; run it again", "bad")
            return

        def make() -> Any:
            preview = bench.session.preview_model(model, title, self._edits(model))
            assert preview.patch is not None  # computed here, since it may take a while
            return preview

        def take(preview: Any) -> None:
            try:
                with files_written(self._files):
                    bench.accept(preview)
            except OnnxJsonError as error:
                bench.failed(error)

        bench.preview(make, take)


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
        self._texts = [_texts(each) for each in stops]
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


def _texts(stop: Stop) -> tuple[str, str, str]:
    nodes = "changed nothing" if stop.part < 0 else node_counts(stop.before, stop.after)
    size = Count("bytes", stop.before.bytes, stop.after.bytes).bytes_change_text
    return "failed" if stop.failure is not None else nodes, size, f"{stop.seconds:.1f} s" if stop.seconds else ""


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

    def __init__(self, folder: str, terminal: Terminal) -> None:
        super().__init__(terminal)
        self._folder = folder
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
        self.rows.show(TextRows([(Span(f" reading {visible(self._folder, 500)} ...", "changed"),)]))
        self.jobs.start(
            "trace", f"reading {visible(self._folder)}", partial(load_trace, self._folder), self._read, self.refuse
        )

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
            return (Span(f" trace {visible(self._folder, 300)}", "title"),), ""
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

    _go_to = DifferenceScreen._toggle_text

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
    own = trace.steps[stop.step]
    rest = msgspec.structs.replace(own, parts=own.parts[stop.part + 1 :])
    later = (rest, *trace.steps[stop.step + 1 :])
    after = msgspec.structs.replace(trace, first=models[stop.number + 1], before=stop.after, steps=later)
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
