"""Pairs of independent edits of one model, one on each side, and whether a merge has both.

`python -m tests.merging.planting SEEDS MODEL...` counts how pairs of models of exporters merge.
"""

import random
import sys
from collections import Counter
from typing import Final, NamedTuple

from onnxjson.diffing.difference import diff_models
from onnxjson.merging.merge import Merged, merge
from onnxjson.model.document import Model
from onnxjson.model.index import Index
from onnxjson.storage import files
from tests.diffing.edits import EDITS
from tests.diffing.mutations import Mutation, mutated

IGNORED: Final = ("names", "order", "metadata", "docs")


class Pair(NamedTuple):
    """Two edits of one model that are not near each other."""

    base: Model
    ours: Mutation
    theirs: Mutation
    edits: tuple[str, str]


def pair(base: Model, seed: int, *, scramble: bool = True) -> Pair | None:
    """Two edits, those of theirs with all names but those of the interface scrambled; None where they are near."""
    numbers = random.Random(seed)
    mine, its = numbers.choice(list(EDITS)), numbers.choice(list(EDITS))
    ours = mutated(base, [mine], 2 * seed, rename=False, shuffle=False)
    theirs = mutated(base, [its], 2 * seed + 1, rename=False, shuffle=False)
    if (
        not ours.planted
        or not theirs.planted
        or _near(base, ours) & _places(theirs)
        or _near(base, theirs) & _places(ours)
    ):
        return None
    if scramble:
        theirs = mutated(base, [its], 2 * seed + 1, interface=False, shuffle=False)
    return Pair(base, ours, theirs, (mine, its))


def _places(mutation: Mutation) -> set[str]:
    """Addresses in the base of what an edit is about."""
    return {
        address for planted in mutation.planted for each in planted.members for side, address in each if side == "base"
    } | _changed(mutation)


def _changed(mutation: Mutation) -> set[str]:
    """Nodes of the base that are not as they were, but for names."""
    names = set()
    graphs = [{each.address: each.graph for each in Index(model).scopes} for model in (mutation.base, mutation.target)]
    for address, truth in mutation.graphs.items():
        count = len(truth.target_of)
        names |= {f"{address}/node/{number}" for number in range(count) if truth.target_of[number] < 0}
        nodes, others = graphs[0][address].node, graphs[1][truth.target].node
        pairs = [(number, there) for number, there in enumerate(truth.target_of) if there >= 0]
        names |= {f"{address}/node/{number}" for number, there in pairs if nodes[number].input != others[there].input}
    if not mutation.planted:
        return names
    difference = diff_models(mutation.base, mutation.target, ignore=IGNORED)
    for event in difference.events:
        for member in event.members:
            names.update(member.base)
    return names


def _near(base: Model, mutation: Mutation) -> set[str]:
    """The same with all nodes that take or make what those nodes take or make."""
    places = _places(mutation)
    found = set(places)
    for scope in Index(base).scopes:
        names: set[str] = set()
        for position, node in enumerate(scope.graph.node):
            if f"{scope.address}/node/{position}" in places:
                names.update(node.input, node.output)
        names |= _taken_by_new(mutation, scope.address)
        names.discard("")
        for name, position in scope.initializers.items():
            if f"{scope.address}/initializer/{position}" in places:
                names.add(name)
        for position, node in enumerate(scope.graph.node):
            if not names.isdisjoint(node.input) or not names.isdisjoint(node.output):
                found.add(f"{scope.address}/node/{position}")
        found |= {
            f"{scope.address}/initializer/{scope.initializers[name]}" for name in names & scope.initializers.keys()
        }
    return found


def _taken_by_new(mutation: Mutation, address: str) -> set[str]:
    """What nodes of a graph take that were not there."""
    truth = mutation.graphs.get(address)
    graphs = {scope.address: scope.graph for scope in Index(mutation.target).scopes}
    if truth is None or truth.target not in graphs:
        return set()
    nodes = graphs[truth.target].node
    return {name for node, before in zip(nodes, truth.base_of, strict=True) if before < 0 for name in node.input}


def has_both(given: Pair, merged: Merged) -> bool:
    """Whether a merge is clean, and differs from each side by what the other side did and by nothing else."""
    if not merged.is_clean:
        return False
    return _events(given.base, given.theirs.target) == _events(given.ours.target, merged.model) and _events(
        given.base, given.ours.target
    ) == _events(given.theirs.target, merged.model)


def _events(base: Model, target: Model) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """What happened, as counts of operators and of constants that came and went."""
    operators: list[Counter[str]] = []
    constants: list[Counter[str]] = []
    for model in (base, target):
        index = Index(model)
        operators.append(Counter(_said(ref.node) for ref in index.node_refs))
        tensors = [tensor for scope in index.scopes for tensor in getattr(scope.graph, "initializer", ())]
        constants.append(Counter(repr((each.dims, each.data_type, hash(each.raw_data))) for each in tensors))
    kinds: Counter[str] = Counter()
    for event in diff_models(base, target, ignore=IGNORED).events:
        kinds[event.kind] += event.count
    return operators[1] - operators[0], constants[1] - constants[0], kinds


def _said(node: object) -> str:
    from onnxjson.model.document import Node

    assert isinstance(node, Node)
    plain = [(each.name, each.i, each.f, each.s, each.ints, each.floats) for each in node.attribute]
    return repr((node.op_type, plain))


def main(seeds: int, paths: list[str]) -> None:
    """Merge pairs, and say how many have both edits."""
    for path in paths:
        base = files.load(path).model
        found: Counter[str] = Counter()
        for seed in range(seeds):
            given = pair(base, seed)
            if given is None:
                found["near each other"] += 1
                continue
            merged = merge(given.base, given.ours.target, given.theirs.target)
            right = has_both(given, merged)
            found["both" if right else "other" if merged.is_clean else "conflicts"] += 1
            if not right:
                print(path, seed, given.edits, [each.at for each in merged.conflicts])
        print(path, dict(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
