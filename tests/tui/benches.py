"""The workbench under test: on a small model."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.lines import Bar
from onnxjson_tui.workbench.app import WorkbenchApp, workbench
from tests.tui.screens import TERMINAL, Shown, soon_idle
from tests.tui.sessions import opened

SMALL = (80, 24)
WIDE = (120, 40)


class Bench(Shown[Workbench]):
    """One workbench, and the hands on its keyboard."""

    @property
    def bench(self) -> Workbench:
        """The workbench, which may stand below another screen."""
        return self.first

    @property
    def session(self) -> Session:
        """What is edited."""
        return self.first.session

    @property
    def footer(self) -> str:
        """What is said at the bottom, which may take several lines."""
        lines = self.bench.query_one("#footer", Bar).text.count("\n") + 1
        always = re.compile(r"(?: {2,}u undo)?(?: {2,}ctrl\+s save)? {2,}\? keys$")
        return " ".join([always.sub("", line).strip() for line in self.lines[-lines:]])


Flow = Callable[[Bench], Awaitable[None]]


@asynccontextmanager
async def bench(
    path: Path, size: tuple[int, int] = WIDE, *, readonly: bool = False, terminal: Terminal = TERMINAL
) -> AsyncIterator[Bench]:
    """A workbench on a file; leaves no error of the program itself behind."""
    with opened(path, readonly=readonly) as session, soon_idle():
        screen = workbench(session, terminal)
        app = WorkbenchApp(screen, terminal)
        async with app.run_test(size=size) as pilot:
            found = Bench(pilot, screen, app)
            await found.settle()
            yield found
        assert not app.failures, app.failures


def run(
    path: Path, flow: Flow, size: tuple[int, int] = WIDE, *, readonly: bool = False, terminal: Terminal = TERMINAL
) -> None:
    """What a person does in a workbench on a file."""

    async def go() -> None:
        async with bench(path, size, readonly=readonly, terminal=terminal) as found:
            await flow(found)

    asyncio.run(go())


def run_small(path: Path, flow: Flow, size: tuple[int, int] = SMALL, *, readonly: bool = False) -> None:
    """The same in a terminal of the smallest usual size."""
    run(path, flow, size, readonly=readonly)
