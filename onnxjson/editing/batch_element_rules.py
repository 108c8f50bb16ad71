"""Rules for the batch about single elements: those that operators select, and those of computed shapes.

The first are rules of nodes (see `batch_rules`), of parts of axes and of elements at indices. The second find the
elements of small integer values: sizes of axes, numbers from constants, and simple arithmetic.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Final

from onnxjson.editing.batch_axes import (
    BATCH,
    UNKNOWN_SHAPE,
    Axes,
    Axis,
    BlockedError,
    axis_of,
    has_batch,
    refuse_batch,
    size,
)
from onnxjson.editing.batch_calls import Call, Outputs, ShapeElement
from onnxjson.editing.batch_tracing import MOST_ELEMENTS, ElementRule, NodeRule
from onnxjson.model.index import NodeRef

_FAR: Final = 1 << 31
"""Ends of a Slice from this number on mean the end of the axis."""
_MOST_FOLLOWED: Final = 128
"""Values from which indices are computed that are followed, each by some calls of Python within each other."""
_UNPAIRED: Final = "samples and their indices do not match"
_SELECTS: Final = "it selects some of the samples"

_STEPPING: Final = {
    **dict.fromkeys(("Unsqueeze", "Squeeze", "Reshape", "Flatten", "Cast", "Expand", "Identity", "Transpose"), 1),
    "Add": 2,
    "Mul": 2,
    "Concat": None,
}
"""Operators through which sample numbers are followed -> number of inputs to follow."""


def known_numbers(call: Call, slot: int, attribute: str) -> list[int | Axis | None] | None:
    """Return numbers of an attribute or input, with axes for sizes; None if they are not known."""
    numbers = call.list_of(attribute)
    if numbers is not None:
        return list(numbers)
    elements = call.elements(slot)
    return None if elements is None else [each.value for each in elements]


def _slice(call: Call) -> Outputs:
    axes = call.needed(0)
    starts, ends = known_numbers(call, 1, "starts"), known_numbers(call, 2, "ends")
    along = call.numbers(3, "axes")
    steps = call.numbers(4, "steps") if call.opset >= 10 else None
    count = len(along) if along is not None else len(starts or ends or ())
    result: list[Axis | None] = list(axes)
    for place, axis in enumerate(along if along is not None else range(count)):
        axis %= len(axes)
        if has_batch(axes[axis]):
            first, last = (each[place] if each is not None else None for each in (starts, ends))
            if call.tracer.mixes and not steps and (part := _part(axes[axis], first, last, call.batch)):
                result[axis] = part
                continue
            if starts is None or ends is None or starts[place] != 0 or (steps and steps[place] != 1):
                raise BlockedError(_SELECTS)
            if (end := ends[place]) != axes[axis] and not (isinstance(end, int) and end >= _FAR - 1):
                raise BlockedError(_SELECTS)
        else:
            bounds = (
                None if starts is None or ends is None else (starts[place], ends[place], steps[place] if steps else 1)
            )
            result[axis] = _sliced(size(axes[axis], call.batch), bounds)
    return [result]


def _part(axis: Axis, first: int | Axis | None, last: int | Axis | None, old: int) -> Axis | None:
    """Return the axis of a fixed number of elements at the start or the end of a dimension; None for other parts."""
    if axis != (BATCH,) or not isinstance(first, int) or not isinstance(last, int):
        return None
    if 0 <= first < last < old:
        return axis_of([last - first])
    return axis_of([-first]) if first < 0 and last >= _FAR - 1 else None


def _sliced(length: int | None, bounds: tuple[int | Axis | None, ...] | None) -> Axis | None:
    numbers = [each for each in bounds or () if isinstance(each, int)]
    if length is None or len(numbers) < 3 or numbers[2] <= 0:
        return None
    return axis_of([len(range(*slice(*numbers).indices(length)))])


def _gather(call: Call) -> Outputs:
    axes, indices = call.needed(0), call.needed(1)
    axis = call.number("axis", 0) % len(axes)
    if axes[axis][:1] == (BATCH,) and len(axes[axis]) == 2 and not call.tracer.mixes:
        indices = _of_all_samples(call, indices, [size(axes[axis], call.batch) or 0])
    elif not _may_select(call, indices):
        refuse_batch([axes[axis]], _SELECTS)
        _stretch_counted(call, indices, range(axis, axis + 1))
    return [[*axes[:axis], *indices, *axes[axis + 1 :]]]


def _may_select(call: Call, indices: Axes) -> bool:
    """Whether indices along a sequence are right for other lengths: they follow it, or do not count to its end."""
    found = [each.value for each in call.elements(1) or ()]
    is_inside = bool(found) and all([isinstance(each, int) and each < call.batch - 1 for each in found])
    is_computed = not found and not call.is_fixed(call.node.input[1])
    return call.tracer.mixes and (is_inside or is_computed or any(map(has_batch, indices)))


def _gather_nd(call: Call) -> Outputs:
    axes, indices = call.needed(0), call.needed(1)
    together, count = call.number("batch_dims", 0), size(indices[-1], call.batch)
    if count is None:
        raise BlockedError(UNKNOWN_SHAPE)
    chosen = axes[together : together + count]
    if [*map(has_batch, axes[:together])] != [*map(has_batch, indices[:together])]:
        raise BlockedError(_UNPAIRED)
    if not together and chosen[:1] == ((BATCH,),) and not call.tracer.mixes:
        indices, chosen = _of_all_samples(call, indices, [1] + [0] * (count - 1)), chosen[1:]
    if not _may_select(call, indices):
        refuse_batch(chosen, _SELECTS)
        _stretch_counted(call, indices, range(together, together + len(chosen)))
    return [[*indices[:-1], *axes[together + count :]]]


def _of_all_samples(call: Call, indices: Axes, step: list[int]) -> Axes:
    """Request indices into all samples, from those into one; return their axes."""
    if call.batch != 1:
        raise BlockedError(f"its indices count the elements of {call.batch} samples together; export one sample")
    given = [place for place, axis in enumerate(indices) if has_batch(axis)]
    rank = len(indices) - (call.node.op_type == "GatherND")
    where = next(iter([*given, *[place for place in range(rank) if not indices[place]]]), rank)
    if where >= rank or (given and indices[where] != (BATCH,)) or len(given) > 1 or not step[0]:
        raise BlockedError("its indices have no axis for the samples")
    if _own_steps(call, call.node.input[1], {}) == step:
        return indices
    if any([scope.kind == "function" for scope in call.scope.chain()]):
        raise BlockedError("indices of samples must be computed, which a function cannot do")
    call.tracer.requests.samples[call.place(1)] = (where, len(indices), step)
    return (*indices[:where], (BATCH,), *indices[where + 1 :])


def _own_steps(call: Call, name: str, known: dict[str, list[int]]) -> list[int]:
    """Return the step from one sample to the next in each coordinate of indices.

    Raises:
        BlockedError: a step is unknown.
    """
    if name not in known:
        if len(known) == _MOST_FOLLOWED:
            raise BlockedError("its indices are computed by too many nodes to be followed")
        known[name] = [0]
        if name in call.scope.producers:
            source = Call(call.tracer, NodeRef(call.scope, call.scope.producers[name][0]))
            known[name] = _steps_of(source, known)
    return known[name]


def _steps_of(call: Call, known: dict[str, list[int]]) -> list[int]:
    operator = call.node.op_type or ""
    if operator == "Range":
        return [int(any(map(has_batch, call.tracer.axes(call.scope, call.node.output[0]) or ())))]
    if operator not in _STEPPING:
        return [0]
    of_inputs = [_own_steps(call, each, known) for each in call.node.input[: _STEPPING[operator]]]
    if operator == "Concat":
        return [step for steps in of_inputs for step in steps]
    if operator == "Add":
        return [sum(each) for each in zip(*of_inputs, strict=False)]
    if operator == "Mul" and any(map(any, of_inputs)):
        factors = {
            each.value for slot, steps in enumerate(of_inputs) if not any(steps) for each in call.elements(slot) or ()
        }
        factor = next(iter(factors), None)
        if len(factors) != 1 or not isinstance(factor, int):
            raise BlockedError("its indices count the samples in a way that cannot be followed")
        return [step * factor for step in next(filter(any, of_inputs))]
    return of_inputs[0]


def _stretch_counted(call: Call, indices: Axes, places: Sequence[int]) -> None:
    """Add rows for all samples to the data if the indices count the samples but the data lacks them."""
    if call.tracer.mixes or not any(map(has_batch, indices)):
        return
    axes = call.needed(0)
    for place, step in zip(places, _own_steps(call, call.node.input[1], {}), strict=False):
        if step and step != size(axes[place], call.batch):
            raise BlockedError("its indices count the samples, but its data does not have them")
        if step:
            call.give_rows(0, place - len(axes), (BATCH, *axes[place]))


def _elements_at(result: int) -> NodeRule:
    """Build the rule of GatherElements and ScatterElements, whose output has the axes of one of the inputs."""

    def rule(call: Call) -> Outputs:
        axes, indices = call.needed(0), call.needed(1)
        axis = call.number("axis", 0) % len(axes)
        if call.tracer.mixes and result == 1 and not has_batch(axes[axis]):
            return [indices]
        if has_batch(axes[axis]) or has_batch(indices[axis]):
            raise BlockedError(_UNPAIRED)
        result_axes = list(call.needed(result))
        for place, pair in enumerate(zip(axes, indices, strict=True)):
            if has_batch(pair[0]) != has_batch(pair[1]):
                if result == 0 or size(pair[0], call.batch) != size(pair[1], call.batch):
                    raise BlockedError(_UNPAIRED)
                result_axes[place] = pair[has_batch(pair[1])]
                call.give_rows(int(has_batch(pair[0])), place - len(axes), result_axes[place])
        return [result_axes]

    return rule


def _one_hot(call: Call) -> Outputs:
    axes = call.needed(0)
    axis = call.number("axis", -1)
    place = axis + len(axes) + 1 if axis < 0 else axis
    return [[*axes[:place], None, *axes[place:]]]


SELECTION_RULES: Final[dict[str, NodeRule]] = {
    "Slice": _slice, "Gather": _gather, "GatherND": _gather_nd, "GatherElements": _elements_at(1),
    "ScatterElements": _elements_at(0), "Scatter": _elements_at(0), "OneHot": _one_hot,
}  # fmt: skip
"""Rules by operator of the default domain."""


def _shape(call: Call) -> list[ShapeElement] | None:
    axes = call.axes(0)
    if axes is None:
        return None
    return [_of_size(axis) for axis in axes[call.number("start", 0) : call.number("end", _FAR)]]


def _of_size(axis: Axis) -> ShapeElement:
    if not axis:
        return ShapeElement(1)
    return ShapeElement(axis[0] if len(axis) == 1 and isinstance(axis[0], int) else axis)


def _gathered_elements(call: Call) -> list[ShapeElement] | None:
    elements, indices = call.elements(0), call.numbers(1, "indices")
    if elements is None or indices is None or call.number("axis", 0) not in (0, -1):
        return None
    if not all([-len(elements) <= index < len(elements) for index in indices]):
        return None
    return [elements[index] for index in indices]


def _sliced_elements(call: Call) -> list[ShapeElement] | None:
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
    joined: list[ShapeElement] = []
    for slot in range(len(call.node.input)):
        elements = call.elements(slot)
        if elements is None:
            sizes = call.axes(slot)
            if sizes is None or len(sizes) != 1 or sizes[0] not in ((), (1,)):
                return None
            elements = [ShapeElement(None)]
        joined += elements
    return joined


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


def _on_numbers(compute: Callable[[int, int], int | None]) -> ElementRule:
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
    "Gather": _gathered_elements,
    "Slice": _sliced_elements,
    "Concat": _concat,
    "Where": _pointwise(_where),
    "Equal": _pointwise(_equal),
    "Mul": _pointwise(_multiplied),
    "Div": _pointwise(_divided),
    "Add": _on_numbers(operator.add),
    "Sub": _on_numbers(operator.sub),
    "Mod": _on_numbers(lambda one, other: one % other if other else None),
    "Transpose": _transpose,
    "ConstantOfShape": _filled,
    **dict.fromkeys(("Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Flatten"), lambda call: call.elements(0)),
}
"""Rules by operator of the default domain."""
