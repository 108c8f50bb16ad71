"""What can be done is found: keys that can follow, menus, the search in texts, the palette, the footer."""

from pathlib import Path

import pytest
from textual.widgets import Input

from onnxjson.rendering.tables import Line, Span, plain
from onnxjson_tui.rows.choices import ChoiceRows
from onnxjson_tui.shell.dialogs import PickerScreen, TextScreen, found_lines
from onnxjson_tui.shell.keyed import EXPLAINS
from onnxjson_tui.widgets.lines import Bar, LineList
from tests.tui.benches import Bench, run, run_small
from tests.tui.screenshots import keys
from tests.tui.sessions import saved


def shown(found: Bench) -> list[str]:
    """The labels that a picker lists."""
    rows = found.app.screen.query_one(LineList).rows
    assert isinstance(rows, ChoiceRows)
    return [each.label for each in rows.choices]


def test_keys_that_can_follow_are_listed_for_those_who_wait(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        bar = found.bench.query_one("#following", Bar)
        await found.press("g")
        assert not bar.visible
        await found.pilot.pause(EXPLAINS + 0.1)
        assert bar.visible
        assert "d  To what defines an input" in found.text
        await found.press("escape")
        assert not bar.visible

    run_small(saved(tmp_path / "m.onnx"), flow)


@pytest.mark.parametrize("typed", ["f op:Nothing", ": nonsense enter", "/ nothing"])
def test_what_was_said_about_a_text_goes_with_it(tmp_path: Path, typed: str) -> None:
    async def flow(found: Bench) -> None:
        key, text, *more = typed.split(" ")
        await found.press(key, *keys(text), *more)
        assert "no " in found.footer or "unknown" in found.footer
        await found.press("escape")
        assert found.footer.startswith("enter open"), found.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_a_few_choices_are_a_menu_for_digits_and_vim_hands(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("i")
        screen = found.app.screen
        assert isinstance(screen, PickerScreen)
        assert screen.query_one(LineList).size.height == 5
        assert not screen.query_one(Input).display
        await found.press("j", "j", "k")
        assert screen.query_one(LineList).cursor == 1
        await found.press("1")
        assert found.app.screen is not screen
        assert "set the batch size" in shown(found)[0]
        await found.press("x", "slash", *"dim")
        assert shown(found) == ["set the size of a dimension"]
        await found.press("escape", "slash", *"out")
        assert [each.split()[0] for each in shown(found)] == ["out", "add"]
        await found.press("escape")
        assert found.app.screen is found.bench

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_help_is_searched_and_escape_ends_the_search_first(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("?", "slash", *"undo")
        assert "undo a step" in found.text
        assert "search the nodes" not in found.text
        assert "Editing" in found.text
        await found.press("escape")
        assert isinstance(found.app.screen, TextScreen)
        assert "search the nodes" in found.text
        await found.press("escape")
        shown: object = found.app.screen
        assert shown is found.bench

    run(saved(tmp_path / "m.onnx"), flow, (120, 40))


def test_an_entry_is_found_with_its_heading_and_all_of_its_lines() -> None:
    lines: list[Line] = [
        (Span("Moving", "title"),), (Span("  j             "), Span("Next row")), (), (Span("Finding", "title"),),
        (Span("  /             "), Span("Search")), (Span("                "), Span("in names and outputs")),
        (Span("  n             "), Span("Next match")),
    ]  # fmt: skip
    assert [plain(line).strip()[:8] for line in found_lines(lines, ["outputs"])] == ["Finding", "/       ", "in names"]
    assert [plain(line).split()[0] for line in found_lines(lines, ["next"])] == ["Moving", "j", "Finding", "n"]
    assert found_lines(lines, []) == lines
    assert found_lines(lines, ["nowhere"]) == []


def test_the_palette_knows_other_words_and_what_was_used(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("ctrl+p", *"histogram")
        assert shown(found)[0].startswith("Values of a tensor")
        await found.press("escape", "ctrl+p", *"optimize")
        assert shown(found)[0].startswith("Run a pass")
        await found.press("escape", "i", "escape", "ctrl+p")
        assert shown(found)[0].startswith("Inputs and outputs")
        assert shown(found).index("Next row") > 30

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_the_footer_is_clicked_and_shows_the_keys_of_an_open_prompt(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        footer = found.lines[-1]
        await found.pilot.click("#footer", offset=(footer.index("filter"), 0))
        await found.settle()
        assert found.bench.prompt.is_asking
        assert found.lines[-1].split() == ["enter", "ok", "tab", "complete", "esc", "cancel"]
        await found.pilot.click("#footer", offset=(2, 0))
        await found.press("escape")
        assert "edit" in found.lines[-1]
        await found.pilot.click("#footer", offset=(78, 0))
        await found.settle()
        assert "Keys" in found.text

    run_small(saved(tmp_path / "m.onnx"), flow)
