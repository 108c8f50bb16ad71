"""A base and two changes of it, at random: sound edits of valid models, or any change of any field."""

import random
from functools import partial
from typing import NamedTuple

import onnxjson
from onnxjson.model.document import Model
from onnxjson.model.errors import OnnxJsonError
from tests.editing.random_models import random_edit, random_model
from tests.patching.mutating import mutated


class Triple(NamedTuple):
    """What is merged."""

    base: Model
    ours: Model
    theirs: Model


def triple(seed: int, *, texts: bool | None = None) -> Triple:
    """One of each: mostly sound edits of both sides, else random changes of records.

    Args:
        seed: what is chosen by.
        texts: whether edits of names and doc strings are among them; those of odd seeds have them if it is None.
    """
    numbers = random.Random(seed)
    base = random_model(numbers)
    with_texts = bool(seed % 2) if texts is None else texts
    change = partial(_edited, texts=with_texts) if numbers.random() < 0.7 else _mutated
    return Triple(base, change(base, numbers), change(base, numbers))


def _edited(model: Model, numbers: random.Random, texts: bool) -> Model:
    for _ in range(numbers.randint(1, 3)):
        try:
            model = onnxjson.apply(model, random_edit(model, numbers, texts=texts))
        except OnnxJsonError:
            continue
    return model


def _mutated(model: Model, numbers: random.Random) -> Model:
    return mutated(model, numbers, numbers.randint(1, 3))
