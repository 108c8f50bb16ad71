"""The program without a model, and on files that hold none."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from onnxjson.model.errors import Finding
from onnxjson.rendering.tables import plain
from onnxjson_tui.screens.opening import FindingsScreen, OpeningScreen, offers, text_around
from onnxjson_tui.session.opening import complete_path, recent_files, remember
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.workbench.app import WorkbenchApp, first_screen
from tests.cli.running import run
from tests.tui.screens import TERMINAL, screen_lines
from tests.tui.sessions import saved


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    monkeypatch.chdir(here)
    return here


def text_of(screen: Screen[Any]) -> str:
    return "\n".join(screen_lines(screen))


def drive(
    names: tuple[str, ...], *steps: tuple[str, ...], size: tuple[int, int] = (80, 24)
) -> tuple[WorkbenchApp, list[str]]:
    """Presses keys in the program; what is seen after each step."""
    first, _ = first_screen(names, readonly=False, terminal=TERMINAL)
    app = WorkbenchApp(first, TERMINAL)
    seen: list[str] = []

    async def go() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause(0.3)
            for keys in steps:
                await pilot.press(*keys)
                await pilot.pause(0.3)
                seen.append(text_of(app.screen))
            screens.append(app.screen)

    screens: list[Screen[object]] = []
    asyncio.run(go())
    assert not app.failures
    app.last = screens[-1]  # type: ignore[attr-defined]
    return app, seen


def last(app: WorkbenchApp) -> object:
    return app.last  # type: ignore[attr-defined]


def test_files_that_were_opened_are_offered_newest_first(folder: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        first_screen((str(saved(folder / name)),), readonly=False, terminal=TERMINAL)
    (folder / "a.onnx").unlink()
    assert recent_files() == [folder / "b.onnx"]


def test_a_list_of_files_that_is_damaged_is_no_reason_to_fail(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "state" / "onnxjson").mkdir(parents=True)
    (tmp_path / "state" / "onnxjson" / "recent.json").write_text('["a", 5, "/x\\u0000y"')
    assert recent_files() == []
    remember(saved(folder / "a.onnx"))
    assert recent_files() == [folder / "a.onnx"]


def test_without_a_name_a_file_is_asked_for_found_by_typing_and_opened(folder: Path) -> None:
    saved(folder / "sub" / "m.onnx")
    app, seen = drive((), (), ("s", "tab"), ("down", "enter"))
    assert "Open a model" in seen[0]
    assert "sub/" in seen[0]
    assert "sub/m.onnx" in seen[1]
    assert isinstance(last(app), Workbench)


def test_a_file_that_is_not_there_is_said_and_asked_for_again(folder: Path) -> None:
    app, seen = drive((), ("n", "o", "enter"))
    assert isinstance(last(app), OpeningScreen)
    assert "no does not exist" in seen[0]


def test_escape_leaves(folder: Path) -> None:
    app, _ = drive((), ("escape",))
    assert app.return_value == 0


def test_offers_are_those_of_the_folder_that_is_typed(folder: Path) -> None:
    saved(folder / "sub" / "m.onnx")
    (folder / "sub" / "notes.txt").write_text("x")
    assert [each.key for each in offers("sub/", folder)] == ["sub/../", "sub/m.onnx"]
    assert [each.key for each in offers("sub/M", folder)] == ["sub/m.onnx"]
    assert offers("nowhere/x", folder) == []
    assert complete_path("su") == ["sub/"]
    assert complete_path("sub/n", ()) == []


def test_a_text_with_mistakes_opens_on_them_with_their_places(folder: Path) -> None:
    text = folder / "m.onnx.json"
    run("convert", saved(folder / "m.onnx"), "-o", text)
    text.write_text(text.read_text().replace('"op_type"', '"op_typ"', 2))
    number = next(at for at, line in enumerate(text.read_text().splitlines(), 1) if "op_typ" in line)
    app, seen = drive((str(text),), (), ("j",))
    assert isinstance(last(app), FindingsScreen)
    assert f"{number}:" in seen[0]
    assert 'did you mean "op_type"?' in seen[0]
    assert "E editor" in seen[0]
    text.write_text(text.read_text().replace('"op_typ"', '"op_type"'))
    app, _ = drive((str(text),), ())
    assert isinstance(last(app), Workbench)


def test_a_file_that_was_mended_meanwhile_is_opened_by_reading_it_again(folder: Path) -> None:
    path = saved(folder / "m.onnx")
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    first, _ = first_screen((str(path),), readonly=False, terminal=TERMINAL)
    app = WorkbenchApp(first, TERMINAL)

    async def go() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause(0.2)
            assert "is not a model" in text_of(app.screen)
            path.write_bytes(content)
            await pilot.press("r")
            await pilot.pause(0.5)
            assert isinstance(app.screen, Workbench)

    asyncio.run(go())


def test_a_binary_that_is_cut_off_shows_the_offset_and_the_bytes_there(folder: Path) -> None:
    path = folder / "m.onnx"
    path.write_bytes(saved(path).read_bytes()[:40])
    app, seen = drive((str(path),), ())
    assert isinstance(last(app), FindingsScreen)
    assert "byte" in seen[0]
    assert "E editor" not in seen[0]
    app, _ = drive((str(path),), ("q",))
    assert app.return_value == 65


def test_long_lines_are_cut_around_the_column_with_marks() -> None:
    text = ("x" * 500 + "HERE" + "y" * 500 + "\n").encode()
    finding = Finding(severity="error", code="c", message="m", line=1, column=501)
    shown = [plain(line) for line in text_around(text, finding, 60)]
    assert shown[0].count("…") == 2
    assert shown[0][shown[1].index("^") :].startswith("HERE")
    assert all(len(line) <= 60 for line in shown)
