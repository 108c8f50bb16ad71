"""Find values inside regions of unpaired nodes at which a rewrite ends and the next one begins.

Two values correspond if the nodes before them, up to the border of the region, use the same weights, pairs and inputs,
and the nodes after them use more: ``Conv+Relu+Conv+Relu`` and two FusedConv are two rewrites, not one. Where a value is
reshaped at such a place, its type, or a name that was kept, decides which of its shapes the other graph has.
"""

from collections.abc import Sequence
from typing import Final

from onnxjson.diffing.matching.columns import SHIFT, SLOT
from onnxjson.diffing.matching.pairing import GraphLists, NodePairing
from onnxjson.diffing.matching.similarity import unpaired_regions
from onnxjson.model.index import Index

_MOST: Final = 1_000
"""Maximum number of nodes of one side of a region that is divided."""

_RESHAPING: Final = frozenset({"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Cast"})
"""Operators that keep the elements."""

_Sources = frozenset[int]
"""Codes of constants and inputs of the graph, and numbers of pairs."""


def find_cuts(pairing: NodePairing) -> dict[str, str]:
    """Return names of values of the base -> names of the values of the target that correspond."""
    constants = pairing.base.columns.constant_codes
    cuts: dict[str, str] = {}
    for mine, its in unpaired_regions(pairing):
        if len(mine) > 1 and its and len(mine) + len(its) > 3 and max(len(mine), len(its)) <= _MOST:
            sides = _Side(pairing, mine, is_base=True), _Side(pairing, its, is_base=False)
            ends, its_ends = [side.ends(sides[0].used & sides[1].used) for side in sides]
            for sources, values in ends.items():
                if sources in its_ends and not sources.isdisjoint(constants):
                    found = _same_value(pairing, values, its_ends[sources])
                    if found is not None:
                        cuts[found[0]] = found[1]
    return cuts


def _same_value(pairing: NodePairing, values: list[str], others: list[str]) -> tuple[str, str] | None:
    """Return the values that have the same name or type, or are the only ones; None if that decides nothing."""
    scope, its_scope = pairing.base.columns.scope, pairing.target.columns.scope
    for name in values:
        if name in others:
            return name, name
    types = {name: Index.type_of(scope, name) for name in values}
    its_types = {name: Index.type_of(its_scope, name) for name in others}
    if any(types.values()) and any(its_types.values()):
        same = [(name, other) for name in values for other in others if types[name] == its_types[other] is not None]
        return same[0] if len(same) == 1 else None
    return (values[0], others[0]) if len(values) == len(others) == 1 else None


class _Side:
    """The nodes of a region in one graph."""

    def __init__(self, pairing: NodePairing, nodes: Sequence[int], *, is_base: bool) -> None:
        self._lists: GraphLists = pairing.base if is_base else pairing.target
        self._partners = pairing.target_of if is_base else pairing.base_of
        self._nodes = set(nodes)
        self._is_base = is_base
        self._own = {node: self._sources(node) for node in nodes}
        self.used: _Sources = frozenset().union(*self._own.values())

    def _sources(self, node: int) -> _Sources:
        found = set()
        for code in self._lists.inputs(node):
            if code < -1:
                found.add(code)
            elif code >= 0 and code >> SHIFT not in self._nodes:
                producer = code >> SHIFT if self._is_base else self._partners[code >> SHIFT]
                found.add(producer << SHIFT | (code & SLOT))
        return frozenset(found)

    def ends(self, common: _Sources) -> dict[_Sources, list[str]]:
        """Return common sources -> the last value that has them, up to reshaping, before others that have more."""
        before: dict[int, _Sources] = {}
        for node in self._in_order():
            inner = [code >> SHIFT for code in self._lists.inputs(node) if code >= 0 and code >> SHIFT in self._nodes]
            before[node] = (self._own[node] & common).union(*[before[each] for each in inner if each in before])
        found: dict[_Sources, list[list[str]]] = {}
        for node, sources in before.items():
            begin, end = self._lists.begins[node], self._lists.begins[node + 1]
            consumers = self._lists.consumers[begin:end]
            slots = {port >> SHIFT for port in self._lists.consumer_ports[begin:end]}
            inside = [before[each] for each in consumers if each in before]
            if sources and len(slots) == 1 and len(inside) == len(consumers) and any(s != sources for s in inside):
                found.setdefault(sources, []).append(self._reshaped(node, slots.pop()))
        return {
            sources: [name for name in ways[0] if all(name in way for way in ways)] for sources, ways in found.items()
        }

    def _reshaped(self, node: int, slot: int) -> list[str]:
        """Return the value of a node and, if it only reshapes another value of the region, those before it."""
        nodes = self._lists.columns.nodes
        values = [nodes[node].output[slot]]
        while nodes[node].op_type in _RESHAPING:
            code = self._lists.inputs(node)[0]
            if code < 0 or code >> SHIFT not in self._nodes:
                break
            node = code >> SHIFT
            values.append(nodes[node].output[code & SLOT])
        return values

    def _in_order(self) -> list[int]:
        """Return the nodes, each after its producers in the region."""
        state: dict[int, bool] = {}
        order = []
        for root in sorted(self._nodes):
            pending = [root]
            while pending:
                node = pending[-1]
                if node in state:
                    pending.pop()
                    if not state[node]:
                        state[node] = True
                        order.append(node)
                    continue
                state[node] = False
                inner = [code >> SHIFT for code in self._lists.inputs(node) if code >= 0]
                pending += [each for each in inner if each in self._nodes and each not in state]
        return order
