"""Values of small integer constants: shapes, axes, sizes, as initializers or nodes Constant."""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from onnxjson.model import elements
from onnxjson.model.constants import find_constant
from onnxjson.model.document import Attribute, Node, Tensor
from onnxjson.model.index import Scope
from onnxjson.model.messages import ATTRIBUTE_TYPES
from onnxjson.model.payloads import whole
from onnxjson.model.tensors import raw_bytes, with_storage

_CODES: Final = {6: "i", 7: "q"}
_MOST: Final = 4096
"""Maximum number of elements of a constant that is read."""


class IntegerConstant(NamedTuple):
    """A constant of int32 or int64."""

    scope: Scope
    """Graph that defines it."""
    name: str
    tensor: Tensor
    values: tuple[int, ...]


def constant_tensor(scope: Scope, name: str) -> tuple[Scope, Tensor] | None:
    """Return the constant of a name that is used in a graph: an initializer, or the value of a Constant.

    An input with a default is not a constant: a caller can replace it.
    """
    found = find_constant(scope, name)
    if found is None or found.is_default or found.tensor is None:
        return None
    return found.scope, found.tensor


def integer_constant(scope: Scope, name: str) -> IntegerConstant | None:
    """Return the values of a constant of int32 or int64; None for any other, a long or an external one."""
    found = constant_tensor(scope, name) if name else None
    if found is None:
        return None
    home, tensor = found
    code = _CODES.get(tensor.data_type or 0)
    if code is None or len(tensor.dims) > 1 or elements.element_count(tensor.dims) > _MOST:
        return None
    stored = raw_bytes(replace(tensor, data_location=None if tensor.data_location == 0 else tensor.data_location))
    if stored is None:
        return None
    data = whole(stored[0])
    values = struct.unpack(f"<{elements.element_count(tensor.dims)}{code}", data)
    return IntegerConstant(home, name, tensor, values)


def constant_node(name: str, tensor: Tensor, node_name: str | None = None) -> Node:
    """Return a node Constant whose output has a name and the elements of a tensor."""
    value = Attribute(name="value", type=ATTRIBUTE_TYPES["TENSOR"], t=tensor)
    return Node(op_type="Constant", output=(name,), attribute=(value,), name=node_name)


def with_values(tensor: Tensor, values: Sequence[int]) -> Tensor:
    """Return a constant with other values of the same number, dtype and storage."""
    assert tensor.data_type is not None
    stored = raw_bytes(replace(tensor, data_location=None))
    assert stored is not None
    data = elements.pack(tensor.data_type, list(values))
    return replace(tensor, **with_storage(data, tensor.data_type, stored[1], len(values)))


def with_attribute_values(attribute: Attribute, values: Sequence[int]) -> Attribute:
    """Return the attribute of a Constant with other integers."""
    if attribute.t is not None:
        return replace(attribute, t=with_values(attribute.t, values))
    if attribute.i is not None and attribute.type == 2:
        return replace(attribute, i=values[0])
    return replace(attribute, ints=tuple(values))
