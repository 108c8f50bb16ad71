"""The pattern of given nodes: their structure and attributes, without their names."""

from collections.abc import Callable, Collection
from typing import Final

from onnxjson.model.document import Attribute, Node
from onnxjson.model.errors import SelectorError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.messages import value_of
from onnxjson.model.operators import plain_domain
from onnxjson.patterns.expression import (
    Anything,
    AttributeValue,
    Bound,
    Call,
    Elements,
    Number,
    Operator,
    Pattern,
    Text,
    ValuePattern,
)
from onnxjson.patterns.literals import Literals, Value

_LONGEST: Final = 6
"""Elements of the longest constant that is written out."""


def pattern_of(index: Index, nodes: Collection[NodeRef]) -> Pattern:
    """Return the pattern of some nodes that lead to one last node.

    Values from outside become ``$a``, ``$b``, ...; constants with few elements are written out, others are ``?c``.

    Raises:
        SelectorError: the last node is missing or ambiguous.
    """
    inside = set(nodes)
    used = {
        index.producer(ref.scope, name) for ref in inside for name in ref.node.input if name and ref.scope is not None
    }
    last = [ref for ref in inside if ref not in used]
    if len(last) != 1:
        raise SelectorError(f"a pattern has one last node, and these nodes have {len(last)} that no other of them uses")
    ref = last[0]
    output = next((slot for slot, name in enumerate(ref.node.output) if name), 0)
    return Pattern(Cut(index, inside.__contains__).call(ref, output))


def free_name(base: str, taken: Collection[str]) -> str:
    """Return a name, with a number if it is taken."""
    return next(name for name in (base, *map(f"{base}{{}}".format, range(2, 2 + len(taken)))) if name not in taken)


def constants_of(pattern: Pattern, opened: Collection[int]) -> tuple[Pattern, list[str]]:
    """Return the constants and attributes of a pattern in words, and the pattern with names for those in `opened`."""
    found: list[str] = []
    taken = set(pattern.names)

    def named(value: AttributeValue, where: str, base: str, *, is_constant: bool = False) -> AttributeValue:
        found.append(f"{where} = {value}")
        if len(found) - 1 not in opened:
            return value
        name = free_name(base if base.isidentifier() else "v", taken)
        taken.add(name)
        return Bound(name, is_constant)

    def walk(value: ValuePattern, where: str) -> ValuePattern:
        if isinstance(value, Number | Elements):
            return named(value, where, "c", is_constant=True)  # type: ignore[return-value]
        if not isinstance(value, Call):
            return value
        operator = str(value.operators[0])
        attributes = [
            (name, each if isinstance(each, Bound | Anything) else named(each, f"{name} of {operator}", name))
            for name, each in value.attributes
        ]
        inputs = [walk(each, f"input {place} of {operator}") for place, each in enumerate(value.inputs or ())]
        return value._replace(attributes=tuple(attributes), inputs=None if value.inputs is None else tuple(inputs))

    return pattern._replace(root=walk(pattern.root, "")), found  # type: ignore[arg-type]


class Cut:
    """One pattern while it is built.

    Args:
        index: the index of the model.
        is_inside: whether a node becomes a call; asked once for each place where the node is used.
    """

    def __init__(self, index: Index, is_inside: Callable[[NodeRef], bool]) -> None:
        self._index = index
        self._is_inside = is_inside
        self._literals = Literals(index, 0)
        self._names: dict[Value, str] = {}
        self._known_literals: dict[Value, Number | Elements] = {}

    def call(self, ref: NodeRef, output: int) -> Call:
        """Return the call of a node."""
        node = ref.node
        inputs = list(node.input)
        while inputs and not inputs[-1]:
            inputs.pop()
        literals = [(each.name or "", self._attribute(node, each)) for each in node.attribute]
        return Call(
            (Operator(node.op_type or "", plain_domain(node.domain)),),
            tuple([(name, value) for name, value in literals if value is not None]),
            tuple([self._value(ref, name) for name in inputs]),
            output=output,
        )

    def _value(self, user: NodeRef, name: str) -> ValuePattern:
        if not name:
            return Anything()
        value = Value(Index.defining_scope(user.scope, name), name)
        if value in self._known_literals:
            return self._known_literals[value]
        if value in self._names:
            return Bound(self._names[value], self._literals.constant(value) is not None)
        elements = self._literals.elements(value)
        if elements and len(elements) <= _LONGEST and all(isinstance(each, int | float) for each in elements):
            numbers = [int(each) if isinstance(each, bool) else each for each in elements]
            return Number(numbers[0]) if len(numbers) == 1 else Elements(tuple(numbers))
        is_constant = self._literals.constant(value) is not None
        producer = self._index.producer(user.scope, name)
        if producer is not None and not is_constant and self._is_inside(producer):
            return self.call(producer, producer.scope.producers[name][1])
        return Bound(self._names.setdefault(value, _letters(len(self._names))), is_constant)

    def _attribute(self, node: Node, attribute: Attribute) -> AttributeValue | None:
        return _literal(attribute)


def _letters(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"v{number}"


def _literal(attribute: Attribute) -> AttributeValue | None:
    value = value_of(attribute)
    if isinstance(value, int | float):
        return Number(value)
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, tuple) and all(isinstance(each, int | float | str) for each in value):
        return Elements(value)
    return None
