"""The nodes around one node of a graph: what it depends on and what depends on it, some steps away."""

from collections.abc import Sequence
from itertools import pairwise
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

_BESIDE: Final = 3
"""Boxes that there is room for beside each other on every screen."""

_LABEL: Final = 24

Key = int | str
"""A node by its position, or an input or output of the graph by its name."""


class Surroundings(NamedTuple):
    """What is drawn."""

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    positions: tuple[int | None, ...]
    """For each box the node, None for inputs and outputs of the graph."""
    near: tuple[int, ...]
    """The boxes of the node itself and of those that it is joined to."""
    left_out: int
    """Nodes within the steps for which there is no room."""


def surroundings(ref: NodeRef, hops: int) -> Surroundings:
    """What a node depends on and what depends on it, at most so many steps away, as many as there is room for.

    What only shares a maker or a taker with it is left out, and so are constants. What a node is joined to and is not
    drawn is a number beside it.
    """
    scope = ref.scope
    kept: dict[Key, None] = {ref.position: None}
    makers: list[Key] = [ref.position]
    takers: list[Key] = [ref.position]
    left_out = 0
    for _ in range(hops):
        room = MOST - len(kept)
        makers = _unknown([maker for key in makers for maker, taker in _joined(scope, key) if taker == key], kept)
        takers = _unknown([taker for key in takers for maker, taker in _joined(scope, key) if maker == key], kept)
        # Where there is no room for all, both ways get their half, and what one of them does not need.
        upwards = max(room // 2, room - len(takers))
        left_out += max(len(makers) - upwards, 0)
        makers = makers[:upwards]
        kept |= dict.fromkeys(makers)
        takers = _unknown(takers, kept)
        left_out += max(len(takers) - (MOST - len(kept)), 0)
        takers = takers[: MOST - len(kept)]
        kept |= dict.fromkeys(takers)
        if not makers and not takers:
            break
    return _drawn(scope, ref.position, sorted(kept, key=lambda key: _order(scope, key)), left_out)


def in_two_rows(edges: Sequence[Edge], centre: int) -> list[Edge]:
    """Which boxes stand below which others so that many on one side of one are in two rows there.

    Nothing where some of them are joined to each other, and so are in rows of their own anyway.
    """
    if any(centre not in edge for edge in edges):
        return []
    takers = [edge.end for edge in edges if edge.start == centre]
    makers = [edge.start for edge in edges if edge.end == centre]
    below = []
    for group, is_after in ((takers, True), (makers, False)):
        for place, (one, other) in enumerate(pairwise(group if len(group) > _BESIDE else ())):
            # Every second one is further away, between those beside it.
            near, far = (one, other) if place % 2 == 0 else (other, one)
            below.append(Edge(near, far) if is_after else Edge(far, near))
    return below


def _unknown(found: Sequence[Key], kept: dict[Key, None]) -> list[Key]:
    return [key for key in dict.fromkeys(found) if key not in kept]


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
    middle = places[centre]
    near = {middle, *[place for ends in edges if middle in ends for place in ends]}
    return Surroundings(tuple(boxes), tuple([Edge(*ends) for ends in edges]), positions, tuple(sorted(near)), left_out)


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


def _joined(scope: Scope, key: Key) -> list[tuple[Key, Key]]:
    """Who gives to a node and whom it gives to, as pairs, each once; loops are left out."""
    found: dict[tuple[Key, Key], None] = {}
    if isinstance(key, str):
        for taker, _ in scope.uses(key) if key in scope.inputs else ():
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
