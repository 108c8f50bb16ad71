"""Lines for a person as spans with a style; what a style looks like is for those who print them.

Every text in a span is visible (`onnxjson.display`).
"""

from typing import Literal, NamedTuple

Style = Literal["plain", "title", "quiet", "added", "removed", "rewritten", "changed", "good", "bad"]
"""What a span is; the effects of events, and good or bad for what was verified."""


class Span(NamedTuple):
    """A part of a line."""

    text: str
    style: Style = "plain"


Line = tuple[Span, ...]


def plain(line: Line) -> str:
    """A line without its styles."""
    return "".join(span.text for span in line)
