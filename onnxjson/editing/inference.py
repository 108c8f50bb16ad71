"""Inference of types and shapes by onnx, and infer-shapes, the edit that adds them to a model."""

from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.sandbox import LightModel, worker
from onnxjson.editing.workspace import Workspace
from onnxjson.model.display import visible
from onnxjson.model.document import (
    Dimension,
    Function,
    Graph,
    Model,
    SparseTensorType,
    TensorShape,
    TensorType,
    Type,
    ValueInfo,
)
from onnxjson.model.index import Index, Scope
from onnxjson.model.types import format_type
from onnxjson.model.walking import Body, rebuild

_SHOWN = 5

INVENTED: str = "unk__"
"""Prefix of dimension names that the inference invents."""


class TypeConflict(NamedTuple):
    """A value whose type in the model contradicts the inferred one."""

    address: str
    """Address of the graph."""
    name: str
    stated: Type
    inferred: Type

    def __str__(self) -> str:
        stated, inferred = [format_type(each) or "a type" for each in (self.stated, self.inferred)]
        return f'"{visible(self.name)}" is stated as {visible(stated)}, inferred {visible(inferred)} ({self.address})'


class Inferred(NamedTuple):
    """A model with inferred types."""

    model: Model
    before: int
    """Number of values with a type and a rank before, without constants."""
    now: int
    values: int
    """Number of outputs of nodes and inputs of graphs."""
    conflicts: tuple[TypeConflict, ...]


def inferred_types(model: Model, folder: Path | None) -> Model:
    """Run the shape inference of onnx on a model without its big constants.

    Raises:
        WorkerError: the inference crashed, hung or refused the model.
        EditError, MissingInputError, UntrustedError: see `LightModel`.
    """
    from onnxjson.codecs import serde

    return serde.parse(worker().infer_shapes(LightModel(model, folder).data)).model


def infer(model: Model, folder: Path | None, *, overwrite: bool = False) -> Inferred:
    """Add the types that onnx infers to outputs and value_info; nothing else changes.

    Args:
        model: is not modified.
        folder: the folder of small external data.
        overwrite: replace types that contradict the inferred ones.

    Raises:
        WorkerError, EditError, MissingInputError, UntrustedError: see `inferred_types`.
    """
    index = Index(model)
    found = Index(inferred_types(model, folder)).by_address
    conflicts: list[TypeConflict] = []

    def change(scope: Scope, graph: Body) -> Body:
        there = found.get(scope.address)
        if there is None or isinstance(graph, Function):
            return graph
        return _joined(scope, graph, there, conflicts, overwrite=overwrite)

    result = rebuild(index, change)
    before, values = _count(index)
    return Inferred(result, before, _count(Index(result))[0], values, tuple(conflicts))


def _joined(scope: Scope, graph: Graph, there: Scope, conflicts: list[TypeConflict], *, overwrite: bool) -> Graph:
    stated = {each.name for each in (*graph.input, *graph.output, *graph.value_info)}

    def better(value: ValueInfo) -> ValueInfo:
        inferred = there.types.get(value.name or "")
        if inferred is None:
            return value
        joined = inferred if value.type is None else refine_type(value.type, inferred)
        if joined is None and value.type is not None:
            conflicts.append(TypeConflict(scope.address, value.name or "", value.type, inferred))
            joined = inferred if overwrite else None
        return value if joined is None or joined == value.type else msgspec.structs.replace(value, type=joined)

    outputs = tuple([better(each) for each in graph.output])
    infos = [better(each) for each in graph.value_info]
    for position, slot in scope.producers.values():
        name = graph.node[position].output[slot]
        inferred = there.types.get(name)
        if name not in stated and inferred is not None:
            infos.append(ValueInfo(name=name, type=without_invented_names(inferred)))
    if outputs == graph.output and tuple(infos) == graph.value_info:
        return graph
    return msgspec.structs.replace(graph, output=outputs, value_info=tuple(infos))


def refine_type(stated: Type, inferred: Type) -> Type | None:
    """Fill gaps of a stated type with the inferred one; None if they contradict each other."""
    one, other = _tensor(stated), _tensor(inferred)
    if one is None or other is None:
        kinds = [_kind(each) for each in (stated, inferred)]
        return stated if kinds[0] == kinds[1] or not all(kinds) else None
    if type(one) is not type(other) or (one.elem_type and other.elem_type and one.elem_type != other.elem_type):
        return None
    shape = one.shape
    if other.shape is not None:
        if shape is None:
            shape = _without_invented(other.shape)
        elif len(shape.dim) != len(other.shape.dim):
            return None
        else:
            dims = [_dimension(a, b) for a, b in zip(shape.dim, other.shape.dim, strict=True)]
            known = [each for each in dims if each is not None]
            if len(known) != len(dims):
                return None
            shape = msgspec.structs.replace(shape, dim=tuple(known))
    tensor = msgspec.structs.replace(one, elem_type=one.elem_type or other.elem_type, shape=shape)
    if isinstance(tensor, SparseTensorType):
        return msgspec.structs.replace(stated, sparse_tensor_type=tensor)
    return msgspec.structs.replace(stated, tensor_type=tensor)


def _dimension(stated: Dimension, inferred: Dimension) -> Dimension | None:
    if stated.dim_value is not None:
        return stated if inferred.dim_value in (None, stated.dim_value) else None
    if stated.dim_param:
        # A name stays a name: its author allows more than the size that is inferred here.
        return stated
    if inferred.dim_value is not None:
        return msgspec.structs.replace(stated, dim_value=inferred.dim_value, dim_param=None)
    if inferred.dim_param and not inferred.dim_param.startswith(INVENTED):
        return msgspec.structs.replace(stated, dim_param=inferred.dim_param)
    return stated


def without_invented_names(inferred: Type) -> Type:
    """Return a type without the dimension names that the shape inference invents."""
    tensor = inferred.tensor_type
    if tensor is None or tensor.shape is None:
        return inferred
    changed = msgspec.structs.replace(tensor, shape=_without_invented(tensor.shape))
    return msgspec.structs.replace(inferred, tensor_type=changed)


def _without_invented(shape: TensorShape) -> TensorShape:
    dims = [Dimension() if (each.dim_param or "").startswith(INVENTED) else each for each in shape.dim]
    return msgspec.structs.replace(shape, dim=tuple(dims))


def _tensor(value: Type) -> TensorType | SparseTensorType | None:
    return value.tensor_type or value.sparse_tensor_type


def _kind(value: Type) -> str:
    fields = ("tensor_type", "sequence_type", "map_type", "opaque_type", "sparse_tensor_type", "optional_type")
    return next((field for field in fields if getattr(value, field) is not None), "")


def _count(index: Index) -> tuple[int, int]:
    """Count values with a known type and rank, and all values, of graphs that can state types."""
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
    tensor = _tensor(value)
    return tensor is None or (bool(tensor.elem_type) and tensor.shape is not None)


class InferShapes(Edit, frozen=True, kw_only=True, eq=False, tag="infer-shapes"):
    """Infer types and shapes of values, and add them to the model.

    The inferred types go into outputs and value_info. Types that the model already has stay, with their unknown parts
    filled in. A type that contradicts the inferred one stays and is reported.
    """

    examples = ('{"edit": "infer-shapes"}',)

    overwrite: Annotated[bool, Meta(description="Replace types that contradict the inferred ones.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        """See `Edit.change`."""
        found = infer(workspace.model, workspace.model_folder, overwrite=self.overwrite)
        workspace.replace_model(found.model)
        share = f"{found.now:,} of {found.values:,} values have a type and a rank now, {found.before:,} had before"
        what = "replaced" if self.overwrite else "kept; overwrite replaces it"
        wrong = [f"{conflict}; {what}" for conflict in found.conflicts[:_SHOWN]]
        more = len(found.conflicts) - len(wrong)
        return Outcome(found.values, (share, *wrong, *([f"{more:,} more conflicts"] if more else [])))
