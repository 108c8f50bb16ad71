"""The workbench as a person uses it: keys in, lines out."""

from pathlib import Path

from tests.tui.benches import Bench, run
from tests.tui.sessions import bytes_of, saved


def test_the_nodes_stand_on_the_screen(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        assert "LeakyRelu" in found.text
        assert "opset" in found.lines[0]

    run(saved(tmp_path / "m.onnx"), flow)


def test_a_command_is_one_step_that_undo_takes_back(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        before = bytes_of(bench.session.model)
        await bench.press(":")
        await bench.type("set-attribute op:LeakyRelu alpha 0.5")
        assert bytes_of(bench.session.model) != before
        assert "set-attribute" in bench.footer
        assert " *" in bench.lines[0]
        await bench.press("u")
        assert bytes_of(bench.session.model) == before
        await bench.press("ctrl+r")
        assert bytes_of(bench.session.model) != before
        await bench.press("ctrl+s")
        assert " *" not in bench.lines[0]

    run(saved(tmp_path / "m.onnx"), flow)


def test_no_line_of_a_long_message_is_cut(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        words = " ".join([f"w{number:03}" for number in range(25)])
        for length in range(5):
            message = f"{'x' * length} {words}".strip()
            bench.bench.say(message)
            await bench.pilot.pause()
            assert bench.footer == message

    run(saved(tmp_path / "m.onnx"), flow, (80, 24))
