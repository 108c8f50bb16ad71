"""Laws of events: everything is explained once, by its cause, and names and order of files do not matter."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

import onnxjson
from onnxjson.codecs import serde
from onnxjson.diffing.difference import Diff, diff
from onnxjson.model.document import Model
from tests.diffing.edits import random_edits
from tests.diffing.mutations import mutated
from tests.diffing.renaming import renamed
from tests.diffing.stacks import STYLES, stack
from tests.generation.messages import generate
from tests.patching.mutating import mutated as anyhow_mutated

MODELS = sorted((Path(__file__).parents[1] / "models").glob("*.onnx"))
NAMES = [path.name for path in MODELS]


def exported(name: str) -> Model:
    return onnxjson.load(MODELS[NAMES.index(name)])


def broken_laws(base: Model, target: Model) -> list[str]:
    """What is not as it should be of the diff of two models."""
    difference = diff(base, target)
    shares = difference.shares
    broken = [f"{unit} is unexplained" for unit, number in shares.items() if number is None]
    owners = set(shares.values())
    broken += [
        f"{event.kind} {event.pattern} explains nothing"
        for number, event in enumerate(difference.events)
        if number not in owners
    ]
    if difference.patch.apply(base) != target:
        broken.append("the patch does not lead there")
    if difference.equal != (base == target):
        broken.append("equal")
    return broken


def kinds(diff: Diff) -> Counter[tuple[str, str, int]]:
    """What names and order of files must not change."""
    return Counter(
        [
            (event.kind, event.pattern, event.count)
            for event in diff.events
            if event.kind != "renamed" and (event.kind != "reordered" or event.pattern.startswith("inputs of"))
        ]
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_model_and_itself_do_not_differ(name: str) -> None:
    one, other = exported(name), exported(name)
    for found in (diff(one, one), diff(one, other)):
        assert found.equal
        assert not found.events
        assert not found.patch
        assert not found.shares
        nodes = sum(len(scope.graph.node) for scope in found.alignment.base.scopes)
        assert found.summary.matched_nodes == nodes == len(found.matches)


def test_nans_are_equal_to_themselves() -> None:
    model = stack("transformer", 40)
    assert model.graph is not None
    tensor = onnxjson.Tensor(dims=(2,), data_type=1, name="n", raw_data=b"\0\0\xc0\x7f\1\0\xc0\xff")
    graph = onnxjson.Graph(node=model.graph.node, initializer=(tensor, *model.graph.initializer))
    other = onnxjson.Graph(node=model.graph.node, initializer=(*model.graph.initializer, tensor))
    assert [event.kind for event in diff(onnxjson.Model(graph=graph), onnxjson.Model(graph=other)).events] == [
        "reordered"
    ]


@pytest.mark.parametrize("name", [*STYLES, *NAMES])
def test_other_names_in_another_order_are_renames_and_reorders_only(name: str) -> None:
    base = exported(name) if name in NAMES else stack(name, 300)  # type: ignore[arg-type]
    target = mutated(base, (), 7).target
    assert {event.kind for event in diff(base, target).events} <= {"renamed", "reordered"}
    assert not broken_laws(base, target)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", [*STYLES, "encoder_dynamo.onnx", "branches_ts.onnx", "mobile_ts.onnx"])
def test_every_difference_has_one_event_and_every_event_a_difference(name: str, seed: int) -> None:
    base = exported(name) if name in NAMES else stack(name, 300, ("distinct", "equal", "stripped")[seed % 3])  # type: ignore[arg-type]
    edits = random_edits((1, 5, 25)[seed % 3], seed)
    for rename, shuffle in ((True, True), (False, True), (False, False)):
        mutation = mutated(base, edits, seed, rename=rename, shuffle=shuffle)
        assert not broken_laws(mutation.base, mutation.target)
        assert not broken_laws(mutation.target, mutation.base)


@pytest.mark.parametrize("seed", range(40))
def test_models_that_are_wrong_are_explained_whole(seed: int) -> None:
    numbers = Random(seed)
    base = serde.parse(generate(seed, 400)).model if seed % 2 else exported(numbers.choice(NAMES))
    target = anyhow_mutated(base, numbers, numbers.choice((1, 2, 5, 20)))
    assert not broken_laws(base, target)
    assert not broken_laws(target, base)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("style", STYLES)
def test_kinds_and_counts_do_not_depend_on_names_and_order(style: str, seed: int) -> None:
    base = stack(style, 300)  # type: ignore[arg-type]
    edits = random_edits(6, seed)
    plain = mutated(base, edits, seed, rename=False, shuffle=False).target
    hidden = mutated(base, edits, seed).target
    expected = kinds(diff(base, plain))
    assert expected
    assert kinds(diff(base, hidden)) == expected
    assert kinds(diff(renamed(base, 3), hidden)) == expected


@pytest.mark.parametrize("twin", ["a", "b"])
def test_what_is_said_of_a_value_goes_with_either_of_two_that_are_computed_alike(twin: str) -> None:
    def model(nodes: list[onnxjson.Node], said: str) -> Model:
        value = onnxjson.Type(tensor_type=onnxjson.TensorType(elem_type=1))
        infos = [onnxjson.ValueInfo(name=name, type=value) for name in ("x", "y", said)]
        graph = onnxjson.Graph(
            name="g", node=tuple(nodes), input=(infos[0],), output=(infos[1],), value_info=(infos[2],)
        )
        return Model(ir_version=8, graph=graph, opset_import=(onnxjson.OperatorSetId(version=17),))

    def node(op_type: str, output: str, *inputs: str) -> onnxjson.Node:
        return onnxjson.Node(op_type=op_type, input=inputs, output=(output,))

    ends = [node("Cos", "d", "c"), node("Mul", "y", "c", "d")]
    base = model([node("Exp", "h", "x"), node("Sin", "s", "h"), node("Add", "c", "h", "s"), *ends], "h")
    twins = [node("Exp", "a", "x"), node("Exp", "b", "x"), node("Sin", "s", "a"), node("Add", "c", "b", "s"), *ends]
    target = model(twins, twin)
    assert not broken_laws(base, target)
    assert "value-info-changed" not in {event.kind for event in diff(base, target).events}


HASHED = """
from onnxjson.diffing.difference import diff
from tests.diffing.edits import random_edits
from tests.diffing.mutations import mutated
from tests.diffing.stacks import stack
mutation = mutated(stack("mixed", 300, "equal"), random_edits(12, 5), 5)
found = diff(mutation.base, mutation.target)
print(found.events, found.matches, found.shares)
"""


def test_nothing_depends_on_the_hash_seed() -> None:
    said = set()
    for seed in ("0", "1", "77"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])}
        run = subprocess.run([sys.executable, "-c", HASHED], env=environment, capture_output=True, check=True)
        said.add(run.stdout)
    assert len(said) == 1


def test_ten_thousand_other_names_are_renames_only() -> None:
    base = stack("transformer", 10_000)
    found = diff(base, renamed(base, 1))
    assert {event.kind for event in found.events} == {"renamed"}
    tensors = next(event for event in found.events if event.pattern == "tensors")
    assert len(tensors.members) == 1
    assert tensors.count == tensors.members[0].count > 10_000
    assert len(tensors.members[0].details) == 101
