"""What If, Loop and Scan do with the batch: their bodies are followed as the graph around them is."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from onnxjson.edits.batch_axes import Axes, Axis, has_batch
from onnxjson.edits.batch_tracing import BlockedError, Call
from onnxjson.index import Scope

if TYPE_CHECKING:
    from onnxjson.edits.batch_tracing import Result

Follow = Callable[[Scope], None]
"""Goes through the nodes of a graph."""


def branches(call: Call, bodies: Sequence[Scope], follow: Follow) -> "Result":
    """The outputs of an If: what all branches give."""
    results = []
    for body in bodies:
        follow(body)
        results.append(_outputs(call, body))
    outputs: list[Axes] = []
    for slot in range(len(call.node.output)):
        axes = [each[slot] for each in results if slot < len(each)]
        if not axes or any([_pattern(each) != _pattern(axes[0]) for each in axes]):
            raise BlockedError("its branches treat the batch in different ways")
        outputs.append(axes[0])
    return outputs


def loop(call: Call, bodies: Sequence[Scope], follow: Follow) -> "Result":
    """The outputs of a Loop: the values that go round, and what every round adds."""
    body = bodies[0]
    carried = len(call.node.input) - 2
    for place in range(carried):
        _give(call, body, 2 + place, call.needed(2 + place))
    follow(body)
    results = _outputs(call, body)[1:]
    for place, axes in enumerate(results[:carried]):
        _check_round(call.needed(2 + place), axes)
    return [*results[:carried], *[[None, *axes] for axes in results[carried:]]]


def scan(call: Call, bodies: Sequence[Scope], follow: Follow) -> "Result":
    """The outputs of a Scan: its states, and what every round adds."""
    body = bodies[0]
    count = call.number("num_scan_inputs", 0)
    states = len(call.node.input) - count
    if call.opset < 9:
        raise BlockedError("nobody follows the Scan of opset 8")
    along = call.list_of("scan_input_axes") or (0,) * count
    for place in range(len(call.node.input)):
        axes = call.needed(place)
        if place >= states:
            axis = along[place - states] % len(axes)
            if has_batch(axes[axis]):
                raise BlockedError("it goes through the samples one after another")
            axes = (*axes[:axis], *axes[axis + 1 :])
        _give(call, body, place, axes)
    follow(body)
    results = _outputs(call, body)
    for place, axes in enumerate(results[:states]):
        _check_round(call.needed(place), axes)
    added = call.list_of("scan_output_axes") or (0,) * len(results)
    outputs: list[Sequence[Axis | None]] = list(results[:states])
    for place, axes in enumerate(results[states:]):
        axis = added[place] % (len(axes) + 1)
        outputs.append([*axes[:axis], None, *axes[axis:]])
    return outputs


def _give(call: Call, body: Scope, place: int, axes: Axes) -> None:
    """Says what the axes of an input of a body are."""
    names = [*body.inputs]
    if place < len(names) and any(map(has_batch, axes)):
        call.tracer.found.setdefault(body, {})[names[place]] = axes


def _outputs(call: Call, body: Scope) -> list[Axes]:
    found: list[Axes] = []
    for name in body.output_names:
        axes = call.tracer.axes(body, name or "")
        if axes is None:
            raise BlockedError("the shape of an output of its body is not known")
        found.append(axes)
    return found


def _check_round(before: Axes, after: Axes) -> None:
    """Do nothing if a value has the batch after a round where it had it before."""
    if _pattern(before) != _pattern(after):
        raise BlockedError("a value that goes round has the batch in another place afterwards")


def _pattern(axes: Axes) -> list[Axis]:
    return [axis if has_batch(axis) else () for axis in axes]


SUBGRAPH_RULES: Final[dict[str, Callable[[Call, Sequence[Scope], Follow], "Result"]]] = {
    "If": branches,
    "Loop": loop,
    "Scan": scan,
}
"""The rules by operator of the default domain."""
