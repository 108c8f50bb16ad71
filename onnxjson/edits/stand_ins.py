"""A model with small stand-ins for its big constants, for native code that does not look at them, and the way back.

The native libraries copy a model several times and read no more than 2 GB, while they need the values of few small
constants: axes, shapes, scales. A stand-in has an odd number of bytes, so that code which does read it as numbers
fails instead of computing with it. External data is never shown to the version converter: it takes values that stand
in a file for no values at all (seen in onnx 1.23).
Of constants in a text with digests nothing else can be shown.
"""

from pathlib import Path
from typing import Final

import msgspec

from onnxjson.document import Graph, Model, SparseTensor, Tensor
from onnxjson.elements import byte_length, element_count
from onnxjson.external_files import internalize
from onnxjson.payloads import Digest
from onnxjson.tensor_replacement import replace_tensors
from onnxjson.tensors import is_external
from onnxjson.walking import walk

SHOWN: Final = 4096
"""Bytes up to which native code sees a constant as it is."""

_TOKEN: Final = b"onnxjson stand-in %07d"
_FIELDS: Final = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
_DIGEST_FIELDS: Final = ("raw_data", "float_data", "double_data")


class StandIns:
    """The big constants of one model.

    Args:
        model: stays as it is.
        folder: where small external data is looked for; None where the model stands nowhere.

    Raises:
        MissingInputError, UntrustedError: a small constant stands in a file that is not there, or that a model has no
            business with.
    """

    def __init__(self, model: Model, folder: Path | None) -> None:
        self._originals: dict[bytes, Tensor] = {}
        self._sparse: set[str] = set()
        self._inside = _taken_in(model, folder)
        self._outside = {inside: tensor for tensor, inside in self._inside.values()}
        small = replace_tensors(model, self._shown)
        self.light = _with_graph(small, self._dense(small.graph))
        """The model with stand-ins; sparse initializers are dense ones, which all native code knows."""

    def restored(self, model: Model) -> Model:
        """`model`, which native code made of `light`, with the constants themselves."""
        graph = model.graph
        if graph is not None and self._sparse:
            kept = tuple([tensor for tensor in graph.initializer if tensor.name not in self._sparse])
            model = _with_graph(model, msgspec.structs.replace(graph, initializer=kept))
        return replace_tensors(model, self._original)

    def _shown(self, tensor: Tensor) -> Tensor:
        if id(tensor) in self._inside:
            return self._inside[id(tensor)][1]
        if not is_external(tensor) and _size(tensor) <= SHOWN and not _is_digest(tensor):
            return tensor
        return Tensor(dims=tensor.dims, data_type=tensor.data_type, name=tensor.name, raw_data=self._token(tensor))

    def _token(self, tensor: Tensor) -> bytes:
        token = _TOKEN % len(self._originals)
        self._originals[token] = tensor
        return token

    def _original(self, tensor: Tensor) -> Tensor:
        raw = tensor.raw_data
        if isinstance(raw, bytes) and (found := self._originals.get(raw)) is not None:
            return found
        return self._outside.get(tensor, tensor) if self._outside else tensor

    def _dense(self, graph: Graph | None) -> Graph | None:
        if graph is None or not graph.sparse_initializer:
            return graph
        found = [self._dense_one(each) for each in graph.sparse_initializer]
        return msgspec.structs.replace(graph, initializer=(*graph.initializer, *found), sparse_initializer=())

    def _dense_one(self, sparse: SparseTensor) -> Tensor:
        values = sparse.values or Tensor()
        self._sparse.add(values.name or "")
        raw = _TOKEN % (9_000_000 + len(self._sparse))
        return Tensor(dims=sparse.dims, data_type=values.data_type, name=values.name, raw_data=raw)


def without_big_constants(model: Model) -> Model:
    """`model` with constants of no elements in the place of big ones, for a checker that does not look at shapes."""

    def empty(tensor: Tensor) -> Tensor:
        if not is_external(tensor) and _size(tensor) <= SHOWN and not _is_digest(tensor):
            return tensor
        return Tensor(dims=(0,), data_type=tensor.data_type, name=tensor.name, raw_data=b"")

    return replace_tensors(model, empty)


def _taken_in(model: Model, folder: Path | None) -> dict[int, tuple[Tensor, Tensor]]:
    """Small tensors that stand in files: identity -> the tensor, and the same with its elements in it."""
    if folder is None:
        return {}
    found = {id(each): each for each in walk(model, Tensor) if is_external(each) and _size(each) <= SHOWN}
    holder = internalize(Model(graph=Graph(initializer=tuple(found.values()))), folder).graph
    assert holder is not None
    return {key: (tensor, inside) for (key, tensor), inside in zip(found.items(), holder.initializer, strict=True)}


def _with_graph(model: Model, graph: Graph | None) -> Model:
    return model if graph is model.graph else msgspec.structs.replace(model, graph=graph)


def _is_digest(tensor: Tensor) -> bool:
    """Whether only the SHA-256 of its elements is here, which a text has of big tensors alone."""
    return any([isinstance(getattr(tensor, field), Digest) for field in _DIGEST_FIELDS])


def _size(tensor: Tensor) -> int:
    """Bytes of a tensor: as its dtype and dims need where it stands in a file, else as they are there."""
    if is_external(tensor):
        if tensor.data_type is None or any(dim < 0 for dim in tensor.dims):
            return SHOWN + 1
        return byte_length(tensor.data_type, element_count(tensor.dims)) or SHOWN + 1
    held = len(tensor.raw_data) if tensor.raw_data is not None else 0
    return held + sum(len(getattr(tensor, field)) for field in _FIELDS)
