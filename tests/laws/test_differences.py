"""The law of differences over random models and random edits of them: each is explained by exactly one event."""

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

import onnxjson
from onnxjson import edits
from onnxjson.diffing.difference import diff
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from tests.diffing.renaming import renamed
from tests.editing.random_models import bytes_of, random_edit, random_model
from tests.seeds import portions


def pair(seed: int) -> tuple[Model, Model]:
    """A random model, and what up to four random edits make of it."""
    rng = Random(seed)
    base = target = random_model(rng)
    for _ in range(rng.randint(1, 4)):
        try:
            target = onnxjson.apply(target, [random_edit(target, rng)])
        except OnnxJsonError:
            continue
    return base, target


def broken_laws(base: Model, target: Model) -> list[str]:
    """What is not as it should be of the difference of two models."""
    difference = diff(base, target)
    units = list(difference.patch.units())
    shares = difference.shares
    broken = [f"{unit} stands in the patch {count} times" for unit, count in Counter(units).items() if count > 1]
    broken += [f"{unit} is unexplained" for unit in units if shares.get(unit) is None]
    broken += [f"{unit} is explained and not in the patch" for unit in shares.keys() - set(units)]
    owners = set(shares.values())
    broken += [
        f"{event.kind} {event.pattern} explains nothing"
        for number, event in enumerate(difference.events)
        if number not in owners
    ]
    if bytes_of(difference.patch.apply(base)) != bytes_of(target):
        broken.append("the patch does not lead to the bytes of the target")
    if difference.equal != (bytes_of(base) == bytes_of(target)):
        broken.append("equal")
    return broken


def said(base: Model, target: Model) -> tuple[bool, Counter[tuple[str, str, int]]]:
    """The verdict and the kinds of events where names and order are no difference."""
    found = diff(base, target, ignore=("names", "order"))
    return found.equal, Counter([(event.kind, event.pattern, event.count) for event in found.events])


def without_what_only_names_tell(model: Model) -> Model:
    """A model without unused constants and annotations: nothing but a name says which of them is which."""
    assert model.graph is not None
    model = replace(model, graph=replace(model.graph, quantization_annotation=()))
    return onnxjson.apply(model, [edits.Prune(what=("initializers",))])


def depends_on_names(base: Model, target: Model, seed: int) -> str:
    """How the diff of two models changes with the names of everything but inputs and outputs; "" if it does not."""
    base, target = without_what_only_names_tell(base), without_what_only_names_tell(target)
    plain = said(base, target)
    hidden = said(renamed(base, seed, interface=False), renamed(target, seed + 1, interface=False))
    return "" if plain == hidden else f"{plain} became {hidden}"


@pytest.mark.parametrize("seeds", portions(300, always=100, size=50))
def test_every_difference_is_explained_by_exactly_one_event(seeds: range) -> None:
    differing = 0
    for seed in seeds:
        base, target = pair(seed)
        differing += base != target
        for one, other in ((base, target), (target, base)):
            assert not broken_laws(one, other), seed
            assert not depends_on_names(one, other, seed), seed
    assert differing > 35
