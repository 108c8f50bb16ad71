"""Keys and styles of screens: one reader for each kind of screen, one style sheet."""

from pathlib import Path

from textual.events import Key

import onnxjson_tui
from onnxjson_tui.screens import comparison, conflicts
from onnxjson_tui.shell.dialogs import pressed_key

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


def test_a_key_is_its_character_or_its_name() -> None:
    assert [pressed_key(Key(key, character)) for key, character in PRESSED] == ["G", "space", "ctrl+s", "pagedown"]


PRESSED = (("upper_g", "G"), ("space", " "), ("ctrl+s", "\x13"), ("pagedown", None))
