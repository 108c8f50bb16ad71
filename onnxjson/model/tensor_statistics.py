"""Statistics of the elements of a tensor: range, mean, NaNs, histogram, quantiles; in pieces, to bound memory.

A tensor of any size is read twice where it has a histogram, 768 KiB at a time. numpy is imported on first use.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onnxjson.model import elements, tensors
from onnxjson.model.document import Tensor
from onnxjson.model.elements import element_count

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

BINS: Final = 10
"""Bins of a histogram; of whole numbers there may be fewer."""

MOST: Final = 1 << 21
"""Elements that are sorted (16 MiB of them)."""

QUANTILES: Final = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

_MOST_DISTINCT: Final = 4096


class Histogram(NamedTuple):
    """Number of finite elements in each bin; a bin includes its lower edge, the last one both edges."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


class Statistics(NamedTuple):
    """Statistics of numbers (complex: of their magnitudes; bool: of 0 and 1); None if no element is finite."""

    elements: int
    finite: int
    nan: int
    positive_infinity: int
    negative_infinity: int
    zero: int
    """Elements that are 0 or -0.0."""
    minimum: float | int | None
    maximum: float | int | None
    mean: float | None
    standard_deviation: float | None
    """Standard deviation of the population; None where float64 overflows."""
    histogram: Histogram | None
    """None where all finite elements are the same, or the range overflows float64."""


class StringStatistics(NamedTuple):
    """Statistics of strings; lengths are in bytes, None if there are no strings."""

    elements: int
    empty: int
    not_utf8: int
    shortest: int | None
    longest: int | None


def string_statistics(tensor: Tensor) -> StringStatistics:
    """Statistics of a tensor of strings."""
    lengths = [len(each) for each in tensor.string_data]
    wrong = sum(each.decode(errors="ignore").encode() != each for each in tensor.string_data)
    return StringStatistics(
        len(lengths), lengths.count(0), wrong, min(lengths, default=None), max(lengths, default=None)
    )


def statistics(tensor: Tensor, *, bins: int = BINS, looked: Callable[[], None] | None = None) -> Statistics:
    """Return statistics of a tensor of numbers with its elements in ``raw_data``, as many as its dims need.

    `looked` is called before each piece, and may raise to end it; of whole numbers there may be fewer bins.
    """
    return statistics_of(partial(number_arrays, tensor, looked), bins)


def statistics_of(arrays: "Callable[[], Iterator[NDArray[Any]]]", bins: int = BINS) -> Statistics:
    """Return statistics of numbers that are read twice, in pieces of float64 or 64-bit integers."""
    import numpy

    total = _Total()
    with numpy.errstate(all="ignore"):
        for array in arrays():
            total.add(array)
        return total.result(_histogram(arrays, total, bins))


def first_tokens(tensor: Tensor, count: int) -> list[str]:
    """Return the canonical JSON tokens of the first `count` elements, or of all if there are fewer.

    Padding bits and bools other than 0 and 1 are read as a runtime reads them. Strings have none.
    """
    tokens: list[str] = []
    for array in _elements(tensor):
        part = array[: count - len(tokens)]
        raw = tensors.from_numpy(part).raw_data
        if isinstance(raw, bytes) and tensor.data_type is not None:
            tokens += elements.tokens(tensor.data_type, raw, len(part)) or ()
        if len(tokens) >= count:
            break
    return tokens


def _elements(tensor: Tensor) -> "Iterator[NDArray[Any]]":
    return tensors.arrays(tensor.data_type or 0, tensor.raw_data or b"", math.prod(tensor.dims))


def number_arrays(tensor: Tensor, looked: Callable[[], None] | None = None) -> "Iterator[NDArray[Any]]":
    """Yield the elements in flat arrays of float64 or integers, complex ones as magnitudes, each after `looked()`."""
    data = tensor.raw_data or b""
    for array in tensors.numbers(tensor.data_type or 0, data, math.prod(tensor.dims)):
        if looked is not None:
            looked()
        yield abs(array) if array.dtype.kind == "c" else array


class _Total:
    """Totals after some pieces; means are joined as Chan, Golub and LeVeque do (1979)."""

    def __init__(self) -> None:
        self.count = self.nan = self.positive = self.negative = self.zero = self.finite = 0
        self.minimum: float | int | None = None
        self.maximum: float | int | None = None
        self.whole = True
        """Whether the elements are integers."""
        self._mean = 0.0
        self._squares = 0.0
        """Sum of the squared distances from the mean."""

    def add(self, array: "NDArray[Any]") -> None:
        """Add the next elements."""
        import numpy

        self.count += array.size
        self.zero += int(array.size - numpy.count_nonzero(array))
        self.whole = array.dtype.kind in "iu"
        if not self.whole:
            self.nan += int(numpy.count_nonzero(numpy.isnan(array)))
            self.positive += int(numpy.count_nonzero(array == math.inf))
            self.negative += int(numpy.count_nonzero(array == -math.inf))
            finite = numpy.isfinite(array)
            array = array if finite.all() else array[finite]
        if not array.size:
            return
        low, high = array.min().item(), array.max().item()
        self.minimum = low if self.minimum is None else min(self.minimum, low)
        self.maximum = high if self.maximum is None else max(self.maximum, high)
        numbers = array.astype(numpy.float64, copy=False)
        mean = float(numbers.mean())
        both = self.finite + array.size
        distance = mean - self._mean
        self._squares += float(((numbers - mean) ** 2).sum()) + distance * distance * self.finite * array.size / both
        self._mean += distance * array.size / both
        self.finite = both

    def result(self, histogram: Histogram | None) -> Statistics:
        """Return the statistics of all elements that were added."""
        deviation = math.sqrt(self._squares / self.finite) if self.finite and self._squares >= 0 else math.nan
        return Statistics(
            elements=self.count,
            finite=self.finite,
            nan=self.nan,
            positive_infinity=self.positive,
            negative_infinity=self.negative,
            zero=self.zero,
            minimum=self.minimum,
            maximum=self.maximum,
            mean=self._mean if self.finite and math.isfinite(self._mean) else None,
            standard_deviation=deviation if math.isfinite(deviation) else None,
            histogram=histogram,
        )


def _histogram(arrays: "Callable[[], Iterator[NDArray[Any]]]", total: _Total, bins: int) -> Histogram | None:
    import numpy

    low, high = total.minimum, total.maximum
    if not bins or low is None or high is None or low == high or not math.isfinite(float(high) - float(low)):
        return None
    edges = _edges(low, high, bins, is_integral=total.whole)
    if not (numpy.diff(edges) > 0).all():
        return None
    counts = numpy.zeros(len(edges) - 1, numpy.int64)
    for array in arrays():
        numbers = array.astype(numpy.float64, copy=False)
        counts += numpy.histogram(numbers[numpy.isfinite(numbers)], edges)[0]
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))


def _edges(
    low: float, high: float, bins: int, *, is_integral: bool
) -> "numpy.ndarray[Any, numpy.dtype[numpy.float64]]":
    import numpy

    if not is_integral:
        return numpy.linspace(low, high, bins + 1)
    width = -(-(int(high) - int(low) + 1) // bins)
    return numpy.array([float(edge) for edge in range(int(low), int(high) + width + 1, width)])


class Spread(NamedTuple):
    """Distribution of numbers (complex: of their magnitudes; bool: of 0 and 1)."""

    quantiles: tuple[tuple[float, float], ...]
    """Shares from 0 to 1 and the value below which that share of the finite elements lies; between two elements the
    value is on the line between them. None if no element is finite."""
    looked_at: int
    """Number of elements that were examined."""
    elements: int
    distinct: int | None
    """Number of different whole numbers among all elements; None for fractions and for too many."""

    @property
    def is_exact(self) -> bool:
        """Whether every element was examined."""
        return self.looked_at == self.elements


def spread(
    tensor: Tensor, shares: Sequence[float] = QUANTILES, *, most: int = MOST, looked: Callable[[], None] | None = None
) -> Spread:
    """Return the spread of a tensor of numbers with its elements in ``raw_data``, as many as its dims need.

    At most `most` elements are examined. `looked` is called before each piece, and may raise to end it.
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
