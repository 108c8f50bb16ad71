"""Every real model can be shown: summary, nodes with their documentation, constants."""

import pytest

from onnxjson.codecs.serde import parse
from onnxjson.model.index import Index
from onnxjson.model.operators import operator_signature
from onnxjson.patterns.selectors import select_nodes, select_tensor
from onnxjson.rendering.node import documentation_fields, node_lines, opset_of, view_node
from onnxjson.rendering.summary import Place, summarise
from onnxjson.rendering.summary_text import summary_lines
from onnxjson.rendering.tables import cells
from onnxjson.rendering.tensor import tensor_lines, view_tensor
from onnxjson.rendering.values import as_json
from tests.corpus.collection import CorpusModel, file_models, node_models

EIGHTHS = 8


def _show(corpus_model: CorpusModel) -> None:
    model = parse(corpus_model.data).model
    index = Index(model)
    summary = summarise(model, index, Place(corpus_model.name, "onnx", len(corpus_model.data)))
    assert as_json(summary).isascii()
    assert all(cells(line) <= 80 and line.isprintable() for line in summary_lines(summary, 80))
    for ref in list(index.nodes())[:5]:
        known = operator_signature(ref.node.domain, ref.node.op_type, opset_of(model, ref))
        view = view_node(model, index, ref, corpus_model.name, None if known is None else documentation_fields(known))
        assert all(line.isprintable() for line in node_lines(view, 80))
        assert as_json(view).isascii()
        assert select_nodes(model, index, f"@{ref.address}") == (ref,)
    for scope in index.scopes:
        for position in list(scope.initializers.values())[:3]:
            ref_to = select_tensor(model, index, f"@{scope.address}/initializer/{position}")
            tensor = view_tensor(index, ref_to, corpus_model.name, None)
            assert tensor.problem is None
            assert all(line.isprintable() for line in tensor_lines(tensor, 80))
            assert as_json(tensor).isascii()


def test_every_model_file_that_onnx_ships_is_shown() -> None:
    for found in file_models():
        _show(found)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(EIGHTHS))
def test_every_model_of_a_node_test_is_shown(part: int) -> None:
    for found in node_models()[part::EIGHTHS]:
        _show(found)
