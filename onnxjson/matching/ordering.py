"""Orders of the nodes of a graph that do not depend on names: by dependence, and a walk from the outputs."""

from typing import Final

import numpy as np

from onnxjson.matching.columns import SHIFT, Columns

_NEAR: Final = 7
"""Inputs whose longest ways differ by no more than this come in the order of their slots."""


def by_dependence(columns: Columns) -> list[int]:
    """All nodes, each after those that make its inputs; as in the file where that is such an order.

    Nodes on a circle, which a valid graph has not, come last in file order.
    """
    count = len(columns)
    producers = columns.codes[columns.edges] >> SHIFT
    consumers = columns.consumer[columns.edges]
    if bool((producers < consumers).all()):
        return list(range(count))
    waiting = np.bincount(consumers, minlength=count).tolist()
    edges, starts = columns.edges_by_producer
    takers = columns.consumer[edges].tolist()
    begins = starts.tolist()
    ready = [position for position, missing in enumerate(waiting) if not missing]
    for position in ready:  # grows while it is walked
        for taker in takers[begins[position] : begins[position + 1]]:
            waiting[taker] -= 1
            if not waiting[taker]:
                ready.append(taker)
    if len(ready) < count:
        ready += [position for position, missing in enumerate(waiting) if missing > 0]
    return ready


def from_outputs(columns: Columns) -> list[int]:
    """All nodes in post-order of a walk from the outputs along the inputs: each after what it needs, block by block.

    Of several inputs the one that most nodes lead to comes first, so that a branch that begins somewhere else stays
    where it joins. Nodes that no output needs follow the last node that they need, so that a part stays at its place
    when nothing takes it any more. Neither names nor the order of the file have a say, but among several such parts.
    """
    codes, starts = columns.code_list, columns.start_list
    labels, commutative = columns.label.tolist(), columns.commutative.tolist()
    count = len(columns)
    heights = _heights(columns)
    state = bytearray(count)
    found: list[int] = []
    _, begins = columns.edges_by_producer
    unused = np.nonzero(np.diff(begins) == 0)[0].tolist()
    roots = [code >> SHIFT for code in columns.output_codes if code >= 0]
    needed = count
    for number, root in enumerate((*roots, *unused, *range(count))):
        if number == len(roots):
            needed = len(found)
        if state[root]:
            continue
        stack = [root]
        while stack:
            position = stack[-1]
            if state[position]:
                stack.pop()
                if state[position] == 1:
                    state[position] = 2
                    found.append(position)
                continue
            state[position] = 1
            makers = [code >> SHIFT for code in codes[starts[position] : starts[position + 1]] if code >= 0]
            if len(makers) > 1:
                makers.reverse()
                if commutative[position]:
                    makers.sort(key=labels.__getitem__)
                deep = max([heights[maker] for maker in makers]) - _NEAR
                makers.sort(key=lambda maker: heights[maker] >= deep)
            stack += [maker for maker in makers if not state[maker]]
    return found if needed == count else _with_unneeded(columns, found, needed)


def _with_unneeded(columns: Columns, found: list[int], needed: int) -> list[int]:
    """The first `needed` nodes, and after each those of the rest that need nothing later."""
    codes, starts = columns.code_list, columns.start_list
    places = [-1] * len(found)
    for place, position in enumerate(found[:needed]):
        places[position] = place
    for position in found[needed:]:
        makers = [places[code >> SHIFT] for code in codes[starts[position] : starts[position + 1]] if code >= 0]
        places[position] = max(makers, default=-1)
    ranks = np.array(places, np.int64)[found]
    late = np.arange(len(found)) >= needed
    return [found[each] for each in np.lexsort((late, ranks)).tolist()]


def _heights(columns: Columns) -> list[int]:
    """For each node the number of nodes on the longest way to it."""
    codes, starts = columns.code_list, columns.start_list
    heights = [0] * len(columns)
    for position in by_dependence(columns):
        makers = [heights[code >> SHIFT] for code in codes[starts[position] : starts[position + 1]] if code >= 0]
        heights[position] = max(makers) + 1 if makers else 1
    return heights
