"""Passes of a trace and their parts as rows."""

from collections.abc import Iterator
from typing import NamedTuple

from onnxjson.model.display import visible
from onnxjson.optimizing.trace_records import Size, Trace
from onnxjson.rendering.diff_report import Count
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson.rendering.tables import clipped, padded, shortened
from onnxjson.rendering.trace_text import nodes_change


class Stop(NamedTuple):
    """One row: a pass, or one part of a pass."""

    step: int
    part: int
    """-1 for a pass without parts, which changed nothing or failed."""
    number: int
    """Number of the part among all parts; -1 without a part."""
    name: str
    """Visible."""
    before: Size
    after: Size
    seconds: float | None
    """None except for the first part of a pass."""
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
    if stop.part < 0:
        return "changed nothing"
    change = stop.after.nodes - stop.before.nodes
    return nodes_change(stop.before.nodes, stop.after.nodes) + (f" ({change:+,})" if change else "")


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
