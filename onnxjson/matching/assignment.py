"""What is still open near pairs, assigned by likeness: the best first."""

from collections.abc import Iterator
from typing import Final

from onnxjson.matching.alignment import UNMATCHED
from onnxjson.matching.columns import SHIFT, SLOT
from onnxjson.matching.pairing import MOST_CONSUMERS, Pairing, Side
from onnxjson.matching.propagation import propagate

_MOST_ROUNDS: Final = 8
_ASIDE: Final = 2
"""By so many slots an input may have moved where a node has very many."""


def assign(pairing: Pairing) -> None:
    """Pair open nodes of one operator that share neighbours, those with the most in common first."""
    for _ in range(_MOST_ROUNDS):
        candidates = _candidates(pairing)
        found = False
        for _, base, target in candidates:
            if pairing.target_of[base] == UNMATCHED == pairing.base_of[target]:
                agree, contradict = pairing.judge(base, target)
                if _is_likely(pairing, base, target, agree, contradict):
                    pairing.pair(base, target)
                    found = True
                    propagate(pairing)
        if not found or pairing.is_exhausted:
            return


def _is_likely(pairing: Pairing, base: int, target: int, agree: int, contradict: int) -> bool:
    same = pairing.base.labels[base] == pairing.target.labels[target]
    return agree > 0 and (agree > contradict or (same and agree == contradict))


def _candidates(pairing: Pairing) -> list[tuple[float, int, int]]:
    """Open nodes that share a neighbour and the operator, the most alike first."""
    found: dict[tuple[int, int], float] = {}
    operators, its_operators = pairing.base.operators, pairing.target.operators
    bases, _ = pairing.unmatched()
    for base in bases.tolist():
        for target in _near(pairing, base):
            pair = base, target
            if pair in found or operators[base] != its_operators[target]:
                continue
            agree, contradict = pairing.judge(base, target)
            if _is_likely(pairing, base, target, agree, contradict):
                same = pairing.base.labels[base] == pairing.target.labels[target]
                found[pair] = agree - contradict + 0.5 * same + 0.05 * pairing.likeness(base, target)
            if pairing.is_exhausted:
                break
    return sorted((-score, base, target) for (base, target), score in found.items())


def _inputs_around(side: Side, position: int, slot: int) -> list[int]:
    """The inputs of a node, or of one with very many those near a slot."""
    start, end = side.starts[position], side.starts[position + 1]
    if end - start <= MOST_CONSUMERS:
        return side.inputs(position)
    return side.codes[max(start, start + slot - _ASIDE) : min(end, start + slot + _ASIDE + 1)]


def _near(pairing: Pairing, base: int) -> Iterator[int]:
    """Open target nodes that take from, or give to, the counterparts of a base node's neighbours."""
    one, other = pairing.base, pairing.target
    target_of, base_of = pairing.target_of, pairing.base_of
    for code in one.inputs(base):
        partner = target_of[code >> SHIFT] if code >= 0 else UNMATCHED
        if partner >= 0:
            begin, end = other.begins[partner], other.begins[partner + 1]
            if end - begin <= MOST_CONSUMERS:
                yield from [taker for taker in other.takers[begin:end] if base_of[taker] == UNMATCHED]
    begin, end = one.begins[base], one.begins[base + 1]
    for place in range(begin, min(end, begin + MOST_CONSUMERS)):
        partner = target_of[one.takers[place]]
        if partner >= 0:
            for code in _inputs_around(other, partner, one.taker_ports[place] & SLOT):
                if code >= 0 and base_of[code >> SHIFT] == UNMATCHED:
                    yield code >> SHIFT
    if not one.feeds.get(base):
        return
    for feed in one.feeds[base]:
        position = pairing.outputs.get(feed & SLOT)
        code = other.columns.output_codes[position] if position is not None else -1
        if code >= 0 and base_of[code >> SHIFT] == UNMATCHED:
            yield code >> SHIFT
