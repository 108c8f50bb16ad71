"""Searching and filtering, as a person does it."""

from pathlib import Path

import onnx
from onnx import parser

from onnxjson.model.document import Model
from onnxjson.rendering.tables import plain
from onnxjson_tui.screens.form import FormScreen
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run_small
from tests.tui.sessions import saved
from tests.tui.test_form_screen import until


def position(found: Bench) -> int:
    here = found.bench.here
    assert here is not None
    return here.position


def test_search_goes_to_the_match_while_it_is_typed_and_back_on_escape(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("j", "/", "l", "e", "a")
        assert position(found) == 2
        assert "match 1 of 1" in found.text
        await found.press("escape")
        assert position(found) == 1

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_next_and_previous_match_count_and_say_where_they_wrap(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("add")
        assert position(found) == 1
        assert "add: match 1 of 2" in found.footer
        await found.press("n")
        assert position(found) == 3
        await found.press("n")
        assert position(found) == 1
        assert "continued from the top" in found.footer
        await found.press("N")
        assert position(found) == 3
        assert "continued from the end" in found.footer
        await found.press("2", "n")
        assert position(found) == 3

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_capitals_count_for_who_types_some(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("ADD")
        assert "no node matches ADD" in found.footer
        assert position(found) == 0

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_search_between_slashes_is_a_regular_expression(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("/^add.*y$/")
        assert position(found) == 3
        await found.press("/")
        await found.type("/(/")
        assert "unterminated subpattern (character 0)" in found.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_filter_follows_what_is_typed_and_says_what_is_near(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("f", *"op:Ad")
        assert 'did you mean "Add"' in found.text
        assert len(found.bench.nodes.rows) == 0
        await found.press("d")
        assert len(found.bench.nodes.rows) == 2
        await found.press("escape")
        assert len(found.bench.nodes.rows) == 4
        await found.press("f")
        await found.type("op:Add")
        assert "2 nodes of filter op:Add" in found.lines[1]
        assert "LeakyRelu" not in plain(found.bench.nodes.rows.line(0, 60))
        await found.press("escape")
        assert found.bench.filter == ""
        assert len(found.bench.nodes.rows) == 4

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_filter_that_finds_nothing_is_asked_again_with_what_was_typed(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("f")
        await found.type("op:Cov")
        assert found.bench.prompt.is_asking
        assert found.bench.prompt.input.value == "op:Cov"
        assert "no node has op:Cov" in found.text
        assert len(found.bench.nodes.rows) == 0
        await found.press("escape")
        assert found.bench.filter == ""
        assert len(found.bench.nodes.rows) == 4
        await found.press("f", *"Relu", "backspace", "backspace", "backspace", "backspace", *"op:", "escape")
        assert found.bench.filter == ""

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_search_looks_only_at_what_the_filter_leaves(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("f")
        await found.type("op:Add")
        await found.press("/")
        await found.type("relu")
        assert "no listed node matches relu" in found.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_tab_completes_a_filter(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("f", *"op:le", "tab")
        assert found.bench.prompt.input.value == "op:LeakyRelu"

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_filter_by_a_pattern_and_by_what_is_like_a_node(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("f")
        await found.type("LeakyRelu(Add($x, ...))")
        assert found.bench.filter == "match:'LeakyRelu(Add($x, ...))'"
        assert len(found.bench.nodes.rows) == 1
        await found.press("escape", "g", "f")
        assert found.bench.prompt.input.value.startswith("match:'LeakyRelu($a)'")
        await found.press("enter")
        assert "LeakyRelu" in plain(found.bench.nodes.rows.line(0, 60))

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_search_takes_a_pattern(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("/")
        await found.type("Add($a, LeakyRelu)")
        assert position(found) == 3
        assert "match 1 of 1" in found.footer
        await found.press("/")
        await found.type("Add($a, ")
        assert "no node matches Add($a, ; pattern:1:9: expected" in found.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_accepted_matches_are_replaced(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("f")
        await found.type("Add($a, $b)")
        assert len(found.bench.nodes.rows) == 2
        await found.press("v", ":")
        await found.type("edit-form replace-pattern")
        await until(found, lambda: isinstance(found.app.screen, FormScreen))
        screen = found.app.screen
        assert isinstance(screen, FormScreen)
        assert [screen._filling.texts[name] for name in ("pattern", "node")] == ["Add($a, $b)", "%"]
        await found.press("escape", ":")
        await found.type("replace-pattern 'Add($a, $b)' 'Mul($a, $b)' --node %")
        await found.press("y")
        graph = found.session.model.graph
        assert graph is not None
        assert [node.op_type for node in graph.node] == ["Relu", "Mul", "LeakyRelu", "Add"]

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_an_edit_of_one_match_is_made_in_the_others(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("f")
        await found.type("Add($a, $b)")
        await found.press("escape", ":")
        await found.type("replace-node @/graph/node/1 Mul")
        await found.press("g", "a")
        assert "This changes 1 place" in found.text
        await found.press("y")
        graph = found.session.model.graph
        assert graph is not None
        assert [node.op_type for node in graph.node] == ["Relu", "Mul", "LeakyRelu", "Mul"]
        await found.press("g", "a")
        assert "no match was edited" in found.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_constants_of_a_pattern_are_opened_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    text = """<ir_version: 9, opset_import: ["" : 20]> g (float[2,8] x) => (float[2,8] y)
    <float two = {2.0}, float three = {3.0}>
    { a = Softmax<axis=1>(x) b = Mul(a, two) c = Softmax<axis=0>(b) y = Mul(c, three) }"""
    onnx.save(parser.parse_model(text), path)

    async def flow(found: Bench) -> None:
        await found.press("v", "j", "v", "g", "f")
        assert "axis of Softmax = 1" in found.text
        assert "Mul(Softmax<axis=1>($a), 2.0)" in found.text
        await found.press("down", "enter", "enter")
        assert found.bench.prompt.input.value == "match:'Mul(Softmax<axis=$axis>($a), 2.0)'"
        await found.press(
            "escape", "k", "v", "j", "v", "g", "f", "down", "enter", "down", "down", "enter", "enter", "enter"
        )
        assert len(found.bench.nodes.rows) == 2
        assert not found.session.places.selected  # or the edit of a match would change these nodes only

    run_small(path, flow)


def test_search_and_filter_go_to_another_graph_if_only_that_has_matches(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", subgraph_model())

    async def flow(found: Bench) -> None:
        await found.press("/", *"inner")
        assert "enter goes to another graph" in found.footer
        await found.press("enter")
        assert found.session.places.cursor == "/graph/node/1/attribute/then_branch/g/node/0"
        await found.press("ctrl+o")
        await found.press("f")
        await found.type("op:Neg")
        assert found.bench.here is not None
        assert found.bench.here.node.op_type == "Neg"
        assert found.bench.filter == "op:Neg"

    run_small(path, flow)


def test_leaving_a_function_returns_to_the_call_that_was_entered(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        found.bench.nodes.move_to(1)
        await found.press("g", "s")
        assert found.session.places.cursor == "/functions/0/node/0"
        await found.press("-")
        assert found.session.places.cursor == "/graph/node/1"

    run_small(saved(tmp_path / "m.onnx", function_model()), flow)


def subgraph_model() -> Model:
    return model_of(
        """g (bool c, float[2] x) => (float[2] y) {
        a = Relu(x)
        y = If (c) <then_branch = t () => (float[2] t1) { ["inner"] t1 = Neg(a) },
                    else_branch = e () => (float[2] e1) { e1 = Relu(a) }>
        }"""
    )


def function_model() -> Model:
    return model_of(
        """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
        g (float[2] x) => (float[2] y) {
        a = local.twice(x)
        y = local.twice(a)
        }
        <domain: "local", opset_import: ["" : 20]>
        twice (p) => (q) { q = Add(p, p) }"""
    )
