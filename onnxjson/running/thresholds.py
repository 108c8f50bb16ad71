"""Numbers at which a computation may turn: the small constants of a part, and what lies beside them.

Made-up values hardly ever meet the bounds of a Clip or what a value is compared with, so that a rewrite that is wrong
only there would look right.
"""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from onnxjson.document import Graph, Model, Tensor
from onnxjson.elements import element_count
from onnxjson.names import DATA_TYPES
from onnxjson.tensors import to_numpy

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

MOST_ELEMENTS: Final = 4
"""Of a constant or an attribute that holds thresholds; longer ones are weights."""

GREATEST: Final = 1024.0
"""What lies beyond says "never" more than "from here on", as what masks are filled with, and makes numbers overflow."""

SHARE: Final = 0.5
"""Of the elements that become thresholds, or lie beside one."""

_FLOATS: Final = frozenset(DATA_TYPES[name] for name in ("float32", "float64", "float16", "bfloat16"))
_BESIDE: Final = (1.0, 0.75, 1.25)


def thresholds(*parts: Model) -> tuple[float, ...]:
    """The small floating-point constants and attributes of models, each with what lies beside it; sorted."""
    found = {number for part in parts for number in _numbers(part.graph or Graph())}
    return tuple(sorted({number * factor for number in found if abs(number) <= GREATEST for factor in _BESIDE}))


def _numbers(graph: Graph) -> Iterator[float]:
    constants = list(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.t is not None:
                constants.append(attribute.t)
            for stored in (attribute.f, attribute.floats):
                if stored is not None and len(stored) <= 4 * MOST_ELEMENTS:
                    yield from struct.unpack(f"<{len(stored) // 4}f", stored)
    for tensor in constants:
        yield from _elements(tensor)


def _elements(tensor: Tensor) -> Iterator[float]:
    if tensor.data_type in _FLOATS and element_count(tensor.dims) <= MOST_ELEMENTS:
        yield from map(float, to_numpy(tensor).reshape(-1))


def strewn(array: "NDArray[Any]", numbers: tuple[float, ...], generator: "Generator") -> "NDArray[Any]":
    """`array` with some of `numbers` in the place of some elements; itself where it holds no floating-point numbers.

    Args:
        array: of any shape and dtype.
        numbers: finite ones.
        generator: where they come from.
    """
    import numpy

    if array.dtype.kind != "f" or not numbers:
        return array
    chosen = numpy.asarray(numbers)[generator.integers(0, len(numbers), array.shape)].astype(array.dtype)
    return numpy.where(generator.random(array.shape) < SHARE, chosen, array)
