"""Random elements of tensors: of every dtype, within limits, or as an operator expects of an integer input.

The same seed always leads to the same elements.
"""

import math
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from onnxjson.model.document import Node
from onnxjson.model.dtypes import BOOL, COMPLEX_PARTS, DATA_TYPE_NAMES, DATA_TYPES, STRING
from onnxjson.model.operators import plain_domain
from onnxjson.model.tensors import numpy_dtype

if TYPE_CHECKING:
    import numpy
    from numpy.random import Generator
    from numpy.typing import NDArray

Spread = Literal["normal", "positive", "wide", "small", "unit", "smooth"]
"""Distribution of numbers: normal with deviation 1, uniform from 0.1 to 2, normal with deviation 8 and 0.01, uniform
from 0 to 1, sine waves along the last axis."""

SPREADS: Final[tuple[Spread, ...]] = ("normal", "positive", "wide")

NEAR: Final = SPREADS[:2]
"""Distributions to calibrate ranges with: outliers would widen the ranges."""

LADDER: Final[tuple[Spread, ...]] = ("small", "unit", "smooth")
"""Distributions to try, one after the other, where an output is NaN or infinite everywhere on the others."""

_WORDS: Final = ("", "a", "b", "ONNX", "two words", "é", "模型", "1.5", "-3")

_INTEGERS: Final[dict[Spread, tuple[int, int]]] = {"positive": (1, 3), "wide": (-100, 100)}
_DEVIATIONS: Final[dict[Spread, float]] = {"wide": 8.0, "small": 0.01}

_LOWEST: Final = 50.0
_FACTOR: Final = 40.0

Role = Literal["index", "shape", "ones", "zeros", "axes", "first-axis", "size", "end"]
"""Meaning of integers: positions along an axis, a shape for a given number of elements, all 1, all 0, distinct axes,
the axis 0, a small count, the end of a range that is not too short."""

_INDEXING: Final = (
    "ArrayFeatureExtractor", "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND",
)  # fmt: skip
_ROLES: Final[dict[str, dict[int, Role]]] = {
    **{name: {1: "index"} for name in _INDEXING},
    "OneHot": {0: "index", 1: "size"}, "ConstantOfShape": {0: "size"}, "Loop": {0: "size"}, "CumSum": {1: "zeros"},
    "Expand": {1: "ones"}, "Tile": {1: "ones"}, "TopK": {1: "ones"}, "Reshape": {1: "shape"},
    "Squeeze": {1: "first-axis"}, "Unsqueeze": {1: "axes"}, "Pad": {1: "zeros", 3: "axes"},
    "Range": {0: "zeros", 1: "end", 2: "ones"}, "Slice": {1: "zeros", 2: "end", 3: "axes", 4: "ones"},
}  # fmt: skip

INDEX_TYPES: Final = (DATA_TYPES["int32"], DATA_TYPES["int64"])

_AXIS_OPERATORS: Final = frozenset({"Gather", "GatherElements", "ScatterElements"})
"""Operators whose indices count along one axis, an attribute."""

_REDUCTION_AXES: Final[dict[int, Role]] = {1: "axes"}

_SHUFFLED: Final = 1 << 20
"""Maximum number of rows of which none is looked up twice before all are."""

_PASSING: Final = frozenset({"Cast", "Concat", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators whose output contains the elements of their inputs."""

DEFAULT_SIZE: Final = 2
"""Assumed size of an unknown axis; indices are below it."""


def random_array(
    data_type: int,
    dims: Sequence[int],
    generator: "Generator",
    *,
    spread: Spread = "normal",
    low: int | None = None,
    high: int | None = None,
) -> "NDArray[Any]":
    """Return an array of random finite elements; integers from `low` to `high`, or within the distribution."""
    import numpy

    shape = tuple(dims)
    if data_type == STRING:
        return numpy.array(_WORDS, dtype=object)[generator.integers(0, len(_WORDS), shape)]
    if data_type not in DATA_TYPE_NAMES or data_type == 0:
        raise TypeError(f"there are no random values of the data type {data_type}")
    if data_type == BOOL:
        return generator.integers(0, 2, shape).astype(bool)
    dtype = numpy_dtype(data_type)
    if data_type in COMPLEX_PARTS:
        parts = _floats(shape, generator, spread), _floats(shape, generator, spread)
        return (parts[0] + 1j * parts[1]).astype(dtype)
    limits = integer_limits(dtype)
    if limits is None:
        return _as_float(_floats(shape, generator, spread), dtype)
    least, greatest = _INTEGERS.get(spread, (-5, 5))
    least, greatest = least if low is None else low, greatest if high is None else high
    least, greatest = (min(max(each, limits[0]), limits[1]) for each in (least, greatest))
    return generator.integers(least, max(least, greatest), shape, endpoint=True).astype(dtype)


def _floats(shape: tuple[int, ...], generator: "Generator", spread: Spread) -> "NDArray[Any]":
    import numpy

    if spread in ("positive", "unit"):
        return generator.uniform(*((0.1, 2.0) if spread == "positive" else (0.0, 1.0)), shape)
    if spread == "smooth" and shape:
        each = (*shape[:-1], 1)
        cycles = generator.uniform(0.01, 0.1, each) * numpy.arange(shape[-1]) + generator.uniform(0.0, 1.0, each)
        waves: NDArray[Any] = 0.5 * numpy.sin(2 * math.pi * cycles)
        return waves
    return generator.standard_normal(shape) * _DEVIATIONS.get(spread, 1.0)


@cache
def integer_limits(dtype: "numpy.dtype[Any]") -> tuple[int, int] | None:
    """Return minimum and maximum of a dtype of integers or bools, None for other dtypes."""
    import ml_dtypes
    import numpy

    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu":
        return int(numpy.iinfo(dtype).min), int(numpy.iinfo(dtype).max)
    try:
        info = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    except ValueError:
        return None
    return int(info.min), int(info.max)


@cache
def float_limits(dtype: "numpy.dtype[Any]") -> tuple[float, float]:
    """Return the least and the greatest finite number of a floating-point or complex dtype."""
    import ml_dtypes

    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(info.min), float(info.max)


def _as_float(numbers: "NDArray[Any]", dtype: Any) -> "NDArray[Any]":
    """Round to a dtype of few bits without producing NaN or infinity."""
    import numpy

    least, greatest = float_limits(dtype)
    if least > 0:  # float8_e8m0fnu: powers of two
        numbers = numpy.exp2(numpy.round(numpy.clip(numbers, -8, 8)))
    rounded: NDArray[Any] = numpy.minimum(numpy.maximum(numbers, least), greatest).astype(dtype)  # as clip, but faster
    return rounded


def constant_array(data_type: int, dims: tuple[int, ...], fill: float) -> "NDArray[Any]":
    """Return an array of equal elements.

    Raises:
        ValueError: the dtype cannot represent it, even rounded; the text continues a sentence.
    """
    import numpy

    dtype = numpy_dtype(data_type)
    integers = integer_limits(dtype)
    if integers is not None and (not math.isfinite(fill) or fill != int(fill)):
        raise ValueError(f"which does not have {fill}")
    least, greatest = integers or float_limits(dtype)
    if math.isfinite(fill) and not least <= fill <= greatest:
        raise ValueError(f"which does not have {fill}")
    return numpy.full(dims, float(fill) if integers is None else int(fill)).astype(dtype)


def random_within(
    data_type: int, dims: tuple[int, ...], limits: tuple[float, float], generator: "Generator"
) -> "NDArray[Any]":
    """Return random elements between two limits, both included.

    Raises:
        ValueError: the dtype does not cover the range between the limits; the text continues a sentence.
    """
    import numpy

    dtype = numpy_dtype(data_type)
    integers = integer_limits(dtype)
    low, high = limits if integers is None else (math.ceil(limits[0]), math.floor(limits[1]))
    least, greatest = integers or float_limits(dtype)
    if low > high:
        raise ValueError(f"which has no integer from {limits[0]} to {limits[1]}")
    if low < least or high > greatest:
        raise ValueError(f"which has {least} .. {greatest}, and not all from {limits[0]} to {limits[1]}")
    if integers is None:
        return generator.uniform(float(low), float(high), dims).astype(dtype)
    wide = numpy.uint64 if high > numpy.iinfo(numpy.int64).max else numpy.int64
    return generator.integers(int(low), int(high), dims, dtype=wide, endpoint=True).astype(dtype)


def role_of(name: str, nodes: Sequence[Node], axis_size: Callable[[Node], int | None]) -> tuple[Role, int] | None:
    """Return the role of a value for the first operator that assigns one, and the exclusive maximum of its indices."""
    names = copies(name, nodes)
    for node in nodes:
        if plain_domain(node.domain):
            continue
        for slot in [slot for slot, consumed in enumerate(node.input) if consumed in names]:
            operator = node.op_type or ""
            roles = _REDUCTION_AXES if operator.startswith("Reduce") else _ROLES.get(operator, {})
            role = roles.get(slot)
            if role is not None:
                return role, (axis_size(node) or DEFAULT_SIZE) if role == "index" else DEFAULT_SIZE
    return None


def copies(name: str, nodes: Sequence[Node], *, parts: Collection[str] = ()) -> set[str]:
    """Return the names of the values of a sorted graph that hold the elements of a value, and its own.

    `parts` are operators whose output has only some of the elements.
    """
    names = {name}
    for node in nodes:
        data = node.input if node.op_type == "Concat" else node.input[:1]
        if (
            (node.op_type in _PASSING or node.op_type in parts)
            and not plain_domain(node.domain)
            and not names.isdisjoint(data)
        ):
            names.update(node.output)
    return names


def indexed_axis_size(node: Node, sizes: Sequence[int]) -> int | None:
    """Return the size of the axis along which a node uses indices; None if it is unknown."""
    axis = next((each.i or 0 for each in node.attribute if each.name == "axis"), 0)
    if node.op_type in _AXIS_OPERATORS and -len(sizes) <= axis < len(sizes):
        return sizes[axis] or None
    return min((each for each in sizes if each), default=None)


def ascending(place: int) -> float:
    """Return one of several numbers of which each is far above the one before, as limits of frequencies are."""
    return _LOWEST * _FACTOR**place


def role_elements(
    role: Role,
    limit: int,
    shape: tuple[int, ...],
    generator: "Generator",
    *,
    turn: int | None = None,
    first: Sequence[int] = (),
) -> "NDArray[Any]":
    """Return elements of a role, as int64.

    Args:
        turn: number of the run. Its indices continue where those of the run before ended, so that all rows are looked
            up in time, the rows `first` before the others.
    """
    import numpy

    ranges = {"index": (0, max(limit, 1)), "size": (1, 4), "end": (2, 6)}
    if role == "index" and turn is not None and 0 < limit <= _SHUFFLED:
        rows = numpy.random.default_rng(limit).permutation(limit)
        rows = numpy.concatenate([rows[numpy.isin(rows, first)], rows[numpy.isin(rows, first, invert=True)]])
        count = math.prod(shape)
        chosen = rows.take(numpy.arange(turn * count, (turn + 1) * count), mode="wrap")
        return generator.permutation(chosen).reshape(shape)
    if role in ranges:
        return generator.integers(*ranges[role], shape)
    if role == "axes":
        return numpy.arange(math.prod(shape), dtype=numpy.int64).reshape(shape)
    elements = numpy.full(shape, int(role in ("ones", "shape")), numpy.int64)
    if role == "shape":
        elements.reshape(-1)[:1] = -1
    return elements
