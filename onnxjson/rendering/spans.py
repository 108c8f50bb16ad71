"""Lines of text as styled spans; the caller that prints them decides what a style looks like.

Every text in a span is visible (`onnxjson.model.display`).
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from onnxjson.rendering.tables import wrapped

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


def plain(line: Line) -> str:
    """Return a line without its styles."""
    return "".join(span.text for span in line)
