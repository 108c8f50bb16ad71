"""The model on one page: folded lines as rows, unfolded by keys, searches, jumps and edits."""

from pathlib import Path

import pytest

from onnxjson.model.document import Graph, Model
from onnxjson.model.index import Index
from onnxjson.outline.lines import outline_of
from onnxjson.rendering.tables import plain
from onnxjson_tui.rows.folding import Fold, folds_of, rows_of
from onnxjson_tui.screens.graph_map import MapScreen
from tests.editing.graphs import EXPORTED, exported, model_of
from tests.tui.benches import Bench, run, run_small
from tests.tui.sessions import saved

MODELS = Path(__file__).parent.parent / "models"
ENCODER = MODELS / "encoder_ts.onnx"


def _folds(model: Model) -> tuple[Fold, ...]:
    index = Index(model)
    return folds_of(outline_of(model, index), index.scopes[0])


def _rows(found: Bench) -> list[str]:
    rows = found.bench.nodes.rows
    return [plain(rows.line(number, 110)).strip() for number in range(len(rows))]


@pytest.mark.parametrize("name", EXPORTED)
def test_every_node_is_in_one_line_and_unfolding_all_lists_each_once(name: str) -> None:
    model = exported(name)
    folds = _folds(model)
    assert model.graph is not None
    keys = set[str]()
    while pending := {
        row.fold.key for row in rows_of(folds, keys) if row.fold and row.fold.is_foldable and not row.is_open
    }:
        keys ^= pending
    rows = rows_of(folds, keys)
    nodes = [row.position for row in rows if row.position >= 0 and (row.fold is None or len(row.fold.positions) == 1)]
    assert sorted(nodes) == list(range(len(model.graph.node)))


def test_the_first_screen_is_the_model_on_one_page_with_types() -> None:
    async def flow(bench: Bench) -> None:
        rows = _rows(bench)
        assert bench.bench.is_folded
        assert len(rows) < 18
        assert any("repeat 6" in row for row in rows)
        # Types and numbers of nodes are at the end of each line.
        assert all(row.endswith("]") for row in rows)
        assert "rows of" in bench.lines[1]

    run_small(ENCODER, flow)


def test_lines_of_a_large_model_show_the_types_that_it_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxjson_tui.shell.graph_screen.INFERRED", 3)
    monkeypatch.setattr("onnxjson_tui.session.reading.infer", lambda *_: pytest.fail("inferred"))

    async def flow(bench: Bench) -> None:
        assert any("repeat 6" in row for row in _rows(bench))

    run_small(ENCODER, flow)


def test_a_model_of_too_many_nodes_has_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxjson_tui.shell.graph_screen.LARGEST", 3)
    monkeypatch.setattr("onnxjson_tui.shell.graph_screen.BIG", 3)

    async def flow(bench: Bench) -> None:
        assert not any("repeat 6" in row for row in _rows(bench))
        await bench.press("Z", "Z")
        assert "it has more than 3 nodes" in "\n".join(bench.lines)

    run_small(ENCODER, flow)


def test_a_small_graph_is_a_list_of_nodes_until_it_is_folded(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        assert not bench.bench.is_folded
        await bench.press("Z")
        assert bench.bench.is_folded
        await bench.press("Z")
        assert [row.split()[-2] for row in _rows(bench)] == ["a", "b", "c", "y"]

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_z_and_enter_fold_and_unfold_the_line_under_the_cursor() -> None:
    async def flow(bench: Bench) -> None:
        before = _rows(bench)
        await bench.press("j")
        for keys in (("z", "z"), ("enter", "enter"), ("l", "h"), ("enter", "j", "h")):
            await bench.press(keys[0])
            assert len(_rows(bench)) > len(before)
            assert not bench.bench.fold_here or bench.bench.is_open(bench.bench.nodes.cursor)
            await bench.press(*keys[1:])
            assert _rows(bench) == before
            assert bench.bench.nodes.cursor == 2

    run(ENCODER, flow)


def test_jumps_and_searches_unfold_what_they_need_and_esc_folds_it_again() -> None:
    async def flow(bench: Bench) -> None:
        before = _rows(bench)
        await bench.press("/", *"layers.3/Erf")
        assert bench.bench.here is not None
        assert bench.bench.fold_here is None
        assert bench.bench.here.node.name == "/layers.3/Erf"
        await bench.press("escape")
        assert _rows(bench) == before
        await bench.press("1", "2", "0", "G")
        assert bench.bench.here.position == 120
        await bench.press("/")
        await bench.type("layers.4/Erf")
        assert bench.bench.here.node.name == "/layers.4/Erf"
        await bench.press("ctrl+o")
        assert bench.bench.here.position == 120

    run(ENCODER, flow)


def test_an_edit_of_a_folded_line_unfolds_it_first_and_changes_nothing() -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("j", "j", "D")
        assert not bench.session.is_changed
        assert "press the key again" in bench.footer
        assert bench.bench.fold_here is None

    run(ENCODER, flow)


def test_the_lines_follow_an_edit_and_its_undo() -> None:
    async def flow(bench: Bench) -> None:
        before = _rows(bench)
        await bench.press(":")
        await bench.type("delete-node /layers.3/Erf --bypass 0")
        after = _rows(bench)
        assert bench.bench.is_folded
        assert after != before
        assert sum(row.count("repeat") for row in after) > sum(row.count("repeat") for row in before)
        assert any(row.startswith("~") for row in after)
        await bench.press("u")
        assert _rows(bench) == before
        bench.session.discard()

    run(ENCODER, flow)


def test_selecting_a_folded_line_selects_its_nodes() -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("j", "j", "v")
        assert len(bench.session.places.selected) == len(bench.bench.positions_of(bench.bench.nodes.cursor)) > 1
        await bench.press("v")
        assert not bench.session.places.selected

    run(ENCODER, flow)


def test_inferred_types_follow_an_edit_that_states_none(tmp_path: Path) -> None:
    """A TorchScript export states no types; they are inferred, in the list and in the inspector."""
    text = """g (float[2,3] x) => (float[3,2] y) {
        a = Relu(x)
        b = Transpose<perm = [1, 0]>(a)
        y = Neg(b)
    }"""

    async def flow(bench: Bench) -> None:
        assert [row.split()[-1] for row in _rows(bench)] == ["f32[2,3]", "f32[3,2]", "f32[3,2]"]
        assert "(f32[2,3])" in bench.text
        await bench.press(":")
        await bench.type("set-attribute --node output:b perm [0,1]")
        assert [row.split()[-1] for row in _rows(bench)][:2] == ["f32[2,3]", "f32[2,3]"]
        bench.session.discard()

    run(saved(tmp_path / "m.onnx", model_of(text)), flow)


def test_stated_types_have_a_column_at_once(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type("infer-shapes")
        assert all(row.endswith("f32[N,4]") for row in _rows(bench))
        bench.session.discard()

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_the_map_has_the_lines_as_boxes() -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("M")
        assert isinstance(bench.app.screen, MapScreen)
        assert any("Attention" in line for line in bench.lines)

    run(ENCODER, flow)


def test_no_row_of_a_transformer_is_cut_at_120_columns() -> None:
    async def flow(found: Bench) -> None:
        assert not any("…" in line for line in found.lines[2:20])

    run(ENCODER, flow, (120, 35))


def test_a_model_without_nodes_has_an_empty_page(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("Z", "z", "enter", "M")
        assert found.bench.here is None

    run_small(saved(tmp_path / "m.onnx", Model(ir_version=10, graph=Graph(name="g"))), flow)
