"""Pairs of nodes and values of the base and of one side, as a merge sees them.

Most merges are of small edits of one exporter's model. `align_by_names` pairs by the names of values alone, without the
structural matcher and the libraries that it needs, unless something was added or removed that could have taken over a
name; then, and wherever anything else is unusual, the matcher decides. The matcher goes by structure, and uses names
only between equal candidates. `graph_matches` corrects its pairs: both sides descend from the base, so that a name that
is kept means something where nearly all names of a side are kept.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from onnxjson.diffing.matching.alignment import UNMATCHED, Alignment, GraphPair, pair_outputs
from onnxjson.diffing.matching.contents import constant_content, content
from onnxjson.model.constants import constant_outputs, is_constant_node, own_constant
from onnxjson.model.document import Model, Node, SparseTensor
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import function_key, plain_domain


def align_by_names(base: Model, side: Model) -> Alignment | None:
    """Pair graphs, nodes and values of the same name; None if names alone are not enough."""
    indexes = Index(base), Index(side)
    functions = _functions(base, side)
    if functions is None:
        return None
    scopes = [index.by_address for index in indexes]
    tops = [("/graph", "/graph"), *[(f"/functions/{here}", f"/functions/{there}") for here, there in functions]]
    tops += [(address, address) for address, scope in scopes[0].items() if scope.kind == "training"]
    pairs: list[GraphPair] = []
    waiting = [(scopes[0][here], scopes[1][there]) for here, there in tops if here in scopes[0] and there in scopes[1]]
    while waiting:
        mine, its = waiting.pop()
        pair = pair_by_names(mine, its)
        if pair is None:
            return None
        pairs.append(pair)
        for child in mine.children:
            if child.owner is None:
                continue
            there = pair.target_of[child.owner.position]
            other = scopes[1].get(f"{its.address}/node/{there}{child.address[len(child.owner.address) :]}")
            if other is not None:
                waiting.append((child, other))
    pairs.sort(key=lambda pair: (not pair.base.address.startswith("/graph"), pair.base.address.count("/")))
    by_base = {pair.base.address: pair for pair in pairs}
    return Alignment(*indexes, tuple(pairs), by_base, tuple(functions), None)


def _functions(base: Model, side: Model) -> list[tuple[int, int]] | None:
    keys = [[function_key(each) for each in model.functions] for model in (base, side)]
    if any(len(set(each)) < len(each) for each in keys):
        return None
    if set(keys[0]) - set(keys[1]) and set(keys[1]) - set(keys[0]):
        return None
    places = {key: place for place, key in enumerate(keys[1])}
    return [(place, places[key]) for place, key in enumerate(keys[0]) if key in places]


def pair_by_names(base: Scope, target: Scope) -> GraphPair | None:
    """Pair the nodes and values of two graphs by their names; None if names alone are not enough."""
    nodes, its = base.graph.node, target.graph.node
    places, others = _by_output(nodes), _by_output(its)
    if places is None or others is None:
        return None
    target_of = [UNMATCHED] * len(nodes)
    base_of = [UNMATCHED] * len(its)
    for name, position in places.items():
        there = others.get(name)
        if there is not None:
            if nodes[position].output != its[there].output:
                return None
            target_of[position], base_of[there] = there, position
    removed = Counter(_operator(nodes[place]) for place, there in enumerate(target_of) if there < 0)
    new = Counter(_operator(its[place]) for place, here in enumerate(base_of) if here < 0)
    if removed.keys() & new.keys():
        return None
    moved = removed.keys() | new.keys()
    changed: list[int] = []
    for position, there in enumerate(target_of):
        if there < 0:
            continue
        node, other = nodes[position], its[there]
        if node.input == other.input and _operator(node) == _operator(other) and node.attribute == other.attribute:
            continue
        if _operator(node) != _operator(other) or _operator(node) in moved:
            return None
        changed.append(position)
    if changed and _have_other_names(base, target, target_of, changed):
        return None
    if moved and _has_other_constants(base, target):
        # A layer inserted in the middle may have shifted the names of all weights behind it.
        return None
    values = _values(base, target)
    return None if values is None else GraphPair(base, target, target_of, base_of, values, {}, {})


def _have_other_names(base: Scope, target: Scope, target_of: list[int], changed: list[int]) -> bool:
    """Whether a changed node is now equal to what another node was that was removed or changed, too.

    Exporters that number values swap the names of two layers when they visit them in another order.
    """
    before = [base.graph.node[place] for place in (*changed, *[at for at, there in enumerate(target_of) if there < 0])]
    known: dict[tuple[tuple[str, str], tuple[str, ...]], list[Node]] = {}
    for node in before:
        known.setdefault((_operator(node), node.input), []).append(node)
    after = [target.graph.node[target_of[position]] for position in changed]
    return any(
        node.attribute == other.attribute for node in after for other in known.get((_operator(node), node.input), ())
    )


def _has_other_constants(base: Scope, target: Scope) -> bool:
    names = base.initializers.keys() & target.initializers.keys()
    return any(base.initializer(name) != target.initializer(name) for name in names)


def _by_output(nodes: Sequence[Node]) -> dict[str, int] | None:
    """Nodes by their first output; None if two share it or one has none."""
    found = {node.output[0]: place for place, node in enumerate(nodes) if node.output and node.output[0]}
    return found if len(found) == len(nodes) else None


def _operator(node: Node) -> tuple[str, str]:
    return plain_domain(node.domain), node.op_type or ""


def _values(base: Scope, target: Scope) -> dict[str, str] | None:
    for mine, its in (
        (base.inputs, target.inputs),
        (base.initializers, target.initializers),
        (base.sparse_initializers, target.sparse_initializers),
    ):
        if mine.keys() - its.keys() and its.keys() - mine.keys():
            return None
    theirs = target.defined_names
    return {name: name for name in base.defined_names if name in theirs}


_DISTRUST: Final = 0.1
"""Share of renamed pairs above which equal names do not make two values a pair."""

_FEW: Final = 2
"""Number of renamed pairs that is always tolerated."""


class GraphMatch:
    """A graph of the base and its counterpart.

    Attributes:
        base: the graph of the base.
        target: the graph of the side.
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
        self._taken = {other: name for name, other in self.values.items()}
        if is_trusted:
            self._prefer_names()
        for name, other in list(self._replacements()):
            self._add(name, other)
        self._pair_left_constants()
        if is_trusted:
            theirs = self.target.defined_names
            for name in self.base.defined_names:
                if name in theirs:
                    self._add(name, name)
            self._pair_constants()
        self._pair_replaced()

    def _pair_replaced(self) -> None:
        """Pair nodes without a counterpart that produce the same values: one replaces the other."""
        for position, there in enumerate(self.target_of):
            outputs = self.base.graph.node[position].output
            producer = self.target.producers.get(self.values.get(outputs[0], "")) if there < 0 and outputs else None
            if producer is None or self.base_of[producer[0]] >= 0:
                continue
            its = self.target.graph.node[producer[0]].output
            if len(its) == len(outputs) and all(
                [self.values.get(name, name) == other for name, other in zip(outputs, its, strict=True)]
            ):
                self.target_of[position], self.base_of[producer[0]] = producer[0], position

    def _add(self, name: str, other: str) -> None:
        if name not in self.values and other not in self._taken:
            self.values[name] = other
            self._taken[other] = name

    def _drop(self, name: str) -> None:
        other = self.values.pop(name, None)
        if other is not None:
            del self._taken[other]

    def _prefer_names(self) -> None:
        """Pair a node with the one that has its name if that is at least as similar as its counterpart."""
        base, target = self.base, self.target
        owners = {child.owner.position for child in base.children if child.owner is not None}
        for position, there in enumerate(self.target_of):
            node = base.graph.node[position]
            name = node.output[0] if node.output else ""
            if there < 0 or not name or position in owners or target.graph.node[there].output == node.output:
                continue
            producer = target.producers.get(name)
            if producer is None or self.base_of[producer[0]] >= 0 or producer[1]:
                continue
            other = target.graph.node[producer[0]]
            is_alike = (other.op_type, other.domain, other.output) == (node.op_type, node.domain, node.output)
            if other == node or (
                is_alike and self._agreement(position, producer[0]) >= self._agreement(position, there)
            ):
                self.target_of[position] = producer[0]
                self.base_of[producer[0]], self.base_of[there] = position, UNMATCHED
                for each in node.output:
                    self._drop(each)
                for each in node.output:
                    self._add(each, each)
        for name in [name for name, other in self.values.items() if name != other]:
            if name not in self._taken and _is_same_constant(base, target, name):
                self._drop(name)
                self._add(name, name)

    def _pair_constants(self) -> None:
        """Pair Constant nodes whose values are pairs."""
        for name, (position, _) in self.base.producers.items():
            if not is_constant_node(self.base.graph.node[position]):
                continue
            producer = self.target.producers.get(self.values.get(name, ""))
            there = UNMATCHED if producer is None else producer[0]
            if there >= 0 and self.base_of[there] < 0 and is_constant_node(self.target.graph.node[there]):
                if self.target_of[position] >= 0:
                    self.base_of[self.target_of[position]] = UNMATCHED
                self.target_of[position], self.base_of[there] = there, position

    def _agreement(self, position: int, there: int) -> int:
        """Number of inputs and consumers of two nodes that are pairs."""
        node, other = self.base.graph.node[position], self.target.graph.node[there]
        count = sum(self._is_pair(name, its) for name, its in zip(node.input, other.input, strict=False))
        for mine, its in zip(node.output, other.output, strict=False):
            uses_there = set(self.target.uses(its))
            for consumer, slot in self.base.uses(mine):
                if consumer is not None and (self.target_of[consumer], slot) in uses_there:
                    count += 1
        return count

    def _is_pair(self, name: str, other: str) -> bool:
        if self.values.get(name, name) == other:
            return True
        return _is_same_constant(self.base, self.target, name, other)

    def _pair_left_constants(self) -> None:
        """Pair the remaining constants with equal elements: by name first, then in order."""
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

    def _replacements(self) -> Iterator[tuple[str, str]]:
        """Values of nodes without a counterpart that all paired nodes consume at the same input."""
        produced = _produced_by(self.base, self.target_of)
        its = _produced_by(self.target, self.base_of)
        if not produced or not its:
            return
        outputs = pair_outputs(self.base, self.target)
        rivals: dict[str, set[str]] = {}
        for name in produced:
            found = {self._consumed_there(position, slot, outputs) for position, slot in self.base.uses(name)} - {None}
            if len(found) == 1 and (other := found.pop()) is not None and other in its:
                rivals.setdefault(other, set()).add(name)
        for other, mine in rivals.items():
            if len(mine) == 1:
                yield mine.pop(), other

    def _consumed_there(self, position: int | None, slot: int, outputs: dict[int, int]) -> str | None:
        """The value that the counterpart of a consumer consumes; None if there is no counterpart."""
        if position is None:
            return (self.target.output_names[outputs[slot]] or "") if slot in outputs else ""
        there = self.target_of[position]
        if there < 0:
            return None
        inputs = self.target.graph.node[there].input
        return inputs[slot] if slot < len(inputs) else ""


def graph_matches(alignment: Alignment) -> list[GraphMatch]:
    """Return the corrected pairs of the graphs of an alignment."""
    # Equal constants are paired arbitrarily, so that their names mean nothing.
    pairs = [
        (name, other) for pair in alignment.graphs for name, other in pair.values.items() if _is_computed(pair, name)
    ]
    is_trusted = sum(name != other for name, other in pairs) <= max(_FEW, _DISTRUST * len(pairs))
    matches = [GraphMatch(pair, is_trusted) for pair in alignment.graphs]
    known = {match.base.address for match in matches}
    targets = alignment.target.by_address
    for match in matches:
        # The list grows during the loop by the graphs of nodes that only this merge pairs.
        matches += [GraphMatch(pair, is_trusted) for pair in _inner_pairs(match, known, targets)]
    return matches


def _inner_pairs(match: GraphMatch, known: Collection[str], targets: Mapping[str, Scope]) -> Iterator[GraphPair]:
    """Pair the graphs of paired nodes that have no pair yet, as far as names are enough."""
    for child in match.base.children:
        if child.owner is None or child.address in known:
            continue
        there = match.target_of[child.owner.position]
        other = targets.get(f"{match.target.address}/node/{there}{child.address[len(child.owner.address) :]}")
        pair = None if there < 0 or other is None else pair_by_names(child, other)
        if pair is not None:
            yield pair


def _is_computed(pair: GraphPair, name: str) -> bool:
    producer = pair.base.producers.get(name)
    return producer is not None and not is_constant_node(pair.base.graph.node[producer[0]])


def _produced_by(scope: Scope, partners: list[int]) -> dict[str, None]:
    """The outputs of nodes without a counterpart, in order."""
    nodes = scope.graph.node
    return {name: None for place, node in enumerate(nodes) if partners[place] < 0 for name in node.output if name}


def _constants(scope: Scope) -> list[str]:
    """Initializers, then the outputs of Constant nodes."""
    return [*scope.initializers, *constant_outputs(scope)]


def _is_same_constant(base: Scope, target: Scope, name: str, other: str | None = None) -> bool:
    """Whether two names are constants with the same elements."""
    mine, its = _content(base, name), _content(target, name if other is None else other)
    return mine is not None and mine == its


def _content(scope: Scope, name: str) -> object:
    found = own_constant(scope, name)
    if found is None or isinstance(found.held, SparseTensor):
        return None
    return constant_content(found.held, content) if isinstance(found.held, Node) else content(found.held)
