"""Edits of names: rename, set-name, name-nodes and prefix."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, ClassVar, Final, Literal

from msgspec import field
from msgspec.structs import replace

from onnxjson.editing.declaration import Edit, Outcome
from onnxjson.editing.name_changes import NameRule, name_rule, read_name_table
from onnxjson.editing.parameters import Role, about
from onnxjson.editing.workspace import NodeChange, Workspace
from onnxjson.model.dimensions import dimension_names, with_dimension_names
from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Model, Node, Record, StringStringEntry
from onnxjson.model.errors import EditError, SelectorError
from onnxjson.model.index import Scope
from onnxjson.model.messages import FIELDS
from onnxjson.model.renaming import collision_error, refuse_collisions, renamed
from onnxjson.model.walking import replace_records, walk

_WITH_METADATA: Final[tuple[type[Record], ...]] = tuple(
    [message for message, fields in FIELDS.items() if any([each.name == "metadata_props" for each in fields])]
)

__all__ = ["NameNodes", "Prefix", "Rename", "SetName"]

NameKind = Literal["tensor", "node", "any", "input", "output", "dim", "metadata"]


class Rename(Edit, frozen=True, kw_only=True, eq=False, tag="rename"):
    """Rename tensors, nodes, inputs, outputs, dimensions or metadata keys, with all references to them.

    If two different names would become equal, nothing is changed and all conflicts are listed.
    """

    group: ClassVar = "names"
    words: ClassVar = ("kind", "from", "to")
    examples: ClassVar = (
        '{"edit": "rename", "kind": "input", "from": "input.1", "to": "image"}',
        '{"edit": "rename", "kind": "tensor", "from": "re:(.*)/layer(.*)", "to": "\\\\1/block\\\\2"}',
        '{"edit": "rename", "kind": "any", "from": "layer", "to": "block", "parts": true}',
        '{"edit": "rename", "kind": "dim", "from": "batch", "to": "N"}',
    )

    kind: Annotated[
        NameKind | None,
        about(
            "The kind of name; any: tensors and nodes; input, output: of the model. "
            "By default, the only kind that has the name."
        ),
    ] = None
    from_: Annotated[str | None, Role("name"), about("The name, or re: and a regular expression for whole names.")] = (
        field(default=None, name="from")
    )
    to: Annotated[str | None, about("The new name; after re: it may refer to groups as \\1 or \\g<name>.")] = None
    names: Annotated[dict[str, str] | None, about("Instead of from and to: old names and new ones.")] = None
    mapping: Annotated[
        str | None, Role("file"), about("Instead of from and to: a CSV file with old and new names.")
    ] = None
    parts: Annotated[bool, about("Replace every occurrence of `from` within names.")] = False
    within: Annotated[
        str | None, Role("graph"), about("The address of the only graph to change, such as /graph or /functions/0.")
    ] = None

    def change(self, workspace: Workspace) -> Outcome:
        change = self._changer(workspace)
        kind = self.kind or _only_kind(workspace, change)
        match kind:
            case "node":
                count = _rename_nodes(workspace, change, self.within)
            case "any":
                # Types follow the names of values, as long as the nodes are the same.
                count = _rename_values(workspace, change, "tensor", self.within, must=False)
                count += _rename_nodes(workspace, change, self.within, must=not count)
            case "dim":
                count = _rename_dimensions(workspace, change)
            case "metadata":
                count = _rename_metadata(workspace, change)
            case _:
                count = _rename_values(workspace, change, kind, self.within)
        return Outcome(count)

    def _changer(self, workspace: Workspace) -> NameRule:
        given = [self.from_ is not None or self.to is not None, self.names is not None, self.mapping is not None]
        if sum(given) != 1 or (self.from_ is None) != (self.to is None):
            parts = [part for part in re.split("[=:]", self.from_ or "") if part] if self.to is None else []
            words = " ".join(map(visible, parts)) if len(parts) == 2 else "OLD NEW"
            raise EditError(f"rename needs an old and a new name: `rename {words}`; or `names`, or `mapping`")
        if self.within is not None and self.kind in ("dim", "metadata"):
            raise EditError(f"names of kind {self.kind} do not belong to one graph; leave `within` out")
        if self.from_ is not None and self.to is not None:
            return name_rule(self.from_, self.to, parts=self.parts)
        if self.names is not None:
            return NameRule(self.names, None)
        assert self.mapping is not None
        return NameRule(read_name_table(workspace.file(self.mapping)), None)


def _only_kind(workspace: Workspace, rule: NameRule) -> NameKind:
    """Return the only kind of things that has the names of a rule."""
    if rule.names is None:
        raise EditError("a pattern of names needs the kind of names: tensor, node, any, input, output, dim or metadata")
    known: dict[NameKind, Collection[str | None]] = {
        "tensor": {name for scope in workspace.index.scopes for name in scope.defined_names},
        "node": {ref.node.name for ref in workspace.index.nodes()},
        "dim": dimension_names(workspace.model),
        "metadata": {entry.key for entries in _metadata(workspace.model) for entry in entries},
    }
    kinds = [kind for kind, names in known.items() if all([name in names for name in rule.names])]
    shown = listed([f'"{visible(name)}"' for name in rule.names])
    if not kinds:
        every = [name for names in known.values() for name in names if name]
        hint = (
            suggest(next(iter(rule.names)), every) or "`onnxjson show MODEL 'op:*'` lists all nodes and their outputs"
        )
        (name, new), *others = rule.names.items()
        if name.count("*") == 1 and not others:
            pattern = re.escape(name).replace(r"\*", "(.*)")
            words = [visible(text, None) for text in (f"re:{pattern}", new.replace("*", r"\1"))]
            hint = "names that fit a pattern: `rename tensor '{}' '{}'`".format(*words)
        raise SelectorError(f"nothing is called {shown}; {hint}")
    if len(kinds) > 1:
        raise SelectorError(f"{shown} is the name of a {' and of a '.join(kinds)}; name the kind: {' or '.join(kinds)}")
    return kinds[0]


class NameNodes(Edit, frozen=True, kw_only=True, eq=False, tag="name-nodes"):
    """Give every unnamed node a unique name, in all graphs and functions."""

    group: ClassVar = "nodes"
    examples: ClassVar = ('{"edit": "name-nodes"}',)

    prefix: Annotated[str, about("The prefix of the new names, before the operator and a number.")] = ""

    def change(self, workspace: Workspace) -> Outcome:
        model = workspace.model
        taken = {node.name for node in walk(model, Node) if node.name}
        numbers: dict[str, int] = {}
        changes: dict[Scope, dict[int, NodeChange]] = {}
        for ref in workspace.index.nodes():
            if ref.node.name:
                continue
            operator = f"{self.prefix}{ref.node.op_type or 'node'}"
            number = numbers.get(operator, 0)
            while (name := f"{operator}_{number}") in taken:
                number += 1
            numbers[operator] = number + 1
            taken.add(name)
            changes.setdefault(ref.scope, {})[ref.position] = replace(ref.node, name=name)
        workspace.replace_nodes_in(changes)
        count = sum(map(len, changes.values()))
        return Outcome(count, () if count else ("every node has a name",))


class Prefix(Edit, frozen=True, kw_only=True, eq=False, tag="prefix"):
    """Add a prefix to the names of tensors and nodes, or of other kinds of elements."""

    group: ClassVar = "names"
    words: ClassVar = ("prefix",)
    examples: ClassVar = ('{"edit": "prefix", "prefix": "encoder/"}',)

    prefix: Annotated[str, about("The prefix.", min_length=1)]
    kinds: Annotated[
        tuple[Literal["tensor", "node", "input", "output", "dim"], ...],
        about("The kinds of names; tensors are those that are neither inputs nor outputs.", min_length=1),
    ] = ("tensor", "node")

    def change(self, workspace: Workspace) -> Outcome:
        count = 0
        wanted: list[str] = [kind for kind in ("tensor", "input", "output") if kind in self.kinds]
        if wanted:
            count += _prefix_values(workspace, self.prefix, wanted)
        if "node" in self.kinds:
            every = NameRule(None, lambda name: self.prefix + name)
            count += _rename_nodes(workspace, every, None, must=False)
        if "dim" in self.kinds and dimension_names(workspace.model):
            every = NameRule(None, lambda name: self.prefix + name if name.isidentifier() else name)
            count += _rename_dimensions(workspace, every)
        return Outcome(count)


def _rename_values(workspace: Workspace, change: NameRule, kind: str, within: str | None, *, must: bool = True) -> int:
    index = workspace.index
    scopes = index.scopes if within is None else [workspace.scope(within)]
    candidates: dict[Scope, dict[str, None]] = {}
    for scope in scopes:
        if (
            kind == "tensor"
            and change.names is not None
            and all([any([each.defines(name) for each in scopes]) for name in change.names])
        ):
            candidates[scope] = dict.fromkeys([name for name in change.names if scope.defines(name)])
        elif kind == "tensor":
            candidates[scope] = scope.defined_names
        elif scope.kind == "main" or within is not None:
            found = scope.inputs if kind == "input" else [name for name in scope.output_names if name]
            candidates[scope] = dict.fromkeys(found)
    names = {scope: mapping for scope, known in candidates.items() if (mapping := change.new_names(known))}
    if must:
        change.require_all([name for mapping in names.values() for name in mapping], candidates.values(), kind)
    return _renamed_values(workspace, names)


def _prefix_values(workspace: Workspace, prefix: str, kinds: list[str]) -> int:
    main = workspace.main
    of_main = dict.fromkeys(main.output_names, "output")
    of_main |= dict.fromkeys(main.inputs.keys() - main.initializers.keys(), "input")
    names: dict[Scope, dict[str, str]] = {}
    for scope in workspace.index.scopes:
        if scope.root is main:
            its = of_main if scope is main else {}
            names[scope] = {name: prefix + name for name in scope.defined_names if its.get(name, "tensor") in kinds}
    return _renamed_values(workspace, names)


def _renamed_values(workspace: Workspace, names: Mapping[Scope, Mapping[str, str]]) -> int:
    refuse_collisions(workspace.index, names)
    workspace.replace_equivalent(renamed(workspace.index, names))
    return sum(map(len, names.values()))


def _rename_nodes(workspace: Workspace, change: NameRule, within: str | None, *, must: bool = True) -> int:
    scopes = workspace.index.scopes if within is None else [workspace.scope(within)]
    known = {scope: {node.name: None for node in scope.graph.node if node.name} for scope in scopes}
    names = {scope: change.new_names(found) for scope, found in known.items()}
    if must:
        change.require_all([name for mapping in names.values() for name in mapping], known.values(), "node")
    _refuse_equal([(known[scope], mapping) for scope, mapping in names.items()])
    changes: dict[Scope, dict[int, NodeChange]] = {
        scope: {
            position: replace(node, name=mapping[node.name])
            for position, node in enumerate(scope.graph.node)
            if node.name in mapping
        }
        for scope, mapping in names.items()
    }
    workspace.replace_nodes_in(changes)
    return sum(map(len, changes.values()))


def _refuse_equal(renamings: Iterable[tuple[Iterable[str], Mapping[str, str]]]) -> None:
    """Raise if two of some names would become equal, or empty; given with the new names of some of them."""
    wrong = []
    for names, new in renamings:
        after: dict[str, str] = {}
        for name in names:
            final = new.get(name, name)
            if final in after:
                wrong.append(f'"{visible(after[final])}" and "{visible(name)}" would both be "{visible(final)}"')
            if not final:
                wrong.append(f'"{visible(name)}" would have no name')
            after[final] = name
    if wrong:
        raise collision_error(wrong)


def _rename_dimensions(workspace: Workspace, change: NameRule) -> int:
    model = workspace.model
    known = dimension_names(model)
    new = change.new_names(known)
    if change.names is not None:
        # A name may occur only in expressions.
        new |= {old: to for old, to in change.names.items() if old not in new and _in_expression(old, known)}
    change.require_all(list(new), [known], "dim")
    _refuse_equal([({**known, **dict.fromkeys(new)}, new)])
    workspace.replace_equivalent(with_dimension_names(model, new))
    return len(new)


def _in_expression(name: str, known: dict[str, None]) -> bool:
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return any([pattern.search(text) for text in known])


def _rename_metadata(workspace: Workspace, change: NameRule) -> int:
    model = workspace.model
    known = {each.key: None for entries in _metadata(model) for each in entries if each.key}
    new = change.new_names(known)
    change.require_all(list(new), [known], "metadata")
    wrong: dict[str, None] = {}
    count = 0
    for entries in _metadata(model):
        keys = [each.key for each in entries]
        final = [new.get(key, key) if key is not None else None for key in keys]
        count += sum([key in new for key in keys if key is not None])
        if len(set(final)) < len(set(keys)):
            doubled = next(key for key in final if key is not None and final.count(key) > 1)
            wrong[f'two keys of one element would both be "{visible(doubled)}"'] = None
    if wrong:
        raise collision_error(list(wrong))
    workspace.replace_equivalent(_with_keys(model, new))
    return count


def _metadata(model: Model) -> Iterator[tuple[StringStringEntry, ...]]:
    """Yield the metadata of all elements that have some."""
    for kind in _WITH_METADATA:
        for record in walk(model, kind):
            if entries := getattr(record, "metadata_props", ()):
                yield entries


def _with_keys(model: Model, new: dict[str, str]) -> Model:
    def change(record: Record) -> Record:
        entries: tuple[StringStringEntry, ...] = getattr(record, "metadata_props", ())
        if not any([each.key in new for each in entries]):
            return record
        renamed_entries = [replace(each, key=new[each.key]) if each.key in new else each for each in entries]
        return replace(record, metadata_props=tuple(renamed_entries))

    return replace_records(model, _WITH_METADATA, change)


class SetName(Edit, frozen=True, kw_only=True, eq=False, tag="set-name"):
    """Set the name of one node.

    Use it for a node that has no name, or has the same name as another node; `rename` changes all occurrences of a
    name. No other node of the graph may have the new name.
    """

    group: ClassVar = "names"
    words: ClassVar = ("node", "name")
    examples: ClassVar = (
        '{"edit": "set-name", "node": "output:logits", "name": "head"}',
        '{"edit": "set-name", "node": "@/graph/node/3", "name": "pool"}',
    )

    node: Annotated[str, Role("node"), about("The node: a name or a selector.")]
    name: Annotated[str, about('The new name; "" removes it.')]

    def change(self, workspace: Workspace) -> Outcome:
        ref = workspace.one(self.node)
        if (ref.node.name or "") == self.name:
            stated = f'is already called "{visible(self.name)}"' if self.name else "already has no name"
            return Outcome(1, (f"{ref.address} {stated}",))
        if self.name:
            for other in workspace.index.nodes_with("name", self.name):
                if other.scope is ref.scope:
                    both = f"{other.address} and {ref.address}"
                    raise collision_error([f'{both} would both be "{visible(self.name)}"'])
        workspace.replace_node(ref, replace(ref.node, name=self.name or None))
        return Outcome(1)
