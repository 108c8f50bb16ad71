"""The pairs found so far between the nodes of two graphs, the evidence for further ones, and their propagation."""

from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.diffing.matching.columns import EMPTY, REAL, SHIFT, SLOT, Columns, Integers, Words
from onnxjson.diffing.matching.labels import from_outputs

MOST_INPUTS: Final = 256
"""Maximum number of inputs of a node that are evaluated to judge a pair."""
MOST_CONSUMERS: Final = 64
"""Maximum number of consumers of a value that are evaluated to judge a pair; with more, none is."""

NO_PART: Final = -2
"""Value in `NodePairing.target_of` and `base_of` for constants and aliases, which do not take part in the matching."""

_OPEN: Final = 1 << 60
"""Placeholder for an input whose producer is unpaired."""

_MOST_OPEN_CONSUMERS: Final = 16
"""Maximum number of unpaired consumers of a value that are followed; with more, none is."""

_SEVERAL: Final = -1


class GraphLists:
    """The columns of one graph as lists, for fast loops."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.codes = columns.code_list
        self.starts = columns.start_list
        self.labels: list[int] = columns.label.tolist()
        self.operators: list[int] = columns.operator.tolist()
        self.commutative: list[bool] = columns.commutative.tolist()
        self.explicit = columns.explicit
        edges, begins = columns.edges_by_producer
        self.consumers: list[int] = columns.consumer[edges].tolist()
        """The consumers of the values of each node, in the order of `begins`."""
        self.consumer_ports: list[int] = (
            (columns.codes[edges] & SLOT) << SHIFT
            | np.where(columns.commutative[columns.consumer[edges]], 0, columns.slot[edges])
        ).tolist()
        """Output slot and input slot of each of `consumers`; all inputs of commutative nodes have slot 0."""
        self.begins: Sequence[int] = memoryview(begins)  # type: ignore[arg-type]
        self.feeds: dict[int, list[int]] = {}
        """Node -> the graph outputs that it produces, as output slot and position."""
        for position, code in enumerate(columns.output_codes):
            if code >= 0:
                self.feeds.setdefault(code >> SHIFT, []).append((code & SLOT) << SHIFT | position)

    @cached_property
    def letters(self) -> list[int]:
        """Labels, with the number of constants of commutative nodes: adding a bias differs from a residual."""
        columns = self.columns
        constants = np.bincount(columns.consumer[columns.is_constant_slot], minlength=len(columns))
        counted = np.where(columns.commutative, np.minimum(constants, 255), 0)
        letters: list[int] = (columns.label << 8 | counted).tolist()
        return letters

    @cached_property
    def order(self) -> Integers:
        """All nodes in the order of a walk from the outputs."""
        return np.array(from_outputs(self.columns), np.int64)

    def inputs(self, position: int) -> list[int]:
        """Return the codes of the inputs of a node itself, without captured values."""
        start = self.starts[position]
        end = self.starts[position + 1]
        count = self.explicit.get(position)
        return self.codes[start : end if count is None else start + count]


class NodePairing:
    """The pairs between two graphs.

    Attributes:
        target_of: for each base node its counterpart, or UNMATCHED.
        base_of: the inverse.
        targets, bases: int64, the same memory as arrays; negative for no counterpart.
        work: number of steps so far; at most `allowed`.
    """

    def __init__(self, base: Columns, target: Columns, outputs: dict[int, int]) -> None:
        self.base = GraphLists(base)
        self.target = GraphLists(target)
        self.outputs = outputs
        """Positions of the base graph's outputs -> those of their counterparts."""
        self.target_of = array("q", [UNMATCHED]) * len(base)
        self.base_of = array("q", [UNMATCHED]) * len(target)
        self.targets: Integers = np.frombuffer(self.target_of, np.int64)
        self.bases: Integers = np.frombuffer(self.base_of, np.int64)
        self.work = 0
        self.allowed = 0
        self.contexts: list[tuple[Words, Words]] = []
        """The labels of both sides from radius 1 on, uint64 [nodes] (`onnxjson.diffing.matching.labels`)."""
        self.fresh: list[tuple[int, int]] = []
        """Pairs that are not propagated to their neighbours yet."""
        self.targets[base.kind != REAL] = NO_PART
        self.bases[target.kind != REAL] = NO_PART

    @cached_property
    def namesakes(self) -> dict[int, tuple[int, int]]:
        """Base node -> the target node and its output that has the name of the first output of the base node."""
        names = [node.output[0] if node.output else "" for node in self.base.columns.nodes]
        if self.target.columns.sources.keys().isdisjoint(filter(None, names)):
            return {}  # without a table of all producers
        found = map(self.target.columns.scope.producers.get, names)
        return {here: place for here, place in enumerate(found) if place}

    @property
    def is_exhausted(self) -> bool:
        """Whether the maximum number of steps is reached."""
        return self.work > self.allowed

    def pair(self, base: int, target: int) -> None:
        """Pair two unpaired nodes."""
        self.target_of[base] = target
        self.base_of[target] = base
        self.fresh.append((base, target))

    def part(self, base: int) -> None:
        """Separate a node of the base from its counterpart, if it has one."""
        if self.target_of[base] >= 0:
            self.base_of[self.target_of[base]] = UNMATCHED
            self.target_of[base] = UNMATCHED

    def pair_all(self, bases: Integers, targets: Integers) -> None:
        """Pair the nodes at the same place of two lists, if both are unpaired; no node is listed twice."""
        is_open = (self.targets[bases] == UNMATCHED) & (self.bases[targets] == UNMATCHED)
        self.targets[bases[is_open]] = targets[is_open]
        self.bases[targets[is_open]] = bases[is_open]

    def unmatched(self) -> tuple[Integers, Integers]:
        """Return the unpaired nodes of both sides."""
        return np.nonzero(self.targets == UNMATCHED)[0], np.nonzero(self.bases == UNMATCHED)[0]

    def likeness(self, base: int, target: int) -> int:
        """Return the radius up to which the surroundings of two nodes are equal."""
        for radius in range(len(self.contexts), 0, -1):
            words, target_words = self.contexts[radius - 1]
            if words[base] == target_words[target]:
                return radius
        return 0

    def judge(self, base: int, target: int, *, is_lenient: bool = False) -> tuple[int, int]:
        """Return the number of neighbours, slot by slot, that are a pair (or equal constants), and that contradict.

        With `is_lenient`, no neighbour contradicts if an unpaired node may have been removed or inserted between.
        """
        one, other = self.base, self.target
        target_of, base_of = self.target_of, self.base_of
        agree = contradict = 0
        base_codes, target_codes = one.inputs(base)[:MOST_INPUTS], other.inputs(target)[:MOST_INPUTS]
        if one.commutative[base]:
            mapped = sorted([self._mapped(code) for code in base_codes])
            remaining = sorted([code if code < 0 or base_of[code >> SHIFT] >= 0 else _OPEN for code in target_codes])
            for code in mapped:
                if code == _OPEN:
                    continue
                if code in remaining:
                    remaining.remove(code)
                    agree += 1
                elif _OPEN in remaining:
                    remaining.remove(_OPEN)
                    contradict += code >= 0 and not is_lenient
                else:
                    contradict += code >= 0
        else:
            for base_code, target_code in zip(base_codes, target_codes, strict=False):
                if base_code < 0 or target_code < 0:
                    agree += base_code == target_code and base_code != EMPTY
                    continue
                partner = target_of[base_code >> SHIFT]
                if partner >= 0:
                    if partner == target_code >> SHIFT and (base_code ^ target_code) & SLOT == 0:
                        agree += 1
                    else:
                        contradict += not is_lenient or base_of[target_code >> SHIFT] >= 0
                elif base_of[target_code >> SHIFT] >= 0:
                    contradict += not is_lenient
        more_agree, more_contradict = self._judge_consumers(base, target, is_lenient=is_lenient)
        self.work += len(base_codes) + 2
        return agree + more_agree, contradict + more_contradict

    def _mapped(self, code: int) -> int:
        if code < 0:
            return code
        partner = self.target_of[code >> SHIFT]
        return partner << SHIFT | (code & SLOT) if partner >= 0 else _OPEN

    def _judge_consumers(self, base: int, target: int, *, is_lenient: bool) -> tuple[int, int]:
        one, other = self.base, self.target
        begin, end = one.begins[base], one.begins[base + 1]
        target_begin, target_end = other.begins[target], other.begins[target + 1]
        if end - begin > MOST_CONSUMERS or target_end - target_begin > MOST_CONSUMERS:
            return 0, 0
        agree = contradict = 0
        target_consumers, ports = (
            other.consumers[target_begin:target_end],
            other.consumer_ports[target_begin:target_end],
        )
        consumers = one.consumers[begin:end]
        excused = is_lenient and any(self.base_of[each] == UNMATCHED for each in target_consumers)
        target_excused = is_lenient and any(self.target_of[each] == UNMATCHED for each in consumers)
        for place in range(begin, end):
            partner = self.target_of[one.consumers[place]]
            if partner >= 0:
                port = one.consumer_ports[place]
                if any(
                    consumer == partner and target_port == port
                    for consumer, target_port in zip(target_consumers, ports, strict=True)
                ):
                    agree += 1
                else:
                    contradict += not excused
        for consumer in target_consumers:
            partner = self.base_of[consumer]
            if partner >= 0 and partner not in consumers:
                contradict += not target_excused
        feeds = other.feeds.get(target, ())
        for feed in one.feeds.get(base, ()):
            position = self.outputs.get(feed & SLOT)
            if position is not None:
                if (feed >> SHIFT) << SHIFT | position in feeds:
                    agree += 1
                else:
                    contradict += not excused
        self.work += end - begin + target_end - target_begin
        return agree, contradict


def unique_pairs(
    base: NDArray[np.generic], target: NDArray[np.generic], bases: Integers, targets: Integers
) -> tuple[Integers, Integers]:
    """Return the nodes whose label is unique on both sides, as two lists in the same order.

    `base` has the labels of the nodes `bases`, `target` those of `targets`.
    """
    known, first, counts = np.unique(base, return_index=True, return_counts=True)
    target_known, target_first, target_counts = np.unique(target, return_index=True, return_counts=True)
    single, target_single = counts == 1, target_counts == 1
    _, here, there = np.intersect1d(known[single], target_known[target_single], assume_unique=True, return_indices=True)
    return bases[first[single][here]], targets[target_first[target_single][there]]


def propagate(pairing: NodePairing) -> None:
    """Pair neighbours of pairs with equal operator and attributes, unless another neighbour contradicts.

    Starts at the pairs in `NodePairing.fresh` and continues from new pairs.
    """
    target_of, base_of = pairing.target_of, pairing.base_of
    letters, target_letters = pairing.base.letters, pairing.target.letters
    fresh = pairing.fresh
    position = 0
    while position < len(fresh) and not pairing.is_exhausted:
        base, target = fresh[position]
        position += 1
        # Producers of the same input, and unique consumers of the same output.
        for node, partner in chain(_producers(pairing, base, target), _consumers(pairing, base, target)):
            if target_of[node] == UNMATCHED == base_of[partner] and letters[node] == target_letters[partner]:
                _, contradict = pairing.judge(node, partner)
                if not contradict:
                    pairing.pair(node, partner)
    fresh.clear()


def producers_of_outputs(pairing: NodePairing) -> Iterator[tuple[int, int]]:
    """Yield candidates at the end of the graphs: producers of paired outputs."""
    for base, target in pairing.outputs.items():
        base_code, target_code = pairing.base.columns.output_codes[base], pairing.target.columns.output_codes[target]
        if base_code >= 0 and target_code >= 0 and not (base_code ^ target_code) & SLOT:
            yield base_code >> SHIFT, target_code >> SHIFT


def _producers(pairing: NodePairing, base: int, target: int) -> Iterator[tuple[int, int]]:
    one, other = pairing.base, pairing.target
    target_of, base_of = pairing.target_of, pairing.base_of
    codes, target_codes = one.inputs(base), other.inputs(target)
    pairing.work += len(codes) + 1
    if one.commutative[base] and other.commutative[target]:
        codes = [code for code in codes if code >= 0 and target_of[code >> SHIFT] == UNMATCHED]
        target_codes = [code for code in target_codes if code >= 0 and base_of[code >> SHIFT] == UNMATCHED]
        if len(codes) * len(target_codes) > _MOST_OPEN_CONSUMERS:
            codes, target_codes = codes[:_MOST_OPEN_CONSUMERS], target_codes[:_MOST_OPEN_CONSUMERS]
            yield from _open(zip(codes, target_codes, strict=False))
            return
        yield from _matching(pairing, codes, target_codes)
        return
    yield from _open(
        (code, target_code)
        for code, target_code in zip(codes, target_codes, strict=False)
        if code >= 0 and target_code >= 0 and target_of[code >> SHIFT] == UNMATCHED == base_of[target_code >> SHIFT]
    )


def _open(codes: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for code, there in codes:
        if not (code ^ there) & SLOT:
            yield code >> SHIFT, there >> SHIFT


def _matching(pairing: NodePairing, codes: list[int], target_codes: list[int]) -> Iterator[tuple[int, int]]:
    """Yield candidates among unordered inputs: those with a single possible counterpart."""
    labels, target_labels = pairing.base.labels, pairing.target.labels
    if len(codes) == len(target_codes) == 2 and labels[codes[0] >> SHIFT] == labels[codes[1] >> SHIFT]:
        # Two inputs with the same label: decide by their surroundings, else by the order of the inputs.
        if _fit(pairing, codes, target_codes[::-1]) > _fit(pairing, codes, target_codes):
            target_codes = target_codes[::-1]
        yield from _open(zip(codes, target_codes, strict=True))
        return
    for code in codes:
        label = labels[code >> SHIFT]
        fitting = [
            other for other in target_codes if target_labels[other >> SHIFT] == label and not (code ^ other) & SLOT
        ]
        same = [each for each in codes if labels[each >> SHIFT] == label]
        if len(fitting) == 1 == len(same):
            yield code >> SHIFT, fitting[0] >> SHIFT


def _fit(pairing: NodePairing, codes: list[int], target_codes: list[int]) -> tuple[int, int]:
    """Return how well the values at the same places of two lists fit: by known neighbours, then by likeness."""
    known = like = 0
    for code, target_code in zip(codes, target_codes, strict=True):
        agree, contradict = pairing.judge(code >> SHIFT, target_code >> SHIFT)
        known += agree - contradict
        like += pairing.likeness(code >> SHIFT, target_code >> SHIFT)
    return known, like


def _consumers(pairing: NodePairing, base: int, target: int) -> Iterator[tuple[int, int]]:
    one, other = pairing.base, pairing.target
    begin, end = one.begins[base], one.begins[base + 1]
    target_begin, target_end = other.begins[target], other.begins[target + 1]
    pairing.work += 1
    if end == begin or target_end == target_begin:
        return
    consumers = _open_consumers(one, begin, end, pairing.target_of)
    if not consumers or len(consumers) > _MOST_OPEN_CONSUMERS:
        return
    target_consumers = _open_consumers(other, target_begin, target_end, pairing.base_of)
    if not target_consumers or len(target_consumers) > _MOST_OPEN_CONSUMERS:
        return
    pairing.work += len(consumers) + len(target_consumers)
    for key, consumer in consumers.items():
        partner = target_consumers.get(key)
        if consumer != _SEVERAL and partner is not None and partner != _SEVERAL:
            yield consumer, partner


def _open_consumers(side: GraphLists, begin: int, end: int, partners: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the unpaired consumers by port and label; `_SEVERAL` if there is more than one."""
    consumers, ports, labels = side.consumers, side.consumer_ports, side.labels
    unpaired: dict[tuple[int, int], int] = {}
    for place in range(begin, end):
        consumer = consumers[place]
        if partners[consumer] == UNMATCHED:
            key = ports[place], labels[consumer]
            unpaired[key] = _SEVERAL if key in unpaired and unpaired[key] != consumer else consumer
            if len(unpaired) > _MOST_OPEN_CONSUMERS:
                break
    return unpaired
