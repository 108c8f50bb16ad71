"""Comparisons of two values: how far each element differs, and whether that is within the tolerance of its dtype.

A NaN equals a NaN, an infinity the same infinity, -0.0 equals 0.0. Differences are computed in float64.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import DTYPES, WIDE_FLOATS
from onnxjson.model.tensors import to_numpy
from onnxjson.running.values import Dictionary, Value, dtype_of, leaves

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STRAY_SHARE: Final = 1e-4
"""Share of the elements that may differ by more than the tolerance, up to `_STRAY_TIMES` it."""

_STRAY_TIMES: Final = 10

_NOISE_TIMES: Final = 10
"""Multiple of the measured effect of rounding on an element that is allowed there: few runs may show little of it. The
greatest effect on any element, relative to the tolerance, is the limit for all."""

_FEW: Final = 3
"""Number of elements beside which a single great one is no mask."""

_SURROUNDING: Final = 16
"""Number of elements other than 0 that have a scale of their own; see `_surroundings`."""

_LEAST_SHARE: Final = 1e-4
"""Least scale of an element, as a share of that of its tensor."""

_WORD: Final = re.compile(r"\w+")

_ULP_TYPES: Final = frozenset(DTYPES[number].name for number in WIDE_FLOATS)
"""Dtypes whose bit patterns, read as integers, have the order of the numbers."""


class Tolerance(msgspec.Struct, frozen=True, kw_only=True):
    """Elements are close where ``|base - target| <= absolute + relative * |base| + of_scale * scale``.

    The last term allows for sums whose terms cancel: their error is proportional to the terms, not to the sum. For the
    scale of an element see `_surroundings`.
    """

    absolute: float = 0.0
    relative: float = 0.0
    of_scale: float = 0.0


EXACT: Final = Tolerance()
"""Tolerance of integers, bools and strings."""

TOLERANCES: Final[dict[str, Tolerance]] = {
    dtype.name: Tolerance(relative=dtype.relative, of_scale=dtype.of_scale)
    for dtype in DTYPES.values()
    if dtype.relative
}
"""Default tolerances by dtype. They allow for different orders of the same sums: about a hundred units of the precision
of the dtype, fewer for narrow dtypes. All other dtypes are compared exactly."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of two arrays, element by element. Figures cover elements that are finite in both, or are None."""

    elements: int
    unequal: int = 0
    outside: int = 0
    """Number of elements that differ by more than the tolerance, without `stray`."""
    stray: int = 0
    """Number of elements somewhat beyond the tolerance where nearly all are within it: a sum may cancel by chance."""
    nonfinite: int = 0
    """Number of elements that are NaN or infinite in one array and different in the other."""
    scale: float | None = None
    """Magnitude of the elements of the base: the greatest without masks."""
    largest_absolute: float | None = None
    """Maximum of ``|base - target|``."""
    largest_relative: float | None = None
    """Maximum of ``|base - target| / |base|`` where the base is not zero."""
    largest_ulp: int | None = None
    """Maximum difference in units in the last place; only for float64, float32, float16 and bfloat16 in both."""
    cosine: float | None = None
    """Cosine of the angle between the arrays as vectors; None if just one of them is all zeros."""
    worst: tuple[int, ...] | None = None
    """Index of the greatest difference, or of the first element that is finite in just one array."""
    exact: bool = False
    """Whether the elements are not floating-point numbers."""
    problem: str | None = None
    """Why the elements cannot be compared one by one; then the values are neither `equal` nor `close`."""

    @property
    def equal(self) -> bool:
        """Whether all elements are the same."""
        return self.problem is None and self.unequal == 0

    @property
    def close(self) -> bool:
        """Whether all elements are within the tolerance."""
        return self.problem is None and self.outside == 0

    @property
    def conclusive(self) -> bool:
        """Whether it says anything: arrays without elements, or NaN or infinite everywhere in both, do not."""
        has_numbers = self.elements > 0 and (self.exact or self.largest_absolute is not None)
        return self.problem is not None or self.unequal > 0 or has_numbers


def tolerance_of(
    dtypes: Iterable[str], tolerances: Mapping[str, Tolerance] = MappingProxyType(TOLERANCES)
) -> Tolerance:
    """Return the tolerance of the least precise of several types."""
    inner = [_WORD.findall(dtype)[-1:] for dtype in dtypes]
    return max([tolerances.get("".join(each), EXACT) for each in inner], key=lambda each: each.relative)


def looser(tolerances: Iterable[Tolerance]) -> Tolerance:
    """Return the greatest of each part of some tolerances."""
    compared = list(tolerances)
    return Tolerance(
        absolute=max([each.absolute for each in compared], default=0.0),
        relative=max([each.relative for each in compared], default=0.0),
        of_scale=max([each.of_scale for each in compared], default=0.0),
    )


def compare(
    base: "NDArray[Any]",
    target: "NDArray[Any]",
    tolerance: Tolerance | None = None,
    noise: "NDArray[Any] | None" = None,
) -> Comparison:
    """Compare two arrays; `noise` is how much rounding changes the elements of the base, if that is measured."""
    import numpy

    count = int(base.size)
    if base.shape != target.shape:
        shapes = f"shape {list(base.shape)} against {list(target.shape)}"
        return Comparison(elements=count, unequal=max(count, 1), outside=max(count, 1), problem=shapes)
    if base.dtype == object or target.dtype == object:
        return _exact(base, numpy.asarray(base != target, bool))
    if tolerance is None:
        tolerance = tolerance_of((base.dtype.name, target.dtype.name))
    with numpy.errstate(all="ignore"):
        if base.dtype.kind in "biu" and target.dtype.kind in "biu":
            return _integers(base, target, tolerance)
        return _floats(base, target, tolerance, noise)


def _exact(base: "NDArray[Any]", differs: "NDArray[Any]") -> Comparison:
    import numpy

    unequal = int(differs.sum())
    worst = _place(int(numpy.argmax(differs)), base.shape) if unequal else None
    return Comparison(elements=base.size, unequal=unequal, outside=unequal, worst=worst, exact=True)


def _integers(base: "NDArray[Any]", target: "NDArray[Any]", tolerance: Tolerance) -> Comparison:
    """Compare integers exactly: float64 cannot represent all 64-bit integers."""
    import numpy

    differs = base.reshape(-1) != target.reshape(-1)
    if not base.size:
        return Comparison(elements=0, exact=True)
    if not differs.any():
        return Comparison(elements=base.size, largest_absolute=0.0, largest_relative=0.0, cosine=1.0, exact=True)
    comparison = _floats(base, target, tolerance)
    unequal = int(differs.sum())
    outside = unequal if tolerance == EXACT else comparison.outside
    worst = comparison.worst if comparison.worst is not None else _place(int(numpy.argmax(differs)), base.shape)
    return msgspec.structs.replace(comparison, unequal=unequal, outside=outside, worst=worst, exact=True)


def _floats(
    base: "NDArray[Any]", target: "NDArray[Any]", tolerance: Tolerance, noise: "NDArray[Any] | None" = None
) -> Comparison:
    import numpy

    wide = numpy.complex128 if "c" in (base.dtype.kind, target.dtype.kind) else numpy.float64
    one, other = base.astype(wide).reshape(-1), target.astype(wide).reshape(-1)
    same = (one == other) | (numpy.isnan(one) & numpy.isnan(other))
    finite = numpy.isfinite(one) & numpy.isfinite(other)
    sizes = numpy.abs(one)
    gaps = numpy.where(finite, numpy.abs(one - other), 0.0)
    scale = _scale(sizes[finite & (sizes > 0)])
    allowed = tolerance.absolute + tolerance.relative * sizes
    if (gaps > allowed).any():
        around = _surroundings(numpy.where(finite & (sizes <= scale), sizes, 0.0).reshape(base.shape), scale)
        allowed += tolerance.of_scale * around.reshape(-1)
    if noise is not None:
        noise = noise.reshape(-1)
        most = float(numpy.divide(noise, allowed, where=allowed > 0, out=numpy.zeros_like(noise)).max(initial=0.0))
        allowed = numpy.maximum(allowed, numpy.minimum(_NOISE_TIMES * noise, most * allowed))
    close = same | (finite & (gaps <= allowed))
    half = ~same & ~finite
    outside, stray = int((~close).sum()), 0
    if outside <= one.size * _STRAY_SHARE and (close | (finite & (gaps <= _STRAY_TIMES * allowed))).all():
        outside, stray = 0, outside
    counted = Comparison(
        elements=one.size, unequal=int((~same).sum()), outside=outside, stray=stray, nonfinite=int(half.sum())
    )
    if not finite.any():
        worst = None if same.all() else _place(int(numpy.argmin(same)), base.shape)
        return msgspec.structs.replace(counted, worst=worst)
    ratios = gaps[finite & (sizes > 0)] / sizes[finite & (sizes > 0)]
    place = int(numpy.argmax(half)) if half.any() else int(numpy.argmax(gaps))
    return msgspec.structs.replace(
        counted,
        scale=scale,
        largest_absolute=float(gaps.max()),
        largest_relative=float(ratios.max()) if ratios.size else math.inf if gaps.any() else 0.0,
        largest_ulp=_ulp(base.reshape(-1)[finite], target.reshape(-1)[finite]),
        cosine=_cosine(one[finite], other[finite]),
        worst=_place(place, base.shape) if counted.unequal else None,
    )


def _scale(sizes: "NDArray[Any]") -> float:
    """Return the greatest magnitude without masks, such as the -10000, -1e9 or -3.4e38 of attention.

    A mask is about equally large everywhere, and a hundred times as large as all others; a single element, a thousand
    times.
    """
    if not sizes.size:
        return 0.0
    largest = float(sizes.max())
    others = sizes[sizes < 0.98 * largest]
    is_several = sizes.size - others.size > 1
    if others.size > (0 if is_several else _FEW) and float(others.max()) < largest / (100 if is_several else 1000):
        return float(others.max())
    return largest


def _surroundings(sizes: "NDArray[Any]", scale: float) -> "NDArray[Any]":
    """Return the scale of each element: the least, over the axes, of the greatest magnitude at its index of the axis.

    So scores from 0 to 1 are not measured by the coordinates of pixels that they are joined with. An index with few
    elements says nothing of their scale, and `_LEAST_SHARE` of that of the tensor remains: joined parts may be
    computed from each other.

    Args:
        sizes: magnitudes; 0 for those that do not count, such as masks.
        scale: the greatest that counts.
    """
    import numpy

    around = numpy.full(sizes.shape, scale)
    for axis in range(sizes.ndim):
        others = tuple([each for each in range(sizes.ndim) if each != axis])
        if sizes.shape[axis] == 1 or sizes.size < _SURROUNDING * sizes.shape[axis]:
            continue
        enough = numpy.count_nonzero(sizes, axis=others, keepdims=True) >= _SURROUNDING
        greatest = sizes.max(axis=others, keepdims=True)
        numpy.minimum(around, numpy.where(enough, numpy.maximum(greatest, _LEAST_SHARE * scale), scale), out=around)
    return around


def _ulp(base: "NDArray[Any]", target: "NDArray[Any]") -> int | None:
    import numpy

    if base.dtype != target.dtype or base.dtype.name not in _ULP_TYPES:
        return None
    kind = numpy.dtype(f"i{base.dtype.itemsize}")
    lowest = numpy.iinfo(kind).min

    def ordered(array: "NDArray[Any]") -> "NDArray[Any]":
        bits = numpy.ascontiguousarray(array).view(kind)
        # Bits of negative numbers ascend as the numbers descend, starting at -0.0, which is 0.
        return numpy.where(bits < 0, lowest - bits, bits)

    one, other = ordered(base), ordered(target)
    if kind.itemsize < 8:
        return int(numpy.abs(one.astype(numpy.int64) - other.astype(numpy.int64)).max())
    far = int(numpy.abs(one.astype(numpy.float64) - other.astype(numpy.float64)).argmax())
    near = int(numpy.abs(one - other).argmax())
    return max(abs(int(one[place]) - int(other[place])) for place in (far, near))


def _cosine(one: "NDArray[Any]", other: "NDArray[Any]") -> float | None:
    import numpy

    # Scaled first, so that squares of large numbers stay finite.
    sizes = [float(numpy.abs(each).max()) for each in (one, other)]
    if sizes == [0.0, 0.0]:
        return 1.0
    if 0.0 in sizes:
        return None
    first, second = one / sizes[0], other / sizes[1]
    product = float(numpy.vdot(first, second).real)
    cosine = product / float(numpy.linalg.norm(first) * numpy.linalg.norm(second))
    return max(-1.0, min(1.0, cosine))


def _place(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    import numpy

    return tuple(int(each) for each in numpy.unravel_index(index, shape))


def compare_values(
    base: Value,
    target: Value,
    tolerances: Mapping[str, Tolerance] | None = None,
    least: Tolerance = EXACT,
    noise: "NDArray[Any] | None" = None,
) -> Comparison:
    """Compare two values. If they have several tensors, the figures are those of the worst one.

    Args:
        least: the least tolerance of numbers of floating point; see `onnxjson.running.precision`.
        noise: how much rounding changes the elements of the base, which is one tensor; see `onnxjson.running.rounding`.
    """
    one, other = list(leaves(base)), list(leaves(target))
    if [path for path, _ in one] != [path for path, _ in other] or (base is None) != (target is None):
        problem = f"{_described(base)} against {_described(target)}"
        count = max(len(one), 1)
        return Comparison(elements=count, unequal=count, outside=count, problem=problem)
    allowed = {**TOLERANCES, **(tolerances or {})}
    comparisons = []
    for (_, first), (_, second) in zip(one, other, strict=True):
        arrays = to_numpy(first), to_numpy(second)
        tolerance = tolerance_of([each.dtype.name for each in arrays], allowed)
        comparisons.append(compare(*arrays, tolerance if tolerance == EXACT else looser((tolerance, least)), noise))
    if len(comparisons) == 1:
        return comparisons[0]
    if not comparisons:
        return Comparison(elements=0, exact=True)
    counts = ("elements", "unequal", "outside", "stray", "nonfinite")
    sums = {name: sum([getattr(each, name) for each in comparisons]) for name in counts}
    return msgspec.structs.replace(furthest(comparisons), **sums)


def furthest(comparisons: Sequence[Comparison]) -> Comparison:
    """Return the worst comparison, with the greatest differences and the least cosine of all."""
    greatest = {
        name: max([value for each in comparisons if (value := getattr(each, name)) is not None], default=None)
        for name in ("largest_absolute", "largest_relative", "largest_ulp")
    }
    cosine = min([each.cosine for each in comparisons if each.cosine is not None], default=None)
    return msgspec.structs.replace(max(comparisons, key=badness), **greatest, cosine=cosine)


def badness(comparison: Comparison) -> tuple[bool, bool, bool, float]:
    """Sort key of comparisons: greater for greater differences."""
    figure = comparison.largest_absolute or 0.0
    return comparison.problem is not None, not comparison.close, not comparison.equal, figure


def error_share(comparison: Comparison) -> float:
    """Return the greatest difference relative to the scale of the values; infinity if they cannot be compared."""
    if comparison.problem is not None or (comparison.unequal and comparison.largest_absolute is None):
        return float("inf")
    if not comparison.largest_absolute:
        return float("inf") if comparison.outside else 0.0
    return comparison.largest_absolute / (comparison.scale or comparison.largest_absolute)


def _described(value: Value) -> str:
    if value is None:
        return "no value"
    if isinstance(value, Tensor):
        return f"a tensor of {dtype_of(value)}"
    return "a map" if isinstance(value, Dictionary) else f"a sequence of {len(value)}"
