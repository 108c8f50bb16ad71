"""Types compared: what a model states with what onnx infers."""

import math
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from onnxjson.model.dimensions import IDENTIFIER, INVENTED, size_of, with_dimension
from onnxjson.model.document import (
    Dimension,
    SparseTensorType,
    TensorShape,
    TensorType,
    Type,
    ValueInfo,
)
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.walking import replace_records

REMEMBERED: Final = 1024
"""Number of types whose results are cached: most values of a model have one of a few types."""

_SHAPE_ELEMENTS: Final = 1024
"""Maximum number of elements of a value that may be a shape."""

_COMPUTED: Final = (DATA_TYPES["int64"], DATA_TYPES["int32"], DATA_TYPES["bool"])
_MANY: Final = 64
"""Number of elements up to which values of these dtypes, of any rank, are computed on the way to a shape or to pads."""

Dims = tuple[int | str | None, ...]
"""Sizes, names, or None for unknown."""


def dims_of(value: Type | None) -> Dims | None:
    """Return the dims of a type; names that the inference invented count as unknown."""
    tensor = None if value is None else value.tensor_type or value.sparse_tensor_type
    if tensor is None or tensor.shape is None:
        return None
    sizes = map(size_of, tensor.shape.dim)
    return tuple([None if isinstance(each, str) and each.startswith(INVENTED) else each for each in sizes])


@lru_cache(REMEMBERED)
def refine_type(stated: Type, inferred: Type) -> Type | None:
    """Fill gaps of a stated type with the inferred one; None if they contradict each other."""
    one, other = tensor_of(stated), tensor_of(without_invented_names(inferred))
    if one is None or other is None:
        kinds = [_kind(each) for each in (stated, inferred)]
        return stated if kinds[0] == kinds[1] or not all(kinds) else None
    if type(one) is not type(other) or (one.elem_type and other.elem_type and one.elem_type != other.elem_type):
        return None
    shape = one.shape
    if other.shape is not None:
        if shape is None:
            shape = other.shape
        elif len(shape.dim) != len(other.shape.dim):
            return None
        else:
            dims = [_dimension(a, b) for a, b in zip(shape.dim, other.shape.dim, strict=True)]
            known = [each for each in dims if each is not None]
            if len(known) != len(dims):
                return None
            shape = replace(shape, dim=tuple(known))
    tensor = replace(one, elem_type=one.elem_type or other.elem_type, shape=shape)
    if isinstance(tensor, SparseTensorType):
        return replace(stated, sparse_tensor_type=tensor)
    return replace(stated, tensor_type=tensor)


def _dimension(stated: Dimension, inferred: Dimension) -> Dimension | None:
    if stated.dim_value is not None:
        return stated if inferred.dim_value in (None, stated.dim_value) else None
    if stated.dim_param:
        # A name stays a name: its author allows more than the size that is inferred here.
        return stated
    if inferred.dim_value is not None:
        return replace(stated, dim_value=inferred.dim_value, dim_param=None)
    if inferred.dim_param:
        return replace(stated, dim_param=inferred.dim_param)
    return stated


@lru_cache(REMEMBERED)
def without_invented_names(inferred: Type) -> Type:
    """Return a type without the dimension names that the shape inference invents."""

    def known(dimension: Dimension) -> Dimension:
        invented = (dimension.dim_param or "").startswith(INVENTED)
        return replace(dimension, dim_param=None) if invented else dimension

    return replace_records(inferred, Dimension, known)


def tensor_of(value: Type) -> TensorType | SparseTensorType | None:
    """Return the dtype and shape of a dense or sparse tensor; None for other types."""
    return value.tensor_type or value.sparse_tensor_type


def _kind(value: Type) -> str:
    fields = ("tensor_type", "sequence_type", "map_type", "opaque_type", "sparse_tensor_type", "optional_type")
    return next((field for field in fields if getattr(value, field) is not None), "")


@lru_cache(REMEMBERED)
def is_complete(known: Type) -> bool:
    """Whether a type leaves nothing open."""
    tensor = known.tensor_type or known.sparse_tensor_type
    if tensor is not None:
        dims = None if tensor.shape is None else tensor.shape.dim
        return bool(tensor.elem_type) and dims is not None and all([size_of(each) is not None for each in dims])
    held = known.sequence_type or known.optional_type
    inner = held.elem_type if held is not None else known.map_type.value_type if known.map_type is not None else None
    return inner is not None and is_complete(inner)


@lru_cache(REMEMBERED)
def is_enough(stated: Type) -> bool:
    """Whether a type is all that inference needs of a value: it is known, and the value cannot be a shape."""
    return is_complete(stated) and not may_be_shape(stated)


@lru_cache(REMEMBERED)
def has_sizes(known: Type) -> bool:
    """Whether a type is a tensor type with a size for each dimension."""
    dims = dims_of(known)
    return is_complete(known) and dims is not None and all([isinstance(each, int) for each in dims])


@lru_cache(REMEMBERED)
def may_be_shape(known: Type) -> bool:
    """Whether a value of a type may be a shape, or something else with which the inference computes."""
    tensor = known.tensor_type
    if tensor is None or tensor.shape is None:
        return tensor is not None
    dims = tensor.shape.dim
    if tensor.elem_type in _COMPUTED and dims and math.prod([each.dim_value or _MANY for each in dims]) < _MANY:
        return True
    if tensor.elem_type in (DATA_TYPES["bool"], DATA_TYPES["string"]):
        return False
    return not dims or (len(dims) == 1 and (dims[0].dim_value or 0) <= _SHAPE_ELEMENTS)


def with_shape(value: Type, shape: TensorShape | None) -> Type:
    """Return a type with another shape of its innermost tensors or sparse tensors."""
    if value.tensor_type is not None:
        return replace(value, tensor_type=replace(value.tensor_type, shape=shape))
    if value.sparse_tensor_type is not None:
        sparse = replace(value.sparse_tensor_type, shape=shape)
        return replace(value, sparse_tensor_type=sparse)
    for field in ("sequence_type", "optional_type"):
        held = getattr(value, field)
        if held is not None and held.elem_type is not None:
            inner = replace(held, elem_type=with_shape(held.elem_type, shape))
            return replace(value, **{field: inner})
    return value


def without_shape(value: ValueInfo) -> ValueInfo:
    """Return a value without the shape of its type."""
    tensor = value.type.tensor_type if value.type is not None else None
    if value.type is None or tensor is None or tensor.shape is None:
        return value
    return replace(value, type=with_shape(value.type, None))


@lru_cache(REMEMBERED)
def is_same_type(one: Type, other: Type) -> bool:
    """Whether two types are equal, without their denotations."""
    if one.tensor_type is None or other.tensor_type is None:
        plain = [replace_records(each, Dimension, lambda dim: replace(dim, denotation=None)) for each in (one, other)]
        return plain[0] == replace(plain[1], denotation=plain[0].denotation)
    return one.tensor_type.elem_type == other.tensor_type.elem_type and dims_of(one) == dims_of(other)


def with_names(stated: Type | None, inferred: Type, claimed: set[str]) -> Type:
    """Return an inferred type with the stated names of dimensions that it leaves open.

    Names in `claimed`, which other values have, must not be stated without knowing that the sizes are equal.
    """
    tensor, dims = inferred.tensor_type, None if stated is None else _named_dims(stated)
    if tensor is None or tensor.shape is None or dims is None or len(dims) != len(tensor.shape.dim):
        return inferred
    free = [name if claimed.isdisjoint((name, *IDENTIFIER.findall(name))) else None for name in dims]
    pairs = [(each, size_of(each), name) for each, name in zip(tensor.shape.dim, free, strict=True)]
    named = tuple([with_dimension(each, name or None) if size is None else each for each, size, name in pairs])
    return inferred if named == tensor.shape.dim else with_shape(inferred, replace(tensor.shape, dim=named))


def with_sizes(stated: Type, inferred: Type | None) -> Type | None:
    """Return an inferred type with the stated sizes that it leaves open."""
    sizes, tensor = dims_of(stated), None if inferred is None else inferred.tensor_type
    if sizes is None or stated.tensor_type is None or (inferred is not None and tensor is None):
        return inferred
    dims = (Dimension(),) * len(sizes) if tensor is None or tensor.shape is None else tensor.shape.dim
    if len(dims) != len(sizes) or not any([isinstance(size, int) for size in sizes]):
        return inferred
    pairs = zip(dims, sizes, strict=True)
    filled = [with_dimension(a, b) if size_of(a) is None and isinstance(b, int) else a for a, b in pairs]
    return with_shape(stated if inferred is None else inferred, TensorShape(dim=tuple(filled)))


def _named_dims(stated: Type) -> list[str] | None:
    """Return the names of the dimensions of a tensor type, "" for others; None if the rank is not known."""
    tensor = tensor_of(stated)
    return None if tensor is None or tensor.shape is None else [each.dim_param or "" for each in tensor.shape.dim]


def names_of_dims(stated: Type) -> set[str]:
    """Return the names of the dimensions of a type, and those in expressions."""
    return {name for text in _named_dims(stated) or () if text for name in (text, *IDENTIFIER.findall(text))}


def with_type(value: ValueInfo, new: Type | None) -> ValueInfo:
    """Return a value with another type (None: of unknown shape); denotations of dimensions stay if the rank does."""
    old = value.type
    if old is None or new is None:
        return without_shape(value)
    new = _with_denotations(old, new)
    return value if new == old else replace(value, type=new)


@lru_cache(REMEMBERED)
def _with_denotations(old: Type, new: Type) -> Type:
    before, after = old.tensor_type, new.tensor_type
    if before is None or after is None:
        return new
    if before.shape is not None and after.shape is not None:
        dims = after.shape.dim
        if len(dims) == len(before.shape.dim):
            pairs = zip(before.shape.dim, dims, strict=True)
            dims = tuple([with_dimension(each, size_of(other)) for each, other in pairs])
        after = replace(before, elem_type=after.elem_type, shape=replace(before.shape, dim=dims))
    return replace(old, tensor_type=after)
