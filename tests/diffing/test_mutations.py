"""What the figures of the structural diff rest on: models whose differences are known, and the judging of them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import onnxjson
from onnxjson.diffing.events import Event, Member
from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.model.document import Model, Node
from onnxjson.model.index import Index
from onnxjson.model.structure import check_structure
from tests.diffing.edits import EDITS, STRUCTURAL, random_edits
from tests.diffing.equal_computation import Classes
from tests.diffing.judging import GraphPairs, Judge, judge_events
from tests.diffing.mutations import Mutation, Planted, mutated
from tests.diffing.renaming import bodies, renamed
from tests.diffing.stacks import STYLES, WEIGHTS, Builder, stack, with_weights


def _truth(mutation: Mutation) -> list[GraphPairs]:
    return [GraphPairs(each.base, each.target, each.target_of) for each in mutation.graphs.values()]


def _names(model: Model) -> set[str]:
    found: set[str] = set()
    for body in bodies(model):
        for node in body.node:
            found |= {node.name or "", *node.input, *node.output}
    return found - {""}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", EDITS)
def test_edited_model_is_valid_and_says_where_it_was_edited(name: str, style: str) -> None:
    model = stack(next(each for each in STYLES if each == style), 300)
    mutation = mutated(model, [name], 1)
    assert not check_structure(mutation.target)
    assert mutation.base is model
    assert mutation.target != mutated(model, (), 1).target or not mutation.planted
    if style == "convolutional" and name in ("fuse", "unfold"):
        assert not mutation.planted  # no place for it
        return
    (planted,) = mutation.planted
    there = {
        f"{scope.address}/node/{place}"
        for scope in Index(mutation.target).scopes
        for place in range(len(scope.graph.node))
    }
    addresses = {address for side, address in planted.members[0] if side == "target" and "/node/" in address}
    assert addresses <= there
    assert planted.members[0]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_truth_pairs_nodes_of_one_operator_and_is_judged_right(weights: str, exports: list[Path]) -> None:
    kept = next(each for each in WEIGHTS if each == weights)
    models = [stack(style, 300, kept) for style in STYLES] + [
        with_weights(onnxjson.load(path), kept) for path in exports
    ]
    for number, model in enumerate(models):
        mutation = mutated(model, random_edits(10, number), number)
        wrong = {finding.code for finding in check_structure(mutation.target)}
        assert wrong <= ({"wrong-length"} if weights == "stripped" else set())
        sides = [{scope.address: scope.graph.node for scope in Index(each).scopes} for each in mutation[:2]]
        for graph in mutation.graphs.values():
            for node, other in enumerate(graph.target_of):
                if other != UNMATCHED:
                    assert _kind(sides[0][graph.base][node]) == _kind(sides[1][graph.target][other])
                    assert graph.base_of[other] == node
        score = Judge.of_mutation(mutation).score(_truth(mutation))
        assert (score.precision, score.recall) == (1, 1)
        assert Judge.of_mutation(mutation.reversed()).score(_truth(mutation.reversed())) == score


def _kind(node: Node) -> tuple[str | None, int, list[str | None]]:
    return node.op_type, len(node.input), [each.name for each in node.attribute]


def test_same_arguments_make_the_same_model_and_other_seeds_others() -> None:
    model = stack("mixed", 400)
    one, same, other = (mutated(model, random_edits(9, seed), seed) for seed in (3, 3, 4))
    assert (one.target, one.graphs, one.planted) == (same.target, same.graphs, same.planted)
    assert one.target != other.target


def test_no_name_is_left_and_what_subgraphs_take_stays_what_it_is(exports: list[Path]) -> None:
    for model in [stack("mixed", 200), *[onnxjson.load(path) for path in exports]]:
        result = renamed(model, 5)
        assert not _names(model) & _names(result)
        assert not check_structure(result)
        assert renamed(result, 5, interface=False).graph.input == result.graph.input  # type: ignore[union-attr]


def test_shuffled_nodes_are_in_another_order_that_is_valid() -> None:
    model = stack("transformer", 400)
    mutation = mutated(model, rename=False)
    (graph,) = mutation.graphs.values()
    assert sorted(graph.target_of) == list(range(len(graph.target_of))) != list(graph.target_of)
    assert not check_structure(mutation.target)
    assert mutated(model, rename=False, shuffle=False).target == model


def test_nodes_of_equal_computation_are_one_another_and_others_are_not() -> None:
    builder = Builder()
    first, second = (builder.call("Relu", ["x"], name) for name in ("one", "two"))
    copy = builder.call("Identity", [first], "copy")
    ends = [builder.call("Tanh", [value], f"end{place}") for place, value in enumerate((copy, second, "mask"))]
    classes = Classes(builder.model(builder.call("Sum", ends, "Sum"))).nodes["/graph"]
    relu, other_relu, _, tanh, other_tanh, third_tanh, _ = classes
    assert relu == other_relu
    assert tanh == other_tanh != third_tanh


def test_wrong_and_missing_pairs_count_against_a_differ() -> None:
    mutation = mutated(stack("transformer", 200), ["operator"], 2)
    judge = Judge.of_mutation(mutation)
    (graph,) = mutation.graphs.values()
    true = list(graph.target_of)
    places = [place for place, other in enumerate(true) if other != UNMATCHED and mutation.base.graph.node[place].input]  # type: ignore[union-attr]
    swapped, missing = list(true), list(true)
    swapped[places[0]], swapped[places[-1]] = true[places[-1]], true[places[0]]
    missing[places[5]] = UNMATCHED
    wanted = sum(other != UNMATCHED for other in true)
    assert judge.score([GraphPairs("/graph", "/graph", true)]) == (wanted, wanted, wanted, wanted)
    assert judge.score([GraphPairs("/graph", "/graph", swapped)]) == (wanted - 2, wanted, wanted - 2, wanted)
    assert judge.score([GraphPairs("/graph", "/graph", missing)]) == (wanted - 1, wanted - 1, wanted - 1, wanted)
    ((before, after),) = graph.optional
    with_optional = list(true)
    with_optional[before] = after
    assert judge.score([GraphPairs("/graph", "/graph", with_optional)]) == (wanted, wanted, wanted, wanted)


def test_values_that_kept_their_names_are_the_truth_about_an_optimizer() -> None:
    base = stack("transformer", 200)
    optimized = mutated(base, ["fuse", "fuse", "delete"], 4, rename=False, shuffle=False)
    output = mutated(optimized.target, seed=9)
    judge = Judge.of_names(base, output)
    (first,), (second,) = optimized.graphs.values(), output.graphs.values()
    through = [UNMATCHED if other == UNMATCHED else second.target_of[other] for other in first.target_of]
    score = judge.score([GraphPairs("/graph", "/graph", through)])
    assert (score.precision, score.recall) == (1, 1)
    assert score.wanted >= 190
    (fused, *_), (gemm,) = zip(*sorted(first.optional)[:1], strict=True)
    through[fused] = second.target_of[gemm]
    wrong = judge.score([GraphPairs("/graph", "/graph", through)])
    assert wrong.said - wrong.right <= 1
    assert wrong.found == score.found


_PLANTED = Planted(
    "insert", ("inserted",), ("eliminated",), (frozenset([("target", "/graph/node/4"), ("target", "/graph/node/5")]),)
)

_EVENTS: Mapping[str, tuple[Event, bool, bool]] = {
    "all": (Event("inserted", "", (Member((), ("/graph/node/4", "/graph/node/5")),)), True, True),
    "half": (Event("inserted", "", (Member((), ("/graph/node/4",)),)), True, True),
    "too much": (
        Event("inserted", "", (Member(("/graph/node/1", "/graph/node/2"), ("/graph/node/4",)),)),
        False,
        False,
    ),
    "kind": (Event("replaced", "", (Member((), ("/graph/node/4", "/graph/node/5")),)), False, True),
    "elsewhere": (Event("inserted", "", (Member((), ("/graph/node/7", "/graph/node/8")),)), False, False),
}


@pytest.mark.parametrize("name", _EVENTS)
def test_event_is_right_with_its_kind_and_at_least_half_of_all_members(name: str) -> None:
    event, right, kind = _EVENTS[name]
    other = Event("rewired", "Add", (Member(("/graph/node/0",), ("/graph/node/0",)),))
    renames = Event("renamed", "nodes", (Member(("/graph",), ("/graph",)),))
    verdicts = judge_events(_PLANTED, [renames, other, event])
    assert (verdicts.right, verdicts.kind) == (right, kind)
    assert "rewired Add" in verdicts.others
    assert not any(each.startswith("renamed") for each in verdicts.others)


def test_structural_edits_need_no_weights() -> None:
    model = stack("mixed", 500, "stripped")
    for name in STRUCTURAL:
        assert mutated(model, [name], 1).planted, name
