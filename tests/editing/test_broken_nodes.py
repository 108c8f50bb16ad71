"""An edit that breaks a node is refused, and made with a remark if that is asked for."""

import pytest

from onnxjson.editing import edits
from onnxjson.editing.applying import run
from onnxjson.model.errors import BrokenNodesError
from tests.editing.graphs import model_of

MODEL = """g (float[2,3] x, float[3,2] z) => (float[3,2] y) {
    b = Transpose<perm = [1, 0]>(x)
    y = Add(b, z)
}"""


def test_an_edit_that_breaks_a_node_is_refused_unless_it_is_forced() -> None:
    model = model_of(MODEL)
    edit = edits.SetAttribute(node="op:Transpose", attribute="perm", value=[0, 1])
    with pytest.raises(BrokenNodesError, match="Add"):
        run(model, edit)
    result = run(model, edit, force=True)
    assert result.model.graph is not None
    assert result.model.graph.node[0].attribute[0].ints == (0, 1)
    assert any("Add" in note for outcome in result.outcomes for note in outcome.notes)
