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
    async def flow(bench: Bench) -> None:
        bar = bench.bench.query_one("#following", Bar)
        await bench.press("g")
        assert not bar.visible
        await bench.pilot.pause(EXPLAINS + 0.1)
        assert bar.visible
        assert "d  To what defines an input" in bench.text
        await bench.press("escape")
        assert not bar.visible

    run_small(saved(tmp_path / "m.onnx"), flow)


@pytest.mark.parametrize("typed", ["f op:Nothing", ": nonsense enter", "/ nothing"])
def test_what_was_said_about_a_text_goes_with_it(tmp_path: Path, typed: str) -> None:
    async def flow(bench: Bench) -> None:
        key, text, *more = typed.split(" ")
        await bench.press(key, *keys(text), *more)
        assert "no " in bench.footer or "unknown" in bench.footer
        await bench.press("escape")
        assert bench.footer.startswith("enter open"), bench.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_a_few_choices_are_a_menu_for_digits_and_vim_hands(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("i")
        screen = bench.app.screen
        assert isinstance(screen, PickerScreen)
        assert screen.query_one(LineList).size.height == 5
        assert not screen.query_one(Input).display
        await bench.press("j", "j", "k")
        assert screen.query_one(LineList).cursor == 1
        await bench.press("1")
        assert bench.app.screen is not screen
        assert "set the batch size" in shown(bench)[0]
        await bench.press("x", "slash", *"dim")
        assert shown(bench) == ["set the size of a dimension"]
        await bench.press("escape", "slash", *"out")
        assert [each.split()[0] for each in shown(bench)] == ["out", "add"]
        await bench.press("escape")
        assert bench.app.screen is bench.bench

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_help_is_searched_and_escape_ends_the_search_first(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("?", "slash", *"undo")
        assert "undo a step" in bench.text
        assert "search the nodes" not in bench.text
        assert "Editing" in bench.text
        await bench.press("escape")
        assert isinstance(bench.app.screen, TextScreen)
        assert "search the nodes" in bench.text
        await bench.press("escape")
        shown: object = bench.app.screen
        assert shown is bench.bench

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
    async def flow(bench: Bench) -> None:
        await bench.press("ctrl+p", *"histogram")
        assert shown(bench)[0].startswith("Values of a tensor")
        await bench.press("escape", "ctrl+p", *"optimize")
        assert shown(bench)[0].startswith("Run a pass")
        await bench.press("escape", "i", "escape", "ctrl+p")
        assert shown(bench)[0].startswith("Inputs and outputs")
        assert shown(bench).index("Next row") > 30

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_the_footer_is_clicked_and_shows_the_keys_of_an_open_prompt(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        footer = bench.lines[-1]
        await bench.pilot.click("#footer", offset=(footer.index("filter"), 0))
        await bench.settle()
        assert bench.bench.prompt.is_asking
        assert bench.lines[-1].split() == ["enter", "ok", "tab", "complete", "esc", "cancel"]
        await bench.pilot.click("#footer", offset=(2, 0))
        await bench.press("escape")
        assert "edit" in bench.lines[-1]
        await bench.pilot.click("#footer", offset=(78, 0))
        await bench.settle()
        assert "Keys" in bench.text

    run_small(saved(tmp_path / "m.onnx"), flow)
