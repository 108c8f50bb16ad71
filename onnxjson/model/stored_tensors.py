"""Every tensor that a model stores, with its address: initializers and tensors in attributes; elements are not read."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.document import Attribute, Graph, SparseTensor, Tensor
from onnxjson.model.elements import byte_length, element_count
from onnxjson.model.index import Index
from onnxjson.model.tensors import is_external

_TYPED_FIELDS: Final = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


class StoredTensor(NamedTuple):
    """One tensor of a model."""

    address: str
    tensor: Tensor
    is_weight: bool


def stored_tensors(index: Index) -> Iterator[StoredTensor]:
    """Yield every tensor of the model."""
    for scope in index.scopes:
        graph = scope.graph
        if isinstance(graph, Graph):
            yield from _constants(f"{scope.address}/initializer", graph.initializer, is_weight=True)
            yield from _constants(f"{scope.address}/sparse_initializer", graph.sparse_initializer, is_weight=True)
        else:
            for position, default in enumerate(graph.attribute_proto):
                if default.t is not None:
                    yield StoredTensor(f"{scope.address}/attribute_proto/{position}/t", default.t, is_weight=False)
        for position, node in enumerate(graph.node):
            if any([each.t or each.tensors or each.sparse_tensor or each.sparse_tensors for each in node.attribute]):
                segments = map(escape, attribute_segments(node.attribute))
                for segment, attribute in zip(segments, node.attribute, strict=True):
                    yield from _attribute_constants(f"{scope.address}/node/{position}/attribute/{segment}", attribute)


def _attribute_constants(at: str, attribute: Attribute) -> Iterator[StoredTensor]:
    if attribute.t is not None:
        yield StoredTensor(f"{at}/t", attribute.t, is_weight=False)
    yield from _constants(f"{at}/tensors", attribute.tensors, is_weight=False)
    if attribute.sparse_tensor is not None:
        yield from _sparse_constants(f"{at}/sparse_tensor", attribute.sparse_tensor, is_weight=False)
    yield from _constants(f"{at}/sparse_tensors", attribute.sparse_tensors, is_weight=False)


def _constants(at: str, found: Sequence[Tensor | SparseTensor], *, is_weight: bool) -> Iterator[StoredTensor]:
    for position, each in enumerate(found):
        if isinstance(each, Tensor):
            yield StoredTensor(f"{at}/{position}", each, is_weight)
        else:
            yield from _sparse_constants(f"{at}/{position}", each, is_weight=is_weight)


def _sparse_constants(at: str, sparse: SparseTensor, *, is_weight: bool) -> Iterator[StoredTensor]:
    for name, tensor in (("values", sparse.values), ("indices", sparse.indices)):
        if tensor is not None:
            yield StoredTensor(f"{at}/{name}", tensor, is_weight)


def stored_bytes(tensor: Tensor) -> int:
    """Return the stored size of the elements; for external data its `length`, or the size of dtype and dims."""
    if is_external(tensor):
        declared = next((entry.value for entry in tensor.external_data if entry.key == "length"), None)
        if declared is not None and declared.isascii() and declared.isdigit() and len(declared) < 20:
            return int(declared)
        return byte_length(tensor.data_type or 0, element_count(tensor.dims)) or 0
    if tensor.raw_data is not None:
        return len(tensor.raw_data)
    return sum([len(getattr(tensor, field)) for field in _TYPED_FIELDS]) + sum(map(len, tensor.string_data))
