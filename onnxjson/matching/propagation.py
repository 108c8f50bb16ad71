"""From pairs to their neighbours, along input slots: up to producers, down to consumers, across one odd node."""

from collections.abc import Iterator, Sequence
from typing import Final

from onnxjson.matching.alignment import UNMATCHED
from onnxjson.matching.columns import SHIFT, SLOT
from onnxjson.matching.pairing import Pairing, Side

_MOST_TAKERS: Final = 16
"""Of a value with more open consumers none is followed."""


def propagate(pairing: Pairing) -> None:
    """Pair neighbours of pairs that are the same by operator and attributes, and that no other neighbour contradicts.

    Begins at the pairs in `Pairing.fresh` and goes on from what it finds.
    """
    target_of, base_of = pairing.target_of, pairing.base_of
    labels, its_labels = pairing.base.labels, pairing.target.labels
    fresh = pairing.fresh
    position = 0
    while position < len(fresh) and not pairing.is_exhausted:
        base, target = fresh[position]
        position += 1
        for mine, its in _neighbours(pairing, base, target):
            if target_of[mine] == UNMATCHED == base_of[its] and labels[mine] == its_labels[its]:
                _, contradict = pairing.judge(mine, its)
                if not contradict:
                    pairing.pair(mine, its)
    fresh.clear()


def _neighbours(pairing: Pairing, base: int, target: int) -> Iterator[tuple[int, int]]:
    """Candidates around a pair: what makes the same input of both, what alone takes the same output of both."""
    yield from _producers(pairing, base, target)
    yield from _consumers(pairing, base, target)


def producers_of_outputs(pairing: Pairing) -> Iterator[tuple[int, int]]:
    """Candidates at the end of the graphs: what makes outputs that are counterparts."""
    for base, target in pairing.outputs.items():
        mine, its = pairing.base.columns.output_codes[base], pairing.target.columns.output_codes[target]
        if mine >= 0 and its >= 0 and not (mine ^ its) & SLOT:
            yield mine >> SHIFT, its >> SHIFT


def _producers(pairing: Pairing, base: int, target: int) -> Iterator[tuple[int, int]]:
    one, other = pairing.base, pairing.target
    target_of, base_of = pairing.target_of, pairing.base_of
    mine, its = one.inputs(base), other.inputs(target)
    pairing.work += len(mine) + 1
    if one.commutative[base] and other.commutative[target]:
        mine = [code for code in mine if code >= 0 and target_of[code >> SHIFT] == UNMATCHED]
        its = [code for code in its if code >= 0 and base_of[code >> SHIFT] == UNMATCHED]
        if len(mine) * len(its) > _MOST_TAKERS:
            mine, its = mine[:_MOST_TAKERS], its[:_MOST_TAKERS]
            yield from _open(zip(mine, its, strict=False))
            return
        yield from _matching(pairing, mine, its)
        return
    yield from _open(
        (code, there)
        for code, there in zip(mine, its, strict=False)
        if code >= 0 and there >= 0 and target_of[code >> SHIFT] == UNMATCHED == base_of[there >> SHIFT]
    )


def _open(codes: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for code, there in codes:
        if not (code ^ there) & SLOT:
            yield code >> SHIFT, there >> SHIFT


def _matching(pairing: Pairing, mine: list[int], its: list[int]) -> Iterator[tuple[int, int]]:
    """Of inputs in any order, those that only one input of the other side can be the counterpart of."""
    labels, its_labels = pairing.base.labels, pairing.target.labels
    if len(mine) == len(its) == 2 and labels[mine[0] >> SHIFT] == labels[mine[1] >> SHIFT]:
        # Two of a kind: which is which, their surroundings may say; else the order of the inputs does.
        if _fit(pairing, mine, its[::-1]) > _fit(pairing, mine, its):
            its = its[::-1]
        yield from _open(zip(mine, its, strict=True))
        return
    for code in mine:
        label = labels[code >> SHIFT]
        fitting = [there for there in its if its_labels[there >> SHIFT] == label and not (code ^ there) & SLOT]
        same = [each for each in mine if labels[each >> SHIFT] == label]
        if len(fitting) == 1 == len(same):
            yield code >> SHIFT, fitting[0] >> SHIFT


def _fit(pairing: Pairing, mine: list[int], its: list[int]) -> tuple[int, int]:
    """How well values at the same place of two lists fit: known neighbours first, then likeness."""
    known = like = 0
    for code, there in zip(mine, its, strict=True):
        agree, contradict = pairing.judge(code >> SHIFT, there >> SHIFT)
        known += agree - contradict
        like += pairing.likeness(code >> SHIFT, there >> SHIFT)
    return known, like


def _consumers(pairing: Pairing, base: int, target: int) -> Iterator[tuple[int, int]]:
    one, other = pairing.base, pairing.target
    begin, end = one.begins[base], one.begins[base + 1]
    its_begin, its_end = other.begins[target], other.begins[target + 1]
    pairing.work += 1
    if end == begin or its_end == its_begin:
        return
    mine = _open_takers(one, begin, end, pairing.target_of)
    if not mine or len(mine) > _MOST_TAKERS:
        return
    its = _open_takers(other, its_begin, its_end, pairing.base_of)
    if not its or len(its) > _MOST_TAKERS:
        return
    pairing.work += len(mine) + len(its)
    for key, taker in mine.items():
        there = its.get(key)
        if taker != _SEVERAL and there is not None and there != _SEVERAL:
            yield taker, there


_SEVERAL: Final = -1


def _open_takers(side: Side, begin: int, end: int, partners: Sequence[int]) -> dict[tuple[int, int], int]:
    """The consumers without a pair, by port and label; `_SEVERAL` where there is more than one."""
    takers, ports, labels = side.takers, side.taker_ports, side.labels
    found: dict[tuple[int, int], int] = {}
    for place in range(begin, end):
        taker = takers[place]
        if partners[taker] == UNMATCHED:
            key = ports[place], labels[taker]
            found[key] = _SEVERAL if key in found and found[key] != taker else taker
            if len(found) > _MOST_TAKERS:
                break
    return found
