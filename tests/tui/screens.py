"""Screens under test, in the whole program: driven by keys, read as lines of text."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Generic, TypeVar
from unittest.mock import patch

from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from onnxjson_tui.shell.keyed import KeyedScreen
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.workbench.app import WorkbenchApp

TERMINAL = Terminal("unicode", "onnxjson", True)
ASCII = Terminal("ascii", "onnxjson-ansi", False)

NAMES = {" ": "space"}
"""Keys that are not called by their character."""

_SETTLES = 0.02
"""Seconds after which what follows the cursor follows it."""

_S = TypeVar("_S", bound=KeyedScreen[Any] | Workbench)


class Shown(Generic[_S]):
    """A program with one screen at the bottom, and the hands on its keyboard."""

    def __init__(self, pilot: Pilot[Any], first: _S, app: WorkbenchApp) -> None:
        self.pilot = pilot
        self.first = first
        self.app = app

    async def press(self, *keys: str) -> None:
        """Presses keys one after the other, then waits until nothing is left to do."""
        await self.pilot.press(*keys)
        await self.settle()

    async def type(self, text: str) -> None:
        """Types a text, all of it at once where there is a field for it, and enter."""
        await self.pilot.pause()
        if isinstance(self.app.focused, Input):
            self.app.focused.post_message(events.Paste(text))
            await self.pilot.pause()
            await self.pilot.press("enter")
        else:
            await self.pilot.press(*[NAMES.get(each, each) for each in text], "enter")
        await self.settle()

    async def settle(self, seconds: float = 30.0) -> None:
        """Waits until no job runs, and what follows the cursor has followed."""
        await self.pilot.pause(4 * _SETTLES)
        waited = 0.0
        while any(each.jobs.running for each in (self.first, self.app.screen) if isinstance(each, KeyedScreen)) and (
            waited < seconds
        ):
            await self.pilot.pause(0.05)
            waited += 0.05
        await self.pilot.pause()

    @property
    def lines(self) -> list[str]:
        """The lines of the whole screen, as they are seen."""
        return screen_lines(self.app.screen)

    @property
    def text(self) -> str:
        """The whole screen."""
        return "\n".join(self.lines)


def screen_lines(screen: Screen[Any]) -> list[str]:
    """The lines of a screen, as they are seen."""
    strips = screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def send(app: WorkbenchApp, key: str) -> None:
    """Presses a key without waiting for what comes of it, which is a hundred times as fast."""
    shown = key if len(key) == 1 else " " if key == "space" else None
    event = events.Key(_character_to_key(key) if len(key) == 1 else key, shown)
    event.set_sender(app)
    assert app._driver is not None
    app._driver.send_message(event)


@contextmanager
def soon_idle() -> Iterator[None]:
    """Textual waits 20 ms or more after each key for the program to be idle; half of it is enough here."""
    with (
        patch("textual._wait.SLEEP_GRANULARITY", 0.01),
        patch("textual._wait.SLEEP_IDLE", 0.0005),
        patch("onnxjson_tui.shell.keyed.SETTLES", _SETTLES),
    ):
        yield


@asynccontextmanager
async def shown(screen: _S, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Shown[_S]]:
    """A screen of its own; leaves no error of the program itself behind."""
    app = WorkbenchApp(screen, TERMINAL)
    with soon_idle():
        async with app.run_test(size=size) as pilot:
            found = Shown(pilot, screen, app)
            await found.settle()
            yield found
    assert not app.failures, app.failures
