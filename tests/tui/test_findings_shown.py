"""Findings where they are: marks in the list of nodes, the header, axes checked while they are typed."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from onnxjson.model.document import Graph, Model
from onnxjson.model.index import Index, NodeRef
from onnxjson.rendering.tables import plain
from onnxjson_tui.names.form_filling import value_mistake
from tests.editing.graphs import model_of
from tests.tui.benches import Bench, run, run_small
from tests.tui.sessions import saved, small


def misspelled() -> Model:
    model = small()
    graph = model.graph
    assert isinstance(graph, Graph)
    nodes = (graph.node[0], replace(graph.node[1], op_type="Ad"), *graph.node[2:])
    return replace(model, graph=replace(graph, node=nodes))


def test_a_node_with_an_error_is_marked_until_it_is_corrected(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        def marks() -> list[str]:
            rows = bench.bench.nodes.rows
            return [plain(rows.line(each, 60))[0] for each in range(len(rows))]

        assert marks() == [" ", "!", " ", " "]
        assert "1 error" in bench.lines[0]
        title, right = bench.bench.title_line()
        assert [span.style for span in right if not isinstance(span, str) and "error" in span.text] == ["bad"]
        assert title
        await bench.press("j", ":")
        await bench.type("replace-node . Add")
        await bench.pilot.pause(0.5)
        await bench.settle()
        assert marks() == [" "] * 4
        assert "error" not in bench.lines[0]

    run_small(saved(tmp_path / "m.onnx", misspelled()), flow)


def test_the_header_has_the_facts_that_fit(tmp_path: Path) -> None:
    async def flow(bench: Bench) -> None:
        assert "opset 20  4 nodes  4 parameters" in bench.lines[0]
        assert "bytes" in bench.lines[0]
        await bench.pilot.resize_terminal(50, 24)
        await bench.settle()
        assert "main graph" in bench.lines[1]
        assert "bytes" not in bench.lines[0]

    run(saved(tmp_path / "m.onnx"), flow, (120, 40))


@pytest.mark.parametrize(
    ("position", "name", "text", "said"),
    [
        (0, "perm", "[0, 2, 3]", "the input has rank 3: give each of 0 to 2 once"),
        (0, "perm", "[0, 1]", "give each of 0 to 2 once"),
        (0, "perm", "[2, 0, 1]", ""),
        (0, "perm", "[0, 1.5, 2]", "[1]: found the number 1.5"),
        (1, "axis", "3", "the input has rank 3, so there is no axis 3"),
        (1, "axis", "-3", ""),
        (2, "axis", "3", ""),
        (2, "axis", "4", "there is no axis 4"),
        (2, "unknown", "3", ""),
        (2, "unknown", "{", "begins like JSON but is not"),
    ],
)
def test_axes_are_checked_against_the_rank_of_the_input(position: int, name: str, text: str, said: str) -> None:
    model = model_of(
        """g (float[2,3,4] x) => (float[4,2,3] p, float[2,3,4] s, float[2,12] f) {
            p = Transpose<perm = [2, 0, 1]>(x)
            s = Softmax<axis = 1>(x)
            f = Flatten<axis = 1>(x)
        }"""
    )
    mistake = value_mistake(NodeRef(Index(model).scopes[0], position), name, text)
    assert said in mistake
    assert bool(said) == bool(mistake)
    assert not mistake.startswith(("value", ":"))
