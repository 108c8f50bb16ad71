"""Constants that change with the batch: in place, as copies for some of their consumers, or computed by nodes.

A batch with a name changes its size, shapes that contain it, and constants with a row for each sample. The nodes that
compute these are at the start of the main graph, whose values subgraphs can use, too.
"""

import struct
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from math import prod
from typing import Any, Final

from msgspec.structs import replace

from onnxjson.editing.batch_axes import BATCH, Axis
from onnxjson.editing.batch_calls import NodeInput, Requests
from onnxjson.editing.tensor_values import constant_node, constant_tensor, integer_constant, with_values
from onnxjson.editing.workspace import Workspace
from onnxjson.model.constants import type_of_constant
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Function, Graph, Node, Tensor, ValueInfo
from onnxjson.model.dtypes import BITS, DATA_TYPES
from onnxjson.model.errors import EditError
from onnxjson.model.index import Scope
from onnxjson.model.limits import BATCH_CONSTANT_BYTES
from onnxjson.model.messages import ATTRIBUTE_TYPES
from onnxjson.model.tensors import from_numpy, to_numpy
from onnxjson.model.walking import Body

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
        name = _name_at(place)
        made = self._fresh(f"{name}_first")
        return self._put_before(place, Node(op_type="Slice", input=tuple(self._first(name, axes)), output=(made,)))

    def repeated_at(self, place: NodeInput, axis: int, rank: int, batch: int | None) -> str:
        """Return the name of a node input that is repeated along an axis; the axis is counted from the end."""
        name = _name_at(place)
        repeats: list[int | Axis] = [1] * rank
        repeats[axis] = (BATCH,) if batch is None else batch
        made = self._fresh(f"{name}_rows")
        return self._put_before(place, Node(op_type="Tile", input=(name, self.shape(repeats)), output=(made,)))

    def _first(self, name: str, axes: Sequence[int]) -> list[str]:
        ends = self.shape([(BATCH,)] * len(axes))
        return [name, self._constant([0] * len(axes)), ends, self._constant(axes)]

    def _stored(self, tensor: Tensor) -> str:
        name = self._fresh(tensor.name or "rows")
        self.constants.append(replace(tensor, name=name))
        return name

    def samples(self, place: NodeInput, axis: int, rank: int, step: Sequence[int]) -> str:
        """Return the name of the indices at a node input, with the numbers of the samples; see `Requests.samples`."""
        name = _name_at(place)
        limits = [self.shape([each], is_scalar=True) for each in (0, (BATCH,), 1)]
        along = self._constant([-1 if each == axis else 1 for each in range(rank)])
        counted = self._node("Reshape", [self._node("Range", limits, "samples"), along], "samples")
        counted = self._node("Mul", [counted, self._constant(step)], "samples")
        # Indices may be negative; the coordinate of the only sample is left out.
        operator, by = ("Mod", step) if len(step) == 1 and step[0] > 1 else ("Mul", [1 - each for each in step])
        own, made = self._fresh(f"{name}_own"), self._fresh(f"{name}_all")
        kept = Node(op_type=operator, input=(name, self._constant(by)), output=(own,))
        return self._put_before(place, kept, Node(op_type="Add", input=(own, counted), output=(made,)))

    def _put_before(self, place: NodeInput, *nodes: Node) -> str:
        """Put nodes before the one with an input at a place; return the output of the last one."""
        self.before.setdefault(place[0], {}).setdefault(place[1], []).extend(nodes)
        return nodes[-1].output[0]

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
            integer = ATTRIBUTE_TYPES["INT"]
            made = tuple([Attribute(name=name, type=integer, i=value) for name, value in attributes.items()])
            self.nodes.append(Node(tuple(inputs), (self._made[key],), op_type=operator, attribute=made))
        return self._made[key]

    def _fresh(self, wanted: str) -> str:
        name = self._workspace.fresh_name(wanted, self._taken)
        self._taken.append(name)
        return name


class ConstantChanges:
    """New constants by graph.

    Raises:
        EditError: a constant needs rows for more samples, but its rows differ, or it would be too big.
    """

    def __init__(
        self,
        workspace: Workspace,
        requests: Requests,
        batch: tuple[int, int | None],
        computed: ComputedSizes | None = None,
        *,
        mixes: bool = False,
    ) -> None:
        self._computed = computed
        self._mixes = mixes
        self._workspace = workspace
        self.changed: list[str] = []
        """Descriptions of the changed constants."""
        self._constants: dict[Scope, dict[str, Tensor]] = {}
        self._copies: dict[Scope, list[Tensor]] = {}
        self._inputs: dict[Scope, dict[int, dict[int, str]]] = {}
        wanted: dict[tuple[Scope, str], dict[NodeInput, Tensor]] = {}
        for place in (*requests.numbers, *requests.rows):
            scope, name = place[0], _name_at(place)
            constant = constant_tensor(scope, name)
            if constant is None and computed is not None:
                self._connect(place, computed.first_at(place, [*requests.rows[place]]))
                continue
            assert constant is not None
            defining_scope, tensor = constant
            if place in requests.numbers:
                values = integer_constant(scope, name) or ()
                numbers = [requests.numbers[place].get(at, old) for at, old in enumerate(values)]
                fixed = [each for each in numbers if isinstance(each, int)]
                if len(fixed) < len(numbers) and computed is not None:
                    self._connect(place, computed.shape(numbers, is_scalar=not tensor.dims))
                    continue
                new = with_values(tensor, fixed)
            elif self._mixes:
                self._connect(place, self._shortened(tensor, name, requests.rows[place], batch))
                continue
            else:
                (axis, is_single), *others = requests.rows[place].items()
                if others:
                    raise EditError(f'several axes of the constant "{visible(name)}" have the batch')
                sizes = (batch[0], 1 if is_single else batch[1] or 1)
                new = _with_rows(workspace, tensor, name, axis, sizes)
                if computed is not None and batch[1] is None and not is_single:
                    is_there = new.dims == tensor.dims and name in workspace.main.initializers
                    rows = computed.rows(new, name if is_there else None, len(tensor.dims), axis)
                    self._connect(place, rows)
                    continue
            if new != tensor:
                wanted.setdefault((defining_scope, name), {})[place] = new
        if computed is not None:
            for place, shape in requests.shapes.items():
                self._connect(place, computed.shape([each for each in shape if each is not None]))
            for place, (axis, rank) in requests.repeated.items():
                self._connect(place, computed.repeated_at(place, axis, rank, batch[1]))
            for place, (axis, rank, step) in requests.samples.items():
                self._connect(place, computed.samples(place, axis, rank, step))
        for place in requests.dropped:
            shown = f"{place[0].address}/node/{place[1]}"
            self.changed.append(f'"{visible(_name_at(place))}", all zeros, the default of {shown}')
            self._connect(place, "")
        for (defining_scope, name), uses in wanted.items():
            self._settle(defining_scope, name, uses)

    def _connect(self, place: NodeInput, name: str) -> None:
        scope, position, slot = place
        self._inputs.setdefault(scope, {}).setdefault(position, {})[slot] = name

    def _shortened(self, tensor: Tensor, name: str, axes: Mapping[int, bool], sizes: tuple[int, int | None]) -> str:
        """Return the name of a constant with fewer elements along some axes, which are the first ones of it."""
        assert self._computed is not None
        held = self._workspace.with_elements(tensor)
        array, (old, new), cut = to_numpy(held), sizes, []
        for axis, is_single in axes.items():
            if is_single and (array == array.take([0], axis)).all():
                array = array.take([0], axis)
            elif new is None:
                cut.append(axis)
            elif new <= old:
                array = array.take(range(new), axis)
            else:
                raise EditError(
                    f'the constant "{visible(name)}" has elements for sizes up to {old}; '
                    "elements for larger sizes are not known"
                )
        self.changed.append(f'"{visible(name)}"' + (f", which has elements for up to {old}" if cut else ""))
        is_there = array.shape == tensor.dims and name in self._workspace.main.initializers
        return self._computed.first(from_numpy(array, name), is_there=is_there, axes=cut)

    def _settle(self, defining_scope: Scope, name: str, uses: dict[NodeInput, Tensor]) -> None:
        """Change a constant in place if all consumers agree; otherwise give them copies."""
        versions: list[Tensor] = []
        for tensor in uses.values():
            if tensor not in versions:
                versions.append(tensor)
        if len(versions) == 1 and len(self._workspace.index.consumers(defining_scope, name)) == len(uses):
            self._constants.setdefault(defining_scope, {})[name] = versions[0]
            self.changed.append(f'"{visible(name)}"')
            return
        for version in versions:
            taken = [each.name or "" for copies in self._copies.values() for each in copies]
            copy = self._workspace.fresh_name(name, taken)
            self._copies.setdefault(defining_scope, []).append(replace(version, name=copy))
            self.changed.append(f'"{visible(copy)}", a copy of "{visible(name)}"')
            for place in [place for place, tensor in uses.items() if tensor == version]:
                self._connect(place, copy)

    def change(self, scope: Scope, graph: Body) -> Body:
        """Return the graph with its new constants, and nodes that compute some of them."""
        graph = self._with_constants(scope, graph)
        if not isinstance(graph, Graph):
            return graph
        computed = self._computed
        if computed is not None and (before := computed.before.get(scope)):
            nodes = [each for at, node in enumerate(graph.node) for each in (*before.get(at, ()), node)]
            graph = replace(graph, node=tuple(nodes))
        if computed is not None and scope is self._workspace.main:
            constants = (*graph.initializer, *computed.constants)
            graph = replace(graph, node=(*computed.nodes, *graph.node), initializer=constants)
        return _with_inputs(graph, scope) if scope.keeps_defaults else graph

    def _with_constants(self, scope: Scope, graph: Body) -> Body:
        constants, copies = self._constants.get(scope, {}), self._copies.get(scope, [])
        inputs = self._inputs.get(scope, {})
        if not (constants or copies or inputs):
            return graph
        nodes = list(graph.node)
        for position, slots in inputs.items():
            names = [slots.get(slot, name) for slot, name in enumerate(nodes[position].input)]
            while names and not names[-1]:
                names.pop()
            nodes[position] = replace(nodes[position], input=tuple(names))
        for name in constants.keys() & scope.producers.keys():
            position = scope.producers[name][0]
            nodes[position] = _constant_node(nodes[position], constants[name])
        if isinstance(graph, Function):
            nodes[:0] = [constant_node(tensor.name or "", replace(tensor, name=None)) for tensor in copies]
            return replace(graph, node=tuple(nodes))
        initializers = [
            constants.get(each.name or "", each) if each.name not in scope.producers else each
            for each in graph.initializer
        ]
        return replace(
            graph,
            node=tuple(nodes),
            initializer=(*initializers, *copies),
            # The constant may have another shape than its value_info states.
            value_info=tuple([each for each in graph.value_info if each.name not in constants]),
        )


def _with_inputs(graph: Graph, before: Scope) -> Graph:
    """Return a graph in which each new or changed initializer is an input of its type, as before IR version 4."""
    held = {each.name or "": each for each in graph.initializer}
    new = {name: type_of_constant(each) for name, each in held.items() if each is not before.initializer(name)}
    inputs = [replace(each, type=new.pop(each.name or "", each.type)) for each in graph.input]
    return replace(graph, input=(*inputs, *[ValueInfo(name=name, type=new[name]) for name in new]))


def _name_at(place: NodeInput) -> str:
    scope, position, slot = place
    return scope.graph.node[position].input[slot]


def _constant_node(node: Node, tensor: Tensor) -> Node:
    """Return a Constant with another value, in the same attribute if possible."""
    attribute = node.attribute[0]
    if attribute.t is not None:
        return replace(node, attribute=(replace(attribute, t=replace(tensor, name=attribute.t.name)),))
    if attribute.type in (2, 7) and tensor.data_type == 7:
        values = tuple([int(each) for each in to_numpy(tensor).reshape(-1)])
        new = replace(attribute, i=values[0]) if attribute.type == 2 else replace(attribute, ints=values)
        return replace(node, attribute=(new,))
    return constant_node(node.output[0], replace(tensor, name=None), node.name)


def _with_rows(workspace: Workspace, tensor: Tensor, name: str, axis: int, batch: tuple[int, int]) -> Tensor:
    """Return a constant with rows for all samples: its rows repeated as needed."""
    import numpy

    old, new = batch
    shown = f'the constant "{visible(name)}"'
    if tensor.data_type not in BITS or BITS[tensor.data_type] % 8:
        raise EditError(f"{shown} cannot have rows for more samples")
    held = workspace.with_elements(tensor)
    array = to_numpy(held)
    rows = array.shape[axis] // old
    if array.nbytes // max(array.shape[axis], 1) * rows * new > BATCH_CONSTANT_BYTES:
        raise EditError(f"{shown} would have more than {BATCH_CONSTANT_BYTES >> 20} MiB; make it smaller first")
    sample = array.take(range(rows), axis)
    if numpy.concatenate([sample] * old, axis).tobytes() != array.tobytes():
        raise EditError(
            f"{shown} has a different row for each of the {old} samples; rows for more samples are not known"
        )
    array_of_batch = numpy.concatenate([sample] * new, axis)
    return replace(
        held,
        dims=array_of_batch.shape,
        raw_data=array_of_batch.tobytes(),
        doc_string=tensor.doc_string,
        metadata_props=tensor.metadata_props,
    )
