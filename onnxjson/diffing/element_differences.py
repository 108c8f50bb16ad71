"""The elements of two constants side by side, in pieces, so that memory stays flat: differences, order, layout."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from onnxjson import elements, tensors
from onnxjson.document import Tensor
from onnxjson.names import BOOL, COMPLEX
from onnxjson.payloads import Data, even_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Measure:
    """What the elements of two constants are like, side by side."""

    def __init__(self, rtol: float, atol: float) -> None:
        self.count = self.changed = self.odd = 0
        """All elements; those that are not the same; those of them of which one is not finite."""
        self.absolute = self.relative = 0.0
        self.zeros = [0, 0]
        self.beyond = 0
        """Elements that are further from each other than the tolerance allows."""
        self._rtol = rtol
        self._atol = atol

    def add(self, one: "NDArray[Any]", other: "NDArray[Any]") -> None:
        """The next elements of both, the same number."""
        import numpy

        self.count += one.size
        self.zeros[0] += int(one.size - numpy.count_nonzero(one))
        self.zeros[1] += int(other.size - numpy.count_nonzero(other))
        differs = (one != other) & ~((one != one) & (other != other))
        changed = numpy.flatnonzero(differs)
        self.changed += changed.size
        if not changed.size:
            return
        before, after = one[changed], other[changed]
        finite = numpy.isfinite(before) & numpy.isfinite(after)
        self.odd += int(changed.size - numpy.count_nonzero(finite))
        # Integers of 64 bits are more than float64 can tell apart.
        is_long = before.dtype.kind in "iu" and before.dtype.itemsize == 8
        wide = numpy.complex128 if before.dtype.kind == "c" else numpy.longdouble if is_long else numpy.float64
        before, after = before[finite].astype(wide), after[finite].astype(wide)
        if not before.size:
            return
        gaps = numpy.abs(after - before)
        self.absolute = max(self.absolute, float(gaps.max()))
        size = numpy.abs(before)
        known = size > 0
        if known.any():
            self.relative = max(self.relative, float((gaps[known] / size[known]).max()))
        self.beyond += int(numpy.count_nonzero(gaps > self._atol + self._rtol * size))

    @property
    def is_within(self) -> bool:
        """Whether all elements are as near as the tolerance allows."""
        return not self.odd and not self.beyond


def measure(one: Tensor, other: Tensor, data: Data, its: Data, rtol: float = 0.0, atol: float = 0.0) -> Measure:
    """Compare the elements of two constants with as many of them, as ``raw_data`` holds them."""
    import numpy

    measure = Measure(rtol, atol)
    with numpy.errstate(all="ignore"):
        for before, after in _side_by_side(arrays(one, data), arrays(other, its)):
            measure.add(before, after)
    return measure


def _side_by_side(
    ones: "Iterator[NDArray[Any]]", others: "Iterator[NDArray[Any]]"
) -> "Iterator[tuple[NDArray[Any], NDArray[Any]]]":
    """Both in pieces of the same lengths, however they come."""
    import numpy

    left: NDArray[Any] = numpy.empty(0)
    right: NDArray[Any] = numpy.empty(0)
    while True:
        left = left if left.size else next(ones, left)
        right = right if right.size else next(others, right)
        count = min(left.size, right.size)
        if not count:
            return
        yield left[:count], right[:count]
        left, right = left[count:], right[count:]


def arrays(tensor: Tensor, data: Data) -> "Iterator[NDArray[Any]]":
    """The elements as numbers that numpy compares and subtracts: float64, or integers as they are."""
    import numpy

    data_type = tensor.data_type or 0
    for array in _pieces(data_type, data, elements.element_count(tensor.dims)):
        if data_type in COMPLEX:
            yield array
        elif data_type == BOOL:
            yield array.astype(numpy.int64)
        elif array.dtype.kind in "iu":
            yield array
        else:
            small_integers = array.dtype.name in ("int2", "uint2", "int4", "uint4")
            yield array.astype(numpy.int64 if small_integers else numpy.float64)


def _pieces(data_type: int, data: Data, count: int) -> "Iterator[NDArray[Any]]":
    size = elements.BITS[data_type]
    for piece in even_pieces(data):
        here = min(count, len(piece) * 8 // size)
        count -= here
        yield tensors.to_numpy(Tensor(dims=(here,), data_type=data_type, raw_data=piece))


def sketch(data: Data, data_type: int) -> int:
    """A number that is the same for the same elements in any order: the sum of 64-bit mixes of their bits."""
    import numpy

    from onnxjson.matching.labels import mix  # which loads numpy

    size = elements.BITS[data_type]
    word = f"<u{size // 8}" if size in (8, 16, 32, 64) else "<u8" if size == 128 else "<u1"
    total = numpy.uint64(0)
    with numpy.errstate(over="ignore"):
        for piece in even_pieces(data):
            words = numpy.frombuffer(piece, word).astype(numpy.uint64)
            total += mix(words + numpy.uint64(0x9E3779B97F4A7C15)).sum(dtype=numpy.uint64)
    return int(total)


_MOST_PERMUTED: Final = 1 << 24
"""Elements up to which a transposition is looked for."""


def permutation(one: Tensor, other: Tensor, data: Data, its: Data) -> str | None:
    """The order of axes in which the elements of one are those of the other, such as ``1, 0``."""
    import itertools

    import numpy

    rank = len(one.dims)
    if not 2 <= rank <= 5 or elements.element_count(one.dims) > _MOST_PERMUTED:
        return None
    data_type = one.data_type or 0
    if elements.BITS[data_type] < 8:
        return None
    before, after = [
        numpy.concatenate(list(_pieces(data_type, each, elements.element_count(tensor.dims)))).reshape(tensor.dims)
        for tensor, each in ((one, data), (other, its))
    ]
    bits = f"V{before.dtype.itemsize}"
    for axes in itertools.permutations(range(rank)):
        if tuple(one.dims[axis] for axis in axes) == other.dims and axes != tuple(range(rank)):
            moved = numpy.ascontiguousarray(before.transpose(axes))
            if moved.view(bits).tobytes() == after.tobytes():
                return ", ".join(map(str, axes))
    return None
