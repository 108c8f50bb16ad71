"""Names alone say which node is which only where nothing could have taken a name over."""

import pytest

from onnxjson.document import Model
from onnxjson.merging.by_names import align_by_names
from onnxjson.merging.merge import merge
from tests.edits.graphs import model_of
from tests.merging.models import BASE, Change, attribute, both, metadata, node, renamed, without


def layers(weights: str, names: str) -> Model:
    """A chain of MatMuls, each with a weight of its own; names of values and weights by their letters."""
    constants = ", ".join(f"float[1,1] w{each} = {{{value}}}" for each, value in zip(names, weights, strict=True))
    lines = []
    before = "x"
    for each in names:
        lines.append(f"{each} = MatMul({before}, w{each})")
        before = each
    return model_of(
        f"""<ir_version: 10, opset_import: ["" : 20]>
        g (float[1,1] x) => (float[1,1] {before}) <{constants}> {{ {" ".join(lines)} }}"""
    )


@pytest.mark.parametrize("change", [both(), attribute(1, "alpha", 0.2), metadata("k", "1"), without(1)])
def test_small_edits_need_no_matcher(change: Change) -> None:
    found = align_by_names(BASE, change(BASE))
    assert found is not None
    assert all(name == other for pair in found.graphs for name, other in pair.values.items())
    assert {pair.base.address for pair in found.graphs} >= {"/graph", "/functions/0"}


@pytest.mark.parametrize(
    "change", [renamed("b", "new"), renamed("w", "new"), renamed("x", "new"), node(1, op_type="Elu")]
)
def test_what_may_be_a_rename_is_for_the_matcher(change: Change) -> None:
    assert align_by_names(BASE, change(BASE)) is None


def test_names_that_were_shifted_by_an_insertion_are_not_believed() -> None:
    base, ours = layers("1234", "abcd"), layers("19234", "abcde")
    assert align_by_names(base, ours) is None
    theirs = layers("1238", "abcd")
    merged = merge(base, ours, theirs)
    assert merged.is_clean, merged.conflicts
    assert merged.model.graph is not None
    values = {each.name: each for each in merged.model.graph.initializer}
    weights = [values[each.input[1]].float_data or values[each.input[1]].raw_data for each in merged.model.graph.node]
    expected = layers("19238", "abcde").graph
    assert expected is not None
    assert weights == [each.float_data or each.raw_data for each in expected.initializer]
