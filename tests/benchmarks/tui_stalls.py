"""``python -m tests.benchmarks.tui_stalls``: how long each action of the workbench holds up the loop on 100,000 nodes.

Every action of the table is done once, and what people do most is done to its end: an edit, its undo, a filter, a
search, tab. What is measured is every single turn of the loop, in processor time of its thread, so that what else runs
on the machine does not count; the longest turn is what a key pressed meanwhile waits for.
"""

import argparse
import asyncio
import asyncio.events
import cProfile
import gc
import io
import os
import pstats
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest import mock

from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

import onnxjson
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.workbench.app import ACTIONS, WorkbenchApp, workbench
from tests.benchmarks.report import table
from tests.benchmarks.tui_rows import transformer

NODES: Final = 100_000
BUDGET: Final = 0.05
"""Seconds that one turn of the loop may take."""

_LEAVES: Final = frozenset({"quit", "suspend", "open", "edit-text", "export"})
"""Actions after which the workbench is not there, or another program has the terminal."""

_LONGEST: Final = 40.0
"""Seconds after which an action is not waited for any more."""


class Flow(NamedTuple):
    """What is pressed, and what is to come of it."""

    name: str
    keys: tuple[str, ...]
    budget: float = BUDGET
    """Seconds that a turn of the loop may take."""
    steps: int = 0
    """How many changes of the model it makes; one that makes others does not measure what its name says."""
    row: str = ""
    """How the name of the node ends to which the cursor is put before, "" where it stays."""


FLOWS: Final = (
    Flow("filter op:Softmax, letter by letter", ("f", *"op:Softmax"), 0.03),
    Flow("filter, enter", ("enter",), 0.03),
    Flow("filter, given up", ("escape",)),
    Flow("search act, letter by letter", ("/", *"act")),
    Flow("search, enter", ("enter",)),
    Flow("next match", ("n",)),
    Flow("tab over names", ("f", *"/layers.77", "tab")),
    Flow("tab, given up", ("escape",)),
    Flow("command line, tab over names", (":", *"rename node ", "tab")),
    Flow("command line, given up", ("escape",)),
    Flow("edits, a letter, a form", ("a", *"set-at", "enter")),
    Flow("form, given up", ("escape", "escape")),
)
"""What people do most, to its end."""

EDITS: Final = (
    Flow("rename, asked", ("r", "enter"), row="/attn/Softmax"),
    Flow("rename, made", ("X", "enter"), steps=1),
    Flow("rename, undone", ("u",), 0.01, steps=1),
    Flow("rename, redone", ("ctrl+r",), steps=1),
    Flow("rename, undone again", ("u",), 0.01, steps=1),
    Flow("rewire, asked", ("1", "w"), row="/attn/Add"),
    Flow("rewire, letters", tuple("9/up")),
    Flow("rewire, chosen", ("enter",), steps=1),
    Flow("rewire, undone", ("u",), 0.01, steps=1),
    Flow("delete and bridge", ("D",), steps=1, row="/mlp/act/Relu"),
    Flow("delete and bridge, undone", ("u",), steps=1),
)
"""The same of edits, on the model that is made for it."""

HEADS: Final = ["every action once", "longest turn", "all turns", "collection", "budget"]
"""Of the table."""


class Turns:
    """The turns of the loop of this thread, and the processor time that each takes."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.whole = 0.0
        self.collecting = 0.0
        """Seconds of the longest full collection."""
        self.profiled = False
        self.profile = ""
        """Where the longest turn spent its time, if that was wanted."""

    def begin(self) -> None:
        """Forgets what was."""
        self.longest = self.whole = self.collecting = 0.0
        self.profile = ""

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Counts while it lasts."""
        real: Callable[[Any], None] = asyncio.events.Handle._run

        def run(handle: Any) -> None:
            profiler = cProfile.Profile() if self.profiled else None
            start = time.thread_time()
            if profiler is not None:
                profiler.enable()
            try:
                real(handle)
            finally:
                if profiler is not None:
                    profiler.disable()
                taken = time.thread_time() - start
                self.whole += taken
                if taken > self.longest:
                    self.longest = taken
                    if profiler is not None and taken > BUDGET:
                        text = io.StringIO()
                        pstats.Stats(profiler, stream=text).sort_stats("cumulative").print_stats(45)
                        self.profile = text.getvalue()

        started = 0.0

        def collected(phase: str, found: dict[str, int]) -> None:
            nonlocal started
            if phase == "start":
                started = time.thread_time()
            else:
                self.collecting = max(self.collecting, time.thread_time() - started)

        gc.callbacks.append(collected)
        try:
            with mock.patch.object(asyncio.events.Handle, "_run", run):
                yield
        finally:
            gc.callbacks.remove(collected)


class Stall(NamedTuple):
    """How an action held up the loop."""

    name: str
    longest: float
    """Seconds of its longest turn."""
    whole: float
    """Seconds of all of them."""
    collecting: float
    """Seconds of the longest collection of garbage meanwhile, in whichever thread: it stops them all."""
    budget: float
    profile: str = ""


class _Hands:
    """A workbench and its keyboard."""

    def __init__(self, pilot: Pilot[Any], bench: Workbench, turns: Turns) -> None:
        self.pilot = pilot
        self.bench = bench
        self.turns = turns

    async def settle(self) -> None:
        """Waits until no job runs, and the panes have followed."""
        await self.pilot.pause(0.2)
        begin = time.monotonic()
        while self.bench.jobs.running and time.monotonic() - begin < _LONGEST:
            await self.pilot.pause(0.05)
        await self.pilot.pause(0.05)

    async def press(self, flow: Flow) -> Stall:
        """Presses keys, each when what the one before it began is done.

        Raises:
            RuntimeError: the model was changed otherwise than it should be, so that something else was measured.
        """
        bench, turns = self.bench, self.turns
        if flow.row:
            await self.go_to(flow.row)
        before = bench.session.revision
        turns.begin()
        for key in flow.keys:
            await self.pilot.press(_NAMED.get(key, key))
            if not isinstance(bench.app.focused, Input):
                await self.settle()
        await self.settle()
        if (made := bench.session.revision - before) != flow.steps:
            said = bench.messages[-1][0] if bench.messages else "nothing"
            raise RuntimeError(f"{flow.name}: {made} changes of the model instead of {flow.steps}; it said: {said}")
        return Stall(flow.name, turns.longest, turns.whole, turns.collecting, flow.budget, turns.profile)

    async def go_to(self, end: str) -> None:
        """Puts the cursor on the first node behind the middle whose name ends so.

        Raises:
            RuntimeError: there is none.
        """
        bench = self.bench
        nodes = bench.scope.graph.node if bench.scope is not None else ()
        found = (place for place in range(len(nodes) // 2, len(nodes)) if (nodes[place].name or "").endswith(end))
        number = bench.number_of(next(found, -1))
        if number is None:
            raise RuntimeError(f"no node whose name ends with {end} is in the list")
        bench.nodes.move_to(number)
        await self.settle()

    async def do(self, action: Any) -> Stall:
        """Does an action, and gives up what it asks."""
        bench = self.bench
        if action.scope != "everywhere":
            if action.scope == "drawer":
                bench.drawer.open("problems" if action.id != "statistics" else "tensor")
            bench.focus_pane(action.scope)
            await self.settle()
        self.turns.begin()
        bench.do(action)
        await self.settle()
        stall = Stall(
            f":{action.id}", self.turns.longest, self.turns.whole, self.turns.collecting, BUDGET, self.turns.profile
        )
        for _ in range(6):
            if bench.app.screen is bench and not bench.prompt.is_asking:
                break
            bench.app.post_message(events.Key("escape", None))
            await self.settle()
        bench.focus_pane("nodes")
        await self.settle()
        return stall


_NAMED: Final = {" ": "space", "/": "slash", ":": "colon", ".": "full_stop", "-": "minus"}
"""What Textual calls some characters."""


@asynccontextmanager
async def _workbench(path: Path, turns: Turns, size: tuple[int, int]) -> AsyncIterator[_Hands]:
    session = Session.open(path)
    assert isinstance(session, Session)
    with session:
        assert session.index.scopes
        # As the program does before it shows anything.
        gc.collect()
        gc.freeze()
        bench = workbench(session, Terminal(False, "unicode", "onnxjson", False))
        app = WorkbenchApp(bench, bench.terminal)
        async with app.run_test(size=size) as pilot:
            hands = _Hands(pilot, bench, turns)
            await hands.settle()
            yield hands
        assert not app.failures, app.failures
        session.discard()


async def stalls(
    path: Path,
    flows: Sequence[Flow] = (*FLOWS, *EDITS),
    *,
    profiled: bool = False,
    only: str = "",
    size: tuple[int, int] = (160, 45),
) -> list[Stall]:
    """Does everything once.

    Args:
        path: a model.
        flows: what is done beside every action.
        profiled: whether to say where the time went.
        only: a word in the name of what is done; everything if it is empty.
        size: columns and lines.
    """
    turns = Turns()
    turns.profiled = profiled
    found: list[Stall] = []
    with turns.counted():
        async with _workbench(path, turns, size) as hands:
            start = Stall("start", turns.longest, turns.whole, turns.collecting, BUDGET, turns.profile)
            found.append(start)
            middle = len(hands.bench.nodes.rows) // 2
            hands.bench.nodes.move_to(middle)
            await hands.settle()
            for flow in flows:
                stall = await hands.press(flow)
                if only in flow.name:
                    found.append(stall)
            for action in ACTIONS:
                if action.id in _LEAVES or only not in f":{action.id}":
                    continue
                hands.bench.nodes.move_to(middle)
                await hands.settle()
                found.append(await hands.do(action))
    return found


def stall_rows(found: Sequence[Stall]) -> list[tuple[str, ...]]:
    """Lines of the table: what, its longest turn, all of its turns, how long a turn may be."""
    shown = sorted(found, key=lambda stall: -stall.longest)
    return [
        (
            each.name,
            f"{each.longest * 1000:.0f} ms",
            f"{each.whole * 1000:.0f} ms",
            f"{each.collecting * 1000:.0f} ms",
            f"{each.budget * 1000:.0f} ms",
        )
        for each in shown
    ]


def main(arguments: list[str]) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.tui_stalls", description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES, help=f"{NODES:,} if left out")
    parser.add_argument("--model", type=Path, help="a file instead of a model that is made")
    parser.add_argument("--only", default="", help="a word in what is done")
    parser.add_argument("--profile", action="store_true", help="say where turns over the budget spent their time")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_STATE_HOME=folder):
        # A copy, since one of the actions is to save it.
        path = Path(folder, "big.onnx")
        if given.model is None:
            onnxjson.save(transformer(given.nodes), path)
        else:
            shutil.copyfile(given.model, path)
        flows = (*FLOWS, *EDITS) if given.model is None else FLOWS
        found = asyncio.run(stalls(path, flows, profiled=given.profile, only=given.only))
    for stall in found:
        if stall.profile:
            print(f"{stall.name}: {stall.longest * 1000:.0f} ms\n{stall.profile}")
    print(table("How long the loop is held up, CPU", HEADS, stall_rows(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
