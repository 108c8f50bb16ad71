"""How good the pairs and the events of a diff are, against what is known."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from onnxjson.diffing.events import Event, Member
from onnxjson.diffing.matching.alignment import UNMATCHED, Alignment
from onnxjson.model.document import Model
from onnxjson.model.index import Scope
from tests.diffing.equal_computation import Classes
from tests.diffing.mutations import Mutation, Place, Planted

ENOUGH: Final = 0.5
"""The part of all members, found or planted, that has to be in both for an event to be right."""


class GraphPairs(NamedTuple):
    """What a differ says of two graphs."""

    base: str
    target: str
    target_of: Sequence[int]


class Score(NamedTuple):
    """Pairs that were counted."""

    right: int = 0
    """Pairs said that are right."""
    said: int = 0
    """Pairs said whose truth is known."""
    found: int = 0
    """True pairs that were said."""
    wanted: int = 0
    """True pairs."""

    @property
    def precision(self) -> float:
        """The part of what was said that is right; 1 where nothing was said."""
        return self.right / self.said if self.said else 1.0

    @property
    def recall(self) -> float:
        """The part of what is true that was said."""
        return self.found / self.wanted if self.wanted else 1.0

    def plus(self, other: "Score") -> "Score":
        """Both counted together."""
        return Score(*[mine + its for mine, its in zip(self, other, strict=True)])


def pairs_of(alignment: Alignment) -> list[GraphPairs]:
    """The node pairs of an alignment."""
    return [GraphPairs(pair.base.address, pair.target.address, pair.target_of) for pair in alignment.graphs]


class Judge:
    """Knows the truth about two models, and counts what a differ says against it, by classes of equal computation."""

    def __init__(self, base: Mapping[str, Sequence[int]], target: Mapping[str, Sequence[int]]) -> None:
        """`base` and `target`: the classes of the nodes by the address of their graph."""
        self._base = base
        self._target = target
        self._true: Counter[tuple[int, int]] = Counter()
        self._optional: set[tuple[int, int]] = set()
        self._known: tuple[set[int], set[int]] | None = None
        """Classes of which the truth is known; None for all."""

    @classmethod
    def of_mutation(cls, mutation: Mutation) -> "Judge":
        """All pairs are known."""
        judge = cls(Classes(mutation.base).nodes, Classes(mutation.target).nodes)
        for graph in mutation.graphs.values():
            if not graph.target:
                continue  # of a node that went
            base, target = judge._base[graph.base], judge._target[graph.target]
            judge._true.update(
                [(base[node], target[other]) for node, other in enumerate(graph.target_of) if other != UNMATCHED]
            )
            judge._optional |= {(base[node], target[other]) for node, other in graph.optional}
        return judge

    @classmethod
    def of_names(cls, base: Model, output: Mutation) -> "Judge":
        """Known are the values of `base` that kept their names in the base of `output`, which was then renamed.

        A value with another operator behind it is no pair of nodes, and no mistake if it is called one.
        """
        before, after = Classes(base), Classes(output.base)
        target: dict[str, list[int]] = {}
        for graph in output.graphs.values():
            target[graph.target] = [after.nodes[graph.base][node] for node in graph.base_of]
        judge = cls(before.nodes, target)
        judge._known = set(), set()
        sizes = [Counter(each for classes in side.values() for each in classes) for side in (before.nodes, target)]
        for base_address, address in _same_graphs(before, after):
            makers = before.makers(base_address), after.makers(address)
            for name in before.names(base_address) & after.names(address):
                values = before.value(base_address, name), after.value(address, name)
                judge._learn(makers[0].get(values[0], {}), makers[1].get(values[1], {}), sizes)
        return judge

    def _learn(self, base: Mapping[str, int], target: Mapping[str, int], sizes: Sequence[Counter[int]]) -> None:
        """Classes of nodes by operator that make what is one and the same value."""
        assert self._known is not None
        self._known[0].update(base.values())
        self._known[1].update(target.values())
        for operator, one in base.items():
            for its, other in target.items():
                if operator == its:
                    self._true[one, other] = min(sizes[0][one], sizes[1][other])
                else:
                    self._optional.add((one, other))

    def score(self, pairs: Iterable[GraphPairs]) -> Score:
        """How good the pairs are."""
        said = self._said(pairs)
        true = self._true
        right = sum(count for pair, count in said.items() if pair in true)
        known = right + sum(count for pair, count in said.items() if self._is_wrong(pair))
        found = sum(min(count, true[pair]) for pair, count in said.items() if pair in true)
        return Score(right, known, found, true.total())

    def _said(self, pairs: Iterable[GraphPairs]) -> Counter[tuple[int, int]]:
        said: Counter[tuple[int, int]] = Counter()
        for graph in pairs:
            if graph.base in self._base and graph.target in self._target:
                base, target = self._base[graph.base], self._target[graph.target]
                said.update(
                    [(base[node], target[other]) for node, other in enumerate(graph.target_of) if other != UNMATCHED]
                )
        return said

    def _is_wrong(self, pair: tuple[int, int]) -> bool:
        if pair in self._true or pair in self._optional:
            return False
        return self._known is None or pair[0] in self._known[0] or pair[1] in self._known[1]


def _same_graphs(base: Classes, target: Classes) -> Iterator[tuple[str, str]]:
    """Graphs in the same attribute of nodes whose first outputs have one name, the outer before the inner."""
    same = {"": "", "/graph": "/graph"}
    named = {}
    for address, scope in target.scopes.items():
        if scope.owner is not None:
            named[scope.owner.scope.address, scope.owner.node.output[:1], _attribute_part(scope)] = address
    for address, scope in base.scopes.items():
        if scope.owner is None:
            if address in target.scopes:
                same[address] = address
                yield address, address
            continue
        outer = same.get(scope.owner.scope.address)
        other = None if outer is None else named.get((outer, scope.owner.node.output[:1], _attribute_part(scope)))
        if other is not None:
            same[address] = other
            yield address, other


def _attribute_part(scope: Scope) -> str:
    assert scope.owner is not None
    return scope.address.removeprefix(scope.owner.address)


_OF_NODE: Final = re.compile(r".*/node/\d+")


class EventScore(NamedTuple):
    """What became of a planted event."""

    right: bool
    """An event of a right kind has a member with enough of the right places."""
    kind: bool
    """An event has such a member, whatever its kind."""
    others: tuple[str, ...]
    """Other events than those about names and order: kind and pattern."""


def judge_events(planted: Planted, events: Iterable[Event]) -> EventScore:
    """Whether the events have a planted one. Places that are about no node count only where some was planted."""
    best: tuple[float, bool, int] = (0.0, False, -1)
    listed = list(events)
    for place, event in enumerate(listed):
        likeness = max((_likeness(planted, member) for member in event.members), default=0.0)
        best = max(best, (likeness, event.kind in planted.kinds, place))
        if likeness >= ENOUGH and event.kind in planted.kinds:
            best = (2.0, True, place)
    others = [
        f"{event.kind} {event.pattern}"
        for place, event in enumerate(listed)
        if place != best[2] and event.kind not in ("renamed", "reordered")
    ]
    return EventScore(best[0] == 2.0, best[0] >= ENOUGH, tuple(others))


def _likeness(planted: Planted, member: Member) -> float:
    said: set[Place] = {("base", each) for each in member.base} | {("target", each) for each in member.target}
    of_nodes = {place for place in said if _OF_NODE.fullmatch(place[1])}
    return max(
        len(true & some) / len(true | some) for true in planted.members for some in (said, of_nodes) if true or some
    )
