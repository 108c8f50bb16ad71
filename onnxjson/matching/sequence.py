"""Alignment of sequences: where labels repeat, order decides (Myers, "An O(ND) difference algorithm", 1986)."""

from typing import Final

import numpy as np

from onnxjson.matching.columns import Integers, Words

_FEWEST_EDITS: Final = 16


def common_subsequence(base: Words, target: Words, most_edits: int) -> tuple[Integers, Integers]:
    """Positions of a longest common subsequence of two sequences of labels, as two rising lists.

    Args:
        base: labels.
        target: labels.
        most_edits: so many labels that are in one sequence alone are weighed against each other; with more, the
            result is that of one stretch after the other, and may not be the longest.

    Returns:
        positions in `base` and in `target`, of equal labels.
    """
    start = _common(base, target)
    rest = _common(base[start:][::-1], target[start:][::-1])
    inner, its_inner = base[start : len(base) - rest], target[start : len(target) - rest]
    runs = [(0, 0, start)]
    x = y = 0
    most = most_edits
    while x < len(inner) and y < len(its_inner):
        found, (width, height) = _myers(inner[x:], its_inner[y:], most)
        runs += [(start + x + here, start + y + there, n) for here, there, n in found]
        x, y = x + width, y + height
        # Where little is common, nothing is gained by weighing long stretches against each other.
        common = sum([n for _, _, n in found])
        most = most_edits if 2 * common > max(width, height) else max(most // 2, _FEWEST_EDITS)
    runs.append((len(base) - rest, len(target) - rest, rest))
    here = [np.arange(x, x + n) for x, _, n in runs]
    there = [np.arange(y, y + n) for _, y, n in runs]
    return np.concatenate(here), np.concatenate(there)


def _common(base: Words, target: Words) -> int:
    """The length of the common beginning."""
    count = min(len(base), len(target))
    done, step = 0, 8
    while done < count:
        end = min(done + step, count)
        differ = base[done:end] != target[done:end]
        if differ.any():
            return done + int(differ.argmax())
        done, step = end, step * 8
    return count


def _myers(base: Words, target: Words, most_edits: int) -> tuple[list[tuple[int, int, int]], tuple[int, int]]:
    """Runs (position in base, in target, length) of a longest common subsequence, and how far both were read."""
    width, height = len(base), len(target)
    rounds: list[dict[int, int]] = []
    best = (-1, 0, 0)
    for edits in range(min(most_edits, width + height) + 1):
        reached: dict[int, int] = {}
        for diagonal in range(-edits, edits + 1, 2):
            begin = _begin(rounds[-1], diagonal, width, height)[0] if edits else 0
            if begin < 0:
                continue
            x, y = begin, begin - diagonal
            if x < width and y < height and base[x] == target[y]:
                x += _common(base[x:], target[y:])
            reached[diagonal] = x
            best = max(best, (2 * x - diagonal, -edits, diagonal))
            if x == width and x - diagonal == height:
                return _trace([*rounds, reached], diagonal, width, height), (width, height)
        rounds.append(reached)
    x = rounds[-best[1]][best[2]]
    return _trace(rounds[: 1 - best[1]], best[2], width, height), (x, x - best[2])


def _begin(before: dict[int, int], diagonal: int, width: int, height: int) -> tuple[int, int]:
    """Where the last round brings a diagonal to, -1 for nowhere, and the diagonal that it comes from."""
    left, up = before.get(diagonal - 1, -1), before.get(diagonal + 1, -1)
    across = left + 1 if 0 <= left < width else -1
    down = up if up >= 0 and up - diagonal <= height else -1
    return (down, diagonal + 1) if down >= across else (across, diagonal - 1)


def _trace(rounds: list[dict[int, int]], diagonal: int, width: int, height: int) -> list[tuple[int, int, int]]:
    """The runs on the way to where the last round brings a diagonal."""
    runs = []
    for edits in range(len(rounds) - 1, -1, -1):
        x = rounds[edits][diagonal]
        begin, previous = _begin(rounds[edits - 1], diagonal, width, height) if edits else (0, 0)
        if x > begin:
            runs.append((begin, begin - diagonal, x - begin))
        diagonal = previous
    runs.reverse()
    return runs
