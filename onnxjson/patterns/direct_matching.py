"""Matching where a pattern leaves no choice, in one walk: this decides about most nodes of a model.

`onnxjson.patterns.matching` follows branches, which costs several times as much. Here, the inputs of a commutative node
are ordered by what produces them. Where both orders fit, the first match counts; whether there are others is open.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from onnxjson.model.constants import is_constant
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import is_commutative
from onnxjson.patterns.expression import Anything, Bound, Call, Elements, Number, Operator, ValuePattern
from onnxjson.patterns.nodes import Bindings, Nodes, new_ref, new_value, positions_calling

_Find: TypeAlias = Callable[[str], Any]
_Take: TypeAlias = Callable[[Any], bool]


class _Input(NamedTuple):
    """The pattern of an input."""

    find: _Find
    """What `take` needs; None if the value cannot fit, judged from its producer."""
    take: _Take | None
    """The walk into it; None if it fits already."""
    is_needed: bool = True


class DirectMatcher:
    """One pattern, compiled for each graph of the model in which it is matched.

    `step` is called with the number of nodes that a walk discards.
    """

    def __init__(self, known: Nodes, call: Call, step: Callable[[int], None]) -> None:
        self._known = known
        self._pattern = call
        self._step = step
        self._in: Callable[[Scope, Call], _Take] = cache(self._call)
        self.nodes: list[NodeRef] = []
        """Nodes that the latest walk found."""
        self.bindings: Bindings = {}
        self.is_open = False
        """Whether another walk might find something else."""

    def walks(self, scope: Scope, positions: Iterable[int]) -> Iterator[tuple[NodeRef, bool]]:
        """Walk from each node to the inputs of the pattern; yield nodes that match, or may match in another walk."""
        at, output, nodes = self._in(scope, self._pattern), self._pattern.output, scope.graph.node
        clear_nodes, clear_bindings = self.nodes.clear, self.bindings.clear
        for position in positions:
            names = nodes[position].output
            if output < len(names) and names[output]:
                clear_nodes()
                clear_bindings()
                self.is_open = False
                is_match = at(position)
                if is_match or self.is_open:
                    yield NodeRef(scope, position), is_match

    def _call(self, scope: Scope, call: Call) -> _Take:
        """Return the walk of a call in one graph."""
        attributes, is_open, attribute_fits = call.attributes, call.is_open, self._known.binds
        inputs = None if call.inputs is None else [self._input(scope, each) for each in call.inputs]
        called, output, nodes = call.name, call.output, scope.graph.node
        bindings, found_node = self.bindings, self.nodes.append
        count = len(inputs or ())
        may_commute = any(each.name == "*" or is_commutative(each.domain, each.name) for each in call.operators)
        must_commute = all(is_commutative(each.domain, each.name) for each in call.operators)
        in_order = _in_order(inputs or ())
        in_any_order = self._in_any_order(inputs) if inputs and may_commute and count == 2 else None
        usual = in_any_order if must_commute else None if may_commute else in_order

        def at(position: int) -> bool:
            node = nodes[position]
            ref = new_ref((scope, position))
            found_node(ref)
            if called:
                made = new_value((scope, node.output[output]))
                if bindings.setdefault(called, made) != made:
                    return False
            for name, value in attributes:
                if not attribute_fits(name, value, ref, bindings):
                    return False
            if inputs is None:
                return True
            names = node.input
            there = len(names)
            if there == count and usual is not None and "" not in names:
                return usual(names)
            while there and not names[there - 1]:
                there -= 1
            if there > count and not is_open and not self._known.is_optional(ref, count):
                return False
            if may_commute and (there > 1 or count > 1) and (must_commute or is_commutative(node.domain, node.op_type)):
                if in_any_order is not None and there == 2 and names[0]:
                    return in_any_order(names)
                self.is_open = True
                return False
            if there < count and any([each.is_needed for each in inputs[there:]]):
                return False
            return in_order(names)

        return at

    def _input(self, scope: Scope, want: ValuePattern) -> _Input:
        if isinstance(want, Anything):
            return _Input(lambda name: True, None, is_needed=False)
        if isinstance(want, Bound):
            is_any = not want.is_constant

            def find(name: str) -> str | None:
                return name if name and (is_any or is_constant(scope, name)) else None

            return _Input(find, self._bound(scope, want))
        if isinstance(want, Number | Elements):
            return _Input(self._literal(scope, want), None)
        assert isinstance(want, Call), "a path is not a direct pattern"
        return self._inner(scope, want)

    def _bound(self, scope: Scope, want: Bound) -> _Take:
        wanted, producers = want.name, self._known.computed(scope)
        bind = self.bindings.setdefault

        def take(name: str) -> bool:
            value = new_value((scope if name in producers else Index.defining_scope(scope, name), name))
            return bind(wanted, value) == value

        return take

    def _literal(self, scope: Scope, want: Number | Elements) -> _Find:
        known: dict[str, bool | None] = {}
        may_be_constant, literals = self._copied(scope), self._known.literals

        def find(name: str) -> bool | None:
            if name not in known:
                if may_be_constant(name) is None:
                    return None
                known[name] = literals.is_like(new_value((Index.defining_scope(scope, name), name)), want) or None
            return known[name]

        return find

    def _copied(self, scope: Scope) -> _Find:
        producers, nodes = self._known.computed(scope), scope.graph.node
        passing = positions_calling(scope, (Operator("Constant"), Operator("Identity")))
        passed = {name for position in passing for name in nodes[position].output}
        return lambda name: name if name and (name not in producers or name in passed) else None

    def _inner(self, scope: Scope, want: Call) -> _Input:
        at, output, calling = self._in(scope, want), want.output, self._known.are_calling(scope, want.operators)
        producers = self._known.computed(scope)

        def find(name: str) -> int | None:
            place = producers.get(name)
            return place[0] if place is not None and calling[place[0]] and place[1] == output else None

        if scope.outer is None:
            return _Input(find, at)

        def find_around(name: str) -> NodeRef | int | None:
            if name in producers:
                return find(name)
            ref = self._known.index.producer(scope, name)
            if ref is None or ref.scope.producers[name][1] != output:
                return None
            return ref if self._known.are_calling(ref.scope, want.operators)[ref.position] else None

        def take(found: NodeRef | int) -> bool:
            return at(found) if isinstance(found, int) else self._in(found.scope, want)(found.position)

        return _Input(find_around, take)

    def _in_any_order(self, inputs: Sequence[_Input]) -> Callable[[Sequence[str]], bool]:
        """Return the walk into the two inputs of a commutative node, in an order that their producers permit."""
        (find_one, take_one, _), (find_other, take_other, _) = inputs
        nodes, bindings = self.nodes, self.bindings

        def walk_in(names: Sequence[str]) -> bool:
            first, second = names[0], names[1]
            other, swapped_other = find_other(second), find_other(first)
            one = None if other is None else find_one(first)
            swapped_one = None if swapped_other is None else find_one(second)
            if one is None:
                if swapped_one is None:
                    return False
                one, other = swapped_one, swapped_other
            elif swapped_one is not None:
                count, before = len(nodes), dict(bindings)
                if (take_one is None or take_one(one)) and (take_other is None or take_other(other)):
                    self.is_open = True
                    return True
                self._step(1 + len(nodes) - count)
                del nodes[count:]
                bindings.clear()
                bindings.update(before)
                one, other = swapped_one, swapped_other
            return (take_one is None or take_one(one)) and (take_other is None or take_other(other))

        return walk_in


def _in_order(inputs: Sequence[_Input]) -> Callable[[Sequence[str]], bool]:
    """Return the walk into inputs; the producers of all of them are looked at first."""
    finds, takes = [each.find for each in inputs], [(slot, each.take) for slot, each in enumerate(inputs) if each.take]

    def walk_in(names: Sequence[str]) -> bool:
        found = [find(name) for find, name in zip(finds, names, strict=False)]
        return None not in found and all([take(found[slot]) for slot, take in takes])

    def walk_in_one(names: Sequence[str]) -> bool:
        found = find(names[0])
        return found is not None and (take is None or take(found))

    def walk_in_two(names: Sequence[str]) -> bool:
        found, second = find(names[0]), find_second(names[1])
        if found is None or second is None or not (take is None or take(found)):
            return False
        return take_second is None or take_second(second)

    if not inputs or len(inputs) > 2 or not all([each.is_needed for each in inputs]):
        return walk_in
    (find, take, _), (find_second, take_second, _) = inputs[0], inputs[-1]
    return walk_in_one if len(inputs) == 1 else walk_in_two
