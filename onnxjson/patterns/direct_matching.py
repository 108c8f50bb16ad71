"""Matching where a pattern leaves no choice, in one walk: this decides about most nodes of a model.

`onnxjson.patterns.matching` follows branches, which costs several times as much. Here, the inputs of a commutative node
are ordered by what produces them. Where both orders fit, the first match counts; whether there are others is open.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from onnxjson.model.document import Attribute, Node
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import is_commutative
from onnxjson.patterns.conditions import Value
from onnxjson.patterns.expression import Anything, AttributeValue, Bound, Call, Elements, Number, ValuePattern
from onnxjson.patterns.literals import Literals

Bindings: TypeAlias = dict[str, Value | Attribute]
_Find: TypeAlias = Callable[[str], Any]
_Take: TypeAlias = Callable[[Any, "Walk"], bool]
_AttributeFits: TypeAlias = Callable[[str, AttributeValue, NodeRef, Bindings], bool]
_IsOptional: TypeAlias = Callable[[NodeRef, int], bool]

_PLAIN: Final = (None, "", "ai.onnx")


class Walk:
    """What one walk found: nodes and bindings; and whether another walk might find something else."""

    __slots__ = ("bindings", "is_open", "nodes")

    def __init__(self) -> None:
        self.bindings: Bindings = {}
        self.nodes: list[NodeRef] = []
        self.is_open = False


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


class DirectMatcher:
    """One pattern, compiled for each graph of the model in which it is matched.

    Args:
        attribute_fits: tests an attribute and binds its name.
        is_optional: whether inputs of a node from a position on may be omitted.
    """

    def __init__(
        self, index: Index, literals: Literals, call: Call, attribute_fits: _AttributeFits, is_optional: _IsOptional
    ) -> None:
        self._index = index
        self._literals = literals
        self._pattern = call
        self._attribute_fits = attribute_fits
        self._is_optional = is_optional
        self._producers: dict[Scope, Mapping[str, tuple[int, int]]] = {}
        self._compiled: dict[tuple[Scope, Call], _Take] = {}

    def at(self, scope: Scope, position: int, walk: Walk) -> bool:
        """Walk from a node to the inputs of the pattern; return whether they fit."""
        return self._in(scope, self._pattern)(position, walk)

    def _in(self, scope: Scope, call: Call) -> _Take:
        """Return the walk of a call in one graph."""
        if (scope, call) not in self._compiled:
            if scope not in self._producers:
                self._producers[scope] = _producers(scope)
            self._compiled[scope, call] = self._call(scope, call)
        return self._compiled[scope, call]

    def _call(self, scope: Scope, call: Call) -> _Take:
        attributes, is_open, attribute_fits = call.attributes, call.is_open, self._attribute_fits
        inputs = None if call.inputs is None else [self._input(scope, each) for each in call.inputs]
        called, output, nodes = call.name, call.output, scope.graph.node
        count = len(inputs or ())
        may_commute = any(each.name == "*" or is_commutative(each.domain, each.name) for each in call.operators)
        must_commute = all(is_commutative(each.domain, each.name) for each in call.operators)
        in_order = _in_order(inputs or ())
        in_any_order = _in_any_order(inputs) if inputs and may_commute and count == 2 else None

        def at(position: int, walk: Walk) -> bool:
            node: Node = nodes[position]
            ref = NodeRef(scope, position)
            walk.nodes.append(ref)
            if called:
                made = Value(scope, node.output[output])
                if walk.bindings.setdefault(called, made) != made:
                    return False
            for name, value in attributes:
                if not attribute_fits(name, value, ref, walk.bindings):
                    return False
            if inputs is None:
                return True
            names = node.input
            there = len(names)
            while there and not names[there - 1]:
                there -= 1
            if there > count and not is_open and not self._is_optional(ref, count):
                return False
            if (must_commute or (may_commute and is_commutative(node.domain, node.op_type))) and (
                there > 1 or count > 1
            ):
                if in_any_order is not None and there == 2 and names[0]:
                    return in_any_order(names, walk)
                walk.is_open = True
                return False
            if there < count and any([each.is_needed for each in inputs[there:]]):
                return False
            return in_order(names, walk)

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
        wanted, is_constant, literals, producers = want.name, want.is_constant, self._literals, self._producers[scope]

        def take(name: str, walk: Walk) -> bool:
            value = Value(scope if name in producers else Index.defining_scope(scope, name), name)
            if is_constant and literals.constant(value) is None:
                return False
            return walk.bindings.setdefault(wanted, value) == value

        return take

    def _literal(self, scope: Scope, want: Number | Elements) -> _Find:
        known: dict[str, bool | None] = {}
        may_be_constant, literals = self._constant(scope), self._literals

        def find(name: str) -> bool | None:
            if may_be_constant(name) is None:
                return None
            if name not in known:
                value = Value(Index.defining_scope(scope, name), name)
                known[name] = literals.is_like(value, want) or None
            return known[name]

        return find

    def _constant(self, scope: Scope) -> _Find:
        producers, nodes = self._producers[scope], scope.graph.node

        def find(name: str) -> str | None:
            place = producers.get(name)
            may_be = place is None or nodes[place[0]].op_type in ("Constant", "Identity")
            return name if name and may_be else None

        return find

    def _inner(self, scope: Scope, want: Call) -> _Input:
        is_any, called = any(each.name == "*" for each in want.operators), _called(want)
        output, at, nodes, producers = want.output, self._in(scope, want), scope.graph.node, self._producers[scope]

        def find(name: str) -> NodeRef | int | None:
            place = producers.get(name)
            if place is None:
                return outside(name) if scope.outer is not None else None
            node = nodes[place[0]]
            return place[0] if place[1] == output and (is_any or (node.op_type, node.domain) in called) else None

        def outside(name: str) -> NodeRef | None:
            """Return the node of a value from a graph around this one."""
            ref = self._index.producer(scope, name)
            if ref is None or ref.scope.producers[name][1] != output:
                return None
            return ref if is_any or (ref.node.op_type, ref.node.domain) in called else None

        def take(found: NodeRef | int, walk: Walk) -> bool:
            return at(found, walk) if isinstance(found, int) else self._in(found.scope, want)(found.position, walk)

        return _Input(find, at if scope.outer is None else take)


def _in_order(inputs: Sequence[_Input]) -> Callable[[Sequence[str], Walk], bool]:
    """Return the walk into inputs; the producers of all of them are looked at first."""
    finds, takes = [each.find for each in inputs], [(slot, each.take) for slot, each in enumerate(inputs) if each.take]

    def walk_in(names: Sequence[str], walk: Walk) -> bool:
        found = [find(name) for find, name in zip(finds, names, strict=False)]
        return None not in found and all(take(found[slot], walk) for slot, take in takes)

    return walk_in


def _in_any_order(inputs: Sequence[_Input]) -> Callable[[Sequence[str], Walk], bool]:
    """Return the walk into the two inputs of a commutative node, in the order that their producers leave."""
    (find_one, take_one, _), (find_other, take_other, _) = inputs

    def walk_in(names: Sequence[str], walk: Walk) -> bool:
        first, second = names[0], names[1]
        one, other = find_one(first), find_other(second)
        is_straight = one is not None and other is not None
        swapped_other = find_other(first)
        swapped_one = None if swapped_other is None else find_one(second)
        if swapped_one is not None:
            if is_straight:
                before = len(walk.nodes), dict(walk.bindings)
                if (take_one is None or take_one(one, walk)) and (take_other is None or take_other(other, walk)):
                    walk.is_open = True
                    return True
                del walk.nodes[before[0] :]
                walk.bindings = before[1]
            one, other = swapped_one, swapped_other
        elif not is_straight:
            return False
        return (take_one is None or take_one(one, walk)) and (take_other is None or take_other(other, walk))

    return walk_in


def _called(call: Call) -> frozenset[tuple[str, str | None]]:
    """Return names and domains of operators as nodes may write them."""
    return frozenset(
        [(each.name, domain) for each in call.operators for domain in ((each.domain,) if each.domain else _PLAIN)]
    )
