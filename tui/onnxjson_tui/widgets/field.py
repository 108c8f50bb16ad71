"""The line that a person types in."""

from typing import Any

from textual.widgets import Input


class Field(Input):
    """Textual's field, with a cursor that does not blink: over a slow line every blink costs bytes."""

    def __init__(self, value: str | None = None, **more: Any) -> None:
        super().__init__(value, compact=True, **more)
        self.cursor_blink = False
