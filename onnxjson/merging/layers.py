"""Layers that one side inserts behind a value, and takers of the value that the other side adds.

Who moves all takers of a value behind a new node wants what is computed from the value to be computed from the node's
output. A taker that the other side adds meanwhile would go past the node, which nobody has seen, or decided.
"""

from collections.abc import Iterator
from typing import NamedTuple

from onnxjson import document as d
from onnxjson.index import Scope
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
    for there, node in enumerate(scope.graph.node):
        if match.base_of[there] < 0:
            for value in dict.fromkeys(node.input):
                if match.base.defines(value) and (moved := _moved(match, scope, value, node)):
                    yield Layer(value, node, moved)


def _moved(match: GraphMatch, scope: Scope, value: str, node: d.Node) -> tuple[str, ...]:
    """The slots, or nothing where some taker of the base still takes the value itself."""
    for position, _ in scope.uses(value):
        if position is None or match.base_of[position] >= 0:
            return ()
    found = []
    is_output = match.base.kind == "main" and not set(node.output).isdisjoint(scope.output_names)
    for here, slot in match.base.uses(value):
        if here is None:
            found += [f"output/{slot}/name"] if is_output else []
            continue
        there = match.target_of[here]
        inputs = scope.graph.node[there].input if there >= 0 else ()
        if slot < len(inputs) and inputs[slot] in node.output:
            found.append(f"node/{here}/input/{slot}")
    return tuple(found)
