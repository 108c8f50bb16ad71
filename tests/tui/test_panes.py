"""Two models side by side: rows that correspond, changes taken and put as in vimdiff."""

import re
from pathlib import Path

import pytest

import onnxjson
from onnxjson.diffing.difference import diff_models
from onnxjson.example import write_example
from onnxjson.model.document import Graph, Model, StringStringEntry, Tensor
from onnxjson.model.errors import EditError
from onnxjson.model.types import format_type
from onnxjson_tui.rows.difference import Side
from onnxjson_tui.rows.panes import PaneRows
from onnxjson_tui.screens.panes import PanesScreen, require_weights
from onnxjson_tui.shell.keyed import KeyedScreen
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run_small
from tests.tui.sessions import saved
from tests.tui.test_comparing import EDIT, command, finished


async def panes(bench: Bench) -> PanesScreen:
    """The panes above the comparison on top."""
    await finished(bench)
    await bench.pilot.press("v")
    await settled(bench)
    screen = bench.app.screen
    assert isinstance(screen, PanesScreen)
    return screen


def rows_of(screen: PanesScreen) -> PaneRows:
    assert screen.panes is not None
    return screen.panes


async def settled(bench: Bench) -> None:
    for _ in range(200):
        await bench.pilot.pause(0.02)
        screen = bench.app.screen
        if not isinstance(screen, KeyedScreen) or not screen.jobs.running:
            break
    await bench.pilot.pause(0.15)


def test_a_change_is_taken_back_from_the_saved_model_and_is_a_step(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await command(bench, EDIT)
        await command(bench, "delete-node op:Relu --bypass 0")
        before = bench.session.model
        await bench.press("c")
        screen = await panes(bench)
        count = len(rows_of(screen).starts)
        await bench.pilot.press("d", "o")
        await settled(bench)
        assert "take " in bench.lines[-1]
        assert len(rows_of(screen).starts) < count
        await bench.pilot.press("u")
        await settled(bench)
        assert bench.session.model == before
        await bench.pilot.press("ctrl+r", "q", "q")
        await settled(bench)
        assert bench.app.screen is bench.bench
        assert bench.session.history.made[-1].title.startswith("take ")

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_one_change_of_another_file_is_taken_and_another_put_there_and_saved(tmp_path: Path) -> None:
    write_example(tmp_path / "a.onnx", unfused=True)
    write_example(tmp_path / "b.onnx")

    async def flow(bench: Bench) -> None:
        await command(bench, f"compare {tmp_path / 'b.onnx'}")
        await panes(bench)
        assert re.search(r"Gemm      /fc +(f32\[N,10\])? +> 4 MatMul", "\n".join(bench.lines))
        await bench.pilot.press("d", "o")
        await settled(bench)
        assert bench.session.select("op:Gemm")[0].node.name == "/fc"
        assert "0 changes; . shows 1 without effect on results" in "\n".join(bench.lines)
        await bench.pilot.press(".", "g", "g", "d", "p", "ctrl+s")
        await settled(bench)
        await bench.pilot.press("q")
        await settled(bench)
        assert not diff_models(bench.session.model, onnxjson.load(tmp_path / "b.onnx")).events

    run_small(tmp_path / "a.onnx", flow)


def test_weights_in_a_file_of_another_folder_are_not_taken(tmp_path: Path) -> None:
    weight = Tensor(name="w", data_location=1, external_data=(StringStringEntry("location", "w.bin"),))
    other = Model(graph=Graph(initializer=(weight,)))
    mine, here = (Side("m.onnx", model, tmp_path / "m.onnx") for model in (Model(), other))
    require_weights(mine, here, other)
    with pytest.raises(EditError, match="external file of the other model"):
        require_weights(mine, Side("m.onnx", other, tmp_path / "there" / "m.onnx"), other)


def test_lines_at_the_bottom_are_broken_for_another_width(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await command(bench, EDIT)
        await bench.press("c")
        for opened in (finished, panes):
            await opened(bench)
            await settled(bench)
            wide = bench.lines[-8:]
            await bench.pilot.resize_terminal(60, 24)
            await settled(bench)
            narrow = bench.lines[-8:]
            await bench.pilot.press("k", "j")
            await settled(bench)
            assert bench.lines[-8:] == narrow != wide
            await bench.pilot.resize_terminal(80, 24)
            await settled(bench)
            assert bench.lines[-8:] == wide

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_types_follow_a_change_that_is_taken(tmp_path: Path) -> None:
    """The other model states a wrong type, too, so that the right one does not come with the change."""
    text = """g (float[2,3,4] x) => (float y) {types} {{
        t = Transpose<perm = [{perm}]>(x)
        y = Relu(t)
    }}"""
    path = saved(tmp_path / "m.onnx", model_of(text.format(types="<float[4,2,3] t>", perm="2, 0, 1")))
    saved(tmp_path / "b.onnx", model_of(text.format(types="<float[4,2,3] t>", perm="0, 1, 2")))

    async def flow(bench: Bench) -> None:
        await command(bench, f"compare {tmp_path / 'b.onnx'}")
        await panes(bench)
        await bench.pilot.press("d", "o")
        await settled(bench)
        graph = bench.session.model.graph
        assert graph is not None
        assert [each.ints for each in graph.node[0].attribute] == [(0, 1, 2)]
        assert [format_type(each.type) for each in graph.value_info if each.type] == ["float32[2,3,4]"]

    run_small(path, flow)


def test_types_that_no_model_states_are_inferred_on_both_sides(tmp_path: Path) -> None:
    text = "g (float[2,3] x) => (float[2,3] y) { a = Relu(x)\n b = {operator}(a)\n y = Neg(b) }"
    first, second = (model_of(text.replace("{operator}", operator)) for operator in ("Abs", "Exp"))

    async def flow(bench: Bench) -> None:
        await command(bench, f"compare {saved(tmp_path / 'b.onnx', second)}")
        await panes(bench)
        (row,) = [line for line in bench.lines if "Relu" in line]
        assert row.count("f32[2,3]") == 2

    run_small(saved(tmp_path / "a.onnx", first), flow)
