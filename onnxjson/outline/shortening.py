"""Graphs with thousands of nodes in equal rounds: a few rounds are outlined, and the lines of the others follow.

What is left out is proved to be alike, node by node: operator, attributes, types, constants, and where each value comes
from. Where anything cannot be carried over, the whole graph is outlined.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple, TypeAlias

import msgspec

from onnxjson.model.dimensions import INVENTED
from onnxjson.model.document import Graph, Model
from onnxjson.model.index import Index
from onnxjson.model.scopes import Scope
from onnxjson.outline.expressions import Piece, Ref, Statement, Weight
from onnxjson.outline.flow import SHOWN, Flow
from onnxjson.outline.repeats import Item, Repeat, statements_of, values_of

FROM: Final = 3_000
"""Nodes from which on a graph is shortened."""

_KEPT: Final = 7
"""Rounds that are kept: what is around a repeat may take part of the first and of the last ones."""

_EDGE: Final = 2
"""Rounds at the beginning of a repeat that may be told apart by what comes before."""

_PERIOD: Final = 2_000
"""Nodes of the longest round."""

_TRIED: Final = 4
"""Lengths of rounds that are tried at one place: of layers that take turns, the shortest is not one."""

Owned: TypeAlias = dict[int, list[int]]
"""By the identity of a statement, the positions of its nodes."""


class Shortened(NamedTuple):
    """A model without most of its rounds; those left out come before those kept."""

    model: Model
    start: int
    """The position of the first node of a round."""
    period: int
    """The nodes of a round."""
    left_out: int
    """The rounds that are left out."""


def shortened(index: Index) -> Shortened | None:
    """Return a model without most of the rounds that its nodes consist of; None if there are not many of them."""
    if len(index.scopes) != 1 or index.main is None or len(index.main.graph.node) < FROM:
        return None
    flow = Flow(index.main)
    kinds: dict[object, int] = {}
    numbers = [kinds.setdefault((node.op_type, node.domain, node.attribute), len(kinds)) for node in flow.nodes]
    for part in (2, 4, 1):
        at = len(numbers) * part // 6
        for period in islice(_periods(numbers, at), _TRIED):
            if (found := _without_rounds(index.model, flow, numbers, at, period)) is not None:
                return found
    return None


def _periods(numbers: Sequence[int], at: int) -> Iterator[int]:
    """Yield the lengths of rounds of which two begin at a node."""
    for end in range(at + 1, min(at + _PERIOD, len(numbers))):
        if numbers[end] == numbers[at] and numbers[at:end] == numbers[end : 2 * end - at]:
            yield end - at


def _without_rounds(model: Model, flow: Flow, numbers: Sequence[int], at: int, period: int) -> Shortened | None:
    nodes, producers, graph = flow.nodes, flow.producers, flow.scope.graph
    rounds = _Rounds(flow, numbers, period)
    start = end = at
    while rounds.are_alike(end):
        end += 1
    while rounds.are_alike(start - 1):
        start -= 1
    left_out = (end - start) // period + 1 - _KEPT
    cut, offset = start + _KEPT // 2 * period, left_out * period
    if offset < len(nodes) // 2 or not isinstance(graph, Graph):
        return None
    gap = range(cut, cut + offset)
    shorter = list(nodes[:cut])
    for position, node in enumerate(nodes[gap.stop :], gap.stop):
        if position < end + period:  # in rounds, which take from the rounds before the gap what others take from theirs
            pairs = zip(node.input, nodes[position - offset].input, strict=True)
            inputs = tuple([other if 0 <= producers.get(name, -1) < gap.stop else name for name, other in pairs])
            node = node if inputs == node.input else msgspec.structs.replace(node, input=inputs)
        shorter.append(node)
    if any([producers.get(name, -1) in gap for name in (*flow.outputs, *[name for node in shorter for name in node.input])]):
        return None
    graph = msgspec.structs.replace(graph, node=tuple(shorter))
    return Shortened(msgspec.structs.replace(model, graph=graph), start, period, left_out)


class _Rounds:
    """Rounds of nodes with one period."""

    def __init__(self, flow: Flow, numbers: Sequence[int], period: int) -> None:
        self._flow = flow
        self._numbers = numbers
        """Of each node, one that stands for its operator and attributes."""
        self._period = period
        self._next: dict[str, str] = {}
        """By what comes from outside, such as weights, what the next round has in its place; and the other way."""
        self._before: dict[str, str] = {}

    def are_alike(self, position: int) -> bool:
        """Whether a node and the one a period later compute the same from values as far away, or from outside."""
        numbers, later = self._numbers, position + self._period
        if not 0 <= position < later < len(numbers) or numbers[position] != numbers[later]:
            return False
        one, other = self._flow.nodes[position], self._flow.nodes[later]
        if len(one.input) != len(other.input) or [*map(bool, one.output)] != [*map(bool, other.output)]:
            return False
        return all(map(self._have_same_type, one.output, other.output)) and all(
            map(self._are_alike_values, one.input, other.input)
        )

    def _are_alike_values(self, name: str, other: str) -> bool:
        (at, slot), (place, later) = [self._flow.scope.producers.get(each, (-1, 0)) for each in (name, other)]
        if name != other and at >= 0:
            return place - at == self._period and slot == later
        if (self._next.setdefault(name, other), self._before.setdefault(other, name)) != (other, name):
            return False
        dims = self._flow.stored.get(name)
        if (
            name == other
            or dims is None
            or dims != self._flow.stored.get(other)
            or not self._have_same_type(name, other)
        ):
            return name == other
        one, two = [self._flow.elements(each) for each in (name, other)]
        if one == two or one is None or two is None:
            return one == two
        # Of longer ones, zeros and low numbers in masks matter only.
        return len(one) > SHOWN and all([isinstance(each[0], float) and max(each) > 0 for each in (one, two)])

    def _have_same_type(self, name: str, other: str) -> bool:
        flow = self._flow
        types = flow.scope.types
        if types.get(name) == types.get(other):
            return True
        dims = [flow.dims(each) for each in (name, other)]
        if None in dims or flow.dtype(name) != flow.dtype(other):
            return False
        one, two = [[None if str(size).startswith(INVENTED) else size for size in each or ()] for each in dims]
        return one == two


def lengthened(
    short: Shortened, before: Scope, after: Scope, items: Sequence[Item], owned: Mapping[int, Sequence[int]]
) -> tuple[list[Item], Owned] | None:
    """Return the lines of the whole graph, and the positions of their nodes; None if they do not follow.

    Args:
        short: the graph without most of its rounds.
        before: that graph.
        after: the whole graph.
        items: the lines of the short graph.
        owned: by the identity of a statement in them, the positions of its nodes.
    """
    lengthening = _Lengthening(short, before, after, items, owned)
    try:
        longer = [lengthening.item(item) for item in items]
    except LookupError:
        return None
    positions = [at for each in lengthening.owned.values() for at in each]
    known = sum(map(len, owned.values())) + short.left_out * short.period
    return (longer, lengthening.owned) if len(positions) == len({*positions}) == known else None


class _Lengthening:
    """Lines of a short graph at the places of the rounds of the whole one; LookupError where it is not clear."""

    def __init__(
        self, short: Shortened, before: Scope, after: Scope, items: Sequence[Item], owned: Mapping[int, Sequence[int]]
    ) -> None:
        self._start, self._period = short.start, short.period
        self._left_out = short.left_out
        self._late = short.start + (_KEPT - _EDGE) * short.period
        """The first node of the last rounds."""
        self._producers, self._nodes = before.producers, after.graph.node
        self._short_owned = owned
        repeats = [item for item in items if self._is_long(item)]
        self._inner = {name for at in self._positions(repeats) for name in before.graph.node[at].output}
        """The values in repeats with the rounds that are left out."""
        self.owned: Owned = {}

    def item(self, item: Item) -> Item:
        """Return a line with the names of the whole graph, a repeat with all of its rounds."""
        if self._is_long(item):
            return self._repeat(item)
        offset = self._left_out * self._period if max(self._positions([item]), default=0) >= self._late else 0
        sources = [self._producers[name][0] for name in values_of([item])[0] if name in self._inner]
        if offset and min(sources, default=self._late) >= self._late or not sources:
            return self._placed(item, offset)
        raise LookupError(item)

    def _positions(self, items: Sequence[Item]) -> list[int]:
        return [at for each in statements_of(items) for at in self._short_owned[id(each)]]

    def _is_long(self, item: Item) -> bool:
        """Whether a line has nodes of rounds that are neither the first nor the last ones."""
        positions = [at for at in self._positions([item]) if at >= self._start]
        first = self._start + _EDGE * self._period
        return min(positions, default=self._late) < self._late and max(positions, default=0) >= first

    def _repeat(self, repeat: Item) -> Repeat:
        """A repeat with the rounds left out, which are those after the first ones once more."""
        rounds, period = repeat.rounds if isinstance(repeat, Repeat) else (), self._period
        for size in range(1, len(rounds) // 3 + 1):  # rounds of lines in a round of nodes
            one, other = [rounds[first : first + size] for first in (size, 2 * size)]
            if self._is_next([*chain(*one)], [*chain(*other)]):
                places = [*[(items, 0) for items in rounds[:size]]]
                places += [(items, number * period) for number in range(self._left_out) for items in one]
                places += [(items, self._left_out * period) for items in rounds[size:]]
                longer = [tuple([self._placed(each, offset) for each in items]) for items, offset in places]
                return repeat._replace(rounds=tuple(longer))
        raise LookupError(repeat)

    def _is_next(self, items: Sequence[Item], others: Sequence[Item]) -> bool:
        """Whether lines are the same as others a period before, with the names of their nodes."""
        if [at + self._period for at in self._positions(items)] != self._positions(others):
            return False
        return self._names(items, self._period) == self._names(others, 0)

    def _names(self, items: Sequence[Item], offset: int) -> list[str]:
        """The names that the values of lines have so many places later, without those of stored constants."""
        pieces = [piece for each in statements_of(items) for piece in each.expression.pieces]
        weights = [piece.name for piece in pieces if isinstance(piece, Weight) and piece.name in self._producers]
        consumed, produced = values_of(items)
        return [self._name(name, offset) for name in (*consumed, *produced, *weights)]

    def _name(self, name: str, offset: int) -> str:
        at, slot = self._producers[name] if name in self._inner else (-1, 0)
        return name if at < 0 else self._nodes[at + offset].output[slot]

    def _placed(self, item: Item, offset: int) -> Item:
        """A line so many places later, but for what comes before all rounds."""

        def name(value: str) -> str:
            return self._name(value, offset)

        if isinstance(item, Repeat):
            rounds = [tuple([self._placed(each, offset) for each in items]) for items in item.rounds]
            return Repeat(tuple(rounds), tuple([(name(start), name(end)) for start, end in item.carried]))
        pieces: list[Piece] = []
        for piece in item.expression.pieces:
            if isinstance(piece, Ref):
                pieces.append(piece._replace(name=name(piece.name)))
            elif isinstance(piece, Weight):
                pieces.append(Weight(name(piece.name), self._place(piece.user, offset)))
            else:
                pieces.append(piece)
        statement = Statement(tuple(map(name, item.outputs)), item.expression._replace(pieces=tuple(pieces)))
        self.owned[id(statement)] = [self._place(at, offset) for at in self._short_owned[id(item)]]
        return statement

    def _place(self, at: int, offset: int) -> int:
        return at + offset if at >= self._start else at
