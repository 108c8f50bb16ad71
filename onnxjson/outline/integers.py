"""Small integers that exporters compute from constants and known sizes, such as the padding of each axis, or the parts
of a value; nothing else is computed.
"""

from collections.abc import Callable
from operator import add, floordiv, mod, mul, sub
from typing import TYPE_CHECKING, Any, Final

from onnxjson.model.document import Node
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.tensors import to_numpy
from onnxjson.outline.flow import Flow
from onnxjson.outline.values import operator

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST: Final = 64
"""Elements up to which integers are computed."""

_ARITHMETIC: Final[dict[str, Callable[..., "NDArray[Any]"]]] = {
    "Add": add, "Div": floordiv, "Mod": mod, "Mul": mul, "Sub": sub,
}  # fmt: skip

_READ: Final = ("Pad", "Slice", "Squeeze", "Tile", "Unsqueeze")
_STEPS: Final = 16
"""Nodes in a row that are followed."""


def integers(flow: Flow, name: str) -> list[int] | None:
    """Return the elements of a value of integers that is computed from constants and known sizes; None for others."""
    if (elements := flow.elements(name)) is not None:  # without numpy, whose import takes 0.1 s
        return list(elements) if all([type(each) is int for each in elements]) else None
    try:
        array = _array(flow, name, _STEPS)
    except (OnnxJsonError, LookupError, TypeError, ValueError, OverflowError):  # a model that no runtime could run
        return None
    numbers: list[Any] = [None] if array is None else array.reshape(-1).tolist()
    return numbers if all([type(each) is int for each in numbers]) else None


def _array(flow: Flow, name: str, steps: int) -> "NDArray[Any] | None":
    import numpy

    elements, dims = flow.elements(name), flow.dims(name)
    if elements is not None and dims is not None:
        return numpy.array(elements).reshape([int(each or 0) for each in dims])
    position = flow.producer(name)
    if not steps or not (position in flow.shape_nodes or position in flow.constant_nodes):
        return None
    node = flow.nodes[position]
    if operator(node) == "Shape" and not node.attribute:
        sizes = [size if isinstance(size, int) else None for size in flow.dims(node.input[0]) or (None,)]
        return numpy.array(sizes, dtype=object)
    inputs = [_array(flow, each, steps - 1) for each in node.input if each]
    known = [each for each in inputs if each is not None and each.size <= _MOST]
    result = _moved(node, known) if len(known) == len(inputs) > 0 else None
    return None if result is None else numpy.asarray(result)


def _moved(node: Node, arrays: "list[NDArray[Any]]") -> "NDArray[Any] | None":
    import numpy

    given = {each.name: each for each in node.attribute}
    first, *rest = arrays
    kind = operator(node)
    if kind in ("Cast", "Identity"):
        return first
    if kind in _ARITHMETIC and len(rest) == 1 and not any([each.i for each in node.attribute]):
        return None if kind == "Div" and min(first.min(), rest[0].min()) < 0 else _ARITHMETIC[kind](first, rest[0])
    if kind == "Gather":
        return first.take(rest[0], int(given["axis"].i or 0) if "axis" in given else 0)
    if kind in ("Squeeze", "Unsqueeze") and first.size == 1:
        return first.reshape(-1)
    if kind == "Concat":
        return numpy.concatenate(arrays, int(given["axis"].i or 0))
    if kind == "ConstantOfShape" and first.prod() <= _MOST:
        value = given["value"].t if "value" in given else None
        return numpy.full(first.tolist(), 0 if value is None else to_numpy(value).item())
    if kind == "Reshape" and rest and rest[0].all():
        return first.reshape(rest[0].tolist())
    if kind == "Transpose":
        return first.transpose(list(given["perm"].ints or ()) if "perm" in given else None)
    if kind == "Slice" and len(rest) in (3, 4):
        kept = [slice(None)] * first.ndim
        for start, end, axis, step in zip(
            *[each.tolist() for each in (*rest, numpy.ones_like(rest[0]))[:4]], strict=True
        ):
            kept[axis] = slice(start, None if step < 0 and end < -first.shape[axis] else end, step)
        return first[tuple(kept)]
    return None


def computed(flow: Flow) -> dict[str, list[int]]:
    """Return the integers that nodes read as parts, paddings and axes, where they are computed, by name."""
    names = [name for node in flow.nodes if operator(node) in _READ for name in node.input[1:] if name]
    found = {name: integers(flow, name) for name in names if flow.producer(name) >= 0 and flow.elements(name) is None}
    return {name: numbers for name, numbers in found.items() if numbers is not None}
