"""``diffing.line_changes``."""

import difflib
import itertools
import random
from collections.abc import Sequence
from typing import Any

import pytest

from onnxjson.diffing.line_changes import CommonRuns, LineChange, changes, find_common_runs
from tests.seeds import portions

LETTERS = [b"a", b"b", b"c", b"d", b"  {block", b"}},", b'"attribute": {']


def applied(old: Sequence[bytes], new: Sequence[bytes], found: Sequence[LineChange]) -> list[bytes]:
    """The old text with the changes made in it."""
    lines: list[bytes] = []
    at = 0
    for change in found:
        lines += [*old[at : change.old_start], *new[change.new_start : change.new_end]]
        at = change.old_end
    return lines + list(old[at:])


def random_texts(seed: int) -> tuple[list[bytes], list[bytes]]:
    """Two short texts: independent ones, or one with some edits."""
    chance = random.Random(seed)
    letters = LETTERS[: chance.choice([2, 4, 7])]
    old = [chance.choice(letters) for _ in range(chance.randrange(25))]
    if chance.random() < 0.5:
        return old, [chance.choice(letters) for _ in range(chance.randrange(25))]
    new = list(old)
    for _ in range(chance.randrange(5)):
        at = chance.randrange(len(new) + 1)
        new[at : at + chance.randrange(3)] = [chance.choice(letters) for _ in range(chance.randrange(3))]
    return old, new


@pytest.mark.parametrize("seeds", portions(5_000, always=1_000, size=1_000))
def test_changes_lead_from_one_text_to_the_other_and_never_touch(seeds: range) -> None:
    for seed in seeds:
        old, new = random_texts(seed)
        found = changes(old, new)
        assert applied(old, new, found) == new, seed
        for change in found:
            assert change.old_start < change.old_end or change.new_start < change.new_end
        for one, other in itertools.pairwise(found):
            assert 0 < other.old_start - one.old_end == other.new_start - one.new_end, seed


def test_no_more_is_changed_than_difflib_finds_changed_over_many_texts() -> None:
    count = theirs = 0
    for seed in range(1000):
        chance = random.Random(seed)
        old = [b"%d" % chance.randrange(12) for _ in range(30)]
        new = [line for line in old if chance.random() < 0.8]
        count += sum(change.old_end - change.old_start for change in changes(old, new))
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        theirs += sum(high - low for tag, low, high, _, _ in matcher.get_opcodes() if tag != "equal")
    assert count <= theirs


@pytest.mark.parametrize(("old", "new"), [([], []), ([b"a"], [b"a"])])
def test_equal_texts_have_no_changes(old: list[bytes], new: list[bytes]) -> None:
    assert changes(old, new) == []


def test_all_of_a_text_is_one_change_where_the_other_is_empty() -> None:
    assert changes([], [b"a", b"b"]) == [LineChange(0, 0, 0, 2)]
    assert changes([b"a", b"b"], []) == [LineChange(0, 2, 0, 0)]


def test_deleted_block_begins_where_the_block_begins() -> None:
    block = [b"  {one", b'   "attribute": {', b"   }},"]
    other = [b"  {two", b'   "attribute": {', b"   }},"]
    third = [b"  {three", b"   }},"]
    assert changes([*block, *other, *third], [*block, *third]) == [LineChange(3, 6, 3, 3)]
    assert changes([*block, *third], [*block, *other, *third]) == [LineChange(3, 3, 3, 6)]


def test_lines_of_every_node_do_not_tear_a_replaced_node_into_pieces() -> None:
    old = [b"start", b" {one", b'  "attribute": {', b"   x", b"  }},", b"end"]
    new = [b"start", b" {two", b'  "attribute": {', b"   y", b"  }},", b"end"]
    assert changes(old, new) == [LineChange(1, 4, 1, 4)]


@pytest.mark.parametrize("kind", ["three letters", "shuffled", "all new"])
def test_work_is_bounded_on_texts_that_share_lines_and_no_order(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(5)
    if kind == "three letters":
        old, new = ([chance.choice([b"a", b"b", b"c"]) for _ in range(60_000)] for _ in range(2))
    elif kind == "shuffled":
        old = [b"%d" % chance.randrange(40_000) for _ in range(60_000)]
        new = chance.sample(old, len(old))
    else:
        old, new = ([b"%d %d" % (side, at) for at in range(60_000)] for side in range(2))
    work = 0

    def searched(*sequences: Any) -> CommonRuns:
        nonlocal work
        runs = find_common_runs(*sequences)
        work += runs.work
        return runs

    monkeypatch.setattr("onnxjson.diffing.line_changes.find_common_runs", searched)
    assert applied(old, new, changes(old, new)) == new
    assert work < 2_000_000 + 10 * (len(old) + len(new))


def test_result_does_not_depend_on_earlier_calls() -> None:
    old, new = random_texts(3)
    assert changes(old, new) == changes(list(old), list(new))
