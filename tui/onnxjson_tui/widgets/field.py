"""Text field for one line."""

from collections.abc import Callable
from typing import Any

from textual import events
from textual.widgets import Input


class Field(Input):
    """Textual's input field with a cursor that does not blink, since every blink sends bytes over a slow connection."""

    def __init__(self, value: str | None = None, **more: Any) -> None:
        super().__init__(value, compact=True, **more)
        self.cursor_blink = False
        self.refused_lines: Callable[[int], object] | None = None
        """Called with the number of lines of a refused paste; None inserts the first pasted line."""

    def on_paste(self, event: events.Paste) -> None:
        """Refuse a text of several lines: its first line alone could be a different command."""
        lines = event.text.splitlines()
        if self.refused_lines is not None and len(lines) > 1:
            event.stop()
            event.prevent_default()
            self.refused_lines(len(lines))
