"""The nodes around one node of a graph: those that it takes from and that take from it, some steps away."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from onnxjson.display import visible
from onnxjson.index import NodeRef, Scope
from onnxjson.operators import operator_name
from onnxjson.rendering.tables import shortened
from onnxjson_tui.rows.graph_drawing import Box, Edge

MOST: Final = 64
"""Boxes of a drawing."""

HOPS: Final = 3
"""Steps at first."""

MOST_HOPS: Final = 32

_MOST_TAKERS: Final = 8
"""Nodes that take one value, of which all are shown."""

_LABEL: Final = 24

Key = int | str
"""A node by its position, or an input or output of the graph by its name."""


class Surroundings(NamedTuple):
    """What is drawn."""

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    positions: tuple[int | None, ...]
    """For each box the node, None for inputs and outputs of the graph."""
    left_out: int
    """Nodes within the steps for which there is no room."""


def surroundings(ref: NodeRef, hops: int) -> Surroundings:
    """The nodes at most so many steps away from one, the nearest first, as many as there is room for.

    Constants are left out. What a node is joined to and is not drawn is a number beside it.
    """
    scope = ref.scope
    kept: dict[Key, None] = {ref.position: None}
    border: list[Key] = [ref.position]
    left_out = 0
    for _ in range(hops):
        found: dict[Key, None] = {}
        for key in border:
            for near in _near(scope, key):
                if near not in kept:
                    found[near] = None
        room = MOST - len(kept)
        border = list(found)[:room]
        left_out += len(found) - len(border)
        kept |= dict.fromkeys(border)
        if not border:
            break
    return _drawn(scope, ref.position, sorted(kept, key=lambda key: _order(scope, key)), left_out)


def _drawn(scope: Scope, centre: int, keys: list[Key], left_out: int) -> Surroundings:
    places = {key: place for place, key in enumerate(keys)}
    edges: dict[tuple[int, int], None] = {}
    hidden = [0] * len(keys)
    for key in keys:
        for before, after in _joined(scope, key):
            if before in places and after in places:
                edges[places[before], places[after]] = None
            else:
                hidden[places[key]] += 1
    boxes = []
    for key, more in zip(keys, hidden, strict=True):
        boxes.append(Box(_label(scope, key), more, key == centre))
    positions = tuple([key if isinstance(key, int) else None for key in keys])
    return Surroundings(tuple(boxes), tuple([Edge(*ends) for ends in edges]), positions, left_out)


def _order(scope: Scope, key: Key) -> int:
    """Inputs before all nodes, outputs after them."""
    if isinstance(key, int):
        return key
    return -1 if key in scope.inputs else len(scope.graph.node)


def _label(scope: Scope, key: Key) -> str:
    if isinstance(key, str):
        return f"({shortened(visible(key, 200), _LABEL)})"
    node = scope.graph.node[key]
    return f"[{key} {shortened(visible(operator_name(node.domain, node.op_type), 200), _LABEL)}]"


def _near(scope: Scope, key: Key) -> Iterator[Key]:
    for before, after in _joined(scope, key):
        yield after if before == key else before


def _joined(scope: Scope, key: Key) -> list[tuple[Key, Key]]:
    """Who gives to a node and whom it gives to, as pairs, each once; loops are left out."""
    found: dict[tuple[Key, Key], None] = {}
    if isinstance(key, str):
        for taker, _ in scope.uses(key)[:_MOST_TAKERS] if key in scope.inputs else ():
            if taker is not None:
                found[key, taker] = None
        if key in scope.makers and key not in scope.inputs:
            found[scope.makers[key][0], key] = None
        return list(found)
    node = scope.graph.node[key]
    for name in node.input:
        if name in scope.initializers or name in scope.sparse_initializers:
            continue
        if name in scope.inputs:
            found[name, key] = None
        elif name in scope.makers and scope.graph.node[scope.makers[name][0]].op_type != "Constant":
            found[scope.makers[name][0], key] = None
    for name in node.output:
        for taker, _ in scope.uses(name):
            found[key, taker if taker is not None else name] = None
    return [pair for pair in found if pair[0] != pair[1]]
