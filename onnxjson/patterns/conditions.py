"""The conditions of a pattern: requirements on the values that its names are bound to."""

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from onnxjson.model.constants import Constant, type_of_constant
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Attribute, Type
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.messages import value_of
from onnxjson.patterns.expression import Bound, Condition, Elements, Number, Text

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Value(NamedTuple):
    """A value of a model: its name, and the graph that defines it (None for an undefined name)."""

    scope: Scope | None
    name: str


class Conditions:
    """Tests conditions on the values of one model."""

    def __init__(
        self,
        index: Index,
        selected: Callable[[str], Collection[NodeRef]],
        constant: Callable[[Value], Constant | None],
    ) -> None:
        self._index = index
        self._selected = selected
        self._constant = constant
        self._sets: dict[str, frozenset[NodeRef]] = {}

    def problem(
        self, condition: Condition, bound: Value | Attribute, bindings: Mapping[str, Value | Attribute]
    ) -> str | None:
        """Return how a value fails a condition, in words, or None if it satisfies it."""
        wanted = condition.wanted
        if isinstance(bound, Attribute):
            value = value_of(bound)
            is_number = isinstance(value, int | float)
            if is_number and isinstance(wanted, Number) and _COMPARE[condition.comparison](value, wanted.value):
                return None
            return f"${condition.name} is {visible(str(value))}, not {condition.comparison} {wanted}"
        if isinstance(wanted, Bound) and not condition.function:
            is_same = bound == bindings.get(wanted.name)
            if is_same == (condition.comparison == "="):
                return None
            return f'${condition.name} is "{visible(bound.name)}", the pattern needs {condition}'
        if not condition.function:
            return self._produced(condition, bound)
        found = self._found(condition.function, bound)
        if found is None:
            unknown = f'{condition.function} of "{visible(bound.name)}" is not known'
            return f"{unknown}; `onnxjson rewrite infer-shapes` adds types"
        if isinstance(wanted, Bound):
            number = bindings.get(wanted.name)
            is_same = isinstance(number, Attribute) and DATA_TYPES.get(found) == value_of(number)
            holds = is_same == (condition.comparison == "=")
        elif isinstance(wanted, Elements):
            fits = len(found) == len(wanted.items) and all(
                [want is None or want == each for each, want in zip(found, wanted.items, strict=True)]
            )
            holds = fits == (condition.comparison == "=")
        else:
            holds = _COMPARE[condition.comparison](found, wanted.value)
        if holds:
            return None
        text = visible(str(list(found) if isinstance(found, tuple) else found))
        if condition.function == "users" and bound.scope is not None:
            uses = self._index.consumers(bound.scope, bound.name)
            places = [f'"{visible(_user(use.scope, use.position))}"' for use in uses]
            text = f"{counted(len(uses), 'user')} ({listed(places)})" if uses else "0 users"
        return f'{condition.function} of "{visible(bound.name)}" is {text}, the pattern needs {condition}'

    def _produced(self, condition: Condition, bound: Value) -> str | None:
        assert isinstance(condition.wanted, Text | Number | Elements)
        selector = str(condition.wanted.value) if isinstance(condition.wanted, Text) else str(condition.wanted)
        if selector not in self._sets:
            self._sets[selector] = frozenset(self._selected(selector))
        producer = None if bound.scope is None else bound.scope.producer(bound.name)
        is_one = producer is not None and producer in self._sets[selector]
        if is_one == (condition.comparison == "="):
            return None
        does = "does not fit" if condition.comparison == "=" else "fits"
        return f'the producer of "{visible(bound.name)}" {does} {visible(selector)}'

    def _found(self, function: str, bound: Value) -> Any:
        """Return what a condition compares; None where it is not known."""
        if bound.scope is None:
            return None
        if function == "users":
            return len(self._index.consumers(bound.scope, bound.name))
        constant = self._constant(bound)
        held = None if constant is None else constant.value
        return _property(function, type_of_constant(held) if held else self._index.type_of(bound.scope, bound.name))


def _user(scope: Scope, position: int | None) -> str:
    if position is None:
        return "output of the graph"
    node = scope.graph.node[position]
    return node.name or next(filter(None, node.output), node.op_type or "")


def _property(function: str, stated: Type | None) -> Any:
    if stated is None:
        return None
    if function == "dtype":
        return stated.dtype
    shape = stated.shape
    if shape is None or function == "shape":
        return shape
    if function == "rank":
        return len(shape)
    size = 1
    for each in shape:
        if not isinstance(each, int):
            return None
        size *= each
    return size
