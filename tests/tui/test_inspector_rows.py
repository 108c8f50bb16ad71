"""The rows of the inspector as text, in the columns of a width."""

import pytest

from onnxjson.model.document import Attribute, Graph, Model, Node, ValueInfo
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.types import parse_type
from onnxjson.rendering.tables import cells, plain
from onnxjson_tui.rows.inspector import InspectorRows, inspected
from tests.editing.graphs import model_of

NORM = "/layers.10/norm/LayerNormalization"


def _rows(was: Node | None = None) -> InspectorRows:
    kind = parse_type("float[N,8,24]")
    text = f"{NORM}_output_0"
    graph = Graph(
        (
            Node(("x",), (text,), NORM, "LayerNormalization"),
            Node((text,), ("y",), "/layers.10/attention/MatMul", "MatMul"),
            Node((text,), ("z",), "/layers.10/attention/first", "LayerNormalization"),
            Node((text,), ("u",), op_type="Relu"),
        ),
        "g",
        input=(ValueInfo("x", kind),),
        value_info=(ValueInfo(text, kind),),
        output=(ValueInfo("y"), ValueInfo("z"), ValueInfo("u")),
    )
    model = Model(ir_version=10, graph=graph)
    index = Index(model)
    return inspected(model, index, NodeRef(index.scopes[0], 0), was)


def _lines(width: int, was: Node | None = None) -> list[str]:
    rows = _rows(was)
    return [plain(rows.line(number, width)) for number in range(7)]


def test_where_there_is_room_everything_is_said_in_full() -> None:
    assert _lines(80) == [
        "LayerNormalization",
        f"name {NORM}",
        "in 0 input f32[N,8,24] x",
        f"out 0 f32[N,8,24] {NORM}_output_0",
        " → 1 MatMul             in 0 /layers.10/attention/MatMul",
        " → 2 LayerNormalization in 0 /layers.10/attention/first",
        " → 3 Relu               in 0",
    ]


def test_names_keep_their_layer_and_their_end_where_there_is_little_room() -> None:
    assert _lines(31) == [
        "LayerNormalization",
        "name /layers.10…erNormalization",
        "in 0 input f32[N,8,24] x",
        "out 0 f32[N,8,24] /lay…utput_0",
        " → 1 MatMul             in 0",
        " → 2 LayerNormalization in 0",
        " → 3 Relu               in 0",
    ]


def test_what_was_saved_is_seen_where_there_is_little_room() -> None:
    was = Node(("before",), (f"{NORM}_output_0",), "/layers.10/norm/other", "LayerNormalization")
    found = _lines(31, was)
    assert found[1] == "name /l…tion  (was …norm/other)"
    assert found[2] == "in 0 input x  (was before)"


@pytest.mark.parametrize("last", [99, 100])
def test_a_change_far_in_a_long_list_is_seen(last: int) -> None:
    was, now = [
        Node(op_type="Trees", output=("y",), attribute=(Attribute(name="ids", type=7, ints=(*range(99), end)),))
        for end in (99, last)
    ]
    index = Index(Model(graph=Graph((now,))))
    rows = inspected(index.model, index, NodeRef(index.scopes[0], 0), was)
    shown = [plain(rows.line(number, 900)) for number in range(len(rows))]
    assert ["(was [0, 1, 2" in each for each in shown if each.startswith("ids")] == [last == 100]


def test_an_input_says_first_where_it_comes_from() -> None:
    model = model_of(
        """g (float[4] x) => (float[4] y) <float s = {0.5}, float[100] w = {%s}, int64[2] v = {1, -1}> {
            a = Relu(x)
            y = local.f(a, s, w, v, x)
        }""".replace("%s", ", ".join(["1"] * 100))
    )
    index = Index(model)
    rows = inspected(model, index, NodeRef(index.scopes[0], 1))
    assert [plain(rows.line(number, 40)).rstrip() for number in range(2, 7)] == [
        "in 0 ← 0 Relu                  a",
        "in 1 = 0.5            f32[]    s",
        "in 2 weight 400 bytes f32[100] w",
        "in 3 = [1, -1]        i64[2]   v",
        "in 4 input            f32[4]   x",
    ]


def test_an_input_that_is_computed_from_constants_is_said_to_be_one() -> None:
    model = model_of(
        """g (float[4] x) => (float[4] y) <float s = {0.5}> {
            copy = Identity(s)
            made = Neg(copy)
            y = local.f(copy, made, x)
        }"""
    )
    index = Index(model)
    rows = inspected(model, index, NodeRef(index.scopes[0], 2))
    texts = [plain(rows.line(number, 60)).split() for number in range(2, 5)]
    assert [" ".join(each[:5]) for each in texts] == ["in 0 = 0.5 copy", "in 1 ← 1 Neg,", "in 2 input f32[4] x"]


@pytest.mark.parametrize("width", [4, 12, 20, 33, 57, 90])
def test_no_row_is_wider_than_it_may_be(width: int) -> None:
    for line in _lines(width):
        assert cells(line) <= max(width, 12), line
        assert line.isprintable()


def test_the_names_of_common_attributes_are_whole_on_80_columns() -> None:
    model = model_of(
        """g (float[1,1,8,8] x, float[1,1,3,3] w) => (float y) {
            y = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x, w)
        }"""
    )
    index = Index(model)
    rows = inspected(model, index, NodeRef(index.scopes[0], 0))
    lines = [plain(rows.line(number, 31)) for number in range(len(rows))]
    assert "kernel_shape [3, 3]" in lines
    assert "pads         [1, 1, 1, 1]" in lines
