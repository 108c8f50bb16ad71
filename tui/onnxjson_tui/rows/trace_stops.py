"""The passes of a trace and their parts as rows."""

from collections.abc import Iterator
from typing import NamedTuple

from onnxjson.display import counted, visible
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson.rendering.tables import padded, shortened, size
from onnxjson.tracing import Size, Trace


class Stop(NamedTuple):
    """One stop on the way: a pass that changed something in one part, or failed, or one part of a pass."""

    step: int
    part: int
    """-1 where the pass has none: it changed nothing, or failed."""
    number: int
    """Of the part among all parts; -1 where there is none."""
    name: str
    """Visible."""
    before: Size
    after: Size
    seconds: float | None
    """None for all parts of a pass but the first."""
    failure: str | None
    level: int


class StopRows:
    """The passes and their parts."""

    def __init__(self, stops: list[Stop]) -> None:
        self.stops = stops

    def __len__(self) -> int:
        return len(self.stops)

    def line(self, number: int, width: int) -> Line:
        """Name, nodes before and after, bytes, seconds."""
        each = self.stops[number]
        style: Style
        seconds = f"{each.seconds:>8.2f} s" if each.seconds is not None else " " * 10
        if each.failure is not None:
            numbers, style = "failed", "bad"
        elif each.part < 0:
            numbers, style = "changed nothing", "quiet"
        else:
            change = each.after.nodes - each.before.nodes
            nodes = f"{each.before.nodes:,} -> {counted(each.after.nodes, 'node')}" + (
                f" ({change:+,})" if change else ""
            )
            weight = each.after.bytes - each.before.bytes
            sign = "+" if weight > 0 else "-"
            numbers = f"{nodes:<30}{f'{sign}{size(abs(weight))}' if weight else 'same bytes':>12}"
            style = "added" if change > 0 else "removed" if change < 0 else "plain"
        room = max(width - 54, width // 3, 8)
        name = padded(shortened("  " * each.level + each.name, room), room)
        return Span(f" {name} "), Span(padded(numbers, 42), style), Span(seconds[: max(width - room - 44, 0)], "quiet")


def stops(trace: Trace) -> Iterator[Stop]:
    """The stops of a trace, in their order."""
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
