"""What a removed region is called."""

import pytest

import onnxjson
from tests.editing.graphs import model_of

TEXT = "g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2,2] b = {5, 6, 7, 8}>"


@pytest.mark.parametrize(("nodes", "kind"), [("MatMul(x, w)", "replaced"), ("MatMul(w, w)", "folded")])
def test_a_constant_in_place_of_what_depends_on_an_input_is_no_folding(nodes: str, kind: str) -> None:
    base, target = model_of(f"{TEXT} {{ m = {nodes} y = Add(m, b) }}"), model_of(f"{TEXT} {{ y = Add(b, b) }}")
    assert [event.kind for event in onnxjson.diff(base, target).events][:1] == [kind]
