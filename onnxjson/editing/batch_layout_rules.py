"""Rules for the batch of operators that move, join and fill; see `batch_rules`."""

import math
import struct
from collections.abc import Sequence
from typing import Final

from onnxjson.editing.batch_axes import (
    BATCH,
    COMPUTED_SHAPE,
    MIXED,
    Axes,
    Axis,
    BlockedError,
    axis_of,
    has_batch,
    open_sizes,
    refuse_batch,
    regroup,
    resized,
    size,
    without,
)
from onnxjson.editing.batch_calls import Call, Outputs, ShapeElement
from onnxjson.editing.batch_element_rules import SELECTION_RULES, known_numbers
from onnxjson.editing.batch_tracing import NodeRule
from onnxjson.editing.tensor_values import constant_tensor
from onnxjson.model.payloads import whole
from onnxjson.model.tensors import raw_bytes

_NUMBER: Final = "a number in its shape"

SHAPE_INPUTS: Final[dict[str, int]] = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0, "Tile": 1, "Range": 1}
"""Operators whose output can get the batch from a shape alone -> the slot of that shape."""


def _transpose(call: Call) -> Outputs:
    axes = call.needed(0)
    perm = call.list_of("perm") or tuple(range(len(axes)))[::-1]
    return [[axes[axis] for axis in perm]]


def _flatten(call: Call) -> Outputs:
    axes = call.needed(0)
    axis = call.number("axis", 1)
    axis = axis + len(axes) if axis < 0 else axis
    return [[axis_of([f for each in axes[:axis] for f in each]), axis_of([f for each in axes[axis:] for f in each])]]


def _squeeze(call: Call) -> Outputs:
    axes = call.needed(0)
    along = call.numbers(1, "axes")
    if along is None:
        # The operator removes axes of size 1; with another size, the batch would no longer be removed.
        if any([has_batch(axis) and size(axis, call.batch) == 1 for axis in axes]):
            raise BlockedError("it removes that dimension of size 1, and its axes are not given")
        removed = {place for place, axis in enumerate(axes) if not axis}
    else:
        removed = {axis % len(axes) for axis in along}
    refuse_batch([axes[axis] for axis in removed], "it removes that dimension, whose size must be 1 for this")
    return [without(axes, removed, keep=False)]


def _unsqueeze(call: Call) -> Outputs:
    axes = call.needed(0)
    along = call.numbers(1, "axes") or []
    rank = len(axes) + len(along)
    new = {axis % rank for axis in along}
    old = iter(axes)
    return [[() if place in new else next(old) for place in range(rank)]]


def _concat(call: Call) -> Outputs:
    given = [(slot, call.needed(slot)) for slot in range(len(call.node.input))]
    rank = len(given[0][1])
    axis = call.number("axis", 1) % rank
    result: list[Axis | None] = []
    for place in range(rank):
        column = [(slot, axes[place]) for slot, axes in given]
        batched = [each for _, each in column if has_batch(each)]
        if place == axis:
            refuse_batch(batched, "it joins that dimension with other elements" if call.tracer.mixes else MIXED)
            sizes = [size(each, call.batch) for _, each in column]
            result.append(None if None in sizes else axis_of([sum([each or 0 for each in sizes])]))
            continue
        if any([each != batched[0] for each in batched]):
            raise BlockedError("two inputs combine that dimension with other sizes in different ways")
        if batched:
            for slot, each in column:
                if not has_batch(each):
                    call.give_rows(slot, place, batched[0])
        known = [each for _, each in column if size(each, call.batch) is not None]
        result.append(next(iter([*batched, *known]), None))
    return [result]


def _reshape(call: Call) -> Outputs:
    axes = call.axes(0)
    shape = known_numbers(call, 1, "shape")
    sizes = call.out_sizes() or [None] * len(shape or ())
    if axes is None or shape is None or len(sizes) != len(shape):
        raise BlockedError(COMPUTED_SHAPE)
    if not any(map(has_batch, axes)):
        if any([isinstance(each, tuple) and has_batch(each) for each in shape]):
            raise BlockedError("its shape follows that dimension, but its input does not")
        return [[axis_of([each]) if isinstance(each, int) else None for each in _filled_in(call, axes, shape, sizes)]]
    is_open = -1 in shape
    sizes = _filled_in(call, axes, shape, sizes)
    opened = shape.index(-1) if is_open else None
    try:
        result = regroup(axes, sizes, call.batch, opened, later=call.tracer.joins_later)
    except BlockedError as blocked:
        before, after = [str(resized(axis, "batch") or "?") for axis in axes], [str(each or "?") for each in sizes]
        raise BlockedError(f"{blocked}, [{', '.join(before)}] becomes [{', '.join(after)}]") from None
    elements = call.elements(1)
    _follow_shape(call, axes, result, [ShapeElement(each) for each in shape] if elements is None else elements)
    return [result]


def _filled_in(
    call: Call, axes: Axes, shape: Sequence[int | Axis | None], sizes: Sequence[int | str | None]
) -> list[int | str | None]:
    """Return the sizes after a Reshape; sizes that onnx does not infer are those of the shape."""
    filled = list(sizes)
    for place, value in enumerate(shape):
        if filled[place] is None and isinstance(value, int) and value > 0:
            filled[place] = value
        elif filled[place] is None and isinstance(value, tuple):
            filled[place] = size(value, call.batch)
        elif filled[place] is None and value == 0 and place < len(axes) and not call.number("allowzero", 0):
            filled[place] = size(axes[place], call.batch)
    known = [each for each in filled if isinstance(each, int)]
    total = [size(axis, call.batch) for axis in axes]
    if filled.count(None) == 1 and len(known) == len(filled) - 1 and None not in total and 0 not in known:
        filled[filled.index(None)] = math.prod([each or 0 for each in total]) // math.prod(known)
    return filled


def _follow_shape(call: Call, axes: Axes, result: Axes, elements: Sequence[ShapeElement]) -> None:
    """Request changes to the shape of a Reshape where it does not follow the batch."""
    copies = not call.number("allowzero", 0)
    opened = next((place for place, each in enumerate(elements) if each.value == -1), None)
    for place, (axis, element) in enumerate(zip(result, elements, strict=True)):
        value = element.value
        if isinstance(value, tuple) and has_batch(value) != has_batch(axis):
            raise BlockedError("its shape puts that dimension elsewhere")
        if not has_batch(axis) or value == -1 or isinstance(value, tuple):
            continue
        if value == 0 and copies:
            if place >= len(axes) or axes[place] != axis:
                raise BlockedError("its shape copies the size of another axis")
            continue
        if value is None:
            raise BlockedError(COMPUTED_SHAPE)
        new = call.tracer.new
        if isinstance(new, int):
            call.set_number(1, place, call.new_size(axis, _NUMBER), _NUMBER)
        elif copies and place < len(axes) and axes[place] == axis:
            call.set_number(1, place, 0, _NUMBER)
        elif opened is None:
            call.set_number(1, place, -1, _NUMBER)
            opened = place
        else:
            known = size(result[opened], call.batch)
            if known is None or has_batch(result[opened]) or elements[opened].origin is None:
                call.set_number(1, place, call.new_size(axis, _NUMBER), _NUMBER)
                continue
            call.set_number(1, opened, known, _NUMBER)
            call.set_number(1, place, -1, _NUMBER)
            opened = place


def _expand(call: Call) -> Outputs:
    axes = call.needed(0)
    elements = call.elements(1)
    if elements is None:
        raise BlockedError(COMPUTED_SHAPE)
    rank = max(len(axes), len(elements))
    result: list[Axis | None] = []
    for place in range(-rank, 0):
        axis = axes[place] if -place <= len(axes) else ()
        element = elements[place] if -place <= len(elements) else ShapeElement(1)
        value = element.value
        if has_batch(axis):
            if isinstance(value, int) and value != 1:
                call.set_number(1, place + len(elements), 1, _NUMBER)
            elif value is None or (isinstance(value, tuple) and value != axis):
                raise BlockedError("its shape puts another size where that dimension is")
            result.append(axis)
        elif isinstance(value, tuple) and has_batch(value):
            if axis and size(axis, call.batch) != size(value, call.batch):
                raise BlockedError("its shape puts that dimension where another axis is")
            if axis:
                call.stretch(0, place, value)
            result.append(value)
        else:
            result.append(axis or (axis_of([value]) if isinstance(value, int) else value))
    return [result]


def _filled(call: Call) -> Outputs:
    elements = call.elements(0)
    if elements is None:
        raise BlockedError(COMPUTED_SHAPE if call.axes(0) is not None else "nothing is known about its shape")
    return [[axis_of([each.value]) if isinstance(each.value, int) else each.value for each in elements]]


def _range(call: Call) -> Outputs:
    limits = [call.elements(slot) for slot in range(3)]
    start, end, step = [each[0].value if each is not None and len(each) == 1 else None for each in limits]
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int) and step:
        return [[axis_of([max(0, -((start - end) // step))])]]
    if not isinstance(end, tuple) or not has_batch(end):
        return [[None]]
    if start != 0 or step != 1:
        raise BlockedError("it does not count the samples from 0")
    return [[end]]


def _tile(call: Call) -> Outputs:
    axes, repeats = call.needed(0), call.elements(1)
    if repeats is None or len(repeats) != len(axes):
        raise BlockedError("its repeats are computed in a way that cannot be followed")
    result: list[Axis | None] = []
    for axis, (value, _) in zip(axes, repeats, strict=True):
        if value == 1:
            result.append(axis)
        elif isinstance(value, int):
            call.refuse_mixing([axis], "it repeats the samples")
            result.append(axis_of([value, *axis]) if has_batch(axis) else None)
        else:
            result.append(axis_of([*value, *axis]) if value is not None and has_batch(value) else None)
    return [result]


def _pad(call: Call) -> Outputs:
    axes = call.needed(0)
    pads = known_numbers(call, 1, "pads")
    along = call.numbers(3, "axes") if call.opset >= 18 else None
    places = [axis % len(axes) for axis in along] if along is not None else list(range(len(axes)))
    if pads is None or len(pads) != 2 * len(places):
        # Models that compute their pads never pad the batch.
        return [open_sizes(axes)]
    for place, axis in enumerate(places):
        if has_batch(axes[axis]) and any([pads[index] not in (0, None) for index in (place, place + len(places))]):
            raise BlockedError("it adds samples")
    padded = open_sizes(axes)
    for place, axis in enumerate(places):
        first, last, before = pads[place], pads[place + len(places)], size(axes[axis], call.batch)
        if not has_batch(axes[axis]) and isinstance(first, int) and isinstance(last, int) and before is not None:
            padded[axis] = axis_of([before + first + last])
    return [padded]


def _resize(call: Call) -> Outputs:
    axes = call.needed(0)
    slot = 3 if call.opset >= 11 else None
    if slot is not None and call.has(slot):
        elements = call.elements(slot)
        along = call.list_of("axes") or tuple(range(len(axes)))
        if elements is None or len(elements) != len(along):
            raise BlockedError("its sizes are computed in a way that cannot be followed")
        for index, (axis, element) in enumerate(zip(along, elements, strict=True)):
            if has_batch(axes[axis]) and isinstance(element.value, int):
                if axes[axis] != (BATCH,):
                    raise BlockedError("it resizes an axis that contains that dimension")
                new = call.new_size(axes[axis], "the size of the samples")
                call.set_number(3, index, new, "a number in its sizes")
            elif has_batch(axes[axis]) and element.value != axes[axis]:
                raise BlockedError("its sizes are computed in a way that cannot be followed")
    else:
        _check_scales(call, axes)
    return [open_sizes(axes)]


def _check_scales(call: Call, axes: Axes) -> None:
    """Raise if the scales, as far as they are known, change the number of samples."""
    slot = 2 if call.opset >= 11 else 1
    scales = constant_tensor(call.scope, call.node.input[slot]) if call.has(slot) else None
    stored = raw_bytes(scales[1]) if scales is not None and scales[1].data_type == 1 else None
    along = call.list_of("axes") or tuple(range(len(axes)))
    values = struct.iter_unpack("<f", whole(stored[0])) if stored is not None else ()
    for axis, (value,) in zip(along, values, strict=False):
        if has_batch(axes[axis]) and value != 1:
            raise BlockedError("it scales the number of samples")


LAYOUT_RULES: Final[dict[str, NodeRule]] = {
    **SELECTION_RULES,
    "Transpose": _transpose,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Concat": _concat,
    "Reshape": _reshape,
    "Expand": _expand,
    "ConstantOfShape": _filled,
    "Range": _range,
    "Tile": _tile,
    "Pad": _pad,
    "Resize": _resize,
    "Upsample": _resize,
}
"""Rules by operator of the default domain."""
