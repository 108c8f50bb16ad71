"""Match the nodes of two graphs in stages, from certain to likely pairs, and repair swapped pairs.

Each stage sees only unpaired nodes. Work is counted, not timed, so results are the same on every machine; nodes beyond
the budget stay unpaired and make a larger region.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.diffing.matching.columns import SHIFT, SLOT, Columns, Integers, Words
from onnxjson.diffing.matching.labels import RADIUS, Labels, common_subsequence, number
from onnxjson.diffing.matching.pairing import NO_PART, NodePairing, producers_of_outputs, propagate, unique_pairs
from onnxjson.diffing.matching.positions import pair_in_order
from onnxjson.diffing.matching.repairing import follow_names, keep_equal, keep_values, repair_swaps
from onnxjson.diffing.matching.similarity import assign, pair_enclosed, pair_similar

WORK_PER_NODE: Final = 400
"""Maximum number of steps for each node of both graphs, in addition to a minimum for small graphs."""

_LEAST_WORK: Final = 200_000
_ANCHOR: Final = np.uint64(1 << 63)
_LARGE: Final = 2_000
"""Number of candidates from which they are judged together, by their inputs alone."""
_SLOTS_COMPARED: Final = 8
"""Maximum number of compared inputs when candidates are judged together."""
_MOST_EDITS: Final = 512
_WALKED: Final = 1_000
"""Maximum number of nodes, for each unpaired one, for which the walk through the whole graph pays."""


def match(pairing: NodePairing, *, names: bool = True) -> None:
    """Match the nodes of two graphs; with `names`, names of values that agree with the structure are evidence."""
    base, target, outputs = pairing.base.columns, pairing.target.columns, pairing.outputs
    pairing.allowed = _LEAST_WORK + WORK_PER_NODE * (len(base) + len(target))
    if _are_same(base, target, outputs):
        everything = np.nonzero(pairing.targets == UNMATCHED)[0]
        pairing.pair_all(everything, everything)
        return
    known: dict[tuple[int, ...], int] = {}
    numbers = np.array(number(base, known), np.int64), np.array(number(target, known, add=False), np.int64)
    known.clear()
    pairing.pair_all(*_unique(pairing, *numbers))
    _pair_by_context(pairing)
    _pair_outputs(pairing)
    is_repetitive = _is_repetitive(pairing)
    if is_repetitive and _count_open(pairing) > _LARGE:
        _pair_by_sequence(pairing, is_sure=True)
    _spread(pairing)
    if not is_repetitive:
        _pair_by_labels(pairing, base.label, target.label, with_constants=True, least_radius=2)
        _spread(pairing)
        pair_similar(pairing)
    if _count_open(pairing) * _WALKED > len(base):
        _pair_by_sequence(pairing, is_sure=True)
        _spread(pairing)
    _pair_by_labels(pairing, base.label, target.label, with_constants=True, least_radius=1)
    _pair_by_labels(pairing, base.label, target.label, with_constants=False, least_radius=1)
    _spread(pairing)
    pair_similar(pairing)
    _pair_by_labels(pairing, base.operator, target.operator, with_constants=False, least_radius=1)
    _spread(pairing)
    assign(pairing)
    if _count_open(pairing) * _WALKED > len(base):
        _pair_by_sequence(pairing, is_sure=False)
        _spread(pairing)
        assign(pairing)
    pair_enclosed(pairing)
    keep_values(pairing)
    pair_in_order(pairing)
    keep_values(pairing)
    repair_swaps(pairing)
    _pair_duplicates(pairing, *numbers)
    if names:
        follow_names(pairing)
    keep_equal(pairing)
    if _count_open(pairing):
        _spread(pairing)
    pairing.contexts.clear()


def _are_same(base: Columns, target: Columns, outputs: dict[int, int]) -> bool:
    """Whether two graphs have the same nodes in the same order, with outputs of the same names."""
    columns = ((base.label, target.label), (base.kind, target.kind), (base.starts, target.starts))
    return (
        base.output_codes == target.output_codes
        and all(position == place for position, place in outputs.items())
        and all(np.array_equal(column, other) for column, other in (*columns, (base.codes, target.codes)))
        and [node.output for node in base.nodes] == [node.output for node in target.nodes]
    )


def _count_open(pairing: NodePairing) -> int:
    base, target = pairing.unmatched()
    return min(len(base), len(target))


def _unique(
    pairing: NodePairing, labels: NDArray[np.generic], target_labels: NDArray[np.generic]
) -> tuple[Integers, Integers]:
    """Return the unpaired nodes whose label is unique on both sides."""
    bases, targets = pairing.unmatched()
    return unique_pairs(labels[bases], target_labels[targets], bases, targets)


def _pair_by_context(pairing: NodePairing) -> None:
    """Pair nodes with unique surroundings, when only equal computations are paired."""
    base, target = [
        Labels(columns, columns.label, np.full(len(columns), UNMATCHED, np.int64), numbers, with_constants=True)
        for columns, numbers in zip(
            (pairing.base.columns, pairing.target.columns), _shared_numbers(pairing), strict=True
        )
    ]
    pairing.contexts = [
        (_spread_out(base.nodes, one, len(pairing.targets)), _spread_out(target.nodes, other, len(pairing.bases)))
        for one, other in zip(base.rounds[1:], target.rounds[1:], strict=True)
    ]
    for labels, target_labels in reversed(pairing.contexts[1:]):
        _pair_where_fitting(pairing, *_unique(pairing, labels, target_labels))


def _shared_numbers(pairing: NodePairing) -> tuple[dict[int, int], dict[int, int]]:
    """Return positions of paired outputs -> a common number, for both sides."""
    return (
        {position: number for number, position in enumerate(pairing.outputs)},
        {position: number for number, position in enumerate(pairing.outputs.values())},
    )


def _is_repetitive(pairing: NodePairing) -> bool:
    """Whether most unpaired nodes have the same label as another node of their graph."""
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
    pairing: NodePairing, initial: Integers, target_initial: Integers, *, with_constants: bool, least_radius: int
) -> None:
    """Pair nodes with unique surroundings, from large to small radius; repeat while that finds more."""
    shared, target_shared = _shared_numbers(pairing)
    while _count_open(pairing):
        pairs = np.where(pairing.targets >= 0, np.arange(len(initial)), UNMATCHED)
        labels = Labels(pairing.base.columns, initial, pairs, shared, with_constants=with_constants)
        target_labels = Labels(
            pairing.target.columns, target_initial, pairing.bases, target_shared, with_constants=with_constants
        )
        before = len(labels.nodes)
        for radius in range(RADIUS, least_radius - 1, -1):
            base_open = pairing.targets[labels.nodes] == UNMATCHED
            target_open = pairing.bases[target_labels.nodes] == UNMATCHED
            unique = unique_pairs(
                labels.rounds[radius][base_open],
                target_labels.rounds[radius][target_open],
                labels.nodes[base_open],
                target_labels.nodes[target_open],
            )
            _pair_where_fitting(pairing, *unique)
        if len(pairing.unmatched()[0]) > before * 0.9:
            return


def _pair_where_fitting(pairing: NodePairing, bases: Integers, targets: Integers) -> None:
    """Pair nodes unless more known neighbours contradict than agree."""
    if len(bases) > _LARGE:
        fits = _inputs_fit(pairing, bases, targets)
        pairing.pair_all(bases[fits], targets[fits])
        return
    for base, target in zip(bases.tolist(), targets.tolist(), strict=True):
        agree, contradict = pairing.judge(base, target)
        if contradict == 0 or agree > contradict:
            pairing.pair(base, target)


def _inputs_fit(pairing: NodePairing, bases: Integers, targets: Integers, *, strict: bool = False) -> NDArray[np.bool_]:
    base, target = pairing.base.columns, pairing.target.columns
    partner = pairing.targets.copy()
    partner[bases] = targets
    start, target_start = base.starts[bases], target.starts[targets]
    count, target_count = base.starts[bases + 1] - start, target.starts[targets + 1] - target_start
    fits = count == target_count if strict else np.ones(len(bases), bool)
    plain = ~base.commutative[bases]
    for slot in range(int(min(count.max(initial=0), target_count.max(initial=0), _SLOTS_COMPARED))):
        has_slot = (slot < count) & (slot < target_count)
        code = base.codes[np.where(has_slot, start + slot, 0)]
        target_code = target.codes[np.where(has_slot, target_start + slot, 0)]
        is_computed = has_slot & (code >= 0) & (target_code >= 0)
        expected = partner[np.where(is_computed, code >> SHIFT, 0)]
        same = (expected == target_code >> SHIFT) & ((code ^ target_code) & SLOT == 0)
        wrong = is_computed & (expected >= 0) & ~same & plain
        if strict:
            wrong |= is_computed & ~same & plain
        fits &= ~wrong
    return fits


def _pair_outputs(pairing: NodePairing) -> None:
    target_of, base_of = pairing.target_of, pairing.base_of
    for base, target in producers_of_outputs(pairing):
        if target_of[base] == UNMATCHED == base_of[target]:
            same = pairing.base.labels[base] == pairing.target.labels[target]
            if same and not pairing.judge(base, target)[1]:
                pairing.pair(base, target)


def _spread(pairing: NodePairing) -> None:
    target_of = pairing.targets
    columns = pairing.base.columns
    producers, consumers = columns.codes[columns.edges] >> SHIFT, columns.consumer[columns.edges]
    up = (target_of[producers] == UNMATCHED) & (target_of[consumers] >= 0)
    down = (target_of[producers] >= 0) & (target_of[consumers] == UNMATCHED)
    bases = np.unique(np.concatenate([consumers[up], producers[down]]))
    pairing.fresh = list(zip(bases.tolist(), target_of[bases].tolist(), strict=True))
    propagate(pairing)


def _pair_by_sequence(pairing: NodePairing, *, is_sure: bool) -> None:
    """Align unpaired nodes as sequences, in the order of a walk from the outputs, between pairs in the same order.

    With `is_sure`, all inputs of a pair must fit; otherwise more neighbours must agree than contradict.
    """
    bases, targets = pairing.unmatched()
    kinds = np.intersect1d(pairing.base.columns.label[bases], pairing.target.columns.label[targets])
    if not len(kinds):
        return
    order, target_order = pairing.base.order, pairing.target.order
    target_of, base_of = pairing.targets, pairing.bases
    label, target_label = _letters(pairing.base.columns), _letters(pairing.target.columns)
    # The letter of a pair is unique; the letter of an unpaired node is its label.
    letters = np.where(target_of >= 0, _ANCHOR + np.arange(len(order), dtype=np.uint64), label)[order]
    target_letters = np.where(base_of >= 0, _ANCHOR + base_of.astype(np.uint64), target_label)[target_order]
    base_open, target_open = target_of[order] != NO_PART, base_of[target_order] != NO_PART
    order, target_order = order[base_open], target_order[target_open]
    base_at, target_at = common_subsequence(letters[base_open], target_letters[target_open], _MOST_EDITS)
    base_nodes, target_nodes = order[base_at], target_order[target_at]
    is_open = target_of[base_nodes] == UNMATCHED
    base_nodes, target_nodes = base_nodes[is_open], target_nodes[is_open]
    if is_sure:
        fits = _inputs_fit(pairing, base_nodes, target_nodes, strict=True)
        pairing.pair_all(base_nodes[fits], target_nodes[fits])
        return
    for base, target in zip(base_nodes.tolist(), target_nodes.tolist(), strict=True):
        agree, contradict = pairing.judge(base, target)
        if agree > contradict and pairing.target_of[base] == UNMATCHED == pairing.base_of[target]:
            pairing.pair(base, target)


def _letters(columns: Columns) -> Words:
    """Return the label of each node with its number of constant inputs: adding a bias differs from a residual."""
    constants = np.bincount(columns.consumer[columns.is_constant_slot], minlength=len(columns))
    letters: Words = (columns.label << 8 | np.minimum(constants, 255)).astype(np.uint64)
    return letters


def _pair_duplicates(pairing: NodePairing, numbers: Integers, target_numbers: Integers) -> None:
    """Pair unpaired nodes that provably compute the same: by equal names first, then in order."""
    bases, targets = pairing.unmatched()
    open_by_number: dict[int, list[int]] = {}
    for target, value in zip(targets.tolist(), target_numbers[targets].tolist(), strict=True):
        open_by_number.setdefault(value, []).append(target)
    nodes, target_nodes = pairing.base.columns.nodes, pairing.target.columns.nodes
    late = []
    for base, value in zip(bases.tolist(), numbers[bases].tolist(), strict=True):
        candidates = open_by_number.get(value, [])
        named = next((each for each in candidates if target_nodes[each].output == nodes[base].output), None)
        if named is None:
            late.append((base, candidates))
        else:
            candidates.remove(named)
            pairing.pair(base, named)
    for base, candidates in late:
        if candidates:
            pairing.pair(base, candidates.pop(0))
