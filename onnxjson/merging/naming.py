"""Names of a merged model: the names that the sides chose are restored in the model and in its conflicts.

A conflict has a part of a model without the model around it: `with_names` and `with_inner_names` rename inside it.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from onnxjson.merging.records import Origins
from onnxjson.merging.sides import FunctionKey, Side, interface_names, relabelled, with_node_names, written_key
from onnxjson.merging.slots import OURS, THEIRS, Clash, Units, three_way, wrapped
from onnxjson.model import document as d
from onnxjson.model.addresses import Slot, innermost, slot_at, value_at
from onnxjson.model.addresses import resolve as find_at
from onnxjson.model.index import Index, Scope
from onnxjson.model.renaming import free_name, inside, renamed
from onnxjson.model.walking import Body, rebuild

_VALUES: Final = frozenset(
    [(message, field) for message in (d.Node, d.Function) for field in ("input", "output")]
    + [(d.ValueInfo, "name"), (d.Tensor, "name"), (d.TensorAnnotation, "tensor_name")]
)
"""Fields whose strings are names of values."""


def is_name_of_value(scope: Scope, at: str, name: Any) -> bool:
    """Whether a graph defines the value of a name in the slot at an address."""
    return isinstance(name, str) and scope.defines(name) and scope.address + place_of(scope, name) == at


def place_of(scope: Scope, name: str) -> str:
    """Address, below the graph, of the slot in which a value gets its name."""
    if name in scope.inputs:
        return f"/input/{scope.inputs[name]}" + ("" if isinstance(scope.graph, d.Function) else "/name")
    if name in scope.initializers:
        return f"/initializer/{scope.initializers[name]}/name"
    if name in scope.sparse_initializers:
        return f"/sparse_initializer/{scope.sparse_initializers[name]}/values/name"
    position, slot = scope.producers[name]
    return f"/node/{position}/output/{slot}"


def with_names(value: Any, slot: Slot, names: Mapping[str, str], functions: Mapping[FunctionKey, FunctionKey]) -> Any:
    """Rename values and functions in the value that a side has in a slot."""
    if isinstance(value, tuple):
        return tuple([with_names(each, slot, names, functions) for each in value])
    if isinstance(value, str):
        return names.get(value, value) if (slot.message, slot.name) in _VALUES else value
    wrapper = wrapped(value, slot)
    if wrapper is None:
        return value
    model, place = wrapper
    model = relabelled(model, functions)
    if names:
        index = Index(model)
        # A graph also defines its own names; the model around it is only a wrapper.
        model = renamed(index, {index.by_address.get(place, index.scopes[0]): names})
    return find_at(model, place)


def with_inner_names(
    value: Any, slot: Slot, address: str | None, sides: tuple[Side, Side], around: AbstractSet[str]
) -> Any:
    """Give the nodes, and the values of graphs, inside the value of a slot their merged names.

    Names that the graphs `around` it have must not be used inside; `address` is None for a new value.
    """
    wrapper = wrapped(value, slot)
    if wrapper is None:
        return value
    model, place = wrapper
    bases = sides[0].alignment.base.by_address

    def base_of(scope: Scope) -> Scope | None:
        if address is None:
            return None
        if f"{scope.address}/".startswith(f"{place}/"):
            return bases.get(f"{address}{scope.address[len(place) :]}")
        return bases.get(address.rpartition("/node/")[0]) if isinstance(value, d.Node) else None

    def with_nodes(scope: Scope, graph: Body) -> Body:
        base = base_of(scope)
        if base is None:
            return graph
        node_names: dict[int, str | None] = {}
        for position, node in enumerate(graph.node):
            producer = base.producers.get(node.output[0]) if node.output else None
            if producer is not None:
                at = f"{base.address}/node/{producer[0]}"
                node_names[position] = three_way(node.name, *[side.nodes.get(at, node.name) for side in sides])
        return with_node_names(graph, node_names, {})

    if any(side.nodes for side in sides):
        model = rebuild(Index(model), with_nodes)
    index = Index(model)
    fresh = sides[0].fresh | sides[1].fresh
    names: dict[Scope, dict[str, str]] = {}
    for scope in index.scopes:
        if f"{scope.address}/".startswith(f"{place}/"):
            base = base_of(scope)
            known = [{} if base is None else side.values.get(base.address, {}) for side in sides]
            names[scope] = {}
            for name in scope.defined_names:
                new = fresh.get(name, three_way(name, *[each.get(name, name) for each in known]))
                if (new := free_name(new, around.__contains__)) != name:
                    names[scope][name] = new
    return find_at(renamed(index, names) if any(names.values()) else model, place)


class Restored:
    """Merged model with its final names.

    Attributes:
        model: the model; where both sides chose different names it has those of ours.
        clashes: conflicts about names: the final address, the address that represents all that can only be resolved
            together, and the values of base, ours and theirs.
    """

    def __init__(self, merged: Index, sides: tuple[Side, Side], origins: Origins, first: int) -> None:
        self._sides = sides
        self._order = (sides[first], sides[1 - first])
        self._origins = origins
        self._fresh = sides[THEIRS].fresh | sides[OURS].fresh
        self.clashes: list[tuple[str, str, tuple[Any, Any, Any]]] = []
        self._interfaces = [
            interface_names(each) for each in (sides[0].alignment.base.model, *[s.original for s in sides])
        ]
        self._index = merged
        self._functions = self._function_names(merged.model)
        nodes = self._node_names()
        self._values: dict[Scope, dict[str, str]] = {}
        self._final: dict[Scope, set[str]] = {}
        for scope in self._index.scopes:
            self._name_values(scope)
        model = relabelled(merged.model, self._functions, nodes)
        names = {
            scope.address: changed
            for scope, mapping in self._values.items()
            if (changed := {old: new for old, new in mapping.items() if old != new})
        }
        if names:
            index = Index(model)
            model = renamed(index, {scope: names[scope.address] for scope in index.scopes if scope.address in names})
        self.model = model

    def _choice(self, old: Any, ours: Any, theirs: Any, at: str) -> Any:
        """Choose one of two new names; two different ones are a conflict."""
        if theirs == old or ours == theirs:
            return ours
        if ours == old:
            return theirs
        self.clashes.append((at, at, (old, ours, theirs)))
        return ours

    def _function_names(self, merged: d.Model) -> dict[FunctionKey, FunctionKey]:
        functions: dict[FunctionKey, FunctionKey] = {}
        for position, function in enumerate(merged.functions):
            key = written_key(function)
            ours, theirs = [side.functions.get(key, key) for side in self._sides]
            parts = zip(("domain", "name", "overload"), key, ours, theirs, strict=True)
            new = [self._choice(old, one, other, f"/functions/{position}/{part}") for part, old, one, other in parts]
            if tuple(new) != key:
                functions[key] = (new[0], new[1], new[2])
        return functions

    def _node_names(self) -> dict[str, dict[int, str | None]]:
        names: dict[str, dict[int, str | None]] = {}
        for ref in self._index.node_refs if any(side.nodes for side in self._sides) else ():
            address, _ = self._origins.of_node(ref)
            if address is not None:
                old = ref.node.name
                ours, theirs = [side.nodes.get(address, old) for side in self._sides]
                new = self._choice(old, ours, theirs, f"{ref.address}/name")
                if new != old:
                    names.setdefault(ref.scope.address, {})[ref.position] = new
        return names

    def _name_values(self, scope: Scope) -> None:
        """Choose the names of the values of one graph, after those of the graphs around it."""
        base, _ = self._origins.of_graph(scope)
        defined = scope.defined_names
        paired = [side.values.get(base or "", {}) for side in self._sides]
        changed = {name for names in paired for name, other in names.items() if name != other}
        known = dict.fromkeys(name for name in defined if name in changed or name in self._fresh)
        known.update(dict.fromkeys(name for names in paired for name in names if name not in defined))
        if base is not None:
            known.update(dict.fromkeys(self._fresh))
        exchanged = self._exchanged(scope, defined, *paired) if changed else {}
        outer = [self._values[enclosing] for enclosing in scope.chain() if enclosing is not scope]
        wanted: dict[str, str] = {}
        for name in known:
            if name not in defined and any([name in names for names in outer]):
                continue  # a value of a graph around this one, which has its name there
            if name in self._fresh:
                wanted[name] = self._fresh[name]
                continue
            ours, theirs = [names.get(name, name) for names in paired]
            at = f"{scope.address}{place_of(scope, name)}" if name in defined else None
            if at is None:
                new = ours if theirs == name else theirs
            elif base == "/graph" and (outer_name := self._outer_name(name, ours, theirs)) is not None:
                new = outer_name
            elif name in exchanged:
                self.clashes.append((at, exchanged[name], (name, ours, theirs)))
                new = ours
            else:
                new = self._choice(name, ours, theirs, at)
            # Values of the model take precedence over a value that is only in conflicts, even one with its name of the
            # base.
            if new != name or at is None:
                wanted[name] = new
        taken = {name for enclosing in scope.chain() if enclosing is not scope for name in self._final[enclosing]}
        taken |= {name for name in defined if name not in wanted}
        taken |= {name for inner in inside(self._index, scope) for name in inner.defined_names} if wanted else set()
        mapping: dict[str, str] = {}
        for name in sorted(wanted, key=self._priority(defined)):
            mapping[name] = new = free_name(wanted[name], taken.__contains__)
            taken.add(new)
        self._values[scope] = mapping
        self._final[scope] = {mapping.get(name, name) for name in defined}

    def _outer_name(self, name: str, first: str, second: str) -> str | None:
        """Return the one of two names under which a side makes a value an input or output of the model."""
        base, ours, theirs = self._interfaces
        return None if name in base or (first in ours) == (second in theirs) else first if first in ours else second

    def _exchanged(
        self, scope: Scope, defined: Iterable[str], ours: Mapping[str, str], theirs: Mapping[str, str]
    ) -> dict[str, str]:
        """Find values whose names can only be chosen together: both sides renamed one to the name of another on a side.

        Returns names in the base -> the address that represents all that belong together.
        """
        names = [name for name in defined if name not in self._fresh]
        waiting = [name for name in names if len({name, ours.get(name, name), theirs.get(name, name)}) == 3]
        if not waiting:
            return {}
        our_names, their_names = [{name: side.get(name, name) for name in names} for side in (ours, theirs)]
        clashing = set(waiting)
        # By wanted name: the values that have it without a choice, or may get it by one.
        owners: dict[str, list[str]] = {}
        for name in names:
            one = their_names[name] if our_names[name] == name else our_names[name]
            for new in {our_names[name], their_names[name]} if name in clashing else {one}:
                owners.setdefault(new, []).append(name)
        groups = Units()
        while waiting:
            name = waiting.pop()
            for other in [each for wanted in (our_names[name], their_names[name]) for each in owners.get(wanted, ())]:
                if other != name and our_names[other] != their_names[other]:
                    groups.tie(sorted((name, other)))
                    if other not in clashing:
                        clashing.add(other)
                        waiting.append(other)
        roots = {name: groups.root(name) for name in sorted(groups.keys)}
        return {name: f"{scope.address}{place_of(scope, root)}" for name, root in roots.items()}

    def _priority(self, here: Mapping[str, None]) -> Callable[[str], Any]:
        """Key that sorts values of the model before others, those of the base first, then by the order of the sides."""
        places = {name: place for place, name in enumerate(here)}
        late = self._order[1].fresh.keys() - self._order[0].fresh.keys()
        return lambda name: (name not in places, name in self._fresh, name in late, places.get(name, 0), name)

    def values(self, clash: Clash, at: str) -> tuple[Any, Any, Any]:
        """Return the values of a clash at an address of the merged model, with final names; ours is in the model."""
        scope = innermost(self._index.by_address, at)
        if scope is not None and scope.address == at:
            scope = scope.outer
        mapping: dict[str, str] = {}
        around: set[str] = set()
        for enclosing in reversed(list(scope.chain()) if scope is not None else []):
            mapping.update(self._values[enclosing])
            around |= self._final[enclosing]
        slot = slot_at(at)
        base_key = None if "+" in clash.key else clash.key
        base, theirs = [
            with_inner_names(value, slot, base_key, self._sides, around) for value in (clash.base, clash.theirs)
        ]
        if mapping or self._functions:
            base, theirs = [with_names(value, slot, mapping, self._functions) for value in (base, theirs)]
        ours = None if clash.ours is None else value_at(self.model, slot)
        return base, ours, theirs
