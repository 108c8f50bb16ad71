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

_TRUSTED: Final = 0.9
"""Minimum share of pairs with equal names, of those whose name both graphs have, for names to be evidence."""


def repair_swaps(pairing: NodePairing) -> None:
    """Exchange the partners of two similar branches where that reduces the number of contradictions."""
    for base, target in _crossed_pairs(pairing):
        for base_code, target_code in _crossed_inputs(pairing, base, target):
            if pairing.target_of[base_code >> SHIFT] != target_code >> SHIFT and not (base_code ^ target_code) & SLOT:
                _try(pairing, base_code >> SHIFT, target_code >> SHIFT)
        if pairing.is_exhausted:
            return


def keep_equal(pairing: NodePairing) -> None:
    """Among nodes that compute the same, pair those that are equal, with names, unless that adds contradictions.

    So an unchanged node is not paired with another node although a third one has its name.
    """
    base = pairing.base
    nodes, target_nodes = base.columns.nodes, pairing.target.columns.nodes
    for position, (wanted, _) in pairing.namesakes.items():
        partner, other = pairing.target_of[position], pairing.base_of[wanted]
        if partner < 0 or other < 0 or wanted == partner or nodes[position] != target_nodes[wanted]:
            continue
        if nodes[position].output == target_nodes[partner].output:
            continue
        if base.labels[position] != base.labels[other] or base.inputs(position) != base.inputs(other):
            continue
        _exchange_if(operator.le, pairing, [(position, partner, other, wanted)])


_CHAIN: Final = 8
"""Maximum number of unpaired nodes between a node and the last one of its kind before the same consumer."""


def keep_values(pairing: NodePairing) -> None:
    """Pair the last of several nodes in a chain that became one: its value is the one that remains.

    The nodes between them have no counterparts, and the same input of a pair consumes the value.
    """
    sides = (pairing.base, pairing.target_of), (pairing.target, pairing.base_of)
    for (one, partners), (other, its_partners) in (sides, sides[::-1]):
        for last, single in _same_values(one, partners, other, its_partners):
            paired = its_partners[single]
            if paired == UNMATCHED or (
                (one.labels[last] == other.labels[single]) >= (one.labels[paired] == other.labels[single])
                and _leads_to(one, partners, paired, last)
            ):
                if paired >= 0:
                    pairing.part(paired if one is pairing.base else single)
                pairing.pair(*((last, single) if one is pairing.base else (single, last)))


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


def _leads_to(one: GraphLists, partners: Sequence[int], end: int, last: int) -> bool:
    """Whether a chain of unpaired nodes, each the first input of the next, leads from one node to another."""
    for _ in range(_CHAIN):
        codes = one.inputs(last)[:1]
        if not codes or codes[0] < 0:
            return False
        last = codes[0] >> SHIFT
        if last == end or partners[last] != UNMATCHED:
            return last == end
    return False


def _crossed_inputs(pairing: NodePairing, base: int, target: int) -> list[tuple[int, int]]:
    """Return the inputs at the same place that nodes produce; for commutative nodes, the unpaired ones in order."""
    codes, target_codes = pairing.base.inputs(base), pairing.target.inputs(target)
    if pairing.base.commutative[base]:
        producers = {code >> SHIFT for code in target_codes if code >= 0}
        codes = [code for code in codes if code >= 0 and pairing.target_of[code >> SHIFT] not in producers]
        sources = {code >> SHIFT for code in pairing.base.inputs(base) if code >= 0}
        target_codes = [code for code in target_codes if code >= 0 and pairing.base_of[code >> SHIFT] not in sources]
    return [(one, other) for one, other in zip(codes, target_codes, strict=False) if one >= 0 and other >= 0]


def _crossed_pairs(pairing: NodePairing) -> list[tuple[int, int]]:
    """Return the pairs with an input whose counterpart is not the input at the same place."""
    columns = pairing.base.columns
    consumers, places = columns.consumer[columns.edges], columns.edges
    targets = pairing.targets
    partners = targets[consumers]
    target_columns = pairing.target.columns
    slots = places - columns.starts[consumers]
    counts = target_columns.starts[partners + 1] - target_columns.starts[partners]
    is_known = (partners >= 0) & (slots < counts)
    consumers, places, slots, partners = consumers[is_known], places[is_known], slots[is_known], partners[is_known]
    codes = target_columns.codes[target_columns.starts[partners] + slots]
    expected = targets[columns.codes[places] >> SHIFT]
    crossed = (codes >= 0) & (expected >= 0) & (expected != codes >> SHIFT)
    found = sorted(set(consumers[crossed].tolist()))
    return [(base, pairing.target_of[base]) for base in found]


def _try(pairing: NodePairing, base: int, wanted: int) -> None:
    """Exchange the partners of `base` and of the node paired with `wanted`, and up the branches, if that helps."""
    _exchange_if(operator.lt, pairing, _branch(pairing, base, wanted))


def _exchange_if(is_better: Callable[[int, int], bool], pairing: NodePairing, swaps: list[Swap]) -> bool:
    """Exchange partners if the numbers of contradictions after and before compare so; whether they do."""
    before = _contradictions(pairing, swaps)
    _exchange(pairing, swaps)
    is_kept = is_better(_contradictions(pairing, swaps), before)
    if not is_kept:
        _exchange(pairing, swaps)
    return is_kept


def _branch(pairing: NodePairing, base: int, wanted: int) -> list[Swap]:
    target_of, base_of = pairing.target_of, pairing.base_of
    operators = pairing.base.operators
    swaps: list[Swap] = []
    pending = [(base, wanted)]
    seen: set[int] = set()
    while pending and len(swaps) < _LONGEST:
        position, goal = pending.pop()
        other = base_of[goal]
        if (
            other < 0
            or target_of[position] < 0
            or other == position
            or operators[other] != operators[position]
            or seen & {position, other}
        ):
            continue
        seen |= {position, other}
        swaps.append((position, target_of[position], other, goal))
        ways = zip(pairing.base.inputs(position), pairing.target.inputs(goal), pairing.base.inputs(other), strict=False)
        for old, new, other_code in ways:
            if old >= 0 and new >= 0 and other_code >= 0 and base_of[new >> SHIFT] == other_code >> SHIFT:
                pending.append((old >> SHIFT, new >> SHIFT))
    return swaps


def _contradictions(pairing: NodePairing, swaps: list[Swap]) -> int:
    count = 0
    for position, _, other, _ in swaps:
        for node in (position, other):
            partner = pairing.target_of[node]
            differ = pairing.base.labels[node] != pairing.target.labels[partner]
            count += pairing.judge(node, partner)[1] + differ
    return count


def _exchange(pairing: NodePairing, swaps: list[Swap]) -> None:
    for position, _, other, _ in swaps:
        one, two = pairing.target_of[position], pairing.target_of[other]
        pairing.target_of[position], pairing.target_of[other] = two, one
        pairing.base_of[two], pairing.base_of[one] = position, other


def follow_names(pairing: NodePairing) -> None:
    """Pair nodes with equal operator, attributes and name of their output, unless that adds contradictions.

    Names are evidence only if the pairs found by structure agree with them.
    """
    if names_lie(pairing):
        return
    for position, wanted in list(_namesakes(pairing)):
        current, other = pairing.target_of[position], pairing.base_of[wanted]
        if current == wanted:
            continue
        if current >= 0 and other >= 0 and _exchange_if(operator.le, pairing, [(position, current, other, wanted)]):
            continue
        before = _conflicts(pairing, position, current) + _conflicts(pairing, other, wanted)
        pairing.part(position)
        if other >= 0:
            pairing.part(other)
        if _conflicts(pairing, position, wanted) <= before:
            pairing.pair(position, wanted)
            continue
        for one, partner in ((position, current), (other, wanted)):
            if one >= 0 and partner >= 0:
                pairing.pair(one, partner)


def names_lie(pairing: NodePairing) -> bool:
    """Whether names are no evidence: the pairs found by structure disagree with them."""
    nodes, target_nodes = pairing.base.columns.nodes, pairing.target.columns.nodes
    partners = [(here, pairing.target_of[here]) for here in pairing.namesakes]
    known = [nodes[position].output == target_nodes[place].output for position, place in partners if place >= 0]
    return not known or sum(known) < _TRUSTED * len(known)


def _namesakes(pairing: NodePairing) -> Iterator[tuple[int, int]]:
    """Yield nodes with equal labels whose first outputs have the same name, and that could be a pair."""
    labels, target_labels = pairing.base.labels, pairing.target.labels
    for position, (wanted, slot) in pairing.namesakes.items():
        partner = pairing.target_of[position]
        is_open = partner >= UNMATCHED <= pairing.base_of[wanted] and wanted != partner and not slot
        if is_open and labels[position] == target_labels[wanted]:
            yield position, wanted


def _conflicts(pairing: NodePairing, base: int, target: int) -> int:
    """The number of neighbours that contradict a pair; 0 without one."""
    if base < 0 or target < 0:
        return 0
    differ = pairing.base.labels[base] != pairing.target.labels[target]
    return pairing.judge(base, target, is_lenient=True)[1] + differ
