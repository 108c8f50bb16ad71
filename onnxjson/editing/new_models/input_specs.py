"""Inputs of a new model as the user writes them: ``name:type``, ``name:type=values``, ``-``."""

import re
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.document import Dimension, Tensor, TensorShape, TensorType, Type
from onnxjson.model.errors import EncodeError, ParameterError
from onnxjson.model.types import TypeSyntaxError, parse_type
from onnxjson.storage.constant_reading import Kind, from_json, parse_json

LEFT_OUT: Final = "-"
"""Spelling of an optional input that is left out."""

_SHAPE_ONLY: Final = re.compile(r"\[.*\]\Z", re.DOTALL)


class InputSpec(NamedTuple):
    """Specification of one input."""

    name: str
    """"" for an input that is left out."""
    type: Type | None = None
    """The whole type, if it is given."""
    shape: TensorShape | None = None
    """The shape, if only that is given; the operator determines the dtype."""
    values: Any = None
    """Values of a constant, as JSON."""
    has_values: bool = False


def read_input(text: str) -> InputSpec:
    """Parse the specification of an input.

    Raises:
        ParameterError: its type is not valid, or its values are not JSON.
    """
    if text == LEFT_OUT:
        return InputSpec("")
    head, equals, values = text.partition("=")
    name, colon, kind = head.rpartition(":")
    if not colon:
        name, kind = kind, ""
    if not name:
        raise ParameterError(
            f'"{visible(text)}" is not an input; write name:type, such as x:float32[1,3], or name:type=values for a '
            f"constant, or {LEFT_OUT} for an input that is left out"
        )
    spec = InputSpec(name, has_values=bool(equals))
    try:
        if _SHAPE_ONLY.match(kind.strip()):
            spec = spec._replace(shape=shape_of(parse_type(f"float32{kind.strip()}")))
        elif kind:
            spec = spec._replace(type=parse_type(kind))
        if equals:
            spec = spec._replace(values=parse_json(values, f"the values of {visible(name)}"))
    except TypeSyntaxError as error:
        raise ParameterError(f'"{visible(text)}": "{visible(kind)}" is not a type: {error}') from error
    except EncodeError as error:
        raise ParameterError(f'"{visible(text)}": {error}') from error
    return spec


def shape_of(value: Type) -> TensorShape | None:
    """Return the shape of a tensor type, or of the tensors in a sequence or optional type."""
    inner = innermost(value)
    return None if inner is None else inner.shape


def innermost(value: Type) -> TensorType | None:
    """Return the tensor type in a type."""
    if value.tensor_type is not None:
        return value.tensor_type
    held = value.sequence_type or value.optional_type
    if held is not None and held.elem_type is not None:
        return innermost(held.elem_type)
    return None


def with_shape(value: Type, shape: TensorShape | None) -> Type:
    """Return a type with another shape of its innermost tensors or sparse tensors."""
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
    """Build a constant of a type.

    Raises:
        ParameterError: the type is not that of a constant, or the values do not fit it.
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
    """Return a shape of known sizes."""
    return TensorShape(dim=tuple([Dimension(dim_value=size) for size in dims]))
