"""Records made from Python values: nodes with their attributes, tensors, values."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pybase64
from msgspec.structs import replace

from onnxjson.editing.attributes import attribute_of
from onnxjson.editing.values import plain_value
from onnxjson.model import document as d
from onnxjson.model.document import Graph, Node, SparseTensor, Tensor, Type, ValueInfo
from onnxjson.model.messages import ATTRIBUTE_TYPES
from onnxjson.model.operators import attribute_types
from onnxjson.model.tensors import from_numpy
from onnxjson.model.types import parse_data_type, parse_type
from onnxjson.storage.constant_reading import Kind
from onnxjson.storage.numpy_constants import from_array


def node(
    op_type: str,
    inputs: str | Sequence[str] = (),
    outputs: str | Sequence[str] = (),
    *,
    name: str | None = None,
    domain: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    **more: Any,
) -> Node:
    """Return a node; names are str or lists of them, "" for an input that is omitted.

    The values of attributes, named or in `attributes`, are numbers, str, bytes, lists of them, arrays, or records.

    Raises:
        ParameterError: a value has another type than the attribute of the operator.
    """
    table = attribute_types(domain, op_type)
    made = []
    for each, found in {**(attributes or {}), **more}.items():
        made.append(attribute_of(each, attribute_value(found, table.get(each)), table, op_type, "node", where=each))
    taken, given = [(names,) if isinstance(names, str) else tuple(names) for names in (inputs, outputs)]
    return Node(taken, given, name, op_type, tuple(made), domain=domain)


def tensor(name: str | None, values: Any, dtype: str | None = None) -> Tensor:
    """Return a tensor with the elements and the shape of an array, a number, a text, or nested lists of these.

    Its data type is `dtype`, such as "float16", whose nearest values the elements get; else that of the array, or
    float32 for Python's float and int64 for int.

    Raises:
        TypeError: ONNX has no such data type.
        EncodeError: the elements cannot be converted to the data type.
    """
    import numpy

    array = numpy.asarray(values)
    if dtype is None:
        is_array = hasattr(values, "dtype")
        return from_numpy(array if is_array or array.dtype != numpy.float64 else array.astype(numpy.float32), name)
    found = from_array(array, Kind(parse_data_type(dtype), tuple(map(int, array.shape))), lossy=True)
    return replace(found.tensor, name=name)


def value(name: str, dtype: str, shape: Sequence[int | str | None] | None = None) -> ValueInfo:
    """Return an input, an output, or another value with a type, for graphs.

    Its type is a tensor of a data type, such as "float32", and a shape of sizes, names, and None for unknown sizes.
    Without a shape, `dtype` is the text of any type, such as "seq(float32[N])".

    Raises:
        TypeSyntaxError: there is no such type.
    """
    if shape is None:
        return ValueInfo(name, parse_type(dtype))
    dims = [d.Dimension(dim_param=each) if isinstance(each, str) else d.Dimension(dim_value=each) for each in shape]
    return ValueInfo(name, Type(tensor_type=d.TensorType(parse_data_type(dtype), d.TensorShape(tuple(dims)))))


def attribute_value(value: Any, kind: int | None) -> Any:
    """Return a Python value of an attribute as in a document; `kind` is the number of its type, None if unknown."""
    if isinstance(value, dict):
        return value
    if kind == ATTRIBUTE_TYPES["TENSOR"] or (kind is None and getattr(value, "ndim", 0) > 0):
        value = value if isinstance(value, Tensor) else tensor(None, value)
    elif hasattr(value, "tolist"):
        value = value.tolist()
    is_list = isinstance(value, list | tuple)
    items = [each.tolist() if hasattr(each, "tolist") else each for each in (value if is_list else (value,))]
    plain = [_plain(each) for each in items]
    found = plain if is_list else plain[0]
    kinds = dict.fromkeys([name for name, types in _KINDS.items() if any([isinstance(each, types) for each in items])])
    if kind is not None or not kinds:
        return found
    return {f"{next(iter(kinds))}{'S' * is_list}": found}


_KINDS: Final[dict[str, type | tuple[type, ...]]] = {
    "FLOAT": float, "INT": int, "STRING": (str, bytes),
    "TENSOR": Tensor, "GRAPH": Graph, "TYPE_PROTO": Type, "SPARSE_TENSOR": SparseTensor,
}  # fmt: skip
"""Python types of attributes; the first type that an item of a list has is that of the list."""


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": pybase64.b64encode(value).decode()}
    return int(value) if isinstance(value, bool) else plain_value(value)
