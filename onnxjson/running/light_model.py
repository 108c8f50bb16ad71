"""A model without its big constants, as native code gets it.

The native libraries copy a model several times and read at most 2 GB, but they need the values of only a few small
constants: axes, shapes, scales. Instead of a big constant they get a stand-in, with an odd number of bytes, so that
code that reads it as numbers fails instead of computing with it; inference, which would take that for a mistake of the
model, gets an input instead of long integers; a checker gets a constant without elements. External data is never given
to the version converter, which treats values in a file as missing (seen in onnx 1.23). Constants of which a text has
only digests are always big.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from msgspec.structs import replace

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes, message_size
from onnxjson.model.constants import type_of_constant
from onnxjson.model.document import Graph, Model, Tensor, ValueInfo
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.errors import EditError, LimitError
from onnxjson.model.limits import MESSAGE_BYTES
from onnxjson.model.payloads import Digest
from onnxjson.model.tensors import is_external, needed_bytes
from onnxjson.model.walking import replace_records, stored_bytes, tensors_of
from onnxjson.storage.external_files import internalize

SHOWN: Final = 4096
"""Size up to which native code gets a constant unchanged."""

_TOKEN: Final = b"onnxjson stand-in %07d"
_DIGEST_FIELDS: Final = ("raw_data", "float_data", "double_data")

Kind = Literal["replaced", "typed", "empty"]
"""What becomes of the big constants; "typed" is for inference, and "empty" for a checker that ignores shapes."""

_COMPUTED: Final = (DATA_TYPES["int64"], DATA_TYPES["int32"])
"""Data types with whose elements inference computes. Other constants do not become inputs, since each element of a
vector that is an input costs the inference 70 bytes."""


class LightModel:
    """A model without its big constants.

    Args:
        folder: where small external data is read from; None if it counts as big.

    Raises:
        EditError: even without its big constants it has more bytes than native code can read.
        MissingInputError, UntrustedError: a small constant is in a file that is missing, or outside the allowed folder.
    """

    def __init__(self, model: Model, folder: Path | None, kind: Kind = "replaced") -> None:
        self._originals: dict[bytes, Tensor] = {}
        self._sparse: set[str] = set()
        self._inside = _internalized(model, folder)
        self._outside = {inside: tensor for tensor, inside in self._inside.values()}
        if kind == "typed" and model.graph is not None:
            model = replace(model, graph=with_inputs(model.graph, self._is_computed))
        small = replace_records(model, Tensor, _empty if kind == "empty" else self._shown)
        # Sparse initializers become dense ones, which all native code supports.
        graph = small.graph if kind == "empty" else self._dense(small.graph)
        self.model = _with_graph(small, graph)

    @property
    def data(self) -> bytes:
        """The serialized model."""
        try:
            return message_bytes(self.model)
        except LimitError as error:
            size = message_size(self.model)
            reason = f"the model has {size:,} bytes without its big constants, more than native code can read"
            raise EditError(f"{reason} ({MESSAGE_BYTES:,}); extract a part of it first") from error

    def read(self, data: bytes) -> Model:
        """Read the result of native code, with the original constants in place of stand-ins."""
        model = serde.parse(data).model
        graph = model.graph
        if graph is not None and self._sparse:
            kept = tuple([tensor for tensor in graph.initializer if tensor.name not in self._sparse])
            model = _with_graph(model, replace(graph, initializer=kept))
        return replace_records(model, Tensor, self._original)

    def _is_computed(self, tensor: Tensor) -> bool:
        return tensor.data_type in _COMPUTED and id(tensor) not in self._inside and not is_small(tensor)

    def _shown(self, tensor: Tensor) -> Tensor:
        if id(tensor) in self._inside:
            return self._inside[id(tensor)][1]
        if is_small(tensor):
            return tensor
        token = _TOKEN % len(self._originals)
        self._originals[token] = tensor
        return Tensor(dims=tensor.dims, data_type=tensor.data_type, name=tensor.name, raw_data=token)

    def _original(self, tensor: Tensor) -> Tensor:
        raw = tensor.raw_data
        if isinstance(raw, bytes) and (original := self._originals.get(raw)) is not None:
            return original
        return self._outside.get(tensor, tensor) if self._outside else tensor

    def _dense(self, graph: Graph | None) -> Graph | None:
        if graph is None or not graph.sparse_initializer:
            return graph
        dense = []
        for sparse in graph.sparse_initializer:
            values = sparse.values or Tensor()
            self._sparse.add(values.name or "")
            raw = _TOKEN % (9_000_000 + len(self._sparse))
            dense.append(Tensor(dims=sparse.dims, data_type=values.data_type, name=values.name, raw_data=raw))
        return replace(graph, initializer=(*graph.initializer, *dense), sparse_initializer=())


def is_small(tensor: Tensor) -> bool:
    """Whether native code gets a tensor unchanged: it is inline, and more than its SHA-256 is known."""
    has_digest = any([isinstance(getattr(tensor, field), Digest) for field in _DIGEST_FIELDS])
    return not is_external(tensor) and _size(tensor) <= SHOWN and not has_digest


def input_for(tensor: Tensor) -> ValueInfo:
    """Return an input with the name, type and doc string of a tensor."""
    return ValueInfo(name=tensor.name, type=type_of_constant(tensor), doc_string=tensor.doc_string)


def with_inputs(
    graph: Graph,
    is_big: Callable[[Tensor], bool] = lambda tensor: not is_small(tensor),
    input_of: Callable[[Tensor], ValueInfo] = input_for,
) -> Graph:
    """Return a graph with inputs instead of its big initializers."""
    big = [tensor for tensor in graph.initializer if is_big(tensor)]
    if not big:
        return graph
    names, stated = {tensor.name for tensor in big}, {value.name for value in graph.input}
    added = [input_of(tensor) for tensor in big if tensor.name not in stated]
    kept = [tensor for tensor in graph.initializer if tensor.name not in names]
    return replace(graph, initializer=tuple(kept), input=(*graph.input, *added))


def _empty(tensor: Tensor) -> Tensor:
    if is_small(tensor):
        return tensor
    return Tensor(dims=(0,), data_type=tensor.data_type, name=tensor.name, raw_data=b"")


def _internalized(model: Model, folder: Path | None) -> dict[int, tuple[Tensor, Tensor]]:
    """Return small external tensors: identity -> the tensor, and the same with its elements."""
    if folder is None:
        return {}
    external = {id(each): each for each in tensors_of(model) if is_external(each) and _size(each) <= SHOWN}
    holder = internalize(Model(graph=Graph(initializer=tuple(external.values()))), folder).graph
    assert holder is not None
    return {key: (tensor, inside) for (key, tensor), inside in zip(external.items(), holder.initializer, strict=True)}


def _with_graph(model: Model, graph: Graph | None) -> Model:
    return model if graph is model.graph else replace(model, graph=graph)


def _size(tensor: Tensor) -> int:
    """Return the size of a tensor: by dtype and dims if it is external, else of its stored elements."""
    return (needed_bytes(tensor) or SHOWN + 1) if is_external(tensor) else stored_bytes(tensor)
