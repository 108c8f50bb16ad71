"""set-batch-size, the edit that changes the batch size of a model.

`batch_tracing` follows the batch through the nodes with the rules of `batch_rules`; `batch_constants` changes the
constants that fix its size.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.editing.batch_axes import BATCH, Axes, has_batch, resized
from onnxjson.editing.batch_constants import ComputedSizes, ConstantChanges
from onnxjson.editing.batch_rules import RULES
from onnxjson.editing.batch_tracing import Tracer
from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.inference import LooseInference, propagate_types, replace_dimension
from onnxjson.editing.size_following import start_at_places
from onnxjson.editing.type_relations import dims_of
from onnxjson.editing.workspace import Workspace
from onnxjson.model.dimensions import with_dimension
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Graph, ValueInfo
from onnxjson.model.errors import EditError
from onnxjson.model.index import Scope
from onnxjson.model.limits import LARGEST_DIM
from onnxjson.model.walking import Body, rebuild

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
        if old is None:
            notes = [*_state(workspace, places, size)]
        elif isinstance(old, str):
            notes = [*replace_dimension(workspace, old, size)]
        else:
            notes = resize(workspace, places, old, size, partial=self.partial)
        left = [f'"{visible(name)}" is assumed to have no batch' for name in others]
        return Outcome(len(places), (*notes, *left))


def resize(
    workspace: Workspace,
    places: Mapping[str, int],
    old: int,
    size: int | str,
    *,
    partial: bool = False,
    mixes: bool = False,
) -> list[str]:
    """Change the size of an axis of inputs, and all constants that contain it; return remarks.

    `places` has the axis of each input, `old` its size; `partial` changes what can be changed. With `mixes`, elements
    along the axis may be computed from each other, as those of a sequence.

    Raises:
        EditError: a node cannot be followed; all such nodes are named.
    """
    inference = LooseInference(workspace.index, workspace.model_folder)
    main, opset = workspace.main, workspace.opset(None, "") or 1
    tracers = []
    for joins_later in (False, True):
        tracer = Tracer(inference, old, size, opset, RULES, joins_later=joins_later, mixes=mixes)
        for name, axis in places.items():
            tracer.start(main, name, axis)
        if mixes:
            start_at_places(tracer, main)
        tracer.trace(main)
        tracers.append(tracer)
        if not tracer.problems:
            break
    tracer = min(tracers, key=lambda each: len(each.problems))
    noun = "dimension" if mixes else "batch"
    problems = [
        f"{address} ({_operator(workspace, address)}): {text.replace('the batch', f'the {noun}')}"
        for address, text in tracer.problems.items()
    ]
    lost = [f'"{visible(name)}"' for name in main.output_names if name and tracer.found[main].get(name, ()) is None]
    if lost and not problems:
        problems.append(f"it is not known whether {_listed(lost)} has the {noun}")
    if problems and not partial:
        raise EditError(_refusal(problems, noun))
    computed = ComputedSizes(workspace, *next(iter(places.items())))
    batch = (old, size if isinstance(size, int) else None)
    changes = ConstantChanges(workspace, tracer.requests, batch, computed, mixes=mixes)

    def change(scope: Scope, graph: Body) -> Body:
        graph, values = changes.change(scope, graph), tracer.found.get(scope)
        return _typed(graph, values, size) if values and isinstance(graph, Graph) else graph

    workspace.replace_model(rebuild(workspace.index, change))
    remarks = propagate_types(workspace)
    wrong = [*workspace.complaints.values()]
    if wrong and not partial:
        raise EditError(_refusal(wrong, noun))
    workspace.is_forced |= partial
    notes = [f"constants that changed: {_listed(changes.changed)}"] if changes.changed else []
    notes = [*notes, *remarks]
    return [*notes, *[f"not followed: {text}" for text in (*problems, *wrong)]]


def _state(workspace: Workspace, places: Mapping[str, int], size: int | str) -> tuple[str, ...]:
    """Set a batch whose size is unknown. No constant contains it, so only types change. Return remarks."""
    ranks = {name: len(dims_of(workspace.main.types[name]) or ()) for name in places}
    axes = {
        name: tuple([(BATCH,) if axis == place else () for axis in range(ranks[name])])
        for name, place in places.items()
    }

    def change(scope: Scope, graph: Body) -> Body:
        return _typed(graph, axes, size) if scope is workspace.main and isinstance(graph, Graph) else graph

    workspace.replace_model(rebuild(workspace.index, change))
    return propagate_types(workspace)


def _places(
    workspace: Workspace, given: Mapping[str, int] | None
) -> tuple[dict[str, int], int | str | None, list[str]]:
    """Return the inputs with the batch and their axes, its size (None: unknown), and the inputs without it."""
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
    if len(different) > 1:
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


def _refusal(problems: list[str], noun: str) -> str:
    advice = "where sizes are not known, fold constants first (the pass onnxruntime does)"
    advice = advice if noun == "dimension" else f"`partial` changes the rest; {advice}"
    return f"the {noun} cannot change: {listed(problems, _SHOWN, '; ')}; {advice}"


def _names(names: list[str]) -> str:
    return listed([f'"{visible(name)}"' for name in names], 5)
