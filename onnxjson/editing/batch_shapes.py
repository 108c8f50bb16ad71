"""Rules for the elements of computed shapes: sizes of axes, numbers from constants, and simple arithmetic."""

from collections.abc import Callable
from typing import Final

from onnxjson.editing.batch_axes import Axis, axis_of
from onnxjson.editing.batch_tracing import MOST_ELEMENTS, Call, ElementRule, ShapeElement

_FAR: Final = 1 << 31
"""An end of a Slice from which on it means the end of the list."""


def _shape(call: Call) -> list[ShapeElement] | None:
    axes = call.axes(0)
    if axes is None:
        return None
    start, end = call.number("start", 0), call.number("end", _FAR)
    return [_size_element(axis) for axis in axes[start:end]]


def _size_element(axis: Axis) -> ShapeElement:
    if not axis:
        return ShapeElement(1)
    return ShapeElement(axis[0] if len(axis) == 1 and isinstance(axis[0], int) else axis)


def _same(call: Call) -> list[ShapeElement] | None:
    return call.elements(0)


def _gather(call: Call) -> list[ShapeElement] | None:
    elements, indices = call.elements(0), call.elements(1)
    if elements is None or indices is None or call.number("axis", 0) not in (0, -1):
        return None
    found = []
    for index in indices:
        if not isinstance(index.value, int) or not -len(elements) <= index.value < len(elements):
            return None
        found.append(elements[index.value])
    return found


def _slice(call: Call) -> list[ShapeElement] | None:
    elements = call.elements(0)
    starts, ends = call.numbers(1, "starts"), call.numbers(2, "ends")
    steps = call.numbers(4, "steps") if call.opset >= 10 else None
    if elements is None or starts is None or ends is None or len(starts) != 1 or len(ends) != 1:
        return None
    step = steps[0] if steps else 1
    return elements[slice(starts[0], ends[0] if abs(ends[0]) < _FAR else None, step)]


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


def _where(call: Call) -> list[ShapeElement] | None:
    condition, yes, no = call.elements(0), call.elements(1), call.elements(2)
    if condition is None or yes is None or no is None:
        return None
    length = max(len(condition), len(yes), len(no))
    if any([len(each) not in (1, length) for each in (condition, yes, no)]):
        return None
    columns = [each * length if len(each) == 1 else each for each in (condition, yes, no)]
    found = []
    for chosen, first, second in zip(*columns, strict=True):
        if not isinstance(chosen.value, int):
            return None
        found.append(first if chosen.value else second)
    return found


def _equal(call: Call) -> list[ShapeElement] | None:
    pairs = _pairs(call)
    if pairs is None:
        return None
    found = []
    for one, other in pairs:
        if isinstance(one.value, int) and isinstance(other.value, int):
            found.append(ShapeElement(int(one.value == other.value)))
        elif {type(one.value), type(other.value)} == {int, tuple}:
            # The size of an axis is never negative.
            number = one.value if isinstance(one.value, int) else other.value
            if not isinstance(number, int) or number >= 0:
                return None
            found.append(ShapeElement(0))
        else:
            return None
    return found


def _multiply(call: Call) -> list[ShapeElement] | None:
    pairs = _pairs(call)
    if pairs is None:
        return None
    found = []
    for one, other in pairs:
        if one.value == 1 or other.value == 1:
            found.append(other if one.value == 1 else one)
        elif isinstance(one.value, int) and isinstance(other.value, int):
            found.append(ShapeElement(one.value * other.value))
        elif one.value is None or other.value is None or (isinstance(one.value, int) and one.value < 0):
            found.append(ShapeElement(None))
        else:
            first, second = [(each.value,) if isinstance(each.value, int) else each.value for each in (one, other)]
            assert first is not None
            assert second is not None
            found.append(ShapeElement(axis_of([*first, *second])))
    return found


def _arithmetic(combine: Callable[[int, int], int | None]) -> ElementRule:
    def rule(call: Call) -> list[ShapeElement] | None:
        pairs = _pairs(call)
        if pairs is None:
            return None
        return [
            ShapeElement(combine(one.value, other.value))
            if isinstance(one.value, int) and isinstance(other.value, int)
            else ShapeElement(None)
            for one, other in pairs
        ]

    return rule


def _divide(call: Call) -> list[ShapeElement] | None:
    pairs = _pairs(call)
    if pairs is None:
        return None
    found = []
    for one, other in pairs:
        value: int | Axis | None = None
        if other.value == 1:
            value = one.value
        elif isinstance(other.value, int) and other.value:
            if isinstance(one.value, int):
                value = abs(one.value) // abs(other.value) * (1 if (one.value < 0) == (other.value < 0) else -1)
            elif one.value and isinstance(one.value[0], int) and not one.value[0] % other.value:
                value = axis_of([one.value[0] // other.value, *one.value[1:]])
        found.append(ShapeElement(value))
    return found


def _pairs(call: Call) -> list[tuple[ShapeElement, ShapeElement]] | None:
    one, other = call.elements(0), call.elements(1)
    if one is None or other is None:
        return None
    length = max(len(one), len(other))
    if len(one) not in (1, length) or len(other) not in (1, length):
        return None
    columns = [each * length if len(each) == 1 else each for each in (one, other)]
    return list(zip(*columns, strict=True))


def _filled(call: Call) -> list[ShapeElement] | None:
    """Elements of a ConstantOfShape of known length."""
    length = call.elements(0)
    if length is None or len(length) > 1 or (length and not isinstance(length[0].value, int)):
        return None
    value = next((each.t for each in call.node.attribute if each.name == "value"), None)
    if value is None or value.data_type not in (6, 7):
        return None
    from onnxjson.model.tensors import to_numpy

    count = length[0].value if length else 1
    assert isinstance(count, int)
    return [ShapeElement(int(to_numpy(value).reshape(-1)[0]))] * count if 0 <= count <= MOST_ELEMENTS else None


ELEMENT_RULES: Final[dict[str, ElementRule]] = {
    "Shape": _shape,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Where": _where,
    "Equal": _equal,
    "Mul": _multiply,
    "Div": _divide,
    "Add": _arithmetic(lambda one, other: one + other),
    "Sub": _arithmetic(lambda one, other: one - other),
    "ConstantOfShape": _filled,
    **dict.fromkeys(("Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Flatten"), _same),
}
"""Rules by operator of the default domain."""
