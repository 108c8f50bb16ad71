"""Puts right what an alignment by order has crossed: like branches, paired each with the other's counterpart."""

from typing import Final

from onnxjson.matching.columns import SHIFT, SLOT
from onnxjson.matching.pairing import Pairing

_LONGEST: Final = 64
"""So many nodes of a branch are looked at."""

Swap = tuple[int, int, int, int]
"""Base node, its partner; the base node that has the right partner, and that partner."""


def uncross(pairing: Pairing) -> None:
    """Exchange the partners of two branches where that leaves less that contradicts the pairs."""
    for base, target in _pairs(pairing):
        for mine, its in _crossed_inputs(pairing, base, target):
            if pairing.target_of[mine >> SHIFT] != its >> SHIFT and not (mine ^ its) & SLOT:
                _try(pairing, mine >> SHIFT, its >> SHIFT)
        if pairing.is_exhausted:
            return


def keep_equal(pairing: Pairing) -> None:
    """Of nodes that compute the same, pair those that are equal, names and all, if no other pair speaks against it.

    Then a node that nothing happened to is not told as another one that has its name now.
    """
    base, target = pairing.base, pairing.target
    nodes, its_nodes = base.columns.nodes, target.columns.nodes
    target_of, base_of = pairing.target_of, pairing.base_of
    makers = target.columns.scope.makers
    for here, there in enumerate(target_of):
        if there < 0 or not nodes[here].output or nodes[here].output == its_nodes[there].output:
            continue
        wanted = makers.get(nodes[here].output[0], (there, 0))[0]
        other = base_of[wanted]
        if other < 0 or wanted == there or nodes[here] != its_nodes[wanted]:
            continue
        if base.labels[here] != base.labels[other] or base.inputs(here) != base.inputs(other):
            continue
        swaps = [(here, there, other, wanted)]
        before = _contradictions(pairing, swaps)
        _exchange(pairing, swaps)
        if _contradictions(pairing, swaps) > before:
            _exchange(pairing, swaps)


def _crossed_inputs(pairing: Pairing, base: int, target: int) -> list[tuple[int, int]]:
    """Inputs, made by nodes, that stand at the same place; where the order means nothing, those that are left over."""
    mine, its = pairing.base.inputs(base), pairing.target.inputs(target)
    if pairing.base.commutative[base]:
        makers = {code >> SHIFT for code in its if code >= 0}
        mine = [code for code in mine if code >= 0 and pairing.target_of[code >> SHIFT] not in makers]
        own = {code >> SHIFT for code in pairing.base.inputs(base) if code >= 0}
        its = [code for code in its if code >= 0 and pairing.base_of[code >> SHIFT] not in own]
    return [(one, other) for one, other in zip(mine, its, strict=False) if one >= 0 and other >= 0]


def _pairs(pairing: Pairing) -> list[tuple[int, int]]:
    """Pairs with an input that is paired with another one than the input at its place."""
    columns = pairing.base.columns
    consumers, places = columns.consumer[columns.edges], columns.edges
    targets = pairing.targets
    partners = targets[consumers]
    there = pairing.target.columns
    slots = places - columns.starts[consumers]
    counts = there.starts[partners + 1] - there.starts[partners]
    is_known = (partners >= 0) & (slots < counts)
    consumers, places, slots, partners = consumers[is_known], places[is_known], slots[is_known], partners[is_known]
    its = there.codes[there.starts[partners] + slots]
    expected = targets[columns.codes[places] >> SHIFT]
    crossed = (its >= 0) & (expected >= 0) & (expected != its >> SHIFT)
    found = sorted(set(consumers[crossed].tolist()))
    return [(base, pairing.target_of[base]) for base in found]


def _try(pairing: Pairing, base: int, wanted: int) -> None:
    """Exchange the partners of `base` and of who has `wanted`, and so on up the branches, if that helps."""
    swaps = _branch(pairing, base, wanted)
    if not swaps:
        return
    before = _contradictions(pairing, swaps)
    _exchange(pairing, swaps)
    if _contradictions(pairing, swaps) >= before:
        _exchange(pairing, swaps)


def _branch(pairing: Pairing, base: int, wanted: int) -> list[Swap]:
    target_of, base_of = pairing.target_of, pairing.base_of
    operators = pairing.base.operators
    swaps: list[Swap] = []
    pending = [(base, wanted)]
    seen: set[int] = set()
    while pending and len(swaps) < _LONGEST:
        here, there = pending.pop()
        other = base_of[there]
        if (
            other < 0
            or target_of[here] < 0
            or other == here
            or operators[other] != operators[here]
            or seen & {here, other}
        ):
            continue
        seen |= {here, other}
        swaps.append((here, target_of[here], other, there))
        ways = zip(pairing.base.inputs(here), pairing.target.inputs(there), pairing.base.inputs(other), strict=False)
        for mine, its, others in ways:
            if mine >= 0 and its >= 0 and others >= 0 and base_of[its >> SHIFT] == others >> SHIFT:
                pending.append((mine >> SHIFT, its >> SHIFT))
    return swaps


def _contradictions(pairing: Pairing, swaps: list[Swap]) -> int:
    """Inputs and consumers of the swapped nodes that are paired otherwise, and attributes that differ."""
    found = 0
    for here, _, other, _ in swaps:
        for each in (here, other):
            partner = pairing.target_of[each]
            differ = pairing.base.labels[each] != pairing.target.labels[partner]
            found += pairing.judge(each, partner)[1] + differ
    return found


def _exchange(pairing: Pairing, swaps: list[Swap]) -> None:
    for here, _, other, _ in swaps:
        one, two = pairing.target_of[here], pairing.target_of[other]
        pairing.target_of[here], pairing.target_of[other] = two, one
        pairing.base_of[two], pairing.base_of[one] = here, other
