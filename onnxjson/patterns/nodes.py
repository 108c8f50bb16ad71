"""A model as patterns see it: operators and attributes of its nodes, producers of their inputs, and constants."""

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, NamedTuple, TypeAlias

from onnxjson.model.constants import Constant, constant_values, copied_constant, is_constant
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Function, Model, Node
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.elements import element_count
from onnxjson.model.errors import DecodeError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.messages import value_of
from onnxjson.model.operators import attribute_defaults, is_commutative, plain_domain, table_signature
from onnxjson.model.payloads import whole
from onnxjson.model.tensors import is_external, raw_bytes, to_numpy
from onnxjson.patterns.expression import (
    Anything,
    AttributeValue,
    Bound,
    Call,
    Elements,
    Number,
    Operator,
    Path,
    Text,
    final_call,
)

TOLERANCE: Final = 1e-3
"""Relative difference up to which numbers of floating point are equal."""

_SHOWN: Final = 8
"""Elements of a constant that a message lists."""

_CODES: Final = {DATA_TYPES[name]: code for name, code in (("float32", "f"), ("int64", "q"))}

_ELEMENTS: Final = 4096
"""Elements of the largest constant whose elements are compared."""


class Value(NamedTuple):
    """A value of a model: its name, and the graph that defines it (None for an undefined name)."""

    scope: Scope | None
    name: str


class Literals:
    """The constants of one model, each looked up once."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._constants: dict[Value, Constant | None] = {}
        self._elements: dict[Value, Sequence[Any] | None] = {}
        self._known: dict[Scope, Collection[str]] = {}

    def constant(self, value: Value) -> Constant | None:
        """Return the constant whose elements a value has, directly or through Identity nodes; see `is_constant`."""
        if value not in self._constants:
            scope, name = value
            is_other = scope is None or name not in (self.known(scope) or (name,))
            found = None if is_other or scope is None else copied_constant(scope, name)
            self._constants[value] = None if found is None or found.is_default else found
        return self._constants[value]

    def known(self, scope: Scope) -> Collection[str]:
        """Return the names of the constants of an outermost graph; none for other graphs."""
        if scope not in self._known:
            self._known[scope] = constant_values(scope) if scope.outer is None else ()
        return self._known[scope]

    def is_constant(self, value: Value) -> bool:
        """Whether a value is a constant or computed from constants alone, which no caller can replace."""
        return value.scope is not None and is_constant(value.scope, value.name)

    def elements(self, value: Value) -> Sequence[Any] | None:
        """Return the elements of a small constant of numbers or texts in this file; None for other values."""
        if value not in self._elements:
            constant = self.constant(value)
            self._elements[value] = None if constant is None else _small_elements(constant)
        return self._elements[value]

    def is_like(self, value: Value, want: Number | Elements) -> bool:
        """Whether a value is a constant with the wanted elements."""
        elements = self.elements(value)
        if elements is None:
            return False
        if isinstance(want, Number):
            return len(elements) == 1 and self._fit(elements, (want.value,))
        return self._fit(elements, want.items)

    def of_match(self, calls: Sequence[Call], refs: Sequence[NodeRef]) -> Iterator[tuple[Value, Number | Elements]]:
        """Yield the constants that the numbers and lists of a pattern stand for at the nodes of a match."""
        for call, ref in zip(calls, refs, strict=True):
            values = [Value(Index.defining_scope(ref.scope, name), name) for name in ref.node.input if name]
            for want in call.inputs or ():
                if isinstance(want, Number | Elements):
                    yield from [(value, want) for value in values if self.is_like(value, want)][:1]

    def has(self, attribute: Attribute, want: AttributeValue) -> bool:
        """Whether an attribute has the wanted value."""
        value = value_of(attribute)
        match want:
            case Anything():
                return True
            case Number():
                return isinstance(value, int | float) and self._is_close(value, want.value)
            case Text():
                return bool(value == want.value)
            case Elements():
                return isinstance(value, tuple) and self._fit(value, want.items)
            case _:
                return False

    def text(self, value: Value) -> str | None:
        """Return the elements of a small constant as a message shows them; None for other values."""
        elements = self.elements(value)
        if elements is None:
            return None
        if len(elements) == 1:
            return f"{elements[0]:.7g}" if isinstance(elements[0], float) else visible(str(elements[0]))
        shown = ", ".join([visible(str(each)) for each in elements[:_SHOWN]])
        return f"[{shown}, ...]" if len(elements) > _SHOWN else f"[{shown}]"

    def _fit(self, elements: Sequence[object], wanted: Sequence[float | str | None]) -> bool:
        return elements == wanted or (
            len(elements) == len(wanted)
            and all(
                [
                    want is None
                    or (isinstance(each, int | float) and isinstance(want, int | float) and self._is_close(each, want))
                    or (isinstance(want, str) and each == want)
                    for each, want in zip(elements, wanted, strict=True)
                ]
            )
        )

    def _is_close(self, number: float, wanted: float) -> bool:
        if number == wanted or (number != number and wanted != wanted):
            return True
        if isinstance(number, int) and isinstance(wanted, int):
            return False
        return abs(number - wanted) <= self._tolerance * max(abs(number), abs(wanted)) < float("inf")


def _small_elements(constant: Constant) -> Sequence[Any] | None:
    tensor = constant.tensor
    if tensor is None or is_external(tensor) or element_count(tensor.dims) > _ELEMENTS:
        return None
    stored, code = raw_bytes(tensor), _CODES.get(tensor.data_type or 0)
    if stored is not None and code is not None:  # without numpy, whose import takes 0.1 s
        return list(struct.unpack(f"<{element_count(tensor.dims)}{code}", whole(stored[0])))
    try:
        array = to_numpy(tensor).reshape(-1)
    except DecodeError:
        return None
    found: list[Any] = (array if array.dtype.kind in "biufcO" else array.astype("float64")).tolist()
    return found


Bindings: TypeAlias = dict[str, Value | Attribute]

_PLAIN: Final = (None, "", "ai.onnx")

new_ref: Final[Callable[[tuple[Scope, int]], NodeRef]] = partial(tuple.__new__, NodeRef)
new_value: Final[Callable[[tuple[Scope | None, str]], Value]] = partial(tuple.__new__, Value)
"""Create records twice as fast as their classes do."""


class Nodes:
    """The nodes of one model; constants are equal within a relative `tolerance`."""

    def __init__(self, model: Model, index: Index, tolerance: float) -> None:
        self.index = index
        self.literals = Literals(tolerance)
        self.computed = cache(_computed)
        """The nodes and outputs of the values that a graph computes; of two definitions, the first one counts."""
        self._versions = {plain_domain(each.domain): each.version or 0 for each in model.opset_import}
        self._names: dict[Call, set[str]] = {}

    def calling(self, operators: Sequence[Operator]) -> Sequence[NodeRef]:
        """Return the nodes that call one of the operators, in the order of the file."""
        if any([each.name == "*" for each in operators]):
            return self.index.node_refs
        scopes = self.index.scopes
        return self.index.in_order(
            [NodeRef(scope, at) for scope in scopes for at in positions_calling(scope, operators)]
        )

    def names(self, call: Call) -> set[str]:
        """Return the names of all values that a call may describe, judged from operators and numbers alone.

        A value with such a name in another graph counts, too.
        """
        known = self._names.get(call)
        if known is None:
            known = self._names[call] = self._names_of(call)
        return known

    def _names_of(self, call: Call) -> set[str]:
        inputs = list(enumerate(call.inputs or ()))
        calls = [(slot, self.names(final_call(each))) for slot, each in inputs if isinstance(each, Call | Path)]
        numbers = [(slot, each) for slot, each in inputs if isinstance(each, Number | Elements)]
        described: set[str] = set()
        if not all([names for _, names in calls]):
            return described
        is_ordered = not any([each.name == "*" or is_commutative(each.domain, each.name) for each in call.operators])
        output = call.output
        for scope in self.index.scopes:
            nodes = scope.graph.node
            for position in positions_calling(scope, call.operators):
                node = nodes[position]
                given = node.input
                for slot, names in calls:
                    if (slot >= len(given) or given[slot] not in names) if is_ordered else names.isdisjoint(given):
                        break
                else:
                    if output < len(node.output) and (
                        not numbers or self._has_numbers(scope, given, numbers, is_ordered=is_ordered)
                    ):
                        described.add(node.output[output])
        return described

    def _has_numbers(
        self, scope: Scope, names: Sequence[str], wanted: Sequence[tuple[int, Number | Elements]], *, is_ordered: bool
    ) -> bool:
        is_like = self.literals.is_like
        known = self.literals.known(scope) or names
        for slot, want in wanted:
            for name in names[slot : slot + 1] if is_ordered else names:
                if name and name in known and is_like(self.value(scope, name), want):
                    break
            else:
                return False
        return True

    def value(self, scope: Scope, name: str) -> Value:
        """Return the value that a name stands for in a graph."""
        is_inner = scope.outer is None and (name in scope.producers or name in scope.initializers)
        return new_value((scope if is_inner else Index.defining_scope(scope, name), name))

    def producer(self, scope: Scope, name: str) -> NodeRef | None:
        """Return the node that produces a value; see `Index.producer`."""
        place = self.computed(scope).get(name)
        if place is not None:
            return new_ref((scope, place[0]))
        return None if scope.outer is None else self.index.producer(scope, name)

    def attribute(self, ref: NodeRef, name: str) -> Attribute | None:
        """Return an attribute of a node, or its default."""
        node = ref.node
        for each in node.attribute:
            if each.name == name:
                return each
        return attribute_defaults(node.domain, node.op_type, self._version(ref)).get(name)

    def binds(self, name: str, want: AttributeValue, ref: NodeRef, bindings: Bindings) -> bool:
        """Whether an attribute of a node fits; if the pattern names it, bind the name."""
        attribute = self.attribute(ref, name)
        if attribute is None or not isinstance(want, Bound):
            return attribute is not None and self.literals.has(attribute, want)
        before = bindings.setdefault(want.name, attribute)
        return before is attribute or (isinstance(before, Attribute) and value_of(before) == value_of(attribute))

    def is_optional(self, ref: NodeRef, slot: int) -> bool:
        """Whether the input of a node at a position may be omitted."""
        signature = table_signature(ref.node.domain, ref.node.op_type, self._version(ref))
        formal = None if signature is None or slot >= len(signature.inputs) else signature.inputs[slot]
        return formal is not None and formal.option == "optional"

    def _version(self, ref: NodeRef) -> int:
        graph = ref.scope.graph
        domain = plain_domain(ref.node.domain)
        if isinstance(graph, Function):
            stated = {plain_domain(each.domain): each.version or 0 for each in graph.opset_import}
            return stated.get(domain, self._versions.get(domain, 0))
        return self._versions.get(domain, 0)


def is_calling(node: Node, operators: Sequence[Operator]) -> bool:
    """Whether a node calls one of the operators."""
    for each in operators:
        if each.name == "*" or (node.op_type == each.name and plain_domain(node.domain) == each.domain):
            return True
    return False


def given_inputs(ref: NodeRef) -> int:
    """The number of inputs of a node, without those omitted at the end."""
    names = ref.node.input
    given = len(names)
    while given and not names[given - 1]:
        given -= 1
    return given


def positions_calling(scope: Scope, operators: Sequence[Operator]) -> Iterable[int]:
    """Return the positions of the nodes of a graph that call one of the operators, in their order."""
    nodes = scope.graph.node
    domains: dict[str, set[str | None]] = {}
    for each in operators:
        domains.setdefault(each.name, set()).update((each.domain,) if each.domain else _PLAIN)
    if "*" in domains:
        return range(len(nodes))
    found = [at for name in domains for at in scope.callers.get(name, ()) if nodes[at].domain in domains[name]]
    return found if len(domains) == 1 else sorted(found)


def _computed(scope: Scope) -> Mapping[str, tuple[int, int]]:
    others = {*scope.inputs, *scope.initializers, *scope.sparse_initializers}
    if scope.producers.keys().isdisjoint(others):
        return scope.producers
    return {name: place for name, place in scope.producers.items() if name not in others}
