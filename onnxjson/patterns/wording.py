"""Descriptions of how a place in a model differs from a pattern; every text of the model is made visible."""

from collections.abc import Collection, Iterator, Sequence

from onnxjson.model.display import counted, suggest, visible
from onnxjson.model.document import Attribute, Node
from onnxjson.model.index import NodeRef, Scope
from onnxjson.model.messages import value_of
from onnxjson.model.operators import OperatorRow, operator_name, operator_table
from onnxjson.patterns.expression import Anything, AttributeValue, Call, Path, Pattern, Text, ValuePattern
from onnxjson.patterns.name_patterns import has_wildcards
from onnxjson.patterns.selector_terms import attribute_text, parse


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
    return f'"{visible(name)}" {source}, the pattern needs {operators(want)}'


def more_inputs(ref: NodeRef, there: int, wanted: int) -> str:
    """A node has inputs that the pattern does not mention."""
    mentioned = f"only {wanted}" if wanted else "none"
    return f'{called(ref)} has {counted(there, "input")}, the pattern mentions {mentioned} ("..." matches others)'


def constant_differs(node: Node, slot: int, want: ValuePattern, found: str | None, name: str) -> str:
    """An input is not a constant, or has other elements."""
    what = f'"{visible(name)}"' if found is None else found
    return f"input {slot} of {_node(node)} is {what}, the pattern needs {want}"


def no_path(want: Path, name: str) -> str:
    """No path of the length in the pattern leads to a value."""
    length = (
        "directly"
        if want.most == 0
        else f"over {want.least} to {'any number of' if want.most is None else want.most} nodes"
    )
    return f'"{visible(name)}" is not computed from {want.start} {length}'


def attribute_differs(ref: NodeRef, name: str, found: Attribute | None, want: AttributeValue) -> str:
    """An attribute is missing or has another value."""
    if found is None:
        return f"{called(ref)} has no attribute {visible(name)}"
    text = attribute_text(found)
    shown = "another value" if text is None or isinstance(value_of(found), bytes) else visible(text)
    return f"{visible(name)} of {called(ref)} is {shown}, the pattern needs {want}"


def mistakes(pattern: Pattern, used: Collection[str], *, is_rule: bool = False) -> Iterator[str]:
    """Yield a sentence for each name or number in a pattern that neither ONNX nor the operators `used` have.

    Unless it is a rule, also for operators of ONNX that the models have from another domain only, according to `used`.
    """
    table = operator_table()
    known = {operator_name(domain, name) for domain, names in table.operators.items() for name in names} | {*used}
    plain = {each.rpartition("::")[2]: each for each in sorted(known, key=used.__contains__)}
    for call in pattern.calls:
        for each in call.operators:
            name, other = operator_name(each.domain, each.name), plain.get(each.name, "")
            is_meant = is_rule or any(str(one) == other for one in call.operators)
            if name in used or each.name == "*" or (is_meant and name in known):
                continue
            if other in used or (other and each.domain in table.operators and name not in known):
                yield f'the operator is called "{visible(other)}", not "{visible(name)}"'
            elif each.domain in table.operators and name not in known:
                hint = suggest(name, known) or f"write ${name} for any value" * (name.islower() and name.isidentifier())
                yield _unknown(f'operator is called "{visible(name)}"', hint)
            elif name not in known and not any(one.startswith(f"{each.domain}::") for one in used):
                yield from [_unknown(f'node calls "{visible(name)}"', hint) for hint in [suggest(name, used)] if hint]
        versions = [table.rows(each.domain, each.name) for each in call.operators]
        rows = [row for each in versions for row in each] if all(versions) else []
        attributes = {name for row in rows for name in row.attributes}
        if rows:
            yield from _counts(call, rows)
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
        there = f"{operators(call)} has at least {counted(least, 'input')}, the pattern has {len(call.inputs)}"
        yield f'{there}; "..." matches further inputs{shell}'
    elif given > most:
        yield f"{operators(call)} has at most {counted(most, 'input')}, the pattern has {given}"
    if call.output >= max(outputs):
        yield f"{operators(call)} has no output {call.output}; outputs are counted from 0"


def _unknown(what: str, hint: str) -> str:
    return f"no {what}; {hint}".rstrip("; ")
