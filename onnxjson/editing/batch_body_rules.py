"""Rules of If, Loop and Scan for the batch: where it enters their subgraphs, and where it leaves them."""

from collections.abc import Mapping, Sequence
from typing import Final

from onnxjson.editing.batch_axes import Axes, Axis, BlockedError, LostError, has_batch, refuse_batch
from onnxjson.editing.batch_calls import Call, Outputs
from onnxjson.editing.batch_tracing import BodyRule
from onnxjson.model.index import Scope

_ONE_CONDITION: Final = "it has one condition for all samples"


def _if(call: Call, bodies: Sequence[Scope]) -> Outputs:
    """Outputs on which all branches agree."""
    refuse_batch(call.axes(0) or (), _ONE_CONDITION)
    results = []
    for body in bodies:
        call.tracer.trace(body)
        results.append(_body_outputs(call, body))
    outputs: list[Axes] = []
    for slot in range(len(call.node.output)):
        axes = [each[slot] for each in results if slot < len(each)]
        if not axes or any([_batch_only(each) != _batch_only(axes[0]) for each in axes]):
            raise BlockedError("its branches treat that dimension in different ways")
        outputs.append(axes[0])
    return outputs


def _loop(call: Call, bodies: Sequence[Scope]) -> Outputs:
    """Carried values, then the values that are stacked by iteration."""
    body = bodies[0]
    refuse_batch(call.axes(0) or (), "it has one number of iterations for all samples")
    if call.tracer.mixes and [each.value for each in call.elements(0) or ()] == [call.batch]:
        raise BlockedError(f"it runs {call.batch} times, which may be the old size")
    carried = len(call.node.input) - 2
    for place in range(carried):
        _give(call, body, 2 + place, call.needed(2 + place))
    call.tracer.trace(body)
    condition, *results = _body_outputs(call, body)
    refuse_batch([*(call.axes(1) or ()), *condition], _ONE_CONDITION)
    for place, axes in enumerate(results[:carried]):
        _check_carried(call.needed(2 + place), axes)
    return [*results[:carried], *[[None, *axes] for axes in results[carried:]]]


def _scan(call: Call, bodies: Sequence[Scope]) -> Outputs:
    """States, then the values that are stacked by iteration."""
    body = bodies[0]
    count = call.number("num_scan_inputs", 0)
    states = len(call.node.input) - count
    if call.opset < 9:
        raise BlockedError("the Scan of opset 8 is not supported")
    along = call.list_of("scan_input_axes") or (0,) * count
    for place in range(len(call.node.input)):
        axes = call.needed(place)
        if place >= states:
            axis = along[place - states] % len(axes)
            refuse_batch([axes[axis]], "it iterates over the samples")
            axes = (*axes[:axis], *axes[axis + 1 :])
        _give(call, body, place, axes)
    call.tracer.trace(body)
    results = _body_outputs(call, body)
    for place, axes in enumerate(results[:states]):
        _check_carried(call.needed(place), axes)
    added = call.list_of("scan_output_axes") or (0,) * len(results)
    outputs: list[Sequence[Axis | None]] = list(results[:states])
    for place, axes in enumerate(results[states:]):
        axis = added[place] % (len(axes) + 1)
        outputs.append([*axes[:axis], None, *axes[axis:]])
    return outputs


def _give(call: Call, body: Scope, place: int, axes: Axes) -> None:
    """Set the axes of an input of a body."""
    names = [*body.inputs]
    if place < len(names) and any(map(has_batch, axes)):
        call.tracer.found.setdefault(body, {})[names[place]] = axes


def _body_outputs(call: Call, body: Scope) -> list[Axes]:
    output_axes: list[Axes] = []
    for name in body.output_names:
        axes = call.tracer.axes(body, name or "")
        if axes is None:
            is_lost = call.tracer.has_batch(body, name or "")
            raise (LostError if is_lost else BlockedError)("the shape of an output of its body is not known")
        output_axes.append(axes)
    return output_axes


def _check_carried(before: Axes, after: Axes) -> None:
    """Raise unless a carried value has the batch where it had it before the iteration."""
    if _batch_only(before) != _batch_only(after):
        raise BlockedError("the body moves that dimension of a carried value to another axis")


def _batch_only(axes: Axes) -> list[Axis]:
    return [axis if has_batch(axis) else () for axis in axes]


BODY_RULES: Final[Mapping[str, BodyRule]] = {"If": _if, "Loop": _loop, "Scan": _scan}
