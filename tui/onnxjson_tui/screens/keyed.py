"""A whole screen with keys of its own: title, footer, prompt, jobs, and a table of keys that makes footer and help."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType

from onnxjson.display import visible
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, padded
from onnxjson_tui.action import Action, Given
from onnxjson_tui.entering import failure_said
from onnxjson_tui.jobs import Jobs
from onnxjson_tui.key_list import key_hints, shown_keys
from onnxjson_tui.key_reader import KeyReader
from onnxjson_tui.screens.choosing import TextScreen
from onnxjson_tui.screens.dialog import AnsweringScreen
from onnxjson_tui.terminal import Terminal
from onnxjson_tui.widgets.bars import Bar, Tone
from onnxjson_tui.widgets.lines import LineList
from onnxjson_tui.widgets.prompt import Prompt

_T = TypeVar("_T")


class ScreenKey(NamedTuple):
    """What keys do on a screen."""

    keys: tuple[str, ...]
    """As in `Action.keys`; the first one is shown first."""
    title: str
    run: Callable[[Any, Given], None]
    """A method of the screen."""
    footer: str = ""
    """A word for the bar at the bottom; "" leaves it out there."""


class KeyedScreen(AnsweringScreen[_T]):
    """The base of screens beside the workbench that have lists of lines and keys of their own."""

    BINDINGS: ClassVar[list[BindingType]] = []
    KEYS: ClassVar[tuple[ScreenKey, ...]] = ()
    """In the order of the help."""
    SAME_KEYS: ClassVar[dict[str, str]] = {}
    """Digits that mean a key of the table, where no count is wanted."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self.terminal = terminal
        self._by_id = {f"{number}": each for number, each in enumerate(self.KEYS)}
        self._reader = KeyReader(
            [Action(key, each.title, each.keys, lambda bench, given: None, "See") for key, each in self._by_id.items()]
        )
        self._message: tuple[str, Tone] = ("", "plain")

    def compose(self) -> ComposeResult:
        """Title, what the screen is for, prompt, footer."""
        yield Bar(id="title")
        yield from self.body()
        yield Prompt(id="prompt")
        yield Bar(id="footer")

    def body(self) -> ComposeResult:
        """What stands between title and prompt."""
        yield from ()

    def on_mount(self) -> None:
        """Write the bars. Textual calls this after the same of a derived class, which must not call it, too."""
        self.draw_chrome()

    @cached_property
    def jobs(self) -> Jobs:
        """What goes on in threads."""
        return Jobs(self, self.failed, self.draw_chrome)

    @property
    def prompt(self) -> Prompt:
        """The line to type in."""
        return self.query_one(Prompt)

    @property
    def lines(self) -> LineList:
        """The list that has the focus, else the first one."""
        return self.focused if isinstance(self.focused, LineList) else self.query(LineList).first()

    # Bars

    def title_line(self) -> tuple[Line, str]:
        """What stands at the top, and at its right."""
        return (), ""

    def draw_chrome(self) -> None:
        """Draws title and footer; they cost bytes only where they differ."""
        if not self.is_mounted or not self.query("#footer"):
            return
        self.query_one("#title", Bar).show(*self.title_line())
        text, tone = self._message
        pending = f"{visible(self._reader.pending, 20)} " if self._reader.pending else ""
        slow = next((job for job in self.jobs.running if job.is_slow), None)
        if text:
            left: Line = (Span(f" {text}", tone),)
        elif slow is not None:
            left = (Span(f" {slow.said}", "changed"),)
        else:
            left = self._hints(self.size.width - cells(pending))
        self.query_one("#footer", Bar).show(left, pending)

    def offered(self, key: ScreenKey) -> bool:
        """Whether a key means something now."""
        return True

    def word_of(self, key: ScreenKey) -> str:
        """The word of a key for the bar at the bottom as things are now; "" leaves it out there."""
        return key.footer

    def _hints(self, width: int) -> Line:
        offered = [(shown_keys(each.keys[0]), self.word_of(each)) for each in self.KEYS if self.offered(each)]
        return key_hints([each for each in offered if each[1]], width)

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Says something at the bottom until the next key; `text` is made visible here."""
        self._message = (visible(text, 1000), tone)
        self.draw_chrome()

    def failed(self, error: BaseException) -> None:
        """Says what went wrong; errors of the program itself are kept for tests and for the end."""
        self.say(failure_said(self.app, error), "bad")

    # Keys

    def on_key(self, event: events.Key) -> None:
        """Keys that no field takes are those of the table."""
        if self._is_whole and self.prompt.is_asking:
            return
        event.stop()
        event.prevent_default()
        if not self._is_whole or self.is_answered:
            return  # Keys may come faster than a screen comes and goes.
        key = event.character if event.is_printable and event.character != " " else event.key
        key = self.SAME_KEYS.get(key or "", key)
        heard = self._reader.feed(key or event.key, "everywhere")
        self._message = ("", "plain")
        if heard.kind == "action" and heard.action is not None:
            try:
                # By its name, since a screen may have made it another method than its base has.
                getattr(self, self._by_id[heard.action.id].run.__name__)(heard.given)
            except Exception as error:
                self.failed(error)
        elif heard.kind == "nothing":
            self._message = (f"{visible(key or event.key)} means nothing here; ? lists the keys", "plain")
        self.draw_chrome()

    def on_resize(self, event: events.Resize) -> None:
        """Another width has room for other words."""
        self.call_after_refresh(self.draw_chrome)

    def ask(self, mark: str, done: Callable[[str], None], **more: Any) -> None:
        """Asks for a line; `done` is given it unless the person gave up. See `Prompt.ask` for the rest."""
        focused = self.lines

        def answered(text: str | None) -> None:
            focused.focus()
            if text is not None:
                done(text)
            self.draw_chrome()

        self.prompt.ask(mark, answered, **more)

    def show_keys(self, given: Given) -> None:
        """Lists the keys."""
        self.app.push_screen(TextScreen("Keys", key_lines(self.KEYS)))

    # Moving, alike on all screens

    def down(self, given: Given) -> None:
        """To the next row, or as many as the count says."""
        self.lines.move_by(given.number or 1)

    def up(self, given: Given) -> None:
        """To the row before."""
        self.lines.move_by(-(given.number or 1))

    def page_down(self, given: Given) -> None:
        """A page on."""
        self.lines.move_by(self.lines.page * (given.number or 1))

    def page_up(self, given: Given) -> None:
        """A page back."""
        self.lines.move_by(-self.lines.page * (given.number or 1))

    def half_down(self, given: Given) -> None:
        """Half a page on."""
        self.lines.move_by(max(self.lines.page // 2, 1) * (given.number or 1))

    def half_up(self, given: Given) -> None:
        """Half a page back."""
        self.lines.move_by(-max(self.lines.page // 2, 1) * (given.number or 1))

    def first(self, given: Given) -> None:
        """To the first row."""
        self.lines.move_by(-len(self.lines.rows))

    def last(self, given: Given) -> None:
        """To the last row."""
        self.lines.move_by(len(self.lines.rows))

    def centre(self, given: Given) -> None:
        """The row of the cursor to the middle."""
        self.lines.centre(0.5)


MOVING: Final = (
    ScreenKey(("j", "down"), "next row", KeyedScreen.down),
    ScreenKey(("k", "up"), "row before", KeyedScreen.up),
    ScreenKey(("pagedown", "ctrl+f"), "page on", KeyedScreen.page_down),
    ScreenKey(("pageup", "ctrl+b"), "page back", KeyedScreen.page_up),
    ScreenKey(("ctrl+d",), "half a page on", KeyedScreen.half_down),
    ScreenKey(("ctrl+u",), "half a page back", KeyedScreen.half_up),
    ScreenKey(("g g", "home"), "first row", KeyedScreen.first),
    ScreenKey(("G", "end"), "last row", KeyedScreen.last),
    ScreenKey(("z z",), "the row to the middle", KeyedScreen.centre),
)
"""Keys of every list."""

HELP: Final = ScreenKey(("?", "f1"), "this list of keys", KeyedScreen.show_keys, "keys")


def key_lines(table: tuple[ScreenKey, ...]) -> list[Line]:
    """A table of keys as lines."""
    shown = [("  ".join([shown_keys(keys) for keys in each.keys]), each.title) for each in table]
    column = max([len(keys) for keys, _ in shown], default=0) + 2
    return [(Span(f" {padded(keys, column)}", "title"), Span(title)) for keys, title in shown]
