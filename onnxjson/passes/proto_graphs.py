"""Graphs inside the nodes of a model of protobuf, in which third-party passes work."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


def subgraphs(node: "NodeProto") -> "Iterator[GraphProto]":
    """The graphs in the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def taken_names(graph: "GraphProto") -> Iterator[str]:
    """The names that nodes and outputs of a graph take, each as often as it is taken, those of inner graphs too."""
    yield from [value.name for value in graph.output]
    for node in graph.node:
        yield from node.input
        for inner in subgraphs(node):
            yield from taken_names(inner)
