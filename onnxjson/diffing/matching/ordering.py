"""Orders of nodes that do not depend on names, by dependence or from the outputs; alignment of label sequences."""

from typing import Final

import numpy as np

from onnxjson.diffing.common_runs import CommonRun, common_length, find_common_runs
from onnxjson.diffing.matching.columns import SHIFT, Columns, Integers, Words

_NEAR: Final = 7
"""Maximum difference of heights up to which inputs are visited in the order of their slots."""


def by_dependence(columns: Columns) -> list[int]:
    """Return all nodes, each after its producers; in file order if that is topologically sorted.

    Nodes on a cycle, which a valid graph does not have, come last in file order.
    """
    count = len(columns)
    producers = columns.codes[columns.edges] >> SHIFT
    consumers = columns.consumer[columns.edges]
    if bool((producers < consumers).all()):
        return list(range(count))
    waiting = np.bincount(consumers, minlength=count).tolist()
    edges, starts = columns.edges_by_producer
    edge_consumers = columns.consumer[edges].tolist()
    begins = starts.tolist()
    ready = [position for position, missing in enumerate(waiting) if not missing]
    for position in ready:  # grows while it is walked
        for consumer in edge_consumers[begins[position] : begins[position + 1]]:
            waiting[consumer] -= 1
            if not waiting[consumer]:
                ready.append(consumer)
    if len(ready) < count:
        ready += [position for position, missing in enumerate(waiting) if missing > 0]
    return ready


def from_outputs(columns: Columns) -> list[int]:
    """Return all nodes in post-order of a depth-first walk from the outputs: each after its producers.

    The input with the longest path to it is visited first, so a branch with its own start stays where it joins. Nodes
    that no output needs follow the last of their producers, so a part keeps its place when it becomes unused. Names
    and file order have no influence, except on the order of several unused parts.
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
            producers = [code >> SHIFT for code in codes[starts[position] : starts[position + 1]] if code >= 0]
            if len(producers) > 1:
                producers.reverse()
                if commutative[position]:
                    producers.sort(key=labels.__getitem__)
                deep = max([heights[producer] for producer in producers]) - _NEAR
                producers.sort(key=lambda producer: heights[producer] >= deep)
            stack += [producer for producer in producers if not state[producer]]
    return found if needed == count else _with_unneeded(columns, found, needed)


def _with_unneeded(columns: Columns, found: list[int], needed: int) -> list[int]:
    """Return the first `needed` nodes, each followed by the other nodes whose last producer it is."""
    codes, starts = columns.code_list, columns.start_list
    places = [-1] * len(found)
    for place, position in enumerate(found[:needed]):
        places[position] = place
    for position in found[needed:]:
        producers = [places[code >> SHIFT] for code in codes[starts[position] : starts[position + 1]] if code >= 0]
        places[position] = max(producers, default=-1)
    ranks = np.array(places, np.int64)[found]
    late = np.arange(len(found)) >= needed
    return [found[each] for each in np.lexsort((late, ranks)).tolist()]


def _heights(columns: Columns) -> list[int]:
    """Return for each node the number of nodes on the longest path to it."""
    codes, starts = columns.code_list, columns.start_list
    heights = [0] * len(columns)
    for position in by_dependence(columns):
        producers = [heights[code >> SHIFT] for code in codes[starts[position] : starts[position + 1]] if code >= 0]
        heights[position] = max(producers) + 1 if producers else 1
    return heights


_FEWEST_EDITS: Final = 16


def common_subsequence(base: Words, target: Words, max_edits: int) -> tuple[Integers, Integers]:
    """Return the positions of a longest common subsequence of two label sequences, as two ascending lists.

    Args:
        base: labels.
        target: labels.
        max_edits: maximum number of edits in one search; sequences with more edits are searched stretch by stretch,
            and the result may not be the longest.

    Returns:
        positions in `base` and in `target`, of equal labels.
    """
    ones, others = base.tolist(), target.tolist()
    start = common_length(ones, others, 0, 0)
    rest = common_length(ones[start:][::-1], others[start:][::-1], 0, 0)
    width, height = len(ones) - rest, len(others) - rest
    del ones[width:], others[height:]
    runs = [CommonRun(0, 0, start)]
    x = y = start
    limit = max_edits
    while x < width and y < height:
        found = find_common_runs(ones, others, limit, x, y)
        runs += found.runs
        # If little is common, long stretches do not improve the result.
        common = sum([run.length for run in found.runs])
        is_similar = 2 * common > max(found.base_end - x, found.target_end - y)
        limit = max_edits if is_similar else max(limit // 2, _FEWEST_EDITS)
        x, y = found.base_end, found.target_end
    runs.append(CommonRun(width, height, rest))
    here = [np.arange(x, x + n) for x, _, n in runs]
    there = [np.arange(y, y + n) for _, y, n in runs]
    return np.concatenate(here), np.concatenate(there)
