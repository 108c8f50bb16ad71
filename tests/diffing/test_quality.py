"""How often the structural diff is right, on small models; ``python -m tests.benchmarks.diff_quality`` measures more.

Nothing here asserts how fast anything is.
"""

from collections.abc import Iterable
from pathlib import Path

import pytest

import onnxjson
from tests.benchmarks.diff_cases import optimized
from tests.benchmarks.diff_environment import Environment
from tests.diffing.edits import EDITS, STRUCTURAL, random_edits
from tests.diffing.judging import Judge, Score, judge_events, pairs_of
from tests.diffing.mutations import Mutation, mutated
from tests.diffing.stacks import STYLES, WEIGHTS, Weights, stack, with_weights
from tests.diffing.windows import windowed

PAIRS = Path(__file__).parent.parent / "models" / "pairs"

ORDER_AND_NAMES = {"renamed", "reordered"}


def _score(mutations: Iterable[Mutation]) -> Score:
    total = Score()
    for mutation in mutations:
        alignment = onnxjson.diff(mutation.base, mutation.target).alignment
        total = total.plus(Judge.of_mutation(mutation).score(pairs_of(alignment)))
    return total


def _edits(weights: Weights, count: int, seed: int) -> list[str]:
    return random_edits(count, seed, STRUCTURAL if weights == "stripped" else tuple(EDITS))


def _stacks(weights: Weights, count: int, seeds: int) -> Iterable[Mutation]:
    for style in STYLES:
        model = stack(style, count, weights)
        for seed in range(seeds):
            for share in (0.01, 0.03):
                yield mutated(model, _edits(weights, max(1, round(count * share)), seed), seed)


def _exports(paths: Iterable[Path], weights: Weights, seeds: int) -> Iterable[Mutation]:
    for path in paths:
        model = with_weights(onnxjson.load(path), weights)
        assert model.graph is not None
        for seed in range(seeds):
            for share in (0.01, 0.05):
                yield mutated(model, _edits(weights, max(1, round(len(model.graph.node) * share)), seed), seed)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_nodes_of_edited_stacks_are_paired(weights: Weights) -> None:
    score = _score(_stacks(weights, 500, 2))
    assert score.precision >= 0.995
    assert score.recall >= 0.99


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_nodes_of_big_edited_stacks_are_paired(weights: Weights) -> None:
    # Where all weights are equal, blocks are alike, and many edits in a row leave several readings that cost the same.
    precision = 0.9999 if weights == "distinct" else 0.996
    score = _score([*_stacks(weights, 2_000, 3), *_stacks(weights, 20_000, 1)])
    assert score.precision >= precision
    assert score.recall >= 0.995


@pytest.mark.parametrize("weights", WEIGHTS)
def test_nodes_of_edited_exports_are_paired(weights: Weights, exports: list[Path]) -> None:
    score = _score(_exports(exports, weights, 1))
    assert score.precision >= 0.99
    assert score.recall >= 0.98


@pytest.mark.exhaustive
@pytest.mark.parametrize("weights", WEIGHTS)
def test_nodes_of_often_edited_exports_are_paired(weights: Weights, exports: list[Path]) -> None:
    score = _score(_exports(exports, weights, 10))
    assert score.precision >= 0.99
    assert score.recall >= 0.98


@pytest.mark.parametrize("name", EDITS)
def test_single_edit_is_told_by_its_kind_and_its_members(name: str, exports: list[Path]) -> None:
    models = [*[stack(style, 200) for style in STYLES], *[onnxjson.load(path) for path in exports]]
    outcomes: list[bool] = []
    for model in models:
        there = mutated(model, [name], 1)
        for mutation in (there, there.reversed()) if there.planted else ():
            events = onnxjson.diff(mutation.base, mutation.target).events
            outcomes.append(judge_events(mutation.planted[0], events).right)
    assert outcomes
    assert sum(outcomes) >= 0.95 * len(outcomes)


@pytest.mark.parametrize("exporter", ["ts", "dynamo"])
@pytest.mark.parametrize("scrambled", [False, True])
def test_gelu_before_the_first_layer_is_one_insertion_and_nothing_else(exporter: str, *, scrambled: bool) -> None:
    base, target = (onnxjson.load(PAIRS / f"{name}_{exporter}.onnx") for name in ("plain", "activated"))
    if scrambled:
        target = mutated(target, seed=1).target
    found = onnxjson.diff(base, target)
    (event,) = [event for event in found.events if event.kind not in {*ORDER_AND_NAMES, "metadata-changed"}]
    assert (event.kind, event.count) == ("inserted", 1)
    (member,) = event.members
    assert not member.base
    assert len(member.target) == (5 if exporter == "ts" else 1)
    back = onnxjson.diff(target, base)
    kinds = [event.kind for event in back.events if event.kind not in {*ORDER_AND_NAMES, "metadata-changed"}]
    assert kinds == ["eliminated"]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_all_names_of_10000_nodes_changed_are_renames_only(weights: Weights) -> None:
    model = stack("mixed", 10_000, weights)
    kept_order = mutated(model, shuffle=False)
    found = onnxjson.diff(model, kept_order.target)
    assert {event.kind for event in found.events} == {"renamed"}
    assert _score([kept_order]).recall == 1
    shuffled = mutated(model)
    assert {event.kind for event in onnxjson.diff(model, shuffled.target).events} == ORDER_AND_NAMES
    assert _score([shuffled]).recall == 1


def test_model_is_equal_to_itself(exports: list[Path]) -> None:
    for path in exports:
        assert onnxjson.diff(onnxjson.load(path), onnxjson.load(path)).equal
        assert not onnxjson.diff(onnxjson.load(path), onnxjson.load(path)).events


@pytest.mark.parametrize("optimizer", ["onnxsim", "onnxoptimizer", "onnxslim"])
def test_windows_of_an_optimized_model_are_paired_by_their_position(optimizer: str, tmp_path: Path) -> None:
    path = tmp_path / "windows.onnx"
    path.write_bytes(windowed(6).SerializeToString())
    refused = list[str]()
    (case,) = optimized(optimizer, [path], Environment(None, tmp_path / "cache"), refused)
    alignment = onnxjson.diff(case.hidden.base, case.hidden.target).alignment
    score = case.hidden.judge.score(pairs_of(alignment))
    least = 0.97 if optimizer == "onnxslim" else 0.99
    assert score.wanted > 100
    assert score.precision >= least
    assert score.recall >= least
