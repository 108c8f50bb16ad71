"""The pairs found so far between the nodes of two graphs, and what speaks for or against another one."""

from array import array
from typing import Final

import numpy as np
from numpy.typing import NDArray

from onnxjson.matching.alignment import UNMATCHED
from onnxjson.matching.columns import EMPTY, REAL, SHIFT, SLOT, Columns, Integers, Words

MOST_INPUTS: Final = 256
"""Of a node with more inputs no more are looked at to judge a pair."""
MOST_CONSUMERS: Final = 64
"""Of a value with more consumers none is looked at to judge a pair."""


class Side:
    """What loops ask of one graph, as lists."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.codes = columns.code_list
        self.starts = columns.start_list
        self.labels: list[int] = columns.label.tolist()
        self.operators: list[int] = columns.operator.tolist()
        self.commutative: list[bool] = columns.commutative.tolist()
        self.explicit = columns.explicit
        edges, begins = columns.edges_by_producer
        self.takers: list[int] = columns.consumer[edges].tolist()
        """The consumers of the values of each node, in the order of `begins`."""
        self.taker_ports: list[int] = (
            (columns.codes[edges] & SLOT) << SHIFT
            | np.where(columns.commutative[columns.consumer[edges]], 0, columns.slot[edges])
        ).tolist()
        """Output slot and input slot of each of `takers`; commutative inputs are all input 0."""
        self.begins: list[int] = begins.tolist()
        self.feeds: dict[int, list[int]] = {}
        """Node -> the outputs of the graph that it makes, as output slot and position."""
        for position, code in enumerate(columns.output_codes):
            if code >= 0:
                self.feeds.setdefault(code >> SHIFT, []).append((code & SLOT) << SHIFT | position)

    def inputs(self, position: int) -> list[int]:
        """The codes of the inputs that a node itself has."""
        start = self.starts[position]
        end = self.starts[position + 1]
        count = self.explicit.get(position)
        return self.codes[start : end if count is None else start + count]


class Pairing:
    """The pairs between two graphs.

    Attributes:
        target_of: for each base node its counterpart, or UNMATCHED.
        base_of: the inverse.
        targets, bases: int64, the same memory as arrays; below 0 where there is no counterpart.
        work: steps counted so far; `allowed` is how many there may be.
    """

    def __init__(self, base: Columns, target: Columns, outputs: dict[int, int], allowed: int) -> None:
        self.base = Side(base)
        self.target = Side(target)
        self.outputs = outputs
        """Positions of the base graph's outputs -> those of their counterparts."""
        self.target_of = array("q", [UNMATCHED]) * len(base)
        self.base_of = array("q", [UNMATCHED]) * len(target)
        self.targets: Integers = np.frombuffer(self.target_of, np.int64)
        self.bases: Integers = np.frombuffer(self.base_of, np.int64)
        self.work = 0
        self.allowed = allowed
        self.contexts: list[tuple[Words, Words]] = []
        """For radius 1 on, the labels of both sides, uint64 [nodes] (`onnxjson.matching.labels`)."""
        self.fresh: list[tuple[int, int]] = []
        """Pairs whose neighbours nobody has looked at yet."""
        self.targets[base.kind != REAL] = NO_PART
        self.bases[target.kind != REAL] = NO_PART

    @property
    def is_exhausted(self) -> bool:
        """Whether no more steps are allowed."""
        return self.work > self.allowed

    def pair(self, base: int, target: int) -> None:
        """Make a pair of two nodes that have none."""
        self.target_of[base] = target
        self.base_of[target] = base
        self.fresh.append((base, target))

    def pair_all(self, bases: Integers, targets: Integers) -> None:
        """Make pairs of the nodes at the same place of two lists, those that have none; nobody is named twice."""
        is_open = (self.targets[bases] == UNMATCHED) & (self.bases[targets] == UNMATCHED)
        self.targets[bases[is_open]] = targets[is_open]
        self.bases[targets[is_open]] = bases[is_open]

    def unmatched(self) -> tuple[Integers, Integers]:
        """The nodes of both sides that are in no pair."""
        return np.nonzero(self.targets == UNMATCHED)[0], np.nonzero(self.bases == UNMATCHED)[0]

    def likeness(self, base: int, target: int) -> int:
        """Up to which radius the surroundings of two nodes are the same."""
        for radius in range(len(self.contexts), 0, -1):
            mine, its = self.contexts[radius - 1]
            if mine[base] == its[target]:
                return radius
        return 0

    def judge(self, base: int, target: int) -> tuple[int, int]:
        """How many neighbours, slot by slot, are a pair (or the same constant); how many are in pairs with others."""
        one, other = self.base, self.target
        target_of, base_of = self.target_of, self.base_of
        agree = contradict = 0
        base_codes, target_codes = one.inputs(base)[:MOST_INPUTS], other.inputs(target)[:MOST_INPUTS]
        if one.commutative[base]:
            mapped = sorted([self._mapped(code) for code in base_codes])
            there = sorted([code if code < 0 or base_of[code >> SHIFT] >= 0 else _OPEN for code in target_codes])
            for code in mapped:
                if code == _OPEN:
                    continue
                if code in there:
                    there.remove(code)
                    agree += 1
                elif _OPEN in there:
                    there.remove(_OPEN)
                    contradict += code >= 0
                else:
                    contradict += code >= 0
        else:
            for mine, its in zip(base_codes, target_codes, strict=False):
                if mine < 0 or its < 0:
                    agree += mine == its and mine != EMPTY
                    continue
                partner = target_of[mine >> SHIFT]
                if partner >= 0:
                    if partner == its >> SHIFT and (mine ^ its) & SLOT == 0:
                        agree += 1
                    else:
                        contradict += 1
                elif base_of[its >> SHIFT] >= 0:
                    contradict += 1
        more_agree, more_contradict = self._judge_consumers(base, target)
        self.work += len(base_codes) + 2
        return agree + more_agree, contradict + more_contradict

    def _mapped(self, code: int) -> int:
        if code < 0:
            return code
        partner = self.target_of[code >> SHIFT]
        return partner << SHIFT | (code & SLOT) if partner >= 0 else _OPEN

    def _judge_consumers(self, base: int, target: int) -> tuple[int, int]:
        one, other = self.base, self.target
        begin, end = one.begins[base], one.begins[base + 1]
        its_begin, its_end = other.begins[target], other.begins[target + 1]
        if end - begin > MOST_CONSUMERS or its_end - its_begin > MOST_CONSUMERS:
            return 0, 0
        agree = contradict = 0
        takers, ports = other.takers[its_begin:its_end], other.taker_ports[its_begin:its_end]
        for place in range(begin, end):
            partner = self.target_of[one.takers[place]]
            if partner >= 0:
                port = one.taker_ports[place]
                if any(taker == partner and its_port == port for taker, its_port in zip(takers, ports, strict=True)):
                    agree += 1
                else:
                    contradict += 1
        for taker in takers:
            partner = self.base_of[taker]
            if partner >= 0 and partner not in one.takers[begin:end]:
                contradict += 1
        feeds = other.feeds.get(target, ())
        for feed in one.feeds.get(base, ()):
            position = self.outputs.get(feed & SLOT)
            if position is not None:
                if (feed >> SHIFT) << SHIFT | position in feeds:
                    agree += 1
                else:
                    contradict += 1
        self.work += end - begin + its_end - its_begin
        return agree, contradict


NO_PART: Final = -2
"""What stands in `Pairing.target_of` and `base_of` for constants and aliases, which are no part of the matching."""
_OPEN: Final = 1 << 60
"""What stands for an input whose maker is in no pair."""


def unique_pairs(
    base: NDArray[np.generic], target: NDArray[np.generic], bases: Integers, targets: Integers
) -> tuple[Integers, Integers]:
    """The nodes whose label nobody else has on either side, as two lists in the same order.

    Args:
        base: labels of `bases`, same length.
        target: labels of `targets`, same length.
        bases: positions of nodes.
        targets: positions of nodes.
    """
    known, first, counts = np.unique(base, return_index=True, return_counts=True)
    its_known, its_first, its_counts = np.unique(target, return_index=True, return_counts=True)
    single, its_single = counts == 1, its_counts == 1
    _, here, there = np.intersect1d(known[single], its_known[its_single], assume_unique=True, return_indices=True)
    return bases[first[single][here]], targets[its_first[its_single][there]]
