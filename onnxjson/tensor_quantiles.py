"""How the elements of a tensor are spread: quantiles, and how many different whole numbers there are.

Up to `MOST` elements all are looked at; of more, every n-th one, so that memory stays flat. numpy is imported on first
use.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnxjson.document import Tensor
from onnxjson.elements import element_count
from onnxjson.tensor_statistics import number_arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST: Final = 1 << 21
"""Elements that are sorted (16 MiB of them)."""

QUANTILES: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

_MOST_DISTINCT: Final = 4096


class Spread(NamedTuple):
    """Of numbers (for complex ones: of their magnitudes; for bools: of 0 and 1)."""

    quantiles: tuple[tuple[float, float], ...]
    """Shares from 0 to 1 and the value below which that share of the finite elements lies; between two elements the
    value is on the line between them. None where nothing is finite."""
    looked_at: int
    """Elements that these are about."""
    elements: int
    distinct: int | None
    """How many different whole numbers there are, in all elements; None for fractions, and where they are too many."""

    @property
    def is_exact(self) -> bool:
        """Whether every element was looked at."""
        return self.looked_at == self.elements


def spread(
    tensor: Tensor,
    shares: Sequence[float] = QUANTILES,
    *,
    most: int = MOST,
    looked: Callable[[], None] | None = None,
) -> Spread:
    """The spread of a tensor of numbers whose elements stand in ``raw_data``, as many as its dims need.

    Args:
        tensor: the tensor.
        shares: which quantiles are wanted, each from 0 to 1.
        most: elements that are looked at.
        looked: is called before each piece, and may raise to end it.

    Raises:
        ChangedUnderneathError, FileError, WeightsMissingError: the bytes cannot be read.
    """
    import numpy

    count = element_count(tensor.dims)
    step = max(-(-count // most), 1)
    kept: list[NDArray[Any]] = []
    distinct: set[int] | None = set()
    skip = seen = 0
    for array in number_arrays(tensor, looked):
        part = array[skip::step]
        seen += part.size
        skip = (skip - array.size) % step
        if array.dtype.kind not in "iu":
            distinct = None
        elif distinct is not None:
            distinct |= set(numpy.unique(array).tolist())
            distinct = distinct if len(distinct) <= _MOST_DISTINCT else None
        numbers = part.astype(numpy.float64)
        kept.append(numbers[numpy.isfinite(numbers)])
    sample = numpy.concatenate(kept) if kept else numpy.zeros(0)
    found = numpy.quantile(sample, shares).tolist() if sample.size else []
    return Spread(
        tuple(zip(shares, found, strict=False)), seen, count, None if distinct is None or not count else len(distinct)
    )
