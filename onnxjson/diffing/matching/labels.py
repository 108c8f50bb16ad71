"""Numbers, labels and orders of nodes: exact numbers of computations, 64-bit labels of surroundings, stable orders.

Two nodes have the same number if, and only if, they provably compute the same values: by exact hash-consing over the
operator with its attributes and the numbers of the inputs (value numbering). The labels (Weisfeiler and Lehman) are
hashes; nodes in pairs have the label of their pair, so known pairs distinguish the nodes around them. The orders do not
depend on names.
"""

from typing import Final

import numpy as np

from onnxjson.diffing.line_changes import CommonRun, common_length, find_common_runs
from onnxjson.diffing.matching.columns import EMPTY, REAL, SHIFT, SLOT, Columns, Integers, Words

_NEAR: Final = 7
"""Maximum difference of heights up to which inputs are visited in the order of their slots."""

_FEWEST_EDITS: Final = 16

UNKNOWN: Final = 1 << 40
"""Lowest number for computations that only one graph has."""

RADIUS: Final = 6
"""Maximum radius of a label, in edges."""

_ODD: Final = tuple(np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))

_IN, _OUT, _LEAF, _FEED = (
    np.uint64(each) for each in (0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3)
)

_SHIFTS: Final = tuple(np.uint64(each) for each in (30, 27, 31))


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
    order: list[int] = []
    _, begins = columns.edges_by_producer
    unused = np.nonzero(np.diff(begins) == 0)[0].tolist()
    roots = [code >> SHIFT for code in columns.output_codes if code >= 0]
    needed = count
    for number, root in enumerate((*roots, *unused, *range(count))):
        if number == len(roots):
            needed = len(order)
        if state[root]:
            continue
        stack = [root]
        while stack:
            position = stack[-1]
            if state[position]:
                stack.pop()
                if state[position] == 1:
                    state[position] = 2
                    order.append(position)
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
    return order if needed == count else _with_unneeded(columns, order, needed)


def _with_unneeded(columns: Columns, order: list[int], needed: int) -> list[int]:
    """Return the first `needed` nodes, each followed by the other nodes whose last producer it is."""
    codes, starts = columns.code_list, columns.start_list
    places = [-1] * len(order)
    for place, position in enumerate(order[:needed]):
        places[position] = place
    for position in order[needed:]:
        producers = [places[code >> SHIFT] for code in codes[starts[position] : starts[position + 1]] if code >= 0]
        places[position] = max(producers, default=-1)
    ranks = np.array(places, np.int64)[order]
    late = np.arange(len(order)) >= needed
    return [order[each] for each in np.lexsort((late, ranks)).tolist()]


def _heights(columns: Columns) -> list[int]:
    """Return for each node the number of nodes on the longest path to it."""
    codes, starts = columns.code_list, columns.start_list
    heights = [0] * len(columns)
    for position in by_dependence(columns):
        producers = [heights[code >> SHIFT] for code in codes[starts[position] : starts[position + 1]] if code >= 0]
        heights[position] = max(producers) + 1 if producers else 1
    return heights


def common_subsequence(base: Words, target: Words, max_edits: int) -> tuple[Integers, Integers]:
    """Return the positions of a longest common subsequence of two label sequences, as two ascending lists.

    Sequences with more than `max_edits` edits are searched stretch by stretch, and the result may not be the longest.
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
        search = find_common_runs(ones, others, limit, x, y)
        runs += search.runs
        # If little is common, long stretches do not improve the result.
        common = sum([run.length for run in search.runs])
        is_similar = 2 * common > max(search.base_end - x, search.target_end - y)
        limit = max_edits if is_similar else max(limit // 2, _FEWEST_EDITS)
        x, y = search.base_end, search.target_end
    runs.append(CommonRun(width, height, rest))
    base_positions = [np.arange(x, x + n) for x, _, n in runs]
    target_positions = [np.arange(y, y + n) for _, y, n in runs]
    return np.concatenate(base_positions), np.concatenate(target_positions)


def number(columns: Columns, known: dict[tuple[int, ...], int], *, add: bool = True) -> list[int]:
    """Return the number of each node's computation; without `add`, those not in `known` are unique, from UNKNOWN on."""
    codes, starts = columns.code_list, columns.start_list
    labels: list[int] = columns.label.tolist()
    commutative: list[bool] = columns.commutative.tolist()
    numbers = [0] * len(columns)
    unknown = UNKNOWN
    for position in by_dependence(columns):
        inputs = codes[starts[position] : starts[position + 1]]
        if not add and inputs and inputs[0] >= 0 and numbers[inputs[0] >> SHIFT] >= UNKNOWN:
            numbers[position] = unknown
            unknown += 1
            continue
        key = [code if code < 0 else numbers[code >> SHIFT] << SHIFT | (code & SLOT) for code in inputs]
        if commutative[position]:
            key.sort()
        place = (labels[position], *key)
        assigned = known.get(place)
        if assigned is None:
            if add:
                assigned = known[place] = len(known)
            else:
                assigned = unknown
                unknown += 1
        numbers[position] = assigned
    return numbers


def mix(words: Words) -> Words:
    """Spread the bits of each word (the finalizer of splitmix64; Steele, Lea and Flood, 2014)."""
    words = (words ^ (words >> _SHIFTS[0])) * _ODD[1]
    words = (words ^ (words >> _SHIFTS[1])) * _ODD[2]
    return words ^ (words >> _SHIFTS[2])


class Labels:
    """The labels of some nodes of one graph, round by round.

    Each node has a label by itself (`labels`); nodes in pairs have a number of the pair instead (`partners`, negative
    for none). `outputs` has for positions of outputs of the graph numbers that counterparts share.

    Attributes:
        nodes: int64, the nodes without a pair, ascending: only these get labels.
        rounds: for radius 0 to RADIUS, uint64 [nodes].
    """

    def __init__(
        self, columns: Columns, labels: Integers, partners: Integers, outputs: dict[int, int], *, with_constants: bool
    ) -> None:
        is_open = (partners < 0) & (columns.kind == REAL)
        self.nodes: Integers = np.nonzero(is_open)[0]
        edges = columns.edges
        producers, consumers = columns.codes[edges] >> SHIFT, columns.consumer[edges]
        ends = is_open[producers] | is_open[consumers]
        edges, producers, consumers = edges[ends], producers[ends], consumers[ends]
        is_near = is_open.copy()
        is_near[producers] = True
        is_near[consumers] = True
        near = np.nonzero(is_near)[0]
        place = np.zeros(len(columns), np.int64)
        place[near] = np.arange(len(near))
        slots = np.where(columns.commutative[consumers], 0, columns.slot[edges])
        ports = ((columns.codes[edges] & SLOT) << SHIFT | slots).astype(np.uint64) * _ODD[0]
        first = mix(labels[near].astype(np.uint64) * _ODD[0] + _ODD[1])
        first += _leaves(columns, near, with_constants=with_constants)
        for position, number in outputs.items():
            code = columns.output_codes[position]
            if code >= 0 and is_near[code >> SHIFT]:
                word = np.array([(number << SHIFT | code & SLOT)], np.uint64)
                at = place[code >> SHIFT : (code >> SHIFT) + 1]
                first[at] += mix(word * _ODD[0] + _FEED)
        anchors = mix(partners[near].astype(np.uint64) * _ODD[2] + _ODD[0])
        self._first = np.where(partners[near] >= 0, anchors, first)
        self._is_open = is_open[near]
        self._inward = _Edges(place[producers], place[consumers], mix(ports + _IN), len(near))
        self._outward = _Edges(place[consumers], place[producers], mix(ports + _OUT), len(near))
        self.rounds = self._rounds()

    def _rounds(self) -> list[Words]:
        labels = self._first
        rounds = [labels[self._is_open]]
        for _ in range(RADIUS):
            around = self._inward.gather(labels) * _ODD[1] + self._outward.gather(labels) * _ODD[2]
            labels = np.where(self._is_open, mix(self._first + around), self._first)
            rounds.append(labels[self._is_open])
        return rounds


class _Edges:
    """Edges in the order of the nodes that gather labels along them."""

    def __init__(self, sources: Integers, sinks: Integers, ports: Words, count: int) -> None:
        order = np.argsort(sinks, kind="stable")
        self._sources = sources[order]
        self._ports = ports[order]
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(sinks, minlength=count))])

    def gather(self, labels: Words) -> Words:
        """Return for each node the sum of the mixed labels of its neighbours, in any order."""
        return _sums(mix(labels[self._sources] ^ self._ports), self._starts)


def _leaves(columns: Columns, near: Integers, *, with_constants: bool) -> Words:
    counted = columns.codes < EMPTY
    if not with_constants:
        counted &= ~columns.is_constant_slot
    slots = np.where(columns.commutative[columns.consumer], 0, columns.slot).astype(np.uint64)
    words = mix((-columns.codes).astype(np.uint64) * _ODD[0] + slots * _ODD[2] + _LEAF)
    return _sums(np.where(counted, words, np.uint64(0)), columns.starts)[near]


def _sums(words: Words, starts: Integers) -> Words:
    """Return the sum of each run of words, modulo 2^64."""
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)])
    found: Words = sums[starts[1:]] - sums[starts[:-1]]
    return found
