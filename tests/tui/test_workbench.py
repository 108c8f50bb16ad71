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
    async def flow(found: Bench) -> None:
        before = bytes_of(found.session.model)
        await found.press(":")
        await found.type("set-attribute op:LeakyRelu alpha 0.5")
        assert bytes_of(found.session.model) != before
        assert "set-attribute" in found.footer
        assert " *" in found.lines[0]
        await found.press("u")
        assert bytes_of(found.session.model) == before
        await found.press("ctrl+r")
        assert bytes_of(found.session.model) != before
        await found.press("ctrl+s")
        assert " *" not in found.lines[0]

    run(saved(tmp_path / "m.onnx"), flow)


def test_no_line_of_a_long_message_is_cut(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        words = " ".join([f"w{number:03}" for number in range(25)])
        for length in range(5):
            message = f"{'x' * length} {words}".strip()
            found.bench.say(message)
            await found.pilot.pause()
            assert found.footer == message

    run(saved(tmp_path / "m.onnx"), flow, (80, 24))
