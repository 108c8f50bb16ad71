"""How far two results are apart, and how far they may be: for every dtype, with NaN and infinity.

A NaN equals a NaN, an infinity the same infinity, -0.0 equals 0.0. Differences are taken in float64.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


class Tolerance(msgspec.Struct, frozen=True, kw_only=True):
    """Elements are close where ``|base - target| <= absolute + relative * |base| + of_scale * scale``.

    The last part allows for sums of which the terms cancel: their error goes with the terms, not with the sum. The
    scale is the greatest ``|base|``, that of a mask left out: where several elements are about as large, and all others
    at most a hundredth of that, the -3.4e38 or -10000 of an attention mask must not excuse what stands beside it.
    """

    absolute: float = 0.0
    relative: float = 0.0
    of_scale: float = 0.0


EXACT: Final = Tolerance()
"""For integers, bools and strings."""

TOLERANCES: Final[dict[str, Tolerance]] = {
    "float64": Tolerance(relative=1e-9, of_scale=1e-11),
    "float32": Tolerance(relative=1e-4, of_scale=1e-5),
    "float16": Tolerance(relative=1e-2, of_scale=2e-3),
    "bfloat16": Tolerance(relative=4e-2, of_scale=1e-2),
    "complex64": Tolerance(relative=1e-4, of_scale=1e-5),
    "complex128": Tolerance(relative=1e-9, of_scale=1e-11),
    "float8_e4m3fn": Tolerance(relative=0.15, of_scale=0.03),
    "float8_e4m3fnuz": Tolerance(relative=0.15, of_scale=0.03),
    "float8_e5m2": Tolerance(relative=0.3, of_scale=0.06),
    "float8_e5m2fnuz": Tolerance(relative=0.3, of_scale=0.06),
}
"""What different orders of the same sums lead to, by dtype; about a hundred units of the dtype's own precision, fewer
for narrow ones. Dtypes that are not here compare exactly."""

_FRACTION_BITS: Final = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}
"""Of dtypes whose bit patterns, as integers, stand in the order of the numbers."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two arrays, element by element. Figures are over elements that are finite on both sides, None without any."""

    elements: int
    unequal: int = 0
    """Elements that are not the same value."""
    outside: int = 0
    """Elements that are further apart than the tolerance."""
    nonfinite: int = 0
    """Elements that are NaN or infinite in one of them, and not the same in the other."""
    scale: float | None = None
    """How large the elements of the base are; see `Tolerance`."""
    largest_absolute: float | None = None
    """Of ``|base - target|``."""
    largest_relative: float | None = None
    """Of ``|base - target| / |base|``, where the base is not zero."""
    largest_ulp: int | None = None
    """Units in the last place; for float64, float32, float16 and bfloat16 on both sides."""
    cosine: float | None = None
    """Of the angle between the arrays as vectors; None where one of them is all zeros and the other is not."""
    worst: tuple[int, ...] | None = None
    """Where the greatest difference is, or the first element of which just one is finite."""
    exact: bool = False
    """Whether the elements are no floating-point numbers."""
    problem: str | None = None
    """Why the elements cannot be compared one by one; then neither `equal` nor `close`."""

    @property
    def equal(self) -> bool:
        """Whether all elements are the same values."""
        return self.problem is None and self.unequal == 0

    @property
    def close(self) -> bool:
        """Whether no element is further apart than the tolerance."""
        return self.problem is None and self.outside == 0


def tolerance_for(
    *dtypes: "numpy.dtype[Any]", tolerances: Mapping[str, Tolerance] = MappingProxyType(TOLERANCES)
) -> Tolerance:
    """The tolerance of the dtype that is the least precise one."""
    found = [tolerances.get(dtype.name, EXACT) for dtype in dtypes]
    return max(found, key=lambda each: each.relative)


def compare(base: "NDArray[Any]", target: "NDArray[Any]", tolerance: Tolerance | None = None) -> Comparison:
    """How far two arrays are apart.

    Args:
        base: of any dtype of numpy or ml_dtypes, or objects (strings).
        target: the same shape; its dtype may be another one.
        tolerance: how far elements may be apart; that of their dtypes if it is None.
    """
    import numpy

    count = int(base.size)
    if base.shape != target.shape:
        shapes = f"shape {list(base.shape)} against {list(target.shape)}"
        return Comparison(elements=count, unequal=max(count, 1), outside=max(count, 1), problem=shapes)
    if base.dtype == object or target.dtype == object:
        return _exact(base, target, numpy.asarray(base != target, bool))
    if tolerance is None:
        tolerance = tolerance_for(base.dtype, target.dtype)
    if base.dtype.kind in "biu" and target.dtype.kind in "biu":
        return _integers(base, target, tolerance)
    wide = numpy.complex128 if "c" in (base.dtype.kind, target.dtype.kind) else numpy.float64
    with numpy.errstate(all="ignore"):
        return _floats(base, target, base.astype(wide).reshape(-1), target.astype(wide).reshape(-1), tolerance)


def _exact(base: "NDArray[Any]", target: "NDArray[Any]", differs: "NDArray[Any]") -> Comparison:
    import numpy

    unequal = int(differs.sum())
    worst = _place(int(numpy.argmax(differs)), base.shape) if unequal else None
    return Comparison(elements=base.size, unequal=unequal, outside=unequal, worst=worst, exact=True)


def _integers(base: "NDArray[Any]", target: "NDArray[Any]", tolerance: Tolerance) -> Comparison:
    """Exactly, since float64 does not hold all 64-bit integers."""
    import numpy

    differs = base.reshape(-1) != target.reshape(-1)
    if not differs.any():
        if not base.size:
            return Comparison(elements=0, exact=True)
        return Comparison(elements=base.size, largest_absolute=0.0, largest_relative=0.0, cosine=1.0, exact=True)
    one, other = base.reshape(-1).astype(numpy.float64), target.reshape(-1).astype(numpy.float64)
    found = _floats(base, target, one, other, tolerance)
    unequal = int(differs.sum())
    outside = unequal if tolerance == EXACT else found.outside
    worst = found.worst if found.worst is not None else _place(int(numpy.argmax(differs)), base.shape)
    return msgspec.structs.replace(found, unequal=unequal, outside=outside, worst=worst, exact=True)


def _floats(
    base: "NDArray[Any]", target: "NDArray[Any]", one: "NDArray[Any]", other: "NDArray[Any]", tolerance: Tolerance
) -> Comparison:
    """The comparison of two flat arrays of float64 or complex128."""
    import numpy

    same = (one == other) | (numpy.isnan(one) & numpy.isnan(other))
    finite = numpy.isfinite(one) & numpy.isfinite(other)
    sizes = numpy.abs(one)
    gaps = numpy.where(finite, numpy.abs(one - other), 0.0)
    scale = _scale(sizes[finite & (sizes > 0)])
    allowed = tolerance.absolute + tolerance.relative * sizes + tolerance.of_scale * scale
    close = same | (finite & (gaps <= allowed))
    half = ~same & ~finite
    counted = Comparison(
        elements=one.size, unequal=int((~same).sum()), outside=int((~close).sum()), nonfinite=int(half.sum())
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
        largest_relative=float(ratios.max(initial=0.0)),
        largest_ulp=_ulp(base.reshape(-1)[finite], target.reshape(-1)[finite]),
        cosine=_cosine(one[finite], other[finite]),
        worst=_place(place, base.shape) if counted.unequal else None,
    )


def _scale(sizes: "NDArray[Any]") -> float:
    if not sizes.size:
        return 0.0
    largest = float(sizes.max())
    others = sizes[sizes < 0.98 * largest]
    if others.size and sizes.size - others.size > 1 and float(others.max()) < largest / 100:
        return float(others.max())
    return largest


def _ulp(base: "NDArray[Any]", target: "NDArray[Any]") -> int | None:
    import numpy

    if base.dtype != target.dtype or base.dtype.name not in _FRACTION_BITS:
        return None
    kind = numpy.dtype(f"i{base.dtype.itemsize}")
    lowest = numpy.iinfo(kind).min

    def ordered(array: "NDArray[Any]") -> "NDArray[Any]":
        bits = numpy.ascontiguousarray(array).view(kind)
        # Negative numbers run the other way round, from -0.0, which is 0.
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
