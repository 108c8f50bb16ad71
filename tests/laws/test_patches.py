"""The laws of patches, over models of every message and field, and changes of every kind."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import onnxjson
from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.model import document as d
from onnxjson.model.addresses import resolve, walk
from onnxjson.model.errors import AddressError, LimitError
from onnxjson.patching.patch import Patch
from tests.generation.messages import generate, generate_from
from tests.patching.mutating import mutated
from tests.seeds import portions

MODELS = sorted((Path(__file__).parents[1] / "models").glob("*.onnx"))


def model_of(data: bytes) -> d.Model:
    """The record of serialised bytes."""
    return serde.parse(data).model


def broken_laws(base: d.Model, rng: Random) -> list[str]:
    """The laws that do not hold for a chain of changed models."""
    broken = []
    before = message_bytes(base)
    first = mutated(base, rng, rng.choice((1, 2, 5, 20)))
    second = mutated(first, rng, rng.choice((1, 2, 5, 20)))
    third = mutated(base if rng.random() < 0.3 else second, rng, rng.choice((0, 1, 5)))
    one, two, three = Patch.between(base, first), Patch.between(first, second), Patch.between(second, third)
    if message_bytes(one.apply(base)) != message_bytes(first):
        broken.append("apply")
    if message_bytes(base) != before:
        broken.append("apply changes its argument")
    if bool(one) != (before != message_bytes(first)) or Patch.between(base, model_of(before)):
        broken.append("emptiness")
    if message_bytes(one.invert().apply(first)) != before or one.invert().invert() != one:
        broken.append("invert")
    both = one.then(two)
    if message_bytes(both.apply(base)) != message_bytes(second):
        broken.append("then")
    if message_bytes(both.invert().apply(second)) != before:
        broken.append("invert after then")
    left, right = both.then(three), one.then(two.then(three))
    if not message_bytes(left.apply(base)) == message_bytes(right.apply(base)) == message_bytes(third):
        broken.append("associativity")
    if one.then(one.invert()) or one.invert().then(one):
        broken.append("a patch and its inverse are nothing")
    broken += [f"text of {name}" for name, patch in (("one", one), ("both", both)) if not _is_stored_exactly(patch)]
    return [*broken, *_broken_places(base, first, one), *_broken_places(base, second, both)]


def _is_stored_exactly(patch: Patch) -> bool:
    text = patch.dumps()
    read = Patch.loads(text)
    return read == patch and read.dumps() == text


def _broken_places(base: d.Model, target: d.Model, patch: Patch) -> list[str]:
    """Places of the base that `where` loses or misplaces; what stays must come from every place but those added."""
    broken = []
    reached = set()
    inverse = patch.invert()
    for address, record in walk(base):
        after = patch.where(address)
        if after is None:
            continue
        try:
            element = resolve(target, after)
        except AddressError:
            broken.append(f"where({address}) is {after}, and nothing stands there")
            continue
        if type(element) is not type(record):
            broken.append(f"where({address}) is {after}, another kind of record")
        if inverse.where(after) != address:
            broken.append(f"where({address}) is {after}, from where it leads to {inverse.where(after)}")
        reached.add(after)
    added = [unit.target for unit in patch.units() if unit.kind == "add"]
    for address, _ in walk(target):
        if address not in reached and inverse.where(address) is not None:
            broken.append(f"{address} comes from {inverse.where(address)}, which does not lead there")
    for unit in patch.units():
        for side, at in ((base, unit.base), (target, unit.target)):
            if unit.kind != "set" and at is not None:
                resolve(side, at)
    assert None not in added
    return broken


def failures(seeds: range, size: int) -> list[str]:
    """Broken laws over generated models."""
    found: list[str] = []
    for seed in seeds:
        try:
            base = model_of(generate(seed, size))
            broken = broken_laws(base, Random(seed))
        except LimitError:
            continue
        except Exception as error:  # the report names the seed of every failure
            broken = [f"{type(error).__name__}: {error}"[:300]]
        found.extend(f"seed {seed}: {law}" for law in broken[:3])
    return found


@pytest.mark.parametrize("portion", portions(2000, always=1000, size=500))
def test_patches_between_changed_models_keep_the_laws(portion: range) -> None:
    assert not failures(portion, 1 + portion.start // 10)


@settings(
    max_examples=80,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(rng=st.randoms(use_true_random=False), size=st.integers(1, 80))
def test_drawn_changes_keep_the_laws_and_failures_shrink(rng: Random, size: int) -> None:
    try:
        base = model_of(generate_from(rng, size))
    except LimitError:
        return
    assert not broken_laws(base, rng)


def test_patches_between_exported_models_keep_the_laws() -> None:
    for path in MODELS:
        base = onnxjson.load(path)
        for seed in range(4):
            assert not broken_laws(base, Random(seed)), (path, seed)
