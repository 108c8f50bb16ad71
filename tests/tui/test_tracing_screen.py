"""A trace as a person steps through it."""

import asyncio
from pathlib import Path

import pytest

from onnxjson.optimizing.passes import Pipeline, parse_step
from onnxjson.optimizing.passes.big_constants import stage_of
from onnxjson.optimizing.trace_records import Recorder, Trace
from onnxjson.optimizing.trace_storing import write_trace
from onnxjson.rendering.tables import plain
from onnxjson_tui.screens.passes import StopRows, TraceScreen, stops
from onnxjson_tui.workbench.app import first_screen
from tests.tui.screens import TERMINAL, shown
from tests.tui.sessions import small


@pytest.fixture(scope="module")
def trace() -> Trace:
    """Names for nodes, nothing, one node less."""
    model = small()
    steps = [parse_step(each) for each in ("name-nodes", "prune", "delete-node{node=op:Relu,bypass=0}")]
    with Pipeline(keep_going=True) as pipeline:
        recorder = Recorder("m.onnx", stage_of(model), pipeline)
        for made in pipeline.run(model, steps):
            recorder.add(made)
    return recorder.trace()


@pytest.fixture
def folder(trace: Trace, tmp_path: Path) -> Path:
    """The trace on the disk."""
    write_trace(trace, tmp_path / "steps")
    return tmp_path / "steps"


def test_every_pass_is_a_row_with_what_it_did_to_the_numbers(trace: Trace) -> None:
    rows = StopRows(list(stops(trace)))
    found = [plain(rows.line(number, 80)).split("  ") for number in range(len(rows))]
    texts = [[part.strip() for part in line if part.strip()] for line in found]
    assert [line[:2] for line in texts] == [
        ["name-nodes", "4 nodes"],
        ["prune", "changed nothing"],
        ["delete-node{node=op:Relu,bypass=0}", "4 -> 3 nodes (-1)"],
    ]


def test_the_passes_are_stepped_through_with_what_each_did(folder: Path) -> None:
    async def go() -> None:
        async with shown(TraceScreen(str(folder), TERMINAL)) as found:
            assert "= ▾ renamed" in found.text or "= ▸ renamed" in found.text
            await found.press("]", "p")
            assert "the pass changed nothing" in found.text
            await found.press(")")
            assert "- ▾ eliminated" in found.text
            await found.press("enter", "}", "t")
            assert '- {"op_type": "Relu"' in found.text
            await found.press("(", "(")
            assert "renamed" in found.text
            await found.press("q")
            assert not found.app.is_running

    asyncio.run(go())


def test_a_node_knows_where_it_comes_from_and_where_it_goes(folder: Path) -> None:
    async def go() -> None:
        async with shown(TraceScreen(str(folder), TERMINAL)) as found:
            await found.press(")", ")", "tab", "}", "w")
            assert "removed by this pass; origin" in found.text
            assert "Relu" in found.text
            await found.press("escape")
            assert found.app.screen is found.first

    asyncio.run(go())


def test_the_folder_of_a_trace_opens_on_it(folder: Path) -> None:
    screen, session = first_screen([str(folder)], readonly=False, terminal=TERMINAL)
    assert isinstance(screen, TraceScreen)
    assert session is None


def test_a_folder_without_a_trace_says_so(tmp_path: Path) -> None:
    async def go() -> None:
        async with shown(TraceScreen(str(tmp_path / "none"), TERMINAL), (120, 30)) as found:
            assert "contains no trace" in " ".join(found.text.split())
            await found.press("q")

    asyncio.run(go())
