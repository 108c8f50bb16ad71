"""Matching where a pattern leaves no choice, in one walk: this decides about most nodes of a model.

`onnxjson.patterns.matching` follows branches, which costs several times as much. Here, the inputs of a commutative node
are ordered by what produces them. Where both orders fit, the first match counts; whether there are others is open.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

from onnxjson.model.document import Attribute
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import is_commutative
from onnxjson.patterns.conditions import Value
from onnxjson.patterns.expression import Anything, AttributeValue, Bound, Call, Elements, Number, Operator, ValuePattern
from onnxjson.patterns.literals import Literals

Bindings: TypeAlias = dict[str, Value | Attribute]
_Find: TypeAlias = Callable[[str], Any]
_Take: TypeAlias = Callable[[Any], bool]
_AttributeFits: TypeAlias = Callable[[str, AttributeValue, NodeRef, Bindings], bool]
_IsOptional: TypeAlias = Callable[[NodeRef, int], bool]

_PLAIN: Final = (None, "", "ai.onnx")

_ref: Final[Callable[[tuple[Scope, int]], NodeRef]] = partial(tuple.__new__, NodeRef)
_value: Final[Callable[[tuple[Scope | None, str]], Value]] = partial(tuple.__new__, Value)
"""Create records twice as fast as their classes do."""


class _Input(NamedTuple):
    """The pattern of an input."""

    find: _Find
    """What `take` needs; None if the value cannot fit, judged from its producer."""
    take: _Take | None
    """The walk into it; None if it fits already."""
    is_needed: bool = True


def _producers(scope: Scope) -> Mapping[str, tuple[int, int]]:
    """Return the nodes and outputs of the values that a graph computes; of two definitions, the first one counts."""
    others = {*scope.inputs, *scope.initializers, *scope.sparse_initializers}
    if scope.producers.keys().isdisjoint(others):
        return scope.producers
    return {name: place for name, place in scope.producers.items() if name not in others}


def _has_unique_outputs(scope: Scope) -> bool:
    """Whether all outputs of the nodes of a graph have names, which nothing else in the graph has."""
    return sum(map(len, map(attrgetter("output"), scope.graph.node))) == len(_producers(scope))


class DirectMatcher:
    """One pattern, compiled for each graph of the model in which it is matched.

    Args:
        attribute_fits: tests an attribute and binds its name.
        is_optional: whether inputs of a node from a position on may be omitted.
        step: called with the number of nodes that a walk discards.
    """

    def __init__(
        self,
        index: Index,
        literals: Literals,
        call: Call,
        attribute_fits: _AttributeFits,
        is_optional: _IsOptional,
        step: Callable[[int], None],
    ) -> None:
        self._index = index
        self._literals = literals
        self._pattern = call
        self._attribute_fits = attribute_fits
        self._is_optional = is_optional
        self._step = step
        self._producers = cache(_producers)
        self._in: Callable[[Scope, Call], _Take] = cache(self._call)
        self._made = cache(self._outputs)
        self._is_unique = cache(_has_unique_outputs)
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
        attributes, is_open, attribute_fits = call.attributes, call.is_open, self._attribute_fits
        inputs = None if call.inputs is None else [self._input(scope, each) for each in call.inputs]
        called, output, nodes = call.name, call.output, scope.graph.node
        bindings, found_node = self.bindings, self.nodes.append
        count = len(inputs or ())
        may_commute = any(each.name == "*" or is_commutative(each.domain, each.name) for each in call.operators)
        must_commute = all(is_commutative(each.domain, each.name) for each in call.operators)
        in_order = _in_order(inputs or ())
        in_any_order = self._in_any_order(inputs) if inputs and may_commute and count == 2 else None

        def at(position: int) -> bool:
            node = nodes[position]
            ref = _ref((scope, position))
            found_node(ref)
            if called:
                made = _value((scope, node.output[output]))
                if bindings.setdefault(called, made) != made:
                    return False
            for name, value in attributes:
                if not attribute_fits(name, value, ref, bindings):
                    return False
            if inputs is None:
                return True
            names = node.input
            there = len(names)
            if there == count and not may_commute:
                return in_order(names)
            while there and not names[there - 1]:
                there -= 1
            if there > count and not is_open and not self._is_optional(ref, count):
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
            find = self._constant(scope) if want.is_constant else lambda name: name or None
            return _Input(find, self._bound(scope, want))
        if isinstance(want, Number | Elements):
            return _Input(self._literal(scope, want), None)
        assert isinstance(want, Call), "a path is not a direct pattern"
        return self._inner(scope, want)

    def _bound(self, scope: Scope, want: Bound) -> _Take:
        wanted, is_constant, literals, producers = want.name, want.is_constant, self._literals, self._producers(scope)
        bind = self.bindings.setdefault

        def take(name: str) -> bool:
            value = _value((scope if name in producers else Index.defining_scope(scope, name), name))
            if is_constant and literals.constant(value) is None:
                return False
            return bind(wanted, value) == value

        return take

    def _literal(self, scope: Scope, want: Number | Elements) -> _Find:
        known: dict[str, bool | None] = {}
        may_be_constant, literals = self._constant(scope), self._literals

        def find(name: str) -> bool | None:
            if name in known:
                return known[name]
            if may_be_constant(name) is None:
                return None
            value = Value(Index.defining_scope(scope, name), name)
            known[name] = literals.is_like(value, want) or None
            return known[name]

        return find

    def _constant(self, scope: Scope) -> _Find:
        producers, nodes = self._producers(scope), scope.graph.node
        passing = positions_calling(scope, (Operator("Constant"), Operator("Identity")))
        passed = {name for position in passing for name in nodes[position].output}
        return lambda name: name if name and (name not in producers or name in passed) else None

    def _inner(self, scope: Scope, want: Call) -> _Input:
        at, find = self._in(scope, want), self._made(scope, want.operators, want.output).get
        if scope.outer is None:
            return _Input(find, at)
        producers = self._producers(scope)

        def find_around(name: str) -> NodeRef | int | None:
            if name in producers:
                return find(name)
            ref = self._index.producer(scope, name)
            return ref if ref and self._made(ref.scope, want.operators, want.output).get(name) == ref.position else None

        def take(found: NodeRef | int) -> bool:
            return at(found) if isinstance(found, int) else self._in(found.scope, want)(found.position)

        return _Input(find_around, take)

    def _outputs(self, scope: Scope, operators: tuple[Operator, ...], slot: int) -> dict[str, int]:
        """Return the values that may be this output of a call, judged by their nodes alone, with these positions."""
        nodes, producers = scope.graph.node, self._producers(scope)
        positions = positions_calling(scope, operators)
        if self._is_unique(scope):
            return {names[slot]: each for each in positions if len(names := nodes[each].output) > slot}
        return {
            names[slot]: position
            for position in positions
            if len(names := nodes[position].output) > slot and producers.get(names[slot]) == (position, slot)
        }

    def _in_any_order(self, inputs: Sequence[_Input]) -> Callable[[Sequence[str]], bool]:
        """Return the walk into the two inputs of a commutative node, in an order that their producers permit."""
        (find_one, take_one, _), (find_other, take_other, _) = inputs
        nodes, bindings = self.nodes, self.bindings

        def take(one: Any, other: Any) -> bool:
            return (take_one is None or take_one(one)) and (take_other is None or take_other(other))

        def walk_in(names: Sequence[str]) -> bool:
            first, second = names[0], names[1]
            one, other = find_one(first), find_other(second)
            is_straight = one is not None and other is not None
            swapped_other = find_other(first)
            swapped_one = None if swapped_other is None else find_one(second)
            if swapped_one is None:
                return is_straight and take(one, other)
            if is_straight:
                count, before = len(nodes), dict(bindings)
                if take(one, other):
                    self.is_open = True
                    return True
                self._step(1 + len(nodes) - count)
                del nodes[count:]
                bindings.clear()
                bindings.update(before)
            return take(swapped_one, swapped_other)

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


def positions_calling(scope: Scope, operators: Sequence[Operator]) -> Iterable[int]:
    """Return the positions of the nodes of a graph that call one of the operators of a pattern, in their order."""
    nodes = scope.graph.node
    domains: dict[str, set[str | None]] = {}
    for each in operators:
        domains.setdefault(each.name, set()).update((each.domain,) if each.domain else _PLAIN)
    if "*" in domains:
        return range(len(nodes))
    found = [at for name in domains for at in scope.callers.get(name, ()) if nodes[at].domain in domains[name]]
    return found if len(domains) == 1 else sorted(found)
