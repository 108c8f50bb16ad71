"""Rank of the change of a matrix: the number of singular values that explain it, such as for a trained adapter."""

from typing import Final

from onnxjson.diffing.events import RANK, Detail
from onnxjson.model.limits import PATCH_RANK
from onnxjson.patching.factors import Pairs, decomposed

_SHARE: Final = 0.999


def rank_details(shape: tuple[int, ...], pairs: Pairs) -> list[Detail]:
    """Return how many singular values of a change explain 99.9 % of its squares, and the cost; none if not finite."""
    import numpy

    rows, columns = shape
    if not rows * columns:
        return []
    _, small, energy = decomposed((rows, columns), pairs)
    if not numpy.isfinite(energy) or not energy:
        return []
    shares = numpy.cumsum(numpy.linalg.svd(small, compute_uv=False) ** 2) / energy
    enough = numpy.flatnonzero(shares[:PATCH_RANK] >= _SHARE)
    rank = int(enough[0]) + 1 if enough.size else min(PATCH_RANK, len(small))
    share = float(shares[rank - 1])
    percent = 100.0 if share > 1 - 1e-9 else int(share * 1e4) / 100  # rounded down, so that 100 means all
    words = "explains" if enough.size else "explains at least"
    cost = f"read twice, {4e-9 * rows * columns * len(small):.2g} GFLOP"
    return [Detail(RANK, None, f"{rank} {words} {percent:.4g} % ({cost})")]
