"""Bars: one-line widgets at the top and at the bottom of a screen."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells
from onnxjson_tui.widgets.lines import one_strip

Tone = Literal["plain", "good", "bad", "changed"]


class Bar(Widget, can_focus=False):
    """One line of text that is never wrapped and never read as markup."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id, classes=classes)
        self._left: Line = ()
        self._right: Line = ()
        self._below: Sequence[Line] = ()

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "lines--plain", "lines--title", "lines--quiet", "lines--added", "lines--removed", "lines--rewritten",
        "lines--changed", "lines--good", "lines--bad",
    }  # fmt: skip

    def show(self, left: Line, right: Line | str = "", below: Sequence[Line] = ()) -> None:
        """Show spans on the left, and spans or a text on the right; the left side is shortened if they do not fit.

        Args:
            left: spans of the left side.
            right: spans or text of the right side.
            below: more lines; the bar grows by their number.
        """
        if isinstance(right, str):
            right = (Span(right),) if right else ()
        if (left, right, below) != (self._left, self._right, self._below):
            if len(below) != len(self._below):
                self.styles.height = 1 + len(below)
            self._left, self._right, self._below = left, right, below
            self.refresh()

    @property
    def text(self) -> str:
        """The text of the bar, without styles."""
        first = "".join(span.text for span in self._left)
        if self._right:
            first += "  " + "".join(span.text for span in self._right)
        return "\n".join([first, *["".join(span.text for span in line) for line in self._below]])

    def render_line(self, y: int) -> Strip:
        """Draw one line of the bar."""
        width = self.size.width
        base = self.get_component_rich_style("lines--plain")
        if y:
            if y > len(self._below):
                return Strip.blank(width, base)
            return one_strip(self._below[y - 1], width, base, None, self.get_component_rich_style)
        used = min(sum([cells(span.text) for span in self._right]), max(width // 2, 10))
        room = max(width - used - (2 if used else 0), 0)
        left = one_strip(self._left, room, base, None, self.get_component_rich_style)
        right = one_strip(self._right, used, base, None, self.get_component_rich_style)
        gap = Segment(" " * max(width - room - used, 0), base)
        return Strip([*left, gap, *right]).adjust_cell_length(width, base)
