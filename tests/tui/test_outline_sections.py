"""The sections of the outline as golden text."""

from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from onnxjson.model.document import Graph, Model, Node, Tensor, ValueInfo
from onnxjson.model.index import Index
from onnxjson.rendering.tables import plain
from onnxjson_tui.rows.outline import Outline
from onnxjson_tui.rows.outline_sections import OutlineLines, Row, row_line
from tests.editing.graphs import model_of

MODEL = """g (float[N,4] x, float[4] w2) => (float[N,4] y)
<float[4] w = {1, 2, 3, 4}, int64[2] shape = {-1, 4}> {
    a = Relu(x)
    b = Add(a, w)
    c = local.Block(b)
    y = Add(a, c)
}
<domain: "local", opset_import: ["" : 20]>
Block (X) => (Y) { Y = LeakyRelu(X) }"""


def _model() -> Model:
    """A model whose nodes stand in scopes."""
    model = model_of(MODEL)
    assert model.graph is not None
    names = ("/a/relu", "/a/add", "/b/own", "/b/add")
    nodes = tuple([replace(node, name=name) for node, name in zip(model.graph.node, names, strict=True)])
    return replace(model, graph=replace(model.graph, node=nodes))


def _sections(model: Model, *opened: str) -> OutlineLines:
    index = Index(model)
    scope = index.scopes[0] if index.scopes else None
    rows = [] if scope is None else Outline(scope.graph.node).rows(opened)
    session: Any = SimpleNamespace(model=model, index=index)
    return OutlineLines(session, scope, opened, known=(frozenset(opened), rows))


def _row(sections: OutlineLines, number: int) -> Row:
    found = sections.row(number)
    assert found is not None
    return found


def _lines(sections: OutlineLines, width: int = 34, *, ascii_only: bool = True) -> list[str]:
    rows = [_row(sections, number) for number in range(len(sections))]
    return [plain(row_line(row, width, ascii_only=ascii_only)).rstrip() for row in rows]


def test_sections_are_closed_at_first_but_for_the_scopes_and_empty_ones_are_not_there() -> None:
    assert _lines(_sections(_model())) == [
        "- scopes                         2",
        "   a                             2",
        "   b                             2",
        "+ operators                      3",
        "+ inputs                         2",
        "+ outputs                        1",
        "+ initializers                   2",
        "+ functions                      1",
    ]


def test_open_sections_show_what_is_in_them() -> None:
    opened = ("\0scopes", "\0operators", "\0inputs", "\0outputs", "\0initializers", "\0functions")
    sections = _sections(_model(), *opened)
    assert _lines(sections) == [
        "+ scopes                         2",
        "- operators                      3",
        "   Add               ######      2",
        "   Relu              ###         1",
        "   local::Block      ###         1",
        "- inputs                         2",
        "   x                  float32[N,4]",
        "   w2                   float32[4]",
        "- outputs                        1",
        "   y                  float32[N,4]",
        "- initializers                   2",
        "   w           float32[4] 16 bytes",
        "   shape         int64[2] 11 bytes",
        "- functions                      1",
        "   local::Block             1 node",
    ]
    assert sections.around(3) == 1
    assert sections.around(1) == 1
    assert _row(sections, 2).operator == ("", "Add")
    assert _row(sections, 11).address == "/graph/initializer/0"
    assert _row(sections, 14).address == "/functions/0"


def test_inputs_of_all_layers_are_one_row_that_opens() -> None:
    names = ["ids", *[f"past.{number}.{kind}" for number in range(6) for kind in ("key", "value")]]
    graph = Graph(input=tuple([ValueInfo(name=name) for name in names]))
    sections = _sections(Model(graph=graph), "\0inputs", "\0inputs past.{0..5}.value")
    assert _lines(sections) == [
        "- inputs                        13",
        "   ids",
        " + past.{0..5}.key        6 inputs",
        " - past.{0..5}.value      6 inputs",
        *[f"   past.{number}.value" for number in range(6)],
    ]
    assert _row(sections, 5).address == "/graph/input/4"
    assert len(_sections(Model(graph=graph))) == 1


def test_bars_are_blocks_where_the_terminal_has_them() -> None:
    lines = _lines(_sections(_model(), "\0scopes", "\0operators"), ascii_only=False)
    assert lines[1:4] == [
        "▾ operators                      3",
        "   Add               ██████      2",
        "   Relu              ███         1",
    ]


def test_a_name_goes_before_the_bytes_of_a_constant() -> None:
    name = "model.layers.0.attention.weight"
    model = Model(graph=Graph(initializer=(Tensor((100, 200), data_type=1, raw_data=bytes(80_000), name=name),)))
    assert _lines(_sections(model, "\0initializers"), 46)[1] == "   model.la…attention.weight  float32[100,200]"
    assert _lines(_sections(model, "\0initializers"), 70)[1] == (
        "   model.layers.0.attention.weight            float32[100,200] 80.0 kB"
    )


def test_graphs_that_are_not_shown_are_listed() -> None:
    model = model_of("""g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = a () => (float[2] t) { t = Relu(x) },
                    else_branch = b () => (float[2] e) { e = Abs(x) }>
    }""")
    sections = _sections(model, "\0graphs")
    lines = _lines(sections, 40)
    assert lines[-3:] == [
        "- graphs                               2",
        "   If 0.then_branch               1 node",
        "   If 0.else_branch               1 node",
    ]
    assert _row(sections, len(sections) - 1).address == "/graph/node/0/attribute/else_branch/g"


def test_rows_of_ten_thousand_constants_are_made_when_they_are_seen() -> None:
    made: list[int] = []

    class Watched(tuple[Tensor, ...]):
        def __getitem__(self, place: object) -> Tensor:  # type: ignore[override]
            assert isinstance(place, int)
            made.append(place)
            return tuple.__getitem__(self, place)

    tensors = Watched([Tensor((1,), data_type=1, raw_data=bytes(4), name=f"w{place}") for place in range(10_000)])
    graph = Graph((Node(("x",), ("y",), None, "Relu"),), initializer=tensors)
    sections = _sections(Model(graph=graph), "\0initializers")
    assert len(sections) > 10_000
    made.clear()
    assert "w9999 " in plain(row_line(_row(sections, len(sections) - 1), 40))
    assert made == [9999]


def test_a_model_without_a_graph_has_an_outline() -> None:
    assert _lines(_sections(Model())) == []
