"""The line that a person types in."""

from collections.abc import Callable
from typing import Any

from textual import events
from textual.widgets import Input


class Field(Input):
    """Textual's field, with a cursor that does not blink: over a slow line every blink costs bytes."""

    def __init__(self, value: str | None = None, **more: Any) -> None:
        super().__init__(value, compact=True, **more)
        self.cursor_blink = False
        self.refused_lines: Callable[[int], object] | None = None
        """Is told of a pasted text of several lines, of which nothing is taken then; without it the first is."""

    def on_paste(self, event: events.Paste) -> None:
        """A text of several lines is no line: half of it would be another command than was meant."""
        lines = event.text.splitlines()
        if self.refused_lines is not None and len(lines) > 1:
            event.stop()
            event.prevent_default()
            self.refused_lines(len(lines))
