"""Names in models that passes work on: names consumed, names that must exist, and lists of names in messages."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from onnxjson.model.display import listed, suggest

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


def subgraphs(node: "NodeProto") -> "Iterator[GraphProto]":
    """Yield the graphs in the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def consumed_names(graph: "GraphProto") -> Iterator[str]:
    """Yield the names that nodes and graph outputs consume, once per use, including those in subgraphs."""
    yield from [value.name for value in graph.output]
    for node in graph.node:
        yield from node.input
        for inner in subgraphs(node):
            yield from consumed_names(inner)


_SHOWN: Final = 10


def require(wanted: Iterable[str], known: Sequence[str], what: str) -> None:
    """Raise unless all names are known.

    Args:
        wanted: names to check.
        known: names that exist.
        what: kind of the named things, such as "dimension".

    Raises:
        ValueError: a name does not exist; the message suggests a similar one, or lists those that exist.
    """
    for name in wanted:
        if name not in known:
            hint = suggest(name, known) or (f"there are {listed(known, _SHOWN)}" if known else "there is none")
            raise ValueError(f'there is no {what} "{name}"; {hint}')
