"""A merge with conflicts side by side: every node of every side has one row, every conflict is in one."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson.merging import conflicted_files
from onnxjson.merging.conflicted_files import ResolutionSession, open_session, save
from onnxjson.merging.merge import merge
from onnxjson.model.addresses import SIDES
from onnxjson.model.conflicts import Conflict
from onnxjson.model.document import Model
from onnxjson.rendering.tables import cells, plain
from onnxjson.storage import files
from onnxjson_tui.rows.merge_panes import MergePanes, MergeRows
from onnxjson_tui.screens.conflicts import ConflictsScreen
from tests.editing.graphs import model_of
from tests.merging.models import BASE, attribute, both, node, without
from tests.merging.test_conflicted_texts import MANY
from tests.merging.triples import triple
from tests.tui.screens import TERMINAL, Shown, shown


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with four conflicts: a weight, metadata, an attribute, and a node that ours removes."""
    place = tmp_path / "m.onnx.json"
    save(MANY.model, MANY.conflicts, place, files.format_for(place))
    return place


def rows_of(model: Model, conflicts: tuple[Conflict, ...], *, folded: bool = False) -> MergeRows:
    resolution = ResolutionSession(Path("m.onnx.json"), model, conflicts, None)
    return MergeRows(MergePanes.of(resolution), resolution, folded=folded)


CONFLICTED = (10, 20, 98, 99, 105, 106, 112, 128, 133, 138, 142, 148)
"""Seeds of merges with conflicts."""


@pytest.mark.parametrize("seed", CONFLICTED)
def test_every_node_of_each_side_has_one_row_and_every_conflict_some(seed: int) -> None:
    merged = merge(*triple(seed))
    assert not merged.is_clean
    rows = rows_of(merged.model, merged.conflicts)
    resolution = ResolutionSession(Path("m.onnx.json"), merged.model, merged.conflicts, None)
    models, _ = resolution.sides()
    assert sorted(rows.order) == [*range(len(resolution.conflicts))]
    assert all(rows.conflict_at(rows.row_of(number)) is not None for number in rows.order)
    for at, side in enumerate(SIDES):
        graph = models[side].graph if side in models else None
        positions = [row.nodes[at] for row in rows.rows if row.nodes and row.graph == 0 and row.nodes[at] >= 0]
        if graph is not None and merged.model.graph is not None:
            assert sorted(positions) == [*range(len(graph.node))]
    for width in (80, 161):
        assert all(cells(plain(rows.line(number, width))) <= width for number in range(len(rows)))
    assert sorted(rows_of(merged.model, merged.conflicts, folded=True).order) == sorted(rows.order)


def test_a_conflict_is_in_the_row_of_its_node(path: Path) -> None:
    rows = rows_of(MANY.model, MANY.conflicts)
    at = {row.nodes: row.places for row in rows.rows if row.nodes and row.graph == 0}
    assert [nodes for nodes, places in at.items() if places] == [(1, 1, 1), (2, -1, 2)]


def test_narrow_columns_have_names_and_no_types() -> None:
    typed = model_of("g (float[2,3] x) => (float[2,3] y) { [attention] y = Relu(x) }")
    merged = merge(typed, both(attribute(0, "alpha", 0.2))(typed), both(attribute(0, "alpha", 0.3))(typed))
    rows = rows_of(merged.model, merged.conflicts)
    narrow, wide = [plain(rows.line(rows.row_of(0), width)) for width in (80, 160)]
    assert narrow.count("attention") == wide.count("attention") == wide.count("f32[2,3]") == 3
    assert "f32" not in narrow


def test_models_with_a_slot_that_was_edited_since_the_merge_are_shown() -> None:
    edited = tuple([replace(each, ours=each.theirs) for each in MANY.conflicts])
    rows = rows_of(MANY.model, edited)
    assert sorted(rows.order) == [*range(len({each.id for each in edited}))]


def test_a_node_that_both_sides_replaced_otherwise_is_in_the_row_of_what_replaces_it() -> None:
    merged = merge(BASE, both(without(5))(BASE), both(node(5, op_type="Relu"))(BASE))
    rows = rows_of(merged.model, merged.conflicts)
    row = rows.rows[rows.row_of(0)]
    assert (row.nodes, row.places) == ((5, -1, 5), ((0, 0),))


def test_a_conflict_about_the_whole_model_marks_all_nodes_without_counterpart() -> None:
    other = both(without(5), attribute(1, "alpha", 0.5))(BASE)
    rows = rows_of(BASE, (Conflict("1", "", BASE, BASE, other),))
    assert [row.nodes for row in rows.rows if row.nodes and row.places] == [(5, 5, -1)]
    assert rows.order == [0]


def test_names_from_models_are_made_visible() -> None:
    hostile = both(node(2, name="n\x1b[31m\u202e"))(BASE)
    merged = merge(BASE, both(attribute(1, "alpha", 0.2))(hostile), both(attribute(1, "alpha", 0.3))(hostile))
    rows = rows_of(merged.model, merged.conflicts)
    texts = [plain(rows.line(number, 120)) for number in range(len(rows))]
    assert not any(each in text for text in texts for each in ("\x1b", "\u202e"))


def run(path: Path, keys: list[tuple[list[str], str]], size: tuple[int, int] = (80, 24)) -> ResolutionSession:
    """Presses keys, and after each group of them looks for a text on the screen."""
    resolution = open_session(path)

    async def go() -> None:
        async with shown(ConflictsScreen(resolution, TERMINAL), size) as found:
            for pressed, text in keys:
                await found.press(*pressed)
                assert text in found.text, found.text

    asyncio.run(go())
    return resolution


def test_types_that_no_side_states_are_inferred(path: Path) -> None:
    async def go() -> None:
        async with shown(ConflictsScreen(open_session(path), TERMINAL), (200, 30)) as found:
            await found.press("v")
            for _ in range(500):
                if "f32[" in "\n".join(found.lines):
                    break
                await asyncio.sleep(0.02)
            assert "f32[" in "\n".join(found.lines)

    asyncio.run(go())


def test_sides_are_chosen_beside_each_other(path: Path) -> None:
    def row(found: Shown[ConflictsScreen]) -> int | None:
        screen = found.first
        return screen.conflict_rows.conflict_at(screen.rows.cursor)

    resolution = open_session(path)

    async def go() -> None:
        async with shown(ConflictsScreen(resolution, TERMINAL)) as found:
            await found.press("j", "j", "v")
            assert isinstance(found.first.conflict_rows, MergeRows)
            first = row(found)
            assert first == 2
            assert "theirs" in found.lines[0]
            assert "4 of 4 left" in found.lines[0]
            await found.press("t")
            assert resolution.choices == {resolution.conflicts[2].id: "theirs"}
            assert row(found) != first
            await found.press("u")
            assert row(found) == first
            assert not resolution.choices
            await found.press("n")
            later = row(found)
            await found.press("N")
            assert row(found) == first != later
            await found.press("o", "o", "b", "t")
            assert "0 of 4 left" in found.lines[0]
            await found.press("v")
            assert not isinstance(found.first.conflict_rows, MergeRows)
            await found.press("w", "q")

    asyncio.run(go())
    assert resolution.exit_code == 0


def test_two_conflicts_of_one_node_are_chosen_one_after_the_other(tmp_path: Path) -> None:
    place = tmp_path / "m.onnx.json"
    sides = [both(attribute(1, "alpha", value), node(1, doc_string=str(value)))(BASE) for value in (0.2, 0.3)]
    merged = merge(BASE, *sides)
    assert len(merged.conflicts) == 2
    save(merged.model, merged.conflicts, place, "json")
    resolution = run(place, [(["v", "o"], "1 of 2 left"), (["t"], "0 of 2 left")])
    assert sorted(resolution.choices.values()) == ["ours", "theirs"]


def test_equal_rows_are_folded(tmp_path: Path) -> None:
    assert BASE.graph is not None
    nodes = tuple(replace(BASE.graph.node[0], input=("x", "w"), output=(f"m{number}",)) for number in range(30))
    long = replace(BASE, graph=replace(BASE.graph, node=(*BASE.graph.node, *nodes)))
    merged = merge(long, both(attribute(1, "alpha", 0.2))(long), both(attribute(1, "alpha", 0.3))(long))
    place = tmp_path / "m.onnx.json"
    save(merged.model, merged.conflicts, place, "json")
    run(
        place,
        [(["z", "R"], "v shows the models"), (["v"], "equal rows"), (["z", "R"], "m5"), (["z", "M"], "equal rows")],
    )


def test_a_choice_that_is_made_while_the_file_is_saved_is_not_taken_for_saved(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(*given: Any, **more: Any) -> None:
        time.sleep(0.3)
        save(*given, **more)

    monkeypatch.setattr(conflicted_files, "save", slowly)
    resolution = open_session(path)

    async def go() -> None:
        async with shown(ConflictsScreen(resolution, TERMINAL)) as found:
            await found.press("o", "o", "o", "o", "w", "u", "b")
            assert " *" in found.lines[0]

    asyncio.run(go())
    assert resolution.is_changed
    assert onnxjson.load(path) != resolution.model
