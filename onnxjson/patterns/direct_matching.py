"""Matching where a pattern leaves no choice, in one walk: this decides about most nodes of a model.

`onnxjson.patterns.matching` follows branches, which costs several times as much. Here, the inputs of a commutative node
are ordered by what produces them. Where both orders fit, the first match counts; whether there are others is open.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from onnxjson.model.document import Attribute, Node
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.operators import is_commutative
from onnxjson.patterns.conditions import Value
from onnxjson.patterns.expression import Anything, AttributeValue, Bound, Call, Elements, Number, ValuePattern
from onnxjson.patterns.literals import Literals

Bindings: TypeAlias = dict[str, Value | Attribute]
_Fits: TypeAlias = Callable[[Scope, str], bool]
_Take: TypeAlias = Callable[[Scope, str, "Walk"], bool]
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
    """The pattern of an input: whether a value may fit, judged from its producer; and the walk into it."""

    fits: _Fits
    take: _Take
    """It assumes that the value fits."""
    is_needed: bool


class _Producers(dict[Scope, Mapping[str, tuple[int, int]]]):
    """The nodes and outputs of the values that each graph computes; of two definitions, the first one counts."""

    def __missing__(self, scope: Scope) -> Mapping[str, tuple[int, int]]:
        found: Mapping[str, tuple[int, int]] = scope.producers
        others = {*scope.inputs, *scope.initializers, *scope.sparse_initializers}
        if not found.keys().isdisjoint(others):
            found = {name: place for name, place in found.items() if name not in others}
        self[scope] = found
        return found


class DirectMatcher:
    """One pattern, compiled for the model in which it is matched.

    Args:
        attribute_fits: tests an attribute and binds its name.
        is_optional: whether inputs of a node from a position on may be omitted.
    """

    def __init__(
        self, index: Index, literals: Literals, call: Call, attribute_fits: _AttributeFits, is_optional: _IsOptional
    ) -> None:
        self._index = index
        self._literals = literals
        self._attribute_fits = attribute_fits
        self._is_optional = is_optional
        self._producers = _Producers()
        self.at: Final = self._call(call)
        """Walk from a node to the inputs of the pattern."""

    def _outside(self, scope: Scope, name: str) -> tuple[Scope, tuple[int, int]] | None:
        """Return the node and output of a value from a graph around this one."""
        ref = None if scope.outer is None else self._index.producer(scope, name)
        return None if ref is None else (ref.scope, ref.scope.producers[name])

    def _call(self, call: Call) -> Callable[[Scope, int, Walk], bool]:
        attributes, is_open, attribute_fits = call.attributes, call.is_open, self._attribute_fits
        inputs = None if call.inputs is None else [self._input(each) for each in call.inputs]
        called, output = call.name, call.output
        count = len(inputs or ())
        may_commute = count < 1 or any(each.name == "*" or is_commutative("", each.name) for each in call.operators)

        def at(scope: Scope, position: int, walk: Walk) -> bool:
            node: Node = scope.graph.node[position]
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
            names: Sequence[str] = node.input
            there = len(names)
            while there and not names[there - 1]:
                there -= 1
            if there > count and not is_open and not self._is_optional(ref, count):
                return False
            if may_commute and (there > 1 or count > 1) and is_commutative(node.domain, node.op_type):
                if there != 2 or count != 2 or not names[0]:
                    walk.is_open = True
                    return False
                (one, other), (first, second) = inputs, names
                is_straight = one.fits(scope, first) and other.fits(scope, second)
                if other.fits(scope, first) and one.fits(scope, second):
                    if is_straight:
                        before = len(walk.nodes), dict(walk.bindings)
                        if one.take(scope, first, walk) and other.take(scope, second, walk):
                            walk.is_open = True
                            return True
                        del walk.nodes[before[0] :]
                        walk.bindings = before[1]
                    names = (second, first)
                elif not is_straight:
                    return False
            else:
                for each, name in zip(inputs, names, strict=False):
                    if not each.fits(scope, name):
                        return False
            for slot, each in enumerate(inputs):
                name = names[slot] if slot < there else ""
                if each.is_needed and not (name and each.take(scope, name, walk)):
                    return False
            return True

        return at

    def _input(self, want: ValuePattern) -> _Input:
        if isinstance(want, Anything):
            return _Input(lambda scope, name: True, lambda scope, name, walk: True, is_needed=False)
        if isinstance(want, Bound):
            return _Input(lambda scope, name: True, self._bound(want), is_needed=True)
        if isinstance(want, Number | Elements):
            fits = self._literal(want)
            return _Input(fits, lambda scope, name, walk: fits(scope, name), is_needed=True)
        assert isinstance(want, Call), "a path is no direct pattern"
        return self._inner(want)

    def _bound(self, want: Bound) -> _Take:
        wanted, is_constant, literals, producers = want.name, want.is_constant, self._literals, self._producers

        def take(scope: Scope, name: str, walk: Walk) -> bool:
            defining = scope if name in producers[scope] else Index.defining_scope(scope, name)
            value = Value(defining, name)
            if is_constant and literals.constant(value) is None:
                return False
            return walk.bindings.setdefault(wanted, value) == value

        return take

    def _literal(self, want: Number | Elements) -> _Fits:
        known: dict[tuple[Scope, str], bool] = {}
        literals, producers = self._literals, self._producers

        def fits(scope: Scope, name: str) -> bool:
            place = producers[scope].get(name)
            if place is not None and scope.graph.node[place[0]].op_type not in ("Constant", "Identity"):
                return False
            found = known.get((scope, name))
            if found is None:
                value = Value(Index.defining_scope(scope, name), name)
                found = known[scope, name] = literals.is_like(value, want)
            return found

        return fits

    def _inner(self, want: Call) -> _Input:
        is_any, called = any(each.name == "*" for each in want.operators), _called(want)
        output, at, producers, outside = want.output, self._call(want), self._producers, self._outside

        def fits(scope: Scope, name: str) -> bool:
            place = producers[scope].get(name)
            if place is None:
                found = outside(scope, name)
                if found is None:
                    return False
                scope, place = found
            node = scope.graph.node[place[0]]
            return place[1] == output and (is_any or (node.op_type, node.domain) in called)

        def take(scope: Scope, name: str, walk: Walk) -> bool:
            place = producers[scope].get(name)
            if place is not None:
                return at(scope, place[0], walk)
            found = outside(scope, name)
            return found is not None and at(found[0], found[1][0], walk)

        return _Input(fits, take, is_needed=True)


def _called(call: Call) -> frozenset[tuple[str, str | None]]:
    """Return names and domains of operators as nodes may write them."""
    return frozenset(
        [(each.name, domain) for each in call.operators for domain in ((each.domain,) if each.domain else _PLAIN)]
    )
