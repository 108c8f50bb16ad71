"""Graphs with thousands of nodes in equal rounds: a few rounds are outlined, and the lines of the others follow.

What is left out is proved to be alike, node by node: operator, attributes, types, constants, and where each value comes
from. Where anything cannot be carried over, the whole graph is outlined.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import msgspec

from onnxjson.model.dimensions import INVENTED
from onnxjson.model.document import Graph, Model, Node
from onnxjson.model.index import Index
from onnxjson.outline.expressions import Weight
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
    kept = start + left_out * period
    if kept - start < len(nodes) // 2 or not isinstance(graph, Graph):
        return None
    shorter = list(nodes[:start])
    for node, source in zip(nodes[kept:], nodes[start:], strict=False):
        place = len(shorter) - start
        inputs = node.input
        if place < _KEPT * period:  # what the first rounds take from others is what they take from before
            pairs = zip(inputs, source.input, strict=True)
            inputs = tuple([other if start <= producers.get(name, -1) < kept else name for name, other in pairs])
        shorter.append(node if inputs == node.input else msgspec.structs.replace(node, input=inputs))
    names = [*flow.outputs, *[name for node in shorter for name in node.input]]
    if any([start <= producers.get(name, -1) < kept for name in names]):
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
    short: Shortened, nodes: Sequence[Node], items: Sequence[Item], owned: Mapping[int, Sequence[int]]
) -> tuple[list[Item], Owned] | None:
    """Return the lines of the whole graph, and the positions of their nodes; None if they do not follow.

    A repeat has one of its rounds several times; each time its nodes are a period later than the time before.

    Args:
        short: the graph without most of its rounds.
        nodes: those of the whole graph.
        items: the lines of the short graph.
        owned: by the identity of a statement in them, the positions of its nodes.
    """
    inner = {*values_of([each for each in items if isinstance(each, Repeat)])[1]}
    lengthening = _Lengthening(short, nodes, owned, inner)
    try:
        longer = [lengthening.item(item) for item in items]
    except LookupError:
        return None
    places: Counter[int] = Counter()
    positions: list[int] = []
    for each in statements_of(longer):
        positions += [at + places[id(each)] * short.period for at in lengthening.owned[id(each)]]
        places[id(each)] += 1
    known = sum(map(len, owned.values())) + short.left_out * short.period
    return (longer, lengthening.owned) if len(positions) == len({*positions}) == known else None


class _Lengthening:
    """Lines of a short graph at the places of the rounds of the whole one; LookupError where it is not clear."""

    def __init__(
        self, short: Shortened, nodes: Sequence[Node], owned: Mapping[int, Sequence[int]], inner: set[str]
    ) -> None:
        self._start, self._period, self._left_out = short.start, short.period, short.left_out
        self._offset = short.left_out * short.period
        self._early = range(short.start, short.start + (_KEPT - _EDGE) * short.period)
        self._nodes = nodes
        graph = short.model.graph
        self._short_nodes: Sequence[Node] = graph.node if graph is not None else ()
        self._producers = {name: at for at, node in enumerate(self._short_nodes) for name in node.output if name}
        self._short_owned = owned
        self._inner = inner
        """The values in repeats."""
        self.owned: Owned = {}

    def item(self, item: Item) -> Item:
        """Return a line with the names of the whole graph, a repeat with all of its rounds."""
        positions = [at for at in self._positions([item]) if at >= self._start]
        consumed, produced = values_of([item])
        outer = {*consumed}.difference(produced)
        sources = [self._producers.get(name, -1) for name in outer]
        if max(positions, default=0) < self._start + _EDGE * self._period:
            if outer.isdisjoint(self._inner):
                return self._placed([item], 0)[0]
        elif min(positions) >= self._early.stop:
            if not any([at in self._early for at in sources]):
                return self._placed([item], self._offset)[0]
        elif isinstance(item, Repeat) and max(sources, default=0) < self._start:
            return self._repeat(item)
        raise LookupError(item)

    def _positions(self, items: Sequence[Item]) -> list[int]:
        return [at for each in statements_of(items) for at in self._short_owned[id(each)]]

    def _repeat(self, repeat: Repeat) -> Repeat:
        """A repeat with the rounds left out, which are those after the first ones once more."""
        rounds = repeat.rounds
        for size in range(1, len(rounds) // 3 + 1):  # rounds of lines in a round of nodes
            one, other = [rounds[first : first + size] for first in (size, 2 * size)]
            begins = max([at for each in rounds[: 2 * size] for at in self._positions(each)]) < self._early.stop
            if begins and all(map(self._is_next, one, other)):
                first = [tuple(self._placed(each, 0)) for each in rounds[:size]]
                next_ones = [tuple(self._placed(each, 0)) for each in one] * self._left_out
                rest = [tuple(self._placed(each, self._offset)) for each in rounds[size:]]
                return repeat._replace(rounds=(*first, *next_ones, *rest))
        raise LookupError(repeat)

    def _is_next(self, items: Sequence[Item], others: Sequence[Item]) -> bool:
        """Whether lines are the same as others a period before, with the names of their nodes."""
        positions = self._positions(items)
        if [at + self._period for at in positions] != self._positions(others):
            return False
        names = self._names(positions, self._period, self._short_nodes)
        inner = {name: other for name, other in names.items() if name in self._inner}
        pairs = zip(values_of(items), values_of(others), strict=True)
        return all([[inner.get(name, name) for name in values] == later for values, later in pairs])

    def _names(self, positions: Sequence[int], offset: int, nodes: Sequence[Node]) -> dict[str, str]:
        """The names that the values and constants of nodes have so many places later."""
        names: dict[str, str] = {}
        for at in positions:
            if at >= self._start:
                one, other = self._short_nodes[at], nodes[at + offset]
                names.update(zip((*one.input, *one.output), (*other.input, *other.output), strict=True))
        return names

    def _placed(self, items: Sequence[Item], offset: int) -> list[Item]:
        """Lines so many places later, with the names of their constants there; those of inner values are not shown."""
        names = self._names(self._positions(items), offset, self._nodes)

        def place_of(at: int) -> int:
            return at + offset if at >= self._start else at

        def placed(item: Item) -> Item:
            if isinstance(item, Repeat):
                return item._replace(rounds=tuple([tuple(map(placed, each)) for each in item.rounds]))
            pieces = [
                Weight(names.get(each.name, each.name), place_of(each.user)) if isinstance(each, Weight) else each
                for each in item.expression.pieces
            ]
            statement = item._replace(expression=item.expression._replace(pieces=tuple(pieces)))
            self.owned[id(statement)] = [place_of(at) for at in self._short_owned[id(item)]]
            return statement

        return list(map(placed, items))
