"""A base and two changes of it, at random: sound edits of valid models, or any change of any field."""

import random
from typing import NamedTuple

import onnxjson
from onnxjson.document import Model
from onnxjson.errors import OnnxJsonError
from tests.edits.random_models import random_edit, random_model
from tests.patching.mutating import mutated


class Triple(NamedTuple):
    """What is merged."""

    base: Model
    ours: Model
    theirs: Model


def triple(seed: int) -> Triple:
    """One of each: mostly sound edits of both sides, else random changes of records."""
    numbers = random.Random(seed)
    base = random_model(numbers)
    change = _edited if numbers.random() < 0.7 else _mutated
    return Triple(base, change(base, numbers), change(base, numbers))


def _edited(model: Model, numbers: random.Random) -> Model:
    for _ in range(numbers.randint(1, 3)):
        try:
            model = onnxjson.apply(model, random_edit(model, numbers))
        except OnnxJsonError:
            continue
    return model


def _mutated(model: Model, numbers: random.Random) -> Model:
    return mutated(model, numbers, numbers.randint(1, 3))
