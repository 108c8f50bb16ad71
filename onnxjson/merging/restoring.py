"""The names that the sides gave, put back into the merged model and into its conflicts."""

from collections.abc import Mapping
from typing import Any, Final

from onnxjson import document as d
from onnxjson.conflicts import Conflict, slot_at, value_at
from onnxjson.edits.rebuilding import Body, rebuilt
from onnxjson.edits.renaming import defined, inside, renamed
from onnxjson.index import Index, NodeRef, Scope
from onnxjson.merging.interface import interface_names
from onnxjson.merging.naming import by_address, free, place_of, scope_around, with_inner_names, with_names
from onnxjson.merging.sides import FunctionKey, Side, with_function_names, with_node_names, written_key
from onnxjson.merging.slots import OURS, THEIRS, Clash, Units
from onnxjson.merging.soundness import Soundness

_MAIN: Final = "/graph"


class Restored:
    """The merged model with its final names.

    Attributes:
        model: the model; of names that both sides changed differently it has those of ours.
        clashes: conflicts about names: their final addresses, which of those stands for all that go only together, and
            what base, ours and theirs have.
    """

    def __init__(self, merged: d.Model, sides: tuple[Side, Side], homes: Soundness, first: int) -> None:
        self._sides = sides
        self._order = (sides[first], sides[1 - first])
        self._homes = homes
        self._fresh = sides[THEIRS].fresh | sides[OURS].fresh
        self.clashes: list[tuple[str, str, tuple[Any, Any, Any]]] = []
        self._interfaces = [
            interface_names(each) for each in (sides[0].alignment.base.model, *[s.original for s in sides])
        ]
        self._index = Index(merged)
        self._scopes = by_address(self._index)
        self._functions = self._function_names(merged)
        self._nodes = self._node_names()
        self._values: dict[Scope, dict[str, str]] = {}
        self._final: dict[Scope, set[str]] = {}
        for scope in self._index.scopes:
            self._name_values(scope)
        model = merged
        if self._nodes or self._functions:
            model = with_function_names(rebuilt(self._index, self._with_nodes), self._functions)
        names = {address: mapping for scope, mapping in self._values.items() if mapping for address in [scope.address]}
        if names:
            index = Index(model)
            model = renamed(index, {scope: names[scope.address] for scope in index.scopes if scope.address in names})
        self.model = model

    def _with_nodes(self, scope: Scope, graph: Body) -> Body:
        return with_node_names(graph, self._nodes.get(scope.address, {}), self._functions)

    def _choice(self, old: Any, mine: Any, its: Any, at: str) -> Any:
        """Of two new names the one to take; both differing is a conflict."""
        if its == old or mine == its:
            return mine
        if mine == old:
            return its
        self.clashes.append((at, at, (old, mine, its)))
        return mine

    def _function_names(self, merged: d.Model) -> dict[FunctionKey, FunctionKey]:
        found: dict[FunctionKey, FunctionKey] = {}
        for position, function in enumerate(merged.functions):
            key = written_key(function)
            mine, its = [side.functions.get(key, key) for side in self._sides]
            parts = zip(("domain", "name", "overload"), key, mine, its, strict=True)
            new = [self._choice(old, one, other, f"/functions/{position}/{part}") for part, old, one, other in parts]
            if tuple(new) != key:
                found[key] = (new[0], new[1], new[2])
        return found

    def _node_names(self) -> dict[str, dict[int, str | None]]:
        found: dict[str, dict[int, str | None]] = {}
        if not any(side.nodes for side in self._sides):
            return found
        for scope in self._index.scopes:
            base, _ = self._homes.home(scope)
            if base is None:
                continue
            for position, node in enumerate(scope.graph.node):
                address, _ = self._homes.node_home(NodeRef(scope, position))
                if address is None:
                    continue
                mine, its = [side.nodes.get(address, node.name) for side in self._sides]
                new = self._choice(node.name, mine, its, f"{scope.address}/node/{position}/name")
                if new != node.name:
                    found.setdefault(scope.address, {})[position] = new
        return found

    def _name_values(self, scope: Scope) -> None:
        """Decide on the names of the values of one graph; those around it are known already."""
        base, _ = self._homes.home(scope)
        here = defined(scope)
        paired = [side.values.get(base or "", {}) for side in self._sides]
        known: dict[str, None] = dict.fromkeys(here)
        known.update(dict.fromkeys(name for names in paired for name in names))
        if base is not None:
            known.update(dict.fromkeys(self._fresh))
        handed_on = self._handed_on(scope, [name for name in here if name not in self._fresh], *paired)
        outer = [self._values[each] for each in scope.chain() if each is not scope]
        wanted: dict[str, str] = {}
        for name in known:
            if name not in here and any([name in names for names in outer]):
                continue  # a value of a graph around this one, which has its name there
            if name in self._fresh:
                wanted[name] = self._fresh[name]
                continue
            mine, its = [names.get(name, name) for names in paired]
            at = f"{scope.address}{place_of(scope, name)}" if name in here else None
            if at is None:
                new = mine if its == name else its
            elif base == _MAIN and (outer_name := self._outer_name(name, mine, its)) is not None:
                new = outer_name
            elif name in handed_on:
                self.clashes.append((at, handed_on[name], (name, mine, its)))
                new = mine
            else:
                new = self._choice(name, mine, its, at)
            # What only conflicts hold makes way for what is here, also where its own name is the one of the base.
            if new != name or at is None:
                wanted[name] = new
        taken = {name for each in scope.chain() if each is not scope for name in self._final[each]}
        taken |= {name for name in here if name not in wanted}
        taken |= {name for each in inside(self._index, scope) for name in defined(each)} if wanted else set()
        mapping: dict[str, str] = {}
        for name in sorted(wanted, key=self._priority(here)):
            mapping[name] = new = free(wanted[name], taken)
            taken.add(new)
        self._values[scope] = mapping
        self._final[scope] = {mapping.get(name, name) for name in here}

    def _outer_name(self, name: str, mine: str, its: str) -> str | None:
        """Of two names of a value the one by which a side makes it an output, and with it known outside the model."""
        base, ours, theirs = self._interfaces
        return None if name in base or (mine in ours) == (its in theirs) else mine if mine in ours else its

    def _handed_on(
        self, scope: Scope, names: list[str], ours: Mapping[str, str], theirs: Mapping[str, str]
    ) -> dict[str, str]:
        """Values whose names are chosen only together: both sides changed that of one, and it is another's elsewhere.

        Args:
            scope: the graph.
            names: what its values are called in the base.
            ours: their names in ours where those are others.
            theirs: and in theirs.

        Returns:
            The names in the base, each with the address that stands for all that belong together.
        """
        mine, its = [{name: side.get(name, name) for name in names} for side in (ours, theirs)]
        waiting = [name for name in names if len({name, mine[name], its[name]}) == 3]
        if not waiting:
            return {}
        clashing = set(waiting)
        # By each name that is wanted: the values that have it where nothing is chosen, or may get it by a choice.
        owners: dict[str, list[str]] = {}
        for name in names:
            one = its[name] if mine[name] == name else mine[name]
            for new in {mine[name], its[name]} if name in clashing else {one}:
                owners.setdefault(new, []).append(name)
        found = Units()
        while waiting:
            name = waiting.pop()
            for other in [each for wanted in (mine[name], its[name]) for each in owners.get(wanted, ())]:
                if other != name and mine[other] != its[other]:
                    found.tie(sorted((name, other)))
                    if other not in clashing:
                        clashing.add(other)
                        waiting.append(other)
        roots = {name: found.root(name) for name in sorted(found.keys)}
        return {name: f"{scope.address}{place_of(scope, root)}" for name, root in roots.items()}

    def _priority(self, here: Mapping[str, None]) -> Any:
        """Values that are there before those that are not, those of the base first, then by the order of the sides."""
        places = {name: place for place, name in enumerate(here)}
        late = self._order[1].fresh.keys() - self._order[0].fresh.keys()

        def priority(name: str) -> tuple[bool, bool, bool, int, str]:
            return (name not in places, name in self._fresh, name in late, places.get(name, 0), name)

        return priority

    def values(self, clash: Clash, at: str) -> tuple[Any, Any, Any]:
        """What a clash is about at an address of the merged model, with final names; ours is what the model has."""
        scope = scope_around(self._scopes, at)
        if scope is not None and scope.address == at:
            scope = scope.outer
        mapping: dict[str, str] = {}
        around: set[str] = set()
        for each in reversed(list(scope.chain()) if scope is not None else []):
            mapping.update(self._values[each])
            around |= self._final[each]
        slot = slot_at(at)
        home = None if "+" in clash.key else clash.key
        base, theirs = [with_inner_names(each, slot, home, self._sides, around) for each in (clash.base, clash.theirs)]
        if mapping or self._functions:
            base, theirs = [with_names(each, slot, mapping, self._functions) for each in (base, theirs)]
        return base, None if clash.ours is None else value_at(self.model, slot), theirs


def conflicts_of(clashes: list[Clash], places: Any, roots: Any, restored: Restored) -> tuple[Conflict, ...]:
    """The clashes as conflicts: by their addresses in the merged model, with final names, numbered in that order."""
    found: list[tuple[list[Any], tuple[int, ...], str, str, tuple[Any, Any, Any]]] = []
    for clash in clashes:
        owner = places.after(clash.owner)
        at = f"{owner}{clash.tail}"
        found.append((natural(at), clash.rank, at, roots(clash.key), restored.values(clash, at)))
    for at, root, (base, _, theirs) in restored.clashes:
        # The model may have the name of ours with a number behind it, where something else is called so.
        found.append((natural(at), (), at, root, (base, value_at(restored.model, slot_at(at)), theirs)))
    found.sort(key=lambda each: each[:3])
    numbers: dict[str, str] = {}
    return tuple(
        [Conflict(numbers.setdefault(root, str(len(numbers) + 1)), at, *values) for _, _, at, root, values in found]
    )


def natural(address: str) -> list[Any]:
    """A key that sorts addresses with numbers as numbers."""
    return [(0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part) for part in address.split("/")]
