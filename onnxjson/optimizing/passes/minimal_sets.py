"""Search for a minimal sufficient set of things, such as the nodes that need float32.

It is the reduction to complements of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002).
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

MOST: Final = 10_000


class Found(NamedTuple):
    """Result of a search."""

    items: tuple[int, ...]
    evaluations: int
    is_minimal: bool
    """Whether each of them is known to be needed; False if the search reached its maximum first."""


def minimal(
    count: int, is_enough: Callable[[frozenset[int]], bool], most: int = MOST, likely: Sequence[int] = ()
) -> Found | None:
    """Return positions that are sufficient and of which none can be omitted; None if all together are not sufficient.

    For ``k`` needed positions out of ``n`` it takes about ``2 k log2(n / k)`` evaluations. It does not assume that a
    superset of a sufficient set is sufficient.

    Args:
        most: maximum number of evaluations; then the best set so far is returned.
        likely: positions that are tried first; if they are sufficient, no others are looked at.
    """
    known: dict[frozenset[int], bool] = {}

    def evaluated(items: Sequence[int]) -> bool:
        key = frozenset(items)
        if key not in known:
            known[key] = is_enough(key)
        return known[key]

    left = list(likely)
    if evaluated(()):
        return Found((), len(known), is_minimal=True)
    if not left or not evaluated(left):
        left = list(range(count))
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
