"""Fields: the line at the bottom for a search, a filter, a command or a value, and the controls of a form."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from textual import events, getters
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Input, TextArea
from textual.widgets.input import Selection

from onnxjson.model.display import visible
from onnxjson.rendering.tables import Span, cells
from onnxjson_tui.widgets.lines import Bar, StyledWidget, one_strip

_MOST_KEPT: Final = 200  # number of earlier answers that are kept for each prompt mark

Complete = Callable[[str], Sequence[str]]
"""Returns completions of a text as whole lines. For a big model it runs in a thread, so it must not use widgets."""

FindOffers = Callable[[Callable[[], Sequence[str]], Callable[[Sequence[str]], None]], None]
"""Computes completions and passes them to a callback."""

LINES: Final = 3  # lines of a field for lists


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


class Prompt(Horizontal):
    """Prompt for one line, above the footer and on top of the last line of the widget there.

    No other widget is resized for it, so only one line of the terminal is redrawn, not the whole screen.
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self._done: Callable[[str | None], None] | None = None
        self._changed: Callable[[str], None] | None = None
        self._complete: Complete | None = None
        self._offered: Callable[[Sequence[str]], None] | None = None
        self.find_offers: FindOffers = lambda find, then: then(find())
        self.shown: Callable[[bool], None] = lambda is_shown: None  # called when the prompt appears and disappears
        self.refused_lines: Callable[[int], object] = lambda count: None
        """Called with the number of lines when several are pasted, which the prompt refuses."""
        self._kept: dict[str, list[str]] = {}
        self._kind = ""
        self._older = 0
        self._typed = ""
        self._offers: Sequence[str] = ()
        self._offer = -1

    def compose(self) -> ComposeResult:
        """Compose the mark and the field."""
        yield Bar(id="prompt-mark")
        field = Field(id="prompt-input", select_on_focus=False)
        field.refused_lines = lambda count: self.refused_lines(count)
        yield field

    def place_above(self, lines: int) -> None:
        """Place the prompt above a footer of some lines."""
        if self.styles.offset.y.value != -lines:
            self.styles.offset = (0, -lines)

    @property
    def is_asking(self) -> bool:
        """Whether the prompt is visible."""
        return self._done is not None

    input = getters.query_one("#prompt-input", Input)  # the field

    @property
    def hints(self) -> list[tuple[str, str]]:
        """The keys that do something now, and their labels."""
        more = [("tab", "complete")] if self._complete is not None else []
        more += [("up", "earlier")] if self._kept.get(self._kind) else []
        return [("enter", "ok"), *more, ("esc", "cancel")]

    def kept(self, mark: str) -> Sequence[str]:
        """Return earlier answers to a mark, newest last."""
        return self._kept.get(mark, ())

    def ask(
        self,
        mark: str,
        done: Callable[[str | None], None],
        *,
        text: str = "",
        changed: Callable[[str], None] | None = None,
        complete: Complete | None = None,
        offered: Callable[[Sequence[str]], None] | None = None,
        is_selected: bool = False,
    ) -> None:
        """Show the prompt; it receives all keys until the user answers or cancels, which passes None to `done`.

        Typing replaces a selected `text`. The up key recalls answers to the same mark. `changed` gets the
        text after every change, `complete` returns the completions for the tab key, and `offered` gets them whenever
        they were computed.
        """
        self._done, self._changed, self._complete, self._offered = done, changed, complete, offered
        self._kind, self._older, self._typed, self._offers, self._offer = mark, 0, text, (), -1
        bar = self.query_one("#prompt-mark", Bar)
        bar.styles.width = cells(mark) + (1 if len(mark) > 1 else 0)
        bar.show((Span(mark, "title"),))
        self.visible = True
        self.shown(True)
        self.input.value = text
        self.input.selection = Selection(0 if is_selected else len(text), len(text))
        self.input.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Report the text while the user types."""
        event.stop()
        self._forget_offers()
        if self._changed is not None and self._done is not None:
            self._changed(self.input.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer with the text of the field."""
        event.stop()
        self.answer(event.value)

    def answer(self, text: str | None) -> None:
        """Close the prompt with an answer; None cancels."""
        done = self._done
        if done is None:
            return
        self._done = None
        self.visible = False
        self.shown(False)
        if text:
            kept = self._kept.setdefault(self._kind, [])
            if text in kept:
                kept.remove(text)
            kept.append(text)
            del kept[:-_MOST_KEPT]
        done(text)

    def on_key(self, event: events.Key) -> None:
        """Handle escape (cancel), up and down (earlier answers) and tab (completions)."""
        match event.key:
            case "escape" | "ctrl+c":
                self.answer(None)
            case "ctrl+s":
                self.answer(self.input.value)
            case "up" | "down":
                self._earlier(1 if event.key == "up" else -1)
            case "tab" | "shift+tab":
                self._next_offer(1 if event.key == "tab" else -1)
            case _:
                return
        event.stop()
        event.prevent_default()

    def _earlier(self, step: int) -> None:
        kept = self._kept.get(self._kind, [])
        if self._older == 0:
            self._typed = self.input.value
        self._older = max(min(self._older + step, len(kept)), 0)
        self._put(kept[-self._older] if self._older else self._typed)

    def _next_offer(self, step: int) -> None:
        if self._complete is None:
            return
        self._forget_offers()
        if self._offers:
            self._put_offer(step)
            return
        complete, done, text = self._complete, self._done, self.input.value

        def found(offers: Sequence[str]) -> None:
            # The user has typed more or cancelled meanwhile.
            if self._done is not done or self.input.value != text:
                return
            self._offers, self._offer = offers, -1
            if self._offered is not None:
                self._offered(offers)
            self._put_offer(step)

        self.find_offers(lambda: complete(text), found)

    def _put_offer(self, step: int) -> None:
        if self._offers:
            self._offer = (self._offer + step) % len(self._offers) if self._offer >= 0 or step > 0 else -1
            self._put(self._offers[self._offer])

    def _forget_offers(self) -> None:
        """Discard completions of another text; the field handles letters before this widget does."""
        if self._offers and self.input.value != self._offers[self._offer]:
            self._offers, self._offer = (), -1

    def _put(self, text: str) -> None:
        self.input.value = text
        self.input.cursor_position = len(text)


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
        self.fit(LINES)
        self.move_cursor(self.document.end)

    def fit(self, most: int) -> None:
        """Have as many lines as the contents, at most some."""
        self.styles.height = max(min(self.document.line_count, most), 1)

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
