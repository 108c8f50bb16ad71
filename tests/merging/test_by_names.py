"""Names alone say which node is which only where nothing could have taken a name over."""

import pytest

from onnxjson.diffing.matching.alignment import align_by_names
from onnxjson.merging.merge import merge
from onnxjson.model.document import Model
from tests.editing.graphs import model_of
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
    alignment = align_by_names(BASE, change(BASE))
    assert alignment is not None
    assert all(name == other for pair in alignment.graphs for name, other in pair.values.items())
    assert {pair.base.address for pair in alignment.graphs} >= {"/graph", "/functions/0"}


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


def two_layers(first: str, second: str, rest: str, outputs: str = "p q") -> Model:
    """Two layers of one operator with the names u and v, in any order, and what takes them."""
    types = ", ".join(f"float[2,2] {name}" for name in outputs.split())
    return model_of(
        f"""<ir_version: 10, opset_import: ["" : 20]>
        g (float[2,2] x, float[2,2] z) => ({types})
        {{ {first} = MatMul(x, x) {second} = MatMul(x, z) {rest} }}"""
    )


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (two_layers("u", "v", "p = Abs(u) q = Neg(u)"), two_layers("v", "u", "p = Abs(v) q = Neg(v)")),
        (
            two_layers("u", "v", "p = Abs(u) q = Neg(v) r = Exp(u)", "p q r"),
            two_layers("v", "u", "p = Abs(v) q = Neg(u) r = Exp(v)", "p q r"),
        ),
        (
            two_layers("u", "v", "w = Tanh(u) p = Abs(w) q = Neg(v)"),
            two_layers("v", "u", "w = Tanh(v) p = Abs(w) q = Neg(u)"),
        ),
    ],
)
def test_layers_that_exchanged_their_names_are_followed_to_where_they_are(theirs: Model, expected: Model) -> None:
    base = two_layers("u", "v", "p = Abs(u) q = Neg(v)")
    ours = two_layers("v", "u", "p = Abs(v) q = Neg(u)")
    assert align_by_names(base, ours) is None
    assert merge(base, ours, theirs).model == expected
    assert merge(base, ours, theirs).is_clean


def test_a_layer_that_becomes_the_same_as_another_one_has_kept_its_name() -> None:
    base = two_layers("u", "v", "p = Abs(u) q = Neg(v)")
    nodes = [*base.graph.node] if base.graph is not None else []
    same = node(0, input=nodes[1].input)(base)
    assert align_by_names(base, same) is not None
