"""Keys and styles of screens: one reader for each kind of screen, one style sheet."""

import importlib
from pathlib import Path
from typing import Any

from textual.events import Key
from textual.screen import Screen

import onnxjson_tui
from onnxjson.rendering.tables import plain
from onnxjson_tui.screens import comparison, conflicts
from onnxjson_tui.shell.dialogs import TextScreen, pressed_key
from onnxjson_tui.widgets.lines import LineList
from onnxjson_tui.workbench.app import ACTIONS
from tests.tui.benches import Bench, run_small
from tests.tui.sessions import saved

FOLDER = Path(onnxjson_tui.__file__).parent

READERS = {
    "shell/keyed.py",  # tables of full screens and of actions
    "shell/dialogs.py",  # tables of dialogs
    "widgets/fields.py",  # the line to type in, options of a form
}


def _with(text: str) -> set[str]:
    return {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.py") if text in path.read_text(encoding="utf-8")}


def test_keys_are_read_once_for_each_kind_of_screen() -> None:
    assert _with("def on_key(") == READERS


def test_styles_are_in_the_sheet_of_the_program() -> None:
    assert _with("CSS = ") == set()
    assert (FOLDER / "workbench" / "app.tcss").is_file()


def test_every_key_of_a_table_names_a_method_of_its_screen() -> None:
    for screen in (comparison.ComparisonScreen, conflicts.ConflictsScreen):
        assert screen.KEYS
        for key in screen.KEYS:
            assert not key.id.startswith("_") or callable(getattr(screen, key.id)), key


def _screens(kind: type[Any]) -> set[str]:
    kinds: list[type[Any]] = kind.__subclasses__()
    inner = {each for sub in kinds for each in _screens(sub)}
    return inner | ({kind.__name__} if kind.__module__.startswith("onnxjson_tui") else set())


def test_there_are_sixty_actions_and_twelve_screens() -> None:
    bases = {"AnsweringScreen", "Dialog", "KeyedScreen", "GraphScreen", "RowsScreen"}
    for path in FOLDER.glob("screens/*.py"):
        importlib.import_module(f"onnxjson_tui.screens.{path.stem}")
    assert len(_screens(Screen) - bases) <= 12, _screens(Screen) - bases
    assert len(ACTIONS) <= 60


def test_the_list_of_keys_has_two_pages_and_begins_with_what_is_peculiar(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("question_mark")
        assert isinstance(found.app.screen, TextScreen)
        lines = found.app.screen.query_one(LineList)
        assert len(lines.rows) <= 2 * lines.page - 1  # the last line of a page stays on the next one
        assert "The model is on one page" in found.lines[2]
        last = plain(lines.rows.line(len(lines.rows) - 1, 76)).strip()
        assert last not in found.text
        await found.press("space")
        assert last in found.text

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_a_key_is_its_character_or_its_name() -> None:
    assert [pressed_key(Key(key, character)) for key, character in PRESSED] == ["G", "space", "ctrl+s", "pagedown"]


PRESSED = (("upper_g", "G"), ("space", " "), ("ctrl+s", "\x13"), ("pagedown", None))
