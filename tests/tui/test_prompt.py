"""The line to type in costs a line, and covers nothing that is looked for."""

from pathlib import Path
from unittest import mock

from tests.benchmarks.graphs import transformer
from tests.tui.benches import Bench, run_small
from tests.tui.sessions import saved


def _is_seen(bench: Bench) -> bool:
    """Whether the node under the cursor is on the screen, and nothing over it."""
    nodes = bench.bench.nodes
    shown = bench.lines[nodes.region.y + nodes.cursor - nodes.scroll_offset.y]
    here = bench.bench.here
    return here is not None and shown.strip().startswith(f"{here.position} ")


def test_the_panes_stay_as_they_are_when_something_is_asked(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("j")
        before, lines = bench.bench.nodes.region, bench.lines
        await bench.press(":")
        assert bench.bench.nodes.region == before
        # The title without the focus, what the prompt covers, and the footer.
        assert sum(old != new for old, new in zip(lines, bench.lines, strict=True)) <= 3

    run_small(saved(tmp_path / "m.onnx", transformer(100)), flow)


def test_the_cursor_is_seen_while_something_is_asked_on_the_last_row_too(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("Z", "G", ":")
        assert bench.bench.nodes.cursor == 99
        assert _is_seen(bench)
        await bench.press("escape")
        assert _is_seen(bench)
        await bench.press("g", "g", "2", "1", "j", "/")
        assert _is_seen(bench)

    run_small(saved(tmp_path / "m.onnx", transformer(100)), flow)


def test_the_cursor_is_seen_after_a_filter_was_given_up(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("Z", "G", "f", "z", "e", "r", "escape")
        await bench.press("f", *"op:Relu", "escape")
        assert bench.bench.nodes.cursor == 99
        assert _is_seen(bench)

    run_small(saved(tmp_path / "m.onnx", transformer(100)), flow)


def test_the_prompt_stands_above_a_message_of_several_lines(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(":")
        bench.bench.say("a long message " * 12)
        await bench.settle()
        assert bench.lines[-4].startswith(":")
        assert "a long message" in bench.lines[-3]

    run_small(saved(tmp_path / "m.onnx", transformer(100)), flow)


def test_what_tab_offers_is_found_in_a_thread_for_a_big_model_and_dropped_for_who_types_on(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        with mock.patch("onnxjson_tui.shell.graph_screen.BIG", 10):
            await bench.press("f", *"op:Re", "tab")
            assert bench.bench.prompt.input.value == "op:Relu"
            bench.bench.prompt.input.value = "op:So"
            await bench.pilot.pause()
            bench.bench.prompt._next_offer(1)
            bench.bench.prompt.input.value = "op:Sof"
            await bench.settle()
            assert bench.bench.prompt.input.value == "op:Sof"

    run_small(saved(tmp_path / "m.onnx", transformer(100)), flow)


def test_the_inspector_of_a_big_model_waits_until_its_names_are_known(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        with mock.patch("onnxjson_tui.shell.graph_screen.BIG", 10):
            await bench.press("Z", "j", "j", ":")
            await bench.type("delete-node . --bypass 0")
            scope = bench.bench.scope
            assert scope is not None
            assert scope.knows_names
            here = bench.bench.here
            assert here is not None
            assert "in 0 " in "".join(
                span.text for number in range(8) for span in bench.bench.inspector.rows.line(number, 60)
            )
            await bench.press("u")
            assert len(scope.graph.node) == 99
            assert bench.bench.scope is not None
            assert len(bench.bench.scope.graph.node) == 100
            assert len(bench.bench.inspector.rows) > 3

    run_small(saved(tmp_path / "m.onnx", transformer(100)), flow)
