"""Ranges that do not overlap: what a pass makes of them computes the same."""

import pytest

import onnxjson
from tests.editing.graphs import model_of

RANGES = (
    "float low = {0}, float high = {6}, float lower = {-5}, float upper = {-1}, float other = {7}, float last = {9}"
)


@pytest.mark.parametrize(
    ("nodes", "operators"),
    [
        ("a = Clip(x, low, high) y = Clip(a, other, last)", 2),
        ("a = Clip(x, lower, upper) y = Relu(a)", 2),
        ("a = Clip(x, low, last) y = Clip(a, lower, high)", 1),  # these overlap
    ],
)
def test_onnxscript_joins_clips_only_where_their_ranges_overlap(nodes: str, operators: int) -> None:
    model = model_of(f"g (float[8] x) => (float[8] y) <{RANGES}> {{ {nodes} }}")
    after = onnxjson.optimize(model, "onnxscript").model
    assert len(after.nodes) == operators
    assert onnxjson.verify(model, after).equal
