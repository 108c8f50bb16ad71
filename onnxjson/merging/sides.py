"""Renames taken out of both sides of a merge, so that all three models speak of the same things by the same names.

What is a pair with something of the base gets its name there: values, initializers, nodes, functions. What is new and
has a name that something else has already gets one of its own. `onnxjson.merging.restoring` gives the names back.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from onnxjson.document import Function, Graph, Model, Node, Record
from onnxjson.edits.rebuilding import Body, rebuilt
from onnxjson.edits.renaming import defined, renamed
from onnxjson.index import Index, Scope
from onnxjson.matching.alignment import Alignment
from onnxjson.merging.broken import Broken
from onnxjson.merging.by_names import align_by_names
from onnxjson.merging.pairing import GraphMatch, graph_matches
from onnxjson.operators import plain_domain
from onnxjson.patching.changes import Fields
from onnxjson.patching.deriving import Pairs, difference
from onnxjson.patching.patch import Patch
from onnxjson.patching.storing import PatchWriter

_MARK: Final = "\x01"
"""What follows the name of a new value that something of the base has; no exporter writes such names."""

_MARKS: Final = ("\x02", "\x03")
"""The same where the other side gives the name to something new, too; by side."""

FunctionKey = tuple[str | None, str | None, str | None]
"""Domain, name and overload of a function, as the record has them."""


class Side:
    """One side of a merge.

    Attributes:
        original: the model.
        model: the same with names of the base.
        alignment: the pairs of the base with `original`.
        matches: the same as this merge takes them.
        values: by address of a graph of the base: names of values there -> their names on this side, as far as they
            are pairs.
        nodes: by address of a node of the base: its name on this side, where that is another one.
        functions: functions of the base that have another name on this side.
        fresh: names that only `model` has -> the names that they stand for.
        changes: what leads from the base to `model`.
    """

    def __init__(self, base: Model, side: Model) -> None:
        self._base = base
        self.original = side
        self.alignment = _aligned(base, side)
        self.fresh: dict[str, str] = {}
        self.nodes: dict[str, str | None] = {}
        self.functions: dict[FunctionKey, FunctionKey] = {}
        self.matches = graph_matches(self.alignment)
        self.values = {match.base.address: match.values for match in self.matches}
        self._back = {match.target.address: match for match in self.matches}
        self._by_base = {match.base.address: match for match in self.matches}
        index = self.alignment.target
        self.model = _with_plain_nodes(self, renamed(index, self._names(index)))
        self.changes = self._difference()

    def _difference(self) -> Fields | None:
        pairs: dict[str, list[tuple[int, int]]] = {}
        for pair in self.matches:
            pairs[f"{pair.base.address}/node"] = [
                (here, there) for here, there in enumerate(pair.target_of) if there >= 0
            ]
        if (outputs := self._outputs()) is not None:
            pairs["/graph/output"] = outputs
        known: Pairs = pairs
        return difference(self._base, self.model, "", known)

    def _outputs(self) -> list[tuple[int, int]] | None:
        """The outputs of the main graph that are pairs; None where they are by the names of their values, too.

        An output is known by its name outside the model: where another value has got that name, it is still the output
        that was there, and takes something else.
        """
        graphs = self._base.graph, self.original.graph, self.model.graph
        base, its, plain = [[] if each is None else [info.name for info in each.output] for each in graphs]
        if its == plain or any(len(set(names)) < len(names) for names in (base, its, plain)):
            return None
        places = {name: place for place, name in enumerate(base)}
        found = {places[name]: place for place, name in enumerate(its) if name in places}
        used = frozenset(found.values())
        left = {name: place for place, name in enumerate(plain) if place not in used}
        for place, name in enumerate(base):
            if place not in found and name in left:
                found[place] = left[name]
        return sorted(found.items())

    @cached_property
    def broken(self) -> Broken:
        """What is wrong with `model`; asked for when its names are what they stay."""
        return Broken(Index(self.model))

    def digest(self) -> bytes:
        """Stands for the change: equal for equal changes, whichever side makes them."""
        found = hashlib.sha256()
        PatchWriter(found.update, _Everything()).patch(Patch(self.changes))
        return found.digest()

    def _names(self, index: Index) -> dict[Scope, dict[str, str]]:
        """By graph of this side: names -> names of the base, or fresh ones."""
        taken = {name for scope in self.alignment.base.scopes for name in defined(scope)}
        names: dict[Scope, dict[str, str]] = {}
        for scope in index.scopes:
            pair = self._back.get(scope.address)
            known = {} if pair is None else {other: name for name, other in self.values[pair.base.address].items()}
            mapping: dict[str, str] = {}
            for name in defined(scope):
                new = known.get(name)
                if new is None and name in taken:
                    new = f"{name}{_MARK}"
                    self.fresh[new] = name
                if new is not None and new != name:
                    mapping[name] = new
            if mapping:
                names[scope] = mapping
        return names

    def new_values(self) -> dict[str, dict[str, Any]]:
        """By address of a graph of the base: names in `model` that the base does not have there -> who defines them."""
        found: dict[str, dict[str, Any]] = {}
        scopes = {scope.address: scope for scope in Index(self.model).scopes}
        for pair in self.matches:
            scope = scopes.get(pair.target.address)
            if scope is not None:
                known = self.values[pair.base.address]
                found[pair.base.address] = {
                    name: _definer(scope, name, pair) for name in defined(scope) if name not in known
                }
        return found

    def grown_graphs(self) -> Iterator[tuple[GraphMatch, Scope]]:
        """The graphs of the base that have new nodes on this side, and what they are in `model`."""
        grown = [match for match in self.matches if min(match.base_of, default=0) < 0]
        scopes = {scope.address: scope for scope in Index(self.model).scopes} if grown else {}
        for match in grown:
            if match.target.address in scopes:
                yield match, scopes[match.target.address]

    def rename(self, names: Mapping[str, Mapping[str, str]]) -> None:
        """Give new values other names: by address of a graph of the base, names in `model` -> fresh ones."""
        index = Index(self.model)
        scopes = {scope.address: scope for scope in index.scopes}
        wanted: dict[Scope, Mapping[str, str]] = {}
        for address, mapping in names.items():
            if mapping:
                wanted[scopes[self._by_base[address].target.address]] = mapping
                self.fresh.update({new: self.fresh.get(old, old) for old, new in mapping.items()})
        if wanted:
            self.model = renamed(index, wanted)
            self.changes = self._difference()


def _aligned(base: Model, side: Model) -> Alignment:
    known = align_by_names(base, side)
    if known is not None:
        return known
    from onnxjson.matching.aligning import align

    return align(base, side)


class _Everything:
    """Holds whatever is asked for, so that no payload has to stand in a text."""

    def __contains__(self, item: object) -> bool:
        return True


def _definer(scope: Scope, name: str, pair: GraphMatch) -> Any:
    """What defines a value: for a node also whether it is new."""
    graph = scope.graph
    if (slot := scope.makers.get(name)) is not None:
        position, output = slot
        base = pair.base_of[position]
        return ("node", base, output, graph.node[position] if base < 0 else None)
    found: list[Record | None] = []
    if isinstance(graph, Graph):
        found = [graph.input[scope.inputs[name]] if name in scope.inputs else None, scope.initializer(name)]
    return ("value", name, *found)


def _with_plain_nodes(side: Side, model: Model) -> Model:
    """The model with the names of nodes and functions that they have in the base."""
    functions = _plain_functions(side)
    names: dict[str, dict[int, str | None]] = {}
    for pair in side.matches:
        nodes, its = pair.base.graph.node, pair.target.graph.node
        for position, there in enumerate(pair.target_of):
            if there < 0 or nodes[position].op_type != its[there].op_type:
                continue  # what has another operator is another node, which has a name of its own
            if nodes[position].name != its[there].name:
                side.nodes[f"{pair.base.address}/node/{position}"] = its[there].name
                names.setdefault(pair.target.address, {})[there] = nodes[position].name
    if not names and not functions:
        return model

    def change(scope: Scope, graph: Body) -> Body:
        return with_node_names(graph, names.get(scope.address, {}), functions)

    return with_function_names(rebuilt(Index(model), change), functions)


def with_node_names(graph: Body, names: Mapping[int, str | None], functions: Mapping[FunctionKey, FunctionKey]) -> Body:
    """A graph with other names of some nodes, by position, and of the functions that nodes call."""
    if not names and not functions:
        return graph
    nodes = list(graph.node)
    for position, name in names.items():
        nodes[position] = msgspec.structs.replace(nodes[position], name=name)
    if functions:
        plain = {_plain_key(key): new for key, new in functions.items()}
        nodes = [_calling(node, plain) for node in nodes]
    return msgspec.structs.replace(graph, node=tuple(nodes))


def _called(node: Node) -> FunctionKey:
    return _plain_key((node.domain, node.op_type, node.overload))


def _calling(node: Node, functions: Mapping[FunctionKey, FunctionKey]) -> Node:
    new = functions.get(_called(node))
    if new is None:
        return node
    return msgspec.structs.replace(node, domain=new[0], op_type=new[1], overload=new[2])


def with_function_names(model: Model, functions: Mapping[FunctionKey, FunctionKey]) -> Model:
    """A model with other names of its functions; calls stay as they are."""
    if not functions:
        return model
    changed = []
    for each in model.functions:
        new = functions.get(written_key(each))
        changed.append(
            each if new is None else msgspec.structs.replace(each, domain=new[0], name=new[1], overload=new[2])
        )
    return msgspec.structs.replace(model, functions=tuple(changed))


def written_key(function: Function) -> FunctionKey:
    """Domain, name and overload as the record has them, to be given back; `operators.function_key` is for calls."""
    return function.domain, function.name, function.overload


def _plain_key(key: FunctionKey) -> FunctionKey:
    return plain_domain(key[0]), key[1] or "", key[2] or ""


def _plain_functions(side: Side) -> dict[FunctionKey, FunctionKey]:
    """Functions of this side -> what they are called in the base."""
    found: dict[FunctionKey, FunctionKey] = {}
    base, target = side.alignment.base.model, side.alignment.target.model
    called: set[FunctionKey] | None = None
    for here, there in side.alignment.functions:
        mine, its = written_key(base.functions[here]), written_key(target.functions[there])
        if mine == its:
            continue
        if called is None:
            called = {_called(ref.node) for ref in side.alignment.target.node_refs}
        if _plain_key(mine) not in called:  # else only the record of the function has another name
            side.functions[mine] = its
            found[its] = mine
    return found


def part_names(ours: Side, theirs: Side) -> None:
    """Give values that both sides add under one name, and that are not one and the same, names of their own."""
    mine, its = ours.new_values(), theirs.new_values()
    apart: tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]] = ({}, {})
    for address in mine.keys() & its.keys():
        common = sorted(mine[address].keys() & its[address].keys())
        differing = {name for name in common if mine[address][name] != its[address][name]}
        while more := {name for name in common if name not in differing and _takes(mine[address][name], differing)}:
            differing |= more
        differing -= {
            name for name in differing if _is_interface(ours, address, name) and _is_interface(theirs, address, name)
        }
        for names, mark in zip(apart, _MARKS, strict=True):
            names[address] = {name: f"{name}{mark}" for name in sorted(differing)}
    ours.rename(apart[0])
    theirs.rename(apart[1])


def _takes(definer: Any, names: set[str]) -> bool:
    node = definer[-1]
    if not isinstance(node, Node) or not names:
        return False
    from onnxjson.structure import needed_names

    return not names.isdisjoint(needed_names(node))


def _is_interface(side: Side, address: str, name: str) -> bool:
    """Whether a name is one of the main graph's inputs or outputs, which are known by it outside the model."""
    graph = side.model.graph
    if address != "/graph" or graph is None:
        return False
    original = side.fresh.get(name, name)
    return any(each.name in (name, original) for each in (*graph.input, *graph.output))
