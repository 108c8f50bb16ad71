"""The program: terminal, theme, screens."""

from typing import Any, ClassVar

from textual import events
from textual.app import App
from textual.binding import BindingType
from textual.screen import Screen
from textual.theme import Theme

from onnxjson_tui.driver import driver_class
from onnxjson_tui.jobs import Jobs
from onnxjson_tui.key_order import KeyOrder
from onnxjson_tui.opening import Unreadable
from onnxjson_tui.session import Session
from onnxjson_tui.terminal import Terminal, detect

_THEME = Theme(
    name="onnxjson",
    primary="#7aa2c8",
    secondary="#8fa3b0",
    accent="#c8a96a",
    warning="#d0a85c",
    error="#d27a7a",
    success="#86b58a",
    foreground="#d4d8dc",
    background="#16191d",
    surface="#1b1f24",
    panel="#23282e",
    dark=True,
)


class WorkbenchApp(App[int], inherit_bindings=False):
    """Shows one screen after the other; what they are about is in their sessions."""

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - Textual declares it
        (0, "-one"),
        (80, "-two"),
        (120, "-three"),
        (150, "-four"),
    ]

    def __init__(self, first: "Screen[Any]", terminal: Terminal | None = None) -> None:
        self.terminal = terminal or detect()
        self._first = first
        super().__init__(driver_class=driver_class(self.terminal.glyphs))
        self.register_theme(_THEME)
        self.theme = self.terminal.theme
        self.animation_level = "none"
        self.sessions: list[Session] = []
        """Those that have something to lose when the program is ended from outside."""
        self.keys = KeyOrder(self, super().on_event, self._holds_keys)
        self.failures: list[BaseException] = []
        """Errors of the program itself that were said to the person; tests want none."""

    async def on_event(self, event: events.Event) -> None:
        """Keys and pasted texts wait for those before them; see `onnxjson_tui.key_order`."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self.keys.put(event)
        else:
            await super().on_event(event)

    def _holds_keys(self) -> bool:
        """Whether work goes on of which a question may come, so that keys are not for what is seen now."""
        jobs = [getattr(screen, "jobs", None) for screen in self.screen_stack]
        return any(isinstance(each, Jobs) and each.hold_keys for each in jobs)

    def screen_for(self, found: Session | Unreadable, *, readonly: bool) -> "Screen[Any]":
        """The screen for what was opened; a session has something to lose from now on."""
        from onnxjson_tui.first_screen import screen_of

        screen, session = screen_of(found, self.terminal, readonly=readonly)
        if session is not None:
            self.sessions.append(session)
        return screen

    async def on_mount(self) -> None:
        """Show the first screen."""
        await self.push_screen(self._first)
