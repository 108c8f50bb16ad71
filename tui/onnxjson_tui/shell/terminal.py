"""The terminal and the program in it: capabilities, Textual's driver, the order of keys, the external editor.

Here is also what screens use of the program: internal errors, opening another model.

Textual queues up to thirty frames for a slow connection; after a key was held down, they are still drawn long after it
was released. Without a queue the program waits for the connection and then draws the current state.
"""

import asyncio
import os
import sys
import unicodedata
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, cast

from onnxjson.model.errors import OnnxJsonError
from onnxjson.rendering.tables import cells
from onnxjson_tui.session.opening import Unreadable, expanded, remember
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.jobs import error_text, is_own_error

if TYPE_CHECKING:
    from textual.app import App
    from textual.dom import DOMNode
    from textual.driver import Driver
    from textual.events import Event
    from textual.screen import Screen
    from textual.worker import Worker


Choice = Literal["auto", "on", "off"]

Glyphs = Literal["unicode", "ascii"]

DARK: Final = "onnxjson"
LIGHT: Final = "onnxjson-light"
ANSI: Final = "onnxjson-ansi"
"""Names of the themes: for a dark and a light background, and with only the colours of the terminal itself."""

_PLAIN_TERMINALS = frozenset({"linux", "dumb", "vt100", "vt220", "ansi"})
"""Values of TERM of terminals whose fonts lack most of the line characters."""

_DRAWN: Final = {
    **dict(zip("╵╷│╴┘┐┤╶└┌├─┴┬┼", "'.|-'.+-'.+-+++", strict=True)), **dict.fromkeys("╹╻┃╸┛┓┫╺┗┏┣━┻┳╋", "#"),
    "…": "~", "╌": "-", "▾": "-", "▸": "+", "→": ">", "←": "<", "↑": "^", "↓": "v", "×": "x", "·": ".", "•": "*",
    "●": "*", "○": "o", "◉": "@", "◎": "@", "‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "▌": "|",
    "█": "#", **dict.fromkeys("▁▂▃▄", "."), **dict.fromkeys("▅▆▇", ":"),
}  # fmt: skip
"""ASCII replacements of characters that the program draws with."""

_LONGEST: Final = 0.5  # maximum seconds that the next key waits for a busy widget

_STEPS: Final = 20  # rounds of the event loop, some µs each, in which an action may open a screen; about five are usual

_HOLD_INTERVAL: Final = 0.02  # seconds between checks whether work started by a key still holds back the next keys

_CANCEL_KEYS: Final = ("escape", "ctrl+c")  # keys that do not wait, and that discard the waiting ones

_WIDGET_INTERVAL: Final = 0.05  # seconds between checks whether the target widget was removed


class Terminal(NamedTuple):
    """The capabilities that screens depend on."""

    glyphs: Glyphs
    theme: str
    has_mouse: bool


def detect(
    environment: Mapping[str, str] | None = None,
    *,
    remote: Choice = "auto",
    ascii_only: bool | None = None,
    mouse: bool = True,
) -> Terminal:
    """Detect the terminal from the environment and the user's options; "auto" and None mean that they are not given."""
    variables = os.environ if environment is None else environment
    is_remote = remote == "on" or (
        remote == "auto" and bool(variables.get("SSH_CONNECTION") or variables.get("SSH_TTY"))
    )
    term = variables.get("TERM", "")
    if ascii_only is None:
        ascii_only = term in _PLAIN_TERMINALS or not _is_unicode(variables)
    few_colours = is_remote or "NO_COLOR" in variables or not _has_many_colours(variables)
    is_light = variables.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")
    theme = ANSI if few_colours else LIGHT if is_light else DARK
    return Terminal("ascii" if ascii_only else "unicode", theme, mouse)


def _has_many_colours(environment: Mapping[str, str]) -> bool:
    """Whether the terminal has 256 colours or more, as Rich decides it."""
    return environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit") or environment.get(
        "TERM", ""
    ).rpartition("-")[2] in ("256color", "kitty")


def erases_with_background() -> bool:
    """Whether what the terminal erases gets the current background, as the database of terminals says."""
    try:
        import curses

        curses.setupterm()
        return curses.tigetflag("bce") > 0
    except Exception:  # Windows, an unknown terminal, no terminal
        return False


def _is_unicode(environment: Mapping[str, str]) -> bool:
    """Whether the locale, or else the stream, is UTF-8."""
    locale = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    if locale and locale not in ("C", "POSIX"):
        return "utf-8" in locale.lower() or "utf8" in locale.lower()
    encoding = getattr(sys.__stdout__, "encoding", None) or ""
    return encoding.lower().replace("-", "") == "utf8"


class _Plain(dict[int, str]):
    """ASCII replacements of any character, with the same number of columns."""

    def __missing__(self, number: int) -> str:
        character = chr(number)
        if number < 128:
            drawn = character
        elif character in _DRAWN:
            drawn = _DRAWN[character]
        elif unicodedata.name(character, "").startswith("BOX DRAWINGS"):
            drawn = "+"
        else:
            drawn = "?" * cells(character)
        self[number] = drawn
        return drawn


_PLAIN: Final = _Plain()


def plain(data: str) -> str:
    """Convert output to ASCII with the same number of columns; ? replaces characters without a similar one."""
    return data if data.isascii() else data.translate(_PLAIN)


_RESTORE: Final = (
    b"\x1b[?2004l"  # no bracketed paste
    b"\x1b[?7h"  # long lines wrap
    b"\x1b[?2048l\x1b[?1004l"  # no reports of size and focus
    b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"  # no reports of the mouse
    b"\x1b[<u"  # legacy key codes
    b"\x1b[?1049l\x1b[?25h"  # the main screen, with a cursor
)
"""Restores a terminal: xterm control sequences, and kitty's keyboard protocol."""


def driver_class(glyphs: Glyphs = "unicode") -> "type[Driver] | None":
    """Return Textual's driver without a queue of frames; None on Windows, where Textual chooses."""
    if sys.platform == "win32":
        return None
    from textual.drivers.linux_driver import LinuxDriver

    class DirectDriver(LinuxDriver):
        """Textual's driver, which waits until the terminal has taken a frame."""

        def write(self, data: str) -> None:
            """Write output, converted to ASCII if needed."""
            with suppress(OSError):  # the terminal is gone, and a signal ends the program
                sys.__stderr__.write(plain(data) if glyphs == "ascii" else data)  # type: ignore[union-attr]
                sys.__stderr__.flush()  # type: ignore[union-attr]

    return DirectDriver


def terminal_attributes() -> "list[Any] | None":
    """Return the attributes of the terminal; None if the input is none, and on Windows, where Textual restores it."""
    try:
        import termios
    except ImportError:
        return None
    try:
        return termios.tcgetattr(sys.__stdin__.fileno())  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError, termios.error):
        return None


def restore_terminal(attributes: "list[Any]") -> None:
    """Restore the terminal, if it still exists, without waiting."""
    import termios

    descriptor = sys.__stdin__.fileno()  # type: ignore[union-attr]
    with suppress(OSError, termios.error):
        was_blocking = os.get_blocking(descriptor)
        os.set_blocking(descriptor, False)
        try:
            os.write(descriptor, _RESTORE)
        finally:
            os.set_blocking(descriptor, was_blocking)
    with suppress(OSError, termios.error):
        termios.tcsetattr(descriptor, termios.TCSANOW, attributes)


class KeyOrder:
    """Queue of the keys of a program: each takes full effect on focus and screens before the next one is delivered.

    Textual sends a key to the widget that has the focus when the key arrives, and widgets handle their keys later. Keys
    that arrive in a burst, as over a slow connection or from a paste, would all go to the list although the first of
    them opened a field, and a key that answers a question would go to the screen below the question.
    """

    def __init__(
        self, app: "App[Any]", deliver: "Callable[[Event], Awaitable[None]]", is_held: Callable[[], bool]
    ) -> None:
        """Create an empty queue.

        `deliver` sends a key to the widget that has the focus; `is_held` returns whether work is running that may ask a
        question, to which the next keys belong.
        """
        self._app = app
        self._deliver = deliver
        self._is_held = is_held
        self._waiting: deque[Event] = deque()
        self._worker: Worker[None] | None = None

    def put(self, event: "Event") -> None:
        """Add a key or a pasted text."""
        self._waiting.append(event)
        if self.is_idle:
            self._worker = self._app.run_worker(self._run, group="keys")

    def drop(self) -> None:
        """Discard the waiting keys, because the question or screen for which they were typed will not appear."""
        self._waiting.clear()

    async def _run(self) -> None:
        while self._waiting:
            await self._wait_for_release()
            if not self._app.screen_stack:
                self.drop()  # The program has ended; the rest was not for it.
            elif self._waiting:
                await self._deliver(self._waiting.popleft())
                await self._wait_for_effects()

    @property
    def is_idle(self) -> bool:
        """Whether every key was handled."""
        return self._worker is None or self._worker.is_finished

    async def _wait_for_release(self) -> None:
        """Wait until no running work may ask a question, or the question is on the screen."""
        while self._is_held():
            keys = [getattr(event, "key", "") for event in self._waiting]
            cancel = next((place for place, key in enumerate(keys) if key in _CANCEL_KEYS), None)
            if cancel is not None or not self._waiting:
                # The keys before it were meant for the question that is now cancelled.
                for _ in range(cancel or 0):
                    self._waiting.popleft()
                return
            await asyncio.sleep(_HOLD_INTERVAL)
            if not self._is_held():
                # The action continues now: it asks its question or starts the next work.
                await self._wait_for_effects(_STEPS)

    async def _wait_for_effects(self, steps: int = 3) -> None:
        """Wait until all widgets that may handle the key have done so and their effects are visible."""
        if not self._app.screen_stack:
            return  # The program has ended.
        screen, focused = self._app.screen, self._app.focused
        await self._wait_for_handlers(focused or screen)
        for _ in range(steps):
            await asyncio.sleep(0)
        if not self._app.screen_stack:
            return
        if self._app.screen is not screen or self._app.focused is not focused:
            await self._wait_for_handlers(self._app.focused or self._app.screen)

    async def _wait_for_handlers(self, target: "DOMNode") -> None:
        node: DOMNode | None = target
        while node is not None:
            parent = node.parent
            done = asyncio.Event()
            if node.is_running and node.call_later(done.set):
                await _wait(done, node)
            node = parent


async def _wait(done: asyncio.Event, node: "DOMNode") -> None:
    """Wait until the event is set, or the widget was removed and will never set it."""
    waited = 0.0
    while waited < _LONGEST and node.is_running and not done.is_set():
        try:
            await asyncio.wait_for(done.wait(), _WIDGET_INTERVAL)
        except TimeoutError:
            waited += _WIDGET_INTERVAL


class Program(Protocol):
    """The program that the screens are part of."""

    sessions: list[Session]  # sessions whose edits must reach the disk when the program is ended from outside
    failures: list[BaseException]  # errors of the program itself that were shown to the user
    keys: KeyOrder  # keys that are not handled yet

    def screen_for(self, found: Session | Unreadable, *, readonly: bool) -> "Screen[Any]":
        """Return the screen for what was opened."""
        ...


def program(app: "App[Any]") -> Program:
    """Return the program of a screen with its own type."""
    # Not checked at run time, since screens do not import the program.
    return cast(Program, app)


def failure_text(app: "App[Any]", error: BaseException) -> str:
    """Return an error as a message; internal errors are also stored for tests and for the end."""
    if is_own_error(error):
        program(app).failures.append(error)
    return error_text(error)


def opened(name: str, *, readonly: bool) -> Session | Unreadable:
    """Open a session on a file or revision and remember it as recent; reads the whole model.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
    """
    opened_model = Session.open(str(expanded(name)) if name.startswith("~") else name, readonly=readonly)
    path = opened_model.path if isinstance(opened_model, Unreadable) else opened_model.opened.path
    if path is not None:
        remember(path)
    if isinstance(opened_model, Session):
        # Before anything is shown: a later question would catch keys that are meant for the model.
        opened_model.find_abandoned()
    return opened_model


def enter(app: "App[Any]", found: Session | Unreadable, *, readonly: bool, left: Session | None = None) -> None:
    """Replace the current screen by that of an opened model; close the session of the current screen if it is given."""
    screen = program(app).screen_for(found, readonly=readonly)
    if left is not None:
        left.close()
        program(app).sessions = [each for each in program(app).sessions if each is not left]
    # Not awaited: the caller belongs to the screen that is removed.
    app.call_later(app.switch_screen, screen)


def edit_file(app: "App[Any]", path: Path, place: tuple[int, int] | None = None) -> None:
    """Open a file in $VISUAL or $EDITOR, at a line and column if the editor supports it; wait until the editor ends.

    The event loop is blocked meanwhile: its output would be invisible, and writing to a terminal that belongs to
    another program can block forever.

    Raises:
        OnnxJsonError: no editor is set, it cannot be started, or it failed.
    """
    from onnxjson.cli import processes

    command = processes.chosen_editor().command(path, place)
    failure: OnnxJsonError | None = None
    with app.suspend():
        # An exception in here would never resume the program.
        try:
            processes.run_editor(command)
        except OnnxJsonError as error:
            failure = error
    if failure is not None:
        raise failure
