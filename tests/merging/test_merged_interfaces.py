"""What a model is known by outside, its inputs and outputs, is after a merge what the sides made of it."""

import pytest

import onnxjson
from onnxjson.merging.merge import merge
from onnxjson.model.conflicts import Conflict
from onnxjson.model.document import Model
from tests.editing.graphs import model_of


def branches(outputs: str, body: str) -> Model:
    """A model of one input x."""
    types = ", ".join(f"float[N,4] {name}" for name in outputs.split())
    return model_of(f"""<ir_version: 10, opset_import: ["" : 20]> g (float[N,4] x) => ({types}) {{ {body} }}""")


def outputs(model: Model) -> list[str | None]:
    """The names of the outputs."""
    assert model.graph is not None
    return [each.name for each in model.graph.output]


BASE = branches("a b", "h = Relu(x) a = Abs(h) b = Neg(h)")
LAYER = branches("a b", "h = Relu(x) a = Abs(h) b0 = Neg(h) b = Sigmoid(b0)")


@pytest.mark.parametrize(
    "theirs",
    [
        branches("a", "h = Relu(x) a = Abs(h) b = Neg(h)"),
        branches("a", "h = Relu(x) a = Abs(h)"),
        branches("a h", "h = Relu(x) a = Abs(h) b = Neg(h)"),
    ],
)
def test_an_output_that_one_side_drops_does_not_come_back_with_what_the_other_puts_before_it(theirs: Model) -> None:
    merged = merge(BASE, LAYER, theirs)
    assert any(type(each.base) is onnxjson.ValueInfo and each.theirs is None for each in merged.conflicts)
    assert not merge(BASE, theirs, LAYER).is_clean


def test_a_layer_before_an_output_is_no_other_output() -> None:
    theirs = branches("a b c", "h = Relu(x) a = Abs(h) b = Neg(h) c = Exp(h)")
    merged = merge(BASE, LAYER, theirs)
    assert merged.is_clean
    assert outputs(merged.model) == ["a", "b", "c"]


def test_a_graph_does_not_lose_its_last_output_though_each_side_takes_away_only_one() -> None:
    body = "h = Relu(x) a = Abs(h) b = Neg(h)"
    merged = merge(BASE, branches("a", body), branches("b", body))
    assert len({each.id for each in merged.conflicts}) == 1
    assert [each.at for each in merged.conflicts] == ["/graph/output/0", "/graph/output/0"]
    assert outputs(merged.model) == ["a"]


@pytest.mark.parametrize("theirs", ["q = Neg(x) h = Tanh(x) p = Exp(h)", "q = Neg(x) h = Tanh(x) p = Neg(h)"])
def test_a_change_at_one_output_does_not_come_out_at_another(theirs: str) -> None:
    base = branches("p q", "p = Neg(x) h = Elu(x) q = Neg(h)")
    ours = branches("p q", "p = Abs(x) h = Elu(x) q = Neg(h)")
    merged = merge(base, ours, branches("p q", theirs))
    assert merged.conflicts == (Conflict("1", "", base, ours, branches("p q", theirs)),)


def test_outputs_that_one_side_renames_and_the_other_leaves_alone_are_the_ones_that_were_there() -> None:
    ours = branches("c b", "h = Relu(x) c = Abs(h) b = Neg(h)")
    theirs = branches("a", "h = Relu(x) a = Abs(h)")
    merged = merge(BASE, ours, theirs)
    assert merged.is_clean
    assert outputs(merged.model) == ["c"]


def test_a_new_output_has_the_name_that_its_side_gave_it_though_the_other_side_renamed_the_value() -> None:
    ours = branches("a b h", "h = Relu(x) a = Abs(h) b = Neg(h)")
    theirs = branches("a b", "z = Relu(x) a = Abs(z) b = Neg(z)")
    merged = merge(BASE, ours, theirs)
    assert merged.is_clean
    assert outputs(merged.model) == ["a", "b", "h"]


def test_taking_away_the_last_layer_leaves_the_changes_before_it() -> None:
    theirs = branches("a b", "h = Relu(x) a = Abs(h) b0 = Floor(h) b = Sigmoid(b0)")
    merged = merge(LAYER, BASE, theirs)
    assert merged.is_clean
    assert merged.model.graph is not None
    assert [each.op_type for each in merged.model.graph.node] == ["Relu", "Abs", "Floor"]
