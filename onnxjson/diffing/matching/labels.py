"""Numbers and labels of nodes: exact numbers of computations, and 64-bit labels of surroundings up to a radius.

Two nodes have the same number if, and only if, they provably compute the same values: by exact hash-consing over the
operator with its attributes and the numbers of the inputs (value numbering). The labels (Weisfeiler and Lehman) are
hashes; nodes in pairs have the label of their pair, so known pairs tell apart the nodes around them.
"""

from typing import Final

import numpy as np

from onnxjson.diffing.matching.columns import EMPTY, REAL, SHIFT, SLOT, Columns, Integers, Interner, Words
from onnxjson.diffing.matching.ordering import by_dependence

UNKNOWN: Final = 1 << 40
"""Lowest number for computations that only one graph has."""


def number(columns: Columns, interner: Interner, *, add: bool = True) -> list[int]:
    """Return the number of each node's computation.

    Args:
        columns: a graph.
        interner: holds the known numbers.
        add: whether to register new computations. Otherwise each of them gets a unique number from UNKNOWN on.
    """
    known = interner.forward
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
        found = known.get(place)
        if found is None:
            if add:
                found = known[place] = len(known)
            else:
                found = unknown
                unknown += 1
        numbers[position] = found
    return numbers


RADIUS: Final = 6
"""Maximum radius of a label, in edges."""

_ODD: Final = tuple(np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_IN, _OUT, _LEAF, _FEED = (
    np.uint64(each) for each in (0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3)
)
_SHIFTS: Final = tuple(np.uint64(each) for each in (30, 27, 31))


def mix(words: Words) -> Words:
    """Spread the bits of each word (the finalizer of splitmix64; Steele, Lea and Flood, 2014)."""
    words = (words ^ (words >> _SHIFTS[0])) * _ODD[1]
    words = (words ^ (words >> _SHIFTS[1])) * _ODD[2]
    return words ^ (words >> _SHIFTS[2])


class Labels:
    """The labels of some nodes of one graph, round by round.

    Args:
        columns: the graph.
        own: int64 [nodes], the label of each node by itself.
        partners: int64 [nodes], the number of the pair of each node; negative for none.
        outputs: positions of the graph's outputs -> numbers that counterparts share.
        with_constants: whether constant inputs count.

    Attributes:
        nodes: int64, the nodes without a pair, ascending: only these get labels.
        rounds: for radius 0 to RADIUS, uint64 [nodes].
    """

    def __init__(
        self, columns: Columns, own: Integers, partners: Integers, outputs: dict[int, int], *, with_constants: bool
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
        first = mix(own[near].astype(np.uint64) * _ODD[0] + _ODD[1])
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
        found = [labels[self._is_open]]
        for _ in range(RADIUS):
            around = self._inward.gather(labels) * _ODD[1] + self._outward.gather(labels) * _ODD[2]
            labels = np.where(self._is_open, mix(self._first + around), self._first)
            found.append(labels[self._is_open])
        return found


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
