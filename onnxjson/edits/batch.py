"""Another batch: set-batch-size."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta
from msgspec.structs import replace

from onnxjson.display import visible
from onnxjson.document import Function, Graph, ValueInfo
from onnxjson.edits.batch_axes import Axes, has_batch, resized
from onnxjson.edits.batch_constants import ConstantChanges
from onnxjson.edits.batch_layout_rules import SHAPE_TAKERS
from onnxjson.edits.batch_rules import RULES
from onnxjson.edits.batch_tracing import Tracer
from onnxjson.edits.declaration import Edit
from onnxjson.edits.dimensions import with_dimension, with_dimension_names
from onnxjson.edits.outcome import Outcome
from onnxjson.edits.propagation import Inference, dims_of, new_complaints, propagated
from onnxjson.edits.rebuilding import Body, rebuilt
from onnxjson.edits.workspace import Workspace
from onnxjson.errors import EditError
from onnxjson.index import Scope
from onnxjson.types import LARGEST_DIM

_SHOWN: Final = 8


class SetBatchSize(Edit, frozen=True, kw_only=True, eq=False, tag="set-batch-size"):
    """Give the batch another size, or a name: in inputs, outputs, and the constants that fix it in between.

    The batch is followed from the inputs through every node. Only the numbers that stand for it change: in shapes of
    Reshape, Expand and the like, and rows of constants that are the same for each sample. Where it cannot be followed,
    or samples would be mixed up, nothing is changed and every such node is named.
    """

    words: ClassVar = ("size",)
    examples: ClassVar = (
        '{"edit": "set-batch-size", "size": "N"}',
        '{"edit": "set-batch-size", "size": 8, "inputs": {"images": 0, "state": 1}}',
    )

    size: Annotated[int | str, Meta(description="The new size, or a name for one that may be any.")]
    inputs: Annotated[
        dict[str, int] | None,
        Meta(description="The inputs that have the batch, and their axis; those that begin with its size if left out."),
    ] = None
    partial: Annotated[
        bool, Meta(description="Change what can be changed, and only name the nodes that cannot be followed.")
    ] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        size = self.size
        if isinstance(size, int) and not 0 < size <= LARGEST_DIM:
            raise EditError(f"{size} is no batch size; give a number from 1, or a name such as N")
        if size == "" or size == "?":
            raise EditError("the batch needs a size or a name, such as N")
        places, old, others = _places(workspace, self.inputs)
        if old == size:
            return Outcome(len(places), (f"the batch is {visible(str(size))} already",))
        if isinstance(old, str):
            notes = _renamed(workspace, old, size)
        else:
            notes = self._resized(workspace, places, old, size)
        left = [f'"{visible(name)}" is taken to have no batch' for name in others]
        return Outcome(len(places), (*notes, *left))

    def _resized(self, workspace: Workspace, places: Mapping[str, int], old: int, size: int | str) -> list[str]:
        before = workspace.model
        inference = Inference(before, workspace.model_folder)
        tracer = Tracer(inference, old, size, workspace.opset(None, "") or 1)
        main = next(scope for scope in inference.index.scopes if scope.kind == "main")
        for name, axis in places.items():
            tracer.start(main, name, axis)
        tracer.trace(main, RULES, SHAPE_TAKERS)
        problems = [f"{address} ({_operator(workspace, address)}): {text}" for address, text in tracer.problems.items()]
        lost = [f'"{visible(name)}"' for name in main.output_names if name and tracer.found[main].get(name, ()) is None]
        if lost and not problems:
            problems.append(f"nobody knows whether {_listed(lost)} has the batch")
        if problems and not self.partial:
            raise EditError(_refusal(problems))
        changes = ConstantChanges(workspace, tracer.requests, (old, size if isinstance(size, int) else None))
        found = {scope.address: values for scope, values in tracer.found.items()}

        def change(scope: Scope, graph: Body) -> Body:
            graph = changes.change(scope, graph)
            values = found.get(scope.address)
            return _typed(graph, values, size) if values and isinstance(graph, Graph) else graph

        after = rebuilt(workspace.index, change)
        wrong = new_complaints(inference, Inference(after, workspace.model_folder))
        if wrong and not self.partial:
            raise EditError(_refusal(wrong))
        workspace.replace_model(after)
        notes = [f"constants that changed: {_listed(changes.changed)}"] if changes.changed else []
        return [*notes, *[f"not followed: {text}" for text in (*problems, *wrong)]]


def _places(workspace: Workspace, given: Mapping[str, int] | None) -> tuple[dict[str, int], int | str, list[str]]:
    """The inputs that have the batch and their axes, its size, and the inputs that do not have it."""
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
                raise EditError(f'"{visible(name)}" is no input with a shape; inputs are {_names(list(inputs))}')
            if not -len(inputs[name]) <= axis < len(inputs[name]):
                raise EditError(f'"{visible(name)}" has {len(inputs[name])} axes; there is none at {axis}')
            places[name] = axis % len(inputs[name])
        sizes = {name: inputs[name][axis] for name, axis in places.items()}
        if not sizes:
            raise EditError("`inputs` is empty; it says which inputs have the batch")
    else:
        if not inputs:
            raise EditError("the model has no input with a shape, so nobody knows where the batch is")
        first = next(iter(inputs.values()))[0]
        sizes = {name: dims[0] for name, dims in inputs.items() if dims[0] == first}
        places = dict.fromkeys(sizes, 0)
    different = set(sizes.values())
    old = next(iter(sizes.values()))
    if len(different) > 1 or old is None:
        shown = ", ".join([f'"{visible(name)}" {"unknown" if each is None else each}' for name, each in sizes.items()])
        raise EditError(f"the batch is not one size: {visible(shown)}; set-dim gives the inputs one")
    if old == 0:
        raise EditError("the batch is 0 now, from which nothing can be followed; set-shape gives it a size")
    return places, old, [name for name in inputs if name not in places]


def _renamed(workspace: Workspace, old: str, size: int | str) -> list[str]:
    """A batch that has a name: it stands wherever that name does."""

    def change(scope: Scope, graph: Body) -> Body:
        return graph if isinstance(graph, Function) or scope.owner else with_dimension_names(graph, {old: size})

    after = rebuilt(workspace.index, change)
    result = propagated(workspace.model, after, workspace.model_folder, is_trusted=True)
    workspace.replace_model(result.model)
    return list(result.notes)


def _typed(graph: Graph, values: Mapping[str, Axes | None], size: int | str) -> Graph:
    """The graph with other sizes where the batch is; what is said of values that were lost is not said any more."""

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
    unique = list(dict.fromkeys(texts))
    return ", ".join(unique[:_SHOWN]) + (f" and {len(unique) - _SHOWN:,} more" if len(unique) > _SHOWN else "")


def _refusal(problems: list[str]) -> str:
    shown = "; ".join(problems[:_SHOWN]) + (f"; and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else "")
    return f"the batch cannot change: {shown}; `partial` changes the rest"


def _names(names: list[str]) -> str:
    return ", ".join([f'"{visible(name)}"' for name in names[:5]]) + (", ..." if len(names) > 5 else "")
