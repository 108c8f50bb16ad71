"""Matching one pattern at one node: backwards from its output to its inputs, with a budget of work.

Commutative operators match with their inputs in any order. A constant is an initializer, the value of a node Constant,
or one of these followed by Identity nodes. Optional inputs that a call does not mention may be present
or absent; others must be mentioned, or matched by ``...``. A call without parentheses has any inputs.

The search has a list of goals, such as "this input is a constant 0.5". Where there is a choice, one branch is followed
and the others wait. `onnxjson.patterns.misses` says why a place does not match.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import permutations
from operator import itemgetter
from typing import Any, Final, NamedTuple

from onnxjson.model.document import Attribute
from onnxjson.model.errors import LimitError
from onnxjson.model.index import NodeRef, Scope
from onnxjson.model.limits import PATTERN_STEPS
from onnxjson.model.operators import is_commutative
from onnxjson.patterns.expression import (
    Anything,
    AttributeValue,
    Bound,
    Call,
    Elements,
    Number,
    Path,
    Pattern,
    ValuePattern,
    final_call,
)
from onnxjson.patterns.mismatches import Conditions
from onnxjson.patterns.nodes import Nodes, Value, given_inputs, is_calling, new_ref, positions_calling

PERMUTED: Final = 5
"""Inputs of a commutative operator up to which all orders are tried."""

INPUT, NODE, PATH, OTHER = range(4)
"""Goals: an input of a node; a node; what leads to a node; another value of the pattern, anywhere."""

Goals = tuple[tuple[int, Any, NodeRef, int], Any] | None
"""The next goal and the others: kind, pattern, node, and the position of an input or output."""


class State(NamedTuple):
    """A branch of the search; a match if no goal is left."""

    goals: Goals
    bindings: Mapping[str, Value | Attribute] = {}
    nodes: tuple[NodeRef, ...] = ()
    """The nodes of its calls, in reverse order of the model."""


_new_state: Final[Callable[[tuple[Any, ...]], State]] = partial(tuple.__new__, State)
"""Creates records twice as fast as their class does."""


def _with_inputs(state: State, wanted: Sequence[ValuePattern], order: Sequence[int], ref: NodeRef) -> State:
    """Return a branch that also has the inputs of a node as goals, in this order."""
    goals = state.goals
    for place in range(len(wanted) - 1, -1, -1):
        goals = ((INPUT, wanted[place], ref, order[place]), goals)
    return _new_state((goals, *state[1:]))


class Matcher:
    """One pattern, and the model in which it is matched."""

    def __init__(
        self,
        nodes: Nodes,
        pattern: Pattern,
        selected: Callable[[str], Collection[NodeRef]],
    ) -> None:
        """Args: `selected` returns the nodes of a selector."""
        index = nodes.index
        self.pattern = pattern
        self._nodes = nodes
        self.conditions = Conditions(index, selected, nodes.literals)
        self._literals = nodes.literals
        self._names = {id(call): nodes.names(call) for call in pattern.calls}
        """By the identity of a call, the values that it may describe."""
        self._steps = 0
        self._most_steps = PATTERN_STEPS + 20 * len(index.node_refs)
        calls = pattern.calls
        plain = [each._replace(output=0, name="") for each in calls]
        self._same = [
            (place, plain.index(each))
            for place, each in enumerate(plain)
            if calls[plain.index(each)].output != calls[place].output
        ]
        """Calls that differ in their output only; they are one node."""

    def in_order(self, refs: list[NodeRef]) -> list[NodeRef]:
        """Sort nodes into the order of the file."""
        by_scope: dict[Scope, list[NodeRef]] = {}
        for ref in sorted(refs, key=itemgetter(1)):
            by_scope.setdefault(ref.scope, []).append(ref)
        scopes = self._nodes.index.scopes
        return self._nodes.index.in_order([ref for scope in scopes for ref in by_scope.get(scope, ())])

    def places(self) -> Sequence[NodeRef]:
        """Return the candidates whose operators, and those of the nodes before them, fit."""
        call = final_call(self.pattern.root)
        if not all(self._names.values()):
            return ()
        names, slot = self._names[id(call)], call.output
        refs = [
            new_ref((scope, at))
            for scope in self._nodes.index.scopes
            for at in positions_calling(scope, call.operators)
            if not names.isdisjoint(scope.graph.node[at].output[slot : slot + 1])
        ]
        return self._nodes.index.in_order(refs)

    def matches_at(self, ref: NodeRef) -> Iterator[State]:
        """Yield the matches whose last node is this one.

        Raises:
            LimitError: too many goals were followed; see `PATTERN_STEPS`.
        """
        output = final_call(self.pattern.root).output
        if output >= len(ref.node.output) or not ref.node.output[output]:
            return
        goals: Goals = None
        for each in reversed(self.pattern.others):
            goals = ((OTHER, each, ref, 0), goals)
        waiting: list[Iterator[State]] = [iter((State(((NODE, self.pattern.root, ref, output), goals)),))]
        while waiting:
            state = next(waiting[-1], None)
            if state is None:
                waiting.pop()
                continue
            after = self._advance(state)
            if isinstance(after, State):
                yield after
            elif after is not None:
                waiting.append(after)

    def _step(self) -> None:
        self._steps += 1
        if self._steps > self._most_steps:
            raise LimitError(
                f"the search for the pattern stops after {self._most_steps:,} comparisons; name more operators, or "
                "limit the nodes between two of them, as in ...{0,3}"
            )

    def _advance(self, state: State) -> State | Iterator[State] | None:
        """Follow the goals of a branch to the end, to a choice (the branches are returned), or until one is missed."""
        goals = state.goals
        while goals is not None:
            self._step()
            (kind, want, ref, place), goals = goals
            after: State | Iterator[State] | None
            rest = _new_state((goals, *state[1:]))
            if kind == INPUT:
                if type(want) is Anything:
                    continue
                after = self._input(want, ref, place, rest)
            elif kind == PATH:
                return self._ways(want, ref, rest)
            elif kind == OTHER:
                return self._elsewhere(want, rest)
            else:
                after = self._node(want, ref, place, rest)
            if not isinstance(after, State):
                return after
            state, goals = after, after.goals
        return state if self._is_complete(state) else None

    def _is_complete(self, state: State) -> bool:
        """Whether a branch without goals satisfies the conditions."""
        if any([state.nodes[one] != state.nodes[other] for one, other in self._same]):
            return False
        for condition in self.pattern.conditions:
            value = state.bindings.get(condition.name)
            if value is not None and self.conditions.problem(condition, value, state.bindings) is not None:
                return False
        return True

    def _input(self, want: ValuePattern, user: NodeRef, slot: int, state: State) -> State | None:
        names = user.node.input
        name = names[slot] if slot < len(names) else ""
        if not name:
            return None
        if isinstance(want, Call | Path):
            call, producer = final_call(want), self._nodes.producer(user.scope, name)
            if producer is None or not is_calling(producer.node, call.operators):
                return None
            output = producer.scope.producers[name][1]
            return _new_state((((NODE, want, producer, output), state.goals), *state[1:]))
        value = self._nodes.value(user.scope, name)
        if isinstance(want, Bound):
            return self._bound(want, value, state)
        assert isinstance(want, Number | Elements)
        return state if self._literals.is_like(value, want) else None

    def _bound(self, want: Bound, value: Value, state: State) -> State | None:
        if want.is_constant and not self._literals.is_constant(value):
            return None
        before = state.bindings.get(want.name)
        if before is None:
            goals, bindings, *others = state
            return _new_state((goals, {**bindings, want.name: value}, *others))
        return state if before == value else None

    def _node(self, want: Call | Path, ref: NodeRef, output: int, state: State) -> State | Iterator[State] | None:
        call = final_call(want)
        if output != call.output or not is_calling(ref.node, call.operators):
            return None
        goals, bindings, nodes = state
        after: State | None = _new_state((goals, bindings, (*nodes, ref)))
        if after is not None and call.name:
            after = self._bound(Bound(call.name), Value(ref.scope, ref.node.output[output]), after)
        for name, wanted in call.attributes:
            after = None if after is None else self._attribute(name, wanted, ref, after)
        if after is None:
            return None
        if isinstance(want, Path):
            after = _new_state((((PATH, want, ref, 0), after.goals), *after[1:]))
        return after if call.inputs is None else self._inputs(call, call.inputs, ref, after)

    def _attribute(self, name: str, want: AttributeValue, ref: NodeRef, state: State) -> State | None:
        bindings = dict(state.bindings)
        return state._replace(bindings=bindings) if self._nodes.binds(name, want, ref, bindings) else None

    def _inputs(
        self, call: Call, wanted: Sequence[ValuePattern], ref: NodeRef, state: State
    ) -> State | Iterator[State] | None:
        given = given_inputs(ref)
        if given > len(wanted) and not call.is_open and not self._nodes.is_optional(ref, len(wanted)):
            return None
        count = max(len(wanted), given)
        if not 1 < count <= PERMUTED or not is_commutative(ref.node.domain, ref.node.op_type):
            return _with_inputs(state, wanted, range(len(wanted)), ref)
        orders = self._orders(wanted, count, ref)
        if len(orders) > 1:
            return (_with_inputs(state, wanted, order, ref) for order in orders)
        return _with_inputs(state, wanted, orders[0], ref) if orders else None

    def _orders(self, wanted: Sequence[ValuePattern], count: int, ref: NodeRef) -> list[tuple[int, ...]]:
        """The orders of inputs that may match, each different assignment once."""
        fits = [[self._may_fit(each, slot, ref) for slot in range(count)] for each in wanted]
        orders = [
            order
            for order in permutations(range(count), len(wanted))
            if all([row[slot] for row, slot in zip(fits, order, strict=True)])
        ]
        if len(orders) < 2 or len(set(wanted)) == len(wanted):
            return orders
        seen: dict[frozenset[tuple[int, ValuePattern]], tuple[int, ...]] = {}
        for order in orders:
            seen.setdefault(frozenset(zip(order, wanted, strict=True)), order)
        return list(seen.values())

    def _may_fit(self, want: ValuePattern, slot: int, user: NodeRef) -> bool:
        """Whether an input may match, judged from operators and numbers alone."""
        names = user.node.input
        name = names[slot] if slot < len(names) else ""
        if not name:
            return isinstance(want, Anything)
        if isinstance(want, Call | Path):
            return name in self._names[id(final_call(want))]
        if isinstance(want, Number | Elements):
            return self._literals.is_like(self._nodes.value(user.scope, name), want)
        return (
            not isinstance(want, Bound)
            or not want.is_constant
            or self._literals.is_constant(self._nodes.value(user.scope, name))
        )

    def _ways(self, want: Path, last: NodeRef, state: State) -> Iterator[State]:
        """Yield a branch for each input, at most so many nodes back, from which a path may start."""
        level, seen, depth = [last], {last}, 0
        while level and (want.most is None or depth <= want.most):
            following: dict[NodeRef, None] = {}
            for ref in level:
                for slot, name in enumerate(ref.node.input):
                    if not name:
                        continue
                    producer = self._nodes.producer(ref.scope, name)
                    if depth >= want.least and self._may_fit(want.start, slot, ref):
                        yield _new_state((((INPUT, want.start, ref, slot), state.goals), *state[1:]))
                    self._step()
                    if producer is not None and (producer not in seen or depth < want.least):
                        seen.add(producer)
                        following[producer] = None
            level, depth = list(following), depth + 1

    def _elsewhere(self, want: Call | Path, state: State) -> Iterator[State]:
        """Yield a branch for each node that may produce another value of the pattern."""
        call, bindings = final_call(want), state.bindings
        known = [bindings.get(each.name) for each in call.inputs or () if isinstance(each, Bound)]
        near = next((each for each in known if isinstance(each, Value) and each.scope is not None), None)
        refs: Iterable[NodeRef] = self._nodes.calling(call.operators)
        if near is not None and near.scope is not None:
            uses = self._nodes.index.consumers(near.scope, near.name)
            refs = dict.fromkeys([NodeRef(use.scope, use.position) for use in uses if use.position is not None])
        taken = {bindings.get(final_call(each).name) for each in self.pattern.roots}
        for ref in refs:
            self._step()
            name = ref.node.output[call.output] if call.output < len(ref.node.output) else ""
            if name and is_calling(ref.node, call.operators) and Value(ref.scope, name) not in taken:
                yield _new_state((((NODE, want, ref, call.output), state.goals), *state[1:]))
