"""A share of `tests.patterns.laws`: the whole is ``python -m tests.patterns.laws 600``."""

import pytest

from tests.patterns.laws import MODELS, check

PATHS = sorted(MODELS.glob("*.onnx"))


@pytest.mark.parametrize("breaks", [24, pytest.param(600, marks=pytest.mark.exhaustive)])
@pytest.mark.timeout(600)
def test_a_pattern_finds_where_it_was_cut_and_a_planted_break_is_named_first(breaks: int) -> None:
    counts = check(PATHS, breaks)
    assert counts.lost == []
    assert counts.planted.total() == breaks
    assert len(counts.planted) == 6
    assert len(counts.unnamed) <= counts.planted.total() * 0.05, counts.unnamed
