"""The map of a graph: what is folded, what flows between boxes, and its screen as a person walks in it."""

from pathlib import Path

import pytest

import onnxjson
from onnxjson.model.document import Graph, Model, Node, OperatorSetId, Tensor, ValueInfo
from onnxjson.model.index import Index
from onnxjson.model.types import parse_type
from onnxjson.outline.lines import outline_of
from onnxjson_tui.rows.folding import folds_of
from onnxjson_tui.rows.graph_drawing import drawing
from onnxjson_tui.rows.graph_parts import GraphMap, Part
from onnxjson_tui.screens.graph_map import MapScreen
from tests.benchmarks.graphs import transformer
from tests.editing.graphs import EXPORTED, exported, model_of
from tests.tui.benches import Bench, run, run_small
from tests.tui.screens import ASCII
from tests.tui.sessions import saved

MODELS = Path(__file__).parent.parent / "models"


def _map(model: Model) -> GraphMap:
    index = Index(model)
    return GraphMap(index.scopes[0], folds_of(outline_of(model, index), index.scopes[0]))


def _text(found: GraphMap, parts: tuple[Part, ...]) -> str:
    level = found.level(parts)
    return "\n".join(drawing(level.boxes, level.edges).text())


def test_repeated_layers_are_one_box_with_what_flows_in_and_out() -> None:
    graph_map = _map(onnxjson.load(MODELS / "mobile_dynamo.onnx"))
    text = _text(graph_map, graph_map.whole(6))
    assert "[repeat 2" in text
    assert text.lstrip().startswith("(image)\n")
    assert "│ f32[1,3,32,32] 12.3 kB" in text
    assert text.endswith("(linear)")
    # With more room, the largest boxes are open.
    assert len(graph_map.whole(40)) > len(graph_map.whole(6))


def test_boxes_open_down_to_nodes_and_each_node_of_the_first_round_is_in_one() -> None:
    model = onnxjson.load(MODELS / "encoder_ts.onnx")
    graph_map = _map(model)
    layers = next(each for each in graph_map.whole(4) if each.label.startswith("repeat 6"))
    assert layers.size == 582
    pending, nodes = list(graph_map.inside(layers)), list[int]()
    while pending:
        part = pending.pop()
        inner = graph_map.inside(part)
        pending += inner
        nodes += part.nodes if not inner else ()
    assert len(nodes) == len(set(nodes))
    assert all(((model.graph and model.graph.node[place].name) or "").find("layers.0") >= 0 for place in nodes)


def test_nothing_computed_from_constants_alone_is_drawn() -> None:
    found = _map(onnxjson.load(MODELS / "encoder_ts.onnx"))
    assert "Identity" not in _text(found, found.whole())


def test_a_graph_of_constants_alone_is_drawn() -> None:
    nodes = (Node(("w",), ("a",), None, "Relu"), Node((), (), None, None), Node(("a",), ("y",), "s/n", "Relu"))
    graph_map = _map(Model(graph=Graph(nodes[:2], "g", (Tensor((1,), data_type=1, raw_data=bytes(4), name="w"),))))
    assert _text(graph_map, graph_map.whole()).startswith("[")
    graph_map = _map(Model(graph=Graph(nodes, "g", (Tensor((1,), data_type=1, raw_data=bytes(4), name="w"),))))
    assert "Relu" in _text(graph_map, graph_map.whole())


@pytest.mark.parametrize("scoped", [True, False])
def test_a_level_is_never_larger_than_a_drawing(scoped: bool) -> None:
    model = transformer(5_000)
    assert model.graph is not None
    if not scoped:
        nodes = [Node(each.input, each.output, f"n{at}", each.op_type) for at, each in enumerate(model.graph.node)]
        graph = Graph(tuple(nodes), "flat", model.graph.initializer, input=model.graph.input, output=model.graph.output)
        model = Model(ir_version=10, opset_import=model.opset_import, graph=graph)
    graph_map = _map(model)
    parts, levels = graph_map.whole(), 0
    while parts:
        assert 1 <= len(parts) <= 40
        assert len(graph_map.level(parts).boxes) <= 48
        parts, levels = graph_map.inside(max(parts, key=lambda each: each.size)), levels + 1
    assert 2 <= levels <= 5


def test_hostile_names_reach_the_map_only_made_visible() -> None:
    nodes = (
        Node(("x",), ("a\x1b[31m",), "s\x1b]0;x\x07/one", "Relu"),
        Node(("a\x1b[31m",), ("y\u202e",), "s\x1b]0;x\x07/two", "Sqrt"),
    )
    types = (ValueInfo("x", parse_type("float['\x1b',2]")),)
    graph = Graph(nodes, "g", input=types, output=(ValueInfo("y\u202e"),))
    found = _map(Model(ir_version=10, opset_import=(OperatorSetId("", 20),), graph=graph))
    for parts in (found.whole(), found.inside(Part("", (0, 1)))):
        text = _text(found, parts)
        assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_the_map_is_walked_opened_and_left() -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("M")
        assert isinstance(bench.app.screen, MapScreen)
        assert "map of main_graph" in bench.lines[0]
        await bench.press(*"kkkkkkk", "j", "j", "enter")
        assert "> repeat 2" in bench.lines[0]
        await bench.press("j", "enter")
        # A box of one node shows what is around it, and never leaves the map.
        await bench.press(*["enter"] * 6)
        assert isinstance(bench.app.screen, MapScreen)
        assert "around" in bench.lines[0]
        for _ in range(8):
            await bench.press("backspace")
        assert ">" not in bench.lines[0]
        await bench.press(*"jjjjjjj", "k", "g")
        assert not isinstance(bench.app.screen, MapScreen)
        assert bench.bench.here is not None
        await bench.press("M", "question_mark")
        assert "back to the enclosing" in bench.text.lower()
        await bench.press("escape")
        await bench.press("escape")
        assert not isinstance(bench.app.screen, MapScreen)

    run_small(MODELS / "mobile_ts.onnx", flow)


def test_the_bodies_of_a_loop_and_an_if_are_entered_and_left() -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("G", "M")
        for _ in range(3):
            if "main_graph" in bench.lines[0]:
                await bench.press(*"kkk", "j", "enter")
        assert "map of" in bench.lines[0]
        assert "main_graph" not in bench.lines[0]
        await bench.press("backspace")
        assert "map of main_graph" in bench.lines[0]
        assert "Loop" in bench.lines[-2]

    run_small(MODELS / "branches_ts.onnx", flow)


def test_changes_colour_the_map() -> None:
    async def flow(bench: Bench) -> None:
        await bench.press(":")
        await bench.type("set-doc other --node /layers.0/Erf")
        await bench.press("M")
        assert "colour: changes" in bench.lines[0]
        await bench.press("n")
        assert "~1]" in bench.lines[-2]
        bench.session.discard()

    run(MODELS / "encoder_ts.onnx", flow, (80, 24), terminal=ASCII)


COUSINS = """g (float[N,4] x) => (float[N,4] y) {
    a = Relu(x)
    c = Neg(a)
    d = Abs(a)
    e = Exp(a)
    f = Mul(c, d)
    y = Add(f, e)
}"""


def test_around_a_node_is_what_it_depends_on_and_what_depends_on_it() -> None:
    graph_map = _map(model_of(COUSINS))
    assert [each.first for each in graph_map.inside(graph_map.around(2, 1))] == [0, 2, 4]
    assert "f32[N,4]" in _text(graph_map, graph_map.inside(graph_map.around(2, 1)))
    assert [each.first for each in graph_map.inside(graph_map.around(2, 9))] == [0, 2, 4, 5]


def test_many_that_take_a_value_leave_room_for_what_makes_it() -> None:
    takers = "\n".join(f"y{place} = Relu(b)" for place in range(100))
    makers = "\n".join(f"a{place} = Neg(x)" for place in range(50))
    taken = ", ".join(f"a{place}" for place in range(50))
    text = f"g (float[N,4] x) => (float[N,4] y0) {{ {makers}\n b = Concat<axis = 0>({taken})\n {takers} }}"
    found = _map(model_of(text))
    labels = [each.label for each in found.inside(found.around(50, 3))]
    assert (len(labels), "50 Concat" in labels) == (40, True)
    assert sum("Neg" in label for label in labels) == 19
    assert sum("Relu" in label for label in labels) == 20


@pytest.mark.parametrize("name", EXPORTED)
def test_the_surroundings_of_every_tenth_node_are_drawn(name: str) -> None:
    for scope in Index(exported(name)).scopes:
        graph_map = GraphMap(scope)
        for position in range(0, len(scope.graph.node), 10):
            parts = graph_map.inside(graph_map.around(position, 4))
            assert position in [each.first for each in parts]
            assert len(parts) <= 40
            assert _text(graph_map, parts)


def test_the_nodes_around_one_are_on_the_same_map(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        await bench.press("2", "M")
        assert isinstance(bench.app.screen, MapScreen)
        assert "> around 0 Relu" in bench.lines[0]
        assert "[0 Relu]" in bench.lines[-2]
        await bench.press("j", "j", "1", "a")
        assert "> around 2 LeakyRelu" in bench.lines[0]
        assert "[0 Relu]" not in bench.text
        await bench.press("backspace", "backspace")
        assert ">" not in bench.lines[0]
        await bench.press("q")
        assert bench.bench.here is not None
        assert bench.bench.here.position == 0

    run_small(saved(tmp_path / "m.onnx"), flow)
