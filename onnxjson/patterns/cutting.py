"""The pattern of given nodes: their structure and attributes, without their names."""

from collections.abc import Callable, Collection
from typing import Final

from onnxjson.model.document import Attribute
from onnxjson.model.errors import SelectorError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.messages import value_of
from onnxjson.model.operators import plain_domain
from onnxjson.patterns.conditions import Value
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
from onnxjson.patterns.literals import Literals

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

    def call(self, ref: NodeRef, output: int) -> Call:
        """Return the call of a node."""
        node = ref.node
        inputs = list(node.input)
        while inputs and not inputs[-1]:
            inputs.pop()
        literals = [(each.name or "", _literal(each)) for each in node.attribute]
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
        elements = self._literals.elements(value)
        if elements and len(elements) <= _LONGEST and all(isinstance(each, int | float) for each in elements):
            numbers = [int(each) if isinstance(each, bool) else each for each in elements]
            return Number(numbers[0]) if len(numbers) == 1 else Elements(tuple(numbers))
        is_constant = self._literals.constant(value) is not None
        producer = self._index.producer(user.scope, name)
        if producer is not None and not is_constant and self._is_inside(producer):
            return self.call(producer, producer.scope.producers[name][1])
        return Bound(self._names.setdefault(value, _letters(len(self._names))), is_constant)


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
