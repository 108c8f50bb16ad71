"""The base of full screens: title, lists, prompt, footer, jobs, and one table of keys for footer and help."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType

from onnxjson.model.display import visible
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, padded
from onnxjson_tui.keys.action import Action, Given, KeyReader
from onnxjson_tui.keys.key_list import key_hints, shown_keys
from onnxjson_tui.screens.dialogs import AnsweringScreen, TextScreen, pressed_key
from onnxjson_tui.shell.entering import failure_text
from onnxjson_tui.shell.jobs import Jobs
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.widgets.bars import Bar, Tone
from onnxjson_tui.widgets.lines import LineList
from onnxjson_tui.widgets.prompt import Prompt

_T = TypeVar("_T")


class Motion(NamedTuple):
    """A movement in a list, the same on all screens."""

    id: str
    title: str
    keys: tuple[str, ...]
    """As in `Action.keys`."""
    run: Callable[[LineList, int], object]
    """Moves the cursor of a list; a count repeats it."""


MOTIONS: Final = (
    Motion("down", "next row", ("j", "down"), lambda lines, count: lines.move_by(count)),
    Motion("up", "previous row", ("k", "up"), lambda lines, count: lines.move_by(-count)),
    Motion("page-down", "page down", ("pagedown", "ctrl+f"), lambda lines, count: lines.move_by(lines.page * count)),
    Motion("page-up", "page up", ("pageup", "ctrl+b"), lambda lines, count: lines.move_by(-lines.page * count)),
    Motion("half-page-down", "half a page down", ("ctrl+d",), lambda lines, count: lines.move_by(_half(lines) * count)),
    Motion("half-page-up", "half a page up", ("ctrl+u",), lambda lines, count: lines.move_by(-_half(lines) * count)),
    Motion("centre", "scroll the row to the middle", ("z z",), lambda lines, count: lines.centre(0.5)),
)


def _half(lines: LineList) -> int:
    return max(lines.page // 2, 1)


class ScreenKey(NamedTuple):
    """What keys do on a screen."""

    keys: tuple[str, ...]
    """As in `Action.keys`; the first one is shown first."""
    title: str
    run: str
    """The name of a method of the screen, which takes what was typed around the keys."""
    footer: str = ""
    """A word for the footer; "" leaves it out there."""


class KeyedScreen(AnsweringScreen[_T]):
    """The base of screens next to the workbench that have lists of lines and keys of their own."""

    BINDINGS: ClassVar[list[BindingType]] = []
    KEYS: ClassVar[tuple[ScreenKey, ...]] = ()
    """In the order of the help."""
    SAME_KEYS: ClassVar[dict[str, str]] = {}
    """Digits that stand for a key of the table, on screens without counts."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self.terminal = terminal
        actions = [Action(each.run, each.title, each.keys, getattr(type(self), each.run), "See") for each in self.KEYS]
        actions += [Action(each.id, each.title, each.keys, _mover(each), "Move") for each in MOTIONS]
        self._reader = KeyReader(actions)
        self._message: tuple[str, Tone] = ("", "plain")

    def compose(self) -> ComposeResult:
        """Title, content, prompt, footer."""
        yield Bar(id="title")
        yield from self.body()
        yield Prompt(id="prompt")
        yield Bar(id="footer")

    def body(self) -> ComposeResult:
        """Return the widgets between title and prompt."""
        yield from ()

    def on_mount(self) -> None:
        """Draw the bars. Textual calls this after that of a subclass, which must not call it too."""
        self.draw_chrome()

    @cached_property
    def jobs(self) -> Jobs:
        """Work in threads."""
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
        """Return the title, and the text at its right."""
        return (), ""

    def draw_chrome(self) -> None:
        """Draw title and footer; only differences are sent to the terminal."""
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
        """Return whether a key does something now."""
        return True

    def word_of(self, key: ScreenKey) -> str:
        """Return the word for a key in the footer now; "" leaves it out."""
        return key.footer

    def _hints(self, width: int) -> Line:
        offered = [(shown_keys(each.keys[0]), self.word_of(each)) for each in self.KEYS if self.offered(each)]
        return key_hints([each for each in offered if each[1]], width)

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Show a message in the footer until the next key; `text` is made visible here."""
        self._message = (visible(text, 1000), tone)
        self.draw_chrome()

    def failed(self, error: BaseException) -> None:
        """Show an error; errors of the program itself are also recorded."""
        self.say(failure_text(self.app, error), "bad")

    # Keys

    def on_key(self, event: events.Key) -> None:
        """Read a key, unless the prompt is open."""
        if self._is_complete and self.prompt.is_asking:
            return
        event.stop()
        event.prevent_default()
        if not self._is_complete or self.is_answered:
            return  # Keys may arrive faster than a screen opens and closes.
        key = pressed_key(event)
        heard = self._reader.feed(self.SAME_KEYS.get(key, key), "everywhere")
        self._message = ("", "plain")
        if heard.kind == "action" and heard.action is not None:
            try:
                heard.action.run(self, heard.given)
            except Exception as error:
                self.failed(error)
        elif heard.kind == "nothing":
            self._message = (f"{visible(key)} does nothing here; ? lists the keys", "plain")
        self.draw_chrome()

    def on_resize(self, event: events.Resize) -> None:
        """Draw the bars for another width."""
        self.call_after_refresh(self.draw_chrome)

    def ask(self, mark: str, done: Callable[[str], None], **more: Any) -> None:
        """Ask for a line; `done` gets it unless the user cancels. See `Prompt.ask` for the other arguments."""
        focused = self.lines

        def answered(text: str | None) -> None:
            focused.focus()
            if text is not None:
                done(text)
            self.draw_chrome()

        self.prompt.ask(mark, answered, **more)

    def show_keys(self, given: Given) -> None:
        """List the keys."""
        self.app.push_screen(TextScreen("Keys", key_lines(self.KEYS)))

    def first(self, given: Given) -> None:
        """Go to the first row."""
        self.lines.move_by(-len(self.lines.rows))

    def last(self, given: Given) -> None:
        """Go to the last row."""
        self.lines.move_by(len(self.lines.rows))


def _mover(motion: Motion) -> Callable[[KeyedScreen[Any], Given], None]:
    def run(screen: KeyedScreen[Any], given: Given) -> None:
        motion.run(screen.lines, given.number or 1)

    return run


FIRST_AND_LAST: Final = (
    ScreenKey(("g g", "home"), "first row", "first"),
    ScreenKey(("G", "end"), "last row", "last"),
)

HELP: Final = ScreenKey(("?", "f1"), "this list of keys", "show_keys", "keys")


def key_lines(table: tuple[ScreenKey, ...]) -> list[Line]:
    """Return a table of keys, and those that move in lists, as lines."""
    rows: list[ScreenKey | Motion] = [*table, *MOTIONS]
    shown = [("  ".join([shown_keys(keys) for keys in each.keys]), each.title) for each in rows]
    column = max([len(keys) for keys, _ in shown], default=0) + 2
    return [(Span(f" {padded(keys, column)}", "title"), Span(title)) for keys, title in shown]
