"""Graphs in which equal nodes have no single counterpart: the diff ends, and its patch is exact."""

import pytest

import onnxjson
from tests.diffing.adversarial import ADVERSARIAL
from tests.diffing.edits import STRUCTURAL, random_edits
from tests.diffing.mutations import mutated


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_the_diff_of_an_adversarial_graph_ends_with_an_exact_patch(name: str) -> None:
    make, count = ADVERSARIAL[name]
    base, target = mutated(make(count), random_edits(3, 1, STRUCTURAL), 1)[:2]
    assert onnxjson.diff(base, target).patch.apply(base) == target
