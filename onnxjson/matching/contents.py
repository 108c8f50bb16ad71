"""What a constant holds, as a key: equal keys are equal constants, wherever and however they are stored.

Bytes of 4 KiB and more stand in a key as their SHA-256, so that a payload in a file equals the same bytes in memory.
"""

import struct
from collections.abc import Callable, Hashable
from typing import Final

import msgspec

from onnxjson.canonical.payload_forms import sha256_of
from onnxjson.document import Attribute, Node, SparseTensor, Tensor
from onnxjson.names import DATA_TYPES
from onnxjson.operators import plain_domain
from onnxjson.payloads import LAZY_FROM, Data
from onnxjson.tensors import raw_bytes

Content = Hashable
ContentOf = Callable[[Tensor], Content]
"""Gives the key of a tensor: by value (`content`), by dtype and shape alone (`layout`), or with external data read."""


def content(tensor: Tensor) -> Content:
    """The key of a tensor by its values: dtype, dims and elements; names, docs and the field of storage do not count.

    Tensors in other files are known by their entry of external data, which is all that stands here; a tensor that is
    not valid is known by its whole record without the name.

    Raises:
        ChangedUnderneathError, FileError: the elements cannot be read any more.
    """
    raw = tensor.raw_data
    if type(raw) is bytes and len(raw) < LAZY_FROM and _is_plain(tensor):
        return (tensor.data_type, tensor.dims, raw)
    stored = raw_bytes(tensor)
    if stored is not None:
        return (tensor.data_type, tensor.dims, _bytes_key(stored[0]))
    if tensor.string_data and tensor.raw_data is None:
        return (tensor.data_type, tensor.dims, tensor.string_data)
    bare = msgspec.structs.replace(tensor, name=None, doc_string=None, metadata_props=())
    if isinstance(bare.raw_data, bytes | None):
        return bare
    return (msgspec.structs.replace(bare, raw_data=None), _bytes_key(bare.raw_data))


def _is_plain(tensor: Tensor) -> bool:
    return not (
        tensor.float_data
        or tensor.int32_data
        or tensor.int64_data
        or tensor.string_data
        or tensor.double_data
        or tensor.uint64_data
        or tensor.external_data
        or tensor.data_location
        or tensor.segment is not None
    )


def layout(tensor: Tensor) -> Content:
    """The key of a tensor by dtype and dims alone, for weights that are not compared."""
    return (tensor.data_type, tensor.dims)


def sparse_content(sparse: SparseTensor, content_of: ContentOf) -> Content:
    """The key of a sparse constant."""
    parts = [None if part is None else content_of(part) for part in (sparse.values, sparse.indices)]
    return ("sparse", sparse.dims, *parts)


def _bytes_key(data: Data) -> bytes | str:
    if isinstance(data, bytes) and len(data) < LAZY_FROM:
        return data
    return sha256_of(data)


def is_constant(node: Node) -> bool:
    """Whether a node is ONNX's Constant."""
    return node.op_type == "Constant" and not plain_domain(node.domain) and len(node.output) == 1


_DTYPES: Final = {
    "value_float": ("f", "float32"),
    "value_floats": ("floats", "float32"),
    "value_int": ("i", "int64"),
    "value_ints": ("ints", "int64"),
}


def tensor_of_constant(attribute: Attribute) -> Tensor | None:
    """The tensor that an attribute of Constant stands for (ONNX operator Constant); None for a sparse or broken one."""
    if attribute.name == "value":
        return attribute.t
    if attribute.name == "value_string" and attribute.s is not None:
        return Tensor(data_type=DATA_TYPES["string"], string_data=(attribute.s,))
    if attribute.name == "value_strings":
        strings = attribute.strings
        return Tensor(dims=(len(strings),), data_type=DATA_TYPES["string"], string_data=strings)
    field, dtype = _DTYPES.get(attribute.name or "", ("", ""))
    if not field:
        return None
    value = getattr(attribute, field)
    if value is None:
        return None
    if field in ("i", "ints"):
        integers = value if isinstance(value, tuple) else (value,)
        dims = (len(integers),) if field == "ints" else ()
        return Tensor(dims=dims, data_type=DATA_TYPES[dtype], raw_data=struct.pack(f"<{len(integers)}q", *integers))
    dims = (len(value) // 4,) if field == "floats" else ()
    return Tensor(dims=dims, data_type=DATA_TYPES[dtype], raw_data=value)


def constant_content(node: Node, content_of: ContentOf) -> Content | None:
    """The key of what a Constant node makes; None where it says nothing or several things."""
    if len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    if attribute.ref_attr_name is not None:
        return ("reference", attribute.ref_attr_name)
    if attribute.sparse_tensor is not None:
        return sparse_content(attribute.sparse_tensor, content_of)
    tensor = tensor_of_constant(attribute)
    return None if tensor is None else content_of(tensor)
