"""Layers that one side inserts behind a value, and takers of the value that the other side adds.

Who moves all takers of a value behind a new node wants what is computed from the value to be computed from the node's
output. A taker that the other side adds meanwhile would go past the node, which nobody has seen, or decided.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from onnxjson import document as d
from onnxjson.index import Scope
from onnxjson.merging.lists import label
from onnxjson.merging.pairing import GraphMatch


class Layer(NamedTuple):
    """A new node of one side that all takers of a value were put behind."""

    value: str
    node: d.Node
    moved: tuple[str, ...]
    """The slots that have the node's output in place of the value, below the address of the graph in the base."""


def inserted(match: GraphMatch, scope: Scope) -> Iterator[Layer]:
    """The layers that a side inserts into a graph of the base.

    Args:
        match: the graph of the base and its counterpart.
        scope: the counterpart with names of the base.
    """
    outputs = frozenset(scope.output_names if match.base.kind == "main" else ())
    known: dict[str, _Takers | None] = {}
    for there, node in enumerate(scope.graph.node):
        if match.base_of[there] >= 0:
            continue
        for value in dict.fromkeys(node.input):
            if value not in known:
                known[value] = _moved_takers(match, scope, value) if match.base.defines(value) else None
            if (takers := known[value]) and (moved := takers.behind(node, outputs)):
                yield Layer(value, node, moved)


class _Takers(NamedTuple):
    """The slots of the base that took a value and do not any more."""

    by_value: dict[str, list[str]]
    """Those of nodes, by what they take now."""
    outputs: list[str]

    def behind(self, node: d.Node, outputs: frozenset[str | None]) -> tuple[str, ...]:
        """Those that a node was put before; `outputs` are those of the graph, where their names are its interface."""
        found = [slot for name in dict.fromkeys(node.output) for slot in self.by_value.get(name, ())]
        return tuple(found if outputs.isdisjoint(node.output) else found + self.outputs)


def _moved_takers(match: GraphMatch, scope: Scope, value: str) -> _Takers | None:
    """The takers of a value in the base, or None where some of them still takes the value itself."""
    for position, _ in scope.uses(value):
        if position is None or match.base_of[position] >= 0:
            return None
    found = _Takers({}, [])
    for here, slot in match.base.uses(value):
        if here is None:
            found.outputs.append(f"output/{slot}/name")
            continue
        there = match.target_of[here]
        inputs = scope.graph.node[there].input if there >= 0 else ()
        if slot < len(inputs) and inputs[slot]:
            found.by_value.setdefault(inputs[slot], []).append(f"node/{here}/input/{slot}")
    return found


class Additions:
    """Nodes that a side adds to a graph, to be found again in a merged one: what both add is there only once."""

    def __init__(self, nodes: Sequence[d.Record]) -> None:
        self._nodes = nodes
        self._places: dict[Any, list[int]] = {}
        for place, node in enumerate(nodes):
            self._places.setdefault(label(node), []).append(place)

    def place(self, node: d.Node) -> int | None:
        """Where a node equal to this one stands among them; None where none does."""
        return next((place for place in self._places.get(label(node), ()) if self._nodes[place] == node), None)
