"""Rows of the node list, as golden text."""

import random
import unicodedata
from itertools import pairwise

import pytest

from onnxjson.model.document import Graph, Model, Node, ValueInfo
from onnxjson.model.index import Index, Scope
from onnxjson.patterns.selectors import select_nodes
from onnxjson.rendering.tables import cells, plain
from onnxjson_tui.rows.beside_nodes import LONGEST, MOST_CONSUMERS, MOST_LANES, Lanes, drawn, hidden
from onnxjson_tui.rows.nodes import NodeRows, filtered, node_spans, shared_prefix, short_type
from onnxjson_tui.shell.terminal import plain as drawn_plain
from tests.editing.graphs import EXPORTED, exported, model_of
from tests.editing.random_models import random_model


def _scope(*nodes: Node, inputs: tuple[str, ...] = ("x",)) -> Scope:
    graph = Graph(nodes, "g", input=tuple([ValueInfo(name) for name in inputs]))
    return Index(Model(graph=graph)).scopes[0]


def _node(operator: str, inputs: str, outputs: str, name: str = "") -> Node:
    return Node(tuple(inputs.split()), tuple(outputs.split()), name or None, operator)


def _lines(scope: Scope, width: int = 60) -> list[str]:
    rows = NodeRows(scope)
    return [_line(rows, each, width).rstrip() for each in range(len(rows))]


def _line(rows: NodeRows, number: int, width: int) -> str:
    columns = rows.columns(width)
    row = rows.row(number, columns.lanes // 2)
    name = rows.short_name(number, columns.name) if columns.name else ""
    return f"{row.position:>{columns.digits}} " + plain(tuple(node_spans(row, name, columns)))


RESIDUAL = (
    _node("Relu", "x", "a"), _node("Neg", "a", "b"), _node("Abs", "b", "c"), _node("Add", "a c", "d"),
    _node("Split", "d", "e f"), _node("Mul", "e f", "g"),
)  # fmt: skip


def test_a_residual_is_drawn_beside_what_it_skips() -> None:
    assert _lines(_scope(*RESIDUAL)) == [
        "0 ●     Relu  a",
        "1 ├─●   Neg   b",
        "2 │ ●   Abs   c",
        "3 ●─┘   Add   d",
        "4 ●─┐   Split e",
        "5 ○─┘   Mul   g",
    ]


def test_lanes_have_characters_for_terminals_without_boxes() -> None:
    lanes = [drawn_plain(line[2:6]).rstrip() for line in _lines(_scope(*RESIDUAL))]
    assert lanes == ["*", "+-*", "| *", "*-'", "*-.", "o-'"]


def test_a_lane_that_only_passes_is_crossed_and_not_joined() -> None:
    scope = _scope(
        _node("Relu", "x", "a"),
        _node("Neg", "x", "b"),
        _node("Abs", "x", "c"),
        _node("Add", "a c", "d"),
        _node("Add", "b d", "e"),
        _node("Relu", "a e", "f"),
    )
    assert [line[2:11].rstrip() for line in _lines(scope)] == [
        "●       R",
        "│ ●     N",
        "│ │ ●   A",
        "├─│─●   A",
        "│ ●─┘   A",
        "○─┘     R",
    ]


def test_what_a_subgraph_takes_is_needed_until_its_node() -> None:
    model = model_of(
        """g (float[4] x, bool c) => (float[4] y) {
            a = Relu(x)
            b = Neg(x)
            d = If(c) <then_branch = t () => (float[4] p) { p = Add(a, a) },
                       else_branch = e () => (float[4] q) { q = Abs(x) }>
            y = Add(b, d)
        }"""
    )
    scope = Index(model).scopes[0]
    assert [line[2:6].rstrip() for line in _lines(scope)] == ["●", "│ ●", "● │", "○─┘"]
    rows = Lanes(scope)
    assert rows.row(2).consumed == (0,)


def test_values_that_many_take_or_that_are_needed_far_below_have_no_lane() -> None:
    many = [_node("Relu", "x", "a"), *[_node("Neg", "a", f"b{each}") for each in range(MOST_CONSUMERS + 1)]]
    assert Lanes(_scope(*many)).width == 0
    assert Lanes(_scope(*many[:-1])).width == 1
    far = [_node("Relu", "x", "a"), *[_node("Neg", "x", f"b{each}") for each in range(LONGEST)], _node("Abs", "a", "c")]
    assert Lanes(_scope(*far)).width == 0
    del far[5]
    lanes = Lanes(_scope(*far))
    assert lanes.width == 1
    assert {lanes.row(each).before for each in range(1, len(far))} == {(0,)}


def test_lanes_beyond_the_most_are_counted() -> None:
    count = MOST_LANES + 5
    nodes = [_node("Relu", "x", f"a{each}") for each in range(count)]
    nodes.append(_node("Concat", " ".join(f"a{each}" for each in range(count)), "y"))
    scope = _scope(*nodes)
    rows = [Lanes(scope).row(each) for each in range(count + 1)]
    assert drawn(rows[MOST_LANES - 1]).endswith("●")
    assert [hidden(rows[each], MOST_LANES) for each in (MOST_LANES - 1, MOST_LANES, count)] == [0, 1, 5]
    listed = NodeRows(scope)
    for width in (40, 80, 120):
        columns = listed.columns(width)
        assert columns.lanes + columns.hidden <= width // 3
        # Operators are below one another, whatever is beside them.
        assert len({_line(listed, each, width).find("Relu") for each in range(count)}) == 1
        assert f"+{count - columns.lanes // 2} " in _line(listed, count, width)


def test_constants_have_no_lane_and_no_circle() -> None:
    scope = _scope(
        _node("Relu", "x", "a"), _node("Constant", "", "k"), _node("Neg", "k", "n"), _node("Add", "a n", "y")
    )
    assert [line[2:5].rstrip() for line in _lines(scope)] == ["●", "│", "│", "○"]


@pytest.mark.parametrize("seed", range(30))
def test_every_lane_begins_at_its_maker_and_ends_at_its_last_taker(seed: int) -> None:
    for scope in Index(random_model(random.Random(seed))).scopes:
        _check_lanes(scope)


@pytest.mark.parametrize("name", EXPORTED)
def test_lanes_of_exported_models_are_whole(name: str) -> None:
    for scope in Index(exported(name)).scopes:
        _check_lanes(scope)


def _check_lanes(scope: Scope) -> None:
    lanes = Lanes(scope)
    rows = [lanes.row(each) for each in range(len(lanes))]
    assert [Lanes(scope).row(each) for each in reversed(range(len(rows)))] == rows[::-1]
    for above, below in pairwise(rows):
        assert above.after == below.before
    for row in rows:
        assert len(set(row.before)) == len(row.before)
        assert len(set(row.after)) == len(row.after)
        assert set(row.consumed) <= set(row.before)
        assert set(row.produced) <= set(row.after)
        assert set(row.before) - set(row.after) <= set(row.consumed)
        assert set(row.after) - set(row.before) <= set(row.produced)
        assert row.column in row.produced or row.column not in row.after
    assert not rows or not rows[0].before
    assert not rows or not rows[-1].after


def test_rows_of_a_filter_are_those_nodes_without_lanes() -> None:
    model = Model(graph=Graph(RESIDUAL))
    index = Index(model)
    scope = index.scopes[0]
    rows = NodeRows(scope, filtered(select_nodes(model, index, "op:A*"), scope))
    assert [rows.row(each).position for each in range(len(rows))] == [2, 3]
    assert [rows.row(each).lanes for each in range(len(rows))] == ["", ""]
    assert [rows.number_of(each) for each in range(6)] == [None, None, 0, 1, None, None]


def test_rows_show_names_and_types_of_exported_models() -> None:
    scope = Index(exported("mobile_ts.onnx")).scopes[0]
    lines = _lines(scope, 80)
    assert all(cells(line) <= 80 for line in lines)
    assert all((scope.graph.node[each].op_type or "") in line for each, line in enumerate(lines))


HOSTILE = (
    "x[/]", "[@click=app.bell]y", "a\x1b]52;c;AAAA\x07b", "two\nlines\ttab", "\u202edesrever\u202c", "n" * 10_000,
    "漢字" * 100, "e" + "\u0301" * 50, "\udcff\udc80", "\x00", "/".join("s" * 1_200), "...///...",
    "layers.99999999999999999999999.x",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_shown_on_one_line_of_the_right_width(name: str) -> None:
    scope = _scope(Node((name,), (name,), name, name, domain=name), Node((name,), ("y",), f"{name}/z", "Relu"))
    rows = NodeRows(scope)
    for line in [_line(rows, each, 60) for each in range(2)]:
        assert cells(line) == 60
        assert not [each for each in line if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@pytest.mark.parametrize("width", [1, 10, 24, 40, 80, 160])
def test_lines_have_the_width_that_is_asked_for(width: int) -> None:
    rows = NodeRows(Index(exported("mobile_ts.onnx")).scopes[0])
    for number in range(0, len(rows), 7):
        assert cells(_line(rows, number, width)) == max(width, 15)


def test_names_in_a_narrow_list_keep_the_number_of_their_layer() -> None:
    name = "/m/encoder/layer.4/self/query/MatMul"
    rows = NodeRows(_scope(Node(("x",), ("y",), name, "MatMul")))
    found = [rows.short_name(0, width) for width in (16, 26, 60)]
    assert found == ["…layer.4…MatMul", "…layer.4/self/query/MatMul", name]


def test_names_of_a_list_leave_out_what_they_share_and_never_look_the_same() -> None:
    names = [f"/m/encoder/layer.{layer}/{part}/Constant" for layer in range(3) for part in ("self", "output", "inner")]
    rows = NodeRows(_scope(*[_node("Constant", "", f"k{place}", name) for place, name in enumerate(names)]))
    assert rows.prefix == "/m/encoder/"
    for width in (12, 16, 20, 30, 60):
        short = [rows.short_name(each, width) for each in range(len(names))]
        assert len(set(short)) == len(names) or width < 16
        assert all(cells(each) <= width for each in short)
    assert [rows.short_name(each, 60) for each in (0, 4)] == ["layer.0/self/Constant", "layer.1/output/Constant"]


def test_a_prefix_is_not_left_out_if_names_would_look_like_others() -> None:
    assert shared_prefix(["node_silu_1", "node_silu_2", "node_silu_3"]) == ""
    assert shared_prefix(["node/a", "node/b", "node/c", "other"]) == "node/"
    assert shared_prefix(["node/a", "node/b", "node/c", "b"]) == ""
    assert shared_prefix(["/m/a/x", "/m/b/x", "/m/c", "/n/d"]) == "/m/"
    assert shared_prefix(["model.layers.0.q", "model.layers.1.k", "model.layers.2.v"]) == "model.layers."
    assert shared_prefix([]) == shared_prefix(["a/b"]) == shared_prefix(["", "", ""]) == ""


@pytest.mark.parametrize(
    ("text", "widths"),
    [
        ("float32[1,16,32]", {None: "f32[1,16,32]", 11: "f32[1,…,32]", 10: "f32 3d", 4: "f32…"}),
        ("bfloat16[N,4,8,16]", {None: "bf16[N,4,8,16]", 13: "bf16[N,…,16]", 7: "bf16 4d"}),
        ("float8e4m3fn[2,2]", {None: "f8e4m3fn[2,2]"}),
        ("bool[]", {None: "bool[]"}),
        ("seq(int64[int8,float32])", {None: "seq(i64[int8,float32])"}),
        ("string[3]", {None: "string[3]"}),
    ],
)
def test_types_are_short_and_lose_their_dtype_last(text: str, widths: dict[int | None, str]) -> None:
    assert {width: short_type(text, width) for width in widths} == widths


def test_a_cyclic_graph_and_undefined_inputs_have_rows() -> None:
    scope = _scope(
        _node("A", "b nowhere", "a"), _node("B", "a", "b"), _node("C", "b b", "b"), Node(), Node(output=("",))
    )
    assert len(_lines(scope)) == 5
    assert all(len(drawn(row)) < 9 for row in map(Lanes(scope).row, range(5)))
