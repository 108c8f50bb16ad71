"""Inference of types and shapes by onnx, of whole models and after edits; infer-shapes, the edit that adds them."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

from msgspec.structs import replace

from onnxjson.editing.alike_nodes import Inference
from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.parameters import about
from onnxjson.editing.partial_inference import inferred_dims
from onnxjson.editing.type_correction import correct_types, types_that_follow
from onnxjson.editing.type_relations import Dims, is_complete, tensor_of, with_shape, with_type
from onnxjson.editing.workspace import Workspace, main_scope
from onnxjson.model.dimensions import with_dimension_names
from onnxjson.model.display import visible
from onnxjson.model.document import Function, Model, TensorShape, Type, ValueInfo
from onnxjson.model.index import Index, Scope
from onnxjson.model.types import shown_type
from onnxjson.model.walking import Body, rebuild

__all__ = ["InferShapes"]

_SHOWN = 5


class TypeConflict(NamedTuple):
    """A value whose type in the model contradicts the inferred one."""

    address: str
    """Address of the graph."""
    name: str
    stated: Type
    inferred: Type

    def __str__(self) -> str:
        stated, inferred = [shown_type(each) for each in (self.stated, self.inferred)]
        types = f"declared as {visible(stated)}, but inferred as {visible(inferred)}"
        return f'"{visible(self.name)}" is {types} ({self.address})'


class Inferred(NamedTuple):
    """A model with inferred types."""

    model: Model
    before: int
    """Number of values with a type and a rank before, without constants."""
    now: int
    values: int
    """Number of outputs of nodes and inputs of graphs."""
    conflicts: tuple[TypeConflict, ...]


class LooseInference:
    """Types that onnx infers from the types of the inputs alone.

    Raises:
        WorkerError: the inference crashed, hung or refused the model.
        EditError, UntrustedError: see `Part.infer`.
    """

    def __init__(self, index: Index, folder: Path | None) -> None:
        self.index = index
        main = index.main
        nodes = range(len(main.graph.node)) if main is not None else range(0)
        cleared = {scope.address: scope.producers for scope in index.scopes}
        self._types = Inference(index, folder).infer(nodes, {}, cleared).types

    def type_of(self, scope: Scope, name: str) -> Type | None:
        """Return the inferred type of a value that a graph defines."""
        return self._types.get(scope.address, {}).get(name)

    def dims(self, scope: Scope, name: str) -> Dims | None:
        """Return the dims of a value that is used in a graph; None if its rank is not known."""
        return inferred_dims(scope, name, self._types)


def propagate_types(workspace: Workspace) -> tuple[str, ...]:
    """Correct the types of values after the nodes, constants and inputs that changed, and return remarks.

    Nodes that cannot have these types are added to `Workspace.complaints`.

    Raises:
        EditError, UntrustedError: see `Part.infer`.
    """
    if workspace.typed is workspace.model:
        return ()
    corrected = correct_types(workspace.typed, workspace.index, workspace.model_folder)
    workspace.keep_types()
    if corrected.model is not workspace.model:
        workspace.replace_equivalent(corrected.model)
    workspace.complaints.update(corrected.complaints)
    return corrected.notes


def replace_dimension(workspace: Workspace, name: str, size: int | str) -> tuple[str, ...]:
    """Replace a name of dimensions by another or a size; correct the types that follow, and return remarks."""

    # Functions have their own dimensions: they may be called with other sizes.
    def change(scope: Scope, graph: Body) -> Body:
        return graph if isinstance(graph, Function) or scope.owner else with_dimension_names(graph, {name: size})

    workspace.replace_model(rebuild(workspace.index, change))
    return propagate_types(workspace)


def infer(model: Model, folder: Path | None, *, overwrite: bool = False) -> Inferred:
    """Add the types that onnx infers to outputs and value_info; `overwrite` replaces types that contradict them.

    Raises:
        WorkerError, EditError, UntrustedError: see `Part.infer`.
    """
    index = Index(model)
    following, contradicting = types_that_follow(index, folder)
    conflicts: list[TypeConflict] = []

    def change(scope: Scope, graph: Body) -> Body:
        if isinstance(graph, Function) or scope not in following:
            return graph
        types, wrong = following[scope], contradicting[scope]

        def better(value: ValueInfo) -> ValueInfo:
            name = value.name or ""
            if value.type is not None and name in wrong:
                conflicts.append(TypeConflict(scope.address, name, value.type, wrong[name]))
                return with_type(value, wrong[name]) if overwrite else value
            new = types.get(name)
            return value if new is None else replace(value, type=new)

        infos = [better(each) for each in graph.value_info]
        stated = {each.name for each in (*graph.input, *graph.output, *graph.value_info)}
        infos += [
            ValueInfo(name=name, type=each)
            for name, each in types.items()
            if each is not None and name not in stated and name in scope.producers
        ]
        return replace(graph, output=tuple([better(each) for each in graph.output]), value_info=tuple(infos))

    result = rebuild(index, change)
    before, values = _count(index)
    return Inferred(result, before, _count(Index(result))[0], values, tuple(conflicts))


def state_types(workspace: Workspace, before: Model, names: Collection[str]) -> None:
    """State the types that values of the main graph had, where operators that onnx does not know compute them now.

    Raises:
        WorkerError, EditError, UntrustedError: see `Part.infer`.
    """
    types = main_scope(Index(before)).types
    if not all([name in types and is_complete(types[name]) for name in names]):
        types = main_scope(Index(infer(before, workspace.model_folder).model)).types
    # A new record of the shape is how an edit states it.
    shapes = {name: dims for name in names if (dims := getattr(types.get(name), "tensor_type", None)) and dims.shape}
    stated = {name: with_shape(types[name], TensorShape(dim=each.shape.dim)) for name, each in shapes.items()}
    graph = workspace.graph

    def with_types(values: tuple[ValueInfo, ...]) -> tuple[ValueInfo, ...]:
        return tuple([replace(each, type=stated.pop(each.name or "", each.type)) for each in values])

    output, infos = with_types(graph.output), with_types(graph.value_info)
    infos += tuple([ValueInfo(name=name, type=each) for name, each in stated.items()])
    workspace.replace_graph(workspace.main, replace(graph, output=output, value_info=infos))


def _count(index: Index) -> tuple[int, int]:
    known = values = 0
    for scope in index.scopes:
        if scope.kind == "function":
            continue
        names = dict.fromkeys((*scope.inputs, *scope.producers))
        values += len(names)
        known += sum([_is_known(scope.types.get(name)) for name in names])
    return known, values


def _is_known(value: Type | None) -> bool:
    if value is None:
        return False
    tensor = tensor_of(value)
    return tensor is None or (bool(tensor.elem_type) and tensor.shape is not None)


class InferShapes(Edit, frozen=True, kw_only=True, eq=False, tag="infer-shapes"):
    """Infer types and shapes of values, and add them to the model.

    The inferred types go into outputs and value_info. Types that the model already has stay, with their unknown parts
    filled in. A type that contradicts the inferred one stays and is reported.
    """

    group: ClassVar = "shapes"
    examples = ('{"edit": "infer-shapes"}',)

    overwrite: Annotated[bool, about("Replace types that contradict the inferred ones.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        inferred = infer(workspace.model, workspace.model_folder, overwrite=self.overwrite)
        workspace.replace_model(inferred.model)
        workspace.keep_types()
        count = f"{inferred.now:,} of {inferred.values:,} values"
        share = f"{count} now have a type and a rank; before, {inferred.before:,} had"
        what = "replaced" if self.overwrite else "kept; `overwrite` replaces it"
        wrong = [f"{conflict}; {what}" for conflict in inferred.conflicts[:_SHOWN]]
        more = len(inferred.conflicts) - len(wrong)
        return Outcome(inferred.values, (share, *wrong, *([f"{more:,} more conflicts"] if more else [])))
