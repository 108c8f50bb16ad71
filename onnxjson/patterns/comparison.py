"""The cheapest comparison of a pattern with a place of a model, as two texts are compared.

A call of the pattern stands for a node of its operator, or for another node in its place; a node of the model may stand
between two calls, and a call may have no node. Each such difference costs about one, and the cheapest comparison of a
call with a value is computed once.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import Final, NamedTuple

from onnxjson.model.errors import LimitError
from onnxjson.model.index import NodeRef
from onnxjson.model.limits import PATTERN_STEPS
from onnxjson.model.operators import is_commutative
from onnxjson.patterns.expression import (
    Anything,
    Bound,
    Call,
    Elements,
    Number,
    Path,
    ValuePattern,
    final_call,
)
from onnxjson.patterns.matching import PERMUTED
from onnxjson.patterns.nodes import Nodes, Value, given_inputs, is_calling

NODE: Final = 1.0
"""Cost of another operator, of a node in between, and of a call without a node."""

DETAIL: Final = 0.8
"""Cost of another attribute, constant, output or number of inputs, of a name with two values, of a condition."""

_ABSENT: Final = 0.5
"""Cost of a call further up that is compared with nothing."""

_OTHER: Final = 0.01
"""Cost of another operator, in addition: a call without a node is the better explanation if both are possible."""

_MORE: Final = 0.25
"""Cost of each further node in between."""

BETWEEN: Final = 4
"""Nodes between two calls that are looked through."""


class Choice(NamedTuple):
    """How a call is compared with a value."""

    cost: float
    matched: int
    kind: str
    """ "node", "other" (a node of another operator), "removed" (no node; the next call is here), "absent"."""
    ref: NodeRef | None = None
    order: tuple[int, ...] = ()
    """The input of each pattern of an input; for "removed", the pattern that is here."""
    between: tuple[NodeRef, ...] = ()
    """Nodes of the model that are passed first."""


def by_rank(choice: Choice) -> tuple[float, int]:
    """Order the comparisons of a call, the cheapest and then the fullest one first."""
    return choice.cost, -choice.matched


class Comparison:
    """Compares calls of patterns with nodes and values of one model."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._literals = nodes.literals
        self._choices: dict[tuple[int, Value], Choice] = {}
        self._numbers: dict[ValuePattern, int] = {}

    def _number(self, want: ValuePattern) -> int:
        return self._numbers.setdefault(want, len(self._numbers))

    def best(self, want: ValuePattern, value: Value | None) -> tuple[float, int]:
        """Return the cost of comparing a pattern with a value (None: there is none), and the calls that match."""
        if isinstance(want, Call | Path):
            choice = self.choice(want, value)
            return choice.cost, choice.matched
        if isinstance(want, Anything):
            return 0, 0
        if value is None:
            return DETAIL, 0
        if isinstance(want, Bound):
            return (DETAIL if want.is_constant and not self._literals.is_constant(value) else 0), 0
        assert isinstance(want, Number | Elements)
        return (0 if self._literals.is_like(value, want) else DETAIL), 0

    def choice(self, want: Call | Path, value: Value | None) -> Choice:
        """Return the cheapest comparison of a call with a value."""
        absent = Choice(NODE + _ABSENT * _size(want), 0, "absent")
        if value is None:
            return absent
        key = (self._number(want), value)
        known = self._choices.get(key)
        if known is None:
            if len(self._choices) > PATTERN_STEPS:
                raise LimitError(f"the search for near places stops after {PATTERN_STEPS:,} comparisons")
            self._choices[key] = absent  # a value that is computed from itself
            known = self._choices[key] = min([absent, *self._options(want, value)], key=by_rank)
        return known

    def _options(self, want: Call | Path, value: Value) -> Iterator[Choice]:
        call = final_call(want)
        producer = None if value.scope is None else self._nodes.producer(value.scope, value.name)
        if producer is not None and is_calling(producer.node, call.operators):
            fitting = self.at(want, producer, self.output_of(producer, value))
            yield fitting
            if fitting.cost <= NODE:
                return
        if producer is not None:
            if not is_calling(producer.node, call.operators):
                yield self.at(want, producer)
            yield from self._through(want, producer)
        yield from self.without(want, value)

    def without(self, want: Call | Path, value: Value) -> Iterator[Choice]:
        """Yield comparisons with what a call is computed from, which has no node itself."""
        for place, inner in enumerate(want.inputs or () if isinstance(want, Call) else ()):
            if isinstance(inner, Call | Path):
                cost, matched = self.best(inner, value)
                others = _size(want) - 1 - _size(inner)
                producer = None if value.scope is None else self._nodes.producer(value.scope, value.name)
                yield Choice(NODE + cost + _ABSENT * others, matched, "removed", producer, (place,))

    def output_of(self, producer: NodeRef, value: Value) -> int:
        """Return the position of an output of a node."""
        return next((slot for slot, name in enumerate(producer.node.output) if name == value.name), 0)

    def _through(self, want: Call | Path, producer: NodeRef) -> Iterator[Choice]:
        """Yield comparisons with a node of the operator further up."""
        call = final_call(want)
        ways: list[tuple[NodeRef, ...]] = [(producer,)]
        for _ in range(BETWEEN):
            longer: list[tuple[NodeRef, ...]] = []
            for way in ways[:8]:
                for name in way[-1].node.input[:4]:
                    source = self._nodes.producer(way[-1].scope, name) if name else None
                    if source is None:
                        continue
                    if is_calling(source.node, call.operators):
                        choice = self.at(want, source)
                        yield choice._replace(cost=choice.cost + between_cost(len(way)), between=way)
                    longer.append((*way, source))
            ways = longer

    def at(self, want: Call | Path, ref: NodeRef, output: int | None = None) -> Choice:
        """Compare a call with a node."""
        call = final_call(want)
        is_fitting = is_calling(ref.node, call.operators)
        cost = 0.0 if is_fitting else NODE + _OTHER
        matched = int(is_fitting)
        if is_fitting:
            cost += DETAIL * (output is not None and output != call.output)
            cost += DETAIL * sum([not self._nodes.binds(name, each, ref, {}) for name, each in call.attributes])
            cost += DETAIL * self.is_more(call, ref)
        order: tuple[int, ...] = ()
        if call.inputs:
            more, inner, orders = self.orders(call, ref)
            cost, matched, order = cost + more, matched + inner, orders[0]
        if isinstance(want, Path):
            more, inner, *_ = self.start(want, ref)
            cost, matched = cost + more, matched + inner
        return Choice(cost, matched, "node" if is_fitting else "other", ref, order)

    def is_more(self, call: Call, ref: NodeRef) -> bool:
        """Whether a node has inputs that a call does not mention."""
        given = given_inputs(ref)
        if call.inputs is None or call.is_open or given <= len(call.inputs):
            return False
        return not self._nodes.is_optional(ref, len(call.inputs))

    def orders(self, call: Call, ref: NodeRef) -> tuple[float, int, list[tuple[int, ...]]]:
        """Return the lowest cost of comparing the inputs, the calls that match then, and the orders with that cost."""
        wanted, given = call.inputs or (), given_inputs(ref)
        count = max(len(wanted), given)
        is_fitting = is_calling(ref.node, call.operators)
        inputs = [self.input_of(ref, slot) for slot in range(count)]
        table = [
            [
                self.best(pattern, value) if is_fitting or isinstance(pattern, Call | Path) else (0, 0)
                for value in inputs
            ]
            for pattern in wanted
        ]
        is_free = not is_fitting or is_commutative(ref.node.domain, ref.node.op_type)
        orders: list[tuple[int, ...]] = [tuple(range(len(wanted)))]
        if is_free and 1 < count <= PERMUTED:
            orders = list(permutations(range(count), len(wanted)))
        costs = [
            (
                sum([row[slot][0] for row, slot in zip(table, order, strict=True)]),
                -sum([row[slot][1] for row, slot in zip(table, order, strict=True)]),
            )
            for order in orders
        ]
        lowest = min(costs)
        return lowest[0], -lowest[1], [order for order, cost in zip(orders, costs, strict=True) if cost == lowest]

    def input_of(self, ref: NodeRef, slot: int) -> Value | None:
        """Return an input of a node."""
        names = ref.node.input
        name = names[slot] if slot < len(names) else ""
        return self._nodes.value(ref.scope, name) if name else None

    def start(self, want: Path, ref: NodeRef) -> tuple[float, int, NodeRef, int, tuple[NodeRef, ...]]:
        """Return the cheapest start of a path: cost, calls that match, user, input, and the nodes that are too many."""
        best: tuple[float, int, NodeRef, int, tuple[NodeRef, ...]] = (
            NODE + _ABSENT * _size(want.start),
            0,
            ref,
            -1,
            (),
        )
        ways: list[tuple[NodeRef, ...]] = [(ref,)]
        seen = {ref}
        most = 10 if want.most is None else want.most
        for depth in range(most + BETWEEN):
            longer: list[tuple[NodeRef, ...]] = []
            for way in ways:
                for slot, name in enumerate(way[-1].node.input):
                    if not name:
                        continue
                    cost, matched = self.best(want.start, self.input_of(way[-1], slot))
                    extra = max(0, depth - most, want.least - depth)
                    cost += between_cost(extra)
                    if (cost, -matched) < (best[0], -best[1]) and (not extra or matched):
                        surplus = way[1:] if depth > most else ()
                        best = cost, matched, way[-1], slot, surplus
                    source = self._nodes.producer(way[-1].scope, name)
                    if source is not None and source not in seen:
                        seen.add(source)
                        longer.append((*way, source))
            ways = longer[:32]
        return best


def between_cost(nodes: int) -> float:
    """The cost of so many nodes between two calls."""
    return NODE + _MORE * (nodes - 1) if nodes else 0.0


def depths(want: ValuePattern, depth: int = 0) -> list[tuple[Call, int]]:
    """The calls of a pattern, with the number of calls after them."""
    if isinstance(want, Path):
        between = want.least if want.most is None else want.most
        return [*depths(want.end, depth), *depths(want.start, depth + 1 + between)]
    if not isinstance(want, Call):
        return []
    return [(want, depth), *[inner for each in want.inputs or () for inner in depths(each, depth + 1)]]


def _size(want: ValuePattern) -> int:
    """The number of calls in a pattern."""
    return len(depths(want))
