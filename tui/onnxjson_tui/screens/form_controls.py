"""The controls of a form: a line, several lines, one of a few options."""

from collections.abc import Sequence
from typing import Final

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea

from onnxjson.model.display import visible
from onnxjson.rendering.tables import Span, cells
from onnxjson_tui.widgets.lines import StyledWidget, one_strip
from onnxjson_tui.widgets.prompt import Field

LINES: Final = 3  # lines of a field for lists


class LineControl(Field):
    """A line of text."""

    def __init__(self, text: str, default: str, *, name: str) -> None:
        shown = f"({visible(default, 200)})" if default else ""
        super().__init__(text, placeholder=shown, name=name, select_on_focus=False)

    @property
    def field_text(self) -> str:
        """The contents."""
        return self.value

    def put(self, text: str) -> None:
        """Replace the contents."""
        self.value = text
        self.cursor_position = len(text)


class LinesControl(TextArea):
    """Several lines of text, one per item."""

    def __init__(self, text: str, default: str, *, name: str) -> None:
        super().__init__(
            text, placeholder=f"({visible(default, 200)})" if default else "", compact=True, name=name, soft_wrap=False,
            highlight_cursor_line=False,
        )  # fmt: skip
        self.cursor_blink = False
        self.styles.height = LINES
        self.move_cursor(self.document.end)

    @property
    def field_text(self) -> str:
        """The contents."""
        return self.text

    def put(self, text: str) -> None:
        """Replace the contents."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    @property
    def line(self) -> str:
        """The line of the cursor."""
        return self.document.get_line(self.cursor_location[0])

    def put_line(self, text: str) -> None:
        """Replace the line of the cursor."""
        row = self.cursor_location[0]
        self.replace(text, (row, 0), (row, len(self.line)), maintain_selection_offset=False)
        self.move_cursor((row, len(text)))

    @property
    def is_first(self) -> bool:
        """Whether the cursor is in the first line."""
        return self.cursor_location[0] == 0

    @property
    def is_last(self) -> bool:
        """Whether the cursor is in the last line."""
        return self.cursor_location[0] == self.document.line_count - 1


class OptionControl(StyledWidget, can_focus=True):
    """One of a few options, chosen with left and right or by its first letter; "" means none."""

    class Changed(Message):
        """Another option was chosen."""

    def __init__(self, options: Sequence[str], text: str, default: str, *, name: str) -> None:
        super().__init__(name=name)
        self._options = tuple(options)
        self._default = default
        self._text = text
        self.styles.height = 1

    @property
    def field_text(self) -> str:
        """The chosen option."""
        return self._text

    def put(self, text: str) -> None:
        """Choose an option."""
        if text != self._text:
            self._text = text
            self.refresh()
            self.post_message(self.Changed())

    def on_key(self, event: events.Key) -> None:
        """Choose another option."""
        pressed = event.character if event.is_printable else event.key
        at = self._options.index(self._text or self._default) if (self._text or self._default) in self._options else -1
        match pressed:
            case "right" | " ":
                self.put(self._options[(at + 1) % len(self._options)])
            case "left":
                self.put(self._options[(at - 1) % len(self._options) if at >= 0 else -1])
            case "backspace" | "delete":
                self.put("")
            case str() if len(pressed) == 1 and pressed.isalnum():
                wanted = [
                    each for each in self._options[at + 1 :] + self._options[: at + 1] if each.startswith(pressed)
                ]
                if wanted:
                    self.put(wanted[0])
            case _:
                return
        event.stop()
        event.prevent_default()

    def on_click(self, event: events.Click) -> None:
        """Focus the control."""
        self.focus()

    def on_focus(self, event: events.Event) -> None:
        """Draw the options again."""
        self.refresh()

    on_blur = on_focus

    def render_line(self, y: int) -> Strip:
        """Return all options, the chosen one in brackets; if they do not fit, the chosen one alone."""
        chosen = self._text or self._default
        parts = [f"[{each}]" if each == chosen else f" {each} " for each in self._options]
        width = self.size.width
        if cells(" ".join(parts)) > width:
            at = self._options.index(chosen) + 1 if chosen in self._options else 0
            parts = [f"< {chosen or 'choose'} >", f"{at} of {len(self._options)}"]
        base = self.span_style("plain")
        style = self.span_style("cursor")
        spans = []
        for part, option in zip(parts, self._options, strict=False):
            spans += [Span(part, "title" if option == chosen or part.startswith("<") else "quiet"), Span(" ")]
        return one_strip(tuple(spans), width, base, style if self.has_focus else None, self.span_style)
