"""What is said of values by their names follows the rewrite that changed these, and what stays is no change."""

from collections import Counter

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson import edits
from onnxjson.diffing.difference import Diff, diff
from onnxjson.model.document import (
    Graph,
    Model,
    NodeDeviceConfiguration,
    ShardingSpec,
    StringStringEntry,
    TensorAnnotation,
)
from tests.diffing.renaming import renamed
from tests.diffing.test_event_laws import broken_laws
from tests.editing.graphs import model_of
from tests.laws.test_differences import pair


def graph_of(model: Model) -> Graph:
    assert model.graph is not None
    return model.graph


def annotated(text: str, tensor: str, parameter: str = "w0") -> Model:
    """A model with a quantization annotation of one value."""
    model = model_of(text)
    note = TensorAnnotation(tensor, (StringStringEntry("SCALE_TENSOR", parameter),))
    return replace(model, graph=replace(graph_of(model), quantization_annotation=(note,)))


def kinds(found: Diff) -> list[tuple[str, str]]:
    return [(event.kind, event.pattern) for event in found.events]


def shares(diff: Diff, part: str) -> list[tuple[str, str | None]]:
    """The units of the patch whose address has `part` in it, and the kinds of their events."""
    return [
        (unit.kind, None if number is None else diff.events[number].kind)
        for unit, number in diff.shares.items()
        if part in (unit.base or unit.target or "")
    ]


CHAIN = """g (float[4] x) => (float[4] out) <float[4] w0 = {1, 2, 3, 4}> {
    a = Neg(x)
    out = Relu(a)
}"""


@pytest.mark.parametrize("seed", [66, 68])
def test_an_annotation_of_a_value_that_took_the_name_of_a_deleted_node_belongs_to_the_deletion(seed: int) -> None:
    base, target = pair(seed)
    assert not broken_laws(base, target)
    assert shares(diff(base, target), "quantization_annotation") == [("set", "eliminated")]


def sharded(model: Model, tensor: str) -> Model:
    """The first node says how one value is split among devices."""
    spec = NodeDeviceConfiguration(configuration_id="c", sharding_spec=(ShardingSpec(tensor_name=tensor),))
    first, *others = graph_of(model).node
    nodes = (replace(first, device_configurations=(spec,)), *others)
    return replace(model, graph=replace(graph_of(model), node=nodes))


def test_names_in_annotations_and_sharding_follow_the_deletion_that_changed_them() -> None:
    base = annotated(CHAIN, "a", "a")
    target = onnxjson.apply(base, edits.DeleteNode(node="op:Relu"))
    (note,) = graph_of(target).quantization_annotation
    assert (note.tensor_name, note.quant_parameter_tensor_names[0].value) == ("out", "out")
    base, target = sharded(base, "a"), sharded(target, "out")
    for one, other in ((base, target), (target, base)):
        difference = diff(one, other)
        assert not broken_laws(one, other)
        assert len(difference.events) == 1
        assert len(shares(difference, "quantization_annotation")) == 2
        assert shares(difference, "device_configurations")


@pytest.mark.parametrize("is_renamed", [False, True])
def test_an_annotation_of_a_value_that_another_node_makes_now_stays(is_renamed: bool) -> None:
    base = annotated(CHAIN, "a", "x")
    target = onnxjson.apply(base, edits.ReplaceNode(node="op:Neg", op_type="Sin"))
    if is_renamed:
        target = renamed(target, 3, interface=False)
    found = diff(base, target)
    assert not broken_laws(base, target)
    assert {kind for kind, _ in kinds(found)} <= {"replaced", "renamed"}


def test_a_name_in_an_annotation_that_stays_and_means_another_tensor_is_no_change_of_the_annotation() -> None:
    text = """g (float[4] x) => (float[4] out) <float[4] w0 = {{1, 2, 3, 4}}, float[4] w1 = {{5, 6, 7, 8}}> {{
        {made} = Mul(x, {first})
        out = Add({made}, {second})
    }}"""
    base = annotated(text.format(made="a", first="w0", second="w1"), "a")
    target = annotated(text.format(made="b", first="w1", second="w0"), "b")
    first, second = graph_of(target).initializer
    weights = (replace(second, name="w0"), replace(first, name="w1"))
    target = replace(target, graph=replace(graph_of(target), initializer=weights))
    assert not broken_laws(base, target)
    assert not broken_laws(target, base)
    assert {kind for kind, _ in kinds(diff(base, target))} <= {"renamed", "reordered"}


def test_of_two_nodes_that_compute_the_same_the_one_that_did_not_change_keeps_its_partner() -> None:
    base = model_of("g (float[4] x) => (float[4] out) { a = Neg(x) b = Neg(x) out = Relu(x) }")
    target = onnxjson.apply(base, edits.AddOutput(tensor="a"))
    for one, other in ((base, target), (target, base)):
        assert not broken_laws(one, other)
        assert {kind for kind, _ in kinds(diff(one, other))} == {"io-changed"}


def test_an_input_that_takes_another_constant_while_both_stay_is_one_event() -> None:
    text = """g (float[4] x) => (float[4] out) <float[4] w0 = {{1, 2, 3, 4}}> {{
        k = Constant<value = float[4] {{4, 3, 2, 1}}>()
        out = Add(x, {taken})
    }}"""
    one, other = model_of(text.format(taken="k")), model_of(text.format(taken="w0"))
    for base, target in ((one, other), (other, one)):
        assert not broken_laws(base, target)
        assert kinds(diff(base, target)) == [("rewired", "Add input 1")]


def test_a_constant_that_stays_when_the_nodes_that_took_it_go_is_no_change_under_any_name() -> None:
    base = model_of("""g (float[4] x) => (float[4] out) <float[4] w0 = {1, 2, 3, 4}> {
        out = Relu(x)
        unused = Add(x, w0)
    }""")
    target = replace(base, graph=replace(graph_of(base), node=graph_of(base).node[:1]))
    for mark in (None, 5):
        other = target if mark is None else renamed(target, mark, interface=False)
        assert [each for each in kinds(diff(base, other)) if each[0] != "renamed"] == [("dead-code-removed", "Add")]
        assert [each for each in kinds(diff(other, base)) if each[0] != "renamed"] == [("inserted", "Add")]


def test_an_identity_of_a_value_around_its_graph_is_the_same_node_when_that_value_is_made_anew() -> None:
    text = """g (float[4] x, bool c) => (float[4] out) {{
        a = {operator}(x)
        out = If(c) <
            then_branch = yes () => (float[4] b) {{ b = Identity(a) }},
            else_branch = no () => (float[4] d) {{ d = Neg(x) }}
        >
    }}"""
    base, target = [model_of(text.format(operator=operator)) for operator in ("Relu", "Sin")]
    for other in (target, renamed(target, 5, interface=False)):
        assert not broken_laws(base, other)
        changed = Counter([each for each in kinds(diff(base, other)) if each[0] != "renamed"])
        assert changed == {("replaced", "Relu -> Sin"): 1}


@pytest.mark.parametrize("seed", [942, 1074])
def test_a_value_that_is_an_output_in_one_model_only_is_renamed_as_a_tensor(seed: int) -> None:
    base, target = pair(seed)
    assert not broken_laws(base, target)
    assert not broken_laws(target, base)
