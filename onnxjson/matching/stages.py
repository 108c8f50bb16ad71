"""Which node of one graph is which of the other: the stages, from what is sure to what is likely.

Each stage sees only what is still open. Work is counted, not timed, so that results are the same everywhere; what the
budget refuses stays open and makes a bigger region.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from onnxjson.matching.alignment import UNMATCHED
from onnxjson.matching.assignment import assign
from onnxjson.matching.columns import SHIFT, SLOT, Columns, Integers, Interner, Words
from onnxjson.matching.forward import number
from onnxjson.matching.kinship import pair_kin
from onnxjson.matching.labels import RADIUS, Labels
from onnxjson.matching.ordering import from_outputs
from onnxjson.matching.pairing import NO_PART, Pairing, unique_pairs
from onnxjson.matching.propagation import producers_of_outputs, propagate
from onnxjson.matching.sequence import common_subsequence
from onnxjson.matching.uncrossing import keep_equal, uncross

WORK_PER_NODE: Final = 400
"""Steps that may be taken for each node of both graphs, and for as many more as a small graph needs."""

_LEAST_WORK: Final = 200_000
_ANCHOR: Final = np.uint64(1 << 63)
_LARGE: Final = 2_000
"""So many candidates are judged all at once, by their inputs alone."""
_FEW: Final = 0.02
"""Of fewer open nodes, as a share of all, no sequence is made,"""
_SMALL: Final = 5_000
"""unless the graph has so few nodes that nobody waits for it."""
_SLOTS_COMPARED: Final = 8
"""Of all candidates at once, so many inputs are compared."""
_MOST_EDITS: Final = 512


def match(base: Columns, target: Columns, interner: Interner, outputs: dict[int, int]) -> Pairing:
    """The pairs of two graphs.

    Args:
        base: a graph.
        target: another one, by the same interner.
        interner: the numbers that both use.
        outputs: positions of outputs of `base` -> their counterparts in `target`.
    """
    allowed = _LEAST_WORK + WORK_PER_NODE * (len(base) + len(target))
    pairing = Pairing(base, target, outputs, allowed)
    numbers = np.array(number(base, interner), np.int64), np.array(number(target, interner, add=False), np.int64)
    _pair_equal(pairing, *numbers)
    _pair_by_context(pairing)
    _pair_outputs(pairing)
    is_repetitive = _is_repetitive(pairing)
    if is_repetitive and _count_open(pairing) > _LARGE:
        _pair_by_sequence(pairing, is_sure=True)
    _spread(pairing)
    if not is_repetitive:
        _pair_by_labels(pairing, base.label, target.label, with_constants=True, least_radius=2)
        _spread(pairing)
        pair_kin(pairing)
    if _count_open(pairing) > _FEW * (len(base) - _SMALL):
        _pair_by_sequence(pairing, is_sure=True)
        _spread(pairing)
    _pair_by_labels(pairing, base.label, target.label, with_constants=True, least_radius=1)
    _pair_by_labels(pairing, base.label, target.label, with_constants=False, least_radius=1)
    _spread(pairing)
    pair_kin(pairing)
    _pair_by_labels(pairing, base.operator, target.operator, with_constants=False, least_radius=1)
    _spread(pairing)
    assign(pairing)
    if _count_open(pairing) > _FEW * (len(base) - _SMALL):
        _pair_by_sequence(pairing, is_sure=False)
        _spread(pairing)
        assign(pairing)
    uncross(pairing)
    _pair_duplicates(pairing, *numbers)
    keep_equal(pairing)
    return pairing


def _count_open(pairing: Pairing) -> int:
    base, target = pairing.unmatched()
    return min(len(base), len(target))


def _pair_equal(pairing: Pairing, numbers: Integers, its_numbers: Integers) -> None:
    bases, targets = pairing.unmatched()
    pairing.pair_all(*unique_pairs(numbers[bases], its_numbers[targets], bases, targets))


def _pair_by_context(pairing: Pairing) -> None:
    """Pair nodes whose surroundings nobody else has, before anything but equal computations is known."""
    mine, its = [
        Labels(columns, columns.label, np.full(len(columns), UNMATCHED, np.int64), numbers, with_constants=True)
        for columns, numbers in zip((pairing.base.columns, pairing.target.columns), _numbered(pairing), strict=True)
    ]
    pairing.contexts = [
        (_spread_out(mine.nodes, one, len(pairing.targets)), _spread_out(its.nodes, other, len(pairing.bases)))
        for one, other in zip(mine.rounds[1:], its.rounds[1:], strict=True)
    ]
    for labels, its_labels in reversed(pairing.contexts[1:]):
        bases, targets = pairing.unmatched()
        _pair_where_fitting(pairing, *unique_pairs(labels[bases], its_labels[targets], bases, targets))


def _numbered(pairing: Pairing) -> tuple[dict[int, int], dict[int, int]]:
    """Positions of outputs that are counterparts -> one number, for both sides."""
    return (
        {position: number for number, position in enumerate(pairing.outputs)},
        {position: number for number, position in enumerate(pairing.outputs.values())},
    )


def _is_repetitive(pairing: Pairing) -> bool:
    """Whether most of what is open looks, as far as labels see, like something else in its own graph."""
    for labels, is_open in zip(pairing.contexts[-1], (pairing.targets, pairing.bases), strict=True):
        positions = np.nonzero(is_open == UNMATCHED)[0]
        _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if 2 * np.count_nonzero(counts[places[positions]] > 1) > len(positions):
            return True
    return False


def _spread_out(nodes: Integers, labels: Words, count: int) -> Words:
    found = np.zeros(count, np.uint64)
    found[nodes] = labels
    return found


def _pair_by_labels(
    pairing: Pairing, own: Integers, its_own: Integers, *, with_constants: bool, least_radius: int
) -> None:
    """Pair nodes whose surroundings nobody else has, wide before narrow; again while that finds more."""
    shared, its_shared = _numbered(pairing)
    while _count_open(pairing):
        pairs = np.where(pairing.targets >= 0, np.arange(len(own)), UNMATCHED)
        labels = Labels(pairing.base.columns, own, pairs, shared, with_constants=with_constants)
        its_labels = Labels(pairing.target.columns, its_own, pairing.bases, its_shared, with_constants=with_constants)
        before = len(labels.nodes)
        for radius in range(RADIUS, least_radius - 1, -1):
            here = pairing.targets[labels.nodes] == UNMATCHED
            there = pairing.bases[its_labels.nodes] == UNMATCHED
            found = unique_pairs(
                labels.rounds[radius][here],
                its_labels.rounds[radius][there],
                labels.nodes[here],
                its_labels.nodes[there],
            )
            _pair_where_fitting(pairing, *found)
        if len(pairing.unmatched()[0]) > before * 0.9:
            return


def _pair_where_fitting(pairing: Pairing, bases: Integers, targets: Integers) -> None:
    """Pair nodes unless what is known of their inputs speaks more against it than for it."""
    if len(bases) > _LARGE:
        fits = _inputs_fit(pairing, bases, targets)
        pairing.pair_all(bases[fits], targets[fits])
        return
    for base, target in zip(bases.tolist(), targets.tolist(), strict=True):
        agree, contradict = pairing.judge(base, target)
        if contradict == 0 or agree > contradict:
            pairing.pair(base, target)


def _inputs_fit(pairing: Pairing, bases: Integers, targets: Integers, *, strict: bool = False) -> NDArray[np.bool_]:
    """Which pairs have no input that is known to differ, once all of them are pairs (column by column)."""
    base, target = pairing.base.columns, pairing.target.columns
    partner = pairing.targets.copy()
    partner[bases] = targets
    start, its_start = base.starts[bases], target.starts[targets]
    count, its_count = base.starts[bases + 1] - start, target.starts[targets + 1] - its_start
    fits = count == its_count if strict else np.ones(len(bases), bool)
    plain = ~base.commutative[bases]
    for slot in range(int(min(count.max(initial=0), its_count.max(initial=0), _SLOTS_COMPARED))):
        there = (slot < count) & (slot < its_count)
        mine = base.codes[np.where(there, start + slot, 0)]
        its = target.codes[np.where(there, its_start + slot, 0)]
        made = there & (mine >= 0) & (its >= 0)
        expected = partner[np.where(made, mine >> SHIFT, 0)]
        same = (expected == its >> SHIFT) & ((mine ^ its) & SLOT == 0)
        wrong = made & (expected >= 0) & ~same & plain
        if strict:
            wrong |= made & ~same & plain
        fits &= ~wrong
    return fits


def _pair_outputs(pairing: Pairing) -> None:
    target_of, base_of = pairing.target_of, pairing.base_of
    for base, target in producers_of_outputs(pairing):
        if target_of[base] == UNMATCHED == base_of[target]:
            same = pairing.base.labels[base] == pairing.target.labels[target]
            if same and not pairing.judge(base, target)[1]:
                pairing.pair(base, target)


def _spread(pairing: Pairing) -> None:
    """Propagate from every pair that has a neighbour without one."""
    pairing.fresh = _frontier(pairing)
    propagate(pairing)


def _frontier(pairing: Pairing) -> list[tuple[int, int]]:
    target_of = pairing.targets
    columns = pairing.base.columns
    producers, consumers = columns.codes[columns.edges] >> SHIFT, columns.consumer[columns.edges]
    up = (target_of[producers] == UNMATCHED) & (target_of[consumers] >= 0)
    down = (target_of[producers] >= 0) & (target_of[consumers] == UNMATCHED)
    bases = np.unique(np.concatenate([consumers[up], producers[down]]))
    return list(zip(bases.tolist(), target_of[bases].tolist(), strict=True))


def _pair_by_sequence(pairing: Pairing, *, is_sure: bool) -> None:
    """Align what is open as sequences, in the order of a walk from the outputs, between pairs in the same order.

    Where `is_sure`, all inputs of a pair have to fit; else more has to speak for it than against it.
    """
    bases, targets = pairing.unmatched()
    kinds = np.intersect1d(pairing.base.columns.label[bases], pairing.target.columns.label[targets])
    if not len(kinds):
        return
    order = np.array(from_outputs(pairing.base.columns), np.int64)
    its_order = np.array(from_outputs(pairing.target.columns), np.int64)
    target_of, base_of = pairing.targets, pairing.bases
    label, its_label = _letters(pairing.base.columns), _letters(pairing.target.columns)
    # A pair is one letter that only it has; what is open is its label.
    letters = np.where(target_of >= 0, _ANCHOR + np.arange(len(order), dtype=np.uint64), label)[order]
    its_letters = np.where(base_of >= 0, _ANCHOR + base_of.astype(np.uint64), its_label)[its_order]
    open_here, open_there = target_of[order] != NO_PART, base_of[its_order] != NO_PART
    order, its_order = order[open_here], its_order[open_there]
    here, there = common_subsequence(letters[open_here], its_letters[open_there], _MOST_EDITS)
    found, its_found = order[here], its_order[there]
    is_open = target_of[found] == UNMATCHED
    found, its_found = found[is_open], its_found[is_open]
    if is_sure:
        fits = _inputs_fit(pairing, found, its_found, strict=True)
        pairing.pair_all(found[fits], its_found[fits])
        return
    for base, target in zip(found.tolist(), its_found.tolist(), strict=True):
        agree, contradict = pairing.judge(base, target)
        if agree > contradict and pairing.target_of[base] == UNMATCHED == pairing.base_of[target]:
            pairing.pair(base, target)


def _letters(columns: Columns) -> Words:
    """What a node is by itself, and how many of its inputs are constants: a bias is not added as a residual is."""
    constants = np.bincount(columns.consumer[columns.is_constant_slot], minlength=len(columns))
    letters: Words = (columns.label << 8 | np.minimum(constants, 255)).astype(np.uint64)
    return letters


def _pair_duplicates(pairing: Pairing, numbers: Integers, its_numbers: Integers) -> None:
    """Pair what provably computes the same and is still open: equal names first, then in order."""
    bases, targets = pairing.unmatched()
    open_by_number: dict[int, list[int]] = {}
    for target, value in zip(targets.tolist(), its_numbers[targets].tolist(), strict=True):
        open_by_number.setdefault(value, []).append(target)
    nodes, its_nodes = pairing.base.columns.nodes, pairing.target.columns.nodes
    late = []
    for base, value in zip(bases.tolist(), numbers[bases].tolist(), strict=True):
        there = open_by_number.get(value, [])
        named = next((each for each in there if its_nodes[each].output == nodes[base].output), None)
        if named is None:
            late.append((base, there))
        else:
            there.remove(named)
            pairing.pair(base, named)
    for base, there in late:
        if there:
            pairing.pair(base, there.pop(0))
