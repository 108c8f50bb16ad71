"""The conditions of a pattern: requirements on the values that its names are bound to."""

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from onnxjson.model.constants import type_of_constant
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.document import Attribute, Type
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.errors import NoMatchError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.messages import value_of
from onnxjson.patterns.expression import Bound, Condition, Elements, Number, Text
from onnxjson.patterns.nodes import Literals, Value

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Conditions:
    """Tests conditions on the values of one model."""

    def __init__(
        self,
        index: Index,
        selected: Callable[[str], Collection[NodeRef]],
        literals: Literals,
    ) -> None:
        self._index = index
        self._selected = selected
        self._literals = literals
        self._sets: dict[str, tuple[frozenset[NodeRef], str]] = {}
        """The nodes of each selector, and why there are none."""

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
        if isinstance(wanted, Number) and not condition.function:
            elements = self._literals.elements(bound)
            if elements is not None or condition.comparison not in ("=", "!="):
                return self._compared(condition, wanted, bound, elements or ())
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

    def _compared(self, condition: Condition, wanted: Number, bound: Value, elements: Sequence[Any]) -> str | None:
        """Compare a constant with a number."""
        if condition.comparison in ("=", "!="):
            holds = self._literals.is_like(bound, wanted) == (condition.comparison == "=")
        else:
            number = elements[0] if len(elements) == 1 else None
            holds = isinstance(number, int | float) and _COMPARE[condition.comparison](number, wanted.value)
        text = self._literals.text(bound) or "not a constant"
        return None if holds else f'"{visible(bound.name)}" is {text}, the pattern needs {condition}'

    def _produced(self, condition: Condition, bound: Value) -> str | None:
        assert isinstance(condition.wanted, Text | Number | Elements)
        selector = str(condition.wanted.value) if isinstance(condition.wanted, Text) else str(condition.wanted)
        if selector not in self._sets:
            try:
                self._sets[selector] = frozenset(self._selected(selector)), ""
            except NoMatchError as error:
                self._sets[selector] = frozenset(), f": {error}"
        nodes, reason = self._sets[selector]
        producer = None if bound.scope is None else bound.scope.producer(bound.name)
        is_one = producer in nodes
        if is_one == (condition.comparison == "="):
            return None
        does = "does not fit" if condition.comparison == "=" else "fits"
        return f'the producer of "{visible(bound.name)}" {does} {visible(selector)}{reason}'

    def _found(self, function: str, bound: Value) -> Any:
        """Return what a condition compares; None where it is not known."""
        if bound.scope is None:
            return None
        if function == "users":
            return len(self._index.consumers(bound.scope, bound.name))
        constant = self._literals.constant(bound)
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
