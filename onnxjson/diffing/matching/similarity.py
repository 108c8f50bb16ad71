"""Pair remaining nodes by similarity: by the constants, pairs and outputs up- and downstream, then by their neighbours.

An optimizer that fuses three nodes into one leaves adjacent nodes without known neighbours; but the weights that flow
into them and the pairs beyond are still the same. They are found through other unpaired nodes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from onnxjson.diffing.matching.alignment import UNMATCHED, Components
from onnxjson.diffing.matching.columns import SHIFT, SLOT
from onnxjson.diffing.matching.pairing import MOST_CONSUMERS, GraphLists, NodePairing, producers_of_outputs, propagate

_REACH: Final = 6
"""Maximum number of unpaired nodes between a node and a sign."""
_FADING: Final = 0.6
"""Factor on the weight of a sign for each unpaired node between it and the node."""
_MOST_SIGNS: Final = 24
_MOST_BEARERS: Final = 48
"""Maximum number of nodes with a sign; a more frequent sign is ignored."""
_LIKE_ENOUGH: Final = 0.3
_CLEARLY: Final = 1.15
"""Factor by which the best candidate must be better than the next one."""
_MOST_ROUNDS: Final = 6

Signs = dict[tuple[int, int], float]
"""Signs -> weights. A sign is a direction and kind with a constant, a pair or an output."""

_CONSTANT, _PRODUCER, _CONSUMER, _OUTPUT = range(4)

_ASSIGNMENT_ROUNDS: Final = 8

_ASIDE: Final = 2
"""Maximum number of slots by which an input of a node with very many inputs may have moved."""

_MOST_ENCLOSED: Final = 64
"""Maximum number of nodes of one side of a region in which single nodes are paired."""


def pair_similar(pairing: NodePairing) -> None:
    """Pair unpaired nodes of one operator with similar signs that differ from those of other nodes; repeat."""
    for _ in range(_MOST_ROUNDS):
        pairs = _round(pairing)
        for base, target in pairs:
            if pairing.target_of[base] == UNMATCHED == pairing.base_of[target]:
                agree, contradict = pairing.judge(base, target)
                if contradict <= 2 * agree + 2 and pairing.judge(base, target, is_lenient=True)[1] <= 2 * agree:
                    pairing.pair(base, target)
        propagate(pairing)
        if not pairs or pairing.is_exhausted:
            return


def _round(pairing: NodePairing) -> list[tuple[int, int]]:
    bases, targets = pairing.unmatched()
    if not len(np.intersect1d(pairing.base.columns.operator[bases], pairing.target.columns.operator[targets])):
        return []
    bearers = _Bearers(pairing, pairing.base, bases.tolist(), is_base=True)
    target_bearers = _Bearers(pairing, pairing.target, targets.tolist(), is_base=False)
    likeness = _likeness(pairing, bearers, target_bearers)
    best_there = _best({(target, base): value for (base, target), value in likeness.items()})
    pairs = [(base, target) for base, target in _best(likeness).items() if best_there.get(target) == base]
    return sorted(pairs, key=lambda pair: (-likeness[pair], pair))


def _best(likeness: dict[tuple[int, int], float]) -> dict[int, int]:
    """Return, for each first member of the pairs, the second member that is clearly the best."""
    first: dict[int, tuple[float, int]] = {}
    second: dict[int, float] = {}
    for (one, other), value in likeness.items():
        value_before, _ = first.get(one, (0.0, 0))
        if value > value_before:
            first[one] = value, other
            second[one] = value_before
        else:
            second[one] = max(second.get(one, 0.0), value)
    return {one: other for one, (value, other) in first.items() if value >= second[one] * _CLEARLY}


def _likeness(pairing: NodePairing, base_side: "_Bearers", target_side: "_Bearers") -> dict[tuple[int, int], float]:
    bearers: dict[tuple[int, int], list[int]] = {}
    for target, signs in target_side.signs.items():
        for sign in signs:
            bearers.setdefault(sign, []).append(target)
    counts = Counter(sign for signs in base_side.signs.values() for sign in signs)
    rarity = {sign: 1.0 / max(counts[sign], len(bearers.get(sign, ()))) for sign in {*counts, *bearers}}
    telling = {sign for sign, there in bearers.items() if counts[sign] and rarity[sign] * _MOST_BEARERS >= 1}
    operators, target_operators = pairing.base.operators, pairing.target.operators
    labels, target_labels = pairing.base.labels, pairing.target.labels
    likeness: dict[tuple[int, int], float] = {}
    for base, signs in base_side.signs.items():
        operator = operators[base]
        near = {target for sign in signs if sign in telling for target in bearers[sign]}
        pairing.work += len(near)
        if pairing.is_exhausted:
            return likeness
        for target in near:
            if target_operators[target] == operator:
                value = _overlap(signs, target_side.signs[target], rarity)
                if labels[base] != target_labels[target]:
                    value *= 0.8
                if value >= _LIKE_ENOUGH:
                    likeness[base, target] = value
    return likeness


def _overlap(signs: Signs, other_signs: Signs, rarity: dict[tuple[int, int], float]) -> float:
    """Return the weight of common signs as a part of the weight of all signs (a weighted Jaccard index)."""
    common = total = 0.0
    for sign, weight in signs.items():
        other = other_signs.get(sign, 0.0)
        factor = rarity[sign]
        common += min(weight, other) * factor
        total += max(weight, other) * factor
    total += sum(weight * rarity[sign] for sign, weight in other_signs.items() if sign not in signs)
    return common / total if total else 0.0


class _Bearers:
    def __init__(self, pairing: NodePairing, side: GraphLists, nodes: list[int], *, is_base: bool) -> None:
        self._pairing = pairing
        self._side = side
        self._partners = pairing.target_of if is_base else pairing.base_of
        # The number of a pair is equal on both sides.
        self._numbers: Sequence[int] = range(len(pairing.target_of)) if is_base else pairing.base_of
        self._outputs = {position if is_base else place: position for position, place in pairing.outputs.items()}
        upward, downward = self._gather(nodes, self._step_up), self._gather(nodes, self._step_down)
        self.signs = {node: upward[node] | downward[node] for node in nodes}

    def _gather(self, nodes: list[int], step: Callable[[int], tuple[Signs, list[int]]]) -> dict[int, Signs]:
        """Return the signs in one direction: those of each node, and those of unpaired neighbours, faded."""
        signs: dict[int, Signs] = {}
        through: dict[int, list[int]] = {}
        for node in nodes:
            signs[node], through[node] = step(node)
        gathered = signs
        for _ in range(_REACH):
            if self._pairing.is_exhausted:
                break
            gathered = {node: self._joined(signs[node], [gathered[each] for each in through[node]]) for node in nodes}
            self._pairing.work += len(nodes)
        return gathered

    @staticmethod
    def _joined(node_signs: Signs, others: list[Signs]) -> Signs:
        if not others:
            return node_signs
        joined = dict(node_signs)
        for signs in others:
            for sign, weight in signs.items():
                faded = weight * _FADING
                if faded > joined.get(sign, 0.0):
                    joined[sign] = faded
        if len(joined) > _MOST_SIGNS:
            heaviest = sorted(joined.items(), key=lambda item: (-item[1], item[0]))
            joined = dict(heaviest[:_MOST_SIGNS])
        return joined

    def _step_up(self, node: int) -> tuple[Signs, list[int]]:
        signs: Signs = {}
        through = []
        for code in self._side.inputs(node):
            if code < -1:
                signs[_CONSTANT, code] = 1.0
            elif code >= 0:
                producer = code >> SHIFT
                if self._partners[producer] >= 0:
                    signs[_PRODUCER, self._numbers[producer] << SHIFT | (code & SLOT)] = 1.0
                elif self._partners[producer] == UNMATCHED:
                    through.append(producer)
        return signs, through

    def _step_down(self, node: int) -> tuple[Signs, list[int]]:
        side = self._side
        begin, end = side.begins[node], side.begins[node + 1]
        signs: Signs = {}
        through = []
        for place in range(begin, min(end, begin + MOST_CONSUMERS)):
            consumer = side.consumers[place]
            if self._partners[consumer] >= 0:
                signs[_CONSUMER, self._numbers[consumer] << SHIFT | (side.consumer_ports[place] & SLOT)] = 1.0
            elif self._partners[consumer] == UNMATCHED:
                through.append(consumer)
        for feed in side.feeds.get(node, ()):
            position = self._outputs.get(feed & SLOT)
            if position is not None:
                signs[_OUTPUT, position] = 1.0
        return signs, through


def assign(pairing: NodePairing) -> None:
    """Pair unpaired nodes of one operator that share neighbours, those with the most in common first."""
    for _ in range(_ASSIGNMENT_ROUNDS):
        candidates = _likely_pairs(pairing)
        has_new = False
        for _, base, target in candidates:
            if pairing.target_of[base] == UNMATCHED == pairing.base_of[target]:
                agree, contradict = pairing.judge(base, target)
                if _is_likely(pairing, base, target, agree, contradict):
                    pairing.pair(base, target)
                    has_new = True
                    propagate(pairing)
        if not has_new or pairing.is_exhausted:
            return


def _is_likely(pairing: NodePairing, base: int, target: int, agree: int, contradict: int) -> bool:
    same = pairing.base.labels[base] == pairing.target.labels[target]
    return agree > 0 and (agree > contradict or (same and agree == contradict))


def _likely_pairs(pairing: NodePairing) -> list[tuple[float, int, int]]:
    """Return unpaired nodes that share a neighbour and the operator, the most similar first."""
    scores: dict[tuple[int, int], float] = {}
    operators, target_operators = pairing.base.operators, pairing.target.operators
    bases, _ = pairing.unmatched()
    for base in bases.tolist():
        for target in _near(pairing, base):
            pair = base, target
            if pair in scores or operators[base] != target_operators[target]:
                continue
            agree, contradict = pairing.judge(base, target)
            if _is_likely(pairing, base, target, agree, contradict):
                same = pairing.base.labels[base] == pairing.target.labels[target]
                scores[pair] = agree - contradict + 0.5 * same + 0.05 * pairing.likeness(base, target)
            if pairing.is_exhausted:
                break
    return sorted((-score, base, target) for (base, target), score in scores.items())


def _inputs_around(side: GraphLists, position: int, slot: int) -> list[int]:
    """Return the inputs of a node; for a node with very many, only those near a slot."""
    start, end = side.starts[position], side.starts[position + 1]
    if end - start <= MOST_CONSUMERS:
        return side.inputs(position)
    return side.codes[max(start, start + slot - _ASIDE) : min(end, start + slot + _ASIDE + 1)]


def _near(pairing: NodePairing, base: int) -> Iterator[int]:
    one, other = pairing.base, pairing.target
    target_of, base_of = pairing.target_of, pairing.base_of
    for code in one.inputs(base):
        partner = target_of[code >> SHIFT] if code >= 0 else UNMATCHED
        if partner >= 0:
            begin, end = other.begins[partner], other.begins[partner + 1]
            if end - begin <= MOST_CONSUMERS:
                yield from [consumer for consumer in other.consumers[begin:end] if base_of[consumer] == UNMATCHED]
    begin, end = one.begins[base], one.begins[base + 1]
    for place in range(begin, min(end, begin + MOST_CONSUMERS)):
        partner = target_of[one.consumers[place]]
        if partner >= 0:
            for code in _inputs_around(other, partner, one.consumer_ports[place] & SLOT):
                if code >= 0 and base_of[code >> SHIFT] == UNMATCHED:
                    yield code >> SHIFT
    if not one.feeds.get(base):
        return
    for feed in one.feeds[base]:
        position = pairing.outputs.get(feed & SLOT)
        code = other.columns.output_codes[position] if position is not None else -1
        if code >= 0 and base_of[code >> SHIFT] == UNMATCHED:
            yield code >> SHIFT


def pair_enclosed(pairing: NodePairing) -> None:
    """Pair nodes that are the only ones with their label on both sides of a region of unpaired nodes.

    So a node that stays between two rewrites separates them, although none of its neighbours has a counterpart.
    """
    bases, targets = pairing.unmatched()
    if not len(np.intersect1d(pairing.base.columns.label[bases], pairing.target.columns.label[targets])):
        return
    for base_nodes, target_nodes in unpaired_regions(pairing):
        if base_nodes and target_nodes and max(len(base_nodes), len(target_nodes)) <= _MOST_ENCLOSED:
            _pair_single(pairing, base_nodes, target_nodes)
    propagate(pairing)


def unpaired_regions(pairing: NodePairing) -> list[tuple[list[int], list[int]]]:
    """Return the unpaired nodes of both sides that are adjacent, or whose values the same pair or output uses."""
    bases, targets = [nodes.tolist() for nodes in pairing.unmatched()]
    regions = Components()
    for side, (nodes, lists) in enumerate(((bases, pairing.base), (targets, pairing.target))):
        for node in nodes:
            regions.add((side, node))
        for node in nodes:
            for code in lists.inputs(node):
                if code >= 0 and (side, code >> SHIFT) in regions:
                    regions.join((side, node), (side, code >> SHIFT))
    for base, target in _common_ends(pairing, bases):
        regions.join((0, base), (1, target))
    return regions.sets()


def _common_ends(pairing: NodePairing, bases: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield unpaired nodes of both sides whose values the same input of a pair, or the same output, uses."""
    one, other = pairing.base, pairing.target
    for base in bases:
        begin, end = one.begins[base], one.begins[base + 1]
        for place in range(begin, min(end, begin + MOST_CONSUMERS)):
            partner = pairing.target_of[one.consumers[place]]
            slot = one.consumer_ports[place] & SLOT
            codes = other.inputs(partner) if partner >= 0 else []
            for code in codes if partner >= 0 and other.commutative[partner] else codes[slot : slot + 1]:
                if code >= 0 and pairing.base_of[code >> SHIFT] == UNMATCHED:
                    yield base, code >> SHIFT
    for base, target in producers_of_outputs(pairing):
        if pairing.target_of[base] == UNMATCHED == pairing.base_of[target]:
            yield base, target


def _pair_single(pairing: NodePairing, bases: list[int], targets: list[int]) -> None:
    """Pair the nodes that are alone with their label and constants, in the order of the data flow."""
    kinds, target_kinds = [
        Counter([_kind(side, node) for node in nodes])
        for side, nodes in ((pairing.base, bases), (pairing.target, targets))
    ]
    by_kind = {_kind(pairing.target, node): node for node in targets}
    pairs = []
    for base in bases:
        kind = _kind(pairing.base, base)
        if kinds[kind] == 1 == target_kinds[kind] and not pairing.judge(base, by_kind[kind])[1]:
            pairs.append((base, by_kind[kind]))
    for base, target in pairs:
        pairing.pair(base, target)


def _kind(side: GraphLists, node: int) -> tuple[int, ...]:
    """The label of a node with its constants, and the number of its inputs."""
    codes = side.inputs(node)
    return side.labels[node], len(codes), *sorted([code for code in codes if code < 0])
