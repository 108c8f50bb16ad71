"""Screens under test that have no workbench below them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from textual.pilot import Pilot

from onnxjson_tui.app import WorkbenchApp
from onnxjson_tui.screens.keyed import KeyedScreen
from tests.tui.benches import NAMES, TERMINAL

_S = TypeVar("_S", bound=KeyedScreen[Any])


class Shown(Generic[_S]):
    """One screen, and the hands on its keyboard."""

    def __init__(self, pilot: Pilot[Any], screen: _S, app: WorkbenchApp) -> None:
        self.pilot = pilot
        self.screen = screen
        self.app = app

    async def press(self, *keys: str) -> None:
        """Presses keys one after the other, then waits until nothing is left to do."""
        await self.pilot.press(*keys)
        await self.settle()

    async def type(self, text: str) -> None:
        """Types a text, and enter."""
        await self.press(*[NAMES.get(each, each) for each in text], "enter")

    async def settle(self, seconds: float = 30.0) -> None:
        """Waits until no job runs, and what follows the cursor has followed."""
        await self.pilot.pause(0.15)
        waited = 0.0
        while self.screen.jobs.running and waited < seconds:
            await self.pilot.pause(0.05)
            waited += 0.05
        await self.pilot.pause()

    @property
    def lines(self) -> list[str]:
        """The lines of the whole screen, as they are seen."""
        return screen_lines(self.app)

    @property
    def text(self) -> str:
        """The whole screen."""
        return "\n".join(self.lines)


def screen_lines(app: WorkbenchApp) -> list[str]:
    """The lines of the screen that is on top, as they are seen."""
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


@asynccontextmanager
async def shown(screen: _S, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Shown[_S]]:
    """A screen of its own; leaves no error of the program itself behind."""
    app = WorkbenchApp(screen, TERMINAL)
    async with app.run_test(size=size) as pilot:
        found = Shown(pilot, screen, app)
        await found.settle()
        yield found
    assert not app.failures, app.failures
