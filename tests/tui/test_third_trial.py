"""What hesitations of a new user on models of TorchScript led to, with the keys that were pressed."""

import ast
import re
from pathlib import Path

import onnxjson_tui
from onnxjson import edits
from onnxjson.editing.type_correction import Flow
from onnxjson.rendering.tables import plain
from onnxjson_tui.screens.form import FormScreen
from onnxjson_tui.screens.graph_map import MapScreen
from onnxjson_tui.screens.saving import offer_recovery
from onnxjson_tui.workbench.app import ACTIONS
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run_small
from tests.tui.sessions import opened, saved

MODELS = Path(__file__).parent.parent / "models"
ENCODER = MODELS / "encoder_ts.onnx"


def _position(found: Bench) -> int:
    ref = found.bench.here
    assert ref is not None
    return ref.position


def _copy(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(ENCODER.read_bytes())
    return path


def test_recovered_edits_leave_the_types_that_are_inferred(tmp_path: Path) -> None:
    path = _copy(tmp_path)
    session = opened(path)
    session.edit(edits.SetMetadata(key="k", value="v"))
    session.close()

    async def flow(found: Bench) -> None:
        found.session.find_abandoned()
        found.bench.derived.reading = None
        found.bench.begin(offer_recovery(found.bench))
        await found.settle()
        await found.press("r")
        assert "c shows the changes" in found.footer
        assert any("f32[batch" in line for line in found.lines[2:9])
        await found.press("c")
        assert "1 change" in found.text

    run_small(path, flow)


def test_a_filter_stays_after_one_of_its_nodes_is_deleted_and_after_undo(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("f")
        await found.type("op:Softmax")
        before = len(found.bench.nodes.rows)
        await found.press("j", "D")
        assert len(found.bench.nodes.rows) == before - 1
        assert "filter op:Softmax" in found.lines[1]
        await found.press("u")
        assert len(found.bench.nodes.rows) == before
        assert "Softmax" in found.lines[2 + found.bench.nodes.cursor]
        assert found.bench.nodes.cursor == 1

    run_small(_copy(tmp_path), flow)


def test_undoing_a_step_made_before_a_filter_adds_no_node_to_it(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("Softmax")
        await found.press("a")
        await found.type("relu")
        await found.press("ctrl+s", "f")
        await found.type("op:MatMul")
        before = len(found.bench.nodes.rows)
        await found.press("u")
        assert "filter op:MatMul" in found.lines[1]
        assert len(found.bench.nodes.rows) == before

    run_small(_copy(tmp_path), flow)


def test_an_inserted_node_has_the_cursor_and_is_unfolded(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("Softmax")
        await found.press("a")
        await found.type("relu")
        await found.press("ctrl+s")
        ref = found.bench.here
        assert ref is not None
        assert ref.node.op_type == "Relu"
        assert found.bench.fold_here is None
        assert "+ Relu" in " ".join(plain(found.bench.nodes.rows.line(found.bench.nodes.cursor, 76)).split())
        await found.press("ctrl+o")
        ref = found.bench.here
        assert ref is not None
        assert ref.node.op_type == "Softmax"

    run_small(_copy(tmp_path), flow)


def test_a_node_inserted_before_an_output_of_the_graph_has_the_cursor(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("G", "a")
        await found.type("relu")
        await found.press("ctrl+s")
        ref = found.bench.here
        assert ref is not None
        assert ref.node.op_type == "Relu"

    run_small(saved(tmp_path / "m.onnx", model_of("g (float[4] x) => (float[4] y) { a = Neg(x) y = Exp(a) }")), flow)


def test_constants_do_not_make_the_way_upstream_a_question(tmp_path: Path) -> None:
    text = "g (float[4] x) => (float[4] y) { a = Neg(x) c = Constant<value_float = 2.0>() y = Mul(a, c) }"

    async def flow(found: Bench) -> None:
        await found.press("G", "g", "p")
        assert _position(found) == 0
        await found.press("G", "1", "g", "d")
        assert _position(found) == 1

    run_small(saved(tmp_path / "m.onnx", model_of(text)), flow)


def test_keys_that_follow_are_listed_once(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        found.bench._reader.feed("g", "nodes")
        titles = [action.title for _, action in found.bench._reader.following("nodes")]
        assert len(titles) == len(set(titles)) > 5

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_the_first_row_is_seen_at_first() -> None:
    async def flow(found: Bench) -> None:
        assert len(found.bench.nodes.rows) > found.bench.nodes.page
        assert found.bench.nodes.scroll_offset.y == 0
        assert found.bench.nodes.cursor == 1

    run_small(MODELS / "mobile_ts.onnx", flow, (80, 18))


def test_a_renamed_value_keeps_its_type_in_the_inspector(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("Softmax")
        await found.press("r", "2")
        await found.type("scores")
        await found.press("escape")
        assert any("out 0 (f32[" in line and "scores" in line and "(was" in line for line in found.lines)

    run_small(_copy(tmp_path), flow)


def test_the_value_of_no_constant_is_shown_without_a_question(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("Softmax")
        await found.press("t")
        assert "gn runs the model" in found.text
        assert "Which tensor" not in found.text

    run_small(ENCODER, flow)


def test_down_means_the_value_below_while_statistics_are_seen(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press(":")
        await found.type("@/graph/node/46")
        await found.press("t", "S", "j", "j", "l", "e")
        assert "[2,1] =" in found.text

    run_small(ENCODER, flow)


def test_a_refused_edit_says_that_one_more_enter_makes_it(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("Transpose")
        await found.press("e", "e")
        await found.press("ctrl+u", *"[0,0,1,3]", "enter")
        assert "enter makes the change anyway" in " ".join(found.text.split())
        late = Flow(complaints={"/graph/node/46": "of what was typed before"})
        found.bench.show_flow(late)
        assert "enter makes the change anyway" in " ".join(found.text.split())

    run_small(ENCODER, flow)


def test_a_message_with_long_names_leaves_the_list_its_rows(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("Softmax")
        await found.press("r", "2")
        await found.type("scores")
        assert "scores" in found.lines[-1]
        assert "rename tensor" in found.lines[-1]

    run_small(_copy(tmp_path), flow)


def test_only_the_pane_with_the_focus_has_the_mark(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        assert [line[:1] for line in found.lines].count("▌") == 1
        await found.press("tab")
        assert [line[:1] for line in found.lines].count("▌") == 1
        assert found.lines[1][:1] != "▌"

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_a_line_without_room_is_whole_in_the_inspector() -> None:
    async def flow(found: Bench) -> None:
        text = "h = (1 - Cast(Reshape(mask, [batch,1,1,length]), to=float32)) * -10000"
        assert text not in found.text
        await found.press("j")
        assert any(text in line for line in found.lines[17:])
        await found.press("j")
        assert sum("repeat 6  layers.{i}" in line for line in found.lines) == 1

    run_small(ENCODER, flow)


def test_boxes_of_the_map_are_at_most_half_as_wide_as_the_screen() -> None:
    async def flow(found: Bench) -> None:
        await found.press("M")
        screen = found.app.screen
        assert isinstance(screen, MapScreen)
        assert screen._drawn is not None
        assert all(len(part.label) <= 40 for part in screen._drawn.level.parts)

    run_small(ENCODER, flow)


def test_one_selected_node_says_how_to_select_more(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("g", "g", "V")
        assert "V on another node selects all up to it" in found.footer
        await found.press("G", "V")
        assert "4 nodes selected; edits apply to all of them" in found.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_types_of_a_difference_are_short(tmp_path: Path) -> None:
    base = "g (float[4,16,32,64,128] x) => (float[4,16,32,64,128] y) { y = Exp(x) }"
    saved(tmp_path / "n.onnx", model_of(base.replace("[4,", "[N,")))

    async def flow(found: Bench) -> None:
        await found.press("c")
        await found.type(str(tmp_path / "n.onnx"))
        await found.press("enter")
        assert "x: type: f32[N,16,32,64,128] -> f32[4,16,32,64,128]" in found.text

    run_small(saved(tmp_path / "m.onnx", model_of(base)), flow)


def test_operators_get_the_blanks_of_short_names(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        assert "GlobalAveragePool s" in " ".join(plain(found.bench.nodes.rows.line(0, 50)).split())

    text = 'g (float[1,2,3,4] x) => (float[1,2,1,1] y) { ["s"] n = GlobalAveragePool(x) ["t"] y = Relu(n) }'
    run_small(saved(tmp_path / "m.onnx", model_of(text)), flow)


def test_names_get_the_blanks_of_short_types(tmp_path: Path) -> None:
    long = "/model/encoder/layers.0/post_attention_layernorm/Constant_17"
    text = f'g (float[1,16,32,64] x) => (float[1,16,32,64] y) {{ ["{long}"] n = Shape(x) ["s"] y = Softmax(x) }}'
    model = model_of(text)

    async def flow(found: Bench) -> None:
        row = plain(found.bench.nodes.rows.line(0, 86))
        assert f"Shape {long[:7]}" in " ".join(row.split()) or long in row
        assert len(row) <= 86

    run_small(saved(tmp_path / "m.onnx", model), flow)


def test_messages_name_keys_that_exist() -> None:
    known = {keys.replace(" ", "") for action in ACTIONS for keys in action.keys}
    named = set[str]()
    for path in Path(onnxjson_tui.__file__).parent.rglob("*.py"):
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                named |= set(re.findall(r"\b(?:f\d|g[a-zA-Z])(?= )", part.value))
    named -= {"go"}
    assert {"f5", "gn"} <= named
    assert named <= known, named - known


def test_the_form_of_an_attribute_begins_at_its_name(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        for row, name in ((0, ""), (1, "alpha")):
            await found.press("g", "g", *["j"] * row, "a")
            await found.type("set-attribute")
            screen = found.app.screen
            assert isinstance(screen, FormScreen)
            assert screen.focused is not None
            assert screen.focused.name == "attribute"
            assert screen._texts()["attribute"] == name
            await found.press("escape")

    text = "g (float[4] x) => (float[4] y) { a = Neg(x) y = LeakyRelu<alpha = 0.5>(a) }"
    run_small(saved(tmp_path / "m.onnx", model_of(text)), flow)


def test_the_form_of_a_dimension_has_one_field_for_it(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("a")
        await found.type("set-dim")
        screen = found.app.screen
        assert isinstance(screen, FormScreen)
        assert list(screen._texts()) == ["dim", "size", "follow", "anyway"]
        await found.press("ctrl+s")
        assert "still needed: dim, size" in found.text
        await found.press(*"x:1", "down", *"width", "ctrl+s")
        assert "set-dim x:1 width" in found.footer
        await found.press("i", "j")
        assert "f32[N,width]" in found.text or "float32[N,width]" in found.text

    text = "g (float[N,4] x) => (float[N,4] y) { y = Neg(x) }"
    run_small(saved(tmp_path / "m.onnx", model_of(text)), flow)
