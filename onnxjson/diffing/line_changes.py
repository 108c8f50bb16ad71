"""Find the changed lines of two texts; runs of a longest common subsequence, for texts and for labels of nodes.

Common lines at the start and end are removed first, then lines that only one text has. Of the rest, lines that are
unique in both texts are anchors (Bram Cohen's patience diff); the stretches between anchors are treated in the same
way. A stretch without anchors is searched for a longest common subsequence (Myers, "An O(ND) Difference Algorithm",
1986). Work is counted, not timed: stretches beyond the limit count as replaced, so the result is the same everywhere.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_WORK_A_LINE: Final = 8

_MIN_WORK: Final = 2_000_000
"""Number of steps allowed, in addition to those for each line; a step is about one comparison of two lines."""

_MAX_EDITS: Final = 200
"""Maximum number of edits in one search for a longest common subsequence."""

_MEANINGLESS: Final = re.compile(rb'\s*(?:"attribute": \{|[\[\]{},]*)')
"""Lines that every node has: if they are the only lines between two changes, the changes are joined."""


class CommonRun(NamedTuple):
    """Equal members of two sequences, one after the other."""

    base: int
    target: int
    length: int


class CommonRuns(NamedTuple):
    """The result of one search."""

    runs: list[CommonRun]
    base_end: int
    """The position in the base up to which the search read; less than its length after too many edits."""
    target_end: int
    work: int
    """Number of steps, roughly the number of comparisons."""


def find_common_runs(
    base: Sequence[int], target: Sequence[int], max_edits: int, base_start: int = 0, target_start: int = 0
) -> CommonRuns:
    """Find the runs of a longest common subsequence, from two start positions to the ends or until `max_edits` edits.

    After `max_edits` edits the result is the best path so far: the one that reads most of both sequences.
    """
    base_length, target_length = len(base), len(target)
    width, height = base_length - base_start, target_length - target_start
    rounds: list[dict[int, int]] = []
    best_sum, best_edits, best_diagonal = -1, 0, 0
    work = 0
    for edits in range(min(max_edits, width + height) + 1):
        reached: dict[int, int] = {}
        before = rounds[-1] if rounds else {}
        for diagonal in range(-edits, edits + 1, 2):
            x = _start_on(before, diagonal, width, height)[0] if edits else 0
            if x < 0:
                continue
            base_at, target_at = base_start + x, target_start + x - diagonal
            if base_at < base_length and target_at < target_length and base[base_at] == target[target_at]:
                length = common_length(base, target, base_at, target_at)
                x += length
                work += length
            reached[diagonal] = x
            if 2 * x - diagonal > best_sum or (2 * x - diagonal == best_sum and edits == best_edits):
                best_sum, best_edits, best_diagonal = 2 * x - diagonal, edits, diagonal
            if x == width and x - diagonal == height:
                runs = _trace([*rounds, reached], diagonal, width, height, base_start, target_start)
                return CommonRuns(runs, base_length, target_length, work + edits)
        work += edits + 1
        rounds.append(reached)
    x = rounds[best_edits][best_diagonal]
    runs = _trace(rounds[: best_edits + 1], best_diagonal, width, height, base_start, target_start)
    return CommonRuns(runs, base_start + x, target_start + x - best_diagonal, work)


def common_length(base: Sequence[object], target: Sequence[object], base_start: int, target_start: int) -> int:
    """Return the number of equal members from two start positions on."""
    count = min(len(base) - base_start, len(target) - target_start)
    done, step = 0, 1
    while done < count:
        end = min(done + step, count)
        if base[base_start + done : base_start + end] == target[target_start + done : target_start + end]:
            done, step = end, step * 8
        elif step == 1:
            break
        else:
            step //= 8
    return done


def _start_on(before: dict[int, int], diagonal: int, width: int, height: int) -> tuple[int, int]:
    """Return where the last round enters a diagonal, -1 for nowhere, and the diagonal that it comes from."""
    left, up = before.get(diagonal - 1, -1), before.get(diagonal + 1, -1)
    across = left + 1 if 0 <= left < width else -1
    down = up if up >= 0 and up - diagonal <= height else -1
    return (down, diagonal + 1) if down >= across else (across, diagonal - 1)


def _trace(
    rounds: list[dict[int, int]], diagonal: int, width: int, height: int, base_start: int, target_start: int
) -> list[CommonRun]:
    """Return the runs on the path to the point that the last round reached on a diagonal."""
    runs = []
    for edits in range(len(rounds) - 1, -1, -1):
        x = rounds[edits][diagonal]
        start, previous = _start_on(rounds[edits - 1], diagonal, width, height) if edits else (0, 0)
        if x > start:
            runs.append(CommonRun(base_start + start, target_start + start - diagonal, x - start))
        diagonal = previous
    runs.reverse()
    return runs


class LineChange(NamedTuple):
    """Lines `old_start` to `old_end` are replaced by `new_start` to `new_end`; counted from 0, ends excluded.

    One of the two ranges may be empty.
    """

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def changes(old: Sequence[bytes], new: Sequence[bytes]) -> list[LineChange]:
    """Return the changes between two texts, in order, with at least one common line between two changes."""
    return _moved_to_blocks(_without_meaningless_matches(_LineMatcher(old, new).changes(), old), old, new)


class _Stretch(NamedTuple):
    old_start: int
    old_end: int
    new_start: int
    new_end: int


class _LineMatcher:
    def __init__(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        start = common_length(old, new, 0, 0)
        end = common_length(old[start:][::-1], new[start:][::-1], 0, 0)
        numbers: dict[bytes, int] = {}
        old_numbers = [numbers.setdefault(line, len(numbers)) for line in old[start : len(old) - end]]
        new_numbers = [numbers.setdefault(line, len(numbers)) for line in new[start : len(new) - end]]
        in_old, in_new = set(old_numbers), set(new_numbers)
        self._old_changed = bytearray(b"\1") * len(old)
        self._new_changed = bytearray(b"\1") * len(new)
        for flags in (self._old_changed, self._new_changed):
            flags[:start] = bytes(start)
            flags[len(flags) - end :] = bytes(end)
        # Positions and numbers of the lines that exist in both texts.
        self._old_places = [start + at for at, number in enumerate(old_numbers) if number in in_new]
        self._new_places = [start + at for at, number in enumerate(new_numbers) if number in in_old]
        self._old = [number for number in old_numbers if number in in_new]
        self._new = [number for number in new_numbers if number in in_old]
        self._work = _MIN_WORK + _WORK_A_LINE * (len(self._old) + len(self._new))

    def changes(self) -> list[LineChange]:
        """Return the changes before the corrections that make them readable."""
        pending = [_Stretch(0, len(self._old), 0, len(self._new))]
        while pending:
            part = self._trimmed(pending.pop())
            if part.old_start == part.old_end or part.new_start == part.new_end:
                continue
            self._work -= part.old_end - part.old_start + part.new_end - part.new_start
            if self._work > 0:
                pending += self._anchored(part) or self._searched(part)
        return list(self._collected())

    def _trimmed(self, part: _Stretch) -> _Stretch:
        old_start, old_end, new_start, new_end = part
        while old_start < old_end and new_start < new_end and self._old[old_start] == self._new[new_start]:
            self._same(old_start, new_start)
            old_start, new_start = old_start + 1, new_start + 1
        while old_start < old_end and new_start < new_end and self._old[old_end - 1] == self._new[new_end - 1]:
            old_end, new_end = old_end - 1, new_end - 1
            self._same(old_end, new_end)
        return _Stretch(old_start, old_end, new_start, new_end)

    def _same(self, old: int, new: int) -> None:
        self._old_changed[self._old_places[old]] = 0
        self._new_changed[self._new_places[new]] = 0

    def _anchored(self, part: _Stretch) -> list[_Stretch]:
        """Return the parts between lines that are unique on both sides, in the same order; none without such lines."""
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
            parts.append(_Stretch(old_start, old_at, new_start, new_at))
            old_start, new_start = old_at + 1, new_at + 1
        parts.append(_Stretch(old_start, part.old_end, new_start, part.new_end))
        return parts

    def _searched(self, part: _Stretch) -> list[_Stretch]:
        """Mark the lines of a longest common subsequence as equal; return the rest of a part with too many edits."""
        old = self._old[part.old_start : part.old_end]
        new = self._new[part.new_start : part.new_end]
        common = find_common_runs(old, new, _MAX_EDITS)
        self._work -= common.work
        for base, target, length in common.runs:
            for at in range(length):
                self._same(part.old_start + base + at, part.new_start + target + at)
        return [
            _Stretch(part.old_start + common.base_end, part.old_end, part.new_start + common.target_end, part.new_end)
        ]

    def _collected(self) -> Iterator[LineChange]:
        old_flags, new_flags = self._old_changed, self._new_changed
        old_at = new_at = 0
        while old_at < len(old_flags) or new_at < len(new_flags):
            old_end, new_end = _next(old_flags, 0, old_at), _next(new_flags, 0, new_at)
            if old_end > old_at or new_end > new_at:
                yield LineChange(old_at, old_end, new_at, new_end)
            same = min(_next(old_flags, 1, old_end) - old_end, _next(new_flags, 1, new_end) - new_end)
            old_at, new_at = old_end + same, new_end + same


def _next(flags: bytearray, flag: int, start: int) -> int:
    found = flags.find(flag, start)
    return len(flags) if found < 0 else found


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest subsequence with rising first members; the second members already rise."""
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


def _without_meaningless_matches(changes: Sequence[LineChange], old: Sequence[bytes]) -> list[LineChange]:
    """Join changes that both replace lines if only meaningless lines are between them."""
    joined: list[LineChange] = []
    for change in changes:
        if joined and _belong_together(joined[-1], change, old):
            change = LineChange(joined[-1].old_start, change.old_end, joined.pop().new_start, change.new_end)
        joined.append(change)
    return joined


def _belong_together(one: LineChange, next_one: LineChange, old: Sequence[bytes]) -> bool:
    between = old[one.old_end : next_one.old_start]
    return (
        len(between) <= 3
        and all(change.old_start < change.old_end and change.new_start < change.new_end for change in (one, next_one))
        and all(_MEANINGLESS.fullmatch(line) for line in between)
    )


def _moved_to_blocks(changes: Sequence[LineChange], old: Sequence[bytes], new: Sequence[bytes]) -> list[LineChange]:
    """Move insertions and deletions that fit in several places to the place where they begin with a block."""
    moved: list[LineChange] = []
    for at, change in enumerate(changes):
        before = moved[-1].old_end if moved else -1
        after = changes[at + 1].old_start if at + 1 < len(changes) else len(old) + 1
        up = change.old_start - before - 1
        down = after - change.old_end - 1
        if change.old_start == change.old_end:
            shift = _shift(new, change.new_start, change.new_end, up, down)
        elif change.new_start == change.new_end:
            shift = _shift(old, change.old_start, change.old_end, up, down)
        else:
            shift = 0
        moved.append(LineChange(*(place + shift for place in change)))
    return moved


def _shift(lines: Sequence[bytes], start: int, end: int, up: int, down: int) -> int:
    """Return the number of lines to move a run so that it begins with a block, the least if several, else 0."""
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
