"""Elements that a person wishes for: all the same, or within limits; never others than those, in any dtype."""

import math
from typing import TYPE_CHECKING, Any

from onnxjson.running.feeds import float_limits, integer_limits
from onnxjson.tensors import numpy_dtype

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


def filled(data_type: int, dims: tuple[int, ...], fill: float) -> "NDArray[Any]":
    """The same element everywhere.

    Raises:
        ValueError: the dtype does not hold it, rounded or not; the text goes on a sentence.
    """
    import numpy

    dtype = numpy_dtype(data_type)
    whole = integer_limits(dtype)
    if whole is not None and (not math.isfinite(fill) or fill != int(fill)):
        raise ValueError(f"which does not hold {fill}")
    least, greatest = whole or float_limits(dtype)
    if math.isfinite(fill) and not least <= fill <= greatest:
        raise ValueError(f"which does not hold {fill}")
    return numpy.full(dims, float(fill) if whole is None else int(fill)).astype(dtype)


def within(
    data_type: int, dims: tuple[int, ...], limits: tuple[float, float], generator: "Generator"
) -> "NDArray[Any]":
    """Elements between two limits, both of them included.

    Raises:
        ValueError: the dtype has none there, or does not hold all of them; the text goes on a sentence.
    """
    import numpy

    dtype = numpy_dtype(data_type)
    whole = integer_limits(dtype)
    low, high = limits if whole is None else (math.ceil(limits[0]), math.floor(limits[1]))
    least, greatest = whole or float_limits(dtype)
    if low > high:
        raise ValueError(f"which has no whole number from {limits[0]} to {limits[1]}")
    if low < least or high > greatest:
        raise ValueError(f"which has {least} .. {greatest}, and not all from {limits[0]} to {limits[1]}")
    if whole is None:
        return generator.uniform(float(low), float(high), dims).astype(dtype)
    wide = numpy.uint64 if high > numpy.iinfo(numpy.int64).max else numpy.int64
    return generator.integers(int(low), int(high), dims, dtype=wide, endpoint=True).astype(dtype)
