"""A share of `tests.patterns.laws`: the whole is ``python -m tests.patterns.laws 2000``."""

import random

import pytest

import onnxjson
from onnxjson.patterns.finding import matches
from onnxjson.patterns.matching import Matcher
from onnxjson.patterns.nodes import TOLERANCE
from tests.patterns.laws import MODELS, Cutter, check, plant

PATHS = sorted(MODELS.glob("*.onnx"))


@pytest.mark.parametrize("rounds", [40, pytest.param(2000, marks=pytest.mark.exhaustive)])
@pytest.mark.timeout(600)
def test_pattern_finds_where_it_was_cut_and_its_planted_change_is_named(rounds: int) -> None:
    counts = check(PATHS, rounds)
    assert counts.lost == []
    assert counts.planted > rounds // 2
    assert len(counts.unnamed) <= counts.planted * (0.05 if rounds > 1000 else 0.15), counts.unnamed


def test_walk_without_branches_finds_what_the_search_finds() -> None:
    seed = random.Random(5)
    cutters = [Cutter(onnxjson.load(path), seed) for path in PATHS]
    for number in range(120):
        cutter = cutters[number % len(cutters)]
        pattern = cutter.cut()[1]
        changed = plant(pattern, seed) if number % 2 else None
        for overlapping in (False, True):
            found = []
            for is_direct in (True, False):
                wanted = pattern if changed is None else changed.pattern
                matcher = Matcher(cutter.model, cutter.index, wanted, tolerance=TOLERANCE, selected=lambda selector: ())
                if not is_direct:
                    matcher._direct = None
                found.append(list(matches([matcher], overlapping=overlapping)))
            assert found[0] == found[1], (str(wanted), overlapping)
