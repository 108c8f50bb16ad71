"""Nodes that compute what a batch with a name changes: its size, shapes that contain it, constants with a row each.

All of them are at the start of the main graph, whose values subgraphs can use, too.
"""

import struct
from collections.abc import Hashable, Sequence
from itertools import groupby
from math import prod
from typing import Any, Final

from msgspec.structs import replace

from onnxjson.editing.batch_axes import BATCH, Axis
from onnxjson.editing.batch_tracing import NodeInput
from onnxjson.editing.workspace import Workspace
from onnxjson.model.document import Attribute, Node, Tensor
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.index import Scope
from onnxjson.model.messages import ATTRIBUTE_TYPES

_INT64: Final = DATA_TYPES["int64"]
_SHAPE_OF_PART_SINCE: Final = 15
"""Version of the operator set from which a Shape can have a start and an end."""


class ComputedSizes:
    """Nodes and constants for the size of an axis of an input; equal ones are made once."""

    def __init__(self, workspace: Workspace, input_name: str, axis: int) -> None:
        self._workspace = workspace
        self._source = input_name, axis
        self._made: dict[Hashable, str] = {}
        self._taken: list[str] = []
        self.nodes: list[Node] = []
        self.constants: list[Tensor] = []
        self.before: dict[Scope, dict[int, list[Node]]] = {}
        """Nodes to put before others, by their position in a graph."""

    def shape(self, values: Sequence[int | Axis], *, is_scalar: bool = False) -> str:
        """Return the name of a list of numbers and sizes of axes, which have the batch and otherwise numbers only."""
        pieces: list[str] = []
        for is_fixed, group in groupby(values, lambda value: isinstance(value, int)):
            items = list(group)
            if is_fixed:
                pieces.append(self._constant([each for each in items if isinstance(each, int)]))
            else:
                pieces += [self._size(each) for each in items if isinstance(each, tuple)]
        name = pieces[0] if len(pieces) == 1 else self._node("Concat", pieces, "shape", axis=0)
        return self._node("Reshape", [name, self._constant([])], "size") if is_scalar else name

    def rows(self, tensor: Tensor, name: str | None, rank: int, axis: int) -> str:
        """Return the name of a constant that is repeated along an axis; `name` is its name if it is there already."""
        if name is None:
            name = self._stored(tensor)
        repeats: list[int | Axis] = [1] * rank
        repeats[axis] = (BATCH,)
        return self._node("Tile", [name, self.shape(repeats)], f"{name}_rows")

    def first(self, tensor: Tensor, *, is_there: bool, axes: Sequence[int]) -> str:
        """Return the name of the first elements of a constant along some axes, which become as long as the input."""
        name = tensor.name or ""
        key = "first", name, tensor.dims, *axes
        if key not in self._made:
            self._made[key] = name = name if is_there else self._stored(tensor)
            if axes:
                self._made[key] = self._node("Slice", self._first(name, axes), f"{name}_first")
        return self._made[key]

    def first_at(self, place: NodeInput, axes: Sequence[int]) -> str:
        """Return the name of the first elements of the value at a node input, as `first` does for a constant."""
        scope, position, slot = place
        name = scope.graph.node[position].input[slot]
        made = self._fresh(f"{name}_first")
        node = Node(op_type="Slice", input=tuple(self._first(name, axes)), output=(made,))
        self.before.setdefault(scope, {}).setdefault(position, []).append(node)
        return made

    def repeated_at(self, place: NodeInput, axis: int, rank: int, batch: int | None) -> str:
        """Return the name of a node input that is repeated along an axis; the axis is counted from the end."""
        scope, position, slot = place
        name = scope.graph.node[position].input[slot]
        repeats: list[int | Axis] = [1] * rank
        repeats[axis] = (BATCH,) if batch is None else batch
        made = self._fresh(f"{name}_rows")
        node = Node(op_type="Tile", input=(name, self.shape(repeats)), output=(made,))
        self.before.setdefault(scope, {}).setdefault(position, []).append(node)
        return made

    def _first(self, name: str, axes: Sequence[int]) -> list[str]:
        ends = self.shape([(BATCH,)] * len(axes))
        return [name, self._constant([0] * len(axes)), ends, self._constant(axes)]

    def _stored(self, tensor: Tensor) -> str:
        name = self._fresh(tensor.name or "rows")
        self.constants.append(replace(tensor, name=name))
        return name

    def samples(self, place: NodeInput, axis: int, rank: int, step: Sequence[int]) -> str:
        """Return the name of the indices at a node input, with the numbers of the samples; see `Requests.samples`."""
        scope, position, slot = place
        name = scope.graph.node[position].input[slot]
        limits = [self.shape([each], is_scalar=True) for each in (0, (BATCH,), 1)]
        along = self._constant([-1 if each == axis else 1 for each in range(rank)])
        counted = self._node("Reshape", [self._node("Range", limits, "samples"), along], "samples")
        counted = self._node("Mul", [counted, self._constant(step)], "samples")
        # Indices may be negative; the coordinate of the only sample is left out.
        operator, by = ("Mod", step) if len(step) == 1 and step[0] > 1 else ("Mul", [1 - each for each in step])
        own, made = self._fresh(f"{name}_own"), self._fresh(f"{name}_all")
        self.before.setdefault(scope, {}).setdefault(position, []).extend(
            [
                Node(op_type=operator, input=(name, self._constant(by)), output=(own,)),
                Node(op_type="Add", input=(own, counted), output=(made,)),
            ]
        )
        return made

    def _size(self, axis: Axis) -> str:
        factors = [self._batch()] * axis.count(BATCH)
        number = prod([each for each in axis if isinstance(each, int)])
        name, *rest = [*factors, *([self._constant([number])] if number != 1 else [])]
        for factor in rest:
            name = self._node("Mul", [name, factor], "size")
        return name

    def _batch(self) -> str:
        name, axis = self._source
        if (self._workspace.opset(None, "") or 1) >= _SHAPE_OF_PART_SINCE:
            return self._node("Shape", [name], "batch_size", start=axis, end=axis + 1)
        whole = self._node("Shape", [name], f"{name}_shape")
        return self._node("Gather", [whole, self._constant([axis])], "batch_size", axis=0)

    def _constant(self, values: Sequence[int]) -> str:
        key = tuple(values)
        if key not in self._made:
            self._made[key] = self._fresh("sizes")
            data = struct.pack(f"<{len(values)}q", *values)
            self.constants.append(Tensor(name=self._made[key], dims=(len(values),), data_type=_INT64, raw_data=data))
        return self._made[key]

    def _node(self, operator: str, inputs: list[str], wanted: str, **attributes: Any) -> str:
        key = operator, *inputs, *attributes.values()
        if key not in self._made:
            self._made[key] = self._fresh(wanted)
            integers = [
                Attribute(name=name, type=ATTRIBUTE_TYPES["INT"], i=value) for name, value in attributes.items()
            ]
            node = Node(op_type=operator, input=tuple(inputs), output=(self._made[key],), attribute=tuple(integers))
            self.nodes.append(node)
        return self._made[key]

    def _fresh(self, wanted: str) -> str:
        name = self._workspace.fresh_name(wanted, self._taken)
        self._taken.append(name)
        return name
