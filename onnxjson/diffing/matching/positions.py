"""Pair what remains of parts that are alike by their position in the data flow.

An optimizer that leaves some nodes of each of several equal parts leaves nothing around them that tells the parts
apart but their order.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.diffing.matching.columns import EMPTY, SHIFT, SLOT
from onnxjson.diffing.matching.labels import by_dependence
from onnxjson.diffing.matching.pairing import MOST_CONSUMERS, MOST_INPUTS, GraphLists, NodePairing, propagate
from onnxjson.diffing.matching.similarity import unpaired_regions

_MOST_ORDERED: Final = 1 << 14
"""Maximum number of pairs of nodes of a region that are tried when nodes are paired by their order."""


def pair_in_order(pairing: NodePairing) -> None:
    """Pair nodes with equal labels in regions of unpaired nodes by their order in the data flow, the last ones first.

    So parts that are alike are paired by their position, although their surroundings do not tell them apart. Pairs
    that no neighbour confirms are dissolved before: another node may fit better.
    """
    bases, targets = pairing.unmatched()
    if not len(np.intersect1d(pairing.base.columns.label[bases], pairing.target.columns.label[targets])):
        return
    for base in _without_paired_input(pairing):
        if not pairing.judge(base, pairing.target_of[base])[0]:
            pairing.part(base)
    labels, target_labels = pairing.base.labels, pairing.target.labels
    regions = [
        (nodes, target_nodes)
        for nodes, target_nodes in unpaired_regions(pairing)
        if not {labels[node] for node in nodes}.isdisjoint(target_labels[node] for node in target_nodes)
    ]
    if not regions:
        return
    (letters, places), (target_letters, target_places) = [
        _in_data_flow(side) for side in (pairing.base, pairing.target)
    ]
    for nodes, target_nodes in regions:
        common = {letters[node] for node in nodes} & {target_letters[node] for node in target_nodes}
        nodes = sorted([node for node in nodes if letters[node] in common], key=places.__getitem__)
        target_nodes = sorted(
            [node for node in target_nodes if target_letters[node] in common], key=target_places.__getitem__
        )
        pairing.work += len(nodes) * len(target_nodes)
        if len(nodes) * len(target_nodes) <= _MOST_ORDERED and not pairing.is_exhausted:
            for base, target in _in_order(pairing, nodes, target_nodes, letters, target_letters):
                pairing.pair(base, target)
    propagate(pairing)


def _without_paired_input(pairing: NodePairing) -> list[int]:
    """Return the base nodes in pairs none of whose inputs is the counterpart of the input at the same place."""
    base, target, targets = pairing.base.columns, pairing.target.columns, pairing.targets
    partners = targets[base.consumer]
    counts = np.minimum(target.starts[partners + 1] - target.starts[partners], MOST_INPUTS)
    shared = np.nonzero((partners >= 0) & (base.slot < counts) & (base.codes != EMPTY))[0]
    codes, target_codes = base.codes[shared], target.codes[target.starts[partners[shared]] + base.slot[shared]]
    producers = np.where(codes >= 0, targets[codes >> SHIFT], 0)
    counterparts = np.where(codes >= 0, producers << SHIFT | codes & SLOT, codes)
    is_equal = (producers >= 0) & (counterparts == target_codes)
    is_confirmed = np.zeros(len(base), bool)
    is_confirmed[base.consumer[shared[is_equal]]] = True
    nodes: list[int] = np.nonzero((targets >= 0) & ~is_confirmed)[0].tolist()
    return nodes


def _in_data_flow(side: GraphLists) -> tuple[list[tuple[int, int]], list[int]]:
    """Return a letter and a place in order for each node, which do not depend on computations of sizes.

    The letter is the label, and the number of inputs that need more of the inputs of the graph than their sizes:
    optimizers compute the others beforehand. The order is that of a depth-first walk from the outputs.
    """
    columns = side.columns
    is_leaf = (columns.codes < EMPTY) & ~columns.is_constant_slot
    counts: list[int] = np.bincount(columns.consumer[is_leaf], minlength=len(columns)).tolist()
    needed: list[list[int]] = [[]] * len(columns)
    depends = bytearray(len(columns))
    for node in by_dependence(columns):
        codes = side.codes[side.starts[node] : side.starts[node + 1]]
        needed[node] = [code >> SHIFT for code in codes if code >= 0 and depends[code >> SHIFT]]
        counts[node] += len(needed[node])
        depends[node] = counts[node] > 0 and columns.nodes[node].op_type not in ("Shape", "Size")
    places = [UNMATCHED] * len(columns)
    pending = [code >> SHIFT for code in reversed(columns.output_codes) if code >= 0]
    count = 0
    while pending:
        node = pending.pop()
        if node < 0:
            places[~node], count = count, count + 1
        elif places[node] == UNMATCHED:
            places[node] = len(columns)
            pending.append(~node)
            pending += reversed(needed[node])
    return list(zip(side.labels, counts, strict=True)), places


def _in_order(
    pairing: NodePairing,
    base_nodes: Sequence[int],
    target_nodes: Sequence[int],
    letters: Sequence[tuple[int, int]],
    target_letters: Sequence[tuple[int, int]],
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of two sequences, in order, that fit their neighbours best; of equal ones, the last."""
    around, target_around = _labels_around(pairing.base, base_nodes), _labels_around(pairing.target, target_nodes)
    rows = [[0] * (len(target_nodes) + 1) for _ in range(len(base_nodes) + 1)]
    fits: dict[tuple[int, int], int] = {}
    for one, base in enumerate(base_nodes):
        for other, target in enumerate(target_nodes):
            best = max(rows[one][other + 1], rows[one + 1][other])
            if letters[base] == target_letters[target]:
                agree, contradict = pairing.judge(base, target, is_lenient=True)
                if contradict <= agree:
                    alike = around[base] & target_around[target]
                    fits[one, other] = 2 + 2 * (agree - contradict) + len(alike)
                    best = max(best, rows[one][other] + fits[one, other])
            rows[one + 1][other + 1] = best
    one, other = len(base_nodes), len(target_nodes)
    while one and other:
        value = rows[one][other]
        if (one - 1, other - 1) in fits and value == rows[one - 1][other - 1] + fits[one - 1, other - 1]:
            one, other = one - 1, other - 1
            yield base_nodes[one], target_nodes[other]
        elif value == rows[one - 1][other]:
            one -= 1
        else:
            other -= 1


def _labels_around(side: GraphLists, nodes: Sequence[int]) -> dict[int, set[tuple[bool, int]]]:
    """The labels of the producers and of the consumers of each node."""
    return {
        node: {(False, side.labels[code >> SHIFT]) for code in side.inputs(node) if code >= 0}
        | {
            (True, side.labels[each])
            for each in side.consumers[side.begins[node] : side.begins[node + 1]][:MOST_CONSUMERS]
        }
        for node in nodes
    }
