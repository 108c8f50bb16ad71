"""Addresses with a digest: edits of a script never change another element than was meant."""

import pytest
from msgspec.structs import replace

from onnxjson.editing import edits
from onnxjson.editing.declaration import Edit
from onnxjson.model.document import Graph, Model
from onnxjson.model.errors import SelectorError
from onnxjson_tui.session.edited_model import portable
from tests.editing.graphs import model_of

MODEL = """g (float[4] x) => (float[4] y) <float[4] v = {1, 1, 1, 1}, float[4] w = {1, 2, 3, 4}> {
    ["same"] a = Add(x, v)
    ["same"] b = Add(a, w)
    y = Relu(b)
}"""

INNER = """g (bool c, float[2] x) => (float[2] y) {
    y = If (c) <then_branch = t () => (float[2] t1) { t1 = Relu(x) },
                else_branch = e () => (float[2] e1) { e1 = Relu(x) }>
}"""


def turned(model: Model, field: str) -> Model:
    """The model with the first two members of a field of its graph exchanged."""
    graph = model.graph
    assert isinstance(graph, Graph)
    first, second, *others = getattr(graph, field)
    return replace(model, graph=replace(graph, **{field: (second, first, *others)}))


@pytest.mark.parametrize(
    ("edit", "meant"),
    [
        (edits.SetTensor(tensor="@/graph/initializer/1", value=[9, 9, 9, 9]), "w"),
        (edits.SetDoc(text="here", node="@/graph/node/1"), "output:b"),
        (edits.Rewire(node="@/graph/node/1", input=1, tensor="@/graph/initializer/0"), "output:b"),
    ],
)
def test_names_replace_addresses_where_they_are_unique(edit: Edit, meant: str) -> None:
    model = model_of(MODEL)
    portable_script = portable(model, edit)
    assert getattr(portable_script, "tensor", None) == meant or getattr(portable_script, "node", None) == meant
    assert "@" not in repr(portable_script)
    other = turned(model, "initializer")
    assert {each.name: each for each in edits.apply(other, portable_script).graph.initializer} == {  # type: ignore[union-attr]
        each.name: each
        for each in edits.apply(model, edit).graph.initializer  # type: ignore[union-attr]
    }


def test_an_element_without_a_name_of_its_own_has_a_digest_and_another_one_is_refused() -> None:
    nodes = model_of("g (float[4] x) => (float[4] y) { a = Neg(x) b = Abs(x) y = Relu(x) }").graph
    assert isinstance(nodes, Graph)
    bare = (replace(nodes.node[0], output=("",)), replace(nodes.node[1], output=("",)), nodes.node[2])
    model = replace(model_of(MODEL), graph=replace(nodes, node=bare))
    edit = edits.SetDoc(text="here", node="@/graph/node/1")
    portable_script = portable(model, edit)
    assert isinstance(portable_script, edits.SetDoc)
    assert portable_script.node is not None
    assert portable_script.node.startswith("@/graph/node/1#")
    assert portable(model, portable_script) == portable_script
    assert edits.apply(model, portable_script) == edits.apply(model, edit)
    with pytest.raises(SelectorError, match="no longer the element"):
        edits.apply(turned(model, "node"), portable_script)


def test_a_graph_is_that_of_its_node_whatever_is_inside() -> None:
    model = model_of(INNER)
    portable_script = portable(
        model, edits.Rename(kind="tensor", from_="t1", to="t2", within="/graph/node/0/attribute/then_branch/g")
    )
    assert isinstance(portable_script, edits.Rename)
    edited = edits.apply(model, portable_script)
    assert (
        edits.apply(edited, edits.AddNode(op_type="Relu", input=("x",), output=("z",), graph=_graph(portable_script)))
        != edited
    )
    shifted = edits.apply(model, edits.AddNode(op_type="Neg", input=("x",), output=("first",)))
    with pytest.raises(SelectorError):
        edits.apply(shifted, portable_script)


def _graph(edit: edits.Rename) -> str:
    assert edit.within is not None
    assert "#" in edit.within
    return edit.within
