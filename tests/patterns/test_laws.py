"""A share of `tests.patterns.laws`: the whole is ``python -m tests.patterns.laws 2000``."""

import pytest

from tests.patterns.laws import MODELS, check

PATHS = sorted(MODELS.glob("*.onnx"))


@pytest.mark.parametrize("rounds", [40, pytest.param(2000, marks=pytest.mark.exhaustive)])
@pytest.mark.timeout(600)
def test_pattern_finds_where_it_was_cut_and_its_planted_change_is_named(rounds: int) -> None:
    counts = check(PATHS, rounds)
    assert counts.lost == []
    assert counts.planted > rounds // 2
    assert len(counts.unnamed) <= counts.planted * (0.05 if rounds > 1000 else 0.15), counts.unnamed
