"""A trace as lines of text: changes by each pass and each of its parts, then the models side by side."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from onnxjson.diffing.events import Event
from onnxjson.diffing.texts import node_label
from onnxjson.model.display import counted, visible
from onnxjson.model.index import Index, NodeRef
from onnxjson.optimizing.provenance import Provenance, Story, Touch
from onnxjson.optimizing.trace_records import Part, Size, Step, Trace
from onnxjson.rendering.diff_report import EFFECTS, operator_of
from onnxjson.rendering.diff_text import event_lines
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.stage_table import Column, bytes_change, growth, nodes_change, table_lines
from onnxjson.rendering.tables import GAP, shortened, wrapped

_INDENT: Final = 2
_MOST_OPERATORS: Final = 16


class Subject(NamedTuple):
    """A requested node with its provenance."""

    ref: NodeRef
    story: Story
    is_of_result: bool
    """Whether it belongs to the last model; else to the first."""


def trace_lines(trace: Trace, width: int, *, details: bool = False) -> Iterator[Line]:
    """Yield the lines of a trace.

    Args:
        trace: the trace.
        width: columns of the terminal, at least 60.
        details: whether to include passes without changes, events that preserve all results, and every place.
    """
    yield (Span(headline(trace), "title"),)
    for step in trace.steps:
        if step.is_changed or step.failure is not None or details:
            yield ()
            yield from step_lines(trace, step, width, details=details)
    quiet = [visible(step.name, 200) for step in trace.steps if not step.is_changed and step.failure is None]
    if quiet and not details:
        yield ()
        for text in wrapped(f"changed nothing: {', '.join(quiet)}", width, indent=0):
            yield (Span(text, "quiet"),)
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


def step_lines(trace: Trace, step: Step, width: int, *, details: bool = False) -> Iterator[Line]:
    """Yield the lines of one pass."""
    before = size_before(trace, step)
    name = shortened(visible(step.name, 400), width // 2)
    rounds = f", {step.rounds} rounds" if step.rounds > 1 else ""
    numbers = _sizes(before, step.parts[-1].after) if step.parts else outcome(step)
    yield Span(name, "title"), Span(f": {numbers}, {step.seconds:.2g} s{rounds}")
    problems = [step.failure] if step.failure is not None else []
    for text in problems:
        yield from _wrapped(text, width, "bad")
    for note in notes_of(step, before):
        yield from _wrapped(note, width, "quiet")
    for part in step.parts:
        yield from _part_lines(before, part, width, details=details)
        before = part.after


def notes_of(step: Step, before: Size) -> list[str]:
    """Return messages about a pass: that the model grew, then its notes."""
    after = step.parts[-1].after if step.parts else before
    return [*growth(before.bytes, after.bytes), *step.notes]


def size_before(trace: Trace, step: Step) -> Size:
    """Return the size of the input of a pass."""
    before = trace.before
    for each in trace.steps:
        if each is step:
            break
        before = each.parts[-1].after if each.parts else before
    return before


def _part_lines(before: Size, part: Part, width: int, *, details: bool) -> Iterator[Line]:
    events = loud(part.events) if not details else list(part.events)
    indent = _INDENT
    if part.name:
        if not events and before.nodes == part.after.nodes and not details:
            return
        yield Span(" " * indent), Span(visible(part.name, 200), "title"), Span(f": {_nodes(before, part.after)}")
        indent += _INDENT
    column = max((len(event.kind) for event in events), default=0) + GAP
    for event in events:
        for line in event_lines(event, column, width - indent, details=details, says_not_run=False):
            yield Span(" " * indent), *line
    quiet = [event.kind for event in part.events if event not in events]
    if quiet:
        yield Span(" " * indent), Span(f"also: {', '.join(dict.fromkeys(quiet))}", "quiet")
    for problem in part.incomplete:
        yield from _wrapped(f"! {problem}", width, "bad")


def loud(events: Sequence[Event]) -> list[Event]:
    """Return the events that change more than names, order and annotations."""
    return [event for event in events if EFFECTS[event.kind] != "quiet" and event.kind != "opset-changed"]


def _wrapped(text: str, width: int, style: str) -> Iterator[Line]:
    for line in wrapped(text, width, indent=_INDENT):
        yield (Span(line, style),)  # type: ignore[arg-type]


def _sizes(before: Size, after: Size) -> str:
    parts = [_nodes(before, after)]
    if before.parameters != after.parameters:
        parts.append(f"{before.parameters:,} -> {after.parameters:,} parameters")
    if before.bytes != after.bytes:
        parts.append(bytes_change(before.bytes, after.bytes))
    return ", ".join(parts)


def _nodes(before: Size, after: Size) -> str:
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
        yield (Span(f"  {_summary(subject)}"),)
        for address in subject.story.nodes:
            other = others.get(address)
            text = f"{node_text(other) if other is not None else ''}  @{visible(address, None)}"
            yield (Span(shortened(f"    {text}", width)),)
        for touch in subject.story.touches:
            pattern = shortened(visible(touch.pattern, 400), width - len(touch.kind) - 4)
            yield Span("  "), Span(touch.kind, EFFECTS[touch.kind]), Span(f"  {pattern}")
            yield (Span(shortened(f"    by {part_text(trace, touch)}", width), "quiet"),)


def _summary(subject: Subject) -> str:
    count = len(subject.story.nodes)
    if subject.is_of_result:
        return f"from {counted(count, 'node')} of the first model:" if count else "from no node of the first model"
    return f"is in {counted(count, 'node')} of the last model:" if count else "removed"


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
    trace: Trace, found: Provenance, before: Iterable[NodeRef], after: Iterable[NodeRef]
) -> Iterator[Subject]:
    """Yield the provenance of nodes of the first and of the last model."""
    for ref in before:
        yield Subject(ref, found.fates[ref.address], is_of_result=False)
    for ref in after:
        yield Subject(ref, found.origins[ref.address], is_of_result=True)
