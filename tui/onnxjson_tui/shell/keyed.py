"""The base of full screens: title, lists, prompt, footer, jobs, and one table of keys for footer and help."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, TypeVar

from textual import events, getters
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.timer import Timer

from onnxjson.model.display import visible
from onnxjson.rendering.tables import Line, Span, cells, clipped, padded
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.shell.dialogs import AnsweringScreen, ConfirmScreen, PickerScreen, TextScreen, pressed_key
from onnxjson_tui.shell.jobs import Jobs
from onnxjson_tui.shell.terminal import Terminal, failure_text
from onnxjson_tui.widgets.actions import Action, Arguments, KeyReader, Pane, key_hints, key_lines, sentence, shown_keys
from onnxjson_tui.widgets.fields import Complete, Prompt
from onnxjson_tui.widgets.lines import Bar, LineList, Tone

_T = TypeVar("_T")

SETTLES: Final = 0.12  # seconds that the cursor rests on a row before its details are shown
AWAITS: Final = 0.15  # seconds before the footer shows the beginning of a key sequence
EXPLAINS: Final = 0.4  # seconds before the keys that can follow are listed
_MOST_MESSAGES: Final = 200  # messages that are kept


def _motion(name: str, title: str, keys: tuple[str, ...], rows: Callable[[LineList], int]) -> Action[Any]:
    """Return the action that moves the cursor by as many rows as a function of the list returns, times the count."""

    def run(screen: "KeyedScreen[Any]", arguments: Arguments) -> None:
        screen.lines.move_by(rows(screen.lines) * (arguments.number or 1))

    return Action(name, title, keys, run, "Move")


MOTIONS: Final[tuple[Action[Any], ...]] = (
    _motion("down", "next row", ("j", "down"), lambda lines: 1),
    _motion("up", "previous row", ("k", "up"), lambda lines: -1),
    _motion("page-down", "page down", ("pagedown", "ctrl+d", "ctrl+f"), lambda lines: lines.page),
    _motion("page-up", "page up", ("pageup", "ctrl+u", "ctrl+b"), lambda lines: -lines.page),
)
"""Movements in a list, the same on all screens."""


def screen_key(
    keys: tuple[str, ...], title: str, run: "str | Callable[[Any, Arguments], Any]", footer: str = ""
) -> Action[Any]:
    """Return the action of keys on one screen: a function of the screen and the arguments, or the name of a method."""
    if callable(run):
        return Action(keys[0], title, keys, run, "See", footer=footer)
    method = run
    return Action(method, title, keys, lambda screen, given: getattr(screen, method)(given), "See", footer=footer)


class KeyedScreen(AnsweringScreen[_T]):
    """Base of screens with lists of lines and their own keys."""

    BINDINGS: ClassVar[list[BindingType]] = []
    KEYS: ClassVar[tuple[Action[Any], ...]] = ()  # keys of the screen, in the order of the help
    SAME_KEYS: ClassVar[dict[str, str]] = {}  # digits that represent a key of the table, on screens without counts

    def __init__(self, terminal: Terminal, actions: Sequence[Action[Any]] | None = None) -> None:
        """Prepare the screen; without `actions`, for those of `KEYS` and the motions."""
        super().__init__()
        self.terminal = terminal
        if actions is None:
            actions = [*self.KEYS, *MOTIONS]
        self.actions = actions
        self._reader = KeyReader(actions)
        self._message: tuple[str, Tone] = ("", "plain")
        self.messages: deque[tuple[str, Tone]] = deque(maxlen=_MOST_MESSAGES)  # messages shown so far, the newest last
        self._awaiting: tuple[Timer, ...] = ()
        self._settling: Timer | None = None

    def compose(self) -> ComposeResult:
        """Title, content, prompt, footer."""
        yield Bar(id="title")
        yield from self.body()
        yield Prompt(id="prompt")
        yield Bar(id="following")
        yield Bar(id="footer")

    def body(self) -> ComposeResult:
        """Return the widgets between title and prompt."""
        yield from ()

    def on_mount(self) -> None:
        """Draw the bars. Textual calls this after that of a subclass, which must not call it too."""
        self.draw_bars()

    @cached_property
    def jobs(self) -> Jobs:
        """Work in threads."""
        return Jobs(self, self.failed, self.draw_bars)

    prompt = getters.query_one(Prompt)  # the line to type in

    @property
    def pane(self) -> Pane:
        """The pane that has the focus, on screens with keys that only work there."""
        return "everywhere"

    @property
    def lines(self) -> LineList:
        """The list that has the focus, else the first one."""
        return self.focused if isinstance(self.focused, LineList) else self.query(LineList).first()

    def focus_next_list(self) -> None:
        """Focus the next list."""
        lists = list(self.query(LineList))
        at = next((number for number, each in enumerate(lists) if each.has_focus), 0)
        lists[(at + 1) % len(lists)].focus()

    def after_rest(self, show: Callable[[], object]) -> None:
        """Call a function when the cursor has rested for a moment."""
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLES, show)

    # Bars

    def title_line(self) -> tuple[Line, Line | str]:
        """Return the title, and the text at its right."""
        return (), ""

    def footer_line(self) -> tuple[Line, Line, tuple[Line, ...]]:
        """Return the footer: a message, job or keys; typed keys at its right; more lines below."""
        text, tone = self._message
        pending = f"{visible(self._reader.pending, 20)} " if self._reader.pending else ""
        right: Line = (Span(pending),) if pending else ()
        slow = next((job for job in self.jobs.running if job.is_slow), None)
        if text:
            return (Span(f" {text}", tone),), right, ()
        if slow is not None:
            return (Span(f" {slow.status}", "changed"),), right, ()
        offered = [(shown_keys(each.keys[0]), self.word_of(each)) for each in self.KEYS if self.offered(each)]
        return key_hints([each for each in offered if each[1]], self.size.width - cells(pending)), right, ()

    def draw_bars(self) -> None:
        """Draw title and footer; only differences are sent to the terminal."""
        if not self.is_mounted or not self.is_running or not self.query("#footer"):
            return
        self.query_one("#title", Bar).show(*self.title_line())
        left, right, below = self.footer_line()
        self.query_one("#footer", Bar).show(left, right, below)
        self.prompt.place_above(1 + len(below))

    def offered(self, key: Action[Any]) -> bool:
        """Return whether a key does something now."""
        return True

    def word_of(self, key: Action[Any]) -> str:
        """Return the word for a key in the footer now; "" leaves it out."""
        return key.footer

    def say(self, text: str, tone: Tone = "plain", *, keep: bool = True) -> None:
        """Show a message in the footer until the next key, made visible here, and keep it for ``:messages``."""
        self._message = (visible(text, 1000), tone)
        if text and keep:
            self.messages.append(self._message)
        self.draw_bars()

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
        result = self._reader.feed(self.SAME_KEYS.get(key, key), self.pane)
        self._message = ("", "plain")
        for timer in self._awaiting:
            timer.stop()
        self._awaiting = ()
        self.query_one("#following", Bar).visible = False
        if result.kind == "more" and self._reader.pending:
            # A fast typist does not need it, and drawing it would delay the next key.
            self._awaiting = (self.set_timer(AWAITS, self.draw_bars), self.set_timer(EXPLAINS, self._show_following))
        else:
            self.draw_bars()
        if result.kind == "action" and result.action is not None:
            self.do(result.action, result.arguments)
        elif result.kind == "nothing":
            self.say(f"{visible(key)} does nothing here; ? lists the keys")

    def _show_following(self) -> None:
        """List the keys that can follow those that were pressed."""
        following = self._reader.following(self.pane)
        widest = max([cells(key) + cells(action.title) for key, action in following], default=0) + 5
        count = max(self.size.width // widest, 1)
        width = self.size.width // count
        rows = -(-len(following) // count)
        lines = []
        for row in range(rows):
            line: list[Span] = []
            for key, action in following[row::rows]:
                room = width - cells(key) - 4
                line += [Span(f"  {key} ", "title"), Span(f" {padded(clipped(sentence(action.title), room), room)}")]
            lines.append(tuple(line))
        if lines:
            bar = self.query_one("#following", Bar)
            bar.show(lines[0], below=lines[1:])
            bar.visible = True

    def on_bar_clicked(self, event: Bar.Clicked) -> None:
        """Run the action of a key that was clicked in the footer."""
        panes = (self.pane, "everywhere")
        wanted = [(pane, each) for pane in panes for each in self.actions if each.scope == pane]
        found = next((each for _, each in wanted if event.key in map(shown_keys, each.keys)), None)
        if found is not None and not self.prompt.is_asking:
            self.do(found)

    def do(self, action: Action[Any], arguments: Arguments = Arguments()) -> None:  # noqa: B008 - immutable
        """Run an action; report its error."""
        try:
            work = action.run(self, arguments)
        except Exception as error:
            self.failed(error)
            return
        if work is not None:
            self.begin(work)
        self.draw_bars()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that waits for something, such as an answer; report its error."""
        self.run_worker(self._finish(work), group="actions", exit_on_error=False)

    async def _finish(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self.failed(error)

    def show_keys(self) -> None:
        """List the keys."""
        width = max(self.size.width - 5, 30)
        self.app.push_screen(TextScreen("Keys", key_lines(self.actions, self.pane, width), is_full=True))

    def on_resize(self, event: events.Resize) -> None:
        """Draw the bars for another width."""
        self.call_after_refresh(self.draw_bars)

    # Questions

    async def choose(
        self, title: str, choices: Sequence[Choice], *, hint: str = "", is_wide: bool = False
    ) -> str | None:
        """Ask for one of many; return its key, or None if the user cancels. One choice alone is not asked for."""
        if len(choices) == 1 and not choices[0].refused:
            return choices[0].key
        return await self.app.push_screen_wait(PickerScreen(title, choices, hint=hint, is_wide=is_wide))

    async def confirm(
        self,
        question: str,
        answers: Sequence[tuple[str, str, str]],
        *,
        lines: Sequence[Line] | Sequence[str] = (),
        escape: str = "",
        is_wide: bool = False,
    ) -> str:
        """Ask one question; see `ConfirmScreen` for the arguments."""
        screen = ConfirmScreen(question, answers, lines=lines, escape=escape, is_wide=is_wide)
        return await self.app.push_screen_wait(screen)

    async def confirm_replacing(self, lines: Sequence[str]) -> bool:
        """Ask whether to replace a file that exists."""
        answers = [("k", "keep it", "keep"), ("R", "replace it (no backup is kept)", "replace")]
        return await self.confirm("Not written: the file exists", answers, lines=lines) == "replace"

    async def ask(
        self,
        mark: str,
        *,
        text: str = "",
        changed: Callable[[str], None] | None = None,
        complete: Complete | None = None,
        is_selected: bool = True,
    ) -> str | None:
        """Ask for a line; return None if the user cancels. See `Prompt.ask` for the arguments."""
        answered: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        focused = self.lines

        def done(answer: str | None) -> None:
            self.focus_list(focused)
            if not answered.done():
                answered.set_result(answer)

        self.prompt.ask(mark, done, text=text, changed=changed, complete=complete, is_selected=is_selected)
        return await answered

    def focus_list(self, lines: LineList) -> None:
        """Give a list the focus."""
        lines.focus()


FIRST_AND_LAST: Final = (
    screen_key(("g g", "home"), "first row", lambda screen, _: screen.lines.move_by(-len(screen.lines.rows))),
    screen_key(("G", "end"), "last row", lambda screen, _: screen.lines.move_by(len(screen.lines.rows))),
)

OTHER_LIST: Final = screen_key(("tab", "shift+tab"), "to the other list", lambda screen, _: screen.focus_next_list())

HELP: Final = screen_key(("?", "f1"), "this list of keys", lambda screen, _: screen.show_keys(), "keys")
