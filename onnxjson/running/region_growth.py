"""Grow regions by adjacent nodes: a rewrite may be correct only for the outputs of its producers.

Examples are an Abs of an Abs, a Relu of a Softmax, or a factor that moved into the next node: alone the two sides
differ, together with adjacent nodes they do not.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from onnxjson.diffing.changes import Region
from onnxjson.diffing.matching.alignment import Alignment, GraphPair
from onnxjson.model.constants import RANDOM, find_constant
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.index import Index, Scope
from onnxjson.model.operators import operator_key

MAX_NODES: Final = 64
"""Maximum number of nodes of a region, on each side."""

MAX_DERIVATION: Final = 24
"""Maximum number of nodes that compute one input of a region from others."""


class Surroundings:
    """Adjacent nodes of regions, in the graphs of two models."""

    def __init__(self, alignment: Alignment, regions: Iterable[Region]) -> None:
        self._alignment = alignment
        self._indices = alignment.base, alignment.target
        self._paired_outputs: dict[str, dict[tuple[str, str], None]] = {}
        self._regions: dict[tuple[str, int, int], Region] = {}
        for region in regions:
            address = region.pair.base.address
            self._paired_outputs.setdefault(address, {}).update(dict.fromkeys(region.outputs))
            for side, positions in enumerate((region.base, region.target)):
                self._regions.update({(address, side, position): region for position in positions})
        self._known: dict[str, tuple[dict[str, str], dict[str, str]]] = {}

    def _values(self, pair: GraphPair) -> tuple[dict[str, str], dict[str, str]]:
        """Map the names of all values visible in a graph to their counterparts, for the base and for the target."""
        address = pair.base.address
        if address not in self._known:
            around = None if pair.base.outer is None else self._alignment.by_base.get(pair.base.outer.address)
            outer = ({}, {}) if around is None else self._values(around)
            forth, back = outer[0] | dict(pair.values), outer[1] | {new: old for old, new in pair.values.items()}
            for old, new in self._paired_outputs.get(address, ()):
                forth.setdefault(old, new)
                back.setdefault(new, old)
            self._known[address] = forth, back
        return self._known[address]

    def widen(self, region: Region) -> Region | None:
        """Return the region with the producers of its inputs and the consumers of its outputs; None if it cannot grow.

        Paired nodes are added on both sides, other nodes with the whole region that they are in.
        """
        pair = region.pair
        near: list[list[int]] = []
        for side, scope, inside in ((0, pair.base, region.base), (1, pair.target, region.target)):
            names = [name for each in region.inputs if (name := each[side])]
            near.append([scope.producers[name][0] for name in names if name in scope.producers])
            made = _outputs_of(scope, inside)
            for name in [each[side] for each in region.outputs if each[side] in made]:
                places = self._indices[side].consuming_nodes(scope, name)
                near[side] += [place for place in places if place is not None]
        return self._grow(region, near)

    def include_derivations(self, region: Region) -> Region | None:
        """Return the region with the nodes that derive its inputs from each other, constants or shapes; else None.

        Random values for such inputs would contradict each other.
        """
        near = []
        for side, scope in enumerate((region.pair.base, region.pair.target)):
            given = {name for each in region.inputs if (name := each[side])}
            near.append([position for name in sorted(given) for position in _derivation(scope, name, given)])
        return self._grow(region, near)

    def _grow(self, region: Region, near: Sequence[Sequence[int]]) -> Region | None:
        """Return the region with further nodes of the base and of the target, and their counterparts or regions."""
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
        if not grown or max(len(base), len(target)) > MAX_NODES:
            return None
        joined = msgspec.structs.replace(region, outputs=tuple(outputs))
        return self._region(joined, sorted(base), sorted(target))

    def _region(self, region: Region, base: Sequence[int], target: Sequence[int]) -> Region:
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
            made = _outputs_of(scope, positions)
            consumed = [name for place in positions for name in consumed_names(scope.graph.node[place])]
            for name in dict.fromkeys([*consumed, *[each[side] for each in outputs]]):
                if name not in made and not _is_constant(scope, name):
                    other = own[side].get(name) or values[side].get(name) or values[side].get(aliases.get(name, name))
                    inputs[(name, other) if side == 0 else (other, name)] = None
        return Region(pair, tuple(base), tuple(target), tuple(inputs), outputs, (), ())

    def _outputs(self, region: Region, base: Sequence[int], target: Sequence[int]) -> Iterator[tuple[str, str]]:
        """Yield paired outputs that are consumed outside: of added nodes, and of the region before."""
        pair, inside, its_inside = region.pair, set(base), set(target)
        for old, new in region.outputs:
            if self._consumed_outside(pair, old, new, inside):
                yield old, new
        for position in base:
            place = pair.target_of[position]
            if place < 0 or position in region.base:
                continue
            outputs = pair.base.graph.node[position].output, pair.target.graph.node[place].output
            for old, new in zip(*outputs, strict=False):
                ours = set(self._indices[0].consuming_nodes(pair.base, old)) if old and new else set()
                theirs = set(self._indices[1].consuming_nodes(pair.target, new)) if old and new else set()
                if not ours <= inside or not theirs <= its_inside:
                    yield old, new

    def _consumed_outside(self, pair: GraphPair, old: str, new: str, base: set[int]) -> bool:
        """Whether paired nodes outside, or outputs of the graphs, consume these two values."""
        its = set(self._indices[1].consuming_nodes(pair.target, new))
        for position in self._indices[0].consuming_nodes(pair.base, old):
            if position is None:
                if None in its:
                    return True
            elif position not in base and (pair.target_of[position] in its or pair.target_of[position] < 0):
                return True
        return False


def _derivation(scope: Scope, name: str, given: Collection[str]) -> list[int]:
    """Return the nodes that derive a value from only `given` values, constants and shapes; none if that fails."""
    found: dict[int, None] = {}
    pending = [name]
    while pending:
        each = pending.pop()
        if (each != name and each in given) or _is_constant(scope, each):
            continue
        if each in scope.inputs or each not in scope.producers:
            return []
        position = scope.producers[each][0]
        if position in found:
            continue
        found[position] = None
        node = scope.graph.node[position]
        if len(found) > MAX_DERIVATION or node.op_type in RANDOM:
            return []
        if node.op_type not in {"Shape", "Size"}:
            pending += consumed_names(node)
    return list(found)


def _outputs_of(scope: Scope, positions: Iterable[int]) -> set[str]:
    return {name for position in positions for name in scope.graph.node[position].output if name}


def _is_constant(scope: Scope, name: str) -> bool:
    """Whether a value is a constant or a copy of one, and so must not get random values."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        if find_constant(scope, name) is not None:
            return True
        defining = Index.defining_scope(scope, name)
        producer = None if defining is None else defining.producer(name)
        if producer is None or operator_key(producer.node)[:2] != ("", "Identity") or not producer.node.input:
            return False
        name = producer.node.input[0]
    return False
