"""Native code of onnx, run in the sandbox process on a model with placeholders for its big constants.

The native libraries copy a model several times and read at most 2 GB, but they need the values of only a few small
constants: axes, shapes, scales. A placeholder has an odd number of bytes, so that code that reads it as numbers fails
instead of computing with it. External data is never given to the version converter, which treats values in a file as
missing (seen in onnx 1.23). Constants of which a text has only digests always get placeholders.
"""

import atexit
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes, message_size
from onnxjson.model.document import Graph, Model, SparseTensor, Tensor
from onnxjson.model.elements import byte_length, element_count
from onnxjson.model.errors import EditError, Finding
from onnxjson.model.limits import MESSAGE_BYTES
from onnxjson.model.payloads import Digest
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import replace_records, tensors_of
from onnxjson.running.worker import Worker
from onnxjson.storage.external_files import internalize

SHOWN: Final = 4096
"""Size up to which native code gets a constant unchanged."""

_TOKEN: Final = b"onnxjson stand-in %07d"
_FIELDS: Final = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
_DIGEST_FIELDS: Final = ("raw_data", "float_data", "double_data")


class Placeholders:
    """Placeholders for the big constants of one model.

    Args:
        model: is not modified.
        folder: the folder of small external data; None if there is none.

    Raises:
        MissingInputError, UntrustedError: a small constant is in a file that is missing, or outside the allowed folder.

    """

    def __init__(self, model: Model, folder: Path | None) -> None:
        self._originals: dict[bytes, Tensor] = {}
        self._sparse: set[str] = set()
        self._inside = _taken_in(model, folder)
        self._outside = {inside: tensor for tensor, inside in self._inside.values()}
        small = replace_records(model, Tensor, self._shown)
        self.light = _with_graph(small, self._dense(small.graph))
        """The model with placeholders; sparse initializers become dense ones, which all native code supports."""

    def restored(self, model: Model) -> Model:
        """Return `model`, the result of native code for `light`, with the original constants."""
        graph = model.graph
        if graph is not None and self._sparse:
            kept = tuple([tensor for tensor in graph.initializer if tensor.name not in self._sparse])
            model = _with_graph(model, msgspec.structs.replace(graph, initializer=kept))
        return replace_records(model, Tensor, self._original)

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
    """Replace big constants by constants without elements, for a checker that ignores shapes."""

    def empty(tensor: Tensor) -> Tensor:
        if not is_external(tensor) and _size(tensor) <= SHOWN and not _is_digest(tensor):
            return tensor
        return Tensor(dims=(0,), data_type=tensor.data_type, name=tensor.name, raw_data=b"")

    return replace_records(model, Tensor, empty)


def _taken_in(model: Model, folder: Path | None) -> dict[int, tuple[Tensor, Tensor]]:
    """Return small external tensors: identity -> the tensor, and the same with its elements."""
    if folder is None:
        return {}
    found = {id(each): each for each in tensors_of(model) if is_external(each) and _size(each) <= SHOWN}
    holder = internalize(Model(graph=Graph(initializer=tuple(found.values()))), folder).graph
    assert holder is not None
    return {key: (tensor, inside) for (key, tensor), inside in zip(found.items(), holder.initializer, strict=True)}


def _with_graph(model: Model, graph: Graph | None) -> Model:
    return model if graph is model.graph else msgspec.structs.replace(model, graph=graph)


def _is_digest(tensor: Tensor) -> bool:
    """Whether only the SHA-256 of its elements is known, as for big tensors of a text."""
    return any([isinstance(getattr(tensor, field), Digest) for field in _DIGEST_FIELDS])


def _size(tensor: Tensor) -> int:
    """Return the size of a tensor: by dtype and dims if it is external, else of its stored elements."""
    if is_external(tensor):
        if tensor.data_type is None or any(dim < 0 for dim in tensor.dims):
            return SHOWN + 1
        return byte_length(tensor.data_type, element_count(tensor.dims)) or SHOWN + 1
    held = len(tensor.raw_data) if tensor.raw_data is not None else 0
    return held + sum(len(getattr(tensor, field)) for field in _FIELDS)


@cache
def worker() -> Worker:
    """Return the sandbox process of this program, which its first job starts."""
    found = Worker()
    atexit.register(found.close)
    return found


class LightModel:
    """A model without its big constants, as native code gets it.

    Raises:
        EditError: even without its big constants it has more bytes than native code can read.
        MissingInputError, UntrustedError: see `Placeholders`.
    """

    def __init__(self, model: Model, folder: Path | None) -> None:
        self._placeholders = Placeholders(model, folder)
        self.light = self._placeholders.light
        self.data = _bytes(self.light)

    def read(self, data: bytes) -> Model:
        """Read the result of native code, with the original constants."""
        return self._placeholders.restored(serde.parse(data).model)


def check(model: Model) -> tuple[Finding, ...]:
    """Return the findings of onnx's checker for a model; big constants and shapes are not checked.

    Raises:
        WorkerError: the checker crashed or hung.
        EditError: even without its big constants the model has more bytes than native code can read.
    """
    return worker().check(_bytes(without_big_constants(model)))


def _bytes(light: Model) -> bytes:
    size = message_size(light)
    if size > MESSAGE_BYTES:
        reason = f"the model has {size:,} bytes without its big constants, more than native code can read"
        raise EditError(f"{reason} ({MESSAGE_BYTES:,}); extract a part of it first")
    return message_bytes(light)
