"""The rank of a change of a matrix: how many of its singular values explain it, as after training of adapters."""

from typing import Final

from onnxjson.diffing.events import Detail
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
    cost = f"read twice, {4e-9 * rows * columns * len(small):.2g} GFLOP"
    return [Detail("rank of the change", None, f"{rank} explains {min(shares[rank - 1], 1) * 100:.4g} % ({cost})")]
