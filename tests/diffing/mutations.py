"""Models changed in known ways: which node became which, and what was done where.

`mutated` makes edits, then gives everything other names and another order if asked for; the same arguments give the
same model. Edits keep off nodes whose neighbours are so much like them that nobody could say which of them is new or
gone, so that what an edit did has one best explanation.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from onnxjson.diffing.events import Kind
from onnxjson.diffing.matching.alignment import UNMATCHED
from onnxjson.model.document import Function, Graph, Model
from onnxjson.model.index import Index, Scope
from tests.diffing.edits import EDITS, Done
from tests.diffing.renaming import renamed
from tests.diffing.workbench import Workbench

MOST_TRIES: Final = 3
"""Graphs of a model in which an edit is tried that finds no place."""


class GraphTruth(NamedTuple):
    """Which nodes of one graph became which."""

    base: str
    """Its address before."""
    target: str
    """And after."""
    target_of: Sequence[int]
    """For each node its position after, or `UNMATCHED`."""
    base_of: Sequence[int]
    """The inverse."""
    optional: frozenset[tuple[int, int]]
    """Positions before and after of nodes that were replaced in place: a pair of them is neither right nor wrong."""

    def reversed(self) -> "GraphTruth":
        """The same from the other side."""
        optional = frozenset((after, before) for before, after in self.optional)
        return GraphTruth(self.target, self.base, self.base_of, self.target_of, optional)


Place = tuple[str, str]
"""A side ("base" or "target") and an address."""


class Planted(NamedTuple):
    """An event that a diff should find."""

    edit: str
    kinds: tuple[Kind, ...]
    """Any of these is right."""
    back: tuple[Kind, ...]
    """And of these, on the way back."""
    members: tuple[frozenset[Place], ...]
    """Where it happened; any of these is right."""


class Mutation(NamedTuple):
    """A model, what became of it, and the truth about that."""

    base: Model
    target: Model
    graphs: Mapping[str, GraphTruth]
    """By the address before; all graphs of the model but those of training."""
    planted: tuple[Planted, ...]

    def reversed(self) -> "Mutation":
        """The same from the other side; the kinds of events are those of the way back."""
        graphs = {graph.target: graph.reversed() for graph in self.graphs.values()}
        return Mutation(self.target, self.base, graphs, tuple([_back(each) for each in self.planted]))


def mutated(
    model: Model,
    edits: Sequence[str] = (),
    seed: int = 0,
    *,
    rename: bool = True,
    interface: bool = True,
    shuffle: bool = True,
) -> Mutation:
    """`model` with edits by their names in `EDITS`; one that finds no place in it is left out of `planted`.

    `rename` gives all values, initializers and nodes other names, those of inputs and outputs too unless `interface`
    is False. `shuffle` puts nodes into another valid order, and initializers into any.
    """
    numbers = random.Random(seed)
    benches = _benches(model)
    done: list[tuple[str, Workbench, Done]] = []
    weights = [len(bench.nodes) for bench in benches]
    for name in edits:
        for _ in range(MOST_TRIES):
            (bench,) = numbers.choices(benches, weights)
            result = EDITS[name].make(bench, numbers)
            if result is not None:
                done.append((name, bench, result))
                break
    target = _finished(model, benches, numbers if shuffle else None)
    graphs = {bench.address: _truth(bench, [each for _, at, each in done if at is bench]) for bench in benches}
    planted = tuple([_planted(name, bench, result) for name, bench, result in done])
    return Mutation(model, renamed(target, seed, interface=interface) if rename else target, graphs, planted)


def _benches(model: Model) -> list[Workbench]:
    """All graphs but those of training and of defaults of functions; the outer before the inner."""
    scopes = [scope for scope in Index(model).scopes if scope.kind in ("main", "function") or _has_owner(scope)]
    made: dict[Scope, Workbench] = {}
    for scope in reversed(scopes):
        made[scope] = Workbench(scope, [made[child] for child in scope.children if child in made])
    return [made[scope] for scope in scopes]


def _has_owner(scope: Scope) -> bool:
    while scope.owner is not None:
        scope = scope.owner.scope
    return scope.kind in ("main", "function")


def _finished(model: Model, benches: Sequence[Workbench], shuffle: random.Random | None) -> Model:
    graph = None
    functions: list[Function] = list(model.functions)
    for bench in benches:
        if bench.owner >= 0:
            continue  # finished with the graph around it
        body = bench.finish(bench.address, shuffle)
        if isinstance(body, Graph):
            graph = body
        else:
            functions[int(bench.address.rpartition("/")[2])] = body
    return replace(model, graph=graph, functions=tuple(functions))


def _truth(bench: Workbench, done: Sequence[Done]) -> GraphTruth:
    position = bench.position
    replaced = {number for each in done for number, _ in each.instead}
    target_of = [UNMATCHED if number in replaced else position.get(number, UNMATCHED) for number in range(bench.count)]
    base_of = [UNMATCHED] * len(position)
    for base, target in enumerate(target_of):
        if target != UNMATCHED:
            base_of[target] = base
    optional = frozenset(
        (before, position[after]) for each in done for before, after in each.instead if after in position
    )
    return GraphTruth(bench.address, bench.final_address, target_of, base_of, optional)


def _planted(name: str, bench: Workbench, done: Done) -> Planted:
    before, after = bench.address, bench.final_address
    nodes = {("base", f"{before}/node/{number}") for number in done.base}
    nodes |= {
        ("target", f"{after}/node/{bench.position[number]}") for number in done.target if number in bench.position
    }
    members = [frozenset(nodes)]
    if done.around:
        around = {("base", f"{before}/node/{number}") for number in done.around if number < bench.count}
        around |= {("target", f"{after}/node/{bench.position[number]}") for number in done.around}
        members.append(frozenset(nodes | around))
    if done.twins:
        members.append(frozenset(("target", f"{after}/node/{bench.position[number]}") for number in done.twins))
    if done.tensor is not None:
        old, new = done.tensor
        tensors = {
            ("base", f"{before}/initializer/{old}"),
            ("target", f"{after}/initializer/{bench.tensor_position[new]}"),
        }
        members.append(frozenset(tensors))
        members.append(frozenset(tensors | nodes))
    return Planted(name, EDITS[name].kinds, done.back or EDITS[name].back, tuple(members))


def _back(planted: Planted) -> Planted:
    other = {"base": "target", "target": "base"}
    members = tuple([frozenset((other[side], address) for side, address in each) for each in planted.members])
    return Planted(planted.edit, planted.back, planted.kinds, members)
