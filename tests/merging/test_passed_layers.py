"""A layer that one side inserts is not gone past by what the other side adds, without a word."""

import pytest

from onnxjson.merging.merge import merge
from onnxjson.merging.resolving import resolve
from onnxjson.model.document import Model
from tests.editing.graphs import model_of


def chain(body: str, outputs: str = "y") -> Model:
    """A model of one input x."""
    types = ", ".join(f"float[N,4] {name}" for name in outputs.split())
    return model_of(f"""<ir_version: 10, opset_import: ["" : 20]> g (float[N,4] x) => ({types}) {{ {body} }}""")


BASE = chain("a = Neg(x) b = Relu(a) c = Exp(a) y = Add(b, c)")
LAYER = chain("a0 = Neg(x) a = Tanh(a0) b = Relu(a) c = Exp(a) y = Add(b, c)")


@pytest.mark.parametrize(
    "theirs",
    [
        chain("a = Neg(x) b = Relu(a) c = Exp(a) d = Abs(a) y = Sum(b, c, d)"),
        chain("a = Neg(x) b = Relu(a) c = Exp(a) y = Add(b, a)"),
        chain("a = Neg(x) b = Relu(a) c = Exp(a) y = Add(b, c) q = Abs(a)", "y q"),
        chain("a = Neg(x) b = Relu(a) c = Exp(a) y = Add(b, c)", "y a"),
    ],
)
def test_one_more_taker_of_a_value_is_a_conflict_with_a_layer_behind_it(theirs: Model) -> None:
    merged = merge(BASE, LAYER, theirs)
    assert not merged.is_clean
    assert resolve(merged.model, merged.conflicts, "theirs")[1] == ()
    assert not merge(BASE, theirs, LAYER).is_clean


def test_a_layer_before_only_some_takers_leaves_the_value_to_others() -> None:
    ours = chain("a = Neg(x) t = Tanh(a) b = Relu(t) c = Exp(a) y = Add(b, c)")
    merged = merge(BASE, ours, chain("a = Neg(x) b = Relu(a) c = Exp(a) y = Add(b, c) q = Abs(a)", "y q"))
    assert merged.is_clean


def test_takers_of_other_values_are_no_conflict_with_a_layer() -> None:
    merged = merge(BASE, LAYER, chain("a = Neg(x) b = Relu(a) c = Exp(a) y = Add(b, c) q = Abs(b)", "y q"))
    assert merged.is_clean


def test_a_layer_behind_an_output_is_not_gone_past_either() -> None:
    ours = chain("a = Neg(x) b = Relu(a) c = Exp(a) y0 = Add(b, c) y = Tanh(y0)")
    merged = merge(BASE, ours, chain("a = Neg(x) b = Relu(a) c = Exp(a) y = Add(b, c) q = Abs(y)", "y q"))
    assert not merged.is_clean
    assert resolve(merged.model, merged.conflicts, "theirs")[1] == ()


def test_a_taker_that_both_sides_add_goes_past_the_layer_of_one_of_them() -> None:
    ours = chain("a = Neg(x) t = Tanh(a) b = Relu(t) c = Exp(t) y = Add(b, c) q = Abs(a)", "y q")
    theirs = chain("a = Neg(x) b = Relu(a) c = Exp(a) y = Add(b, c) q = Abs(a)", "y q")
    merged = merge(BASE, ours, theirs)
    assert merged.is_clean
    assert merged.model == ours


def test_layers_that_stand_before_one_taker_each_are_all_in_the_conflict_with_a_new_taker() -> None:
    ours = chain("a = Neg(x) t = Tanh(a) u = Tan(a) b = Relu(t) c = Exp(u) y = Add(b, c)")
    theirs = chain("a = Neg(x) b = Relu(a) c = Exp(a) y = Add(b, c) q = Abs(a)", "y q")
    merged = merge(BASE, ours, theirs)
    assert not merged.is_clean
    assert len({each.id for each in merged.conflicts}) == 1
    assert resolve(merged.model, merged.conflicts, "theirs")[0].graph == theirs.graph
