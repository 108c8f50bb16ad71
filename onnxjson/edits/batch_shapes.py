"""What the elements of a computed shape are: sizes of axes, numbers out of constants, and little arithmetic."""

from collections.abc import Callable
from typing import Final

from onnxjson.edits.batch_axes import Axis, axis_of
from onnxjson.edits.batch_tracing import BlockedError, Call, Element
from onnxjson.operators import plain_domain

_FAR: Final = 1 << 31
_MOST: Final = 1024


def computed_elements(call: Call) -> list[Element] | None:
    """The elements of the first output of a node; None where nobody knows."""
    rule = _RULES.get(call.node.op_type or "")
    if rule is None or plain_domain(call.node.domain):
        return None
    try:
        found = rule(call)
    except BlockedError:
        return None
    return None if found is None or len(found) > _MOST else found


def _shape(call: Call) -> list[Element] | None:
    axes = call.axes(0)
    if axes is None:
        return None
    start, end = call.number("start", 0), call.number("end", _FAR)
    return [_size_element(axis) for axis in axes[start:end]]


def _size_element(axis: Axis) -> Element:
    if not axis:
        return Element(1)
    return Element(axis[0] if len(axis) == 1 and isinstance(axis[0], int) else axis)


def _same(call: Call) -> list[Element] | None:
    return call.elements(0)


def _gather(call: Call) -> list[Element] | None:
    elements, indices = call.elements(0), call.elements(1)
    if elements is None or indices is None or call.number("axis", 0) not in (0, -1):
        return None
    found = []
    for index in indices:
        if not isinstance(index.value, int) or not -len(elements) <= index.value < len(elements):
            return None
        found.append(elements[index.value])
    return found


def _slice(call: Call) -> list[Element] | None:
    elements = call.elements(0)
    starts, ends = call.numbers(1, "starts"), call.numbers(2, "ends")
    steps = call.numbers(4, "steps") if call.opset >= 10 else None
    if elements is None or starts is None or ends is None or len(starts) != 1 or len(ends) != 1:
        return None
    step = steps[0] if steps else 1
    return elements[slice(starts[0], ends[0] if abs(ends[0]) < _FAR else None, step)]


def _concat(call: Call) -> list[Element] | None:
    found: list[Element] = []
    for slot in range(len(call.node.input)):
        elements = call.elements(slot)
        if elements is None:
            sizes = call.axes(slot)
            if sizes is None or len(sizes) != 1 or sizes[0] not in ((), (1,)):
                return None
            elements = [Element(None)]
        found += elements
    return found


def _where(call: Call) -> list[Element] | None:
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


def _equal(call: Call) -> list[Element] | None:
    pairs = _pairs(call)
    if pairs is None:
        return None
    found = []
    for one, other in pairs:
        if isinstance(one.value, int) and isinstance(other.value, int):
            found.append(Element(int(one.value == other.value)))
        elif {type(one.value), type(other.value)} == {int, tuple}:
            # The size of an axis is never negative.
            number = one.value if isinstance(one.value, int) else other.value
            if not isinstance(number, int) or number >= 0:
                return None
            found.append(Element(0))
        else:
            return None
    return found


def _multiply(call: Call) -> list[Element] | None:
    pairs = _pairs(call)
    if pairs is None:
        return None
    found = []
    for one, other in pairs:
        if one.value == 1 or other.value == 1:
            found.append(other if one.value == 1 else one)
        elif isinstance(one.value, int) and isinstance(other.value, int):
            found.append(Element(one.value * other.value))
        elif one.value is None or other.value is None or (isinstance(one.value, int) and one.value < 0):
            found.append(Element(None))
        else:
            first, second = [(each.value,) if isinstance(each.value, int) else each.value for each in (one, other)]
            assert first is not None
            assert second is not None
            found.append(Element(axis_of([*first, *second])))
    return found


def _arithmetic(combine: Callable[[int, int], int | None]) -> "Callable[[Call], list[Element] | None]":
    def rule(call: Call) -> list[Element] | None:
        pairs = _pairs(call)
        if pairs is None:
            return None
        return [
            Element(combine(one.value, other.value))
            if isinstance(one.value, int) and isinstance(other.value, int)
            else Element(None)
            for one, other in pairs
        ]

    return rule


def _divide(call: Call) -> list[Element] | None:
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
        found.append(Element(value))
    return found


def _pairs(call: Call) -> list[tuple[Element, Element]] | None:
    one, other = call.elements(0), call.elements(1)
    if one is None or other is None:
        return None
    length = max(len(one), len(other))
    if len(one) not in (1, length) or len(other) not in (1, length):
        return None
    columns = [each * length if len(each) == 1 else each for each in (one, other)]
    return list(zip(*columns, strict=True))


def _filled(call: Call) -> list[Element] | None:
    """ConstantOfShape of a known length, of one number."""
    length = call.elements(0)
    if length is None or len(length) > 1 or (length and not isinstance(length[0].value, int)):
        return None
    value = next((each.t for each in call.node.attribute if each.name == "value"), None)
    if value is None or value.data_type not in (6, 7):
        return None
    from onnxjson.tensors import to_numpy

    count = length[0].value if length else 1
    assert isinstance(count, int)
    return [Element(int(to_numpy(value).reshape(-1)[0]))] * count if 0 <= count <= _MOST else None


_RULES: Final[dict[str, Callable[[Call], list[Element] | None]]] = {
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
