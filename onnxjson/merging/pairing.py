"""Pairs of nodes and values of the base and of one side, as a merge sees them.

The matcher compares structure, and uses names only between equal candidates. `graph_matches` corrects its pairs: both
sides descend from the base, so an unchanged name is evidence if nearly all names of a side are unchanged.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from onnxjson.diffing.matching.alignment import UNMATCHED, Alignment, GraphPair, pair_by_names, pair_outputs
from onnxjson.diffing.matching.contents import constant_content, content
from onnxjson.model.constants import constant_outputs, is_constant_node, own_constant
from onnxjson.model.document import Node, SparseTensor
from onnxjson.model.index import Scope

_DISTRUST: Final = 0.1
"""Share of renamed pairs above which equal names do not make two values a pair."""

_FEW: Final = 2
"""Number of renamed pairs that is always tolerated."""


class GraphMatch:
    """A graph of the base and its counterpart.

    Attributes:
        target_of: for each node of the base the position of its counterpart, or `UNMATCHED`.
        base_of: the inverse of `target_of`.
        values: names of the base -> names of the side, one to one.
    """

    def __init__(self, pair: GraphPair, is_trusted: bool) -> None:
        self.base = pair.base
        self.target = pair.target
        self.target_of = list(pair.target_of)
        self.base_of = list(pair.base_of)
        self.values = dict(pair.values)
        self.names = {other: name for name, other in self.values.items()}
        if is_trusted:
            self._prefer_names()
        for name, other in list(self._replacements()):
            self._add(name, other)
        self._pair_left_constants()
        if is_trusted:
            for name in [each for each in self.base.defined_names if each not in self.values]:
                if self.target.defines(name):
                    self._add(name, name)
            self._pair_constants()
        self._pair_replaced()

    def _pair_replaced(self) -> None:
        """Pair nodes without a counterpart that produce the same values: one replaces the other."""
        for position in [place for place, partner in enumerate(self.target_of) if partner < 0]:
            outputs = self.base.graph.node[position].output
            producer = self.target.producers.get(self.values.get(outputs[0], "")) if outputs else None
            if producer is None or self.base_of[producer[0]] >= 0:
                continue
            target_outputs = self.target.graph.node[producer[0]].output
            if len(target_outputs) == len(outputs) and all(
                [self.values.get(name, name) == other for name, other in zip(outputs, target_outputs, strict=True)]
            ):
                self.target_of[position], self.base_of[producer[0]] = producer[0], position

    def _add(self, name: str, other: str) -> None:
        if name not in self.values and other not in self.names:
            self.values[name] = other
            self.names[other] = name

    def _drop(self, name: str) -> None:
        other = self.values.pop(name, None)
        if other is not None:
            del self.names[other]

    def _prefer_names(self) -> None:
        """Pair a node with the one that has its name if that is at least as similar as its counterpart."""
        base, target = self.base, self.target
        owners = base.bodies
        for position, partner in enumerate(self.target_of):
            node = base.graph.node[position]
            name = node.output[0] if node.output else ""
            if partner < 0 or not name or position in owners or target.graph.node[partner].output == node.output:
                continue
            producer = target.producers.get(name)
            if producer is None or self.base_of[producer[0]] >= 0 or producer[1]:
                continue
            other = target.graph.node[producer[0]]
            is_alike = (other.op_type, other.domain, other.output) == (node.op_type, node.domain, node.output)
            if other == node or (
                is_alike and self._agreement(position, producer[0]) >= self._agreement(position, partner)
            ):
                self.target_of[position] = producer[0]
                self.base_of[producer[0]], self.base_of[partner] = position, UNMATCHED
                for output in node.output:
                    self._drop(output)
                for output in node.output:
                    self._add(output, output)
        for name in [name for name, other in self.values.items() if name != other]:
            if name not in self.names and _is_same_constant(base, target, name):
                self._drop(name)
                self._add(name, name)

    def _pair_constants(self) -> None:
        for name in constant_outputs(self.base):
            position, _ = self.base.producers[name]
            producer = self.target.producers.get(self.values.get(name, ""))
            partner = UNMATCHED if producer is None else producer[0]
            if partner >= 0 and self.base_of[partner] < 0 and is_constant_node(self.target.graph.node[partner]):
                if self.target_of[position] >= 0:
                    self.base_of[self.target_of[position]] = UNMATCHED
                self.target_of[position], self.base_of[partner] = partner, position

    def _agreement(self, position: int, partner: int) -> int:
        """Number of inputs and consumers of two nodes that are pairs."""
        node, other = self.base.graph.node[position], self.target.graph.node[partner]
        count = sum(map(self._is_pair, node.input, other.input))
        for output, target_output in zip(node.output, other.output, strict=False):
            target_uses = set(self.target.uses(target_output))
            for consumer, slot in self.base.uses(output):
                if consumer is not None and (self.target_of[consumer], slot) in target_uses:
                    count += 1
        return count

    def _is_pair(self, name: str, other: str) -> bool:
        if self.values.get(name, name) == other:
            return True
        return _is_same_constant(self.base, self.target, name, other)

    def _pair_left_constants(self) -> None:
        """Pair the remaining constants with equal elements: by name first, then in order."""
        base_names = [name for name in _constants(self.base) if name not in self.values]
        target_names = [name for name in _constants(self.target) if name not in self.names]
        if not base_names or not target_names:
            return
        for name in base_names:
            if name in target_names and _is_same_constant(self.base, self.target, name):
                self._add(name, name)
        left: dict[object, list[str]] = {}
        for name in target_names:
            if name not in self.names:
                left.setdefault(_content(self.target, name), []).append(name)
        for name in base_names:
            if name not in self.values and (names := left.get(_content(self.base, name))):
                self._add(name, names.pop(0))
        self._pair_constants()

    def _replacements(self) -> Iterator[tuple[str, str]]:
        """Values of nodes without a counterpart that all paired nodes consume at the same input."""
        produced = _produced_by(self.base, self.target_of)
        target_produced = _produced_by(self.target, self.base_of)
        if not produced or not target_produced:
            return
        outputs = pair_outputs(self.base, self.target)
        rivals: dict[str, set[str]] = {}
        for name in produced:
            values = {self._consumed_there(position, slot, outputs) for position, slot in self.base.uses(name)} - {None}
            if len(values) == 1 and (other := values.pop()) is not None and other in target_produced:
                rivals.setdefault(other, set()).add(name)
        for other, candidates in rivals.items():
            if len(candidates) == 1:
                yield candidates.pop(), other

    def _consumed_there(self, position: int | None, slot: int, outputs: dict[int, int]) -> str | None:
        """Return the value that the counterpart of a consumer consumes; None without a counterpart."""
        if position is None:
            return (self.target.output_names[outputs[slot]] or "") if slot in outputs else ""
        partner = self.target_of[position]
        if partner < 0:
            return None
        inputs = self.target.graph.node[partner].input
        return inputs[slot] if slot < len(inputs) else ""


def graph_matches(alignment: Alignment) -> list[GraphMatch]:
    """Return the corrected pairs of the graphs of an alignment."""
    graphs = alignment.graphs
    # Equal constants are paired arbitrarily, so their names are not evidence.
    renamed = sum([_computed(pair, [name for name, other in pair.values.items() if name != other]) for pair in graphs])
    is_trusted = renamed <= _FEW or renamed <= _DISTRUST * sum([_computed(pair, pair.values) for pair in graphs])
    matches = [GraphMatch(pair, is_trusted) for pair in graphs]
    known = {match.base.address for match in matches}
    targets = alignment.target.by_address
    for match in matches:
        # The list grows during the loop by the graphs of nodes that only this merge pairs.
        matches += [GraphMatch(pair, is_trusted) for pair in _inner_pairs(match, known, targets)]
    return matches


def _inner_pairs(match: GraphMatch, known: Collection[str], targets: Mapping[str, Scope]) -> Iterator[GraphPair]:
    for child in match.base.children:
        if child.owner is None or child.address in known:
            continue
        there = match.target_of[child.owner.position]
        other = targets.get(f"{match.target.address}/node/{there}{child.address[len(child.owner.address) :]}")
        pair = None if there < 0 or other is None else pair_by_names(child, other)
        if pair is not None:
            yield pair


def _computed(pair: GraphPair, names: Iterable[str]) -> int:
    """Return the number of values of the base that nodes compute."""
    nodes, producers = pair.base.graph.node, pair.base.producers
    return sum([name in producers and not is_constant_node(nodes[producers[name][0]]) for name in names])


def _produced_by(scope: Scope, partners: list[int]) -> dict[str, None]:
    nodes = scope.graph.node
    return {name: None for place, node in enumerate(nodes) if partners[place] < 0 for name in node.output if name}


def _constants(scope: Scope) -> list[str]:
    return [*scope.initializers, *constant_outputs(scope)]


def _is_same_constant(base: Scope, target: Scope, name: str, other: str | None = None) -> bool:
    base_content, target_content = _content(base, name), _content(target, name if other is None else other)
    return base_content is not None and base_content == target_content


def _content(scope: Scope, name: str) -> object:
    constant = own_constant(scope, name)
    if constant is None or isinstance(constant.held, SparseTensor):
        return None
    return constant_content(constant.held, content) if isinstance(constant.held, Node) else content(constant.held)
