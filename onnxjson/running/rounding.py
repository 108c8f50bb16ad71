"""What rounding does to the results of a model: another level of onnxruntime, on inputs that differ in their last bits.

Some models amplify rounding, such as a logarithm of differences: no tolerance of a dtype knows that.
"""

from typing import TYPE_CHECKING, Any, Final

from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.running.engines import OpenModel
from onnxjson.running.values import Value, Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RUNS: Final = 6

_UNITS: Final = 4
"""Maximum number of units in the last place by which inputs change: one unit is often lost where numbers are added."""

_ROUNDED: Final = (DATA_TYPES["float32"], DATA_TYPES["float64"])
"""Dtypes of inputs that are changed: the last bit of a narrower one is more than the rounding of float32."""


def noise_of(model: OpenModel, feeds: Values, results: Values, *, seed: int) -> "dict[str, NDArray[Any]]":
    """Return the greatest change of each element of some results, of those that are tensors of numbers.

    Args:
        model: the model at another level.
        feeds: the inputs of `results`; without any number of floating point to change, a change is that of any element.
    """
    import numpy

    noise: dict[str, NDArray[Any]] = {}
    arrays = {name: to_numpy(value) for name, value in results.items() if isinstance(value, Tensor)}
    arrays = {name: array for name, array in arrays.items() if array.dtype.kind not in "OcbiuSU" and array.size}
    is_changed = any([_is_changed(value) for value in feeds.values()])
    for run in range(_RUNS if is_changed else 1):
        generator = numpy.random.default_rng([seed, run])
        try:
            changed = model.run({name: _changed(name, value, generator) for name, value in feeds.items()}, [*arrays])
        except MemoryError:
            raise
        except Exception:  # such as an index that depends on rounding; then nothing more is allowed
            return {}
        for name, array in arrays.items():
            other = changed[name]
            if isinstance(other, Tensor) and other.dims == array.shape:
                with numpy.errstate(all="ignore"):
                    gaps = numpy.abs(array.astype(numpy.float64) - to_numpy(other).astype(numpy.float64))
                    gaps = numpy.nan_to_num(gaps, nan=0.0, posinf=0.0)
                noise[name] = numpy.maximum(noise.get(name, 0.0), gaps)
    return noise if is_changed else {name: numpy.full_like(gaps, gaps.max()) for name, gaps in noise.items()}


def _is_changed(value: Value) -> bool:
    return isinstance(value, Tensor) and value.data_type in _ROUNDED


def _changed(name: str, value: Value, generator: Any) -> Value:
    """Return an input whose numbers of floating point differ in their last bits, upwards or downwards at random."""
    import numpy

    if not isinstance(value, Tensor) or not _is_changed(value):
        return value
    array = to_numpy(value)
    units = generator.integers(1, _UNITS + 1, array.shape)
    ends = numpy.where(generator.random(array.shape) < 0.5, -numpy.inf, numpy.inf).astype(array.dtype)
    for unit in range(_UNITS):
        array = numpy.where(unit < units, numpy.nextafter(array, ends), array)
    return from_numpy(array, name)
