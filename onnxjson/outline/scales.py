"""The numbers that values are multiplied by: constants, and those that arithmetic of numbers and of one size gives."""

from collections.abc import Callable
from math import nan, sqrt
from operator import mul, truediv
from typing import Final

from onnxjson.model.document import Node
from onnxjson.outline.flow import LONG, Flow
from onnxjson.outline.units import Unit, Units
from onnxjson.outline.values import operator

_NUMBERS: Final[dict[str, Callable[..., float]]] = {"Div": truediv, "Mul": mul, "Sqrt": sqrt}
"""Arithmetic of numbers of which scales consist."""


def scaled(graph: Units, unit: Unit) -> tuple[str, float] | None:
    """Return the value that a unit multiplies by a number, and the number, if it does; nan for unknown sizes."""
    sides = {"*": (unit.operands, unit.operands[::-1]), "/": (unit.operands,)}.get(unit.head, ())
    for name, other in sides:
        if (scale := _number(graph.flow, other)) is not None and (scale or unit.head == "*"):
            return name, scale if unit.head == "*" else 1 / scale
    return None


def _number(flow: Flow, name: str, steps: int = 8) -> float | None:
    """Return the number of a value with one element: a constant, or computed from numbers and a size.

    nan if the size is not known; None for other values.
    """
    elements, position = flow.elements(name), flow.producer(name)
    if elements is not None:
        only = elements[0] if len(elements) == 1 else None
        return float(only) if isinstance(only, int | float) else None
    if position < 0 or not steps:
        return None
    node = flow.nodes[position]
    kind = operator(node)
    if kind == "Slice":
        return _size(flow, node)
    if kind in ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"):
        return _number(flow, "".join(node.input[:1]), steps - 1)
    numbers = [_number(flow, each, steps - 1) for each in node.input if kind in _NUMBERS]
    known = [each for each in numbers if each is not None]
    try:
        return _NUMBERS[kind](*known) if known and len(known) == len(numbers) else None
    except (ArithmeticError, TypeError, ValueError):
        return nan


def _size(flow: Flow, node: Node) -> float | None:
    """The size that a Slice takes from a shape; nan if it is not known, None for other nodes."""
    at, kept = flow.producer("".join(node.input[:1])), flow.kept(node)
    if at < 0 or operator(flow.nodes[at]) != "Shape" or flow.nodes[at].attribute or len(kept) != 1:
        return None
    start, end, dims = kept[0].start, kept[0].end, flow.dims("".join(flow.nodes[at].input[:1]))
    if start is None or end is None or not (end == start + 1 or (start, end) == (-1, LONG)):
        return None
    size = dims[start] if dims is not None and -len(dims) <= start < len(dims) else None
    return float(size) if isinstance(size, int) else nan
