"""Data that reports share, and its exact JSON in ASCII, for other programs.

Values and constants of a model: types, producers and consumers; sizes and files of constants, whose elements are not
read.
"""

import heapq
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
import pybase64

from onnxjson.model.constants import own_constant
from onnxjson.model.document import SparseTensor, StringStringEntry, Tensor
from onnxjson.model.elements import element_count
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.scalars import LARGEST_PLAIN
from onnxjson.model.tensors import is_external, location_of
from onnxjson.model.types import format_data_type, format_tensor_type, shown_type
from onnxjson.model.walking import StoredTensor, stored_bytes
from onnxjson.storage.external import Resolver

BIGGEST: Final = 8

Maker = Literal["node", "input", "initializer", "absent", "unknown"]
"""Producer of a value; absent: an omitted optional input; unknown: the name is not defined."""

_NAMES: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


class Weights(msgspec.Struct, frozen=True):
    """Tensors, each counted once."""

    tensors: int = 0
    elements: int = 0
    bytes: int = 0
    external_bytes: int = 0


class Dtype(msgspec.Struct, frozen=True):
    """Tensors of one dtype."""

    dtype: str
    tensors: int
    elements: int
    bytes: int


class BigTensor(msgspec.Struct, frozen=True):
    """One of the largest tensors."""

    name: str
    address: str
    type: str | None
    elements: int
    bytes: int
    location: str | None
    """External file that contains it; None if the model does."""


class ExternalFile(msgspec.Struct, frozen=True):
    """An external file with tensors."""

    location: str
    tensors: int
    bytes: int
    file_bytes: int | None
    problem: str | None


def tensor_type_text(tensor: Tensor) -> str | None:
    """Return ``float32[2,3]`` for a constant; None if its dtype or dims are invalid."""
    return None if tensor.data_type is None else format_tensor_type(tensor.data_type, tensor.dims)


def constant_type_text(constant: Tensor | SparseTensor) -> str | None:
    """Return the type of a constant, ``sparse float32[2,3]`` for a sparse one; None if it is invalid."""
    if isinstance(constant, Tensor):
        return tensor_type_text(constant)
    values = constant.values
    inner = None if values is None else tensor_type_text(msgspec.structs.replace(values, dims=constant.dims))
    return None if inner is None else f"sparse {inner}"


def weights(tensors: Iterable[Tensor]) -> Weights:
    """Return the number and total size of tensors."""
    count = elements = stored = external = 0
    for tensor in tensors:
        count += 1
        elements += element_count(tensor.dims)
        length = stored_bytes(tensor)
        stored += length
        external += length if is_external(tensor) else 0
    return Weights(count, elements, stored, external)


def dtypes(stored_tensors: Iterable[StoredTensor]) -> tuple[Dtype, ...]:
    """Group tensors by dtype, the one with most bytes first."""
    groups: dict[int, list[Tensor]] = {}
    for stored in stored_tensors:
        groups.setdefault(stored.tensor.data_type or 0, []).append(stored.tensor)
    totals = [(format_data_type(number), weights(tensors)) for number, tensors in groups.items()]
    dtypes = [Dtype(name, total.tensors, total.elements, total.bytes) for name, total in totals]
    return tuple(sorted(dtypes, key=lambda stored: (-stored.bytes, stored.dtype)))


def biggest(found: Iterable[StoredTensor]) -> tuple[BigTensor, ...]:
    """Return the largest tensors, largest first."""
    chosen = heapq.nlargest(BIGGEST, found, key=lambda each: stored_bytes(each.tensor))
    return tuple([
        BigTensor(
            tensor.name or "", address, tensor_type_text(tensor), element_count(tensor.dims), stored_bytes(tensor),
            location_of(tensor),
        )
        for address, tensor, _ in chosen
    ])  # fmt: skip


def external_files(stored_tensors: Iterable[StoredTensor], resolver: Resolver | None) -> tuple[ExternalFile, ...]:
    """Return the external files; with a resolver, also their sizes and problems."""
    tensors: dict[str, list[Tensor]] = {}
    for stored in stored_tensors:
        location = location_of(stored.tensor)
        if location is not None:
            tensors.setdefault(location, []).append(stored.tensor)
    return tuple([_external_file(location, members, resolver) for location, members in tensors.items()])


def _external_file(location: str, tensors: Sequence[Tensor], resolver: Resolver | None) -> ExternalFile:
    file_bytes, problem = None, None
    if resolver is not None:
        try:
            entries = (StringStringEntry("location", location),)
            file_bytes = len(resolver.resolve(entries, None, tensor=tensors[0].name or ""))
        except OnnxJsonError as error:
            problem = str(error)
    return ExternalFile(location, len(tensors), sum(map(stored_bytes, tensors)), file_bytes, problem)


class Pair(msgspec.Struct, frozen=True):
    """One pair of metadata."""

    key: str | None
    value: str | None


class NodeName(msgspec.Struct, frozen=True):
    """Address and name of a node."""

    address: str
    op_type: str
    name: str | None


class Consumer(msgspec.Struct, frozen=True):
    """A consumer of a value: an input of a node, or (node None) an output of the graph."""

    address: str
    slot: int
    node: NodeName | None


class Source(msgspec.Struct, frozen=True):
    """Producer and type of a value."""

    name: str
    type: str | None
    """Type in the grammar of docs/format.md, section 5; None if the model does not state it."""
    produced_by: Maker
    address: str | None  # address of the input, the initializer, or the output of a node
    node: NodeName | None


def pairs(entries: Sequence[StringStringEntry]) -> tuple[Pair, ...]:
    """Return metadata entries as data."""
    return tuple([Pair(entry.key, entry.value) for entry in entries])


def node_name(ref: NodeRef) -> NodeName:
    """Return the address and name of a node."""
    return NodeName(ref.address, ref.node.op_type or "", ref.node.name)


def consumers(index: Index, scope: Scope, name: str) -> tuple[Consumer, ...]:
    """Return all consumers of a value that is defined in `scope`."""
    return tuple([
        Consumer(use.address, use.slot, None if use.position is None else node_name(NodeRef(use.scope, use.position)))
        for use in index.consumers(scope, name)
    ])  # fmt: skip


def source(index: Index, scope: Scope, name: str) -> Source:
    """Return the producer of a value that is used in `scope`."""
    if not name:
        return Source(name, None, "absent", None, None)
    kind = value_type(scope, name)
    defining = index.defining_scope(scope, name)
    if defining is None:
        return Source(name, kind, "unknown", None, None)
    declared: tuple[tuple[Maker, str, Mapping[str, int]], ...] = (
        ("initializer", "initializer", defining.initializers),
        ("initializer", "sparse_initializer", defining.sparse_initializers),
        ("input", "input", defining.inputs),
    )
    for produced_by, field, positions in declared:
        if name in positions:
            return Source(name, kind, produced_by, f"{defining.address}/{field}/{positions[name]}", None)
    position, slot = defining.producers[name]
    ref = NodeRef(defining, position)
    return Source(name, kind, "node", f"{ref.address}/output/{slot}", node_name(ref))


def value_type(scope: Scope, name: str) -> str | None:
    """Return the type of a value as declared by the graph or from the constant itself; None if unknown."""
    declared = Index.type_of(scope, name)
    if declared is not None:
        return shown_type(declared)
    defining = Index.defining_scope(scope, name)
    constant = own_constant(defining, name) if defining is not None else None
    return None if constant is None or constant.value is None else constant_type_text(constant.value)


# JSON


class Json(msgspec.Struct, frozen=True):
    """A value that is already JSON text."""

    text: str


def as_json(value: object, indent: int | None = 2) -> str:
    """Return structs, named tuples, lists, numbers and strings as JSON text.

    Strings that are not UTF-8 (lone surrogates represent their bytes) become ``{"base64": "..."}``; numbers that are
    not finite become the strings "NaN", "Infinity" and "-Infinity", integers beyond 2^53 strings of digits.
    """
    return json.dumps(_plain(value), indent=indent, ensure_ascii=True, allow_nan=False)


def _plain(value: object) -> Any:
    match value:
        case None | bool():
            return value
        case int():
            return value if -LARGEST_PLAIN <= value <= LARGEST_PLAIN else str(value)
        case float():
            return value if math.isfinite(value) else _NAMES.get(value, "NaN")
        case str():
            return _text(value)
        case Json():
            return json.loads(value.text)
        case msgspec.Struct():
            return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        case tuple() if hasattr(value, "_asdict"):
            return {name: _plain(each) for name, each in value._asdict().items()}
        case tuple() | list():
            return [_plain(each) for each in value]
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON form here")


def picked(record: object, names: str) -> dict[str, Any]:
    """Return some properties of a record by name, in this order; ``key=name`` gives a property another key."""
    pairs = [name.partition("=") for name in names.split()]
    return {key: getattr(record, name or key) for key, _, name in pairs}


def _text(value: str) -> Any:
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"base64": pybase64.b64encode(value.encode("utf-8", "surrogateescape")).decode()}
    return value
