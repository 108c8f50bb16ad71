"""Which node and which value of one side is which of the base, as a merge sees it.

The matcher goes by structure, and lets names decide only between candidates that are equal. A merge knows more: both
sides come from the base, so that where nearly all names of a side are kept, a name that is kept says something.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from onnxjson.edits.renaming import defined
from onnxjson.index import Scope
from onnxjson.matching.alignment import UNMATCHED, Alignment, GraphPair
from onnxjson.matching.contents import constant_content, content, is_constant
from onnxjson.matching.interface import pair_outputs
from onnxjson.merging.by_names import pair_by_names

_DISTRUST: Final = 0.1
"""The share of pairs that have other names from which on a name alone does not say that two values are one."""

_FEW: Final = 2
"""So many pairs with other names say nothing of the others."""


class GraphMatch:
    """Two graphs that are one.

    Attributes:
        base: the graph of the base.
        target: that of the side.
        target_of: for each node of the base the position of its counterpart, or `UNMATCHED`.
        base_of: the inverse.
        values: names of the base -> names of the side, one to one.
    """

    def __init__(self, pair: GraphPair, is_trusted: bool) -> None:
        self.base = pair.base
        self.target = pair.target
        self.target_of = list(pair.target_of)
        self.base_of = list(pair.base_of)
        self.values = dict(pair.values)
        self._taken = {other: name for name, other in self.values.items()}
        if is_trusted:
            self._prefer_names()
        for name, other in list(self._stand_ins()):
            self._add(name, other)
        self._pair_left_constants()
        if is_trusted:
            theirs = defined(self.target)
            for name in defined(self.base):
                if name in theirs:
                    self._add(name, name)
            self._pair_constants()
        self._pair_replaced()

    def _pair_replaced(self) -> None:
        """Nodes without a counterpart that make the same values: one stands in the place of the other."""
        for position, there in enumerate(self.target_of):
            outputs = self.base.graph.node[position].output
            maker = self.target.makers.get(self.values.get(outputs[0], "")) if there < 0 and outputs else None
            if maker is None or self.base_of[maker[0]] >= 0:
                continue
            its = self.target.graph.node[maker[0]].output
            if len(its) == len(outputs) and all(
                [self.values.get(name, name) == other for name, other in zip(outputs, its, strict=True)]
            ):
                self.target_of[position], self.base_of[maker[0]] = maker[0], position

    def _add(self, name: str, other: str) -> None:
        if name not in self.values and other not in self._taken:
            self.values[name] = other
            self._taken[other] = name

    def _drop(self, name: str) -> None:
        other = self.values.pop(name, None)
        if other is not None:
            del self._taken[other]

    def _prefer_names(self) -> None:
        """Where a node kept its name and is as much like the one of that name as like its counterpart, that is it."""
        base, target = self.base, self.target
        owners = {child.owner.position for child in base.children if child.owner is not None}
        for position, there in enumerate(self.target_of):
            node = base.graph.node[position]
            name = node.output[0] if node.output else ""
            if there < 0 or not name or position in owners or target.graph.node[there].output == node.output:
                continue
            maker = target.makers.get(name)
            if maker is None or self.base_of[maker[0]] >= 0 or maker[1]:
                continue
            other = target.graph.node[maker[0]]
            is_alike = (other.op_type, other.domain, other.output) == (node.op_type, node.domain, node.output)
            if other == node or (is_alike and self._agreement(position, maker[0]) >= self._agreement(position, there)):
                self.target_of[position] = maker[0]
                self.base_of[maker[0]], self.base_of[there] = position, UNMATCHED
                for each in node.output:
                    self._drop(each)
                for each in node.output:
                    self._add(each, each)
        for name in [name for name, other in self.values.items() if name != other]:
            if name not in self._taken and _is_same_constant(base, target, name):
                self._drop(name)
                self._add(name, name)

    def _pair_constants(self) -> None:
        """Constant nodes follow the values that they make."""
        for name, (position, _) in self.base.makers.items():
            if not is_constant(self.base.graph.node[position]):
                continue
            maker = self.target.makers.get(self.values.get(name, ""))
            there = UNMATCHED if maker is None else maker[0]
            if there >= 0 and self.base_of[there] < 0 and is_constant(self.target.graph.node[there]):
                if self.target_of[position] >= 0:
                    self.base_of[self.target_of[position]] = UNMATCHED
                self.target_of[position], self.base_of[there] = there, position

    def _agreement(self, position: int, there: int) -> int:
        """How many inputs and takers of two nodes are pairs."""
        node, other = self.base.graph.node[position], self.target.graph.node[there]
        count = sum(self._is_pair(name, its) for name, its in zip(node.input, other.input, strict=False))
        for mine, its in zip(node.output, other.output, strict=False):
            there_taken = set(self.target.uses(its))
            for taker, slot in self.base.uses(mine):
                if taker is not None and (self.target_of[taker], slot) in there_taken:
                    count += 1
        return count

    def _is_pair(self, name: str, other: str) -> bool:
        if self.values.get(name, name) == other:
            return True
        return _is_same_constant(self.base, self.target, name, other)

    def _pair_left_constants(self) -> None:
        """Constants that nobody says anything of, by their elements: by name first, then in order."""
        mine = [name for name in _constants(self.base) if name not in self.values]
        its = [name for name in _constants(self.target) if name not in self._taken]
        if not mine or not its:
            return
        for name in mine:
            if name in its and _is_same_constant(self.base, self.target, name):
                self._add(name, name)
        left: dict[object, list[str]] = {}
        for name in its:
            if name not in self._taken:
                left.setdefault(_content(self.target, name), []).append(name)
        for name in mine:
            if name not in self.values and (names := left.get(_content(self.base, name))):
                self._add(name, names.pop(0))
        self._pair_constants()

    def _stand_ins(self) -> Iterator[tuple[str, str]]:
        """Values that nodes without a counterpart make, and that all paired nodes take at the same place."""
        made = _made_by(self.base, self.target_of)
        its = _made_by(self.target, self.base_of)
        if not made or not its:
            return
        outputs = pair_outputs(self.base, self.target)
        rivals: dict[str, set[str]] = {}
        for name in made:
            found = {self._taken_there(position, slot, outputs) for position, slot in self.base.uses(name)} - {None}
            if len(found) == 1 and (other := found.pop()) is not None and other in its:
                rivals.setdefault(other, set()).add(name)
        for other, mine in rivals.items():
            if len(mine) == 1:
                yield mine.pop(), other

    def _taken_there(self, position: int | None, slot: int, outputs: dict[int, int]) -> str | None:
        """What the counterpart of a taker takes; None where there is none."""
        if position is None:
            return (self.target.output_names[outputs[slot]] or "") if slot in outputs else ""
        there = self.target_of[position]
        if there < 0:
            return None
        inputs = self.target.graph.node[there].input
        return inputs[slot] if slot < len(inputs) else ""


def graph_matches(alignment: Alignment) -> list[GraphMatch]:
    """The pairs of graphs of an alignment."""
    # Of equal constants nobody knows which is which, so that their names say nothing.
    pairs = [(name, other) for pair in alignment.graphs for name, other in pair.values.items() if _is_made(pair, name)]
    is_trusted = sum(name != other for name, other in pairs) <= max(_FEW, _DISTRUST * len(pairs))
    matches = [GraphMatch(pair, is_trusted) for pair in alignment.graphs]
    known = {match.base.address for match in matches}
    targets = {scope.address: scope for scope in alignment.target.scopes}
    for match in matches:
        # Grows while it is gone through: the graphs of nodes that only this merge takes for pairs.
        matches += [GraphMatch(pair, is_trusted) for pair in _inner_pairs(match, known, targets)]
    return matches


def _inner_pairs(match: GraphMatch, known: Collection[str], targets: Mapping[str, Scope]) -> Iterator[GraphPair]:
    """Graphs of paired nodes that are in no pair yet, as far as their names say which is which."""
    for child in match.base.children:
        if child.owner is None or child.address in known:
            continue
        there = match.target_of[child.owner.position]
        other = targets.get(f"{match.target.address}/node/{there}{child.address[len(child.owner.address) :]}")
        pair = None if there < 0 or other is None else pair_by_names(child, other)
        if pair is not None:
            yield pair


def _is_made(pair: GraphPair, name: str) -> bool:
    maker = pair.base.makers.get(name)
    return maker is not None and not is_constant(pair.base.graph.node[maker[0]])


def _made_by(scope: Scope, partners: list[int]) -> dict[str, None]:
    """What nodes without a counterpart make, in their order."""
    nodes = scope.graph.node
    return {name: None for place, node in enumerate(nodes) if partners[place] < 0 for name in node.output if name}


def _constants(scope: Scope) -> list[str]:
    """Initializers, then what Constant nodes make."""
    nodes = scope.graph.node
    return [*scope.initializers, *[name for name, (place, _) in scope.makers.items() if is_constant(nodes[place])]]


def _is_same_constant(base: Scope, target: Scope, name: str, other: str | None = None) -> bool:
    """Whether two names are constants with the same elements."""
    mine, its = _content(base, name), _content(target, name if other is None else other)
    return mine is not None and mine == its


def _content(scope: Scope, name: str) -> object:
    from onnxjson.document import Tensor

    tensor = scope.initializer(name)
    if isinstance(tensor, Tensor):
        return content(tensor)
    maker = scope.makers.get(name)
    if maker is None or not is_constant(scope.graph.node[maker[0]]):
        return None
    return constant_content(scope.graph.node[maker[0]], content)
