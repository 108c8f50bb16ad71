"""One small model to be changed on both sides, and the changes."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

import onnxjson
from onnxjson.merging.conflicted_files import ConflictWriter
from onnxjson.model.conflicts import Conflict
from onnxjson.model.document import Attribute, Model, Node, StringStringEntry, Tensor
from tests.editing.graphs import model_of

Change = Callable[[Model], Model]


def conflicted_bytes(model: Model, conflicts: Sequence[Conflict]) -> bytes:
    parts: list[bytes] = []
    ConflictWriter(parts.append, model, conflicts).model(model)
    return b"".join(parts)


BASE = model_of(
    """<ir_version: 10, opset_import: ["" : 20, "local" : 1], producer_name: "p">
    g (float[N,4] x, bool c) => (float[N,4] y, float[N,4] q)
    <float[4] w = {1, 2, 3, 4}, float[4] u = {5, 6, 7, 8}> {
    a = Mul(x, w)
    b = LeakyRelu<alpha = 0.1>(a)
    d = Add(b, u)
    e = If(c) <then_branch = t () => (float[N,4] e1) { e1 = Relu(d) },
               else_branch = f () => (float[N,4] e2) { e2 = local.twice(d) }>
    y = Softmax<axis = 1>(e)
    q = Clip(d)
    }
    <domain: "local", opset_import: ["" : 20]> twice (i) => (o) { o = Add(i, i) }"""
)
"""Nodes: 0 Mul, 1 LeakyRelu, 2 Add, 3 If, 4 Softmax, 5 Clip."""


def node(position: int, **fields: Any) -> Change:
    """Other values for fields of a node of the main graph."""

    def change(model: Model) -> Model:
        assert model.graph is not None
        nodes = list(model.graph.node)
        nodes[position] = replace(nodes[position], **fields)
        return replace(model, graph=replace(model.graph, node=tuple(nodes)))

    return change


def graph(**fields: Any) -> Change:
    """Other values for fields of the main graph."""

    def change(model: Model) -> Model:
        assert model.graph is not None
        return replace(model, graph=replace(model.graph, **fields))

    return change


def fields(**values: Any) -> Change:
    """Other values for fields of the model."""
    return lambda model: replace(model, **values)


def attribute(position: int, name: str, value: float) -> Change:
    """Another value of an attribute, or one more."""
    new = Attribute(name, f=struct.pack("<f", value), type=1)

    def change(model: Model) -> Model:
        assert model.graph is not None
        kept = [each for each in model.graph.node[position].attribute if each.name != name]
        return node(position, attribute=(new, *kept))(model)

    return change


def edit(one: Any) -> Change:
    """An edit."""
    return lambda model: onnxjson.apply(model, one)


def weights(position: int, data: bytes) -> Change:
    """Other bytes of an initializer."""

    def change(model: Model) -> Model:
        assert model.graph is not None
        tensors = list(model.graph.initializer)
        tensors[position] = Tensor(tensors[position].dims, 1, name=tensors[position].name, raw_data=data)
        return graph(initializer=tuple(tensors))(model)

    return change


def without(position: int) -> Change:
    """Without a node; who took its output takes its first input."""
    return edit(onnxjson.edits.DeleteNode(node=f"@/graph/node/{position}", bypass=0))


def added(new: Node, place: int) -> Change:
    """With one more node."""

    def change(model: Model) -> Model:
        assert model.graph is not None
        nodes = model.graph.node
        return graph(node=(*nodes[:place], new, *nodes[place:]))(model)

    return change


def renamed(old: str, new: str) -> Change:
    """A value under another name."""
    return edit(onnxjson.edits.Rename(kind="tensor", from_=old, to=new))


def metadata(key: str, value: str) -> Change:
    """One more pair of metadata, or another value of it."""
    return edit(onnxjson.edits.SetMetadata(key=key, value=value))


def both(*changes: Change) -> Change:
    """Several changes, one after the other."""

    def change(model: Model) -> Model:
        for each in changes:
            model = each(model)
        return model

    return change


def entry(key: str, value: str) -> StringStringEntry:
    """A pair of metadata."""
    return StringStringEntry(key, value)
