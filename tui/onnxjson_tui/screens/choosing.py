"""Small screens over the workbench: one choice of several, a question, a text to read."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from onnxjson.display import visible
from onnxjson.rendering.spans import Line, Span
from onnxjson_tui.rows.choices import Choice, ChoiceRows, Searchable
from onnxjson_tui.screens.dialog import Dialog
from onnxjson_tui.widgets.bars import Bar
from onnxjson_tui.widgets.field import Field
from onnxjson_tui.widgets.lines import LineList, TextRows

_DIALOG: Final = 72
"""Columns of a small dialog with its border; see .dialog in app.tcss."""


class PickerScreen(Dialog[str | None]):
    """Lets a person choose one of many by typing a part of it; gives its key, or None."""

    def __init__(
        self, title: str, choices: Sequence[Choice], *, typed: str = "", hint: str = "", is_wide: bool = False
    ) -> None:
        super().__init__()
        self._is_wide = is_wide
        self._title = visible(title, 200)
        self._choices = choices if isinstance(choices, Searchable) else Searchable(choices)
        self._typed = typed
        self._hint = hint or "enter choose   esc cancel   type to search"

    def compose(self) -> ComposeResult:
        """Title, field, list, hint."""
        with Vertical(classes="dialog tall wide" if self._is_wide else "dialog tall"):
            yield Bar(id="dialog-title")
            yield Field(self._typed, id="dialog-input", select_on_focus=False)
            yield LineList(id="dialog-rows")
            yield Bar(id="dialog-hint")

    def on_mount(self) -> None:
        """The field has the focus, the keys that move go to the list."""
        self.query_one("#dialog-title", Bar).show((Span(self._title, "title"),))
        self.query_one(LineList).can_focus = False
        self.query_one(Input).focus()
        self._find(self._typed)

    def choices_for(self, typed: str) -> Sequence[Choice]:
        """Those that have every word of what was typed, in their order; those that begin with it first."""
        words = typed.lower().split()
        return self._choices.having(words) if words else self._choices

    def _find(self, typed: str) -> None:
        found = self.choices_for(typed)
        self.query_one(LineList).show(ChoiceRows(found), 0)
        # What was said of another choice is said no longer.
        hint = Span(self._hint, "quiet") if found else Span("nothing here has that   esc cancel", "changed")
        self.query_one("#dialog-hint", Bar).show((hint,))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search."""
        event.stop()
        self._find(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose."""
        event.stop()
        self._choose(self.query_one(LineList).cursor)

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Choose with the mouse."""
        self._choose(event.number)

    def _choose(self, number: int) -> None:
        rows = self.query_one(LineList).rows
        if not isinstance(rows, ChoiceRows) or not rows.choices:
            return
        choice = rows.choices[number]
        if choice.refused:
            self.query_one("#dialog-hint", Bar).show((Span(choice.refused, "bad"),))
        else:
            self.dismiss(choice.key)

    def on_key(self, event: events.Key) -> None:
        """Keys of the list while the field has the focus."""
        if event.key in ("escape", "ctrl+c"):
            self.dismiss(None)
        elif not self.query_one(LineList).take_key(event.key, is_typing=True):
            return
        event.stop()
        event.prevent_default()


class ConfirmScreen(Dialog[str]):
    """Asks one question; the first answer is the default."""

    def __init__(
        self,
        question: str,
        answers: Sequence[tuple[str, str, str]],
        *,
        lines: "Sequence[Line] | Sequence[str]" = (),
        escape: str = "",
    ) -> None:
        """Prepares the question.

        Args:
            question: one line.
            answers: a key, a word for it, and what is given back; the first one is what enter means.
            lines: more to read before answering, every text visible.
            escape: what escape gives; the first answer if "".
        """
        super().__init__()
        self._question = visible(question, 500)
        self._answers = answers
        self._lines = lines
        self._escape = escape or answers[0][2]

    def compose(self) -> ComposeResult:
        """Question, more to read, answers."""
        with Vertical(classes="dialog"):
            yield Bar(id="dialog-title")
            if self._lines:
                yield LineList(TextRows(list(self._lines)), id="dialog-rows", has_cursor=False)
            for number in range(len(self._hints())):
                yield Bar(id=f"dialog-hint-{number}")

    def on_mount(self) -> None:
        """Write the answers."""
        self.query_one("#dialog-title", Bar).show((Span(self._question, "title"),))
        for number, hint in enumerate(self._hints()):
            self.query_one(f"#dialog-hint-{number}", Bar).show((Span(hint),))
        for lines in self.query(LineList):
            room = self.app.size.height - 6 - len(self._hints())
            lines.styles.height = min(len(self._lines), max(room, 3))

    def _hints(self) -> list[str]:
        """The answers in as many lines as they take."""
        width = min(_DIALOG, self.app.size.width * 96 // 100) - 4
        hints = [""]
        for number, (key, word, _) in enumerate(self._answers):
            part = f"{key} {word}" + (" (enter)" if number == 0 else "")
            if not hints[-1]:
                hints[-1] = part
            elif len(hints[-1]) + len(part) + 3 <= width:
                hints[-1] += f"   {part}"
            else:
                hints.append(part)
        return hints

    def on_key(self, event: events.Key) -> None:
        """A key of an answer; the others scroll."""
        event.stop()
        event.prevent_default()
        pressed = event.character if event.is_printable else event.key
        if pressed in ("enter", "escape", "ctrl+c"):
            self.dismiss(self._answers[0][2] if pressed == "enter" else self._escape)
            return
        for key, _, given in self._answers:
            if pressed == key:
                self.dismiss(given)
                return
        for lines in self.query(LineList):
            lines.take_key(pressed)


class TextScreen(Dialog[None]):
    """A text to read: help, documentation, a drawing."""

    BINDINGS: ClassVar = []

    def __init__(self, title: str, lines: "Sequence[Line] | Sequence[str]", *, hint: str = "") -> None:
        super().__init__()
        self._title = visible(title, 500)
        self._rows = TextRows(list(lines))
        self._hint = hint or "esc close   arrows scroll"

    def compose(self) -> ComposeResult:
        """Title, text, hint."""
        with Vertical(classes="dialog tall wide"):
            yield Bar(id="dialog-title")
            yield LineList(self._rows, id="dialog-rows", has_cursor=False)
            yield Bar(id="dialog-hint")

    def on_mount(self) -> None:
        """The text has the focus."""
        self.query_one("#dialog-title", Bar).show((Span(self._title, "title"),))
        self.query_one("#dialog-hint", Bar).show((Span(self._hint, "quiet"),))
        self.query_one(LineList).focus()

    def on_key(self, event: events.Key) -> None:
        """Scroll, close."""
        event.stop()
        event.prevent_default()
        pressed = event.character if event.is_printable else event.key
        if pressed in ("escape", "q", "enter", "ctrl+c"):
            self.dismiss(None)
        else:
            self.query_one(LineList).take_key(pressed)
