"""``diffing.common_runs``, checked against dynamic programming."""

import itertools
import random

import pytest

from onnxjson.diffing.line_changes import common_length, find_common_runs


def longest(base: list[int], target: list[int]) -> int:
    """The length of a longest common subsequence, by dynamic programming."""
    row = [0] * (len(target) + 1)
    for one in base:
        before = list(row)
        for place, other in enumerate(target):
            row[place + 1] = before[place] + 1 if one == other else max(row[place], before[place + 1])
    return row[-1]


def sequences(seed: int) -> tuple[list[int], list[int]]:
    chance = random.Random(seed)
    letters = chance.choice([2, 5, 20])
    return (
        [chance.randrange(letters) for _ in range(chance.randrange(30))],
        [chance.randrange(letters) for _ in range(chance.randrange(30))],
    )


def test_runs_are_equal_ascending_and_as_long_as_possible() -> None:
    for seed in range(500):
        base, target = sequences(seed)
        runs = find_common_runs(base, target, 100)
        assert (runs.base_end, runs.target_end) == (len(base), len(target))
        for run in runs.runs:
            assert base[run.base : run.base + run.length] == target[run.target : run.target + run.length]
        for one, other in itertools.pairwise(runs.runs):
            assert one.base + one.length <= other.base
            assert one.target + one.length <= other.target
        assert sum(run.length for run in runs.runs) == longest(base, target), seed


@pytest.mark.parametrize("max_edits", [1, 3, 8])
def test_a_search_that_is_cut_off_goes_on_where_it_ended(max_edits: int) -> None:
    for seed in range(200):
        base, target = sequences(seed)
        x = y = 0
        while x < len(base) and y < len(target):
            runs = find_common_runs(base, target, max_edits, x, y)
            assert runs.base_end + runs.target_end > x + y
            for run in runs.runs:
                assert x <= run.base <= run.base + run.length <= runs.base_end
                assert y <= run.target <= run.target + run.length <= runs.target_end
                assert base[run.base : run.base + run.length] == target[run.target : run.target + run.length]
            x, y = runs.base_end, runs.target_end


def test_common_length_ends_at_the_first_difference() -> None:
    base = list(range(1000))
    for place in (0, 1, 7, 8, 9, 72, 73, 511, 999):
        target = [*base[:place], -1, *base[place + 1 :]]
        assert common_length(base, target, 0, 0) == place
    assert common_length(base, base, 5, 5) == 995
    assert common_length(base, base, 5, 6) == 0
