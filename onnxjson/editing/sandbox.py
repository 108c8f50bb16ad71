"""Native code of onnx, run in the sandbox process on a model with placeholders for its big constants.

The native libraries copy a model several times and read at most 2 GB, but they need the values of only a few small
constants: axes, shapes, scales. A placeholder has an odd number of bytes, so that code that reads it as numbers fails
instead of computing with it. External data is never given to the version converter, which treats values in a file as
missing (seen in onnx 1.23). Constants of which a text has only digests always get placeholders.

The libraries convert a model to their own form and back. They lose metadata of nodes, quantization annotations, sparse
initializers and unknown fields, sort attributes, and add types that are not wanted. `reconcile` restores all of it:
nodes are recognised by the names of their outputs, which native code keeps; a node that stays keeps its record, or all
of it except for the changed computation.
"""

import atexit
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from onnxjson.codecs import serde
from onnxjson.codecs.wire_writing import message_bytes, message_size
from onnxjson.model.document import Attribute, Graph, Model, Node, SparseTensor, Tensor, Type, ValueInfo
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


class Reconciled(NamedTuple):
    """A reconciled graph, and how many nodes changed."""

    graph: Graph
    changed: int
    """Number of nodes with another computation than before, including those in subgraphs."""
    added: int
    removed: int


def reconcile(before: Graph, after: Graph) -> Reconciled:
    """Return `after` with everything of `before` that the change does not concern.

    Args:
        before: a graph.
        after: the graph that native code returned.
    """
    places = _places(before.node)
    nodes: list[Node] = []
    changed = added = removed = 0
    kept: set[int] = set()
    for node in after.node:
        place = _place(node, places)
        old = before.node[place] if place is not None and place not in kept else None
        if old is None or place is None or not _is_same_operator(old, node):
            nodes.append(node)
            added += 1
            continue
        kept.add(place)
        new, below = _node(old, node)
        changed += below[0] + (new is not old)
        added += below[1]
        removed += below[2]
        nodes.append(new)
    removed += len(before.node) - len(kept)
    if added == removed == changed == 0 and [id(each) for each in nodes] == [id(each) for each in before.node]:
        return Reconciled(before, 0, 0, 0)
    graph = msgspec.structs.replace(
        before,
        node=tuple(nodes),
        initializer=_initializers(before.initializer, after.initializer),
        output=_typed(before.output, after),
        value_info=_value_info(before, after, nodes),
    )
    return Reconciled(graph, changed, added, removed)


def _places(nodes: Sequence[Node]) -> dict[str, int]:
    """Return values -> the position of their producer."""
    found: dict[str, int] = {}
    for position, node in enumerate(nodes):
        for name in node.output:
            if name:
                found.setdefault(name, position)
    return found


def _place(node: Node, places: dict[str, int]) -> int | None:
    return next((places[name] for name in node.output if name in places), None)


def _is_same_operator(one: Node, other: Node) -> bool:
    same = one.op_type == other.op_type and (one.overload or "") == (other.overload or "")
    return same and (one.domain or "") == (other.domain or "")


def _node(old: Node, new: Node) -> tuple[Node, tuple[int, int, int]]:
    """Return the reconciled node, and the numbers of changes in its subgraphs."""
    counts = [0, 0, 0]
    by_name = {each.name: each for each in new.attribute}
    attributes: list[Attribute] = []
    for attribute in old.attribute:
        there = by_name.pop(attribute.name, None)
        if there is not None:
            merged, below = _attribute(attribute, there)
            attributes.append(merged)
            counts = [one + other for one, other in zip(counts, below, strict=True)]
    # Attribute names are unique in a valid node; attributes that the libraries removed stay removed.
    attributes += [each for each in new.attribute if each.name in by_name]
    same = [id(each) for each in attributes] == [id(each) for each in old.attribute]
    inputs = new.input if _used(new.input) != _used(old.input) else old.input
    outputs = new.output if _used(new.output) != _used(old.output) else old.output
    if same and inputs is old.input and outputs is old.output:
        return old, (counts[0], counts[1], counts[2])
    kept = msgspec.structs.replace(
        old, input=inputs, output=outputs, attribute=old.attribute if same else tuple(attributes)
    )
    return kept, (counts[0], counts[1], counts[2])


def _used(names: Sequence[str]) -> tuple[str, ...]:
    """Return names without empty ones at the end."""
    end = len(names)
    while end and not names[end - 1]:
        end -= 1
    return tuple(names[:end])


def _attribute(old: Attribute, new: Attribute) -> tuple[Attribute, tuple[int, int, int]]:
    if old.g is not None and new.g is not None:
        below = reconcile(old.g, new.g)
        kept = old if below.graph is old.g else msgspec.structs.replace(old, g=below.graph)
        return kept, (below.changed, below.added, below.removed)
    if old.graphs and len(old.graphs) == len(new.graphs):
        found = [reconcile(one, other) for one, other in zip(old.graphs, new.graphs, strict=True)]
        if all(each.graph is graph for each, graph in zip(found, old.graphs, strict=True)):
            return old, (0, 0, 0)
        kept = msgspec.structs.replace(old, graphs=tuple([each.graph for each in found]))
        sums = (
            sum(each.changed for each in found),
            sum(each.added for each in found),
            sum(each.removed for each in found),
        )
        return kept, sums
    if _plain(old) == _plain(new):
        return old, (0, 0, 0)
    return msgspec.structs.replace(new, doc_string=old.doc_string, unknown_fields=old.unknown_fields), (0, 0, 0)


def _plain(attribute: Attribute) -> Attribute:
    """Return an attribute without the fields that do not affect the computation."""
    tensor = attribute.t and _plain_tensor(attribute.t)
    return msgspec.structs.replace(attribute, doc_string=None, unknown_fields=b"", t=tensor, type=None)


def _plain_tensor(tensor: Tensor) -> Tensor:
    return msgspec.structs.replace(tensor, name=None, doc_string=None, metadata_props=(), unknown_fields=b"")


def _initializers(before: tuple[Tensor, ...], after: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the initializers that are still there, in their order and with their metadata, then new ones."""
    now = {each.name: each for each in after}
    kept = []
    for tensor in before:
        there = now.pop(tensor.name, None)
        if there is None:
            continue
        kept.append(tensor if tensor is there or _is_same_tensor(tensor, there) else there)
    found = (*kept, *[each for each in after if each.name in now])
    return before if found == before else found


def _is_same_tensor(one: Tensor, other: Tensor) -> bool:
    same_kind = one.dims == other.dims and one.data_type == other.data_type
    return same_kind and _payload(one) == _payload(other)


def _payload(tensor: Tensor) -> tuple[object, ...]:
    """Return the content of a tensor, inline or external."""
    from onnxjson.model.tensors import is_external, raw_bytes

    if is_external(tensor):
        return ("file", tensor.external_data)
    found = raw_bytes(tensor)
    return ("bytes", found[0]) if found is not None else ("strings", tensor.string_data)


def _typed(before: tuple[ValueInfo, ...], after: Graph) -> tuple[ValueInfo, ...]:
    """Replace types that are wrong now; types that the libraries added are left out."""
    stated = {each.name: each.type for each in (*after.value_info, *after.output)}
    found = tuple([_with_type(each, stated.get(each.name)) for each in before])
    return before if all(one is other for one, other in zip(found, before, strict=True)) else found


def _with_type(value: ValueInfo, now: Type | None) -> ValueInfo:
    if value.type is None or now is None or not _contradicts(value.type, now):
        return value
    return msgspec.structs.replace(value, type=now)


def _contradicts(one: Type, other: Type) -> bool:
    if one.tensor_type is None or other.tensor_type is None:
        return False
    if one.tensor_type.elem_type and other.tensor_type.elem_type:
        return one.tensor_type.elem_type != other.tensor_type.elem_type
    return False


def _value_info(before: Graph, after: Graph, nodes: Sequence[Node]) -> tuple[ValueInfo, ...]:
    """Return value_info of the values that still exist."""
    if not before.value_info:
        return before.value_info
    made = {name for node in nodes for name in node.output}
    gone = {name for node in before.node for name in node.output} - made
    kept = before.value_info
    if gone:
        kept = tuple([each for each in kept if each.name not in gone])
    return _typed(kept, after)
