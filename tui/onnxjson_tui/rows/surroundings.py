"""Neighbourhood of a node: the nodes that it depends on and that depend on it, up to some steps away."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from onnxjson.model.constants import is_constant_node
from onnxjson.model.display import visible
from onnxjson.model.index import NodeRef, Scope
from onnxjson.model.operators import operator_name
from onnxjson.rendering.tables import shortened
from onnxjson_tui.rows.graph_drawing import Box, Edge

MOST: Final = 64  # boxes of a drawing
HOPS: Final = 3  # steps at first

MOST_HOPS: Final = 32

_LABEL: Final = 24

Key = int | str  # a node by its position, or an input or output of the graph by its name


class Surroundings(NamedTuple):
    """The part of a graph that is drawn."""

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    positions: tuple[int | None, ...]  # position of the node of each box; None for inputs and outputs of the graph
    near: tuple[int, ...]  # the boxes of the node itself and of its direct neighbours
    left_out: int  # number of nodes within these steps that do not fit


def surroundings(ref: NodeRef, hops: int) -> Surroundings:
    """Return the nodes that a node depends on and that depend on it within `hops` steps, as far as there is room.

    Nodes that only share a producer or a consumer with it are left out, and so are constants. Connections that are not
    drawn are counted next to the box.
    """
    scope = ref.scope
    kept: dict[Key, None] = {ref.position: None}
    producers: list[Key] = [ref.position]
    consumers: list[Key] = [ref.position]
    left_out = 0
    for _ in range(hops):
        room = MOST - len(kept)
        producers = _unknown(
            [producer for key in producers for producer, consumer in _joined(scope, key) if consumer == key], kept
        )
        consumers = _unknown(
            [consumer for key in consumers for producer, consumer in _joined(scope, key) if producer == key], kept
        )
        # If not all fit, each direction gets half of the room, and what the other direction does not need.
        upwards = max(room // 2, room - len(consumers))
        left_out += max(len(producers) - upwards, 0)
        producers = producers[:upwards]
        kept |= dict.fromkeys(producers)
        consumers = _unknown(consumers, kept)
        left_out += max(len(consumers) - (MOST - len(kept)), 0)
        consumers = consumers[: MOST - len(kept)]
        kept |= dict.fromkeys(consumers)
        if not producers and not consumers:
            break
    return _drawn(scope, ref.position, sorted(kept, key=lambda key: _order(scope, key)), left_out)


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
        boxes.append(Box(_label(scope, key), more))
    positions = tuple([key if isinstance(key, int) else None for key in keys])
    middle = places[centre]
    near = {middle, *[place for ends in edges if middle in ends for place in ends]}
    return Surroundings(tuple(boxes), tuple([Edge(*ends) for ends in edges]), positions, tuple(sorted(near)), left_out)


def _order(scope: Scope, key: Key) -> int:
    """Return the sort key of a box: inputs before all nodes, outputs after them."""
    if isinstance(key, int):
        return key
    return -1 if key in scope.inputs else len(scope.graph.node)


def _label(scope: Scope, key: Key) -> str:
    if isinstance(key, str):
        return f"({shortened(visible(key, 200), _LABEL)})"
    node = scope.graph.node[key]
    return f"[{key} {shortened(visible(operator_name(node.domain, node.op_type), 200), _LABEL)}]"


def _joined(scope: Scope, key: Key) -> list[tuple[Key, Key]]:
    """Return the connections of a node as pairs of producer and consumer, without loops."""
    found: dict[tuple[Key, Key], None] = {}
    if isinstance(key, str):
        for consumer, _ in scope.uses(key) if key in scope.inputs else ():
            if consumer is not None:
                found[key, consumer] = None
        if key in scope.producers and key not in scope.inputs:
            found[scope.producers[key][0], key] = None
        return list(found)
    node = scope.graph.node[key]
    for name in node.input:
        if name in scope.initializers or name in scope.sparse_initializers:
            continue
        if name in scope.inputs:
            found[name, key] = None
        elif name in scope.producers and not is_constant_node(scope.graph.node[scope.producers[name][0]]):
            found[scope.producers[name][0], key] = None
    for name in node.output:
        for consumer, _ in scope.uses(name):
            found[key, consumer if consumer is not None else name] = None
    return [pair for pair in found if pair[0] != pair[1]]
