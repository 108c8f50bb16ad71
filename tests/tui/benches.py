"""The workbench under test: on a small model, driven by keys, read as lines of text."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from onnxjson_tui.app import WorkbenchApp
from onnxjson_tui.session import Session
from onnxjson_tui.terminal import Terminal
from onnxjson_tui.widgets.bars import Bar
from onnxjson_tui.workbench import Workbench
from tests.tui.sessions import opened

TERMINAL = Terminal(False, "unicode", "onnxjson", True)
ASCII = Terminal(True, "ascii", "ansi-dark", False)


class Bench:
    """One workbench, and the hands on its keyboard."""

    def __init__(self, pilot: Pilot[Any], bench: Workbench) -> None:
        self.pilot = pilot
        self.bench = bench

    @property
    def app(self) -> WorkbenchApp:
        """The program."""
        app = self.bench.app
        assert isinstance(app, WorkbenchApp)
        return app

    @property
    def session(self) -> Session:
        """What is edited."""
        return self.bench.session

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
        """Waits until no job runs, and the panes have followed the cursor."""
        await self.pilot.pause(4 * _SETTLES)
        waited = 0.0
        while self.bench.jobs.running and waited < seconds:
            await self.pilot.pause(0.05)
            waited += 0.05
        await self.pilot.pause()

    @property
    def screen(self) -> list[str]:
        """The lines of the whole screen, as they are seen."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        """The whole screen."""
        return "\n".join(self.screen)

    @property
    def footer(self) -> str:
        """What is said at the bottom, which may take several lines."""
        lines = self.bench.query_one("#footer", Bar).text.count("\n") + 1
        always = re.compile(r"(?: {2,}ctrl\+s save)? {2,}\? keys$")
        return " ".join([always.sub("", line).strip() for line in self.screen[-lines:]])


NAMES = {" ": "space"}
"""Keys that are not called by their character."""


_SETTLES = 0.02
"""Seconds after which the inspector follows the cursor."""


@contextmanager
def _soon_idle() -> Iterator[None]:
    """Textual waits 20 ms or more after each key for the program to be idle; half of it is enough here."""
    with (
        patch("textual._wait.SLEEP_GRANULARITY", 0.01),
        patch("textual._wait.SLEEP_IDLE", 0.0005),
        patch("onnxjson_tui.workbench.SETTLES", _SETTLES),
    ):
        yield


@asynccontextmanager
async def bench(
    path: Path, size: tuple[int, int] = (120, 40), *, readonly: bool = False, terminal: Terminal = TERMINAL
) -> AsyncIterator[Bench]:
    """A workbench on a file; leaves no error of the program itself behind."""
    with opened(path, readonly=readonly) as session, _soon_idle():
        screen = Workbench(session, terminal)
        app = WorkbenchApp(screen, terminal)
        async with app.run_test(size=size) as pilot:
            found = Bench(pilot, screen)
            await found.settle()
            yield found
        assert not app.failures, app.failures
