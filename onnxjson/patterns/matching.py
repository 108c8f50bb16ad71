"""Matching one pattern at one node: backwards from its output to its inputs, with a budget of work.

Commutative operators match with their inputs in any order. A constant is an initializer, the value of a node Constant,
or one of these followed by Identity nodes. Optional inputs that a call does not mention may be present
or absent; others must be mentioned, or matched by ``...``. A call without parentheses has any inputs.

The search has a list of goals, such as "this input is a constant 0.5". Where there is a choice, one branch is followed
and the others wait. With slack, a branch may miss that number of goals and remembers what it missed:
`onnxjson.patterns.searching.nearest_misses` uses that.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import permutations
from operator import itemgetter
from typing import Final

from onnxjson.model.display import visible
from onnxjson.model.errors import LimitError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.limits import PATTERN_STEPS
from onnxjson.model.operators import is_commutative
from onnxjson.patterns import mismatches
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
from onnxjson.patterns.mismatches import (
    INPUT,
    INSIDE,
    NODE,
    OTHER,
    PATH,
    SLACK,
    Conditions,
    Goals,
    State,
    called,
    miss,
    new_state,
    operators,
    with_goals,
    with_inputs,
)
from onnxjson.patterns.nodes import Nodes, Value, is_calling, new_ref, positions_calling

_PERMUTED: Final = 5
"""Inputs of a commutative operator up to which all orders are tried."""


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
        self._conditions = Conditions(index, selected, nodes.literals)
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

    def candidates(self) -> Sequence[NodeRef]:
        """Return the nodes at which the pattern may match, by their operator, in the order of the file."""
        return self._nodes.calling(final_call(self.pattern.root).operators)

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

    def matches_at(self, ref: NodeRef, slack: int = 0) -> Iterator[State]:
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
        start = State(((NODE, self.pattern.root, ref, output), goals), slack=slack)
        waiting: list[Iterator[State]] = [iter((start,))]
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
            if kind == INPUT:
                if type(want) is Anything:
                    continue
                after = self._input(want, ref, place, with_goals(state, goals))
            elif kind == PATH:
                return self._ways(want, ref, with_goals(state, goals))
            elif kind == OTHER:
                return self._elsewhere(want, ref, with_goals(state, goals))
            elif kind == SLACK:
                after = state._replace(goals=goals, slack=place)
            else:
                after = self._node(kind, want, ref, place, with_goals(state, goals))
            if not isinstance(after, State):
                return after
            state, goals = after, after.goals
        return self._conditioned(state)

    def _conditioned(self, state: State) -> State | None:
        if not state.missed and any([state.nodes[one] != state.nodes[other] for one, other in self._same]):
            return None
        for condition in self.pattern.conditions:
            value = state.bindings.get(condition.name)
            problem = None if value is None else self._conditions.problem(condition, value, state.bindings)
            if problem is not None:
                missed = miss(state, partial(str, problem), state.nodes[0] if state.nodes else None)
                if missed is None:
                    return None
                state = missed
        return state

    def _input(self, want: ValuePattern, user: NodeRef, slot: int, state: State) -> State | Iterator[State] | None:
        names = user.node.input
        name = names[slot] if slot < len(names) else ""
        if not name:
            return miss(state, lambda: f"{called(user)} has no input {slot}, the pattern needs {want}", user)
        if isinstance(want, Call | Path):
            return self._produced(want, name, user, slot, state)
        value = self._nodes.value(user.scope, name)
        if isinstance(want, Bound):
            return self._bound(want, value, user, state)
        assert isinstance(want, Number | Elements)
        if self._literals.is_like(value, want):
            return state
        return miss(
            state, lambda: mismatches.constant_differs(user.node, slot, want, self._literals.text(value), name), user
        )

    def _bound(self, want: Bound, value: Value, user: NodeRef, state: State) -> State | None:
        if want.is_constant and not self._literals.is_constant(value):
            return miss(
                state, lambda: f'"{visible(value.name)}" is not a constant, the pattern needs one ({want})', user
            )
        before = state.bindings.get(want.name)
        if before is None:
            goals, bindings, *others = state
            return new_state((goals, {**bindings, want.name: value}, *others))
        if before == value:
            return state
        return miss(
            state,
            lambda: f'{want} is "{visible(before.name or "")}" in one place and "{visible(value.name)}" in another',
            user,
        )

    def _produced(
        self, want: Call | Path, name: str, user: NodeRef, slot: int, state: State
    ) -> State | Iterator[State] | None:
        call, producer = final_call(want), self._nodes.producer(user.scope, name)
        if producer is not None and is_calling(producer.node, call.operators):
            output = producer.scope.producers[name][1]
            return with_goals(state, ((NODE, want, producer, output), state.goals))
        if not state.slack:
            return None
        scope = Index.defining_scope(user.scope, name)
        missed = miss(state, partial(mismatches.comes_from, call, name, producer, scope), user)
        return None if missed is None else self._around(want, producer, user, slot, missed)

    @staticmethod
    def _around(want: Call | Path, producer: NodeRef | None, user: NodeRef, slot: int, state: State) -> Iterator[State]:
        """Yield ways to continue where a value comes from another node than wanted."""
        call = final_call(want)
        if producer is not None:
            if call.inputs and len(call.inputs) <= len(producer.node.input):  # with this operator in place of the other
                last = state.missed[-1]._replace(other=producer)
                goals = ((INSIDE, want, producer, 0), state.goals)
                yield state._replace(goals=goals, missed=(*state.missed[:-1], last))
            for place, name in enumerate(producer.node.input[:2]):  # without this node in the model
                if name:
                    yield with_goals(state, ((INPUT, want, producer, place), state.goals))
        for each in call.inputs or ():  # without the call in the pattern
            if isinstance(each, Call | Path):
                yield with_goals(state, ((INPUT, each, user, slot), state.goals))
        yield state

    def _node(
        self, kind: int, want: Call | Path, ref: NodeRef, output: int, state: State
    ) -> State | Iterator[State] | None:
        call = final_call(want)
        goals, bindings, nodes, *others = state
        after: State | None = new_state((goals, bindings, (*nodes, ref), *others))
        assert after is not None
        if kind == NODE and not is_calling(ref.node, call.operators):
            after = miss(after, lambda: f"{called(ref)}: the pattern needs {operators(call)} here", ref, other=ref)
        elif kind == NODE and output != call.output:
            after = miss(
                after, lambda: f"output {output} of {called(ref)} is used, the pattern needs output {call.output}", ref
            )
        if after is not None and call.name and kind == NODE:
            value = Value(ref.scope, ref.node.output[output])
            after = self._bound(Bound(call.name), value, ref, after)
        for name, wanted in call.attributes:
            after = None if after is None else self._attribute(name, wanted, ref, after)
        if after is None:
            return None
        if isinstance(want, Path):
            after = with_goals(after, ((PATH, want, ref, 0), after.goals))
        return after if call.inputs is None else self._inputs(call, call.inputs, ref, after)

    def _attribute(self, name: str, want: AttributeValue, ref: NodeRef, state: State) -> State | None:
        bindings = dict(state.bindings)
        if self._nodes.binds(name, want, ref, bindings):
            return state._replace(bindings=bindings)
        return miss(state, lambda: mismatches.attribute_differs(ref, name, self._nodes.attribute(ref, name), want), ref)

    def _inputs(
        self, call: Call, wanted: Sequence[ValuePattern], ref: NodeRef, state: State
    ) -> State | Iterator[State] | None:
        names = ref.node.input
        given = len(names)
        while given and not names[given - 1]:
            given -= 1
        if given > len(wanted) and not call.is_open and not self._nodes.is_optional(ref, len(wanted)):
            missed = miss(state, partial(mismatches.more_inputs, ref, given, len(wanted)), ref)
            if missed is None:
                return None
            state = missed
        count = max(len(wanted), given)
        if not 1 < count <= _PERMUTED or not is_commutative(ref.node.domain, ref.node.op_type):
            return with_inputs(state, wanted, range(len(wanted)), ref)
        orders = self._orders(wanted, count, ref, is_exact=not state.slack)
        if len(orders) > 1:
            return (with_inputs(state, wanted, order, ref) for order in orders)
        return with_inputs(state, wanted, orders[0], ref) if orders else None

    def _orders(
        self, wanted: Sequence[ValuePattern], count: int, ref: NodeRef, *, is_exact: bool
    ) -> list[tuple[int, ...]]:
        """The orders of inputs that may match, each different assignment once."""
        orders = list(permutations(range(count), len(wanted)))
        if is_exact:
            fits = [[self._may_fit(each, slot, ref) for slot in range(count)] for each in wanted]
            orders = [order for order in orders if all([row[slot] for row, slot in zip(fits, order, strict=True)])]
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
        rest = ((SLACK, None, last, state.slack), state.goals) if state.slack else state.goals
        level, seen, depth = [last], {last}, 0
        while level and (want.most is None or depth <= want.most):
            following: dict[NodeRef, None] = {}
            for ref in level:
                for slot, name in enumerate(ref.node.input):
                    if not name:
                        continue
                    producer = self._nodes.producer(ref.scope, name)
                    if depth >= want.least and (state.slack or self._may_fit(want.start, slot, ref)):
                        goals = ((INPUT, want.start, ref, slot), rest)
                        yield new_state((goals, state.bindings, state.nodes, 0, state.missed))
                    self._step()
                    if producer is not None and (producer not in seen or depth < want.least):
                        seen.add(producer)
                        following[producer] = None
            level, depth = list(following), depth + 1
        missed = miss(state, partial(mismatches.no_path, want, last.node.output[0]), last)
        if missed is not None:
            yield missed

    def _elsewhere(self, want: Call | Path, first: NodeRef, state: State) -> Iterator[State]:
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
                yield with_goals(state, ((NODE, want, ref, call.output), state.goals))
        missed = miss(state, lambda: f"no other node fits {call}", first)
        if missed is not None:
            yield missed
