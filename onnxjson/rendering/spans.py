"""Lines of text as styled spans; the caller that prints them decides what a style looks like.

Every text in a span is visible (`onnxjson.model.display`).
"""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from onnxjson.rendering.tables import GAP, cells, padded, shortened, wrapped

Style = Literal["plain", "title", "quiet", "added", "removed", "rewritten", "changed", "good", "bad"]
"""Style of a span: effects of events, and good or bad for verified results."""


class Span(NamedTuple):
    """A part of a line."""

    text: str
    style: Style = "plain"


Line = tuple[Span, ...]


def paragraph(
    text: str, width: int, style: Style = "plain", *, indent: int = 0, whole_words: bool = False
) -> Iterator[Line]:
    """Yield a text as lines in one style; see `onnxjson.rendering.tables.wrapped`."""
    return ((Span(line, style),) for line in wrapped(text, width, indent=indent, whole_words=whole_words))


def wide_table(
    heads: Sequence[str], rows: Sequence[tuple[str, Sequence[Span]]], width: int, label: int, *, right: bool = True
) -> Iterator[Line]:
    """Yield a table of visible texts; columns that do not fit into `width` follow below, without rows of dots only."""
    columns = [(head, [spans[place] for _, spans in rows]) for place, head in enumerate(heads[1:])]
    widths = [max(cells(head), *[cells(span.text) for span in spans]) for head, spans in columns]
    start = 0
    while start < len(columns):
        end, room = start + 1, width - label - GAP - widths[start]
        while end < len(columns) and room >= GAP + widths[end]:
            room -= GAP + widths[end]
            end += 1
        yield from [()] if start else ()
        shown = [padded(heads[place + 1], widths[place], right=right) for place in range(start, end)]
        yield (Span((" " * GAP).join([padded(heads[0], label), *shown]), "title"),)
        for name, spans in rows:
            cut = [
                Span(" " * GAP + padded(spans[place].text, widths[place], right=right), spans[place].style)
                for place in range(start, end)
            ]
            if any(span.text.strip(" .") for span in cut):
                yield (Span(padded(shortened(name, label), label)), *cut)
        start = end


def plain(line: Line) -> str:
    """Return a line without its styles."""
    return "".join(span.text for span in line)
