"""Inputs of a new model as a person writes them: ``name:type``, ``name:type=values``, ``-``."""

import re
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.constants.values import Kind, from_json, parse_json
from onnxjson.display import visible
from onnxjson.document import Dimension, Tensor, TensorShape, TensorType, Type
from onnxjson.errors import EncodeError, ParameterError
from onnxjson.types import TypeSyntaxError, parse_type

LEFT_OUT: Final = "-"
"""An optional input that is not given."""

_SHAPE_ONLY: Final = re.compile(r"\[.*\]\Z", re.DOTALL)


class Asked(NamedTuple):
    """One input that somebody asks for."""

    name: str
    """"" for one that is left out."""
    type: Type | None = None
    """Where it is said whole."""
    shape: TensorShape | None = None
    """Where only the shape is said; the operator gives the dtype."""
    values: Any = None
    """Of a constant, as JSON."""
    has_values: bool = False


def read_input(text: str) -> Asked:
    """What one text asks for.

    Raises:
        ParameterError: its type is none, or its values are no JSON.
    """
    if text == LEFT_OUT:
        return Asked("")
    head, equals, values = text.partition("=")
    name, colon, kind = head.rpartition(":")
    if not colon:
        name, kind = kind, ""
    if not name:
        raise ParameterError(
            f'"{visible(text)}" is no input; write name:type, such as x:float32[1,3], name:type=values for a constant, '
            f"or {LEFT_OUT} for one that is left out"
        )
    asked = Asked(name, has_values=bool(equals))
    try:
        if _SHAPE_ONLY.match(kind.strip()):
            asked = asked._replace(shape=shape_of(parse_type(f"float32{kind.strip()}")))
        elif kind:
            asked = asked._replace(type=parse_type(kind))
        if equals:
            asked = asked._replace(values=parse_json(values, f"the values of {visible(name)}"))
    except TypeSyntaxError as error:
        raise ParameterError(f'"{visible(text)}": "{visible(kind)}" is no type: {error}') from error
    except EncodeError as error:
        raise ParameterError(f'"{visible(text)}": {error}') from error
    return asked


def shape_of(value: Type) -> TensorShape | None:
    """The shape of a tensor, or of the tensors inside a sequence or optional."""
    inner = innermost(value)
    return None if inner is None else inner.shape


def innermost(value: Type) -> TensorType | None:
    """The tensor type in a type."""
    if value.tensor_type is not None:
        return value.tensor_type
    held = value.sequence_type or value.optional_type
    if held is not None and held.elem_type is not None:
        return innermost(held.elem_type)
    return None


def with_shape(value: Type, shape: TensorShape | None) -> Type:
    """A type whose innermost tensors, or sparse tensors, have a shape."""
    if value.tensor_type is not None:
        return msgspec.structs.replace(value, tensor_type=msgspec.structs.replace(value.tensor_type, shape=shape))
    if value.sparse_tensor_type is not None:
        sparse = msgspec.structs.replace(value.sparse_tensor_type, shape=shape)
        return msgspec.structs.replace(value, sparse_tensor_type=sparse)
    for field in ("sequence_type", "optional_type"):
        held = getattr(value, field)
        if held is not None and held.elem_type is not None:
            inner = msgspec.structs.replace(held, elem_type=with_shape(held.elem_type, shape))
            return msgspec.structs.replace(value, **{field: inner})
    return value


def constant(name: str, value: Type, values: Any) -> Tensor:
    """A constant of a type.

    Raises:
        ParameterError: the type is none of a constant, or the values do not fit it.
    """
    tensor = value.tensor_type
    if tensor is None or tensor.elem_type is None:
        raise ParameterError(f"{visible(name)} has values, which only tensors can have")
    dims: tuple[int, ...] | None = None
    if tensor.shape is not None:
        sizes = [dim.dim_value for dim in tensor.shape.dim]
        if None in sizes:
            raise ParameterError(f"{visible(name)} has values, so its shape must be of numbers")
        dims = tuple([size for size in sizes if size is not None])
    try:
        return from_json(values, Kind(tensor.elem_type, dims), name=name).tensor
    except EncodeError as error:
        raise ParameterError(f"the values of {visible(name)}: {error}") from error


def static_shape(dims: tuple[int, ...]) -> TensorShape:
    """A shape of numbers."""
    return TensorShape(dim=tuple([Dimension(dim_value=size) for size in dims]))
