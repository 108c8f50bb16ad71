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


async def until(found: Bench, is_so: Callable[[], bool]) -> None:
    """Waits until something is so."""
    for _ in range(3000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    pytest.fail(found.text)


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


async def looked(found: Bench, screen: FormScreen) -> None:
    """Waits until the form has been looked at since the last key."""
    await found.pilot.pause(0.22)
    await until(found, lambda: not found.bench.jobs.running)
    await found.pilot.pause()


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

    async def flow(found: Bench) -> None:
        before = bytes_of(found.session.model)
        for edit in wanted:
            await fill(found, edit)
            steps = found.session.history.made
            assert len(steps) == 1, name_of(edit)
            [command] = steps[0].commands
            assert parse_line(command) == replace(edit, expect=None, if_any=False)
            assert steps[0].title == command
            after = bytes_of(found.session.model)
            found.bench.changed(found.session.undo())
            assert bytes_of(found.session.model) == before
            assert found.session.edit(parse_line(command)) is not None
            assert bytes_of(found.session.model) == after
            found.bench.changed(found.session.undo())
            found.bench.say("")

    on_model(tmp_path, flow, (120, 40))


def test_a_form_is_filled_in_by_keys_and_says_what_it_would_change(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("j", "j", "j")
        screen = await open_form(found, "set-attribute")
        assert "output:c" in found.text
        await looked(found, screen)
        assert "alpha" in found.text
        assert "expects a number" in found.text
        assert "nothing would change" in found.text
        await found.press("ctrl+u", "n")
        await looked(found, screen)
        assert "! " in found.text
        await found.press("backspace", "2")
        await looked(found, screen)
        assert "would change 1 place" in found.text
        await found.press("enter")
        assert found.app.screen is found.bench
        assert found.footer.startswith("set-attribute output:c alpha 2  ")

    on_model(tmp_path, flow)


def test_errors_of_an_edit_stay_in_its_form(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        screen = await open_form(found, "remove-attribute")
        for control in screen._controls:
            control.put({"node": "output:a", "attribute": "alpha"}.get(control.name or "", ""))
        await found.press("ctrl+s")
        assert found.app.screen is screen
        assert 'has no attribute "alpha"' in found.text
        assert not len(found.session.history)
        screen._typed["attribute"] = "x" * 20
        await found.press("escape")
        question: object = found.app.screen
        assert isinstance(question, ConfirmScreen)
        await found.press("k")
        assert found.app.screen is screen
        await found.press("escape", "d")
        shown: object = found.app.screen
        assert shown is found.bench

    on_model(tmp_path, flow)


def test_a_form_in_which_nothing_was_typed_closes_without_a_question(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await open_form(found, "rewire")
        await found.press("escape")
        assert found.app.screen is found.bench

    on_model(tmp_path, flow)


def test_what_is_still_needed_is_asked_for(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        screen = await open_form(found, "add-node")
        await found.press("ctrl+s")
        assert found.app.screen is screen
        assert "still needed: op type, output" in found.text
        assert screen.focused is not None
        assert screen.focused.name == "op_type"

    on_model(tmp_path, flow)


def test_an_edit_of_several_places_is_shown_first_and_can_be_dropped(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        screen = await open_form(found, "set-metadata")
        texts = {"key": "k", "value": "v", "node": "!op:Relu"}
        for control in screen._controls:
            control.put(texts.get(control.name or "", ""))
        await found.press("ctrl+s")
        await until(found, lambda: isinstance(found.app.screen, ConfirmScreen))
        assert "metadata" in found.text
        await found.press("escape")
        await until(found, lambda: found.app.screen is screen)
        assert not len(found.session.history)
        await found.press("ctrl+s", "enter")
        await until(found, lambda: found.app.screen is found.bench)
        assert len(found.session.history) == 1

    on_model(tmp_path, flow)


def test_tab_chooses_from_what_the_model_has(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        screen = await open_form(found, "add-output")
        await found.press("tab")
        assert isinstance(found.app.screen, PickerScreen)
        assert "Mul" in found.text
        await found.type("d")
        assert "tensor" in found.text
        await looked(found, screen)
        await found.press("enter")
        assert found.session.history.made[0].commands == ("add-output d",)

    on_model(tmp_path, flow)


@pytest.mark.parametrize("size", [*SIZES, (60, 20)])
def test_no_form_is_cut_at_the_bottom(tmp_path: Path, size: tuple[int, int]) -> None:
    async def flow(found: Bench) -> None:
        await open_form(found, "add-node")
        assert "esc" in found.text

    on_model(tmp_path, flow, size)


def test_flags_and_choices_are_chosen_with_keys(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        screen = await open_form(found, "rename")
        assert "[" not in "".join(line for line in found.lines if "tensor" in line and "input" in line)
        await found.press("n")
        assert "[node]" in found.text
        await found.press("right", "left", "down")
        await found.pilot.press(*"sum", "down", *"plus")
        await found.press("enter")
        assert found.app.screen is not screen
        assert found.session.history.made[0].commands == ("rename node sum plus",)

    on_model(tmp_path, flow)


def test_a_form_is_for_all_selected_nodes(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        found.session.select("@/graph/node/1")
        found.session.places.toggle("/graph/node/7")
        screen = await open_form(found, "swap-inputs")
        assert "%" in found.text
        assert "2 nodes, the first one Add sum" in found.text
        assert "would change 2 places" in found.text
        await found.press("ctrl+s")
        await until(found, lambda: isinstance(found.app.screen, ConfirmScreen))
        await found.press("enter")
        await until(found, lambda: found.app.screen is found.bench)
        assert screen is not None
        [step] = found.session.history.made
        assert step.commands == ("swap-inputs output:z", "swap-inputs name:sum")

    on_model(tmp_path, flow)
