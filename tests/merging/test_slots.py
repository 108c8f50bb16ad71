"""What both sides may change without a conflict, and what they may not."""

import pytest
from msgspec.structs import replace

from onnxjson.merging.merge import merge
from onnxjson.merging.resolving import resolve
from onnxjson.model.conflicts import Conflict
from onnxjson.model.document import Model, Node, StringStringEntry, Tensor
from onnxjson.model.structure import check_structure
from tests.merging.models import (
    BASE,
    Change,
    added,
    attribute,
    both,
    fields,
    graph,
    metadata,
    node,
    renamed,
    weights,
    without,
)

ONE, TWO = b"\0\0\x80?" * 4, b"\0\0\0@" * 4

SAME_SLOT: dict[str, tuple[Change, Change, list[str]]] = {
    "an attribute": (attribute(1, "alpha", 0.2), attribute(1, "alpha", 0.3), ["/graph/node/1/attribute/alpha"]),
    "an attribute that both add": (attribute(0, "one", 1), attribute(0, "one", 2), ["/graph/node/0/attribute/one"]),
    "an operator": (node(5, op_type="Relu"), node(5, op_type="Abs"), ["/graph/node/5"]),
    "an operator and its attribute": (node(1, op_type="Elu"), attribute(1, "alpha", 0.3), ["/graph/node/1"]),
    "an input": (node(5, input=("b",)), node(5, input=("a",)), ["/graph/node/5/input/0"]),
    "an input that both add": (node(5, input=("d", "w")), node(5, input=("d", "u")), ["/graph/node/5/input/1"]),
    "a constant": (weights(0, ONE), weights(0, TWO), ["/graph/initializer/0"]),
    "metadata": (metadata("k", "1"), metadata("k", "2"), ["/metadata_props/0"]),
    "a field of the model": (fields(producer_name="1"), fields(producer_name="2"), ["/producer_name"]),
    "the name of a value": (renamed("b", "b1"), renamed("b", "b2"), ["/graph/node/1/output/0"]),
    "the name of an input": (renamed("x", "x1"), renamed("x", "x2"), ["/graph/input/0/name"]),
    "the name of a constant": (renamed("w", "w1"), renamed("w", "w2"), ["/graph/initializer/0/name"]),
    "the name of a node": (node(0, name="1"), node(0, name="2"), ["/graph/node/0/name"]),
    "a node that is gone": (without(1), attribute(1, "alpha", 0.3), ["/graph/node/1"]),
    "an edge": (
        both(added(Node(("b",), ("n",), op_type="Neg"), 2), node(3, input=("n", "u"))),
        both(added(Node(("b",), ("m",), op_type="Exp"), 2), node(3, input=("m", "u"))),
        ["/graph/node/4/input/0"],
    ),
}


@pytest.mark.parametrize("name", SAME_SLOT)
def test_two_edits_of_one_slot_are_a_conflict(name: str) -> None:
    mine, its, places = SAME_SLOT[name]
    ours, theirs = mine(BASE), its(BASE)
    merged = merge(BASE, ours, theirs)
    assert [each.at for each in merged.conflicts] == places
    (conflict,) = merged.conflicts
    assert conflict.ours != conflict.theirs
    swapped = merge(BASE, theirs, ours)
    assert [(each.ours, each.theirs) for each in swapped.conflicts] == [(conflict.theirs, conflict.ours)]


@pytest.mark.parametrize("name", sorted(set(SAME_SLOT) - {"an edge"}))
def test_taking_theirs_gives_what_ours_would_have_had(name: str) -> None:
    mine, its, _ = SAME_SLOT[name]
    ours, theirs = mine(BASE), its(BASE)
    merged = merge(BASE, ours, theirs)
    taken, left = resolve(merged.model, merged.conflicts, "theirs")
    assert not left
    assert taken == merge(BASE, theirs, ours).model
    back, _ = resolve(merged.model, merged.conflicts, "base")
    assert not check_structure(back)


APART: dict[str, tuple[Change, Change]] = {
    "two attributes of one node": (attribute(1, "alpha", 0.2), attribute(1, "beta", 1)),
    "an attribute and an input": (attribute(1, "alpha", 0.2), node(1, input=("x",))),
    "two inputs of one node": (node(2, input=("a", "u")), node(2, input=("b", "w"))),
    "two constants": (weights(0, ONE), weights(1, TWO)),
    "metadata of two keys": (metadata("j", "1"), metadata("k", "2")),
    "a name and what has it": (renamed("b", "new"), node(5, input=("b",))),
    "names of everything and an attribute": (
        both(renamed("a", "a1"), renamed("b", "b1"), renamed("d", "d1"), renamed("w", "w1"), renamed("e", "e9")),
        attribute(1, "alpha", 0.2),
    ),
    "a node that goes and one that comes": (without(1), added(Node(("x",), ("n",), op_type="Neg"), 0)),
}


@pytest.mark.parametrize("name", APART)
def test_edits_of_two_slots_merge_in_either_order(name: str) -> None:
    mine, its = APART[name]
    merged = merge(BASE, mine(BASE), its(BASE))
    assert merged.is_clean, merged.conflicts
    assert merged.model == merge(BASE, its(BASE), mine(BASE)).model
    assert not check_structure(merged.model)


def test_what_both_do_is_done_once() -> None:
    same = both(metadata("k", "1"), weights(0, ONE), added(Node(("x",), ("n",), op_type="Neg"), 0))
    ours, theirs = both(same, attribute(2, "alpha", 0.2))(BASE), both(same, attribute(5, "axis", 0))(BASE)
    merged = merge(BASE, ours, theirs)
    assert merged.is_clean
    assert merged.model == attribute(5, "axis", 0)(ours)


def test_new_values_of_one_name_are_told_apart() -> None:
    ours = both(added(Node(("a",), ("n",), op_type="Neg"), 1), node(2, input=("n",)))(BASE)
    theirs = both(added(Node(("e",), ("n",), op_type="Exp"), 4), node(5, input=("n",)))(BASE)
    merged = merge(BASE, ours, theirs)
    assert merged.is_clean
    assert not check_structure(merged.model)
    assert merged.model.graph is not None
    made = {each.op_type: each for each in merged.model.graph.node}
    assert {made["Neg"].output[0], made["Exp"].output[0]} == {"n", "n_1"}
    assert made["LeakyRelu"].input == made["Neg"].output
    assert made["Softmax"].input == made["Exp"].output


def test_new_inputs_of_one_name_are_no_two_inputs() -> None:
    assert BASE.graph is not None
    infos = [BASE.graph.input[0].type, BASE.graph.input[1].type]
    sides = [graph(input=(*BASE.graph.input, type(BASE.graph.input[0])("mask", each)))(BASE) for each in infos]
    merged = merge(BASE, *sides)
    assert [each.at for each in merged.conflicts] == ["/graph/input/2"]


def _sides_that_need_each_other() -> tuple[Model, Model]:
    """Ours takes the LeakyRelu away, theirs takes its output at one place more."""
    return without(1)(BASE), added(Node(("b",), ("n",), op_type="Neg"), 2)(BASE)


def test_what_is_gone_and_used_is_one_conflict_with_its_use() -> None:
    ours, theirs = _sides_that_need_each_other()
    merged = merge(BASE, ours, theirs)
    assert {each.id for each in merged.conflicts} == {"1"}
    assert not check_structure(merged.model)
    for choice in ("ours", "theirs"):
        model, left = resolve(merged.model, merged.conflicts, choice)
        assert not left
        assert not check_structure(model)


def test_sides_that_close_a_circle_are_a_conflict() -> None:
    # d = Add(b, u) over q, and q = Clip(d) stays: each alone is sound.
    start = both(added(Node(("x",), ("z",), op_type="Neg"), 0))(BASE)
    ours = node(0, input=("y",))(start)
    assert ours.graph is not None
    nodes = ours.graph.node
    ours = graph(node=(*nodes[1:], nodes[0]))(ours)
    theirs = node(1, input=("z", "w"))(start)
    merged = merge(start, ours, theirs)
    assert not merged.is_clean
    assert not check_structure(merged.model)


def test_types_that_do_not_agree_are_a_conflict() -> None:
    assert BASE.graph is not None
    info = type(BASE.graph.input[0])
    types = [BASE.graph.input[0].type, BASE.graph.input[1].type]
    ours = graph(value_info=(info("w", types[1]),))(BASE)
    theirs = weights(0, ONE)(BASE)
    merged = merge(BASE, graph(value_info=(info("a", types[0]),))(BASE), graph(value_info=(info("a", types[1]),))(BASE))
    assert [each.at for each in merged.conflicts] == ["/graph/value_info/0"]
    assert merge(BASE, ours, theirs).model.graph is not None


def _external(name: str, offset: int) -> Tensor:
    entries = (StringStringEntry("location", "m.data"), StringStringEntry("offset", str(offset)))
    return Tensor((4,), 1, name=name, external_data=entries, data_location=1)


def test_tensors_of_one_file_are_one_slot() -> None:
    base = graph(initializer=(_external("w", 0), _external("u", 16)))(BASE)
    ours = graph(initializer=(_external("w", 64), _external("u", 16)))(BASE)
    theirs = graph(initializer=(_external("w", 0), _external("u", 80)))(BASE)
    merged = merge(base, ours, theirs)
    assert [(each.id, each.at) for each in merged.conflicts] == [
        ("1", "/graph/initializer/0"),
        ("1", "/graph/initializer/1"),
    ]
    assert resolve(merged.model, merged.conflicts, "theirs")[0] == theirs


def test_function_that_is_gone_and_called_is_a_conflict() -> None:
    assert BASE.graph is not None
    plain = node(3, attribute=())(BASE)
    start = fields(functions=BASE.functions)(plain)
    ours = fields(functions=())(start)
    theirs = added(Node(("x",), ("n",), op_type="twice", domain="local"), 0)(start)
    merged = merge(start, ours, theirs)
    assert not merged.is_clean
    assert {each.id for each in merged.conflicts} == {"1"}


def test_renamed_function_takes_its_calls_along() -> None:
    (twice,) = BASE.functions
    named = replace(twice, name="double")

    def called(model: Model) -> Model:
        assert model.graph is not None
        nodes = model.graph.node
        call = Node(("x",), ("n",), op_type="double", domain="local")
        renamed_calls = [each for each in nodes if each.op_type != "If"]
        return graph(node=(call, *renamed_calls[:3], nodes[3], *renamed_calls[3:]))(model)

    start = node(3, attribute=(), op_type="Identity", input=("d",))(BASE)
    ours = called(fields(functions=(named,))(start))
    theirs = added(Node(("x",), ("m",), op_type="twice", domain="local"), 0)(start)
    merged = merge(start, ours, theirs)
    assert merged.is_clean, merged.conflicts
    assert merged.model.graph is not None
    calls = [each for each in merged.model.graph.node if each.domain == "local"]
    assert [each.op_type for each in calls] == ["double", "double"]


def test_models_made_anew_on_both_sides_are_one_conflict_of_all() -> None:
    theirs = metadata("k", "1")(BASE)
    merged = merge(None, BASE, theirs)
    assert merged.conflicts == (Conflict("1", "", None, BASE, theirs),)
    assert resolve(merged.model, merged.conflicts, "theirs") == (theirs, ())
