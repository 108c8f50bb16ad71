"""Edits of nodes that stand inside of each other change all of them."""

import pytest

from onnxjson.editing.edits import (
    Edit,
    RemoveAttribute,
    ReplaceNode,
    Rewire,
    SetAttribute,
    SetDoc,
    SetMetadata,
    SwapInputs,
    apply,
    plan,
    run,
)
from onnxjson.model.document import Model, Node
from onnxjson.model.walking import walk
from tests.editing.graphs import model_of

TEXT = """<ir_version: 10, opset_import: ["" : 20, "my" : 1]>
g (float[4] x, float[4] w) => (float[4] y) {
    y = my.Outer <level = 1, body = t () => (float[4] p) {
        p = my.Outer <level = 1, body = f () => (float[4] q) { q = my.Outer <level = 1> (x, w) }> (x, w)
    }> (x, w)
}"""


def outer(model: Model) -> list[Node]:
    """The nodes that stand inside of each other, the outermost first."""
    return list(walk(model, Node))


@pytest.mark.parametrize(
    ("edit", "read"),
    [
        (SetAttribute(node="op:Outer", attribute="level", value=2), lambda node: node.attribute[0].i == 2),
        (RemoveAttribute(node="op:Outer", attribute="level"), lambda node: not any(each.i for each in node.attribute)),
        (Rewire(node="op:Outer", input=0, tensor="w"), lambda node: node.input == ("w", "w")),
        (SwapInputs(node="op:Outer"), lambda node: node.input == ("w", "x")),
        (ReplaceNode(node="op:Outer", op_type="Other", domain="my"), lambda node: node.op_type == "Other"),
        (SetMetadata(key="k", value="v", node="op:Outer"), lambda node: bool(node.metadata_props)),
        (SetDoc(text="t", node="op:Outer"), lambda node: node.doc_string == "t"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Edit) else "",
)
def test_every_node_that_is_found_is_changed(edit: Edit, read: object) -> None:
    before = model_of(TEXT)
    result = run(before, edit)
    assert result.matches == 3
    assert callable(read)
    assert [bool(read(node)) for node in outer(result.model)] == [True] * 3
    assert plan(before, edit).invert().apply(result.model) == before


def test_a_node_that_loses_its_graph_loses_what_is_in_it() -> None:
    after = apply(model_of(TEXT), ReplaceNode(node="op:Outer", op_type="Other", domain="my", attribute={}))
    assert [node.op_type for node in outer(after)] == ["Other"]


def test_what_is_said_of_dtypes_inside_follows_where_the_node_around_changes_too() -> None:
    before = model_of(
        """<ir_version: 10, opset_import: ["" : 20, "my" : 1]>
        g (float[4] x, float16[4] h) => (float[4] y) {
            y = my.Outer <body = t () => (int64[1] p) <float[4] i> { i = Identity(x) p = Shape(i) }> (x)
        }"""
    )
    after = apply(before, Rewire(node="input:x", input="x", tensor="h"))
    assert [node.input for node in outer(after)] == [("h",), ("h",), ("i",)]
    graph = outer(after)[0].attribute[0].g
    assert graph is not None
    assert graph.value_info == ()
