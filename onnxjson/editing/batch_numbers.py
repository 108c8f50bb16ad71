"""The number of samples as a value: where a model computes with it, a sample in a batch is not what it is alone.

A number of samples that only enters shapes, indices, starts and ends is harmless: that is how models keep the batch.
"""

from typing import Final

from onnxjson.editing.batch_axes import MixedError, has_batch
from onnxjson.editing.batch_calls import Call
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import plain_domain
from onnxjson.outline.flow import SHAPE_INPUTS

_ENTERED: Final = SHAPE_INPUTS | {
    "GatherElements": (1,), "GatherND": (1,), "OneHot": (0, 1), "Range": (), "ScatterElements": (1,), "ScatterND": (1,),
}  # fmt: skip
"""Inputs that are shapes, indices, starts, ends and the like; what Range counts is a value of each sample."""

_LAYOUT: Final = frozenset(
    {
        "Cast", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape",
        "ScatterElements", "ScatterND", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze",
    }
)  # fmt: skip
"""Operators that put values together without computing with them."""

_CONTROL: Final = {"If": (0,), "Loop": (0, 1)}

COMPUTES: Final = "it uses the number of samples, so results depend on the batch size"


class BatchNumbers:
    """The values that depend on the number of samples, in all graphs."""

    def __init__(self) -> None:
        self._names: set[tuple[Scope, str]] = set()

    def follow(self, call: Call) -> None:
        """Note the outputs of a node that depend on the number of samples.

        Raises:
            MixedError: the node computes with it and with samples, or decides by it what runs.
        """
        operator = "" if plain_domain(call.node.domain) else call.node.op_type or ""
        if operator in ("Shape", "Size"):
            data = call.node.input[0] if call.node.input else ""
            # Where the batch was lost, the tracer reports it; the size may be any other.
            axes = call.tracer.axes(call.scope, data) if data else None
            is_number = axes is not None and any(map(has_batch, axes))
            if is_number and not self._has_no_batch(call, call.node.output[0]):
                self._add(call)
            return
        slots = [slot for slot, name in enumerate(call.node.input) if name and self._is_number(call, slot, name)]
        if not slots:
            return
        if not set(_CONTROL.get(operator, ())).isdisjoint(slots) and not _only_lays_out(call):
            raise MixedError(COMPUTES)
        values = [slot for slot in slots if slot not in _ENTERED.get(operator, ())]
        others = [name for slot, name in enumerate(call.node.input) if name and slot not in values]
        if values and operator not in _LAYOUT and any([self._has_samples(call, name) for name in others]):
            raise MixedError(COMPUTES)
        if values:
            self._add(call)

    def _add(self, call: Call) -> None:
        self._names.update([(call.scope, name) for name in call.node.output if name])

    def _is_number(self, call: Call, slot: int, name: str) -> bool:
        defining = Index.defining_scope(call.scope, name)
        return defining is not None and (defining, name) in self._names and not self._has_no_batch(call, name)

    @staticmethod
    def _has_no_batch(call: Call, name: str) -> bool:
        """Whether the elements of a shape are known, and none of them is the batch."""
        elements = call.tracer.elements(call.scope, name, call.place(0))
        return elements is not None and not any(
            [each.value is None or (isinstance(each.value, tuple) and has_batch(each.value)) for each in elements]
        )

    def _has_samples(self, call: Call, name: str) -> bool:
        defining = Index.defining_scope(call.scope, name)
        return call.tracer.has_batch(call.scope, name) and (defining, name) not in self._names


def _only_lays_out(call: Call) -> bool:
    """Whether the graphs in a node only put values together, as those that leave out an axis of size 1 do."""
    bodies = [part.g for part in call.node.attribute if part.g is not None]
    return all([node.op_type in _LAYOUT or node.op_type == "Constant" for body in bodies for node in body.node])
