"""The table of actions, and what is made of it: keys, lists of keys, the page of keys, the palette."""

from pathlib import Path

import pytest

from onnxjson.model.index import Index
from onnxjson.rendering.tables import cells, plain
from onnxjson_tui.rows.choices import names_of
from onnxjson_tui.widgets.actions import GROUPS, PANES, Arguments, KeyReader, all_keys, key_lines
from onnxjson_tui.widgets.lines import LineList
from onnxjson_tui.workbench.app import ACTIONS
from tests.tui.benches import Bench, run_small
from tests.tui.sessions import bytes_of, saved, small


def test_there_are_at_most_sixty_actions() -> None:
    assert len(ACTIONS) <= 60


def test_every_action_has_keys_or_a_name_after_the_colon() -> None:
    assert len({each.id for each in ACTIONS}) == len(ACTIONS)
    for action in ACTIONS:
        assert action.keys or action.scope == "everywhere", action.id
        assert action.title, action.id
        assert action.group in GROUPS, action.id
        assert not any(character.isspace() for character in action.id), action.id


@pytest.mark.parametrize("pane", PANES)
def test_every_key_of_a_pane_means_the_action_that_the_list_says(pane: str) -> None:
    reader = KeyReader(ACTIONS)
    own = {keys for each in ACTIONS if each.scope == pane for keys in each.keys}
    for action in ACTIONS:
        if action.scope not in (pane, "everywhere"):
            continue
        for keys in action.keys:
            if action.scope == "everywhere" and keys in own:
                continue  # The pane means another thing by it, and its list says so first.
            reader.forget()
            for key in keys.split(" "):
                heard = reader.feed(key, pane)  # type: ignore[arg-type]
            assert heard.action is action, (pane, keys)


@pytest.mark.parametrize("width", [40, 55, 71, 105])
@pytest.mark.parametrize("pane", PANES)
def test_list_of_keys_fits_its_width_and_has_all(pane: str, width: int) -> None:
    lines = [plain(line) for line in key_lines(ACTIONS, pane, width)]  # type: ignore[arg-type]
    assert all(cells(line) <= width for line in lines)
    for action in ACTIONS:
        if action.scope in (pane, "everywhere"):
            shown = all_keys(action) if action.keys else f":{action.id}"
            assert any(shown in line for line in lines), action.id


def test_help_lists_the_keys_of_the_pane_first(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("tab", "?")
        assert bench.text.index("Every edit is a step") < bench.text.index("search the nodes")
        await bench.press("escape", "f1")
        assert "Every edit is a step" in bench.text
        rows = bench.app.screen.query_one(LineList)
        assert len(rows.rows) <= 2 * rows.page - 1  # the last line of a page is also the first of the next
        await bench.press("escape")
        await bench.press("B")
        assert "B does nothing here" in bench.footer
        await bench.press(":")
        await bench.type("messages")
        assert "B does nothing here" in bench.text

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_message_that_is_too_long_is_marked_and_can_be_read_in_full(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        bench.bench.say(
            "a long message that needs two lines of the screen, since it has more than eighty letters", "bad"
        )
        await bench.pilot.pause()
        assert bench.lines[-2].startswith(" a long message")
        assert bench.footer.endswith("eighty letters")
        bench.bench.say("many words " * 40 + "the end", "bad")
        await bench.pilot.pause()
        assert bench.footer.endswith("end   :messages")
        assert "…" in bench.footer
        await bench.press("j")
        assert "search" in bench.footer
        assert "many" not in bench.text
        await bench.press(":")
        await bench.type("messages")
        assert bench.text.count("many") >= 40

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_every_action_that_changes_something_is_refused_where_that_is_forbidden(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        before = bytes_of(bench.session.model)
        for action in ACTIONS:
            if action.changes:
                bench.bench.do(action, Arguments())
                await bench.pilot.pause()
                assert "read-only" in bench.footer, action.id
        await bench.press(":")
        await bench.type("set-attribute op:LeakyRelu alpha 0.5")
        assert "read-only" in bench.footer
        assert bytes_of(bench.session.model) == before

    run_small(saved(tmp_path / "m.onnx"), flow, readonly=True)


def test_palette_finds_actions_edits_and_names(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("ctrl+p", *"lines nodes")
        assert "Z" in bench.text
        await bench.press("escape", "ctrl+p", *"set-att")
        assert "set-attribute" in bench.text
        await bench.press("escape", "ctrl+p")
        await bench.type("c")
        assert bench.bench.here is not None
        assert bench.bench.here.position == 2
        await bench.press(":")
        await bench.type("set-attribute . alpha 0.5")
        await bench.press("ctrl+p")
        await bench.type("alpha 0.5")
        assert len(bench.session.history) == 1

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_names_are_found_by_parts_the_best_first() -> None:
    names = names_of(Index(small()))
    assert [(each.label, each.detail) for each in names.having(["w"])] == [("w", "constant")]
    assert [each.key for each in names.having(["x"])] == ["go /graph/input/0"]
    assert [each.label for each in names.having(["relu", "node"])] == ["a", "c"]
    assert names.having(["relu", "constant"]) == []
    assert names.having(["a"])[0].label == "a"


def test_a_short_message_leaves_room_for_the_keys_and_a_long_one_takes_it(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        bench.bench.say("done", "good")
        await bench.settle()
        assert bench.footer.startswith("done ")
        assert "e edit" in bench.footer
        bench.bench.say("word " * 40, "good")
        await bench.settle()
        assert "e edit" not in bench.footer

    run_small(saved(tmp_path / "m.onnx"), flow)
