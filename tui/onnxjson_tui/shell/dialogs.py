"""Dialogs over another screen: choose one of a list, answer a question, read a text, preview a change."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.widgets import Input

from onnxjson.model.display import visible
from onnxjson.rendering.diff_report import report
from onnxjson.rendering.diff_text import diff_lines
from onnxjson.rendering.tables import Line, Span, plain
from onnxjson_tui.rows.choices import Choice, ChoiceRows, Searchable
from onnxjson_tui.session.history import Preview
from onnxjson_tui.widgets.fields import Field
from onnxjson_tui.widgets.lines import Bar, LineList, TextRows

_DIALOG: Final = 72  # columns of a small dialog with its border; see .dialog in app.tcss
_MENU: Final = 9  # choices up to which a list is a menu
_AROUND: Final = 8  # lines of a dialog and its margin around the list
WIDEST_DIFF: Final = 104  # columns of a diff in a dialog

_DEEP: Final = 12  # columns of indentation from which a line belongs to the one before


def pressed_key(event: events.Key) -> str:
    """Return the character of a key, or its name if it has none: ``G``, ``space``, ``ctrl+s``, ``pagedown``."""
    return (event.character if event.is_printable and event.character != " " else None) or event.key


def key_spans(keys: Iterable[tuple[str, str]]) -> list[Span]:
    """Return keys, each followed by what it does."""
    return [span for key, word in keys for span in (Span(key, "title"), Span(f" {word}  ", "quiet"))]


class AnsweringScreen(Screen[ScreenResultType]):
    """A screen that returns one answer and then closes.

    Keys may arrive faster than the screen opens and closes: a second escape must not close the screen below, and one
    that arrives before the screen is complete must wait until it is.
    """

    _is_complete = False
    is_answered = False  # whether the answer was given, so that the screen is about to close

    def on_mount(self) -> None:
        """Note that all widgets exist; Textual calls the handlers of subclasses before."""
        self._is_complete = True

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Return the answer, once."""
        if self.is_answered:
            return AwaitComplete()
        if not self._is_complete:
            self.call_later(self._answer, result)
            return AwaitComplete()
        self.is_answered = True
        return super().dismiss(result)

    def _answer(self, result: ScreenResultType | None) -> None:
        """Call `dismiss` without returning its awaitable, which Textual would await in a callback."""
        self.dismiss(result)


# ModalScreen comes first, since Textual takes a style sheet from the first of several bases.
class Dialog(ModalScreen[ScreenResultType], AnsweringScreen[ScreenResultType]):
    """A screen with a frame, a title and a line of keys, drawn over the screen that asks."""

    frame = "dialog tall wide"  # classes of the style sheet for its size

    LIST: ClassVar[str] = "#dialog-rows"  # selector of the list that moves with the keys that `keys` does not name

    HAS_FIELD: ClassVar[bool] = False  # whether a text field has the focus and gets all remaining keys

    def keys(self) -> Mapping[str, Callable[[], object]]:
        """Return the keys of the screen, as `pressed_key` names them, and what each one does now."""
        return dict.fromkeys(("escape", "ctrl+c"), partial(self.dismiss, None))

    def on_key(self, event: events.Key) -> None:
        """Run what `keys` assigns to the key; otherwise move the list, or leave the key to the field."""
        key = pressed_key(event)
        run = self.keys().get(key)
        if run is not None:
            run()
        elif not self._moved(key) and self.HAS_FIELD:
            return
        event.stop()
        event.prevent_default()

    def _moved(self, key: str) -> bool:
        """Move the list if the key is one that moves lists; return whether it is."""
        lists = self.query(self.LIST).results(LineList)
        return any(lines.move_with_key(" " if key == "space" else key, is_typing=self.HAS_FIELD) for lines in lists)

    def compose(self) -> ComposeResult:
        """Title, content, keys."""
        with Vertical(classes=self.frame):
            yield Bar(id="dialog-title")
            yield from self.body()
            yield Bar(id="dialog-hint")

    def body(self) -> ComposeResult:
        """Return the widgets between title and keys: a list."""
        yield LineList(id="dialog-rows")

    def show_title(self, title: str, *more: Span) -> None:
        """Write the first line; `title` must be visible."""
        self.query_one("#dialog-title", Bar).show((Span(title, "title"), *more))

    def show_hint(self, *spans: Span) -> None:
        """Write the last line."""
        self.query_one("#dialog-hint", Bar).show(spans)


class PickerScreen(Dialog[str | None]):
    """Chooses one of many by a part of its text; returns its key, or None.

    A few choices are a menu: digits choose, j and k move, / begins to search.
    """

    HAS_FIELD = True

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        *,
        typed: str = "",
        hint: str = "",
        is_wide: bool = False,
        search: Callable[[str, Callable[[Sequence[Choice]], None]], None] | None = None,
    ) -> None:
        """Prepare the question; `search` finds more than the choices, for a typed text, and shows all when it has."""
        super().__init__()
        self._choices = choices if isinstance(choices, Searchable) else Searchable(choices)
        self._search = search
        self._is_tall = search is not None or not choices  # however few choices there are
        self._is_menu = not self._is_tall and len(self._choices) <= _MENU and not typed
        self.frame = f"dialog{' tall' if self._is_tall else ''}{' wide' if is_wide else ''}"
        self._title = visible(title, 200)
        self._typed = typed
        keys = [each.key for each in self._choices[:_MENU]]
        # Slots of a node are called by their own numbers.
        self._digits = keys if all(len(each) == 1 and each.isdecimal() for each in keys) else list("123456789")
        self._hint = hint or "enter choose   esc cancel   type to search"

    def body(self) -> ComposeResult:
        """Field, list."""
        yield Field(self._typed, id="dialog-input", select_on_focus=False)
        yield LineList(id="dialog-rows")

    def on_mount(self) -> None:
        """Focus the field, or the list of a menu."""
        self.show_title(self._title)
        lines, field = self.query_one(self.LIST, LineList), self.query_one(Input)
        field.display = not self._is_menu
        lines.can_focus = self._is_menu
        (lines if self._is_menu else field).focus()
        if not self._is_tall:
            lines.styles.height = max(min(len(self._choices), self.app.size.height - _AROUND), 1)
        self._find(self._typed)

    def on_key(self, event: events.Key) -> None:
        """Choose in a menu, or begin to type; Textual calls the handler of the base for other keys."""
        key = pressed_key(event)
        if not self._is_menu:
            return
        if key in self._digits[: len(self._choices)]:
            self._choose(self._digits.index(key))
        elif key in ("enter", "ctrl+s"):
            self._submit("")
        elif key == "/":
            self._is_menu = False
            field = self.query_one(Input)
            field.display = True
            field.focus()
            self._find("")
        else:
            return
        event.stop()
        event.prevent_default()

    def _moved(self, key: str) -> bool:
        lines = self.query_one(self.LIST, LineList)
        return lines.move_with_key(" " if key == "space" else key, is_typing=not self._is_menu)

    def _find(self, typed: str) -> None:
        words = typed.lower().split()
        self._show(self._choices.having(words) if words else self._choices)
        if words and self._search is not None:
            self._search(typed, partial(self._show_more, typed))

    def _show_more(self, typed: str, choices: Sequence[Choice]) -> None:
        if self.is_mounted and typed == self.query_one(Input).value:
            self._show(choices)

    def _show(self, choices: Sequence[Choice]) -> None:
        self.query_one(LineList).show(ChoiceRows(choices, self._digits if self._is_menu else ()), 0)
        # Also replaces the reason why the last choice was refused.
        numbers = self._digits[: len(choices)]
        hint = f"{numbers[0]}-{numbers[-1]} or enter choose   / search   esc cancel" if self._is_menu else self._hint
        self.show_hint(Span(hint, "quiet") if choices else Span("no match   esc cancel", "changed"))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search."""
        event.stop()
        self._find(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose."""
        event.stop()
        self._submit(event.value)

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Choose with the mouse."""
        self._choose(event.number)

    def _submit(self, typed: str) -> None:
        self._choose(self.query_one(LineList).cursor)

    def choice_at(self, number: int) -> Choice | None:
        """Return the choice in a row, if there is one."""
        rows = self.query_one(LineList).rows
        return rows.choices[number] if isinstance(rows, ChoiceRows) and number < len(rows.choices) else None

    def _choose(self, number: int) -> None:
        choice = self.choice_at(number)
        if choice is None:
            return
        if choice.refused:
            self.show_hint(Span(choice.refused, "bad"))
        else:
            self.dismiss(choice.key)


class ConfirmScreen(Dialog[str]):
    """Asks one question; the first answer is the default."""

    def __init__(
        self,
        question: str,
        answers: Sequence[tuple[str, str, str]],
        *,
        lines: "Sequence[Line] | Sequence[str]" = (),
        escape: str = "",
        is_wide: bool = False,
    ) -> None:
        """Prepare the question.

        An answer is its key, its text, and the value that is returned; enter chooses the first. Escape returns the
        value of the first answer unless `escape` is given. `lines` are read before answering, and must be visible.
        """
        super().__init__()
        self.frame = "dialog wide" if is_wide else "dialog"
        self._question = visible(question, 500)
        self._answers = answers
        self._lines = lines
        self._escape = escape or answers[0][2]

    def compose(self) -> ComposeResult:
        """Question, text, answers."""
        with Vertical(classes=self.frame):
            yield Bar(id="dialog-title")
            if self._lines:
                yield LineList(TextRows(list(self._lines)), id="dialog-rows", has_cursor=False)
            for number in range(len(self._hints())):
                yield Bar(id=f"dialog-hint-{number}")

    def on_mount(self) -> None:
        """Write the answers."""
        self.show_title(self._question)
        for number, hint in enumerate(self._hints()):
            self.query_one(f"#dialog-hint-{number}", Bar).show((Span(hint),))
        for lines in self.query(LineList):
            room = self.app.size.height - 6 - len(self._hints())
            lines.styles.height = min(len(self._lines), max(room, 3))

    def _hints(self) -> list[str]:
        """Return the answers, in as many lines as they need."""
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

    def keys(self) -> Mapping[str, Callable[[], object]]:
        """The keys of the answers."""
        values = {key: value for key, _, value in self._answers}
        values |= {"enter": self._answers[0][2], "escape": self._escape, "ctrl+c": self._escape}
        return {key: partial(self.dismiss, value) for key, value in values.items()}


class TextScreen(Dialog[None]):
    """A text to read and to search: help, documentation, a drawing."""

    def __init__(self, title: str, lines: "Sequence[Line] | Sequence[str]", *, is_full: bool = False) -> None:
        super().__init__()
        self.frame = "dialog all" if is_full else "dialog tall wide"
        self._title = visible(title, 500)
        self._lines: list[Line] = [(Span(each),) if isinstance(each, str) else each for each in lines]

    def body(self) -> ComposeResult:
        """The text."""
        yield Field(id="dialog-input", select_on_focus=False)
        yield LineList(TextRows(self._lines), id="dialog-rows", has_cursor=False)

    def on_mount(self) -> None:
        """Focus the text."""
        self.show_title(self._title)
        self.show_hint(Span("/ search   esc close   arrows scroll", "quiet"))
        self.query_one(Input).display = False
        self.query_one(LineList).focus()

    def on_key(self, event: events.Key) -> None:
        """Leave letters to the field while it is open; Textual calls the handler of the base for other keys."""
        field = self.query_one(Input)
        if not field.has_focus:
            return
        event.prevent_default()
        if event.key in ("escape", "enter", "up", "down", "pageup", "pagedown"):
            event.stop()
            self._end_search("" if event.key == "escape" else field.value)
            if event.key not in ("escape", "enter"):
                self._moved(event.key)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what contains the typed words, below its headings."""
        event.stop()
        found = found_lines(self._lines, event.value.lower().split())
        self.query_one(LineList).show(TextRows(found or ["nothing contains this"]), 0)

    def _search(self) -> None:
        self.query_one(Input).display = True
        self.query_one(Input).focus()

    def _end_search(self, typed: str) -> None:
        field = self.query_one(Input)
        field.value = typed
        field.display = bool(typed)
        self.query_one(LineList).focus()

    def keys(self) -> Mapping[str, Callable[[], object]]:
        """Search, close."""
        closing = dict.fromkeys(("q", "enter"), partial(self.dismiss, None))
        return {**super().keys(), **closing, "/": self._search}


def found_lines(lines: Sequence[Line], words: Sequence[str]) -> list[Line]:
    """Return the entries that contain all words, with their headings; deeply indented lines belong to an entry."""
    if not words:
        return list(lines)
    matching: list[Line] = []
    heading: list[Line] = []
    entry: list[Line] = []

    def close() -> None:
        if entry and all(word in "\n".join(map(plain, entry)).lower() for word in words):
            matching.extend([*heading, *entry])
            heading.clear()
        entry.clear()

    for line in lines:
        text = plain(line)
        if text.strip() and text.startswith(" " * _DEEP):
            entry.append(line)
            continue
        close()
        if text.strip() and not text.startswith(" ") and line[0].style == "title":
            heading[:] = [line]
        elif text.strip():
            entry.append(line)
    close()
    return matching


def preview_lines(preview: Preview, base: str, target: str, width: int, *, details: bool = False) -> list[Line]:
    """Return the diff of a change, with names for both sides."""
    found = report(preview.difference(), base, target)
    return list(diff_lines(found, min(width, WIDEST_DIFF), details=details))
