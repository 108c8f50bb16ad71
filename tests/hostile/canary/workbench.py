"""The workbench on planted models: every page, the outline and the list of nodes, at two sizes."""

import asyncio
from pathlib import Path

from tests.hostile.canary.positions import complete_model, valid_model
from tests.hostile.canary.runners import write
from tests.hostile.canary.tripwires import MARK, escapes
from tests.hostile.canary.watching import Watch
from tests.tui.benches import Bench, bench

_ROWS = 30
"""Rows of the outline and of the nodes on which the cursor rests."""


def workbench(watch: Watch) -> None:
    """Open all pages: none may act on a payload, use one as a link or a click, or draw a control character."""
    complete = complete_model(watch.planter)[0]
    for name, model in (("valid.onnx", valid_model(watch.planter)), ("complete.onnx", complete)):
        asyncio.run(_look_around(watch, write(watch.folder, name, model)))


async def _look_around(watch: Watch, path: Path) -> None:
    async with bench(path, (120, 40)) as found:
        for size in ((120, 40), (80, 24)):
            await found.pilot.resize_terminal(*size)
            for page in found.bench.drawer.pages:
                found.bench.drawer.open(page)
                await found.settle()
                _look(watch, f"page {page}", found)
        found.bench.focus_pane("nodes")
        for way in ("all nodes", "lines"):
            for _ in range(_ROWS):
                await found.pilot.press("l", "down")
            await found.settle()
            _look(watch, way, found)
            await found.pilot.press("Z")


def _look(watch: Watch, what: str, found: Bench) -> None:
    segments = [segment for strip in found.app.screen._compositor.render_strips() for segment in strip]
    drawn = "".join([segment.text for segment in segments]).encode("utf-8", "surrogateescape")
    acting = [f"{each.style.meta} {each.style.link}" for each in segments if each.style is not None]
    watch.look("workbench", [what], [drawn], [*escapes([drawn]), *MARK.findall(" ".join(acting))])
