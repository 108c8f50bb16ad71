"""Keys of constants and of attributes: equal keys mean equal contents, in whatever form they are stored.

A key contains bytes of 4 KiB and more as their SHA-256, so a payload in a file equals the same bytes in memory.
"""

from collections.abc import Callable, Hashable, Mapping

import msgspec

from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.model.constants import constant_value
from onnxjson.model.document import Attribute, Graph, Node, SparseTensor, Tensor
from onnxjson.model.payloads import LAZY_FROM, Data
from onnxjson.model.tensors import raw_bytes

Content = Hashable
ContentOf = Callable[[Tensor], Content]
"""Returns the key of a tensor: by value (`content`), by dtype and shape (`layout`), or with external data read."""

AttributeKey = tuple[tuple[Hashable, ...], ...]
"""The keys of the attributes of one node, by name."""

GraphKey = Callable[[Graph], Hashable]
"""Returns the key of a subgraph."""


def content(tensor: Tensor) -> Content:
    """Return the key of a tensor by dtype, dims and elements; names, documentation and storage do not count.

    The key of an external tensor is its external data entry, since the elements are not read; the key of an invalid
    tensor is its whole record without the name.

    Raises:
        ChangedUnderneathError, FileError: the elements can no longer be read.
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
        tensor.float_data or tensor.int32_data or tensor.int64_data or tensor.string_data or tensor.double_data
        or tensor.uint64_data or tensor.external_data or tensor.data_location or tensor.segment is not None
    )  # fmt: skip


def layout(tensor: Tensor) -> Content:
    """Return the key of a tensor by dtype and dims alone, for weights that are not compared."""
    return (tensor.data_type, tensor.dims)


def sparse_content(sparse: SparseTensor, content_of: ContentOf) -> Content:
    """Return the key of a sparse constant."""
    parts = [None if part is None else content_of(part) for part in (sparse.values, sparse.indices)]
    return ("sparse", sparse.dims, *parts)


def _bytes_key(data: Data) -> bytes | str:
    if isinstance(data, bytes) and len(data) < LAZY_FROM:
        return data
    return sha256_of(data)


def constant_content(node: Node, content_of: ContentOf) -> Content | None:
    """Return the key of the output of a Constant node; None unless it has exactly one value."""
    if len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    if attribute.ref_attr_name is not None:
        return ("reference", attribute.ref_attr_name)
    if attribute.sparse_tensor is not None:
        return sparse_content(attribute.sparse_tensor, content_of)
    tensor = constant_value(attribute)
    return None if tensor is None else content_of(tensor)


def attributes_key(attributes: tuple[Attribute, ...], content_of: ContentOf, graph_key: GraphKey) -> AttributeKey:
    """Return the key of the attributes of one node, in any order; documentation does not count."""
    if not attributes:
        return ()
    return tuple(sorted([_attribute_key(each, content_of, graph_key) for each in attributes], key=_key_name))


def with_defaults(key: AttributeKey, defaults: Mapping[str, Attribute], content_of: ContentOf) -> AttributeKey:
    """Extend a key of `attributes_key` by the omitted attributes with the defaults of the operator's schema."""
    there = {part[0] for part in key}
    added = [_attribute_key(each, content_of, hash) for name, each in defaults.items() if name not in there]
    return tuple(sorted([*key, *added], key=_key_name)) if added else key


def _key_name(key: tuple[Hashable, ...]) -> str:
    return str(key[0])


def _attribute_key(attribute: Attribute, content_of: ContentOf, graph_key: GraphKey) -> tuple[Hashable, ...]:
    name = attribute.name or ""
    if _holds_records(attribute):
        return (
            name,
            attribute.type,
            attribute.ref_attr_name,
            None if attribute.t is None else content_of(attribute.t),
            None if attribute.g is None else graph_key(attribute.g),
            tuple([content_of(each) for each in attribute.tensors]),
            tuple([graph_key(each) for each in attribute.graphs]),
            tuple([sparse_content(each, content_of) for each in _sparse_tensors(attribute)]),
            msgspec.structs.replace(
                attribute, t=None, g=None, tensors=(), graphs=(), sparse_tensor=None, sparse_tensors=(), doc_string=None
            ),
        )
    return (
        name, attribute.type, attribute.ref_attr_name, attribute.i, attribute.f, attribute.s, attribute.ints,
        attribute.floats, attribute.strings, attribute.tp, attribute.type_protos, attribute.unknown_fields,
    )  # fmt: skip


def _sparse_tensors(attribute: Attribute) -> tuple[SparseTensor, ...]:
    one = attribute.sparse_tensor
    return attribute.sparse_tensors if one is None else (one, *attribute.sparse_tensors)


def _holds_records(attribute: Attribute) -> bool:
    records = attribute.t, attribute.g, attribute.sparse_tensor
    lists = attribute.tensors, attribute.graphs, attribute.sparse_tensors
    return any(lists) or any([each is not None for each in records])
