"""Nodes of a merged graph in an order in which values are made before they are taken."""

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from onnxjson.document import Node
from onnxjson.structure import needed_names

Key = TypeVar("Key", bound=Hashable)


def in_topological_order(items: list[Key], nodes: Mapping[Key, Node]) -> list[Key]:
    """The items in their order where that is one already; else each as early as its inputs allow.

    Nodes that need each other keep the order that they have.
    """
    needs = _all_needs([nodes[item] for item in items])
    if all([need < place for place, each in enumerate(needs) for need in each]):
        return items
    order = _sorted(needs)
    return items if len(order) < len(items) else [items[place] for place in order]


def _all_needs(nodes: Sequence[Node]) -> list[set[int]]:
    """For each node the positions of those that make what it takes; itself where it takes what it makes."""
    makers: dict[str, int] = {}
    for place, node in enumerate(nodes):
        for name in node.output:
            if name:
                makers.setdefault(name, place)
    return [_needs(node, makers) for node in nodes]


def _sorted(needs: Sequence[set[int]]) -> list[int]:
    """Positions in an order in which what is needed comes first; without those for which there is none."""
    users: dict[int, list[int]] = {}
    waiting = [len(each) for each in needs]
    for place, each in enumerate(needs):
        for need in each:
            users.setdefault(need, []).append(place)
    ready = [place for place, count in enumerate(waiting) if not count]
    order: list[int] = []
    while ready:
        place = heapq.heappop(ready)
        order.append(place)
        for user in users.get(place, ()):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, user)
    return order


def stuck(nodes: tuple[Node, ...]) -> list[int]:
    """The positions of nodes that cannot be sorted, since some of them need each other."""
    needs = _all_needs(nodes)
    if all([need < place for place, each in enumerate(needs) for need in each]):
        return []
    order = _sorted(needs)
    return sorted(set(range(len(nodes))) - set(order))


def fitting_place(node: Node, nodes: tuple[Node, ...], place: int) -> int:
    """The place nearest to `place` behind all that makes what a node takes, and before all that takes what it makes.

    Where a taker stands before a maker there is none; then it is behind the makers.
    """
    names = {name for name in _taken(node) if name}
    made = {name for name in node.output if name}
    behind = next((at + 1 for at in range(len(nodes) - 1, -1, -1) if not names.isdisjoint(nodes[at].output)), 0)
    before = next((at for at, each in enumerate(nodes) if not made.isdisjoint(_taken(each))), len(nodes))
    return max(min(place, before), behind)


def is_taken_before(node: Node, nodes: tuple[Node, ...], place: int) -> bool:
    """Whether one of the nodes before a place takes what a node makes."""
    made = {name for name in node.output if name}
    return any([not made.isdisjoint(_taken(each)) for each in nodes[:place]])


def is_misplaced(nodes: tuple[Node, ...], place: int) -> bool:
    """Whether the node at a place takes what is made there or later, or makes what is taken before."""
    taken = {name for name in _taken(nodes[place]) if name}
    return any([not taken.isdisjoint(each.output) for each in nodes[place:]]) or is_taken_before(
        nodes[place], nodes, place
    )


def _needs(node: Node, makers: Mapping[str, int]) -> set[int]:
    return {makers[name] for name in _taken(node) if name in makers}


def _taken(node: Node) -> Iterable[str]:
    return needed_names(node) if any([each.g or each.graphs for each in node.attribute]) else node.input
