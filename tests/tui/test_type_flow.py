"""Types that an edit would change are in the list of nodes before it is made."""

from collections.abc import Callable
from pathlib import Path

from tests.editing.graphs import model_of
from tests.editing.test_type_flow import CHAIN
from tests.tui.benches import Bench, run_small
from tests.tui.sessions import saved


async def until(bench: Bench, is_reached: Callable[[], object]) -> None:
    """Wait for the inference, which runs in a process."""
    for _ in range(400):
        await bench.pilot.pause(0.02)
        if is_reached():
            return
    raise AssertionError("\n".join(bench.lines))


def test_the_list_shows_types_and_the_breaking_node_while_a_value_is_typed(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("e", "enter", "ctrl+u", *"[2,1,0]")
        await until(bench, lambda: "it would break a node" in "\n".join(bench.lines))
        text = "\n".join(bench.lines)
        assert "-> [64,16,1]" in text
        assert "! Incomp" in text
        await bench.press("escape")
        await until(bench, lambda: "->" not in "\n".join(bench.lines))
        assert not bench.session.is_changed

    run_small(saved(tmp_path / "m.onnx", model_of(CHAIN)), flow)


def test_types_have_the_place_of_numbers(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(*":numbers", "space", *"random", "enter")
        await until(bench, lambda: "numbers of" in bench.text)
        await bench.press("e", "enter", *"[0,1,2]")
        await until(bench, lambda: "-> [1,16,64]" in bench.text)

    run_small(saved(tmp_path / "m.onnx", model_of(CHAIN)), flow)


def test_a_form_shows_the_same_and_nothing_stays_after_it(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(*":edit-form", "space", *"set-attribute", "enter")
        # The node has one attribute, which the form begins with; its value is below.
        await bench.press("down", "ctrl+u", *"[0,1,2]")
        await until(bench, lambda: "0 f32[1,64,16] -> [1,16,64]" in "\n".join(bench.lines))
        assert bench.session.places.flow["/graph/node/2"][1]
        await bench.press("ctrl+u", *"[0,2,1]")
        await until(bench, lambda: not bench.session.places.flow)
        await bench.press("ctrl+u", *"[0,1,2]")
        await until(bench, lambda: bench.session.places.flow)
        await bench.press("escape", "d")
        await until(bench, lambda: not bench.session.places.flow)

    run_small(saved(tmp_path / "m.onnx", model_of(CHAIN)), flow)
