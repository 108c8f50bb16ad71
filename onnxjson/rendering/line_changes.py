"""Which lines of one text became which lines of another.

Lines that both texts begin and end with are taken off first. Lines that only one text has need no partner. Of the rest,
lines that stand once in each text are anchors (Bram Cohen's patience diff); between two anchors the same again, and
where there is none, the shortest way of deleting and inserting (Myers, "An O(ND) Difference Algorithm and Its
Variations", 1986, in linear space). Work is counted, not timed: what would take too much of it counts as replaced, so
the result is the same on every machine.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_WORK_A_LINE: Final = 8
_LEAST_WORK: Final = 2_000_000
"""Steps that are allowed: comparisons of two lines, roughly."""

_MOST_EDITS: Final = 100
"""Edits from each end after which the search for the shortest way takes the best that it has."""

_SAYS_NOTHING: Final = re.compile(rb'\s*(?:"attribute": \{|[\[\]{},]*)')
"""Lines that stand in every node: as the only ones between two changes, they would tear one change into two."""


class Change(NamedTuple):
    """Lines `old_start` to `old_end` of the one text stand as `new_start` to `new_end` in the other; from 0, half-open.

    One of the two ranges may be empty.
    """

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changes(old: Sequence[bytes], new: Sequence[bytes]) -> list[Change]:
    """What differs between two texts, in order; between two changes stands at least one line that both have."""
    return _moved_to_block_starts(_without_meaningless_matches(_Comparison(old, new).changes(), old), old, new)


class _Part(NamedTuple):
    """Ranges of the numbered lines of both texts."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class _Comparison:
    """Finds for each line whether it is changed."""

    def __init__(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        start = _common_start(old, new)
        end = _common_end(old, new, start)
        numbers: dict[bytes, int] = {}
        old_numbers = [numbers.setdefault(line, len(numbers)) for line in old[start : len(old) - end]]
        new_numbers = [numbers.setdefault(line, len(numbers)) for line in new[start : len(new) - end]]
        in_old, in_new = set(old_numbers), set(new_numbers)
        self._old_changed = bytearray(b"\1") * len(old)
        self._new_changed = bytearray(b"\1") * len(new)
        for flags in (self._old_changed, self._new_changed):
            flags[:start] = bytes(start)
            flags[len(flags) - end :] = bytes(end)
        # Where the lines that have a partner stand, and their numbers.
        self._old_places = [start + at for at, number in enumerate(old_numbers) if number in in_new]
        self._new_places = [start + at for at, number in enumerate(new_numbers) if number in in_old]
        self._old = [number for number in old_numbers if number in in_new]
        self._new = [number for number in new_numbers if number in in_old]
        self._work = _LEAST_WORK + _WORK_A_LINE * (len(self._old) + len(self._new))

    def changes(self) -> list[Change]:
        """See the module's `changes`; with all matches, wherever they stand."""
        pending = [_Part(0, len(self._old), 0, len(self._new))]
        while pending:
            part = self._trimmed(pending.pop())
            if part.old_start == part.old_end or part.new_start == part.new_end:
                continue
            self._work -= part.old_end - part.old_start + part.new_end - part.new_start
            if self._work > 0:
                pending += self._anchored(part) or self._halved(part)
        return list(self._collected())

    def _trimmed(self, part: _Part) -> _Part:
        """`part` without the lines that both sides begin and end with; those are found to be the same."""
        old, new = self._old, self._new
        old_start, old_end, new_start, new_end = part
        while old_start < old_end and new_start < new_end and old[old_start] == new[new_start]:
            self._same(old_start, new_start)
            old_start += 1
            new_start += 1
        while old_start < old_end and new_start < new_end and old[old_end - 1] == new[new_end - 1]:
            old_end -= 1
            new_end -= 1
            self._same(old_end, new_end)
        return _Part(old_start, old_end, new_start, new_end)

    def _same(self, old: int, new: int) -> None:
        self._old_changed[self._old_places[old]] = 0
        self._new_changed[self._new_places[new]] = 0

    def _anchored(self, part: _Part) -> list[_Part]:
        """The parts between lines that stand once on each side and in the same order; none without such lines."""
        old = self._old[part.old_start : part.old_end]
        new = self._new[part.new_start : part.new_end]
        once_in_old = {number for number, count in Counter(old).items() if count == 1}
        once = {number for number, count in Counter(new).items() if count == 1 and number in once_in_old}
        if not once:
            return []
        place = {number: at for at, number in enumerate(old, part.old_start) if number in once}
        pairs = [(place[number], at) for at, number in enumerate(new, part.new_start) if number in once]
        parts = []
        old_start, new_start = part.old_start, part.new_start
        for old_at, new_at in _longest_rising(pairs):
            self._same(old_at, new_at)
            parts.append(_Part(old_start, old_at, new_start, new_at))
            old_start, new_start = old_at + 1, new_at + 1
        parts.append(_Part(old_start, part.old_end, new_start, part.new_end))
        return parts

    def _halved(self, part: _Part) -> list[_Part]:
        """Two parts that meet where a shortest way, or the best that was found, passes."""
        old_at, new_at, work = _middle(
            self._old[part.old_start : part.old_end], self._new[part.new_start : part.new_end]
        )
        self._work -= work
        # A way may lead along the far sides of the square; the nearest point inside it does as well.
        old_at = min(part.old_start + old_at, part.old_end)
        new_at = min(part.new_start + new_at, part.new_end)
        halves = [
            _Part(part.old_start, old_at, part.new_start, new_at),
            _Part(old_at, part.old_end, new_at, part.new_end),
        ]
        return [] if part in halves else halves

    def _collected(self) -> Iterator[Change]:
        old_flags, new_flags = self._old_changed, self._new_changed
        old_at = new_at = 0
        while old_at < len(old_flags) or new_at < len(new_flags):
            old_end = _run_end(old_flags, old_at)
            new_end = _run_end(new_flags, new_at)
            if old_end > old_at or new_end > new_at:
                yield Change(old_at, old_end, new_at, new_end)
            same = min(_next_change(old_flags, old_end) - old_end, _next_change(new_flags, new_end) - new_end)
            old_at, new_at = old_end + same, new_end + same


def _run_end(flags: bytearray, start: int) -> int:
    found = flags.find(0, start)
    return len(flags) if found < 0 else found


def _next_change(flags: bytearray, start: int) -> int:
    found = flags.find(1, start)
    return len(flags) if found < 0 else found


def _common_start(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    most = min(len(old), len(new))
    return next((at for at in range(most) if old[at] != new[at]), most)


def _common_end(old: Sequence[bytes], new: Sequence[bytes], start: int) -> int:
    most = min(len(old), len(new)) - start
    return next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs whose first members rise; the second ones do already."""
    ends: list[int] = []  # the smallest first member that a row of each length ends with
    ending: list[int] = []  # the pair that it belongs to
    before: list[int] = []
    for at, (first, _) in enumerate(pairs):
        length = bisect_left(ends, first)
        before.append(ending[length - 1] if length else -1)
        if length == len(ends):
            ends.append(first)
            ending.append(at)
        else:
            ends[length] = first
            ending[length] = at
    row = []
    at = ending[-1] if ending else -1
    while at >= 0:
        row.append(pairs[at])
        at = before[at]
    return row[::-1]


def _middle(old: Sequence[int], new: Sequence[int]) -> tuple[int, int, int]:
    """A point in the middle of a shortest way from one sequence to the other, and the steps that it took to find it.

    Both are not empty, and neither begin nor end alike; so the point is neither their start nor their end. After
    `_MOST_EDITS` edits from each side it is the farthest point that was reached.
    """
    old_length, new_length = len(old), len(new)
    delta = old_length - new_length
    most = min((old_length + new_length + 1) // 2, _MOST_EDITS)
    # By diagonal, the most of `old` that so many edits lead through, from the start and from the end. Lists are
    # reached around their end for diagonals below 0.
    forward = [0] * (2 * most + 3)
    backward = [0] * (2 * most + 3)
    work = 0
    for edits in range(most + 1):
        lowest, highest = -(edits - 2 * max(0, edits - new_length)), edits - 2 * max(0, edits - old_length)
        work += highest - lowest + 2
        for diagonal in range(lowest, highest + 1, 2):
            x = _next_on(forward, diagonal, edits)
            y = start = x - diagonal
            while x < old_length and y < new_length and old[x] == new[y]:
                x += 1
                y += 1
            work += y - start
            forward[diagonal] = x
            opposite = delta - diagonal
            if delta & 1 and -edits < opposite < edits and x + backward[opposite] >= old_length:
                return x, y, work
        for diagonal in range(lowest, highest + 1, 2):
            x = _next_on(backward, diagonal, edits)
            y = start = x - diagonal
            while x < old_length and y < new_length and old[-1 - x] == new[-1 - y]:
                x += 1
                y += 1
            work += y - start
            backward[diagonal] = x
            opposite = delta - diagonal
            if not delta & 1 and -edits <= opposite <= edits and x + forward[opposite] >= old_length:
                return old_length - x, new_length - y, work
    farthest = max(range(lowest, highest + 1, 2), key=lambda diagonal: 2 * forward[diagonal] - diagonal)
    return forward[farthest], forward[farthest] - farthest, work


def _next_on(reached: Sequence[int], diagonal: int, edits: int) -> int:
    """Where one more edit enters a diagonal: by an insertion from the one above, or by a deletion from that below."""
    if not edits:
        return 0
    if diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1]):
        return reached[diagonal + 1]
    return reached[diagonal - 1] + 1


def _without_meaningless_matches(found: Sequence[Change], old: Sequence[bytes]) -> list[Change]:
    """Changes joined where only lines that say nothing keep them apart and both replace lines."""
    joined: list[Change] = []
    for change in found:
        if joined and _belong_together(joined[-1], change, old):
            change = Change(joined[-1].old_start, change.old_end, joined.pop().new_start, change.new_end)
        joined.append(change)
    return joined


def _belong_together(one: Change, next_one: Change, old: Sequence[bytes]) -> bool:
    between = old[one.old_end : next_one.old_start]
    return (
        len(between) <= 3
        and all(change.old_start < change.old_end and change.new_start < change.new_end for change in (one, next_one))
        and all(_SAYS_NOTHING.fullmatch(line) for line in between)
    )


def _moved_to_block_starts(found: Sequence[Change], old: Sequence[bytes], new: Sequence[bytes]) -> list[Change]:
    """Pure insertions and deletions moved, where they fit in several places, to where they begin with a block."""
    moved: list[Change] = []
    for at, change in enumerate(found):
        before = moved[-1].old_end if moved else -1
        after = found[at + 1].old_start if at + 1 < len(found) else len(old) + 1
        up = change.old_start - before - 1
        down = after - change.old_end - 1
        if change.old_start == change.old_end:
            shift = _shift(new, change.new_start, change.new_end, up, down)
        elif change.new_start == change.new_end:
            shift = _shift(old, change.old_start, change.old_end, up, down)
        else:
            shift = 0
        moved.append(Change(*(place + shift for place in change)))
    return moved


def _shift(lines: Sequence[bytes], start: int, end: int, up: int, down: int) -> int:
    """By how many lines a run is moved so that it begins with a block; the nearest such place, else 0."""
    if _begins_block(lines[start]):
        return 0
    for shift in range(1, min(up, start) + 1):
        if lines[start - shift] != lines[end - shift]:
            break
        if _begins_block(lines[start - shift]):
            return -shift
    for shift in range(1, min(down, len(lines) - end) + 1):
        if lines[start + shift - 1] != lines[end + shift - 1]:
            break
        if _begins_block(lines[start + shift]):
            return shift
    return 0


def _begins_block(line: bytes) -> bool:
    return line.lstrip().startswith(b"{")
