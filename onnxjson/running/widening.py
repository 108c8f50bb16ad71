"""Regions with paired neighbours taken in: a rewrite may be right only for what its producers make.

An Abs of an Abs, a Relu of a Softmax, a factor that moved into the next node: taken alone both sides differ, together
with the nodes around them they do not.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from onnxjson.diffing.regions import Region, taken_names
from onnxjson.index import Index, Scope
from onnxjson.matching.alignment import Alignment, GraphPair
from onnxjson.operators import plain_domain
from onnxjson.running.parts import RANDOM

MOST_NODES: Final = 64
"""Of one side; a region does not grow beyond."""

LONGEST: Final = 24
"""Nodes that one input is made of others by."""


class Surroundings:
    """The graphs of two models, and who is whose neighbour there.

    Args:
        alignment: which graph, node and value is which.
        regions: all of them; what one gives is taken for counterparts where another one is looked at.
    """

    def __init__(self, alignment: Alignment, regions: Iterable[Region]) -> None:
        self._alignment = alignment
        self._indices = alignment.base, alignment.target
        self._given: dict[str, dict[tuple[str, str], None]] = {}
        self._regions: dict[tuple[str, int, int], Region] = {}
        for region in regions:
            address = region.pair.base.address
            self._given.setdefault(address, {}).update(dict.fromkeys(region.outputs))
            for side, positions in enumerate((region.base, region.target)):
                self._regions.update({(address, side, position): region for position in positions})
        self._known: dict[str, tuple[dict[str, str], dict[str, str]]] = {}

    def _values(self, pair: GraphPair) -> tuple[dict[str, str], dict[str, str]]:
        """Names of values that a graph sees -> those of their counterparts; of the base, and of the target."""
        address = pair.base.address
        if address not in self._known:
            around = None if pair.base.outer is None else self._alignment.by_base.get(pair.base.outer.address)
            outer = ({}, {}) if around is None else self._values(around)
            forth, back = outer[0] | dict(pair.values), outer[1] | {new: old for old, new in pair.values.items()}
            for old, new in self._given.get(address, ()):
                forth.setdefault(old, new)
                back.setdefault(new, old)
            self._known[address] = forth, back
        return self._known[address]

    def widened(self, region: Region) -> Region | None:
        """The region with the nodes that make its inputs or take its outputs; None where it cannot grow.

        Of paired nodes both are taken in, of others the region that they are in.
        """
        pair = region.pair
        near: list[list[int]] = []
        for side, scope, inside in ((0, pair.base, region.base), (1, pair.target, region.target)):
            near.append(
                [scope.makers[name][0] for each in region.inputs if (name := each[side]) and name in scope.makers]
            )
            made = _made(scope, inside)
            for each in region.outputs:
                if each[side] in made:
                    near[side] += [place for place in self._takers(side, scope, each[side]) if place is not None]
        return self._grown(region, near)

    def settled(self, region: Region) -> Region | None:
        """The region with what makes its inputs of each other, of constants or of shapes; None where nothing does.

        Values made up for such inputs would contradict each other.
        """
        near = []
        for side, scope in enumerate((region.pair.base, region.pair.target)):
            given = {name for each in region.inputs if (name := each[side])}
            near.append([position for name in sorted(given) for position in _derivation(scope, name, given)])
        return self._grown(region, near)

    def _grown(self, region: Region, near: Sequence[Sequence[int]]) -> Region | None:
        """The region with nodes of the base and of the target, and what belongs to these."""
        pair = region.pair
        base, target = set(region.base), set(region.target)
        outputs = dict.fromkeys(region.outputs)
        for side, counterparts in enumerate((pair.target_of, pair.base_of)):
            for position in near[side]:
                if (counterpart := counterparts[position]) >= 0:
                    (base, target)[side].add(position)
                    (target, base)[side].add(counterpart)
                elif (other := self._regions.get((pair.base.address, side, position))) is not None:
                    base.update(other.base)
                    target.update(other.target)
                    outputs.update(dict.fromkeys(other.outputs))
        grown = len(base) > len(region.base) or len(target) > len(region.target)
        if not grown or max(len(base), len(target)) > MOST_NODES:
            return None
        joined = msgspec.structs.replace(region, outputs=tuple(outputs))
        return self._region(joined, sorted(base), sorted(target))

    def _takers(self, side: int, scope: Scope, name: str) -> Iterator[int | None]:
        """The nodes of a graph that take a value, themselves or in a graph of theirs; None for the graph's outputs."""
        for use in self._indices[side].consumers(scope, name):
            within, position = use.scope, use.position
            while within is not scope and (owner := within.owner) is not None:
                within, position = owner.scope, owner.position
            yield position

    def _region(self, region: Region, base: Sequence[int], target: Sequence[int]) -> Region:
        """The region of these nodes, its inputs and outputs found anew."""
        pair = region.pair
        outputs = tuple(dict.fromkeys(self._outputs(region, base, target)))
        known = [each for each in region.inputs if each[0] and each[1]]
        own = dict(known), {new: old for old, new in known}
        values = self._values(pair)
        inputs: dict[tuple[str | None, str | None], None] = {}
        for side, scope, positions, aliases in (
            (0, pair.base, base, pair.base_aliases),
            (1, pair.target, target, pair.target_aliases),
        ):
            made = _made(scope, positions)
            for name in dict.fromkeys((*_taken(scope, positions), *[each[side] for each in outputs])):
                if name not in made and not _is_constant(scope, name):
                    other = own[side].get(name) or values[side].get(name) or values[side].get(aliases.get(name, name))
                    inputs[(name, other) if side == 0 else (other, name)] = None
        return Region(pair, tuple(base), tuple(target), tuple(inputs), outputs, (), ())

    def _outputs(self, region: Region, base: Sequence[int], target: Sequence[int]) -> Iterator[tuple[str, str]]:
        """Pairs of values that are taken outside: of the nodes taken in, and those of the region that still are."""
        pair, inside, its_inside = region.pair, set(base), set(target)
        for old, new in region.outputs:
            if self._taken_outside(pair, old, new, inside, its_inside):
                yield old, new
        for position in base:
            place = pair.target_of[position]
            if place < 0 or position in region.base:
                continue
            outputs = pair.base.graph.node[position].output, pair.target.graph.node[place].output
            for old, new in zip(*outputs, strict=False):
                if not old or not new:
                    continue
                outside = any(each not in inside for each in self._takers(0, pair.base, old))
                if outside or any(each not in its_inside for each in self._takers(1, pair.target, new)):
                    yield old, new

    def _taken_outside(self, pair: GraphPair, old: str, new: str, base: set[int], target: set[int]) -> bool:
        """Whether paired nodes outside, or the graphs' outputs, take these two values for each other."""
        its = set(self._takers(1, pair.target, new))
        for position in self._takers(0, pair.base, old):
            if position is None:
                if None in its:
                    return True
            elif position not in base and (pair.target_of[position] in its or pair.target_of[position] < 0):
                return True
        return False


def _derivation(scope: Scope, name: str, given: Collection[str]) -> list[int]:
    """The nodes that make a value of other `given` ones, of constants and of the shapes of any values; else none."""
    found: dict[int, None] = {}
    pending = [name]
    while pending:
        each = pending.pop()
        if (each != name and each in given) or _is_constant(scope, each):
            continue
        if each in scope.inputs or each not in scope.makers:
            return []
        position = scope.makers[each][0]
        if position in found:
            continue
        found[position] = None
        node = scope.graph.node[position]
        if len(found) > LONGEST or node.op_type in RANDOM:
            return []
        if node.op_type not in {"Shape", "Size"}:
            pending += taken_names(node)
    return list(found)


def _made(scope: Scope, positions: Iterable[int]) -> set[str]:
    return {name for position in positions for name in scope.graph.node[position].output if name}


def _taken(scope: Scope, positions: Iterable[int]) -> list[str]:
    return list(dict.fromkeys(name for place in positions for name in taken_names(scope.graph.node[place])))


def _is_constant(scope: Scope, name: str) -> bool:
    """Whether a value is a constant, or another name for one: such a name is no value to be made up."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        home = Index.home(scope, name)
        if home is None:
            return False
        if home.initializer(name) is not None:
            return True
        if name in home.inputs:
            return False
        node = home.graph.node[home.makers[name][0]]
        if plain_domain(node.domain) != "" or node.op_type not in {"Constant", "Identity"} or not node.input:
            return plain_domain(node.domain) == "" and node.op_type == "Constant"
        name = node.input[0]
    return False
