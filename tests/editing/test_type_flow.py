"""Types that an edit would change, and nodes that it would break."""

import pytest

from onnxjson.editing.applying import apply
from onnxjson.editing.attributes import SetAttribute
from onnxjson.editing.type_correction import Flow, flow_of_types
from onnxjson.editing.workspace import Workspace
from onnxjson.model.document import Model
from onnxjson.model.errors import EditError
from onnxjson.model.index import Index
from onnxjson.model.types import format_type
from tests.editing.graphs import model_of

CHAIN = """
<ir_version: 10, opset_import: ["": 20]>
g (float[1,16,64] x, float[64,64] w) => (float[1,16,64] y) {
  a = Transpose<perm=[0,2,1]>(x)
  b = Transpose<perm=[0,2,1]>(a)
  c = MatMul(b, w)
  d = Relu(c)
  y = Softmax(d)
}
"""


def transposed(model: Model, perm: list[int]) -> Model:
    workspace = Workspace(model)
    SetAttribute(node="@/graph/node/0", attribute="perm", value=perm).change(workspace)
    return workspace.model


def test_types_flow_until_a_node_breaks() -> None:
    model = model_of(CHAIN)
    flow = flow_of_types(Index(model), transposed(model, [2, 1, 0]), None)
    found = {place: (old and format_type(old), format_type(new)) for place, (old, new) in flow.types.items()}
    assert found == {
        "/graph/node/0": ("float32[1,64,16]", "float32[64,16,1]"),
        "/graph/node/1": ("float32[1,16,64]", "float32[64,1,16]"),
    }
    assert flow.complaints == {"/graph/node/2": "Incompatible dimensions for matrix multiplication"}


def test_an_edit_without_effect_on_types_has_no_flow() -> None:
    model = model_of(CHAIN)
    workspace = Workspace(model)
    SetAttribute(node="@/graph/node/4", attribute="axis", value=1).change(workspace)
    assert flow_of_types(Index(model), workspace.model, None) == Flow()


def test_a_refused_edit_names_only_the_node_that_breaks() -> None:
    layers = "".join(f"  r{each} = Relu({f'r{each - 1}' if each else 'd'})\n" for each in range(60))
    text = CHAIN.replace("  y = Softmax(d)\n", f"{layers}  y = Softmax(r59)\n")
    with pytest.raises(EditError) as raised:
        apply(model_of(text), SetAttribute(node="@/graph/node/0", attribute="perm", value=[2, 1, 0]))
    assert raised.value.address == "/graph/node/2"
    assert "Relu" not in str(raised.value)
