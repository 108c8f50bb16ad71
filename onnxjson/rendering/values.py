"""What a value is, who makes it and who takes it, as data."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from onnxjson.document import SparseTensor, StringStringEntry
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.rendering.constants import tensor_type_text
from onnxjson.types import format_type

Maker = Literal["node", "input", "initializer", "absent", "unknown"]
"""Who makes a value; absent: an optional input that is left out; unknown: nothing of that name is in sight."""


class Pair(msgspec.Struct, frozen=True):
    """One pair of metadata."""

    key: str | None
    value: str | None


class NodeName(msgspec.Struct, frozen=True):
    """A node, as far as it takes to find it again."""

    address: str
    op_type: str
    name: str | None


class Consumer(msgspec.Struct, frozen=True):
    """A place that takes a value: an input of a node, or (node None) an output of the graph."""

    address: str
    slot: int
    node: NodeName | None


class Source(msgspec.Struct, frozen=True):
    """Where a value comes from."""

    name: str
    type: str | None
    """In the grammar of docs/format.md, section 5; None where the model does not say."""
    made_by: Maker
    address: str | None
    """Of the input or initializer, or of the node's output."""
    node: NodeName | None


def pairs(entries: Sequence[StringStringEntry]) -> tuple[Pair, ...]:
    """Metadata as data."""
    return tuple([Pair(entry.key, entry.value) for entry in entries])


def node_name(ref: NodeRef) -> NodeName:
    """The node, as far as it takes to find it again."""
    return NodeName(ref.address, ref.node.op_type or "", ref.node.name)


def consumers(index: Index, scope: Scope, name: str) -> tuple[Consumer, ...]:
    """Every place that takes a value which is defined in `scope`."""
    return tuple([
        Consumer(
            use.address,
            use.slot,
            None if use.position is None else node_name(NodeRef(use.scope, use.position)),
        )
        for use in index.consumers(scope, name)
    ])  # fmt: skip


def source(index: Index, scope: Scope, name: str) -> Source:
    """Where a value comes from that is used in `scope`."""
    if not name:
        return Source(name, None, "absent", None, None)
    home = index.home(scope, name)
    if home is None:
        return Source(name, value_type(scope, name), "unknown", None, None)
    if name in home.initializers:
        return Source(
            name, value_type(scope, name), "initializer", f"{home.address}/initializer/{home.initializers[name]}", None
        )
    if name in home.sparse_initializers:
        address = f"{home.address}/sparse_initializer/{home.sparse_initializers[name]}"
        return Source(name, value_type(scope, name), "initializer", address, None)
    if name in home.inputs:
        return Source(name, value_type(scope, name), "input", f"{home.address}/input/{home.inputs[name]}", None)
    position, slot = home.makers[name]
    ref = NodeRef(home, position)
    return Source(name, value_type(scope, name), "node", f"{ref.address}/output/{slot}", node_name(ref))


def value_type(scope: Scope, name: str) -> str | None:
    """The type of a value, from what the graph says or from the constant itself; None where neither is there."""
    said = Index.type_of(scope, name)
    if said is not None:
        return format_type(said)
    home = Index.home(scope, name)
    constant = home.initializer(name) if home is not None else None
    if isinstance(constant, SparseTensor):
        values = constant.values
        inner = None if values is None else tensor_type_text(msgspec.structs.replace(values, dims=constant.dims))
        return None if inner is None else f"sparse {inner}"
    return None if constant is None else tensor_type_text(constant)
