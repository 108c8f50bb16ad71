"""Values as data: type, producer and consumers."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from onnxjson.model.document import SparseTensor, StringStringEntry
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.types import format_type
from onnxjson.rendering.constants import tensor_type_text

Maker = Literal["node", "input", "initializer", "absent", "unknown"]
"""Producer of a value; absent: an omitted optional input; unknown: the name is not defined."""


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
    """In the grammar of docs/format.md, section 5; None if the model does not state it."""
    made_by: Maker
    address: str | None
    """Address of the input, the initializer, or the output of a node."""
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
        Consumer(
            use.address,
            use.slot,
            None if use.position is None else node_name(NodeRef(use.scope, use.position)),
        )
        for use in index.consumers(scope, name)
    ])  # fmt: skip


def source(index: Index, scope: Scope, name: str) -> Source:
    """Return the producer of a value that is used in `scope`."""
    if not name:
        return Source(name, None, "absent", None, None)
    defining = index.defining_scope(scope, name)
    if defining is None:
        return Source(name, value_type(scope, name), "unknown", None, None)
    if name in defining.initializers:
        return Source(
            name,
            value_type(scope, name),
            "initializer",
            f"{defining.address}/initializer/{defining.initializers[name]}",
            None,
        )
    if name in defining.sparse_initializers:
        address = f"{defining.address}/sparse_initializer/{defining.sparse_initializers[name]}"
        return Source(name, value_type(scope, name), "initializer", address, None)
    if name in defining.inputs:
        return Source(name, value_type(scope, name), "input", f"{defining.address}/input/{defining.inputs[name]}", None)
    position, slot = defining.producers[name]
    ref = NodeRef(defining, position)
    return Source(name, value_type(scope, name), "node", f"{ref.address}/output/{slot}", node_name(ref))


def value_type(scope: Scope, name: str) -> str | None:
    """Return the type of a value as declared by the graph or from the constant itself; None if unknown."""
    declared = Index.type_of(scope, name)
    if declared is not None:
        return format_type(declared)
    defining = Index.defining_scope(scope, name)
    constant = defining.initializer(name) if defining is not None else None
    if isinstance(constant, SparseTensor):
        values = constant.values
        inner = None if values is None else tensor_type_text(msgspec.structs.replace(values, dims=constant.dims))
        return None if inner is None else f"sparse {inner}"
    return None if constant is None else tensor_type_text(constant)
