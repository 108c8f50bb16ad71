"""set-name: one node found by a selector, with a name or without."""

import pytest

from onnxjson.editing.edits import SetName, apply, plan, run
from onnxjson.model.document import Model
from onnxjson.model.errors import EditError, SelectorError
from tests.editing.graphs import model_of

TEXT = """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
g (float[4] x, bool c) => (float[4] y) {
    a = Relu(x)
    [second] b = Neg(a)
    [twin] d = Abs(b)
    [twin] e = local.both(d)
    y = If(c) <then_branch = t () => (float[4] p) { p = Exp(e) }, else_branch = f () => (float[4] q) { q = Neg(e) }>
}
<domain: "local", opset_import: ["" : 20]> both (s) => (t) { u = Relu(s) t = Add(u, u) }"""


def names(model: Model) -> list[str | None]:
    assert model.graph is not None
    return [node.name or None for node in model.graph.node]


def test_a_node_without_a_name_gets_one_and_nothing_else_changes() -> None:
    before = model_of(TEXT)
    result = run(before, SetName(node="output:a", name="first"))
    assert names(result.model) == ["first", "second", "twin", "twin", None]
    assert result.matches == 1
    graph, old = result.model.graph, before.graph
    assert graph is not None
    assert old is not None
    assert all(one is other for one, other in zip(graph.node[1:], old.node[1:], strict=True))
    assert plan(before, SetName(node="output:a", name="first")).invert().apply(result.model) == before


def test_one_of_two_nodes_of_one_name_gets_another() -> None:
    assert names(apply(model_of(TEXT), SetName(node="output:e", name="other"))) == [
        None, "second", "twin", "other", None,
    ]  # fmt: skip


def test_an_empty_text_takes_the_name_away() -> None:
    after = apply(model_of(TEXT), SetName(node="second", name=""))
    assert after.graph is not None
    assert after.graph.node[1].name is None


@pytest.mark.parametrize(("node", "name"), [("second", "second"), ("output:a", "")])
def test_a_name_that_is_there_already_is_said(node: str, name: str) -> None:
    before = model_of(TEXT)
    result = run(before, SetName(node=node, name=name))
    assert result.model is before
    assert "already" in result.outcomes[0].notes[0]


def test_nodes_of_subgraphs_and_functions_are_named_and_graphs_have_names_of_their_own() -> None:
    model = apply(
        model_of(TEXT), [SetName(node="output:p", name="second"), SetName(node="@/functions/0/node/0", name="second")]
    )
    assert model.functions[0].node[0].name == "second"
    assert model.graph is not None
    then = model.graph.node[4].attribute[0].g
    assert then is not None
    assert then.node[0].name == "second"


def test_a_name_that_another_node_of_the_graph_has_is_refused() -> None:
    with pytest.raises(EditError, match='names would collide: /graph/node/1 and /graph/node/0 would both be "second"'):
        apply(model_of(TEXT), SetName(node="output:a", name="second"))


def test_one_node_is_wanted() -> None:
    with pytest.raises(SelectorError, match="finds 2 nodes where one node is expected"):
        apply(model_of(TEXT), SetName(node="twin", name="third"))
