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
    async def flow(bench: Bench) -> None:
        await bench.press("j", "/", "l", "e", "a")
        assert position(bench) == 2
        assert "match 1 of 1" in bench.text
        await bench.press("escape")
        assert position(bench) == 1

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_next_and_previous_match_count_and_say_where_they_wrap(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("/")
        await bench.type("add")
        assert position(bench) == 1
        assert "add: match 1 of 2" in bench.footer
        await bench.press("n")
        assert position(bench) == 3
        await bench.press("n")
        assert position(bench) == 1
        assert "continued from the top" in bench.footer
        await bench.press("N")
        assert position(bench) == 3
        assert "continued from the end" in bench.footer
        await bench.press("2", "n")
        assert position(bench) == 3

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_capitals_count_for_who_types_some(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("/")
        await bench.type("ADD")
        assert "no node matches ADD" in bench.footer
        assert position(bench) == 0

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_search_between_slashes_is_a_regular_expression(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("/")
        await bench.type("/^add.*y$/")
        assert position(bench) == 3
        await bench.press("/")
        await bench.type("/(/")
        assert "unterminated subpattern (character 0)" in bench.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_filter_follows_what_is_typed_and_says_what_is_near(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("f", *"op:Ad")
        assert 'did you mean "op:Add"' in bench.text
        assert len(bench.bench.nodes.rows) == 0
        await bench.press("d")
        assert len(bench.bench.nodes.rows) == 2
        await bench.press("escape")
        assert len(bench.bench.nodes.rows) == 4
        await bench.press("f")
        await bench.type("op:Add")
        assert "2 nodes of filter op:Add" in bench.lines[1]
        assert "LeakyRelu" not in plain(bench.bench.nodes.rows.line(0, 60))
        await bench.press("escape")
        assert bench.bench.filter == ""
        assert len(bench.bench.nodes.rows) == 4

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_filter_that_finds_nothing_is_asked_again_with_what_was_typed(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("f")
        await bench.type("op:Cov")
        assert bench.bench.prompt.is_asking
        assert bench.bench.prompt.input.value == "op:Cov"
        assert "no node has op:Cov" in bench.text
        assert len(bench.bench.nodes.rows) == 0
        await bench.press("escape")
        assert bench.bench.filter == ""
        assert len(bench.bench.nodes.rows) == 4
        await bench.press("f", *"Relu", "backspace", "backspace", "backspace", "backspace", *"op:", "escape")
        assert bench.bench.filter == ""

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_search_looks_only_at_what_the_filter_leaves(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("f")
        await bench.type("op:Add")
        await bench.press("/")
        await bench.type("relu")
        assert "no listed node matches relu" in bench.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_tab_completes_a_filter(tmp_path: Path) -> None:
    async def flow(found: Bench) -> None:
        await found.press("f", *"op:le", "tab")
        assert found.bench.prompt.input.value == "op:LeakyRelu"

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_filter_by_a_pattern_and_by_what_is_like_a_node(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("f")
        await bench.type("LeakyRelu(Add($x, ...))")
        assert bench.bench.filter == "match:'LeakyRelu(Add($x, ...))'"
        assert len(bench.bench.nodes.rows) == 1
        await bench.press("escape", "g", "f")
        assert bench.bench.prompt.input.value.startswith("match:'LeakyRelu($a)'")
        await bench.press("enter")
        assert "LeakyRelu" in plain(bench.bench.nodes.rows.line(0, 60))

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_search_takes_a_pattern(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("/")
        await bench.type("Add($a, LeakyRelu)")
        assert position(bench) == 3
        assert "match 1 of 1" in bench.footer
        await bench.press("/")
        await bench.type("Add($a, ")
        assert "no node matches Add($a, ; pattern:1:9: expected" in bench.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_accepted_matches_are_replaced(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("f")
        await bench.type("Add($a, $b)")
        assert len(bench.bench.nodes.rows) == 2
        await bench.press("v", ":")
        await bench.type("edit-form replace-pattern")
        await until(bench, lambda: isinstance(bench.app.screen, FormScreen))
        screen = bench.app.screen
        assert isinstance(screen, FormScreen)
        assert [screen._filling.texts[name] for name in ("pattern", "node")] == ["Add($a, $b)", "%"]
        await bench.press("escape", ":")
        await bench.type("replace-pattern 'Add($a, $b)' 'Mul($a, $b)' --node %")
        await bench.press("y")
        graph = bench.session.model.graph
        assert graph is not None
        assert [node.op_type for node in graph.node] == ["Relu", "Mul", "LeakyRelu", "Add"]

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_an_edit_of_one_match_is_made_in_the_others(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("f")
        await bench.type("Add($a, $b)")
        await bench.press("escape", ":")
        await bench.type("replace-node @/graph/node/1 Mul")
        await bench.press("g", "a")
        assert "This changes 1 place" in bench.text
        await bench.press("y")
        graph = bench.session.model.graph
        assert graph is not None
        assert [node.op_type for node in graph.node] == ["Relu", "Mul", "LeakyRelu", "Mul"]
        await bench.press("g", "a")
        assert "no match was edited" in bench.footer

    run_small(saved(tmp_path / "m.onnx"), flow)


def test_constants_of_a_pattern_are_opened_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    text = """<ir_version: 9, opset_import: ["" : 20]> g (float[2,8] x) => (float[2,8] y)
    <float two = {2.0}, float three = {3.0}>
    { a = Softmax<axis=1>(x) b = Mul(a, two) c = Softmax<axis=0>(b) y = Mul(c, three) }"""
    onnx.save(parser.parse_model(text), path)

    async def flow(bench: Bench) -> None:
        await bench.press("v", "j", "v", "g", "f")
        assert "axis of Softmax = 1" in bench.text
        assert "Mul(Softmax<axis=1>($a), 2.0)" in bench.text
        await bench.press("down", "enter", "enter")
        assert bench.bench.prompt.input.value == "match:'Mul(Softmax<axis=$axis>($a), 2.0)'"
        await bench.press(
            "escape", "k", "v", "j", "v", "g", "f", "down", "enter", "down", "down", "enter", "enter", "enter"
        )
        assert len(bench.bench.nodes.rows) == 2
        assert not bench.session.places.selected  # or the edit of a match would change these nodes only

    run_small(path, flow)


def test_search_and_filter_go_to_another_graph_if_only_that_has_matches(tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", subgraph_model())

    async def flow(bench: Bench) -> None:
        await bench.press("/", *"inner")
        assert "enter goes to another graph" in bench.footer
        await bench.press("enter")
        assert bench.session.places.cursor == "/graph/node/1/attribute/then_branch/g/node/0"
        await bench.press("ctrl+o")
        await bench.press("f")
        await bench.type("op:Neg")
        assert bench.bench.here is not None
        assert bench.bench.here.node.op_type == "Neg"
        assert bench.bench.filter == "op:Neg"

    run_small(path, flow)


def test_leaving_a_function_returns_to_the_call_that_was_entered(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        bench.bench.nodes.move_to(1)
        await bench.press("g", "s")
        assert bench.session.places.cursor == "/functions/0/node/0"
        await bench.press("-")
        assert bench.session.places.cursor == "/graph/node/1"

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
