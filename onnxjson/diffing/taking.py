"""Take single changes of a diff: one model with some changes of the other, in its own names, and always consistent."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from onnxjson.diffing.changes import Place
from onnxjson.diffing.difference import Diff
from onnxjson.model.addresses import resolve
from onnxjson.model.dataflow import sort_nodes
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Model, Node
from onnxjson.model.errors import EditError, Finding
from onnxjson.model.index import Index, Scope
from onnxjson.model.operator_checks import check_model
from onnxjson.model.renaming import free_name, refuse_collisions, renamed
from onnxjson.model.walking import Body, rebuild
from onnxjson.patching.applying import apply_fields, difference
from onnxjson.patching.changes import Unit
from onnxjson.patching.listing import selected, units

_ELEMENT: Final = re.compile(r".*/(?:node|initializer|sparse_initializer|input|output|value_info)/[0-9]+")
"""The address of the innermost node, value or constant."""

_OPPOSITE: Final = {"add": "remove", "remove": "add"}
_SHOWN: Final = 3


class Taking:
    """The changes of a diff, each of which can be taken into one of its models from the other.

    Values that correspond have the names of the model that takes; new ones whose names are used get other names. Names
    of inputs and outputs of the model stay. So a change is taken without the new names of everything around it, which
    are a change of their own.

    Attributes:
        model: the model that takes.
        diff: the diff.
    """

    def __init__(self, diff: Diff, into: int) -> None:
        """Prepare to take changes into the base (0) or the target (1) of a diff."""
        self.diff, self._into = diff, into
        alignment = diff.alignment
        sides = alignment.base, alignment.target
        self._index, other = sides[into], sides[1 - into]
        self.model = self._index.model
        kept = _interface(diff.base) & _interface(diff.target)
        self._values = list(self._value_pairs(kept))
        self._other = Index(renamed(other, self._names(other, kept)))
        nodes = {}
        for pair in alignment.graphs:
            matches = pair.base_of if into else pair.target_of
            scope = (pair.base, pair.target)[into]
            nodes[f"{scope.address}/node"] = [(position, place) for position, place in enumerate(matches) if place >= 0]
        self._fields = difference(self.model, self._other.model, "", nodes)

    def _value_pairs(self, kept: set[str]) -> Iterator[tuple[Scope, Scope, dict[str, str]]]:
        """Yield the pairs of graphs, that of `model` first, with names of the other one -> names of their values."""
        more: dict[int, list[tuple[str, str]]] = {}
        for region in self.diff.regions.values():
            more.setdefault(id(region.pair), []).extend(region.outputs)
        for pair in self.diff.alignment.graphs:
            values, used = dict(pair.values), set(pair.values.values())
            for old, new in (*pair.cuts.items(), *more.get(id(pair), ())):
                if old not in values and new not in used:
                    values[old] = new
                    used.add(new)
            is_main = pair.base.kind == "main"
            names = [each for each in values.items() if each[0] == each[1] or not is_main or kept.isdisjoint(each)]
            if self._into:
                yield pair.target, pair.base, dict(names)
            else:
                yield pair.base, pair.target, {new: old for old, new in names}

    def _names(self, other: Index, kept: set[str]) -> dict[Scope, dict[str, str]]:
        taken = {name for scope in self._index.scopes for name in scope.defined_names}
        used = taken.union(*[scope.defined_names for scope in other.scopes])
        known = {scope: values for _, scope, values in self._values}
        names: dict[Scope, dict[str, str]] = {}
        for scope in other.scopes:
            for name in scope.defined_names:
                new = known.get(scope, {}).get(name)
                if new is None and name in taken and name not in kept:
                    new = free_name(name, used.__contains__)
                    used.add(new)
                if new is not None and new != name:
                    names.setdefault(scope, {})[name] = new
        return names

    @cached_property
    def places(self) -> dict[Unit, Place]:
        """The change of each unit of the difference, which has the names of `model`."""
        by_unit = {}
        for unit in units(self._fields):
            turned = Unit(_OPPOSITE.get(unit.kind, unit.kind), unit.target, unit.base) if self._into else unit  # type: ignore[arg-type]
            place = self.diff.place_of(turned)
            if place is not None:
                by_unit[unit] = place
        return by_unit

    @cached_property
    def elements(self) -> tuple[dict[str, set[Place]], dict[str, set[Place]]]:
        """The changes of nodes, values and constants by address: in `model`, and in the other model."""
        by_address: tuple[dict[str, set[Place]], dict[str, set[Place]]] = ({}, {})
        for unit, place in self.places.items():
            for side, address in enumerate((unit.base, unit.target)):
                element = None if address is None else _ELEMENT.match(address)
                if element is not None:
                    by_address[side].setdefault(element[0], set()).add(place)
        return by_address

    def take(self, chosen: Collection[Place]) -> tuple[Model, frozenset[Place]]:
        """Return `model` with some changes, and all that were taken, since a change can need others.

        Raises:
            EditError: they cannot be taken without the rest, or names would collide.
        """
        wanted = set(chosen)
        known = Counter([finding.code for finding in check_model(self.model)])
        undefined = {*_missing(self._index)}
        while True:
            fields = selected(self._fields, {unit for unit, place in self.places.items() if place in wanted})
            index = Index(self.model if fields is None else apply_fields(self.model, fields))
            missing = {*_missing(index)} - undefined
            if missing:
                more = {place for scope, name in missing for place in self._needed(scope, name)} - wanted
                names = [f'"{visible(name)}"' for _, name in sorted(missing)]
                problem = f"{listed(names, _SHOWN, ', ')} would not be defined"
            else:
                model = self._with_new_names(rebuild(index, _in_order), wanted)
                findings = check_model(model)
                new = Counter([finding.code for finding in findings]) - known
                if not new:
                    return model, frozenset(wanted)
                wrong = [finding for finding in findings if finding.code in new]
                more = set(self._correcting(model, wrong)) - wanted
                problem = wrong[0].message
            if not more:
                raise EditError(f"this change cannot be taken alone: {problem}")
            wanted |= more

    def _correcting(self, model: Model, wrong: Sequence[Finding]) -> Iterator[Place]:
        """Yield the changes of the operator set, and of the nodes that are wrong without them."""
        for number, event in enumerate(self.diff.events):
            if event.kind == "opset-changed":
                yield from ((number, member) for member in range(len(event.members)))
        for element in filter(None, [_ELEMENT.match(each.address) for each in wrong]):
            graph, node = element[0].rpartition("/node/")[0], resolve(model, element[0])
            scope = self._index.by_address.get(graph)
            if isinstance(node, Node) and scope is not None:
                for name in scope.producers.keys() & set(node.output):
                    yield from self.elements[0].get(f"{graph}/node/{scope.producers[name][0]}", ())

    def _needed(self, address: str, name: str) -> Iterator[Place]:
        """Yield the changes that define a value, or that let its consumers use another one."""
        elements, other_elements = self.elements
        for scope in self._other.scopes:
            if scope.defines(name):
                yield from other_elements.get(_definer(scope, name), ())
        before = self._index.by_address.get(address)
        for position, _ in () if before is None else before.uses(name):
            if position is not None:
                yield from elements.get(f"{address}/node/{position}", ())

    def _with_new_names(self, model: Model, wanted: Collection[Place]) -> Model:
        """Rename values as in the other model, in the graphs whose renaming was taken."""
        events = self.diff.events
        renamings = [events[event].members[place] for event, place in wanted if events[event].kind == "renamed"]
        graphs = {address for each in renamings for address in (each.base, each.target)[self._into]}
        if not graphs:
            return model
        index = Index(model)
        names = {}
        for scope, _, values in self._values:
            now = index.by_address.get(scope.address)
            if scope.address in graphs and now is not None:
                names[now] = {old: new for new, old in values.items() if old != new and now.defines(old)}
        refuse_collisions(index, names)
        return renamed(index, names)


def _interface(model: Model) -> set[str]:
    graph = model.graph
    return set() if graph is None else {each.name or "" for each in (*graph.input, *graph.output)}


def _in_order(scope: Scope, graph: Body) -> Body:
    ordered = sort_nodes(graph.node)
    return graph if ordered is None or ordered is graph.node else replace(graph, node=ordered)


def _definer(scope: Scope, name: str) -> str:
    """Return the address of the node, constant or input that defines a value."""
    if name in scope.producers:
        return f"{scope.address}/node/{scope.producers[name][0]}"
    fields = {"initializer": scope.initializers, "sparse_initializer": scope.sparse_initializers, "input": scope.inputs}
    return next(f"{scope.address}/{field}/{places[name]}" for field, places in fields.items() if name in places)


def _missing(index: Index) -> Iterator[tuple[str, str]]:
    """Yield the address of the graph, and the name, of every value that is used and not defined."""
    for scope in index.scopes:
        for name in (*scope.consumers, *scope.output_names):
            if name and index.defining_scope(scope, name) is None:
                yield scope.address, name
