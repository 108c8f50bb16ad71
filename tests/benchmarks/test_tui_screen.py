"""The model whose types flow in the benchmark of the screen is one whose types flow."""

import onnxjson
from onnxjson.editing.attributes import SetAttribute
from onnxjson.editing.type_correction import flow_of_types
from onnxjson.model.index import Index
from tests.benchmarks.tui_screen import chain


def test_the_types_of_the_chain_flow() -> None:
    model = chain(10)
    assert not list(onnxjson.check(model))
    edit = SetAttribute(node="@/graph/node/0", attribute="perm", value=[1, 0, 2])
    assert len(flow_of_types(Index(model), onnxjson.apply(model, [edit]), None).types) == 10
