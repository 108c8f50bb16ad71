"""Sets from which nothing can be taken: found by leaving out ever smaller pieces.

The reduction to complements of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002).
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

MOST: Final = 10_000
"""Evaluations after which a search gives up."""


class Found(NamedTuple):
    """What a search came to."""

    items: tuple[int, ...]
    """Positions that are left, in their order."""
    evaluations: int
    is_minimal: bool
    """Whether every single one of them is needed; else the search gave up before it knew."""


def minimal(count: int, is_enough: Callable[[frozenset[int]], bool], most: int = MOST) -> Found | None:
    """Positions that are enough, and of which no single one can be left out; None where not even all are enough.

    For ``k`` positions that are needed of ``n``, about ``2 k log2(n / k)`` evaluations. It takes nothing for granted:
    a set may be enough where a greater one is not.

    Args:
        count: how many positions there are, from 0.
        is_enough: evaluates a set; the same set is evaluated once.
        most: evaluations after which it gives what it has.
    """
    known: dict[frozenset[int], bool] = {}

    def evaluated(items: Sequence[int]) -> bool:
        key = frozenset(items)
        if key not in known:
            known[key] = is_enough(key)
        return known[key]

    left = list(range(count))
    if evaluated(()):
        return Found((), len(known), is_minimal=True)
    if not evaluated(left):
        return None
    piece = max(len(left) // 2, 1)
    while True:
        is_changed = False
        place = 0
        while place < len(left):
            if len(known) >= most:
                return Found(tuple(left), len(known), is_minimal=False)
            rest = left[:place] + left[place + piece :]
            if evaluated(rest):
                left, is_changed = rest, True
            else:
                place += piece
        if piece == 1 and not is_changed:
            return Found(tuple(left), len(known), is_minimal=True)
        piece = max(piece // 2, 1)


__all__ = ["MOST", "Found", "minimal"]
