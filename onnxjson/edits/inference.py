"""Types and shapes that onnx can find out, and how they join what a model says already."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from onnxjson.display import visible
from onnxjson.document import (
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
from onnxjson.edits.guarded import Shown, worker
from onnxjson.edits.rebuilding import Body, rebuilt
from onnxjson.index import Index, Scope
from onnxjson.types import format_type

INVENTED: str = "unk__"
"""How names of dimensions begin that the inference makes up."""


class Conflict(NamedTuple):
    """A value of which the model says something that cannot be."""

    address: str
    """Of the graph."""
    name: str
    said: Type
    inferred: Type

    def __str__(self) -> str:
        said, inferred = [format_type(each) or "a type" for each in (self.said, self.inferred)]
        return f'"{visible(self.name)}" is said to be {visible(said)} and is {visible(inferred)} ({self.address})'


class Inferred(NamedTuple):
    """A model that says the types of its values."""

    model: Model
    before: int
    """Values with a type and a rank, before; constants are not counted."""
    now: int
    values: int
    """All values that nodes make or graphs are given."""
    conflicts: tuple[Conflict, ...]


def inferred_types(model: Model, folder: Path | None) -> Model:
    """`model`, without its big constants, as the shape inference of onnx gives it back.

    Raises:
        WorkerError: the inference crashed, hung or does not take the model.
        EditError, MissingInputError, UntrustedError: see `Shown`.
    """
    from onnxjson import serde

    return serde.parse(worker().infer_shapes(Shown(model, folder).data)).model


def infer(model: Model, folder: Path | None, *, overwrite: bool = False) -> Inferred:
    """`model` with the types that onnx finds out, in outputs and value_info; nothing else changes.

    Args:
        model: stays as it is.
        folder: where small external data is looked for.
        overwrite: let what is inferred take the place of what the model says and cannot be.

    Raises:
        WorkerError, EditError, MissingInputError, UntrustedError: see `inferred_types`.
    """
    index = Index(model)
    found = {scope.address: scope for scope in Index(inferred_types(model, folder)).scopes}
    conflicts: list[Conflict] = []

    def change(scope: Scope, graph: Body) -> Body:
        there = found.get(scope.address)
        if there is None or isinstance(graph, Function):
            return graph
        return _joined(scope, graph, there, conflicts, overwrite=overwrite)

    result = rebuilt(index, change)
    before, values = _count(index)
    return Inferred(result, before, _count(Index(result))[0], values, tuple(conflicts))


def _joined(scope: Scope, graph: Graph, there: Scope, conflicts: list[Conflict], *, overwrite: bool) -> Graph:
    said = {each.name for each in (*graph.input, *graph.output, *graph.value_info)}

    def better(value: ValueInfo) -> ValueInfo:
        inferred = there.types.get(value.name or "")
        if inferred is None:
            return value
        joined = inferred if value.type is None else refined(value.type, inferred)
        if joined is None and value.type is not None:
            conflicts.append(Conflict(scope.address, value.name or "", value.type, inferred))
            joined = inferred if overwrite else None
        return value if joined is None or joined == value.type else msgspec.structs.replace(value, type=joined)

    outputs = tuple([better(each) for each in graph.output])
    infos = [better(each) for each in graph.value_info]
    for position, slot in scope.makers.values():
        name = graph.node[position].output[slot]
        inferred = there.types.get(name)
        if name not in said and inferred is not None:
            infos.append(ValueInfo(name=name, type=_without_invented(inferred)))
    if outputs == graph.output and tuple(infos) == graph.value_info:
        return graph
    return msgspec.structs.replace(graph, output=outputs, value_info=tuple(infos))


def refined(said: Type, inferred: Type) -> Type | None:
    """What is said with what is inferred where nothing is said; None where they contradict each other."""
    one, other = _tensor(said), _tensor(inferred)
    if one is None or other is None:
        kinds = [_kind(each) for each in (said, inferred)]
        return said if kinds[0] == kinds[1] or not all(kinds) else None
    if type(one) is not type(other) or (one.elem_type and other.elem_type and one.elem_type != other.elem_type):
        return None
    shape = one.shape
    if other.shape is not None:
        if shape is None:
            shape = _shape_without_invented(other.shape)
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
        return msgspec.structs.replace(said, sparse_tensor_type=tensor)
    return msgspec.structs.replace(said, tensor_type=tensor)


def _dimension(said: Dimension, inferred: Dimension) -> Dimension | None:
    if said.dim_value is not None:
        return said if inferred.dim_value in (None, said.dim_value) else None
    if said.dim_param:
        # A name stays a name: a size that a loose model happens to allow is not what its author said.
        return said
    if inferred.dim_value is not None:
        return msgspec.structs.replace(said, dim_value=inferred.dim_value, dim_param=None)
    if inferred.dim_param and not inferred.dim_param.startswith(INVENTED):
        return msgspec.structs.replace(said, dim_param=inferred.dim_param)
    return said


def _without_invented(inferred: Type) -> Type:
    tensor = inferred.tensor_type
    if tensor is None or tensor.shape is None:
        return inferred
    changed = msgspec.structs.replace(tensor, shape=_shape_without_invented(tensor.shape))
    return msgspec.structs.replace(inferred, tensor_type=changed)


def _shape_without_invented(shape: TensorShape) -> TensorShape:
    dims = [Dimension() if (each.dim_param or "").startswith(INVENTED) else each for each in shape.dim]
    return msgspec.structs.replace(shape, dim=tuple(dims))


def _tensor(value: Type) -> TensorType | SparseTensorType | None:
    return value.tensor_type or value.sparse_tensor_type


def _kind(value: Type) -> str:
    fields = ("tensor_type", "sequence_type", "map_type", "opaque_type", "sparse_tensor_type", "optional_type")
    return next((field for field in fields if getattr(value, field) is not None), "")


def _count(index: Index) -> tuple[int, int]:
    """Values with a known type and rank, and all values, of graphs that can say it."""
    known = values = 0
    for scope in index.scopes:
        if scope.kind == "function":
            continue
        names = dict.fromkeys((*scope.inputs, *scope.makers))
        values += len(names)
        known += sum([_is_known(scope.types.get(name)) for name in names])
    return known, values


def _is_known(value: Type | None) -> bool:
    if value is None:
        return False
    tensor = _tensor(value)
    return tensor is None or (bool(tensor.elem_type) and tensor.shape is not None)
