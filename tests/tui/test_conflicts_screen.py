"""Conflicts as a person settles them on the screen: chosen, taken back, saved, left."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import onnxjson
from onnxjson.merging.conflicted_files import ResolutionSession, open_session, save
from onnxjson.model.conflicts import Conflict
from onnxjson.model.errors import ChangedUnderneathError
from onnxjson.rendering.tables import cells, plain
from onnxjson.storage import files
from onnxjson_tui.rows.side_texts import ConflictRows, place_rows
from onnxjson_tui.screens.conflicts import ConflictsScreen
from tests.merging.models import BASE
from tests.merging.test_conflicted_texts import MANY
from tests.tui.screens import TERMINAL, Shown, shown


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with four conflicts."""
    place = tmp_path / "m.onnx.json"
    save(MANY.model, MANY.conflicts, place, files.format_for(place))
    return place


Flow = Callable[[Shown[ConflictsScreen], ResolutionSession], Awaitable[None]]


def run(path: Path, flow: Flow, size: tuple[int, int] = (80, 24)) -> ResolutionSession:
    resolution = open_session(path)

    async def go() -> None:
        async with shown(ConflictsScreen(resolution, TERMINAL), size) as found:
            await flow(found, resolution)

    asyncio.run(go())
    return resolution


def test_sides_are_chosen_taken_back_and_saved(path: Path) -> None:
    async def flow(shown: Shown[ConflictsScreen], resolution: ResolutionSession) -> None:
        assert "4 conflicts of 4 left" in shown.text
        await shown.press("2", "3")
        assert "2 conflicts of 4 left" in shown.text
        assert [*resolution.choices.values()] == ["ours", "theirs"]
        await shown.press("u")
        assert [*resolution.choices.values()] == ["ours"]
        assert shown.first.rows.cursor == 1
        await shown.press("t", "b", "o")
        assert "no conflict is left" in shown.text
        assert resolution.exit_code == 16
        await shown.press("w")
        assert "saved" in shown.text
        await shown.press("q")
        assert not shown.app.is_running

    resolution = run(path, flow)
    assert resolution.exit_code == 0
    assert onnxjson.load(path) == resolution.model


def test_what_is_left_stays_in_the_file_when_a_person_says_so(path: Path) -> None:
    async def flow(shown: Shown[ConflictsScreen], resolution: ResolutionSession) -> None:
        await shown.press("o", "w")
        assert "3 conflicts left" in shown.text
        await shown.press("w")
        assert not resolution.is_changed
        await shown.press("q")

    resolution = run(path, flow)
    assert resolution.exit_code == 16
    assert len(open_session(path).conflicts) == 3


def test_leaving_asks_and_escape_stays(path: Path) -> None:
    before = path.read_bytes()

    async def flow(shown: Shown[ConflictsScreen], resolution: ResolutionSession) -> None:
        await shown.press("o", "q")
        assert "the choices are not saved" in shown.text
        await shown.press("escape")
        assert shown.app.screen is shown.first
        await shown.press("q", "l")
        assert not shown.app.is_running

    assert run(path, flow).exit_code == 16
    assert path.read_bytes() == before


def test_under_git_the_person_hears_that_git_forgets(path: Path) -> None:
    async def flow(shown: Shown[ConflictsScreen], resolution: ResolutionSession) -> None:
        resolution.is_under_git = True
        await shown.press("o", "q")
        assert "git restores the file" in shown.text
        await shown.press("s")
        assert shown.app.screen is shown.first

    run(path, flow)


def test_a_save_that_fails_is_said_and_nothing_is_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: ResolutionSession) -> None:
        raise ChangedUnderneathError("another program has changed the file")

    monkeypatch.setattr(ResolutionSession, "save", refuse)

    async def flow(shown: Shown[ConflictsScreen], resolution: ResolutionSession) -> None:
        await shown.press("o", "o", "o", "o", "w")
        assert "another program has changed the file" in shown.text
        assert len(resolution.choices) == 4
        assert shown.app.screen is shown.first

    run(path, flow)


def test_a_model_with_errors_is_saved_and_says_so_and_the_program_ends_with_1(path: Path) -> None:
    conflict = Conflict("1", "/graph/node/1/input/0", "a", "a", "nothing")
    save(BASE, (conflict,), path, "json")

    async def flow(shown: Shown[ConflictsScreen], resolution: ResolutionSession) -> None:
        await shown.press("t", "w")
        assert "saved, with 1 error" in shown.text
        assert resolution.exit_code == 1
        await shown.press("u", "o", "w")
        assert "with 1 error" not in shown.text
        assert resolution.exit_code == 0
        await shown.press("u", "t", "w", "q")

    resolution = run(path, flow)
    assert resolution.exit_code == 1
    assert onnxjson.load(path) == resolution.model


def test_the_sides_stand_beside_each_other_where_there_is_room(path: Path) -> None:
    resolution = open_session(path)
    alpha = next(each for each in resolution.conflicts if "alpha" in each.places[0].title)
    assert [plain(line).rstrip() for line in place_rows(alpha, "ours", 80)] == [
        "b base",
        '  {"name": "alpha", "f": 0.1, "type": "FLOAT"}',
        "o ours *",
        '~ {"name": "alpha", "f": 0.2, "type": "FLOAT"}',
        "t theirs",
        '~ {"name": "alpha", "f": 0.3, "type": "FLOAT"}',
    ]
    wide = [plain(line).rstrip() for line in place_rows(alpha, None, 160)]
    assert wide[0].split() == ["b", "base", "|", "o", "ours", "|", "t", "theirs"]
    assert [each.strip() for each in wide[1].split("|")] == [
        f'{mark}{{"name": "alpha", "f": {value}, "type": "FLOAT"}}'
        for mark, value in (("", 0.1), ("~ ", 0.2), ("~ ", 0.3))
    ]


def test_the_list_names_the_operators_and_nodes_of_conflicts(path: Path) -> None:
    rows = ConflictRows(open_session(path))
    titles = [plain(rows.line(number, 100)).partition("open")[2].strip() for number in range(len(rows))]
    assert titles == [
        "@/graph/initializer/0",
        "LeakyRelu.alpha  b @/graph/node/1/attribute/alpha",
        "node  n @/graph/node/2",
        "@/metadata_props/0",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_screen(path: Path, width: int) -> None:
    resolution = open_session(path)
    rows = ConflictRows(resolution)
    lines = [rows.line(number, width) for number in range(len(rows))]
    for each in resolution.conflicts:
        lines += place_rows(each, None, width)
    assert all(cells(plain(line)) <= width for line in lines)


def test_the_screen_works_on_a_small_terminal(path: Path) -> None:
    async def flow(found: Shown[ConflictsScreen], resolution: ResolutionSession) -> None:
        await found.press("tab", "j", "tab", "j", "x", "n", "?")
        assert "Keys" in found.text

    run(path, flow, (60, 20))
