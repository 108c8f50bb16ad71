"""Rules for the elements of computed shapes: sizes of axes, numbers from constants, and simple arithmetic."""

import operator
from collections.abc import Callable
from typing import Final

from onnxjson.editing.batch_axes import Axis, axis_of, size
from onnxjson.editing.batch_tracing import MOST_ELEMENTS, Call, ElementRule, ShapeElement

_FAR: Final = 1 << 31
"""Ends of a Slice from this number on mean the end of the list."""


def _shape(call: Call) -> list[ShapeElement] | None:
    axes = call.axes(0)
    if axes is None:
        return None
    return [_of_size(axis) for axis in axes[call.number("start", 0) : call.number("end", _FAR)]]


def _of_size(axis: Axis) -> ShapeElement:
    if not axis:
        return ShapeElement(1)
    return ShapeElement(axis[0] if len(axis) == 1 and isinstance(axis[0], int) else axis)


def _same(call: Call) -> list[ShapeElement] | None:
    return call.elements(0)


def _gather(call: Call) -> list[ShapeElement] | None:
    elements, indices = call.elements(0), call.numbers(1, "indices")
    if elements is None or indices is None or call.number("axis", 0) not in (0, -1):
        return None
    if not all([-len(elements) <= index < len(elements) for index in indices]):
        return None
    return [elements[index] for index in indices]


def _slice(call: Call) -> list[ShapeElement] | None:
    rows = _rows(call)
    starts, ends, axes = call.numbers(1, "starts"), call.numbers(2, "ends"), call.numbers(3, "axes")
    steps = call.numbers(4, "steps") if call.opset >= 10 else None
    if rows is None or starts is None or ends is None or len(starts) != 1 or len(ends) != 1 or axes not in (None, [0]):
        return None
    chosen = rows[slice(starts[0], ends[0] if abs(ends[0]) < _FAR else None, steps[0] if steps else 1)]
    return [each for row in chosen for each in row]


def _rows(call: Call) -> list[list[ShapeElement]] | None:
    """Return the elements of the first input by its first axis, if it has one axis or two."""
    elements, axes = call.elements(0), call.axes(0)
    if elements is None or axes is None or not 1 <= len(axes) <= 2:
        return None
    width = 1 if len(axes) == 1 else size(axes[1], call.batch)
    return [elements[at : at + width] for at in range(0, len(elements), width)] if width else None


def _transpose(call: Call) -> list[ShapeElement] | None:
    rows = _rows(call)
    if rows is None or len(call.axes(0) or ()) != 2 or call.list_of("perm") not in (None, (1, 0)):
        return None
    return [each for column in zip(*rows, strict=True) for each in column]


def _concat(call: Call) -> list[ShapeElement] | None:
    found: list[ShapeElement] = []
    for slot in range(len(call.node.input)):
        elements = call.elements(slot)
        if elements is None:
            sizes = call.axes(slot)
            if sizes is None or len(sizes) != 1 or sizes[0] not in ((), (1,)):
                return None
            elements = [ShapeElement(None)]
        found += elements
    return found


def _pointwise(combine: Callable[..., ShapeElement]) -> ElementRule:
    """Build the rule of an operator that computes each element from those of its inputs, which are broadcast."""

    def rule(call: Call) -> list[ShapeElement] | None:
        columns = [elements for slot in range(len(call.node.input)) if (elements := call.elements(slot)) is not None]
        length = max([len(each) for each in columns], default=0)
        if len(columns) < len(call.node.input) or any([len(each) not in (1, length) for each in columns]):
            return None
        columns = [each * length if len(each) == 1 else each for each in columns]
        return [combine(*row) for row in zip(*columns, strict=True)]

    return rule


def _where(condition: ShapeElement, yes: ShapeElement, no: ShapeElement) -> ShapeElement:
    if not isinstance(condition.value, int):
        return ShapeElement(None)
    return yes if condition.value else no


def _equal(one: ShapeElement, other: ShapeElement) -> ShapeElement:
    values = (one.value, other.value)
    numbers = [each for each in values if isinstance(each, int)]
    if len(numbers) == 2:
        return ShapeElement(int(numbers[0] == numbers[1]))
    # The size of an axis is never negative.
    return ShapeElement(0 if None not in values and numbers and numbers[0] < 0 else None)


def _multiplied(one: ShapeElement, other: ShapeElement) -> ShapeElement:
    if one.value == 1 or other.value == 1:
        return other if one.value == 1 else one
    if isinstance(one.value, int) and isinstance(other.value, int):
        return ShapeElement(one.value * other.value)
    factors: list[int | str] = []
    for value in (one.value, other.value):
        if value is None or (isinstance(value, int) and value < 0):
            return ShapeElement(None)
        factors += [value] if isinstance(value, int) else value
    return ShapeElement(axis_of(factors))


def _divided(one: ShapeElement, other: ShapeElement) -> ShapeElement:
    value, divisor = one.value, other.value
    if divisor == 1:
        return ShapeElement(value)
    if not isinstance(divisor, int) or not divisor:
        return ShapeElement(None)
    if isinstance(value, int):
        return ShapeElement(abs(value) // abs(divisor) * (1 if (value < 0) == (divisor < 0) else -1))
    if value is None:
        return ShapeElement(None)
    for place, factor in enumerate(value):
        if isinstance(factor, int) and not factor % divisor:
            return ShapeElement(axis_of([*value[:place], factor // divisor, *value[place + 1 :]]))
    return ShapeElement(None)


def _remainder(one: ShapeElement, other: ShapeElement) -> ShapeElement:
    are_numbers = isinstance(one.value, int) and isinstance(other.value, int) and other.value != 0
    return ShapeElement(one.value % other.value if are_numbers else None)  # type: ignore[operator]


def _on_numbers(compute: Callable[[int, int], int]) -> ElementRule:
    def combine(one: ShapeElement, other: ShapeElement) -> ShapeElement:
        are_numbers = isinstance(one.value, int) and isinstance(other.value, int)
        return ShapeElement(compute(one.value, other.value) if are_numbers else None)  # type: ignore[arg-type]

    return _pointwise(combine)


def _filled(call: Call) -> list[ShapeElement] | None:
    """Elements of a ConstantOfShape of known length."""
    length = call.numbers(0, "sizes")
    value = next((each.t for each in call.node.attribute if each.name == "value"), None)
    if length is None or len(length) > 1 or value is None or value.data_type not in (6, 7):
        return None
    from onnxjson.model.tensors import to_numpy

    count = length[0] if length else 1
    return [ShapeElement(int(to_numpy(value).reshape(-1)[0]))] * count if 0 <= count <= MOST_ELEMENTS else None


ELEMENT_RULES: Final[dict[str, ElementRule]] = {
    "Shape": _shape,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Where": _pointwise(_where),
    "Equal": _pointwise(_equal),
    "Mul": _pointwise(_multiplied),
    "Div": _pointwise(_divided),
    "Add": _on_numbers(operator.add),
    "Sub": _on_numbers(operator.sub),
    "Mod": _pointwise(_remainder),
    "Transpose": _transpose,
    "ConstantOfShape": _filled,
    **dict.fromkeys(("Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Flatten"), _same),
}
"""Rules by operator of the default domain."""
