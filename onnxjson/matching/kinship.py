"""What is still open, paired by what it descends from and leads to: constants, pairs and outputs, seen through nodes
that are open themselves.

An optimizer that makes one node of three leaves the nodes around them without neighbours to be known by; the weights
that flow into them and the pairs beyond are still the same.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np

from onnxjson.matching.alignment import UNMATCHED
from onnxjson.matching.columns import SHIFT, SLOT
from onnxjson.matching.pairing import MOST_CONSUMERS, Pairing, Side
from onnxjson.matching.propagation import propagate

_REACH: Final = 6
"""So many open nodes are looked through."""
_FADING: Final = 0.6
"""What each node that is looked through leaves of the weight of a sign."""
_MOST_SIGNS: Final = 24
_MOST_BEARERS: Final = 48
"""A sign that more nodes bear tells nothing."""
_LIKE_ENOUGH: Final = 0.3
_CLEARLY: Final = 1.15
"""By what factor the best candidate has to be better than the next one."""
_MOST_ROUNDS: Final = 6

Signs = dict[tuple[int, int], float]
"""Signs -> weights. A sign is a direction (and what kind) with a constant, a pair or an output."""

_CONSTANT, _MAKER, _TAKER, _OUTPUT = range(4)


def pair_kin(pairing: Pairing) -> None:
    """Pair open nodes of one operator whose signs are alike, and unlike those of others, while that finds more."""
    for _ in range(_MOST_ROUNDS):
        found = _round(pairing)
        for base, target in found:
            if pairing.target_of[base] == UNMATCHED == pairing.base_of[target]:
                agree, contradict = pairing.judge(base, target)
                if contradict <= 2 * agree + 2:
                    pairing.pair(base, target)
        propagate(pairing)
        if not found or pairing.is_exhausted:
            return


def _round(pairing: Pairing) -> list[tuple[int, int]]:
    """The pairs that are best for both sides, the clearest first."""
    bases, targets = pairing.unmatched()
    if not len(np.intersect1d(pairing.base.columns.operator[bases], pairing.target.columns.operator[targets])):
        return []
    mine = _Bearers(pairing, pairing.base, bases.tolist(), is_base=True)
    its = _Bearers(pairing, pairing.target, targets.tolist(), is_base=False)
    likeness = _likeness(pairing, mine, its)
    best_there = _best({(target, base): value for (base, target), value in likeness.items()})
    pairs = [(base, target) for base, target in _best(likeness).items() if best_there.get(target) == base]
    return sorted(pairs, key=lambda pair: (-likeness[pair], pair))


def _best(likeness: dict[tuple[int, int], float]) -> dict[int, int]:
    """For each first of a pair its clearly best second."""
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


def _likeness(pairing: Pairing, mine: "_Bearers", its: "_Bearers") -> dict[tuple[int, int], float]:
    bearers: dict[tuple[int, int], list[int]] = {}
    for target, signs in its.signs.items():
        for sign in signs:
            bearers.setdefault(sign, []).append(target)
    counts = Counter(sign for signs in mine.signs.values() for sign in signs)
    rarity = {sign: 1.0 / max(counts[sign], len(bearers.get(sign, ()))) for sign in {*counts, *bearers}}
    telling = {sign for sign, there in bearers.items() if counts[sign] and rarity[sign] * _MOST_BEARERS >= 1}
    operators, its_operators = pairing.base.operators, pairing.target.operators
    labels, its_labels = pairing.base.labels, pairing.target.labels
    found: dict[tuple[int, int], float] = {}
    for base, signs in mine.signs.items():
        operator = operators[base]
        near = {target for sign in signs if sign in telling for target in bearers[sign]}
        pairing.work += len(near)
        if pairing.is_exhausted:
            return found
        for target in near:
            if its_operators[target] == operator:
                value = _overlap(signs, its.signs[target], rarity)
                if labels[base] != its_labels[target]:
                    value *= 0.8
                if value >= _LIKE_ENOUGH:
                    found[base, target] = value
    return found


def _overlap(signs: Signs, its: Signs, rarity: dict[tuple[int, int], float]) -> float:
    """The weight of what two nodes have in common, as a part of all that either has (a weighted Jaccard index)."""
    common = total = 0.0
    for sign, weight in signs.items():
        other = its.get(sign, 0.0)
        factor = rarity[sign]
        common += min(weight, other) * factor
        total += max(weight, other) * factor
    total += sum(weight * rarity[sign] for sign, weight in its.items() if sign not in signs)
    return common / total if total else 0.0


class _Bearers:
    """The signs of the open nodes of one side."""

    def __init__(self, pairing: Pairing, side: Side, nodes: list[int], *, is_base: bool) -> None:
        self._pairing = pairing
        self._side = side
        self._is_base = is_base
        self._partners = pairing.target_of if is_base else pairing.base_of
        self._outputs = (
            {position: position for position in pairing.outputs}
            if is_base
            else {there: here for here, there in pairing.outputs.items()}
        )
        upward, downward = self._gather(nodes, self._step_up), self._gather(nodes, self._step_down)
        self.signs = {node: upward[node] | downward[node] for node in nodes}

    def _gather(self, nodes: list[int], step: Callable[[int], tuple[Signs, list[int]]]) -> dict[int, Signs]:
        """The signs on one side of each node: its own, and those of open neighbours, faded, round by round."""
        own: dict[int, Signs] = {}
        through: dict[int, list[int]] = {}
        for node in nodes:
            own[node], through[node] = step(node)
        gathered = own
        for _ in range(_REACH):
            if self._pairing.is_exhausted:
                break
            gathered = {node: self._joined(own[node], [gathered[each] for each in through[node]]) for node in nodes}
            self._pairing.work += len(nodes)
        return gathered

    @staticmethod
    def _joined(own: Signs, others: list[Signs]) -> Signs:
        if not others:
            return own
        joined = dict(own)
        for signs in others:
            for sign, weight in signs.items():
                faded = weight * _FADING
                if faded > joined.get(sign, 0.0):
                    joined[sign] = faded
        if len(joined) > _MOST_SIGNS:
            heaviest = sorted(joined.items(), key=lambda item: (-item[1], item[0]))
            joined = dict(heaviest[:_MOST_SIGNS])
        return joined

    def _known(self, node: int) -> int:
        """The number of a pair, the same on both sides."""
        return node if self._is_base else self._partners[node]

    def _step_up(self, node: int) -> tuple[Signs, list[int]]:
        signs: Signs = {}
        through = []
        for code in self._side.inputs(node):
            if code < -1:
                signs[_CONSTANT, code] = 1.0
            elif code >= 0:
                maker = code >> SHIFT
                if self._partners[maker] >= 0:
                    signs[_MAKER, self._known(maker) << SHIFT | (code & SLOT)] = 1.0
                elif self._partners[maker] == UNMATCHED:
                    through.append(maker)
        return signs, through

    def _step_down(self, node: int) -> tuple[Signs, list[int]]:
        side = self._side
        begin, end = side.begins[node], side.begins[node + 1]
        signs: Signs = {}
        through = []
        for place in range(begin, min(end, begin + MOST_CONSUMERS)):
            taker = side.takers[place]
            if self._partners[taker] >= 0:
                signs[_TAKER, self._known(taker) << SHIFT | (side.taker_ports[place] & SLOT)] = 1.0
            elif self._partners[taker] == UNMATCHED:
                through.append(taker)
        for feed in side.feeds.get(node, ()):
            position = self._outputs.get(feed & SLOT)
            if position is not None:
                signs[_OUTPUT, position] = 1.0
        return signs, through
