"""Why a place does not match a pattern: conditions on values, and words for all that differs.

Every text of the model is made visible.
"""

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from onnxjson.model.constants import type_of_constant
from onnxjson.model.display import counted, listed, suggest, visible
from onnxjson.model.document import Attribute, Model, Node, Type
from onnxjson.model.dtypes import DATA_TYPES
from onnxjson.model.errors import NoMatchError
from onnxjson.model.index import Index, NodeRef, Scope
from onnxjson.model.messages import value_of
from onnxjson.model.operators import OperatorRow, operator_name, operator_table, plain_domain
from onnxjson.patterns.expression import (
    Anything,
    AttributeValue,
    Bound,
    Call,
    Condition,
    Elements,
    Number,
    Path,
    Pattern,
    Text,
    ValuePattern,
)
from onnxjson.patterns.names import has_wildcards
from onnxjson.patterns.nodes import Literals, Value
from onnxjson.patterns.selector_terms import attribute_text, parse

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Conditions:
    """Tests conditions on the values of one model."""

    def __init__(self, index: Index, selected: Callable[[str], Collection[NodeRef]], literals: Literals) -> None:
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
            return f'${condition.name} is "{visible(bound.name)}"; the pattern needs {condition}'
        if isinstance(wanted, Number) and not condition.function:
            elements = self._literals.elements(bound)
            if elements is not None or condition.comparison not in ("=", "!="):
                return self._compared(condition, wanted, bound, elements or ())
        if not condition.function:
            return self._produced(condition, bound)
        actual = self._found(condition.function, bound)
        if actual is None:
            unknown = f'{condition.function} of "{visible(bound.name)}" is not known'
            return f"{unknown}; `onnxjson rewrite infer-shapes` adds types"
        if isinstance(wanted, Bound):
            number = bindings.get(wanted.name)
            is_same = isinstance(number, Attribute) and DATA_TYPES.get(actual) == value_of(number)
            holds = is_same == (condition.comparison == "=")
        elif isinstance(wanted, Elements):
            fits = len(actual) == len(wanted.items) and all(
                [want is None or want == each for each, want in zip(actual, wanted.items, strict=True)]
            )
            holds = fits == (condition.comparison == "=")
        else:
            holds = _COMPARE[condition.comparison](actual, wanted.value)
        if holds:
            return None
        text = visible(str(list(actual) if isinstance(actual, tuple) else actual))
        if condition.function == "users" and bound.scope is not None:
            uses = self._index.consumers(bound.scope, bound.name)
            places = [f'"{visible(_user(use.scope, use.position))}"' for use in uses]
            text = f"{counted(len(uses), 'user')} ({listed(places)})" if uses else "0 users"
        return f'{condition.function} of "{visible(bound.name)}" is {text}; the pattern needs {condition}'

    def _compared(self, condition: Condition, wanted: Number, bound: Value, elements: Sequence[Any]) -> str | None:
        """Compare a constant with a number."""
        if condition.comparison in ("=", "!="):
            holds = self._literals.is_like(bound, wanted) == (condition.comparison == "=")
        else:
            number = elements[0] if len(elements) == 1 else None
            holds = isinstance(number, int | float) and _COMPARE[condition.comparison](number, wanted.value)
        text = self._literals.text(bound) or "not a constant"
        return None if holds else f'"{visible(bound.name)}" is {text}; the pattern needs {condition}'

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
    for length in shape:
        if not isinstance(length, int):
            return None
        size *= length
    return size


def called(ref: NodeRef) -> str:
    """Return the operator and the name of a node: ``Div "/gelu/Div"``."""
    return _node(ref.node)


def _node(node: Node) -> str:
    name = node.name or next(filter(None, node.output), "")
    return f'{visible(node.op_type or "")} "{visible(name)}"'


def operators(want: Call) -> str:
    """Return the operators that a call accepts."""
    return " or ".join(map(str, want.operators))


def comes_from(want: Call, name: str, producer: NodeRef | None, scope: Scope | None) -> str:
    """The producer of a value is another node, or none."""
    if producer is not None:
        source = f"comes from {called(producer)}"
    elif scope is None:
        source = "is not defined"
    else:
        source = "is an input" if name in scope.inputs else "is a constant"
    return f'"{visible(name)}" {source}; the pattern needs {operators(want)}'


def between(producer: NodeRef | None, user: NodeRef | None, nodes: Sequence[NodeRef]) -> str:
    """Nodes are between two that the pattern has next to each other; the one nearest to the user comes first."""
    ends = [called(ref) for ref in (producer, user) if ref is not None]
    where = f"between {' and '.join(ends)}" if len(ends) == 2 else f"next to {ends[0]}" if ends else "there"
    verb = "is" if len(nodes) == 1 else "are"
    return f"{' and '.join(map(called, reversed(nodes)))} {verb} {where}; the pattern has no node there"


def nothing_between(producer: NodeRef | None, name: str, user: NodeRef | None, want: Call) -> str:
    """A node of the pattern is missing between two others."""
    source = f'"{visible(name)}"' if producer is None else called(producer)
    if user is None:
        return f"nothing is after {source}; the pattern needs {operators(want)}"
    return f"nothing is between {source} and {called(user)}; the pattern needs {operators(want)}"


def other_operator(ref: NodeRef, want: Call) -> str:
    """A node has another operator."""
    return f"{called(ref)}: the pattern needs {operators(want)} here"


def other_output(ref: NodeRef, output: int, want: Call) -> str:
    """Another output of a node is used."""
    return f"output {output} of {called(ref)} is used; the pattern needs output {want.output}"


def no_input(ref: NodeRef, slot: int, want: ValuePattern) -> str:
    """A node has fewer inputs."""
    return f"{called(ref)} has no input {slot}; the pattern needs {want}"


def not_constant(want: Bound, value: Value) -> str:
    """A value is no constant."""
    return f'"{visible(value.name)}" is not a constant; the pattern needs one ({want})'


def two_values(want: Bound, before: Value | Attribute, value: Value) -> str:
    """A name stands for two values."""
    return f'{want} is "{visible(before.name or "")}" in one place and "{visible(value.name)}" in another'


def more_inputs(ref: NodeRef, given: int, wanted: int) -> str:
    """A node has inputs that the pattern does not mention."""
    mentioned = f"only {wanted}" if wanted else "none"
    return f'{called(ref)} has {counted(given, "input")}; the pattern mentions {mentioned} ("..." matches others)'


def constant_differs(node: Node, slot: int, want: ValuePattern, found: str | None, name: str) -> str:
    """An input is not a constant, or has other elements."""
    what = f'"{visible(name)}"' if found is None else found
    return f"input {slot} of {_node(node)} is {what}; the pattern needs {want}"


def no_path(want: Path, name: str) -> str:
    """No path of the length in the pattern leads to a value."""
    length = (
        "directly"
        if want.most == 0
        else f"over {want.least} to {'any number of' if want.most is None else want.most} nodes"
    )
    return f'"{visible(name)}" is not computed from {want.start} {length}'


def attribute_differs(ref: NodeRef, name: str, attribute: Attribute | None, want: AttributeValue) -> str:
    """An attribute is missing or has another value."""
    if attribute is None:
        return f"{called(ref)} has no attribute {visible(name)}"
    text = attribute_text(attribute)
    shown = "another value" if text is None or isinstance(value_of(attribute), bytes) else visible(text)
    return f"{visible(name)} of {called(ref)} is {shown}; the pattern needs {want}"


def imported_versions(model: Model) -> dict[str, int]:
    """Return the versions of the operator sets of a model by domain."""
    return {plain_domain(each.domain): each.version or 0 for each in model.opset_import}


def mistakes(
    pattern: Pattern, used: Collection[str], *, is_rule: bool = False, opsets: Mapping[str, int] | None = None
) -> Iterator[str]:
    """Yield a sentence for each name or number in a pattern that neither ONNX nor the operators `used` have.

    Unless it is a rule, also for operators of ONNX that the models have from another domain only, according to `used`.
    """
    table = operator_table()
    known = {operator_name(domain, name) for domain, names in table.operators.items() for name in names} | {*used}
    plain = {each.rpartition("::")[2]: each for each in sorted(known, key=used.__contains__)}
    for call in dict.fromkeys([call for variant in pattern.variants for call in variant.calls]):
        for wanted in call.operators:
            name, other = operator_name(wanted.domain, wanted.name), plain.get(wanted.name, "")
            is_meant = is_rule or any(str(one) == other for one in call.operators)
            if name in used or wanted.name == "*" or (is_meant and name in known):
                continue
            if other in used or (other and wanted.domain in table.operators and name not in known):
                yield f'the operator is called "{visible(other)}", not "{visible(name)}"'
            elif wanted.domain in table.operators and name not in known:
                hint = suggest(name, known) or f"write ${name} for any value" * (name.islower() and name.isidentifier())
                hint = hint or f"write {'::'.join(visible(name).rsplit('.', 1))}" * ("." in name)
                yield _unknown(f'operator is called "{visible(name)}"', hint)
            elif name not in known and not any(one.startswith(f"{wanted.domain}::") for one in used):
                yield from [_unknown(f'node calls "{visible(name)}"', hint) for hint in [suggest(name, used)] if hint]
        versions = [table.rows(each.domain, each.name) for each in call.operators]
        rows = [row for each in versions for row in each] if all(versions) else []
        attributes = {name for row in rows for name in row.attributes}
        if rows:
            imported = [
                table.row(each.domain, each.name, (opsets or {}).get(each.domain, 0)) for each in call.operators
            ]
            known_rows = [row for row in imported if row is not None]
            yield from _counts(call, known_rows if len(known_rows) == len(imported) else rows)
        for name, _ in call.attributes if rows else ():
            if name not in attributes:
                yield _unknown(f'{operators(call)} has attribute "{visible(name)}"', suggest(name, attributes))
    for condition in pattern.conditions:
        if isinstance(condition.wanted, Text) and not condition.function:
            for _, value, *_ in [term for term in parse(condition.wanted.value).terms or () if term.key == "op"]:
                if value.text not in plain and (value.quoted or not has_wildcards(value.text)):
                    yield _unknown(f'operator is called "{visible(value.text)}"', suggest(value.text, plain))


def _counts(call: Call, rows: Sequence[OperatorRow]) -> Iterator[str]:
    """Yield a sentence for each number of inputs or outputs that no version of an operator has."""
    fewest, greatest, _, outputs = zip(*[row.counts for row in rows], strict=True)
    least, most = min(fewest), max(greatest)
    given = max([place for place, each in enumerate(call.inputs or (), 1) if not isinstance(each, Anything)], default=0)
    if call.inputs is not None and len(call.inputs) < least and not call.is_open:
        shell = "" if call.inputs else "; in a shell, single quotes keep $names"
        there = f"{operators(call)} has at least {counted(least, 'input')}; the pattern has {len(call.inputs)}"
        yield f'{there}; "..." matches further inputs{shell}'
    elif given > most:
        yield f"{operators(call)} has at most {counted(most, 'input')}; the pattern has {given}"
    if call.output >= max(outputs):
        yield f"{operators(call)} has no output {call.output}; outputs are counted from 0"


def _unknown(what: str, hint: str) -> str:
    return f"no {what}; {hint}".rstrip("; ")
