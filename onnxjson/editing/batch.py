"""set-batch-size, the edit that changes the batch size of a model.

`batch_tracing` follows the batch through the nodes with the rules of `batch_rules`; `ConstantChanges` changes the
constants that fix its size: in place, or as copies for some of their consumers.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.editing.batch_axes import Axes, has_batch, resized
from onnxjson.editing.batch_computing import ComputedSizes
from onnxjson.editing.batch_rules import RULES
from onnxjson.editing.batch_tracing import NodeInput, Requests, Tracer
from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.inference import LooseInference, propagate_types, replace_dimension
from onnxjson.editing.tensor_values import constant_node, constant_tensor, integer_constant, with_values
from onnxjson.editing.type_relations import dims_of
from onnxjson.editing.workspace import Workspace
from onnxjson.model.dimensions import with_dimension
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Function, Graph, Node, Tensor, ValueInfo
from onnxjson.model.dtypes import BITS
from onnxjson.model.errors import EditError
from onnxjson.model.index import Scope
from onnxjson.model.limits import BATCH_CONSTANT_BYTES, LARGEST_DIM
from onnxjson.model.tensors import to_numpy
from onnxjson.model.walking import Body, rebuild
from onnxjson.storage.constant_reading import with_elements
from onnxjson.storage.external import Resolver

_SHOWN: Final = 8


class SetBatchSize(Edit, frozen=True, kw_only=True, eq=False, tag="set-batch-size"):
    """Set the batch size, or a name for it, in inputs, outputs, and all constants that contain it.

    The edit follows the batch from the inputs through every node. Only the numbers that represent it change: in shapes
    of Reshape, Expand and the like, and rows of constants that are the same for each sample. Where the batch gets a
    name, nodes compute the numbers that a 0 or -1 cannot replace. If the batch cannot be followed, or samples would be
    mixed, nothing is changed and every such node is named.
    """

    words: ClassVar = ("size",)
    examples: ClassVar = (
        '{"edit": "set-batch-size", "size": "N"}',
        '{"edit": "set-batch-size", "size": 8, "inputs": {"images": 0, "state": 1}}',
    )

    size: Annotated[int | str, Meta(description="The new size, or a name for a size that varies.")]
    inputs: Annotated[
        dict[str, int] | None,
        Meta(description="Inputs with a batch axis, and the axis; by default, inputs whose first axis has its size."),
    ] = None
    partial: Annotated[
        bool, Meta(description="Change what can be changed, and name the nodes that cannot be followed.")
    ] = False

    def change(self, workspace: Workspace) -> Outcome:
        size = self.size
        if isinstance(size, int) and not 0 < size <= LARGEST_DIM:
            raise EditError(f"{size} is not a batch size; give a number from 1, or a name such as N")
        if size == "" or size == "?":
            raise EditError("the batch needs a size or a name, such as N")
        places, old, others = _places(workspace, self.inputs)
        if old == size:
            return Outcome(len(places), (f"the batch is {visible(str(size))} already",))
        if isinstance(old, str):
            notes = [*replace_dimension(workspace, old, size)]
        else:
            notes = self._resized(workspace, places, old, size)
        left = [f'"{visible(name)}" is assumed to have no batch' for name in others]
        return Outcome(len(places), (*notes, *left))

    def _resized(self, workspace: Workspace, places: Mapping[str, int], old: int, size: int | str) -> list[str]:
        inference = LooseInference(workspace.index, workspace.model_folder)
        main, opset = workspace.main, workspace.opset(None, "") or 1
        tracers = []
        for joins_later in (False, True):
            tracer = Tracer(inference, old, size, opset, RULES, joins_later=joins_later)
            for name, axis in places.items():
                tracer.start(main, name, axis)
            tracer.trace(main)
            tracers.append(tracer)
            if not tracer.problems:
                break
        tracer = min(tracers, key=lambda each: len(each.problems))
        problems = [f"{address} ({_operator(workspace, address)}): {text}" for address, text in tracer.problems.items()]
        lost = [f'"{visible(name)}"' for name in main.output_names if name and tracer.found[main].get(name, ()) is None]
        if lost and not problems:
            problems.append(f"it is not known whether {_listed(lost)} has the batch")
        if problems and not self.partial:
            raise EditError(_refusal(problems))
        computed = ComputedSizes(workspace, *next(iter(places.items())))
        batch = (old, size if isinstance(size, int) else None)
        changes = ConstantChanges(workspace, tracer.requests, batch, computed)

        def change(scope: Scope, graph: Body) -> Body:
            graph, values = changes.change(scope, graph), tracer.found.get(scope)
            return _typed(graph, values, size) if values and isinstance(graph, Graph) else graph

        workspace.replace_model(rebuild(workspace.index, change))
        remarks = propagate_types(workspace)
        wrong = [*workspace.complaints.values()]
        if wrong and not self.partial:
            raise EditError(_refusal(wrong))
        workspace.is_forced |= self.partial
        notes = [f"constants that changed: {_listed(changes.changed)}"] if changes.changed else []
        notes = [*notes, *remarks]
        return [*notes, *[f"not followed: {text}" for text in (*problems, *wrong)]]


def _places(workspace: Workspace, given: Mapping[str, int] | None) -> tuple[dict[str, int], int | str, list[str]]:
    """Return the inputs with the batch and their axes, its size, and the inputs without it."""
    constants = workspace.main.initializers
    inputs = {
        value.name: dims
        for value in workspace.graph.input
        if value.name and value.name not in constants and (dims := dims_of(value.type))
    }
    if given is not None:
        places = {}
        for name, axis in given.items():
            if name not in inputs:
                workspace.value(name)
                raise EditError(f'"{visible(name)}" is not an input with a shape; inputs are {_names(list(inputs))}')
            if not -len(inputs[name]) <= axis < len(inputs[name]):
                raise EditError(f'"{visible(name)}" has {len(inputs[name])} axes, none at {axis}')
            places[name] = axis % len(inputs[name])
        sizes = {name: inputs[name][axis] for name, axis in places.items()}
        if not sizes:
            raise EditError("`inputs` is empty; it must name the inputs that have the batch")
    else:
        if not inputs:
            raise EditError("the model has no input with a shape, so the batch cannot be located")
        first = next(iter(inputs.values()))[0]
        sizes = {name: dims[0] for name, dims in inputs.items() if dims[0] == first}
        places = dict.fromkeys(sizes, 0)
    different = set(sizes.values())
    old = next(iter(sizes.values()))
    if len(different) > 1 or old is None:
        shown = ", ".join([f'"{visible(name)}" {"unknown" if each is None else each}' for name, each in sizes.items()])
        raise EditError(f"the inputs have different batch sizes: {visible(shown)}; give them one size with set-dim")
    if old == 0:
        raise EditError("the batch is 0 now and cannot be followed; give it a size with set-shape")
    return places, old, [name for name in inputs if name not in places]


def _typed(graph: Graph, values: Mapping[str, Axes | None], size: int | str) -> Graph:
    """Return the graph with other sizes where the batch is, and without types of values that could not be followed."""

    def typed(value: ValueInfo) -> ValueInfo:
        axes = values.get(value.name or "")
        tensor = value.type.tensor_type if value.type is not None else None
        if value.name not in values or value.type is None or tensor is None or tensor.shape is None:
            return value
        dims = list(tensor.shape.dim)
        if axes is None or len(axes) != len(dims):
            dims = [with_dimension(each, None) if each.dim_value is not None else each for each in dims]
        else:
            dims = [
                with_dimension(each, resized(axis, size)) if has_batch(axis) else each
                for each, axis in zip(dims, axes, strict=True)
            ]
        shape = replace(tensor.shape, dim=tuple(dims))
        return replace(value, type=replace(value.type, tensor_type=replace(tensor, shape=shape)))

    updates: dict[str, Any] = {
        "input": tuple([typed(each) for each in graph.input]),
        "output": tuple([typed(each) for each in graph.output]),
        "value_info": tuple([typed(each) for each in graph.value_info if values.get(each.name or "", ()) is not None]),
    }
    return replace(graph, **updates)


def _operator(workspace: Workspace, address: str) -> str:
    owner, _, position = address.rpartition("/node/")
    node = workspace.scope(owner).graph.node[int(position)]
    return visible(f'{node.op_type} "{node.name}"' if node.name else node.op_type or "")


def _listed(texts: list[str]) -> str:
    return listed(list(dict.fromkeys(texts)), _SHOWN)


def _refusal(problems: list[str]) -> str:
    advice = "`partial` changes the rest; where sizes are not known, fold constants first (the pass onnxruntime does)"
    return f"the batch cannot change: {listed(problems, _SHOWN, '; ')}; {advice}"


def _names(names: list[str]) -> str:
    return listed([f'"{visible(name)}"' for name in names], 5)


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
    ) -> None:
        self._computed = computed
        self._workspace = workspace
        self.changed: list[str] = []
        """Descriptions of the changed constants."""
        self._constants: dict[Scope, dict[str, Tensor]] = {}
        self._copies: dict[Scope, list[Tensor]] = {}
        self._inputs: dict[Scope, dict[int, dict[int, str]]] = {}
        wanted: dict[tuple[Scope, str], dict[NodeInput, Tensor]] = {}
        for place in (*requests.numbers, *requests.rows):
            scope, name = place[0], _name_at(place)
            found = constant_tensor(scope, name)
            assert found is not None
            defining_scope, tensor = found
            if place in requests.numbers:
                values = integer_constant(scope, name) or ()
                numbers = [requests.numbers[place].get(at, old) for at, old in enumerate(values)]
                fixed = [each for each in numbers if isinstance(each, int)]
                if len(fixed) < len(numbers) and computed is not None:
                    self._connect(place, computed.shape(numbers, is_scalar=not tensor.dims))
                    continue
                new = with_values(tensor, fixed)
            else:
                axis, is_single = requests.rows[place]
                sizes = (batch[0], 1 if is_single else batch[1] or 1)
                new = _with_rows(tensor, name, axis, sizes, workspace.model_folder)
                if computed is not None and batch[1] is None and not is_single:
                    is_there = new.dims == tensor.dims and name in workspace.main.initializers
                    made = computed.rows(new, name if is_there else None, len(tensor.dims), axis)
                    self._connect(place, made)
                    continue
            if new != tensor:
                wanted.setdefault((defining_scope, name), {})[place] = new
        for place, shape in requests.shapes.items():
            if computed is not None:
                self._connect(place, computed.shape([each for each in shape if each is not None]))
        for place, (axis, rank, step) in requests.samples.items():
            if computed is not None:
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
        if self._computed is None or not isinstance(graph, Graph):
            return graph
        if before := self._computed.before.get(scope):
            nodes = [each for at, node in enumerate(graph.node) for each in (*before.get(at, ()), node)]
            graph = replace(graph, node=tuple(nodes))
        if scope is not self._workspace.main:
            return graph
        constants = (*graph.initializer, *self._computed.constants)
        return replace(graph, node=(*self._computed.nodes, *graph.node), initializer=constants)

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


def _with_rows(tensor: Tensor, name: str, axis: int, batch: tuple[int, int], folder: Path | None) -> Tensor:
    """Return a constant with rows for all samples: its rows repeated as needed."""
    import numpy

    old, new = batch
    shown = f'the constant "{visible(name)}"'
    if tensor.data_type not in BITS or BITS[tensor.data_type] % 8:
        raise EditError(f"{shown} cannot have rows for more samples")
    held = with_elements(tensor, Resolver(folder or Path()))
    array = to_numpy(held)
    rows = array.shape[axis] // old
    if array.nbytes // max(array.shape[axis], 1) * rows * new > BATCH_CONSTANT_BYTES:
        raise EditError(f"{shown} would have more than {BATCH_CONSTANT_BYTES >> 20} MiB; make it smaller first")
    sample = array.take(range(rows), axis)
    if numpy.concatenate([sample] * old, axis).tobytes() != array.tobytes():
        raise EditError(f"{shown} has another row for each of the {old} samples; those of others are not known")
    made = numpy.concatenate([sample] * new, axis)
    return replace(
        held,
        dims=made.shape,
        raw_data=made.tobytes(),
        doc_string=tensor.doc_string,
        metadata_props=tensor.metadata_props,
    )
