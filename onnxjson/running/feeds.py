"""Values for the inputs of a model, made up: of every dtype, the same ones for the same seed."""

from typing import TYPE_CHECKING, Any, Final, Literal

from onnxjson.document import Tensor
from onnxjson.names import BOOL, COMPLEX, DATA_TYPE_NAMES, STRING
from onnxjson.tensors import from_numpy, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy
    from numpy.random import Generator
    from numpy.typing import NDArray

Spread = Literal["normal", "positive", "wide"]
"""How numbers lie: around 0 with a deviation of 1, from 0.1 to 2, around 0 with a deviation of 8."""

SPREADS: Final[tuple[Spread, ...]] = ("normal", "positive", "wide")

NEAR: Final = SPREADS[:2]
"""Those with which ranges are calibrated: what lies far outside would widen them."""

_WORDS: Final = ("", "a", "b", "ONNX", "two words", "é", "模型", "1.5", "-3")

_INTEGERS: Final[dict[Spread, tuple[int, int]]] = {"normal": (-5, 5), "positive": (1, 3), "wide": (-100, 100)}
"""The least and the greatest."""


def random_tensor(
    data_type: int,
    dims: "Sequence[int]",
    generator: "Generator",
    *,
    spread: Spread = "normal",
    low: int | None = None,
    high: int | None = None,
    name: str | None = None,
) -> Tensor:
    """A tensor of made-up finite elements.

    Args:
        data_type: number of TensorProto.DataType.
        dims: its shape.
        generator: where the elements come from.
        spread: how they lie.
        low: of integers, the least; what the spread says if it is None.
        high: of integers, the greatest.
        name: the name of the tensor.

    Raises:
        TypeError: there is no such dtype.
    """
    return from_numpy(random_array(data_type, dims, generator, spread=spread, low=low, high=high), name)


def random_array(
    data_type: int,
    dims: "Sequence[int]",
    generator: "Generator",
    *,
    spread: Spread = "normal",
    low: int | None = None,
    high: int | None = None,
) -> "NDArray[Any]":
    """The same as an array; see `random_tensor`."""
    import numpy

    shape = tuple(dims)
    if data_type == STRING:
        return numpy.array(_WORDS, dtype=object)[generator.integers(0, len(_WORDS), shape)]
    if data_type not in DATA_TYPE_NAMES or data_type == 0:
        raise TypeError(f"no values can be made up for the data type {data_type}")
    if data_type == BOOL:
        return generator.integers(0, 2, shape).astype(bool)
    dtype = numpy_dtype(data_type)
    if data_type in COMPLEX:
        parts = _floats(shape, generator, spread), _floats(shape, generator, spread)
        return (parts[0] + 1j * parts[1]).astype(dtype)
    limits = integer_limits(dtype)
    if limits is None:
        return _as_float(_floats(shape, generator, spread), dtype)
    least, greatest = _INTEGERS[spread]
    least, greatest = least if low is None else low, greatest if high is None else high
    least, greatest = (min(max(each, limits[0]), limits[1]) for each in (least, greatest))
    return generator.integers(least, max(least, greatest), shape, endpoint=True).astype(dtype)


def _floats(shape: tuple[int, ...], generator: "Generator", spread: Spread) -> "NDArray[Any]":
    if spread == "positive":
        return generator.uniform(0.1, 2.0, shape)
    return generator.standard_normal(shape) * (8.0 if spread == "wide" else 1.0)


def integer_limits(dtype: "numpy.dtype[Any]") -> tuple[int, int] | None:
    """The least and the greatest of integers and bools, None for other dtypes."""
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


def float_limits(dtype: "numpy.dtype[Any]") -> tuple[float, float]:
    """The least and the greatest finite number of a floating-point dtype, or of a part of complex numbers."""
    import ml_dtypes

    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(info.min), float(info.max)


def _as_float(numbers: "NDArray[Any]", dtype: Any) -> "NDArray[Any]":
    """Rounded to a dtype of few bits, which must not make a NaN or an infinity of them."""
    import numpy

    least, greatest = float_limits(dtype)
    if least > 0 or dtype.name == "float8_e8m0fnu":  # powers of two
        numbers = numpy.exp2(numpy.round(numpy.clip(numbers, -8, 8)))
    rounded: NDArray[Any] = numpy.clip(numbers, least, greatest).astype(dtype)
    return rounded
