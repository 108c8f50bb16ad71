"""The Textual program: themes, the workbench with all its actions and pages, the screen for what was opened."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from rich.console import Console, RenderableType
from textual import events
from textual._compositor import CompositorUpdate
from textual.app import App
from textual.binding import BindingType
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES, Theme

from onnxjson.storage.urls import is_url
from onnxjson_tui.pages.history import HistoryPage
from onnxjson_tui.pages.problems import ProblemsPage
from onnxjson_tui.pages.tensor import TensorPage
from onnxjson_tui.screens.saving import offer_recovery
from onnxjson_tui.session.opening import Unreadable
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.frames import Frames
from onnxjson_tui.shell.jobs import Jobs
from onnxjson_tui.shell.terminal import (
    ANSI,
    DARK,
    LIGHT,
    KeyOrder,
    Terminal,
    detect,
    driver_class,
    erases_with_background,
    opened,
)
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action
from onnxjson_tui.workbench import (
    commands,
    editing,
    editor,
    finding,
    forms,
    graph,
    helping,
    inspection,
    inspector,
    measuring,
    moving,
    pane_keys,
    persistence,
)

ACTIONS: Final[tuple[Action[Workbench], ...]] = (
    *pane_keys.ACTIONS[:2],
    *moving.ACTIONS,
    *finding.ACTIONS,
    *graph.ACTIONS,
    *commands.ACTIONS,
    *forms.ACTIONS,
    *editing.ACTIONS,
    *pane_keys.ACTIONS[2:],
    *inspector.ACTIONS,
    *moving.SELECTING,
    *editor.ACTIONS,
    *measuring.ACTIONS,
    *inspection.ACTIONS,
    *persistence.ACTIONS,
    *helping.ACTIONS,
)
"""All actions, in the order of the palette, the help, the page of keys and the footer."""


def _families(*colors: str) -> dict[str, str]:
    """Return the variables of a theme with the colours of families of operators."""
    return dict(zip(("compute", "activation", "norm", "shaping", "control"), colors, strict=True))


_THEMES = (
    Theme(
        name=DARK,
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
        variables={"frame": "#3b434c", **_families("#7fb0e0", "#d49aa6", "#8fbf9f", "#a3a8c3", "#d8a35f")},
    ),
    Theme(
        name=LIGHT,
        primary="#1f5f99",
        secondary="#5b6b78",
        accent="#8a6100",
        warning="#8a5a00",
        error="#b03030",
        success="#2e7031",
        foreground="#22272e",
        background="#fbfbf9",
        surface="#f2f2ee",
        panel="#e4e4de",
        dark=False,
        variables={"frame": "#c4c4bc", **_families("#1a5fb4", "#a02c50", "#26703a", "#555f8a", "#9a5b00")},
    ),
    # Only colours of the terminal: readable on any background, and the fewest bytes.
    replace(
        BUILTIN_THEMES["ansi-dark"],
        name=ANSI,
        primary="ansi_cyan",
        accent="ansi_magenta",
        variables={
            **BUILTIN_THEMES["ansi-dark"].variables,
            "frame": "ansi_bright_black",
            **_families("ansi_cyan", "ansi_magenta", "ansi_green", "ansi_default", "ansi_yellow"),
        },
    ),
)


def workbench(session: Session, terminal: Terminal) -> Workbench:
    """Return the workbench with all actions and pages; it offers what earlier sessions did not save."""
    return Workbench(session, terminal, ACTIONS, (ProblemsPage, TensorPage, HistoryPage), offer_recovery)


class _Changed(CompositorUpdate):
    """The difference between the frame of the current screen and the last one."""

    def __init__(self, app: "WorkbenchApp") -> None:
        self._app = app

    def render_segments(self, console: Console) -> str:
        """Return what the terminal must be sent."""
        app = self._app
        strips = app.screen._compositor.render_strips()
        return app.frames.changed(strips, console._color_system)


class WorkbenchApp(App[int], inherit_bindings=False):
    """Shows one screen after the other; their state is in their sessions."""

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - Textual declares it
        (0, "-one"),
        (80, "-two"),
        (120, "-three"),
        (150, "-four"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012 - Textual declares it

    def __init__(self, first: "Screen[Any]", terminal: Terminal | None = None) -> None:
        self.terminal = terminal or detect()
        self._first = first
        # Without colours, Textual would turn those of the terminal, which it does not know, into black.
        super().__init__(
            driver_class=driver_class(self.terminal.glyphs), ansi_color=True if self.terminal.theme == ANSI else None
        )
        for theme in _THEMES:
            self.register_theme(theme)
        self.theme = self.terminal.theme
        self.animation_level = "none"
        self.sessions: list[Session] = []
        """Sessions whose edits must reach the disk when the program is ended from outside."""
        self.keys = KeyOrder(self, super().on_event, self._holds_keys)
        self.frames = Frames(fills=erases_with_background())
        self.failures: list[BaseException] = []
        """Errors of the program itself that were shown to the user; tests allow none."""

    async def on_event(self, event: events.Event) -> None:
        """Queue keys and pasted texts; see `KeyOrder`."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self.keys.put(event)
        else:
            await super().on_event(event)

    def _holds_keys(self) -> bool:
        """Whether running work may ask a question, so that keys must wait for it."""
        jobs = [getattr(screen, "jobs", None) for screen in self.screen_stack]
        return any(isinstance(each, Jobs) and each.hold_keys for each in jobs)

    def screen_for(self, found: Session | Unreadable, *, readonly: bool) -> "Screen[Any]":
        """Return the screen for what was opened, and register its session."""
        screen, session = screen_of(found, self.terminal, readonly=readonly)
        if session is not None:
            self.sessions.append(session)
        return screen

    def _fatal_error(self) -> None:
        """Exit without the traceback of Textual, which shows all variables: `run_program` raises the error."""
        self.exit(return_code=1)

    def _display(self, screen: "Screen[Any]", renderable: RenderableType | None) -> None:
        """Send only what differs from the last frame."""
        is_drawn = renderable is not None and not self.is_headless
        # Textual passes updates of its compositor, too.
        super()._display(screen, _Changed(self) if is_drawn else renderable)  # type: ignore[arg-type]

    async def on_mount(self) -> None:
        """Show the first screen."""
        # Another program has drawn on the terminal meanwhile.
        self.app_resume_signal.subscribe(self, lambda _: self.frames.forget())
        await self.push_screen(self._first)


def first_screen(models: Sequence[str], *, readonly: bool, terminal: Terminal) -> tuple[Screen[Any], Session | None]:
    """Return the first screen for the arguments of the command line, and its session if there is one.

    Raises:
        MissingInputError, AccessDeniedError, FileError: a model cannot be read.
    """
    if not models:
        from onnxjson_tui.screens.opening import StartScreen

        return StartScreen(terminal, readonly=readonly), None
    if len(models) == 2:
        from onnxjson_tui.screens.comparisons import comparison_of_files

        return comparison_of_files(models[0], models[1], terminal), None
    readonly = readonly or is_url(models[0])
    return screen_of(opened(models[0], readonly=readonly), terminal, readonly=readonly)


def screen_of(
    opened_model: Session | Unreadable, terminal: Terminal, *, readonly: bool
) -> tuple[Screen[Any], Session | None]:
    """Return the screen for what was opened, and its session if there is one."""
    if isinstance(opened_model, Unreadable):
        from onnxjson_tui.screens.opening import FindingsScreen

        return FindingsScreen(opened_model, terminal, readonly=readonly), None
    return workbench(opened_model, terminal), opened_model
