"""Lines of text as styled spans; the caller that prints them decides what a style looks like.

Every text in a span is visible (`onnxjson.model.display`).
"""

from typing import Literal, NamedTuple

Style = Literal["plain", "title", "quiet", "added", "removed", "rewritten", "changed", "good", "bad"]
"""Style of a span: effects of events, and good or bad for verified results."""


class Span(NamedTuple):
    """A part of a line."""

    text: str
    style: Style = "plain"


Line = tuple[Span, ...]


def plain(line: Line) -> str:
    """Return a line without its styles."""
    return "".join(span.text for span in line)
