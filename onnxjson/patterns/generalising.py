"""Patterns from an example: of given nodes; and what was done to one match, as a replacement for all of them."""

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Model, Node
from onnxjson.model.errors import SelectorError
from onnxjson.model.index import Index, NodeRef, Scope
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
    Path,
    Pattern,
    Text,
    ValuePattern,
    parts,
)
from onnxjson.patterns.finding import Match
from onnxjson.patterns.grammar import parse
from onnxjson.patterns.nodes import TOLERANCE, Literals, Value
from onnxjson.patterns.searching import find
from onnxjson.patterns.selector_terms import spelled

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
        raise SelectorError(
            f"a pattern ends in one node; {len(last)} of these nodes are not used by another one of them"
        )
    ref = last[0]
    output = next((slot for slot, name in enumerate(ref.node.output) if name), 0)
    return Pattern(Cut(index, inside.__contains__).call(ref, output))


def free_name(base: str, taken: Collection[str]) -> str:
    """Return a name, with a number if it is taken."""
    return next(name for name in (base, *map(f"{base}{{}}".format, range(2, 2 + len(taken)))) if name not in taken)


def constants_of(pattern: Pattern, opened: Collection[int]) -> tuple[Pattern, list[str]]:
    """Return the constants and attributes of a pattern in words, and the pattern with names for those in `opened`."""
    constants: list[str] = []
    taken = set(pattern.names)

    def named(value: AttributeValue, where: str, base: str, *, is_constant: bool = False) -> AttributeValue:
        constants.append(f"{where} = {value}")
        if len(constants) - 1 not in opened:
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

    return pattern._replace(root=walk(pattern.root, "")), constants  # type: ignore[arg-type]


class Cut:
    """One pattern while it is built.

    Args:
        index: the index of the model.
        is_inside: whether a node becomes a call; asked once for each place where the node is used.
    """

    def __init__(self, index: Index, is_inside: Callable[[NodeRef], bool]) -> None:
        self._index = index
        self._is_inside = is_inside
        self._literals = Literals(0)
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
            return Bound(self._names[value], self._literals.is_constant(value))
        elements = self._literals.elements(value)
        if elements and len(elements) <= _LONGEST and all(isinstance(each, int | float) for each in elements):
            numbers = [int(each) if isinstance(each, bool) else each for each in elements]
            return Number(numbers[0]) if len(numbers) == 1 else Elements(tuple(numbers))
        is_copy = self._literals.constant(value) is not None
        producer = self._index.producer(user.scope, name)
        if producer is not None and not is_copy and self._is_inside(producer):
            return self.call(producer, producer.scope.producers[name][1])
        return Bound(self._names.setdefault(value, _letters(len(self._names))), self._literals.is_constant(value))

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


class Generalised(NamedTuple):
    """The edit of one match, for all."""

    pattern: str
    """The given pattern, with names for everything that must stay."""
    replacement: str
    others: str
    """Selector of the last nodes of other matches in the edited model; "" for all of them."""
    places: int
    """Number of other matches."""


def generalise(before: Model, after: Model, pattern: str) -> Generalised:
    """Return what turns the matches of a pattern into what became of the first one that was edited.

    Raises:
        SelectorError: no match was edited, or a pattern cannot express what became of it.
    """
    old, new, parsed = Index(before), Index(after), parse(pattern)
    if not isinstance(parsed.root, Call) or any(isinstance(each, Path) for each in parts(parsed.root)) or parsed.others:
        raise SelectorError("a pattern with paths or several values is replaced with :replace-pattern")
    for match in find(before, parsed, overlapping=True, index=old):
        scope = new.scope(match.root.scope.address)
        output = match.root.node.output[parsed.root.output]
        if scope is not None and not (_is_kept(match, scope) and _end(match, output, old, scope) == output):
            break
    else:
        raise SelectorError("no match was edited since the filter was set")
    named = parsed._replace(root=_Names(parsed, Literals(TOLERANCE)).call(parsed.root, iter(match.calls)))
    again = [each for each in find(before, named, overlapping=True, index=old) if each.root == match.root]
    if not again:
        raise SelectorError(f"{match.root.address} does not match {named}; name the inputs in the pattern")
    pieces = _Made(old, new, scope, again[0], named)
    replacement = str(pieces.replacement(_end(match, output, old, scope)))
    named = named._replace(root=_with_names(named.root, iter(pieces.names)))  # type: ignore[arg-type]
    places = find(after, named, overlapping=True, index=new)
    edited = [each.root.node.output[parsed.root.output] for each in places if not pieces.nodes.isdisjoint(each.nodes)]
    others = " ".join(["op:*", *[f"!{spelled('output', name)}" for name in dict.fromkeys(edited)]]) if edited else ""
    return Generalised(str(named), replacement, others, len(places) - len(edited))


def _is_kept(match: Match, scope: Scope) -> bool:
    return all([_node(scope, ref.node) == ref.node for ref in match.nodes])


def _node(scope: Scope, like: Node) -> Node | None:
    """Return the node of a graph that produces the same value as another one."""
    position = next((scope.producer_position(name) for name in like.output if name), None)
    return None if position is None else scope.graph.node[position]


def _end(match: Match, output: str, old: Index, scope: Scope) -> str:
    """Return what the consumers of the last value of a match consume in the edited graph."""
    for use in old.consumers(match.root.scope, output):
        if use.position is None:
            return next(iter(scope.output_names[use.slot : use.slot + 1])) or output
        user = _node(scope, use.scope.graph.node[use.position]) if use.scope is match.root.scope else None
        if user is not None and use.slot < len(user.input):
            return user.input[use.slot]
    return output


def _with_names(value: ValuePattern, names: Iterator[str]) -> ValuePattern:
    if not isinstance(value, Call):
        return value
    name, inputs = next(names), value.inputs
    return value._replace(name=name, inputs=inputs and tuple([_with_names(each, names) for each in inputs]))


class _Names:
    """Names for everything of a match that a pattern leaves open, so that a replacement can keep it."""

    def __init__(self, pattern: Pattern, literals: Literals) -> None:
        self._taken = set(pattern.names)
        self._literals = literals

    def _fresh(self, base: str, *, is_constant: bool = False) -> Bound:
        name = free_name(base if base.isidentifier() else "v", self._taken)
        self._taken.add(name)
        return Bound(name, is_constant)

    def call(self, call: Call, refs: Iterator[NodeRef]) -> Call:
        """Return a call of its node's operator, with names for all attributes and inputs; `refs` are nodes of calls."""
        ref = next(refs)
        node = ref.node
        given = {name: self._fresh(name) if isinstance(value, Anything) else value for name, value in call.attributes}
        if any(isinstance(value, Elements) and None in value.items for value in given.values()):
            raise SelectorError("write $name in place of an attribute with *, so that it can be kept")
        given |= {each.name: self._fresh(each.name) for each in node.attribute if each.name and each.name not in given}
        inputs = list(call.inputs or ())
        inputs += [Anything()] * (len(node.input) - len(inputs))
        for place, operand in enumerate(inputs):
            name = "".join(node.input[place : place + 1])
            if isinstance(operand, Call):
                inputs[place] = self.call(operand, refs)
            elif isinstance(operand, Anything) and name:
                value = Value(Index.defining_scope(ref.scope, name), name)
                inputs[place] = self._fresh("v", is_constant=self._literals.is_constant(value))
        operator = Operator(node.op_type or "", plain_domain(node.domain))
        return Call((operator,), tuple(given.items()), tuple(inputs), output=call.output, name=call.name)


class _Made(Cut):
    """The replacement, cut from the edited model."""

    def __init__(self, old: Index, index: Index, scope: Scope, match: Match, pattern: Pattern) -> None:
        super().__init__(index, self._is_inside)
        self.nodes: set[NodeRef] = set()
        self._scope = scope
        self._taken = pattern.names
        self._before = match.root.scope
        self._calls = {ref.node.output: (call, ref.node) for call, ref in zip(pattern.calls, match.calls, strict=True)}
        self._own = {name for ref in match.nodes for name in ref.node.output}
        for name, bound in match.bindings.items():
            if isinstance(bound, Value) and bound.scope is not None and bound.name not in self._own:
                self._names[Value(index.scope(bound.scope.address), bound.name)] = name
        self._known = set(self._names)
        self.names = [call.name for call in pattern.calls]
        """The name of the output of each call of the pattern; empty where the replacement does not use it."""
        self._stays: dict[str, int] = {}
        for place, ref in sorted(list(enumerate(match.calls))[1:], key=lambda each: each[1].position):
            is_same = ref.scope is self._before and ref != match.root and _node(scope, ref.node) == ref.node
            if is_same and self._own.intersection(ref.node.input) <= self._stays.keys():
                self._stays[ref.node.output[pattern.calls[place].output]] = place
        before = Literals(TOLERANCE)
        for value, literal in before.of_match(pattern.calls, match.calls):
            now = Value(None if value.scope is None else index.scope(value.scope.address), value.name)
            if self._literals.elements(now) == before.elements(value):
                self._known_literals[now] = literal

    def replacement(self, end: str) -> ValuePattern:
        """Return the replacement that computes a value of the edited graph."""
        user = NodeRef(self._scope, 0)
        described = self._value(user, end)
        for value in self._names.keys() - self._known:
            raise SelectorError(f'the edited place uses "{visible(value.name)}", which the pattern does not name')
        return described

    def _value(self, user: NodeRef, name: str) -> ValuePattern:
        if user.scope is not self._scope or name not in self._stays:
            return super()._value(user, name)
        place = self._stays[name]
        self.names[place] = self.names[place] or free_name("v", {*self._taken, *self.names})
        return Bound(self.names[place])

    def _is_inside(self, ref: NodeRef) -> bool:
        names = set(ref.node.output)
        is_new = names.isdisjoint(self._before.producers) or not names.isdisjoint(self._own)
        if is_new and ref.scope is self._scope:
            self.nodes.add(ref)
        return is_new and ref.scope is self._scope

    def _attribute(self, node: Node, attribute: Attribute) -> AttributeValue | None:
        call, old = self._calls.get(node.output, (None, None))
        if call is not None and old is not None and attribute in old.attribute:
            return dict(call.attributes)[attribute.name or ""]
        wanted = super()._attribute(node, attribute)
        if wanted is None:
            raise SelectorError(f'the value of "{visible(attribute.name or "")}" cannot be written in a pattern')
        return wanted
