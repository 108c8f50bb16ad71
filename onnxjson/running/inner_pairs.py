"""Values inside two models that are to be the same, by structure, with what each is computed from."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from onnxjson.diffing.regions import Region, taken_names
from onnxjson.document import Node
from onnxjson.elements import BITS, element_count
from onnxjson.index import Scope
from onnxjson.matching.alignment import GraphPair
from onnxjson.operators import plain_domain
from onnxjson.running.dimensions import tensor_type
from onnxjson.running.inferred_types import InferredTypes
from onnxjson.running.verification import Trial, Verifier

BATCH_BYTES: Final = 256 << 20
"""Bytes of the values, of one model, that are compared together."""

BATCH_VALUES: Final = 512
"""Values that are compared together at most."""

_UNKNOWN_BYTES: Final = 4 << 20
"""Of a value whose size nobody knows."""


class Pair(NamedTuple):
    """Two values that are to be the same."""

    base: str
    target: str
    sources: tuple[int, ...]
    """The nearest pairs that the value in the base is computed from."""
    inside: tuple[int, ...]
    """The positions of the nodes between these and the value, in the base; the maker of the value last."""


class Pairing:
    """The values of two main graphs that are to be the same, makers before takers.

    Args:
        verifier: what compares them.
        main: the pair of their main graphs.
    """

    def __init__(self, verifier: Verifier, main: GraphPair) -> None:
        self._scope: Scope = main.base
        regions = [region for region in verifier.models.diff.regions.values() if region.pair is main]
        self._values = self._trusted(main, regions)
        for one, other in verifier.models.interface.outputs:
            self._values.setdefault(one, other)

    @staticmethod
    def _trusted(main: GraphPair, regions: Iterable[Region]) -> dict[str, str]:
        """Pairs of values that nodes make: of nodes that no rewrite took in, and what rewrites give."""
        found: dict[str, str] = {}
        inside: tuple[set[int], set[int]] = (set(), set())
        given: list[tuple[str, str]] = []
        for region in regions:
            inside[0].update(region.base)
            inside[1].update(region.target)
            given += region.outputs
        for position, there in enumerate(main.target_of):
            if there < 0 or position in inside[0] or there in inside[1]:
                continue
            node = main.base.graph.node[position]
            for name in node.output:
                other = main.values.get(name)
                if name and other:
                    found[name] = other
        for one, other in given:
            if one in main.base.makers and other in main.target.makers:
                found[one] = other
        return found

    def pairs(self) -> list[Pair]:
        """The pairs with what they are computed from."""
        found: list[Pair] = []
        numbers: dict[str, int] = {}
        reach: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        for position in self._order():
            node = self._scope.graph.node[position]
            sources: set[int] = set()
            inside = {position}
            for name in taken_names(node):
                if name in numbers:
                    sources.add(numbers[name])
                elif name in self._scope.makers and name not in self._scope.inputs:
                    behind = reach.get(self._scope.makers[name][0])
                    if behind is not None:
                        sources |= behind[0]
                        inside |= behind[1]
            reach[position] = frozenset(sources), frozenset(inside)
            ordered = (*sorted(inside - {position}), position)
            if is_constant(node):
                continue
            for name in node.output:
                other = self._values.get(name) if name else None
                if other is not None:
                    numbers[name] = len(found)
                    found.append(Pair(name, other, tuple(sorted(sources)), ordered))
        return found

    def _order(self) -> Sequence[int]:
        """The positions of the nodes, makers before takers; those in a circle are left out."""
        scope = self._scope
        waiting: dict[int, set[int]] = {}
        takers: dict[int, list[int]] = {}
        ready: list[int] = []
        for position, node in enumerate(scope.graph.node):
            makers = {
                scope.makers[name][0]
                for name in taken_names(node)
                if name in scope.makers and name not in scope.inputs and scope.makers[name][0] != position
            }
            if makers:
                waiting[position] = makers
                for maker in makers:
                    takers.setdefault(maker, []).append(position)
            else:
                ready.append(position)
        for position in ready:  # grows while it is walked
            for taker in takers.get(position, ()):
                waiting[taker].discard(position)
                if not waiting[taker]:
                    ready.append(taker)
        return ready


def is_constant(node: Node) -> bool:
    """Whether a node is a Constant of ONNX."""
    return node.op_type == "Constant" and plain_domain(node.domain) == ""


def value_sizes(verifier: Verifier, pairs: Sequence[Pair], trial: Trial) -> list[int]:
    """Bytes of each value, as far as types say it."""
    index = verifier.models.indices[0]
    types = InferredTypes(index, verifier.worker)
    found = []
    for each in pairs:
        known = tensor_type(types.type_of(index.scopes[0], each.base), 0, each.base)
        if known is None or known[1] is None:
            found.append(_UNKNOWN_BYTES)
            continue
        dims = [
            size if isinstance(size, int) else trial.sizes.get(str(size[1]) if isinstance(size, tuple) else "", 16)
            for size in known[1]
        ]
        found.append(element_count(dims) * max(BITS.get(known[0], 64) // 8, 1))
    return found


def batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """The numbers of values that are compared together, so that memory stays bounded."""
    batch: list[int] = []
    total = 0
    for number, size in enumerate(sizes):
        if batch and (total + size > BATCH_BYTES or len(batch) == BATCH_VALUES):
            yield batch
            batch, total = [], 0
        batch.append(number)
        total += size
    if batch:
        yield batch
