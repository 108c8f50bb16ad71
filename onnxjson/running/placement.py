"""The execution provider of each node of a model: onnxruntime's assignment, in terms of the model.

onnxruntime assigns nodes after its basic optimizations. Nodes that these keep have their names; a trace of the
optimizations tells which nodes of the model the others come from.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from onnxjson.model.index import Index


class PlacedNode(msgspec.Struct, frozen=True):
    """One node of the optimized graph."""

    name: str
    operator: str
    provider: str
    address: str | None
    """Its node in the model; None if onnxruntime made it from several nodes, or from none."""
    origins: tuple[str, ...] = ()
    """All nodes of the model that it computes."""


class Placement(msgspec.Struct, frozen=True):
    """Where the nodes of a model run."""

    providers: dict[str, int]
    """Nodes of each execution provider."""
    cuts: int
    """Values that one provider computes and another one uses; each is copied or waited for."""
    kept_off: dict[str, int]
    """Operators of nodes that the first requested provider did not get, most nodes first."""
    removed: int
    """Nodes of the model that the basic optimizations removed."""
    nodes: tuple[PlacedNode, ...]


def placement_of(
    index: Index, placed: Iterable[Sequence[str]], wanted: str, origins: Mapping[str, Sequence[str]] | None = None
) -> Placement:
    """Return the placement of a model.

    Args:
        index: the index of the model.
        placed: name, operator and execution provider of each node of the optimized graph.
        wanted: the execution provider that was requested first.
        origins: the nodes of the model behind nodes of the optimized graph, by name; by default those of the same name.
    """
    nodes = []
    for name, operator, provider in placed:
        named = [ref.address for ref in index.nodes_with("name", name)] if name else []
        found = tuple((origins or {}).get(name) or named[:1] * (len(named) == 1))
        nodes.append(PlacedNode(name, operator, provider, found[0] if len(found) == 1 else None, found))
    provider_of = {address: each.provider for each in nodes for address in each.origins}
    crossing = set()
    for ref in index.node_refs:
        for name in ref.node.input:
            producer = index.producer(ref.scope, name) if name else None
            ends = None if producer is None else (provider_of.get(producer.address), provider_of.get(ref.address))
            if ends is not None and None not in ends and ends[0] != ends[1]:
                crossing.add((producer, name, ends[1]))
    off = Counter(each.operator for each in nodes if each.provider != wanted)
    return Placement(
        dict(Counter(each.provider for each in nodes)),
        len(crossing),
        dict(off.most_common()),
        len(index.node_refs) - len(provider_of),
        tuple(nodes),
    )
