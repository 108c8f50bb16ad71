"""The rows of the inspector as text, in the columns of a width."""

import pytest

from onnxjson.model.document import Graph, Model, Node, ValueInfo
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.types import parse_type
from onnxjson.rendering.tables import cells, plain
from onnxjson_tui.rows.inspector import InspectorRows, inspected

NORM = "/layers.10/norm/LayerNormalization"


def _rows(was: Node | None = None) -> InspectorRows:
    kind = parse_type("float[N,8,24]")
    made = f"{NORM}_output_0"
    graph = Graph(
        (
            Node(("x",), (made,), NORM, "LayerNormalization"),
            Node((made,), ("y",), "/layers.10/attention/MatMul", "MatMul"),
            Node((made,), ("z",), "/layers.10/attention/first", "LayerNormalization"),
            Node((made,), ("u",), op_type="Relu"),
        ),
        "g",
        input=(ValueInfo("x", kind),),
        value_info=(ValueInfo(made, kind),),
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
        "op LayerNormalization",
        f"name {NORM}",
        "in[0] input x  float32[N,8,24]",
        f"out[0] {NORM}_output_0  float32[N,8,24]",
        "  -> MatMul in[0] /layers.10/attention/MatMul",
        "  -> LayerNormalization in[0] /layers.10/attention/first",
        "  -> Relu in[0] 3",
    ]


def test_names_keep_their_layer_and_their_end_where_there_is_little_room() -> None:
    assert _lines(31) == [
        "op LayerNormalization",
        "name /layers.10…erNormalization",
        "in[0] x  float32[N,8,24]",
        "out[0] /layers.10…on_output_0 …",
        "  -> in[0] /layers.10…MatMul",
        "  -> LayerNor… in[0] /la…/first",
        "  -> Relu in[0] 3",
    ]


def test_a_type_is_cut_before_the_name_that_it_belongs_to() -> None:
    assert _lines(44)[3] == "out[0] /layers.10…ion_output_0  floa…N,8,24]"


def test_what_was_saved_is_seen_where_there_is_little_room() -> None:
    was = Node(("before",), (f"{NORM}_output_0",), "/layers.10/norm/other", "LayerNormalization")
    found = _lines(31, was)
    assert found[1] == "name /la…ization  (was…m/other)"
    assert found[2] == "in[0] x  float32…  (was before)"


@pytest.mark.parametrize("width", [4, 12, 20, 33, 57, 90])
def test_no_row_is_wider_than_it_may_be(width: int) -> None:
    for line in _lines(width):
        assert cells(line) <= max(width, 12), line
        assert line.isprintable()
