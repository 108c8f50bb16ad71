"""The edit replace-pattern: whatever matches a pattern becomes another piece of graph."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import msgspec

from onnxjson.editing.cleaning import remove_newly_unused
from onnxjson.editing.declaration import Edit, Outcome, name_of
from onnxjson.editing.inference import state_types
from onnxjson.editing.nodes import attributes_of
from onnxjson.editing.opsets import domain_text, imported_version, with_version
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.pattern_sides import Replaced, constant_dtype, packed, prove, typed
from onnxjson.editing.rewiring import Changes, check_node, dtype_conflict, dtype_of
from onnxjson.editing.workspace import Workspace
from onnxjson.model.constants import is_constant_node
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Attribute, Node, Tensor
from onnxjson.model.errors import EditError, NoMatchError, ParameterError, SelectorError
from onnxjson.model.index import Index, NodeRef, Scope, Use
from onnxjson.model.operators import known_operators, newest_version
from onnxjson.patterns.expression import (
    Anything,
    Bound,
    Call,
    Elements,
    Number,
    Path,
    Pattern,
    Text,
    ValuePattern,
    parts,
)
from onnxjson.patterns.finding import Match
from onnxjson.patterns.grammar import parse, parse_replacement
from onnxjson.patterns.mismatches import imported_versions, mistakes
from onnxjson.patterns.nodes import TOLERANCE, Literals, Value
from onnxjson.patterns.searching import find

__all__ = ["ReplacePattern"]


class ReplacePattern(Edit, frozen=True, kw_only=True, eq=False, tag="replace-pattern"):
    """Replace what matches a pattern of operators with other operators.

    The replacement is written like a pattern, with the names that the pattern binds: $x and ?w for values, $g for
    attributes; numbers and lists become constants, _ omits an input. The last node of a match keeps the name of its
    output. Matches with inner values used elsewhere are refused; `keep` keeps those nodes, `where_possible` skips such
    matches.
    """

    group: ClassVar = "nodes"
    words = ("pattern", "replacement")
    examples = (
        '{"edit": "replace-pattern", "pattern": "Mul($x, Sigmoid($x))", "replacement": "Swish($x)"}',
        '{"edit": "replace-pattern", "pattern": "Transpose(Transpose($x))", "replacement": "$x"}',
    )

    pattern: Annotated[str, about("The pattern; `onnxjson find` shows what it matches.", min_length=1)]
    replacement: Annotated[str, about("The replacement of each match.", min_length=1)]
    node: Annotated[str | None, Role("nodes"), about("Replace only matches whose last node is one of these.")] = None
    keep: Annotated[bool, about("Keep nodes of a match whose outputs are used elsewhere.")] = False
    where_possible: Annotated[bool, about("Leave matches that cannot be replaced as they are.")] = False
    prove: Annotated[
        bool, about("Run both sides of each replacement on the same random inputs; refuse differences.")
    ] = False
    import_domain: Annotated[bool, about("Import the domains of new operators that the model does not import.")] = False

    def change(self, workspace: Workspace) -> Outcome:
        try:
            pattern, replacement = parse(self.pattern), parse_replacement(self.replacement)
        except SelectorError as error:
            raise ParameterError(str(error), place=name_of(self)) from error
        for each in (replacement,) if isinstance(replacement, Bound) else replacement:
            _check_names(pattern.names, each, name_of(self))
        imported = _import_domains(workspace, replacement) if self.import_domain else []
        matches = find(workspace.model, pattern, overlapping=self.node is not None, index=workspace.index)
        if self.node is not None:
            wanted = set(workspace.select(self.node))
            matches = _apart([match for match in matches if match.root in wanted])
        if not matches:
            if self.if_any:
                return Outcome(0)
            mistyped = mistakes(pattern, workspace.index.operator_counts(), opsets=imported_versions(workspace.model))
            asked = f"`onnxjson find MODEL {visible(shlex.quote(self.pattern))} --why` shows what nearly does"
            hint = next(mistyped, asked)
            raise NoMatchError(f"nothing matches the pattern; {hint}", place=name_of(self))
        work = _Replacements(workspace, pattern, replacement, name_of(self), keep=self.keep)
        refused = []
        for match in matches:
            try:
                work.add(match)
            except EditError as error:
                if not self.where_possible:
                    raise
                refused.append(str(error))
        model = workspace.model
        before = Index(model)
        work.make()
        if unknown := work.unknown_values():
            state_types(workspace, model, unknown)
        notes = imported + ([f"{counted(len(refused), 'place')} not replaced: {refused[0]}"] if refused else [])
        if self.prove and work.done:
            notes += prove(workspace, before, work.done, work.resolved, work.edit)
        notes += remove_newly_unused(workspace, before)
        return Outcome(len(matches) - len(refused), tuple(notes))


def _import_domains(workspace: Workspace, replacement: tuple[Call, ...] | Bound) -> list[str]:
    """Import the domains of a replacement, in the newest known version, or 1; return a note for each."""
    calls = [part for each in (() if isinstance(replacement, Bound) else replacement) for part in parts(each)]
    domains = dict.fromkeys([part.operators[0].domain for part in calls if isinstance(part, Call)])
    notes = []
    for domain in domains:
        model = workspace.model
        if imported_version(model.opset_import, domain) is None:
            number = newest_version(domain) or 1
            workspace.replace_model(opset_import=with_version(model, domain, number).opset_import)
            notes.append(f"{domain_text(domain)}: imported with version {number}")
    return notes


def _apart(matches: Sequence[Match]) -> list[Match]:
    """Return the matches that share no nodes with an earlier one."""
    taken: set[NodeRef] = set()
    apart = []
    for match in matches:
        if taken.isdisjoint(match.nodes):
            taken.update(match.nodes)
            apart.append(match)
    return apart


def _check_names(bound: Mapping[str, bool], replacement: ValuePattern, edit: str) -> None:
    for part in parts(replacement):
        if isinstance(part, Call) and part.name and (part is not replacement or bound.get(part.name, True)):
            raise ParameterError(
                f"as ${part.name} is not a value of the pattern that a whole call replaces", place=edit
            )
        if isinstance(part, Bound) and bound.get(part.name, True):
            what = "is an attribute, not a value" if part.name in bound else "is not in the pattern"
            raise ParameterError(f"${part.name} of the replacement {what}", place=edit)
        if isinstance(part, Path):
            raise ParameterError("a replacement has no paths (->); write calls inside calls", place=edit)
        if not isinstance(part, Call):
            continue
        if len(part.operators) > 1 or part.operators[0].name == "*":
            raise ParameterError(f"a replacement has one operator in each place, not {part}", place=edit)
        if part.inputs is None or part.is_open:
            hint = f"write ${part}" if str(part) in bound else f"write its inputs, such as {part.operators[0]}($x)"
            raise ParameterError(f"a replacement names all inputs; {part} does not; {hint}", place=edit)
        for name, value in part.attributes:
            if isinstance(value, Anything) or (isinstance(value, Elements) and None in value.items):
                raise ParameterError(f"the attribute {name} of a replacement needs a value", place=edit)
            if isinstance(value, Bound) and not bound.get(value.name, False):
                raise ParameterError(f"${value.name} is not an attribute of the pattern", place=edit)
        for each in part.inputs:
            if isinstance(each, Elements) and any(not isinstance(item, int | float) for item in each.items):
                raise ParameterError(f"{each} is not a list of numbers", place=edit)


@dataclass
class _Replacements:
    """The changes of all matches."""

    workspace: Workspace
    pattern: Pattern
    replacement: tuple[Call, ...] | Bound
    edit: str
    keep: bool
    changes: Changes = field(init=False)
    done: list[Replaced] = field(default_factory=list)
    literals: Literals = field(init=False)
    _taken: set[str] = field(default_factory=set)
    _instead: dict[Value, str] = field(default_factory=dict)
    """Values that another one replaces."""
    _moved: dict[NodeRef, float] = field(default_factory=dict)
    """Replaced nodes, and the position of what replaces them."""
    _after: list[tuple[Scope, int, tuple[Node, ...]]] = field(default_factory=list)
    """Nodes that follow one which stays."""

    def __post_init__(self) -> None:
        self.changes = Changes(self.workspace)
        self.literals = Literals(TOLERANCE)

    def add(self, match: Match) -> None:
        """Replace one match.

        Raises:
            EditError: the match has something that the replacement would lose, or the new nodes are not valid.
        """
        root = match.root
        self._check_inputs(match)
        removed, ends = self._removed(match), self.ends(match)
        if isinstance(self.replacement, Bound):
            value = match.bindings[self.replacement.name]
            assert isinstance(value, Value)
            nodes = self._forwarded(root, root.node.output[match.pattern.calls[0].output], value)
        else:
            nodes = _Nodes(self, match, self.replacement).made
        at = root.position if isinstance(self.replacement, Bound) else self._place(match, removed)
        of_graph, produced = self.changes.of(root.scope), {name for node in nodes for name in node.output}
        for ref in removed:
            of_graph.nodes[ref.position] = None
            of_graph.removed.update(each for each in ref.node.output if each and each not in produced)
        if isinstance(at, int):
            of_graph.nodes[at] = tuple(nodes)
        else:
            self._after.append((root.scope, int(at), tuple(nodes)))
        self.done.append(Replaced(match, ends, produced - {""}))

    def make(self) -> None:
        """Make the changes of all matches."""
        for scope, place, nodes in self._after:
            before = self.changes.of(scope).nodes.get(place, scope.graph.node[place])
            kept = (before,) if isinstance(before, Node) else before or ()
            self.changes.of(scope).nodes[place] = (*kept, *nodes)
        self.changes.make()

    def unknown_values(self) -> set[str]:
        """Return the values of the main graph that operators compute now whose types onnx does not infer."""
        made = self.replacement if not isinstance(self.replacement, Bound) else ()
        if all([known_operators(call.operators[0].domain) for call in made]):
            return set()
        return {name for each in self.done if each.match.root.scope.address == "/graph" for name in each.ends}

    def _place(self, match: Match, removed: Sequence[NodeRef]) -> float:
        """Return the position of the first node that is replaced, or one after the last input; `.5` is after a node."""
        scope, moved = match.root.scope, self._moved
        bound = {name: each.name for name, each in match.bindings.items() if Value(scope, each.name or "") == each}
        made = {name: scope.producer(value or "") for name, value in bound.items()}
        inputs = {moved.get(ref, ref.position): name for name, ref in made.items() if ref and ref not in removed}
        latest = max(inputs, default=-1)
        first = min([scope.producers[name][0] for name in self.ends(match)])
        at = first if latest < first else int(latest) + 0.5
        for place in [each for end in self.ends(match) for each in self.workspace.index.consuming_nodes(scope, end)]:
            user = None if place is None else NodeRef(scope, place)
            if user and user not in removed and moved.get(user, user.position) <= at:
                raise EditError(
                    f"{user.address} uses the replaced value before ${inputs.get(latest)} is computed",
                    match.root.address,
                    place=self.edit,
                )
        self._moved |= dict.fromkeys(removed, at)
        return at

    def ends(self, match: Match) -> list[str]:
        """Return the values of a match that the replacement computes."""
        root = match.root
        if isinstance(self.replacement, Bound) or not self.replacement[0].name:
            return [root.node.output[match.pattern.calls[0].output]]
        bound = [match.bindings[each.name] for each in self.replacement]
        inside = set(match.nodes)
        for value in bound:
            assert isinstance(value, Value)
            if value.scope is not root.scope or self.workspace.index.producer(root.scope, value.name) not in inside:
                raise EditError(
                    f'"{visible(value.name)}" is to be replaced, but no node of the match produces it',
                    root.address,
                    place=self.edit,
                )
        return [each.name or "" for each in bound]

    def _forwarded(self, root: NodeRef, output: str, value: Value) -> list[Node]:
        """Let all consumers of a value use another one; an output of a graph keeps its name, by a node Identity."""
        index = self.workspace.index
        name = self._instead.get(value, value.name)
        self._instead[Value(root.scope, output)] = name
        uses = index.consumers(root.scope, output)
        for use in uses:
            if use.position is not None:
                self.changes.take(use, name)
        if any(use.position is None for use in uses):
            return [Node(input=(name,), output=(output,), name=root.node.name, op_type="Identity")]
        self.changes.of(root.scope).removed.add(output)
        return []

    def _check_inputs(self, match: Match) -> None:
        for call, ref in zip(match.pattern.calls, match.calls, strict=True):
            unmentioned = sum(bool(name) for name in ref.node.input[len(call.inputs or ()) :])
            if call.inputs is None:
                unmentioned = 0 if ref is match.root and isinstance(self.replacement, Bound) else len(ref.node.input)
            if unmentioned and not call.is_open:
                raise EditError(
                    f"{ref.address} ({visible(ref.node.op_type or '')}) has inputs that the pattern does "
                    'not mention; name them, or write "..." to drop them',
                    ref.address,
                    place=self.edit,
                )

    def _removed(self, match: Match) -> list[NodeRef]:
        """Return the nodes of a match that go, except its last one."""
        root, scope = match.root, match.root.scope
        ends = set(self.ends(match))
        last = {root, *[ref for ref in match.nodes if ref.scope is scope and not ends.isdisjoint(ref.node.output)]}
        inside = set(match.nodes)
        kept: set[NodeRef] = set()
        made = (self.replacement,) if isinstance(self.replacement, Bound) else self.replacement
        named = [part.name for each in made for part in parts(each) if isinstance(part, Bound)]
        needed = {match.bindings[name] for name in named}
        for ref in sorted(match.nodes, key=lambda each: each.position, reverse=True):
            for name in ref.node.output if ref in last or not is_constant_node(ref.node) else ():
                if not name or (ref in last and name in ends):
                    continue
                uses = self.workspace.index.consumers(ref.scope, name)
                outside = [use for use in uses if not _is_in(use, inside)]
                is_used = bool(outside) or ref.scope is not scope
                if is_used and (not self.keep or ref in last):
                    where = "in another graph" if not outside else f"by {_user(outside[0])}"
                    raise EditError(
                        f'{self.edit}: "{visible(name)}" inside a match is used {where}'
                        + ("" if ref in last else "; with keep, its producer stays"),
                        ref.address,
                    )
                if is_used or Value(scope, name) in needed or any([_is_in(use, kept) for use in uses]):
                    kept.add(ref)
        return [
            ref
            for ref in inside - kept
            if ref.scope is scope and not (is_constant_node(ref.node) and self._is_shared(ref, inside))
        ]

    def _is_shared(self, ref: NodeRef, inside: set[NodeRef]) -> bool:
        uses = self.workspace.index.consumers(ref.scope, ref.node.output[0])
        return any(not _is_in(use, inside) for use in uses)

    def fresh(self, wanted: str) -> str:
        """Return a name that no value has."""
        name = self.workspace.fresh_name(wanted, self._taken)
        self._taken.add(name)
        return name

    def resolved(self, value: Value) -> str:
        """Return the name of a value after the replacements so far."""
        return self._instead.get(value, value.name)


class _Nodes:
    """The nodes that replace one match: those of the given calls, and of the calls in them."""

    def __init__(self, work: _Replacements, match: Match, calls: Sequence[Call]) -> None:
        self._work = work
        self._match = match
        self._known: dict[Call, tuple[str, ...]] = {}
        self._given: dict[Call, dict[int, str]] = {}
        self._outputs: dict[Call, int] = {}
        for part in [part for call in calls for part in parts(call) if isinstance(part, Call)]:
            self._outputs[_node_of(part)] = max(part.output, self._outputs.get(_node_of(part), 0))
        for call, name in zip(calls, work.ends(match), strict=True):
            self._given.setdefault(_node_of(call), {})[call.output] = name
        self.made: list[Node] = []
        for call in calls:
            self._call(call)

    def _call(self, call: Call) -> str:
        """Make the node of a call and of the calls in it; return its output."""
        same = _node_of(call)
        if same not in self._known:
            self._known[same] = self._node(call, self._given.get(same, {}))
        return self._known[same][call.output]

    def _node(self, call: Call, given: Mapping[int, str]) -> tuple[str, ...]:
        work, root = self._work, self._match.root
        operator = call.operators[0]
        inputs = list(map(self._input, call.inputs or ()))
        for place, given_input in enumerate(call.inputs or ()):
            if isinstance(given_input, Number | Elements):
                dtype = constant_dtype(work.workspace, root, call, place, inputs, work.edit)
                inputs[place] = self._constant(given_input, dtype)
        while inputs and not inputs[-1]:
            inputs.pop()
        base = root.node.name or root.node.output[self._match.pattern.calls[0].output]
        count = max([self._outputs[_node_of(call)], *given]) + 1
        outputs = [given.get(slot) or work.fresh(f"{base}/{operator.name}") for slot in range(count)]
        name = root.node.name if root.node.output[self._match.pattern.calls[0].output] in outputs else None
        node = Node(
            input=tuple(inputs), output=tuple(outputs), name=name, op_type=operator.name,
            attribute=self._attributes(call), domain=operator.domain or None,
        )  # fmt: skip
        check_node(work.workspace, root.scope, node, work.edit, root.address)
        conflict = dtype_conflict(work.workspace, root.scope, node)
        if conflict is not None:
            raise EditError(f"{work.edit}: {root.address}: {conflict}", root.address)
        self.made.append(node)
        return node.output

    def _input(self, wanted: ValuePattern) -> str:
        if isinstance(wanted, Bound):
            value = self._match.bindings[wanted.name]
            assert isinstance(value, Value)
            return self._work.resolved(value)
        return self._call(wanted) if isinstance(wanted, Call) else ""

    def _constant(self, wanted: Number | Elements, dtype: int) -> str:
        """Return that of the pattern, or make a node."""
        root = self._match.root
        for value, literal in self._work.literals.of_match(self._match.pattern.calls, self._match.calls):
            is_before = len(self._given) == 1 or self._work.workspace.index.producer(root.scope, value.name) is None
            if literal == wanted and is_before and dtype_of(self._work.workspace, root.scope, value.name) == dtype:
                return value.name
        dims = () if isinstance(wanted, Number) else (len(wanted.items),)
        tensor = Tensor(dims=dims, data_type=dtype, raw_data=packed(wanted, dtype, root, self._work.edit))
        name = self._work.fresh("constant")
        self.made.append(
            Node(output=(name,), op_type="Constant", attribute=(Attribute(name="value", type=4, t=tensor),))
        )
        return name

    def _attributes(self, call: Call) -> tuple[Attribute, ...]:
        operator = call.operators[0]
        plain: dict[str, Any] = {}
        copied: list[Attribute] = []
        for name, value in call.attributes:
            if isinstance(value, Bound):
                found = self._match.bindings[value.name]
                assert isinstance(found, Attribute)
                copied.append(msgspec.structs.replace(found, name=name))
            elif isinstance(value, Elements):
                plain[name] = list(value.items)
            elif isinstance(value, Number | Text):
                plain[name] = value.value
        return (*attributes_of(typed(plain, operator), operator.domain, operator.name, self._work.edit), *copied)


def _node_of(call: Call) -> Call:
    return call._replace(output=0, name="")


def _is_in(use: Use, nodes: set[NodeRef]) -> bool:
    return use.position is not None and NodeRef(use.scope, use.position) in nodes


def _user(use: Use) -> str:
    if use.position is None:
        return "an output of the graph"
    node = use.scope.graph.node[use.position]
    return f'{visible(node.op_type or "")} "{visible(node.name or next(iter(node.output), ""))}"'
