"""What integer inputs mean to the operators that take them, so that made-up values are ones that these accept."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from onnxjson.document import Node
from onnxjson.operators import plain_domain

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

Role = Literal["index", "shape", "ones", "zeros", "axes", "first-axis", "size", "end"]
"""What the elements are: positions along an axis, a shape for a given number of elements, all 1, all 0, different axes,
the axis 0, a small count, an end that is not too near."""

_ROLES: Final[dict[str, dict[int, Role]]] = {
    "ArrayFeatureExtractor": {1: "index"},
    "ConstantOfShape": {0: "size"},
    "CumSum": {1: "zeros"},
    "Expand": {1: "ones"},
    "Gather": {1: "index"},
    "GatherElements": {1: "index"},
    "GatherND": {1: "index"},
    "Loop": {0: "size"},
    "OneHot": {0: "index", 1: "size"},
    "Pad": {1: "zeros", 3: "axes"},
    "Range": {0: "zeros", 1: "end", 2: "ones"},
    "Reshape": {1: "shape"},
    "ScatterElements": {1: "index"},
    "ScatterND": {1: "index"},
    "Slice": {1: "zeros", 2: "end", 3: "axes", 4: "ones"},
    "Squeeze": {1: "first-axis"},
    "Tile": {1: "ones"},
    "TopK": {1: "ones"},
    "Unsqueeze": {1: "axes"},
}
"""By operator and input slot."""

_REDUCTION_AXES: Final[dict[int, Role]] = {1: "axes"}

_PASSING: Final = frozenset({"Cast", "Concat", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators whose output holds the elements of their inputs."""

DEFAULT_SIZE: Final = 2
"""Of an axis that nobody knows; indices stay below it."""


def role_of(name: str, nodes: Sequence[Node], axis_size: Callable[[Node], int | None]) -> tuple[Role, int] | None:
    """What a value means to the first operator that says so, and the size that indices stay below.

    Args:
        name: the value.
        nodes: those that may take it, in the order of their graph.
        axis_size: of a node that takes indices, the size of the axis that these count along, as far as it is known.
    """
    names = {name}
    for node in nodes:
        if plain_domain(node.domain):
            continue
        slots = [slot for slot, taken in enumerate(node.input) if taken in names]
        for slot in slots:
            operator = node.op_type or ""
            roles = _REDUCTION_AXES if operator.startswith("Reduce") else _ROLES.get(operator, {})
            role = roles.get(slot)
            if role is not None:
                return role, (axis_size(node) or DEFAULT_SIZE) if role == "index" else DEFAULT_SIZE
        if slots and node.op_type in _PASSING and (node.op_type != "Reshape" or 0 in slots):
            names.update(node.output)
    return None


def elements(role: Role, limit: int, shape: tuple[int, ...], generator: "Generator") -> "NDArray[Any]":
    """Elements of that role, as int64."""
    import numpy

    count = int(numpy.prod(shape, dtype=numpy.int64))
    if role == "index":
        return generator.integers(0, max(limit, 1), shape)
    if role == "shape":
        flat = numpy.ones(count, numpy.int64)
        flat[:1] = -1
        return flat.reshape(shape)
    if role == "axes":
        return numpy.arange(count, dtype=numpy.int64).reshape(shape)
    if role == "size":
        return generator.integers(1, 4, shape)
    if role == "end":
        return generator.integers(2, 6, shape)
    return numpy.full(shape, 1 if role == "ones" else 0, numpy.int64)
