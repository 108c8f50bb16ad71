"""The line at the bottom in which a person types: a search, a filter, a command, a value."""

from collections.abc import Callable, Sequence
from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input

from onnxjson.rendering.spans import Span
from onnxjson.rendering.tables import cells
from onnxjson_tui.widgets.bars import Bar
from onnxjson_tui.widgets.field import Field

_MOST_KEPT: Final = 200
"""Lines of each kind that are kept to be asked for again."""

Complete = Callable[[str], Sequence[str]]
"""What the text so far may become: whole lines. It is asked in a thread for a big model, so it touches no widget."""

FindOffers = Callable[[Callable[[], Sequence[str]], Callable[[Sequence[str]], None]], None]
"""Finds out what is offered, and goes on with it."""


class Prompt(Horizontal):
    """Asks for one line at a time, above the footer and over the last line of what stands there.

    Nothing has to make room for it, so that it costs a line of the terminal and not the whole screen.
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self._done: Callable[[str | None], None] | None = None
        self._changed: Callable[[str], None] | None = None
        self._complete: Complete | None = None
        self._offered: Callable[[Sequence[str]], None] | None = None
        self.find_offers: FindOffers = lambda find, then: then(find())
        self.shown: Callable[[bool], None] = lambda is_shown: None
        """Is told when it comes and goes."""
        self.refused_lines: Callable[[int], object] = lambda count: None
        """Is told of a pasted text of several lines, of which nothing is taken."""
        self._kept: dict[str, list[str]] = {}
        self._kind = ""
        self._older = 0
        self._typed = ""
        self._offers: Sequence[str] = ()
        self._offer = -1

    def compose(self) -> ComposeResult:
        """The mark and the field."""
        yield Bar(id="prompt-mark")
        field = Field(id="prompt-input", select_on_focus=False)
        field.refused_lines = lambda count: self.refused_lines(count)
        yield field

    def stand_above(self, lines: int) -> None:
        """Stands above a footer of so many lines."""
        if self.styles.offset.y.value != -lines:
            self.styles.offset = (0, -lines)

    @property
    def is_asking(self) -> bool:
        """Whether it is seen."""
        return self._done is not None

    @property
    def input(self) -> Input:
        """The field."""
        return self.query_one("#prompt-input", Input)

    def kept(self, mark: str) -> Sequence[str]:
        """Earlier answers to a mark, the newest last."""
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
    ) -> None:
        """Asks; the keys go here until the person answers.

        Args:
            mark: stands before the field, such as ``/``; answers to the same mark are kept for the up key.
            done: is given the answer, None where the person gave up.
            text: what stands there at first.
            changed: is given the text whenever it changes.
            complete: says what tab offers.
            offered: is given that whenever it was asked for.
        """
        self._done, self._changed, self._complete, self._offered = done, changed, complete, offered
        self._kind, self._older, self._typed, self._offers, self._offer = mark, 0, text, (), -1
        bar = self.query_one("#prompt-mark", Bar)
        bar.styles.width = cells(mark) + (1 if len(mark) > 1 else 0)
        bar.show((Span(mark, "title"),))
        self.visible = True
        self.shown(True)
        self.input.value = text
        self.input.cursor_position = len(text)
        self.input.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Someone may want to know while the person types."""
        event.stop()
        self._forget_offers()
        if self._changed is not None and self._done is not None:
            self._changed(self.input.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter."""
        event.stop()
        self.answer(event.value)

    def answer(self, text: str | None) -> None:
        """Ends the question."""
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
        """Escape gives up, up and down go through earlier answers, tab through what is offered."""
        match event.key:
            case "escape" | "ctrl+c":
                self.answer(None)
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
            # Who typed on meanwhile, or gave up, does not want them any more.
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
        """Forgets what was offered for another text; the field takes letters before this widget hears of them."""
        if self._offers and self.input.value != self._offers[self._offer]:
            self._offers, self._offer = (), -1

    def _put(self, text: str) -> None:
        self.input.value = text
        self.input.cursor_position = len(text)
