"""Sides of a merge with the names of the base, so that equal names have the same meaning in all three models.

Values, initializers, nodes and functions that have a counterpart in the base get its name. New ones whose names are
taken get fresh names. `onnxjson.merging.naming` restores the names in the result.
`Defects` are what is wrong in a model already, so that a merge is not blamed for it.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

import msgspec

from onnxjson.diffing.matching.alignment import Alignment, align_by_names
from onnxjson.merging.pairing import GraphMatch, graph_matches
from onnxjson.model.constants import type_of_constant
from onnxjson.model.dataflow import consumed_names, node_order
from onnxjson.model.document import Function, Graph, Model, Node, Record
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import OperatorKey, operator_key, plain_domain
from onnxjson.model.renaming import renamed
from onnxjson.model.types import contradict
from onnxjson.model.walking import Body, rebuild
from onnxjson.patching.applying import difference
from onnxjson.patching.changes import Fields
from onnxjson.patching.patch import Patch
from onnxjson.patching.patch_text import PatchWriter

_MARK: Final = "\x01"
"""Suffix for a new value whose name is taken in the base; no exporter writes such names."""

_MARKS: Final = ("\x02", "\x03")
"""Suffixes, by side, for new values to which both sides give one name."""

FunctionKey = tuple[str | None, str | None, str | None]
"""Domain, name and overload of a function, as the record has them."""


class Defects:
    """Defects of a model.

    Attributes:
        undefined: names that are consumed and not defined -> the first graph with this defect, and the name.
        duplicates: the same for names that are defined twice in a graph.
        disputed: the same for names whose declared types contradict each other.
        cycles: graphs with the positions of the nodes that have no topological order.
    """

    def __init__(self, index: Index) -> None:
        self.undefined: dict[str, tuple[Scope, str]] = {}
        self.duplicates: dict[str, tuple[Scope, str]] = {}
        self.disputed: dict[str, tuple[Scope, str]] = {}
        self.cycles: list[tuple[Scope, list[int]]] = []
        for scope in index.scopes:
            others = [name for name in scope.consumers if name not in scope.producers]
            missing = [name for name in others if index.defining_scope(scope, name) is None]
            defects = (
                (self.undefined, missing),
                (self.duplicates, _duplicates(scope)),
                (self.disputed, _disputed(scope)),
            )
            for found, names in defects:
                for name in names:
                    found.setdefault(name, (scope, name))
            if cycle := sorted(set(range(len(scope.graph.node))).difference(node_order(scope.graph.node))):
                self.cycles.append((scope, cycle))


def _duplicates(scope: Scope) -> Iterator[str]:
    graph = scope.graph
    inputs: list[str | None] = list(graph.input) if isinstance(graph, Function) else [x.name for x in graph.input]
    constants: list[str | None] = []
    if isinstance(graph, Graph):
        constants += [each.name for each in graph.initializer]
        constants += [each.values.name for each in graph.sparse_initializer if each.values]
    for names in (constants, inputs):
        if len(set(names)) < len(names):
            yield from [name for name, count in Counter(names).items() if name and count > 1]
    seen = {*constants, *inputs}
    for node in graph.node:
        for name in node.output:
            if name and name in seen:
                yield name
            seen.add(name)


def _disputed(scope: Scope) -> Iterator[str]:
    graph = scope.graph
    if isinstance(graph, Function):
        return
    known = {tensor.name: type_of_constant(tensor) for tensor in graph.initializer}
    for info in (*graph.input, *graph.output, *graph.value_info):
        if not info.name or info.type is None or info.type.tensor_type is None:
            continue
        if contradict(known.setdefault(info.name, info.type), info.type):
            yield info.name


class Side:
    """One side of a merge.

    Attributes:
        original: the model.
        model: the same model with the names of the base.
        alignment: the pairs of the base with `original`.
        matches: the pairs as corrected for this merge.
        values: address of a graph of the base -> names of its paired values -> their names on this side.
        nodes: address of a node of the base -> its name on this side, where that differs.
        functions: functions of the base -> their names on this side, where these differ.
        fresh: names that only `model` has -> the names that they represent.
        changes: the changes from the base to `model`.
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
        index = self.alignment.target
        self.model = _with_plain_nodes(self, renamed(index, self._names(index)))
        self.changes = self._difference()

    def _difference(self) -> Fields | None:
        pairs: dict[str, Sequence[tuple[int, int]]] = {
            f"{pair.base.address}/node": [
                (position, place) for position, place in enumerate(pair.target_of) if place >= 0
            ]
            for pair in self.matches
        }
        if (outputs := self._outputs()) is not None:
            pairs["/graph/output"] = outputs
        return difference(self._base, self.model, "", pairs)

    def _outputs(self) -> list[tuple[int, int]] | None:
        """Pairs of the outputs of the main graph; None if the names of their values lead to the same pairs.

        An output is known outside the model by its name: if another value now has that name, it is still the same
        output, but returns another value.
        """
        graphs = self._base.graph, self.original.graph, self.model.graph
        base, original, plain = [[] if graph is None else [info.name for info in graph.output] for graph in graphs]
        if original == plain or any(len(set(names)) < len(names) for names in (base, original, plain)):
            return None
        places = {name: place for place, name in enumerate(base)}
        pairs = {places[name]: place for place, name in enumerate(original) if name in places}
        used = frozenset(pairs.values())
        left = {name: place for place, name in enumerate(plain) if place not in used}
        for place, name in enumerate(base):
            if place not in pairs and name in left:
                pairs[place] = left[name]
        return sorted(pairs.items())

    @cached_property
    def defects(self) -> Defects:
        """Defects of `model`; read it only after the last `rename`."""
        return Defects(self._index())

    def _index(self) -> Index:
        known = self.alignment.target
        return known if self.model is known.model else Index(self.model)

    def digest(self) -> bytes:
        """Digest of the change: equal for equal changes, whichever side makes them."""
        found = hashlib.sha256()
        PatchWriter(found.update, _Everything()).patch(Patch(self.changes))
        return found.digest()

    @cached_property
    def _taken(self) -> set[str]:
        return {name for scope in self.alignment.base.scopes for name in scope.defined_names}

    def _names(self, index: Index) -> dict[Scope, dict[str, str]]:
        names: dict[Scope, dict[str, str]] = {}
        back = {match.target.address: match for match in self.matches}
        for scope in index.scopes:
            pair = back.get(scope.address)
            known = {} if pair is None else pair.names
            mapping: dict[str, str] = {}
            for name in [each for each in scope.defined_names if known.get(each) != each]:
                new = known.get(name)
                if new is None and name in self._taken:
                    new = f"{name}{_MARK}"
                    self.fresh[new] = name
                if new is not None:
                    mapping[name] = new
            if mapping:
                names[scope] = mapping
        return names

    def new_values(self) -> dict[str, dict[str, Any]]:
        """Return, by address of a graph of the base, names in `model` without a counterpart there -> their definers."""
        by_address: dict[str, dict[str, Any]] = {}
        scopes = self._index().by_address
        for pair in self.matches:
            scope = scopes.get(pair.target.address)
            names = [] if scope is None else [name for name in scope.defined_names if name not in pair.values]
            if scope is not None:
                by_address[pair.base.address] = {name: _definer(scope, name, pair) for name in names}
        return by_address

    def grown_graphs(self) -> Iterator[tuple[GraphMatch, Scope]]:
        """Yield the graphs of the base that have new nodes on this side, with their counterparts in `model`."""
        grown = [match for match in self.matches if min(match.base_of, default=0) < 0]
        scopes = self._index().by_address if grown else {}
        for match in grown:
            if match.target.address in scopes:
                yield match, scopes[match.target.address]

    def rename(self, names: Mapping[str, Mapping[str, str]]) -> None:
        """Rename new values: by address of a graph of the base, names in `model` -> fresh names."""
        index = self._index()
        scopes = index.by_address
        targets = {match.base.address: match.target.address for match in self.matches}
        wanted: dict[Scope, Mapping[str, str]] = {}
        for address, mapping in names.items():
            if mapping:
                wanted[scopes[targets[address]]] = mapping
                self.fresh.update({new: self.fresh.get(old, old) for old, new in mapping.items()})
        if wanted:
            self.model = renamed(index, wanted)
            self.changes = self._difference()


def _aligned(base: Model, side: Model) -> Alignment:
    known = align_by_names(base, side)
    if known is not None:
        return known
    from onnxjson.diffing.matching.models import align

    return align(base, side)


class _Everything:
    """Set of all payloads, so that none has to be written into a text."""

    def __contains__(self, item: object) -> bool:
        return True


def _definer(scope: Scope, name: str, pair: GraphMatch) -> Any:
    graph = scope.graph
    if (slot := scope.producers.get(name)) is not None:
        position, output = slot
        base = pair.base_of[position]
        return ("node", base, output, graph.node[position] if base < 0 else None)
    declarations: list[Record | None] = []
    if isinstance(graph, Graph):
        declarations = [graph.input[scope.inputs[name]] if name in scope.inputs else None, scope.initializer(name)]
    return ("value", name, *declarations)


def _with_plain_nodes(side: Side, model: Model) -> Model:
    """Return the model with the names that nodes and functions have in the base."""
    functions = _plain_functions(side)
    names: dict[str, dict[int, str | None]] = {}
    for pair in side.matches:
        nodes, target_nodes = pair.base.graph.node, pair.target.graph.node
        for position, place in enumerate(pair.target_of):
            if place < 0 or nodes[position].op_type != target_nodes[place].op_type:
                continue  # a node with another operator is another node and keeps its name
            if nodes[position].name != target_nodes[place].name:
                side.nodes[f"{pair.base.address}/node/{position}"] = target_nodes[place].name
                names.setdefault(pair.target.address, {})[place] = nodes[position].name
    return relabelled(model, functions, names)


def relabelled(
    model: Model,
    functions: Mapping[FunctionKey, FunctionKey],
    nodes: Mapping[str, Mapping[int, str | None]] = MappingProxyType({}),
) -> Model:
    """Return a model with new names of functions, in their calls too, and of nodes by graph address and position."""
    if not functions and not nodes:
        return model
    model = rebuild(Index(model), lambda scope, graph: with_node_names(graph, nodes.get(scope.address, {}), functions))
    changed = list(model.functions)
    for position, each in enumerate(changed):
        if (new := functions.get(written_key(each))) is not None:
            changed[position] = msgspec.structs.replace(each, domain=new[0], name=new[1], overload=new[2])
    return msgspec.structs.replace(model, functions=tuple(changed))


def with_node_names(graph: Body, names: Mapping[int, str | None], functions: Mapping[FunctionKey, FunctionKey]) -> Body:
    """Return a graph with new names of some nodes, by position, and of the functions that nodes call."""
    if not names and not functions:
        return graph
    nodes = list(graph.node)
    for position, name in names.items():
        nodes[position] = msgspec.structs.replace(nodes[position], name=name)
    plain = {_plain_key(key): new for key, new in functions.items()}
    for position, node in enumerate(nodes if plain else ()):
        if (called := plain.get(operator_key(node))) is not None:
            nodes[position] = msgspec.structs.replace(node, domain=called[0], op_type=called[1], overload=called[2])
    return msgspec.structs.replace(graph, node=tuple(nodes))


def written_key(function: Function) -> FunctionKey:
    """Domain, name and overload as the record has them, absent or not; `operators.function_key` compares calls."""
    return function.domain, function.name, function.overload


def _plain_key(key: FunctionKey) -> OperatorKey:
    return plain_domain(key[0]), key[1] or "", key[2] or ""


def _plain_functions(side: Side) -> dict[FunctionKey, FunctionKey]:
    plain: dict[FunctionKey, FunctionKey] = {}
    base, target = side.alignment.base.model, side.alignment.target.model
    called: set[OperatorKey] | None = None
    for position, place in side.alignment.functions:
        key, target_key = written_key(base.functions[position]), written_key(target.functions[place])
        if key == target_key:
            continue
        called = called or {operator_key(ref.node) for ref in side.alignment.target.node_refs}
        if _plain_key(key) not in called:  # else only the record of the function was renamed
            side.functions[key] = target_key
            plain[target_key] = key
    return plain


def part_names(ours: Side, theirs: Side) -> None:
    """Rename different values to which both sides give one name."""
    our_values, their_values = ours.new_values(), theirs.new_values()
    apart: tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]] = ({}, {})
    for address in our_values.keys() & their_values.keys():
        common = sorted(our_values[address].keys() & their_values[address].keys())
        differing = {name for name in common if our_values[address][name] != their_values[address][name]}
        while more := {
            name for name in common if name not in differing and _consumes(our_values[address][name], differing)
        }:
            differing |= more
        differing -= {
            name for name in differing if _is_interface(ours, address, name) and _is_interface(theirs, address, name)
        }
        for names, mark in zip(apart, _MARKS, strict=True):
            names[address] = {name: f"{name}{mark}" for name in sorted(differing)}
    ours.rename(apart[0])
    theirs.rename(apart[1])


def _consumes(definer: Any, names: set[str]) -> bool:
    node = definer[-1]
    return isinstance(node, Node) and not names.isdisjoint(consumed_names(node))


def _is_interface(side: Side, address: str, name: str) -> bool:
    """Whether a name is an input or output of the main graph, which other programs know by its name."""
    return address == "/graph" and not interface_names(side.model).isdisjoint((name, side.fresh.get(name, name)))


def interface_names(model: Model | None, *fields: str) -> frozenset[str | None]:
    """Names of the inputs and outputs of the main graph, or of one of these fields."""
    graph = None if model is None else model.graph
    if graph is None:
        return frozenset()
    return frozenset([info.name for field in fields or ("input", "output") for info in getattr(graph, field)])
