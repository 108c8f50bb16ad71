"""The rank of a change of a matrix: how many of its singular values explain it, as after training of adapters.

The change is read twice, some rows at a time, and projected to a few random directions (Halko, Martinsson and Tropp,
2011); memory is that of the directions.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from onnxjson.diffing.events import Detail

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DIRECTIONS: Final = 72
_MOST: Final = 64
"""Greatest rank that is reported; more directions than that make it exact."""
_SHARE: Final = 0.999

Pairs = Callable[[], "Iterator[tuple[NDArray[Any], NDArray[Any]]]"]
"""Function that reads a matrix before and after, in flat pieces of equal size."""


def rank_details(shape: tuple[int, ...], pairs: Pairs) -> list[Detail]:
    """Return how many singular values of a change explain 99.9 % of its squares, and the cost; none if not finite."""
    import numpy

    rows, columns = shape
    count = min(_DIRECTIONS, rows, columns)
    if not count:
        return []
    sample, energy = numpy.zeros((rows, count)), 0.0
    directions = numpy.random.default_rng(0).standard_normal((columns, count))
    for start, part in _rows(pairs, columns):
        sample[start : start + len(part)] = part @ directions
        energy += float((part * part).sum())
    if not numpy.isfinite(energy) or not energy:
        return []
    basis = numpy.linalg.qr(sample)[0]
    small = numpy.zeros((count, columns))
    for start, part in _rows(pairs, columns):
        small += basis[start : start + len(part)].T @ part
    shares = numpy.cumsum(numpy.linalg.svd(small, compute_uv=False) ** 2) / energy
    enough = numpy.flatnonzero(shares[:_MOST] >= _SHARE)
    rank = int(enough[0]) + 1 if enough.size else min(_MOST, count)
    cost = f"read twice, {4e-9 * rows * columns * count:.2g} GFLOP"
    return [Detail("rank of the change", None, f"{rank} explains {min(shares[rank - 1], 1) * 100:.4g} % ({cost})")]


def _rows(pairs: Pairs, columns: int) -> "Iterator[tuple[int, NDArray[Any]]]":
    """Yield whole rows of the change with the number of the first."""
    import numpy

    left: NDArray[Any] = numpy.zeros(0)
    start = 0
    for before, after in pairs():
        left = numpy.concatenate([left, after.astype(numpy.float64) - before.astype(numpy.float64)])
        whole = left.size // columns
        if whole:
            yield start, left[: whole * columns].reshape(whole, columns)
        start, left = start + whole, left[whole * columns :]
