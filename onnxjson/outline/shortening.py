"""Graphs with thousands of nodes in equal rounds: a few rounds are outlined, and the lines of the others follow.

What is left out is proved to be alike, node by node: operator, attributes, types, constants, and where each value comes
from. Where anything cannot be carried over, the whole graph is outlined.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import Final, NamedTuple, TypeAlias

import msgspec

from onnxjson.model.dimensions import INVENTED
from onnxjson.model.document import Graph, Model, Tensor, Type
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.outline.expressions import Expression, Ref, Statement, Weight
from onnxjson.outline.flow import Flow
from onnxjson.outline.repeats import Item, Repeat, key_of, statements_of, values_of, written
from onnxjson.outline.values import FAR, SHOWN

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

Owned: TypeAlias = dict[int, list[NodeRef]]
"""By the identity of a statement, its nodes."""


class Shortened(NamedTuple):
    """A model without most of its rounds; the first and the last ones are kept."""

    model: Model
    start: int
    """The position of the first node of a round."""
    period: int
    """The nodes of a round."""
    left_out: int
    """The nodes of the rounds that are left out."""


def shortened(index: Index) -> Shortened | None:
    """Return a model without most of the rounds that its nodes consist of; None if there are not many of them."""
    if len(index.scopes) != 1 or index.main is None or len(index.main.graph.node) < FROM:
        return None
    flow = Flow(index.main)
    kinds: dict[object, int] = {}
    numbers = [kinds.setdefault((node.op_type, node.domain, node.attribute), len(kinds)) for node in flow.nodes]
    most = len(numbers) // 2  # nodes that are compared in vain
    for part in (2, 4, 1):
        at = len(numbers) * part // 6
        for period in islice(_periods(numbers, at), _TRIED):
            rounds = _Rounds(flow, numbers, period)
            start, end = rounds.around(at)
            if (found := _without_rounds(index.model, flow, start, end, period)) is not None:
                return found
            if (most := most - (end - start)) < 0:
                return None
    return None


def _periods(numbers: Sequence[int], at: int) -> Iterator[int]:
    """Yield the lengths of rounds of which two begin at a node."""
    for end in range(at + 1, min(at + _PERIOD, len(numbers))):
        if numbers[end] == numbers[at] and numbers[at:end] == numbers[end : 2 * end - at]:
            yield end - at


def _without_rounds(model: Model, flow: Flow, start: int, end: int, period: int) -> Shortened | None:
    """Return a model without most rounds, where each node from `start` to `end` is like the one a period later."""
    nodes, producers, graph = flow.nodes, flow.producers, flow.scope.graph
    offset = ((end - start) // period + 1 - _KEPT) * period
    cut = start + _KEPT // 2 * period
    if offset < len(nodes) // 2 or not isinstance(graph, Graph):
        return None
    shorter = [*nodes[:cut], *nodes[cut + offset :]]
    for place in range(cut, end + period - offset):  # what these take from before the cut, others take from as far away
        pairs = zip(shorter[place].input, nodes[place].input, strict=True)
        inputs = tuple([other if 0 <= producers.get(name, -1) < cut + offset else name for name, other in pairs])
        shorter[place] = msgspec.structs.replace(shorter[place], input=inputs)
    names = [*flow.outputs, *[name for node in shorter for name in node.input]]
    if any([cut <= producers.get(name, -1) < cut + offset for name in names]):
        return None
    graph = msgspec.structs.replace(graph, node=tuple(shorter))
    return Shortened(msgspec.structs.replace(model, graph=graph), start, period, offset)


class _Rounds:
    """Rounds of nodes with one period."""

    def __init__(self, flow: Flow, numbers: Sequence[int], period: int) -> None:
        self._flow = flow
        self._numbers = numbers
        """Of each node, one that stands for its operator and attributes."""
        self._period = period
        self._next: dict[Hashable, Hashable] = {}
        """By what comes from outside, such as weights, what the next round has in its place; and the other way."""
        self._before: dict[Hashable, Hashable] = {}

    def around(self, position: int) -> tuple[int, int]:
        """Return the first and the end of the nodes around one that are like those a period later."""
        start = end = position
        while self._are_alike(end):
            end += 1
        while self._are_alike(start - 1):
            start -= 1
        return start, end

    def _are_alike(self, position: int) -> bool:
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

    def _have_same_type(self, name: str, other: str) -> bool:
        """Whether the stated types are the same but for the names of invented dimensions."""
        types = self._flow.scope.types
        (one, invented), (two, others) = [_split(types.get(each)) for each in (name, other)]
        return one == two and all(map(self._is_next, invented, others))

    def _are_alike_values(self, name: str, other: str) -> bool:
        flow = self._flow
        (at, slot), (place, later) = [flow.scope.producers.get(each, (-1, 0)) for each in (name, other)]
        if name != other and at >= 0:
            return (place - at, later) == (self._period, slot)
        if not self._is_next(name, other):
            return False
        tensors = [flow.scope.initializer(each) for each in (name, other) if each in flow.stored]
        kinds = [(each.data_type, each.dims) for each in tensors if isinstance(each, Tensor)]
        if name == other or len(kinds) < 2 or kinds[0] != kinds[1]:
            return name == other
        one, two = [flow.elements(each) for each in (name, other)]
        if one == two or one is None or two is None:
            return one == two
        # Of longer ones, zeros and low numbers in masks matter only.
        is_long = len(one) > SHOWN and all([isinstance(each[0], float) for each in (one, two)])
        return is_long and min(*one, *two) > FAR and min(max(one), max(two)) > 0

    def _is_next(self, one: Hashable, other: Hashable) -> bool:
        """Whether something from outside always has the same thing in its place in the next round."""
        return (self._next.setdefault(one, other), self._before.setdefault(other, one)) == (other, one)


@lru_cache(1024)
def _split(stated: Type | None) -> tuple[object, Sequence[tuple[str]]]:
    """A type without the names of invented dimensions, and these."""
    shape = None if stated is None or stated.tensor_type is None else stated.tensor_type.shape
    if stated is None or stated.tensor_type is None or shape is None:
        return stated, ()
    sizes = [str(each.dim_value or each.dim_param) for each in shape.dim]
    invented = [(size,) for size in sizes if size.startswith(INVENTED)]
    known = [INVENTED if size.startswith(INVENTED) else size for size in sizes]
    return (stated.tensor_type.elem_type, known), invented


def lengthened(
    short: Shortened, flow: Flow, scope: Scope, items: Sequence[Item], owned: Mapping[int, Sequence[NodeRef]]
) -> tuple[list[Item], Owned] | None:
    """Return the lines of the whole graph, and their nodes; None if they do not follow.

    Args:
        short: the graph without most of its rounds.
        flow: its dataflow.
        scope: the whole graph.
        items: the lines of the short graph.
        owned: by the identity of a statement in them, its nodes.
    """
    if _is_carried(flow, short):
        return None
    lengthening = _Lengthening(short, flow, scope, items, owned)
    try:
        longer = [lengthening.item(item) for item in items]
    except LookupError:
        return None
    positions = [ref.position for refs in lengthening.owned.values() for ref in refs]
    known = sum(map(len, owned.values())) + short.left_out
    return (longer, lengthening.owned) if len(positions) == len({*positions}) == known else None


def _is_carried(flow: Flow, short: Shortened) -> bool:
    """Whether sizes or constants are computed from those of rounds before: what is known of them may change."""
    begins: dict[int, int] = {}
    silent = flow.shape_nodes | flow.constant_nodes
    for at in flow.order:
        if at in silent and short.start <= at < short.start + _KEPT * short.period:
            sources = [begins.get(flow.producer(name), at) for name in flow.consumed[at]]
            begins[at] = min([at, *sources])
    return any([at - begin > short.period for at, begin in begins.items()])


def _lines(repeat: Repeat) -> Hashable:
    return frozenset(map(key_of, repeat.rounds[0]))


class _Lengthening:
    """Lines of a short graph at the places of the rounds of the whole one; LookupError where it is not clear."""

    def __init__(
        self, short: Shortened, flow: Flow, scope: Scope, items: Sequence[Item],
        owned: Mapping[int, Sequence[NodeRef]],
    ) -> None:  # fmt: skip
        self._start, self._period, self._left_out = short.start, short.period, short.left_out
        self._late = short.start + (_KEPT - _EDGE) * short.period
        """The first node of the last rounds."""
        self._producers, self._scope, self._nodes = flow.scope.producers, scope, scope.graph.node
        self._short_owned = owned
        repeats = [item for item in items if self._is_long(item)]
        places = [at for at in self._positions(repeats) if at >= self._start]
        self._inner = {*values_of(repeats)[1], *[name for at in places for name in flow.nodes[at].output]}
        """The values in repeats with the rounds that are left out."""
        inputs = [(name, (at, slot)) for at in places for slot, name in enumerate(flow.nodes[at].input)]
        self._stored = {name: place for name, place in inputs if name in flow.stored}
        """Where they take a stored constant from."""
        self._repeats = Counter([_lines(each) for each in written(items) if isinstance(each, Repeat)])
        """How many repeats have the same lines; how these are folded may depend on the number of their rounds."""
        self.owned: Owned = {}

    def item(self, item: Item) -> Item:
        """Return a line with the names of the whole graph, a repeat with all of its rounds."""
        if isinstance(item, Repeat) and self._is_long(item):
            return self._repeat(item)
        offset = self._left_out if max(self._positions([item]), default=0) >= self._late else 0
        sources = [self._producers[name][0] for name in values_of([item])[0] if name in self._inner]
        if self._is_long(item) or (sources and (not offset or min(sources) < self._late)):
            raise LookupError(item)
        return self._placed(item, offset)

    def _positions(self, items: Sequence[Item]) -> list[int]:
        return [ref.position for each in statements_of(items) for ref in self._short_owned[id(each)]]

    def _is_long(self, item: Item) -> bool:
        """Whether a line has nodes of rounds that are neither the first nor the last ones."""
        positions = [at for at in self._positions([item]) if at >= self._start]
        first = self._start + _EDGE * self._period
        return min(positions, default=self._late) < self._late and max(positions, default=0) >= first

    def _repeat(self, repeat: Repeat) -> Repeat:
        """A repeat with the rounds left out, which are those after the first ones once more."""
        rounds, period = repeat.rounds, self._period
        sizes = range(1, len(rounds) // (_KEPT - _EDGE) + 1) if self._repeats[_lines(repeat)] == 1 else ()
        for size in sizes:  # rounds of lines in a round of nodes
            parts = [[*chain(*rounds[at : at + size])] for at in range(size, (_KEPT - _EDGE) * size, size)]
            if all([self._shown(one, period) == self._shown(other, 0) for one, other in pairwise(parts)]):
                places = [(items, 0) for items in rounds[:size]]
                places += [(items, at) for at in range(0, self._left_out, period) for items in rounds[size : 2 * size]]
                places += [(items, self._left_out) for items in rounds[size:]]
                longer = [tuple([self._placed(each, offset) for each in items]) for items, offset in places]
                return Repeat(tuple(longer), repeat.carried)
        raise LookupError(repeat)

    def _shown(self, items: Sequence[Item], offset: int) -> list[object]:
        """What lines so many places later consist of, but for the names of stored constants; and their nodes."""
        shown: list[object] = [self._name(name, offset) for names in values_of(items) for name in names]
        for piece in [piece for each in statements_of(items) for piece in each.expression.pieces]:
            if isinstance(piece, Weight):
                shown.append(self._name(piece.name, offset) if piece.name in self._producers else "")
            elif not isinstance(piece, Ref):
                shown.append(piece)
        return [*shown, *[at + offset for at in self._positions(items)]]

    def _name(self, name: str, offset: int) -> str:
        if name in self._inner:
            at, slot = self._producers[name]
            return self._nodes[at + offset].output[slot]
        at, slot = self._stored.get(name, (-1, 0))
        return name if at < 0 else self._nodes[at + offset].input[slot]

    def _placed(self, item: Item, offset: int) -> Item:
        """A line so many places later, but for what comes before all rounds."""

        def named(value: str) -> str:
            return self._name(value, offset)

        if isinstance(item, Repeat):
            rounds = [tuple([self._placed(each, offset) for each in items]) for items in item.rounds]
            return Repeat(tuple(rounds), tuple([(named(start), named(end)) for start, end in item.carried]))
        pieces = [
            Ref(named(each.name), each.is_shown) if isinstance(each, Ref)
            else Weight(named(each.name), self._place(each.user, offset)) if isinstance(each, Weight) else each
            for each in item.expression.pieces
        ]  # fmt: skip
        statement = Statement(tuple(map(named, item.outputs)), Expression(tuple(pieces), *item.expression[1:]))
        refs = self._short_owned[id(item)]
        self.owned[id(statement)] = [NodeRef(self._scope, self._place(at, offset)) for _, at in refs]
        return statement

    def _place(self, at: int, offset: int) -> int:
        return at + offset if at >= self._start else at
