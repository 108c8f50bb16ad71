"""Repair pairs: exchange the partners of similar branches, and follow names where structure leaves a choice."""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.diffing.matching.columns import SHIFT, SLOT
from onnxjson.diffing.matching.pairing import NO_PART, GraphLists, NodePairing

_LONGEST: Final = 64
"""Maximum number of nodes of a branch that are exchanged."""

Swap = tuple[int, int, int, int]
"""Base node, its partner; the base node with the wanted partner, and that partner."""


def repair_swaps(pairing: NodePairing) -> None:
    """Exchange the partners of two similar branches where that reduces the number of contradictions."""
    for base, target in _crossed_pairs(pairing):
        for mine, its in _crossed_inputs(pairing, base, target):
            if pairing.target_of[mine >> SHIFT] != its >> SHIFT and not (mine ^ its) & SLOT:
                _try(pairing, mine >> SHIFT, its >> SHIFT)
        if pairing.is_exhausted:
            return


def keep_equal(pairing: NodePairing) -> None:
    """Among nodes that compute the same, pair those that are equal, with names, unless that adds contradictions.

    So an unchanged node is not paired with another node although a third one has its name.
    """
    base = pairing.base
    nodes, its_nodes = base.columns.nodes, pairing.target.columns.nodes
    for here, (wanted, _) in pairing.namesakes.items():
        there, other = pairing.target_of[here], pairing.base_of[wanted]
        if there < 0 or other < 0 or wanted == there or nodes[here] != its_nodes[wanted]:
            continue
        if nodes[here].output == its_nodes[there].output:
            continue
        if base.labels[here] != base.labels[other] or base.inputs(here) != base.inputs(other):
            continue
        _exchange_if(operator.le, pairing, [(here, there, other, wanted)])


_CHAIN: Final = 8
"""Maximum number of unpaired nodes between a node and the last one of its kind before the same consumer."""


def keep_values(pairing: NodePairing) -> None:
    """Pair the last of several nodes in a chain that became one: its value is the one that remains.

    The nodes between them have no counterparts, and the same input of a pair consumes the value.
    """
    sides = (pairing.base, pairing.target_of), (pairing.target, pairing.base_of)
    for (one, partners), (other, its_partners) in (sides, sides[::-1]):
        for last, there in _same_values(one, partners, other, its_partners):
            here = its_partners[there]
            if here == UNMATCHED or (
                (one.labels[last] == other.labels[there]) >= (one.labels[here] == other.labels[there])
                and _leads_to(one, partners, here, last)
            ):
                if here >= 0:
                    pairing.part(here if one is pairing.base else there)
                pairing.pair(*((last, there) if one is pairing.base else (there, last)))


def _same_values(
    one: GraphLists, partners: Sequence[int], other: GraphLists, its_partners: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield unpaired nodes with a node of the same operator whose value the same input of a pair consumes."""
    for last, partner in enumerate(partners):
        if partner != UNMATCHED:
            continue
        for place in range(one.begins[last], one.begins[last + 1]):
            consumer, port = partners[one.consumers[place]], one.consumer_ports[place]
            codes = other.inputs(consumer)[port & SLOT :][:1] if consumer >= 0 else []
            there = codes[0] >> SHIFT if codes and codes[0] >= 0 else NO_PART
            if there >= 0 and its_partners[there] != NO_PART and one.operators[last] == other.operators[there]:
                yield last, there
                break


def _leads_to(one: GraphLists, partners: Sequence[int], here: int, last: int) -> bool:
    """Whether a chain of unpaired nodes, each the first input of the next, leads from one node to another."""
    for _ in range(_CHAIN):
        codes = one.inputs(last)[:1]
        if not codes or codes[0] < 0:
            return False
        last = codes[0] >> SHIFT
        if last == here or partners[last] != UNMATCHED:
            return last == here
    return False


def _crossed_inputs(pairing: NodePairing, base: int, target: int) -> list[tuple[int, int]]:
    """Return the inputs at the same place that nodes produce; for commutative nodes, the unpaired ones in order."""
    mine, its = pairing.base.inputs(base), pairing.target.inputs(target)
    if pairing.base.commutative[base]:
        producers = {code >> SHIFT for code in its if code >= 0}
        mine = [code for code in mine if code >= 0 and pairing.target_of[code >> SHIFT] not in producers]
        own = {code >> SHIFT for code in pairing.base.inputs(base) if code >= 0}
        its = [code for code in its if code >= 0 and pairing.base_of[code >> SHIFT] not in own]
    return [(one, other) for one, other in zip(mine, its, strict=False) if one >= 0 and other >= 0]


def _crossed_pairs(pairing: NodePairing) -> list[tuple[int, int]]:
    """Return the pairs with an input whose counterpart is not the input at the same place."""
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


def _try(pairing: NodePairing, base: int, wanted: int) -> None:
    """Exchange the partners of `base` and of the node paired with `wanted`, and up the branches, if that helps."""
    _exchange_if(operator.lt, pairing, _branch(pairing, base, wanted))


def _exchange_if(is_better: Callable[[int, int], bool], pairing: NodePairing, swaps: list[Swap]) -> bool:
    """Exchange partners if the numbers of contradictions after and before compare so; whether they do."""
    before = _contradictions(pairing, swaps)
    _exchange(pairing, swaps)
    found = is_better(_contradictions(pairing, swaps), before)
    if not found:
        _exchange(pairing, swaps)
    return found


def _branch(pairing: NodePairing, base: int, wanted: int) -> list[Swap]:
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


def _contradictions(pairing: NodePairing, swaps: list[Swap]) -> int:
    found = 0
    for here, _, other, _ in swaps:
        for each in (here, other):
            partner = pairing.target_of[each]
            differ = pairing.base.labels[each] != pairing.target.labels[partner]
            found += pairing.judge(each, partner)[1] + differ
    return found


def _exchange(pairing: NodePairing, swaps: list[Swap]) -> None:
    for here, _, other, _ in swaps:
        one, two = pairing.target_of[here], pairing.target_of[other]
        pairing.target_of[here], pairing.target_of[other] = two, one
        pairing.base_of[two], pairing.base_of[one] = here, other


_TRUSTED: Final = 0.9
"""Minimum share of pairs with equal names, of those whose name both graphs have, for names to be evidence."""


def follow_names(pairing: NodePairing) -> None:
    """Pair nodes with equal operator, attributes and name of their output, unless that adds contradictions.

    Names are evidence only if the pairs found by structure agree with them.
    """
    if names_lie(pairing):
        return
    for here, wanted in list(_namesakes(pairing)):
        there, other = pairing.target_of[here], pairing.base_of[wanted]
        if there == wanted:
            continue
        if there >= 0 and other >= 0 and _exchange_if(operator.le, pairing, [(here, there, other, wanted)]):
            continue
        before = _conflicts(pairing, here, there) + _conflicts(pairing, other, wanted)
        pairing.part(here)
        if other >= 0:
            pairing.part(other)
        if _conflicts(pairing, here, wanted) <= before:
            pairing.pair(here, wanted)
            continue
        for one, partner in ((here, there), (other, wanted)):
            if one >= 0 and partner >= 0:
                pairing.pair(one, partner)


def names_lie(pairing: NodePairing) -> bool:
    """Whether names are no evidence: the pairs found by structure disagree with them."""
    nodes, its_nodes = pairing.base.columns.nodes, pairing.target.columns.nodes
    partners = [(here, pairing.target_of[here]) for here in pairing.namesakes]
    known = [nodes[here].output == its_nodes[there].output for here, there in partners if there >= 0]
    return not known or sum(known) < _TRUSTED * len(known)


def _namesakes(pairing: NodePairing) -> Iterator[tuple[int, int]]:
    """Yield nodes with equal labels whose first outputs have the same name, and that could be a pair."""
    labels, its_labels = pairing.base.labels, pairing.target.labels
    for here, (wanted, slot) in pairing.namesakes.items():
        there = pairing.target_of[here]
        is_open = there >= UNMATCHED <= pairing.base_of[wanted] and wanted != there and not slot
        if is_open and labels[here] == its_labels[wanted]:
            yield here, wanted


def _conflicts(pairing: NodePairing, base: int, target: int) -> int:
    """The number of neighbours that contradict a pair; 0 without one."""
    if base < 0 or target < 0:
        return 0
    differ = pairing.base.labels[base] != pairing.target.labels[target]
    return pairing.judge(base, target, is_lenient=True)[1] + differ
