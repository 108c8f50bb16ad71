"""Forms on the screen: filled in by keys, with what they would change, made as one step."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, name_of
from onnxjson.editing.spelling import parse_line
from onnxjson_tui.screens.form import FormScreen
from onnxjson_tui.shell.dialogs import ConfirmScreen, PickerScreen
from onnxjson_tui.widgets.actions import Arguments
from onnxjson_tui.workbench.app import ACTIONS
from tests.tui.benches import Bench, run
from tests.tui.every_edit import edits_for, model
from tests.tui.filled_forms import filled
from tests.tui.sessions import bytes_of, saved

SIZES = ((80, 24), (120, 40))


def on_model(tmp_path: Path, flow: Callable[[Bench], Awaitable[None]], size: tuple[int, int] = (80, 24)) -> None:
    run(saved(tmp_path / "m.onnx", model()), flow, size)


async def until(bench: Bench, is_so: Callable[[], bool]) -> None:
    """Waits until something is so."""
    for _ in range(3000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    pytest.fail(bench.text)


def _is_open(screen: object) -> bool:
    """Whether a form has its fields; some edits need none."""
    return (
        isinstance(screen, FormScreen) and screen.is_attached and len(screen._controls) == len(screen._filling.fields)
    )


async def open_form(found: Bench, name: str, *, is_looked_at: bool = True) -> FormScreen:
    bench, app = found.bench, found.app
    bench.do(next(each for each in ACTIONS if each.id == "edits"), Arguments(text=name))
    await until(found, lambda: _is_open(app.screen))
    screen = app.screen
    assert isinstance(screen, FormScreen)
    if is_looked_at:
        await looked(found, screen)
    return screen


async def looked(bench: Bench, screen: FormScreen) -> None:
    """Waits until the form has been looked at since the last key."""
    await bench.pilot.pause(0.22)
    await until(bench, lambda: not bench.bench.jobs.running)
    await bench.pilot.pause()


async def fill(found: Bench, edit: Edit) -> None:
    """Opens the form of an edit, puts its texts into the fields and makes it, after the preview where there is one."""
    bench, app = found.bench, found.app
    screen = await open_form(found, name_of(edit), is_looked_at=False)
    texts = filled(edit).texts
    for control in screen._controls:
        control.put(texts[control.name or ""])
    screen.submit()
    await until(found, lambda: app.screen is not screen or screen._look.tone == "bad")
    if isinstance(app.screen, ConfirmScreen):
        await found.pilot.press("enter")
    await until(found, lambda: app.screen is bench or screen._look.tone == "bad")
    assert app.screen is bench, screen._look.text
    await until(found, lambda: bench._message[0] != "")


def test_every_edit_made_by_its_form_is_one_step_whose_command_makes_it_again(tmp_path: Path) -> None:
    wanted = edits_for(tmp_path)

    async def flow(bench: Bench) -> None:
        before = bytes_of(bench.session.model)
        for edit in wanted:
            await fill(bench, edit)
            steps = bench.session.history.made
            assert len(steps) == 1, name_of(edit)
            [command] = steps[0].commands
            assert parse_line(command) == replace(edit, expect=None, if_any=False)
            assert steps[0].title == command
            after = bytes_of(bench.session.model)
            bench.bench.changed(bench.session.undo())
            assert bytes_of(bench.session.model) == before
            assert bench.session.edit(parse_line(command)) is not None
            assert bytes_of(bench.session.model) == after
            bench.bench.changed(bench.session.undo())
            bench.bench.say("")

    on_model(tmp_path, flow, (120, 40))


def test_a_form_is_filled_in_by_keys_and_says_what_it_would_change(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("j", "j", "j")
        screen = await open_form(bench, "set-attribute")
        assert "output:c" in bench.text
        await looked(bench, screen)
        assert "alpha" in bench.text
        assert "expects a number" in bench.text
        assert "nothing would change" in bench.text
        await bench.press("down", "ctrl+u", "n")
        await looked(bench, screen)
        assert "! " in bench.text
        await bench.press("backspace", "2")
        await looked(bench, screen)
        assert "would change 1 place" in bench.text
        await bench.press("enter")
        assert bench.app.screen is bench.bench
        assert bench.footer.startswith("set-attribute output:c alpha 2  ")

    on_model(tmp_path, flow)


def test_errors_of_an_edit_stay_in_its_form(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        screen = await open_form(bench, "remove-attribute")
        for control in screen._controls:
            control.put({"node": "output:a", "attribute": "alpha"}.get(control.name or "", ""))
        await bench.press("ctrl+s")
        assert bench.app.screen is screen
        assert 'has no attribute "alpha"' in bench.text
        assert not len(bench.session.history)
        screen._typed["attribute"] = "x" * 20
        await bench.press("escape")
        question: object = bench.app.screen
        assert isinstance(question, ConfirmScreen)
        await bench.press("k")
        assert bench.app.screen is screen
        await bench.press("escape", "d")
        shown: object = bench.app.screen
        assert shown is bench.bench

    on_model(tmp_path, flow)


def test_a_form_in_which_nothing_was_typed_closes_without_a_question(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await open_form(bench, "rewire")
        await bench.press("escape")
        assert bench.app.screen is bench.bench

    on_model(tmp_path, flow)


def test_what_is_still_needed_is_asked_for(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        screen = await open_form(bench, "add-node")
        await bench.press("ctrl+s")
        assert bench.app.screen is screen
        assert "still needed: op type, output" in bench.text
        assert screen.focused is not None
        assert screen.focused.name == "op_type"

    on_model(tmp_path, flow)


def test_an_edit_of_several_places_is_shown_first_and_can_be_dropped(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        screen = await open_form(bench, "set-metadata")
        texts = {"key": "k", "value": "v", "node": "!op:Relu"}
        for control in screen._controls:
            control.put(texts.get(control.name or "", ""))
        await bench.press("ctrl+s")
        await until(bench, lambda: isinstance(bench.app.screen, ConfirmScreen))
        assert "metadata" in bench.text
        await bench.press("escape")
        await until(bench, lambda: bench.app.screen is screen)
        assert not len(bench.session.history)
        await bench.press("ctrl+s", "enter")
        await until(bench, lambda: bench.app.screen is bench.bench)
        assert len(bench.session.history) == 1

    on_model(tmp_path, flow)


def test_tab_chooses_from_what_the_model_has(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        screen = await open_form(bench, "add-output")
        await bench.press("tab")
        assert isinstance(bench.app.screen, PickerScreen)
        assert "Mul" in bench.text
        await bench.type("d")
        assert "tensor" in bench.text
        await looked(bench, screen)
        await bench.press("enter")
        assert bench.session.history.made[0].commands == ("add-output d",)

    on_model(tmp_path, flow)


@pytest.mark.parametrize("size", [*SIZES, (60, 20)])
def test_no_form_is_cut_at_the_bottom(tmp_path: Path, size: tuple[int, int]) -> None:
    async def flow(found: Bench) -> None:
        await open_form(found, "add-node")
        assert "esc" in found.text

    on_model(tmp_path, flow, size)


def test_flags_and_choices_are_chosen_with_keys(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        screen = await open_form(bench, "rename")
        assert "[" not in "".join(line for line in bench.lines if "tensor" in line and "input" in line)
        await bench.press("n")
        assert "[node]" in bench.text
        await bench.press("right", "left", "down")
        await bench.pilot.press(*"sum", "down", *"plus")
        await bench.press("enter")
        assert bench.app.screen is not screen
        assert bench.session.history.made[0].commands == ("rename node sum plus",)

    on_model(tmp_path, flow)


def test_a_form_is_for_all_selected_nodes(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        bench.session.select("@/graph/node/1")
        bench.session.places.toggle("/graph/node/7")
        screen = await open_form(bench, "swap-inputs")
        assert "%" in bench.text
        assert "2 nodes, the first one Add sum" in bench.text
        assert "would change 2 places" in bench.text
        await bench.press("ctrl+s")
        await until(bench, lambda: isinstance(bench.app.screen, ConfirmScreen))
        await bench.press("enter")
        await until(bench, lambda: bench.app.screen is bench.bench)
        assert screen is not None
        [step] = bench.session.history.made
        assert step.commands == ("swap-inputs output:z", "swap-inputs name:sum")

    on_model(tmp_path, flow)
