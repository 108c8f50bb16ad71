"""The values of small integer constants: shapes, axes, sizes, wherever a graph has them."""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from onnxjson import elements
from onnxjson.constants.stored import attribute_tensor
from onnxjson.document import Attribute, Tensor
from onnxjson.index import Index, Scope
from onnxjson.operators import plain_domain
from onnxjson.payloads import whole
from onnxjson.tensors import raw_bytes, with_storage

_CODES: Final = {6: "i", 7: "q"}
_MOST: Final = 4096
"""Elements of a constant that is looked at."""


class Constant(NamedTuple):
    """A constant of int32 or int64."""

    scope: Scope
    """The graph that defines it."""
    name: str
    tensor: Tensor
    values: tuple[int, ...]


def constant_tensor(scope: Scope, name: str) -> tuple[Scope, Tensor] | None:
    """The constant that a name stands for where it is used in a graph: an initializer, or what a Constant makes.

    An input with a default is none: its values may be others.
    """
    home = Index.home(scope, name)
    if home is None or name in home.inputs:
        return None
    found = home.initializer(name)
    if isinstance(found, Tensor):
        return home, found
    if found is not None or name not in home.makers:
        return None
    node = home.graph.node[home.makers[name][0]]
    if node.op_type != "Constant" or plain_domain(node.domain) or len(node.attribute) != 1:
        return None
    tensor = attribute_tensor(node.attribute[0])
    return None if tensor is None else (home, tensor)


def integer_constant(scope: Scope, name: str) -> Constant | None:
    """The values of a constant of int32 or int64; None where it is another one, too long or in another file."""
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
    return Constant(home, name, tensor, values)


def with_values(tensor: Tensor, values: Sequence[int]) -> Tensor:
    """The constant of the same dtype and storage with other values, as many as before."""
    assert tensor.data_type is not None
    stored = raw_bytes(replace(tensor, data_location=None))
    assert stored is not None
    data = elements.pack(tensor.data_type, list(values))
    return replace(tensor, **with_storage(data, tensor.data_type, stored[1], len(values)))


def with_attribute_values(attribute: Attribute, values: Sequence[int]) -> Attribute:
    """The attribute of a Constant with other integers."""
    if attribute.t is not None:
        return replace(attribute, t=with_values(attribute.t, values))
    if attribute.i is not None and attribute.type == 2:
        return replace(attribute, i=values[0])
    return replace(attribute, ints=tuple(values))
