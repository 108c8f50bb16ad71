"""A trace as lines of text: changes by each pass and each of its parts, then the sizes of the models side by side."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from onnxjson.diffing.details import node_label
from onnxjson.diffing.events import Event
from onnxjson.model.display import counted, visible
from onnxjson.model.errors import SelectorError
from onnxjson.model.index import Index, NodeRef
from onnxjson.optimizing.provenance import Provenance, Story, Touch
from onnxjson.optimizing.trace_records import Part, Size, Step, Trace
from onnxjson.patterns.selectors import select_nodes
from onnxjson.rendering.diff_report import EFFECTS, operator_of
from onnxjson.rendering.diff_text import event_lines
from onnxjson.rendering.tables import GAP, Line, Span, cells, limited, paragraph, shortened, size, wide_table

_INDENT: Final = 2
_MOST_OPERATORS: Final = 16

_LABEL: Final = 30  # maximum width of the names of operators, in columns
_WIDEST: Final = 18


class Stage(NamedTuple):
    """A pass with the sizes of its input and of its result."""

    step: Step
    before: Size
    after: Size

    @property
    def notes(self) -> list[str]:
        """Messages about the pass: that the model grew, then its notes."""
        return [*growth(self.before.bytes, self.after.bytes), *self.step.notes]


def stages(trace: Trace) -> Iterator[Stage]:
    """Yield the passes in order."""
    before = trace.before
    for step in trace.steps:
        after = step.parts[-1].after if step.parts else before
        yield Stage(step, before, after)
        before = after


class Column(NamedTuple):
    """One model."""

    name: str  # name of the model, such as the pass that produced it
    size: Size


class Subject(NamedTuple):
    """A requested node with its provenance."""

    ref: NodeRef
    story: Story
    is_of_result: bool  # whether it belongs to the last model; else to the first


def trace_lines(trace: Trace, width: int, *, details: bool = False) -> Iterator[Line]:
    """Yield the lines of a trace; `details`: also passes without changes, changes without effect, and every place."""
    yield (Span(headline(trace), "title"),)
    quiet = []
    for stage in stages(trace):
        if stage.step.is_changed or stage.step.failure is not None or details:
            yield ()
            yield from _step_lines(stage, width, details=details)
        else:
            quiet.append(visible(stage.step.name, 200))
    if quiet:
        yield ()
        yield from paragraph(f"changed nothing: {', '.join(quiet)}", width, "quiet")
    yield ()
    yield from table_lines(columns(trace), width, most=None if details else _MOST_OPERATORS)


def headline(trace: Trace) -> str:
    """Return ``m.onnx: 3 passes, 2 changed something, 354 -> 165 nodes``, visible."""
    return f"{visible(trace.source, None)}: {totals(trace)}"


def totals(trace: Trace) -> str:
    """Return the total change by all passes, in numbers."""
    changed = sum(step.is_changed for step in trace.steps)
    passes = "1 pass" if len(trace.steps) == 1 else f"{len(trace.steps):,} passes"
    return f"{passes}, {changed:,} changed something, {_sizes(trace.before, trace.after)}"


def outcome(step: Step) -> str:
    """Return the text for a pass without changes."""
    return "failed" if step.failure is not None else "changed nothing"


def columns(trace: Trace) -> list[Column]:
    """Return a column for the first model, and for the model after each pass that changed something."""
    found = [Column("before", trace.before)]
    return found + [Column(step.name, step.parts[-1].after) for step in trace.steps if step.is_changed]


def _step_lines(stage: Stage, width: int, *, details: bool) -> Iterator[Line]:
    step, before = stage.step, stage.before
    name = shortened(visible(step.name, 400), width // 2)
    rounds = f", {step.rounds} rounds" if step.rounds > 1 else ""
    numbers = _sizes(before, stage.after) if step.parts else outcome(step)
    yield Span(name, "title"), Span(f": {numbers}, {step.seconds:.2g} s{rounds}")
    if step.failure is not None:
        yield from paragraph(step.failure, width, "bad", indent=_INDENT)
    for note in stage.notes:
        yield from paragraph(note, width, "quiet", indent=_INDENT)
    for part in step.parts:
        yield from _part_lines(before, part, width, details=details)
        before = part.after


def _part_lines(before: Size, part: Part, width: int, *, details: bool) -> Iterator[Line]:
    events = loud(part.events) if not details else list(part.events)
    indent = _INDENT
    if part.name:
        if not events and before.nodes == part.after.nodes and not details:
            return
        yield Span(" " * indent), Span(visible(part.name, 200), "title"), Span(f": {node_counts(before, part.after)}")
        indent += _INDENT
    column = max((len(event.kind) for event in events), default=0) + GAP
    for event in events:
        for line in event_lines(event, column, width - indent, details=details, says_not_run=False):
            yield Span(" " * indent), *line
    quiet = [event.kind for event in part.events if event not in events]
    if quiet:
        yield Span(" " * indent), Span(f"also: {', '.join(dict.fromkeys(quiet))}", "quiet")
    for problem in part.incomplete:
        yield from paragraph(f"! {problem}", width, "bad", indent=_INDENT)


def loud(events: Sequence[Event]) -> list[Event]:
    """Return the events that change more than names, order and annotations."""
    return [event for event in events if EFFECTS[event.kind] != "quiet" and event.kind != "opset-changed"]


def _sizes(before: Size, after: Size) -> str:
    parts = [node_counts(before, after)]
    if before.parameters != after.parameters:
        parts.append(f"{before.parameters:,} -> {after.parameters:,} parameters")
    if before.bytes != after.bytes:
        parts.append(bytes_change(before.bytes, after.bytes))
    return ", ".join(parts)


def node_counts(before: Size, after: Size) -> str:
    """Return ``67 -> 24 nodes (-43)``."""
    change = after.nodes - before.nodes
    return nodes_change(before.nodes, after.nodes) + (f" ({change:+,})" if change else "")


def story_lines(trace: Trace, subjects: Iterable[Subject], width: int) -> Iterator[Line]:
    """Yield the provenance of nodes of the first and of the last model."""
    first, last = ({ref.address: ref for ref in Index(model).nodes()} for model in (trace.first, trace.last))
    for position, subject in enumerate(subjects):
        if position:
            yield ()
        whose = "after all passes" if subject.is_of_result else "before all passes"
        yield Span(node_text(subject.ref), "title"), Span(f"  @{visible(subject.ref.address, None)}, {whose}", "quiet")
        others = first if subject.is_of_result else last
        yield (Span(f"  {summary(subject)}"),)
        for address in subject.story.nodes:
            other = others.get(address)
            text = f"{node_text(other) if other is not None else ''}  @{visible(address, None)}"
            yield (Span(shortened(f"    {text}", width)),)
        for touch in subject.story.touches:
            pattern = shortened(visible(touch.pattern, 400), width - len(touch.kind) - 4)
            yield Span("  "), Span(touch.kind, EFFECTS[touch.kind]), Span(f"  {pattern}")
            yield (Span(shortened(f"    by {part_text(trace, touch)}", width), "quiet"),)


def summary(subject: Subject) -> str:
    """Return ``from 3 nodes of the first model:``, ``removed``, or that the nodes are ambiguous."""
    count, among = len(subject.story.nodes), subject.story.among
    which, model = ("from", "first") if subject.is_of_result else ("is in", "last")
    if count:
        more = f", and some of {among:,} that were rewritten together (ambiguous)" if among else ""
        return f"{which} {counted(count, 'node')} of the {model} model{more}:"
    if among:
        return f"{which} some of {counted(among, 'node')} that were rewritten together (ambiguous)"
    return "from no node of the first model" if subject.is_of_result else "removed"


def node_text(ref: NodeRef) -> str:
    """Return ``Conv /layer1/conv``, visible."""
    node = ref.node
    name = node_label(node)
    return visible(f"{operator_of(ref)} {name}".rstrip(), 200)


def part_text(trace: Trace, touch: Touch) -> str:
    """Return ``onnxruntime, ConvBNFusion``, visible."""
    step = trace.steps[touch.step]
    part = step.parts[touch.part].name
    return visible(f"{step.name}, {part}" if part else step.name, 200)


def subjects_of(
    trace: Trace, provenance: Provenance, before: Iterable[NodeRef], after: Iterable[NodeRef]
) -> Iterator[Subject]:
    """Yield the provenance of nodes of the first and of the last model."""
    for ref in before:
        yield Subject(ref, provenance.fates[ref.address], is_of_result=False)
    for ref in after:
        yield Subject(ref, provenance.origins[ref.address], is_of_result=True)


def subjects_named(trace: Trace, provenance: Provenance, selector: str) -> list[Subject]:
    """The nodes that a selector matches, in the result or in the first model."""
    refs: list[tuple[NodeRef, ...]] = []
    failure: SelectorError | None = None
    for model in (trace.first, trace.last):
        try:
            refs.append(select_nodes(model, Index(model), selector))
        except SelectorError as error:
            failure = error
            refs.append(())
    if not any(refs) and failure is not None:
        raise failure
    return list(subjects_of(trace, provenance, refs[0], refs[1]))


def nodes_change(before: int, after: int) -> str:
    """Return ``67 -> 24 nodes``; ``67 nodes`` if the number is the same."""
    nodes = counted(after, "node")
    return nodes if before == after else f"{before:,} -> {nodes}"


def bytes_change(before: int, after: int) -> str:
    """Return ``1.6 MB -> 0.8 MB``; the difference if both round to the same text, one size if they are equal."""
    one, other = size(before), size(after)
    if one != other:
        return f"{one} -> {other}"
    return one if before == after else f"{one} ({after - before:+,} bytes)"


def growth(before: int, after: int) -> list[str]:
    """Return a sentence if a model grew by more than 10 %; else nothing."""
    return [f"the model grew by {(after - before) * 100 // before} %"] if after * 10 > before * 11 else []


class SizeRow(NamedTuple):
    """One counted property."""

    what: str  # label, visible
    numbers: tuple[int, ...]  # the number for each model
    is_bytes: bool = False
    is_operator: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether the models differ in it."""
        return len(set(self.numbers)) > 1

    def text(self, position: int) -> str:
        """Return the number of a model as text."""
        number = self.numbers[position]
        if self.is_bytes:
            return size(number)
        return f"{number:,}" if number or not self.is_operator else "."

    def change(self, position: int) -> int:
        """Return the difference from the model before."""
        return self.numbers[position] - self.numbers[position - 1] if position else 0


def table_rows(columns: Sequence[Column], *, most: int | None = None) -> list[SizeRow]:
    """Return the rows: operators with the largest changes first, at most `most` changed ones, then sizes."""
    names = sorted({name for column in columns for name in column.size.operators})
    operators = [
        SizeRow(visible(name, 200), tuple([column.size.operators.get(name, 0) for column in columns]), is_operator=True)
        for name in names
    ]
    operators.sort(key=lambda row: (min(row.numbers) - max(row.numbers), -max(row.numbers)))
    if most is not None:
        most = min(most, sum(row.is_changed for row in operators))
    if most is not None and len(operators) > most:
        rest = operators[most:]
        label = f"{len(rest):,} other{'s' * (len(rest) > 1)}" if most else counted(len(rest), "operator")
        label += "" if any(row.is_changed for row in rest) else " as before"
        sums = tuple([sum(numbers) for numbers in zip(*[row.numbers for row in rest], strict=True)])
        operators = [*operators[:most], SizeRow(label, sums, is_operator=True)]
    return [
        *operators,
        SizeRow("nodes", tuple([column.size.nodes for column in columns])),
        SizeRow("parameters", tuple([column.size.parameters for column in columns])),
        SizeRow("bytes", tuple([column.size.bytes for column in columns]), is_bytes=True),
    ]


def table_lines(columns: Sequence[Column], width: int, *, most: int | None = None) -> Iterator[Line]:
    """Yield the table for a terminal; models that do not fit follow below the others."""
    rows = table_rows(columns, most=most)
    label = limited(max(cells(row.what) + GAP * row.is_operator for row in rows), _LABEL)
    heads = [shortened(visible(column.name, 200), _WIDEST) for column in columns]
    places = range(len(columns))
    texts = [
        (
            " " * GAP * row.is_operator + row.what,
            [Span(row.text(place), "title" if row.change(place) else "plain") for place in places],
        )
        for row in rows
    ]
    yield from wide_table(["", *heads], texts, width, label)
