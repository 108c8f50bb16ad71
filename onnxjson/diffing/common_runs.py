"""Runs of a longest common subsequence of two sequences (Myers, "An O(ND) Difference Algorithm", 1986).

Lines of texts and labels of nodes are both compared with this. The search is bounded by a number of edits, not by time,
so the result is the same on every machine.
"""

from collections.abc import Sequence
from typing import NamedTuple


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
            here, there = base_start + x, target_start + x - diagonal
            if here < base_length and there < target_length and base[here] == target[there]:
                length = common_length(base, target, here, there)
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


def common_length(base: Sequence[int], target: Sequence[int], base_start: int, target_start: int) -> int:
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
