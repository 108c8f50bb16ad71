"""Find values inside regions of unpaired nodes at which a rewrite ends and the next one begins.

Two values correspond if the nodes before them, up to the border of the region, use the same weights, pairs and inputs,
and the nodes after them use more: ``Conv+Relu+Conv+Relu`` and two FusedConv are two rewrites, not one. Where a value is
reshaped at such a place, its type, or a name that was kept, decides which of its shapes the other graph has.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from onnxjson.diffing.matching.columns import SHIFT, SLOT
from onnxjson.diffing.matching.pairing import GraphLists, NodePairing
from onnxjson.diffing.matching.repairing import names_lie
from onnxjson.diffing.matching.similarity import unpaired_regions
from onnxjson.model.index import Index
from onnxjson.model.operators import plain_domain

_MOST: Final = 1_000
"""Maximum number of nodes of one side of a region that is divided."""

_RESHAPING: Final = frozenset({"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Cast"})
"""Operators that keep the elements."""

_Sources = frozenset[int | tuple[int, int]]
"""Codes of constants and inputs of the graph, and numbers of pairs; codes of shared constants with their uses."""

_Key = tuple[_Sources, frozenset[tuple[int, int]]]
"""The sources of a value and, where a rewrite may end, the slots and codes of the constants of its consumers."""


def find_cuts(pairing: NodePairing, *, names: bool) -> dict[str, str]:
    """Return names of values of the base -> names of the values of the target that correspond.

    With `names`, equal names are evidence if the pairs agree with them.
    """
    constants = pairing.base.columns.constant_codes
    are_trusted = names and not names_lie(pairing)
    cuts: dict[str, str] = {}
    for bases, targets in unpaired_regions(pairing):
        if len(bases) > 1 and targets and len(bases) + len(targets) > 3 and max(len(bases), len(targets)) <= _MOST:
            side, other = _Side(pairing, bases, is_base=True), _Side(pairing, targets, is_base=False)
            common = side.used & other.used
            shared = side.shared | other.shared
            for region in (side, other):
                region.trace(common, shared)
            values_of_sides = [(side.births(), other.births()), (side.ends(), other.ends())]
            for places, target_places in values_of_sides:
                for key, values in places.items():
                    if key in target_places and (not key[0].isdisjoint(constants) or key[1]):
                        ways = values, target_places[key]
                        is_clear = all(
                            len(way) == 1 or way[0] in one.clear for way, one in zip(ways, (side, other), strict=True)
                        )
                        pair = _same_value(pairing, *ways, is_clear=is_clear, names=are_trusted)
                        if pair is not None:
                            cuts[pair[0]] = pair[1]
            if are_trusted:
                inner, target_inner = side.inner(), other.inner()
                cuts.update({name: name for name, sources in inner.items() if target_inner.get(name) == sources})
    return cuts


def _same_value(
    pairing: NodePairing, values: list[str], others: list[str], *, is_clear: bool, names: bool
) -> tuple[str, str] | None:
    """Return the values that have the same name or type, else the first ones; None if that decides nothing."""
    scope, target_scope = pairing.base.columns.scope, pairing.target.columns.scope
    for name in values if names else ():
        if name in others:
            return name, name
    types = {name: Index.type_of(scope, name) for name in values}
    target_types = {name: Index.type_of(target_scope, name) for name in others}
    if any(types.values()) and any(target_types.values()):
        same = [(name, other) for name in values for other in others if types[name] == target_types[other] is not None]
        return same[0] if len(same) == 1 else None
    return (values[0], others[0]) if values and others and is_clear else None


class _Side:
    """The nodes of a region in one graph."""

    def __init__(self, pairing: NodePairing, nodes: Sequence[int], *, is_base: bool) -> None:
        self._lists: GraphLists = pairing.base if is_base else pairing.target
        self._partners = pairing.target_of if is_base else pairing.base_of
        self._nodes = set(nodes)
        self._is_base = is_base
        self._own = {node: self._sources(node) for node in nodes}
        uses = Counter([code for sources in self._own.values() for code in sources])
        self.used = frozenset(uses)
        self.shared = {code for code, count in uses.items() if code < -1 and count > 1}
        """Constants that several nodes use: weights that are equal, such as biases of zeros."""
        self._before: dict[int, _Sources] = {}
        self.clear: set[str] = set()
        """Values that, of those that are equal up to reshaping, have the shape of their counterpart."""

    def _sources(self, node: int) -> frozenset[int]:
        sources = set()
        for code in self._lists.inputs(node):
            if code < -1:
                sources.add(code)
            elif code >= 0 and code >> SHIFT not in self._nodes:
                producer = code >> SHIFT if self._is_base else self._partners[code >> SHIFT]
                sources.add(producer << SHIFT | (code & SLOT))
        return frozenset(sources)

    def trace(self, common: frozenset[int], shared: set[int]) -> None:
        """Find the common sources of each node, with the number of uses of shared constants."""
        above: dict[int, int] = {}
        sources: dict[int, frozenset[int]] = {}
        users = dict.fromkeys(shared & common, 0)
        for place, node in enumerate(self._in_order()):
            above[node] = 1 << place
            sources[node] = self._own[node] & common
            for code in self._own[node] & users.keys():
                users[code] |= above[node]
            for producer in self._producers(node):
                above[node] |= above.get(producer, 0)
                sources[node] |= sources.get(producer, frozenset())
            uses = [(code, (above[node] & nodes).bit_count()) for code, nodes in users.items()]
            self._before[node] = sources[node].union([use for use in uses if use[1]])

    def _producers(self, node: int) -> list[int]:
        return [code >> SHIFT for code in self._lists.inputs(node) if code >= 0 and code >> SHIFT in self._nodes]

    def _inner_value(self, node: int) -> tuple[int, list[int]] | None:
        """Return the output slot and the consumers of a node with one consumed output, if all are in the region."""
        begin, end = self._lists.begins[node], self._lists.begins[node + 1]
        consumers = self._lists.consumers[begin:end]
        slots = {port >> SHIFT for port in self._lists.consumer_ports[begin:end]}
        is_inner = len(slots) == 1 and self._before.keys() >= set(consumers) and node not in self._lists.feeds
        return (slots.pop(), consumers) if is_inner else None

    def inner(self) -> dict[str, _Sources]:
        """Return the values that only nodes of the region consume, with their sources."""
        nodes = self._lists.columns.nodes
        found = {node: self._inner_value(node) for node in self._before}
        return {nodes[node].output[value[0]]: self._before[node] for node, value in found.items() if value}

    def ends(self) -> dict[_Key, list[str]]:
        """Return common sources -> the last value that has them, up to reshaping, before others that have more."""
        by_key: dict[_Key, list[list[str]]] = {}
        for node, sources in self._before.items():
            value = self._inner_value(node)
            if sources and value and any(self._before[each] != sources for each in value[1]):
                anchors = [self._anchors(each, sources) for each in value[1]]
                key = frozenset[tuple[int, int]]()
                if sources.isdisjoint(self._lists.columns.constant_codes):
                    key = key.union(*anchors)
                by_key.setdefault((sources, key), []).append(self._reshaped(node, value[0]))
        common = {key: [name for name in ways[0] if all(name in way for way in ways)] for key, ways in by_key.items()}
        return {key: names for key, names in common.items() if names}

    def _anchors(self, node: int, sources: _Sources) -> Iterator[tuple[int, int]]:
        """Yield the slots and codes of the common constants that a node adds to some sources."""
        for slot, code in enumerate(self._lists.inputs(node)):
            if code < -1 and code in self._before[node] and code not in sources:
                yield slot, code

    def births(self) -> dict[_Key, list[str]]:
        """Return common sources -> the first value that has them, up to reshaping, if others with the same follow.

        An operator of ONNX computes this value from its weights alone; an activation follows as a node of its own.
        """
        nodes = self._lists.columns.nodes
        by_key: dict[_Key, list[list[str]]] = {}
        for node, sources in self._before.items():
            if any(self._before[producer] == sources for producer in self._producers(node)):
                continue
            ways: list[str] = []
            place, value = node, self._inner_value(node)
            while value:
                ways.append(nodes[place].output[value[0]])
                if len(value[1]) > 1 or nodes[value[1][0]].op_type not in _RESHAPING:
                    break
                place, value = value[1][0], self._inner_value(value[1][0])
            is_followed = value and any(self._before[producer] == sources for producer in value[1])
            is_plain = is_followed and not plain_domain(nodes[node].domain)
            by_key.setdefault((sources, frozenset()), []).append(self._known(node, ways[::-1]) if is_plain else [])
        return {key: ways[0] for key, ways in by_key.items() if len(ways) == 1 and ways[0]}

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
        return self._known(node, values)

    def _known(self, node: int, values: list[str]) -> list[str]:
        """Order the value of a node (the last one) and its reshaped ones; the first has the shape of its counterpart.

        Gemm needs inputs of two axes: in ``Reshape+Gemm+Reshape``, the second Reshape undoes the first.
        """
        nodes = self._lists.columns.nodes
        if nodes[node].op_type != "Gemm":
            values = [values[-1], *values[:-1]]
        elif not any(nodes[each].op_type in _RESHAPING for each in self._producers(node)):
            return values
        self.clear.add(values[0])
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
                pending += [each for each in self._producers(node) if each not in state]
        return order
