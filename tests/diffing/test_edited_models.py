"""The diff of a model and what edits made of it, without matching: every difference in exactly one event."""

import random

import pytest

from onnxjson.diffing.difference import Diff, diff, diff_models
from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.editing.applying import run
from onnxjson.editing.spelling import parse_line
from onnxjson.model.document import Graph, Model, Node, Tensor
from onnxjson.model.errors import OnnxJsonError
from onnxjson.rendering.diff_report import report
from tests.editing.random_models import random_edit, random_model

NAMES = ("before", "after")


def diff_edited(base: Model, target: Model) -> Diff:
    return diff_models(base, target, names=NAMES, is_edited=True)


def edited(model: Model, rng: random.Random) -> Model:
    for _ in range(rng.randint(1, 4)):
        try:
            model = run(model, [random_edit(model, rng)]).model
        except OnnxJsonError:
            continue
    return model


@pytest.mark.parametrize("seed", range(60))
def test_every_difference_is_in_an_event(seed: int) -> None:
    rng = random.Random(seed)
    base = random_model(rng)
    target = edited(base, rng)
    difference = diff_edited(base, target)
    assert difference.patch.apply(base) == target
    assert all(event is not None for event in difference.shares.values())
    assert bool(difference.events) == (base != target)
    for pair in difference.alignment.graphs:
        for here, there in enumerate(pair.target_of):
            assert there == UNMATCHED or pair.base_of[there] == here
    assert report(difference, *NAMES).nodes.after == sum(
        len(each.graph.node) for each in difference.alignment.target.scopes
    )


@pytest.mark.parametrize(
    "line",
    [
        "name-nodes", "rename tensor x other", "constants-to-initializers", "initializers-to-constants", "prefix p_",
    ],
)  # fmt: skip
def test_what_an_edit_does_is_told_as_where_all_is_matched(line: str) -> None:
    tried = 0
    for seed in range(40):
        base = random_model(random.Random(seed))
        try:
            target = run(base, [parse_line(line)]).model
        except OnnxJsonError:
            continue
        tried += 1
        events = [
            sorted((event.kind, event.pattern, event.count) for event in each.events)
            for each in (diff_edited(base, target), diff(base, target))
        ]
        assert events[0] == events[1]
    assert tried


def test_an_edit_is_what_it_is_even_where_structure_finds_something_else_that_is_alike() -> None:
    tried = 0
    for seed in range(40):
        base = random_model(random.Random(seed))
        try:
            target = run(base, [parse_line("set-attribute op:LeakyRelu alpha 0.5")]).model
        except OnnxJsonError:
            continue
        tried += 1
        assert {event.kind for event in diff_edited(base, target).events} == {"attribute-changed"}
    assert tried


def test_only_onnx_constants_are_counterparts_of_initializers() -> None:
    base = Model(graph=Graph(initializer=(Tensor(name="w", data_type=1, raw_data=b"\0" * 4),)))
    for domain, pairs in (("", {"w": "w"}), ("ai.onnx", {"w": "w"}), ("mine", {})):
        target = Model(graph=Graph(node=(Node(op_type="Constant", domain=domain, output=("w",)),)))
        found = diff_edited(base, target)
        assert found.alignment.graphs[0].values == pairs, domain
