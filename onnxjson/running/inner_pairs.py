"""Pairs of values inside two models that should be equal, by structure, with the pairs they are computed from."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from onnxjson.diffing.matching.alignment import GraphPair
from onnxjson.diffing.regions import Region
from onnxjson.model.constants import is_constant_node
from onnxjson.model.dataflow import consumed_names
from onnxjson.model.dtypes import BITS
from onnxjson.model.elements import element_count
from onnxjson.model.index import Scope
from onnxjson.running.value_types import InferredTypes, tensor_type
from onnxjson.running.verification import Trial, Verifier

BATCH_BYTES: Final = 256 << 20
"""Maximum size of the values of one model that are compared together, in bytes."""

BATCH_VALUES: Final = 512
"""Maximum number of values that are compared together."""

_UNKNOWN_BYTES: Final = 4 << 20
"""Assumed size of a value of unknown size."""


class ValuePair(NamedTuple):
    """Two values that should be equal."""

    base: str
    target: str
    sources: tuple[int, ...]
    """Numbers of the nearest pairs that the value in the base is computed from."""
    inside: tuple[int, ...]
    """Positions of the nodes in the base between these and the value; the producer of the value is last."""


class Pairing:
    """Values of two main graphs that should be equal, producers before consumers.

    Args:
        verifier: has the models.
        main: pair of their main graphs.
    """

    def __init__(self, verifier: Verifier, main: GraphPair) -> None:
        self._scope: Scope = main.base
        regions = [region for region in verifier.models.diff.regions.values() if region.pair is main]
        self._values = self._trusted(main, regions)
        for one, other in verifier.models.interface.outputs:
            self._values.setdefault(one, other)

    @staticmethod
    def _trusted(main: GraphPair, regions: Iterable[Region]) -> dict[str, str]:
        """Return the paired outputs of nodes outside of rewrites, and the outputs of rewrites."""
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
            if one in main.base.producers and other in main.target.producers:
                found[one] = other
        return found

    def pairs(self) -> list[ValuePair]:
        """Return the pairs with the pairs they are computed from."""
        found: list[ValuePair] = []
        numbers: dict[str, int] = {}
        reach: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        for position in self._order():
            node = self._scope.graph.node[position]
            sources: set[int] = set()
            inside = {position}
            for name in consumed_names(node):
                if name in numbers:
                    sources.add(numbers[name])
                elif name in self._scope.producers and name not in self._scope.inputs:
                    behind = reach.get(self._scope.producers[name][0])
                    if behind is not None:
                        sources |= behind[0]
                        inside |= behind[1]
            reach[position] = frozenset(sources), frozenset(inside)
            ordered = (*sorted(inside - {position}), position)
            if is_constant_node(node):
                continue
            for name in node.output:
                other = self._values.get(name) if name else None
                if other is not None:
                    numbers[name] = len(found)
                    found.append(ValuePair(name, other, tuple(sorted(sources)), ordered))
        return found

    def _order(self) -> Sequence[int]:
        """Return the positions of the nodes, producers before consumers, without nodes in cycles."""
        scope = self._scope
        waiting: dict[int, set[int]] = {}
        consumers: dict[int, list[int]] = {}
        ready: list[int] = []
        for position, node in enumerate(scope.graph.node):
            producers = {
                scope.producers[name][0]
                for name in consumed_names(node)
                if name in scope.producers and name not in scope.inputs and scope.producers[name][0] != position
            }
            if producers:
                waiting[position] = producers
                for producer in producers:
                    consumers.setdefault(producer, []).append(position)
            else:
                ready.append(position)
        for position in ready:  # grows during the loop
            for consumer in consumers.get(position, ()):
                waiting[consumer].discard(position)
                if not waiting[consumer]:
                    ready.append(consumer)
        return ready


def value_sizes(verifier: Verifier, pairs: Sequence[ValuePair], trial: Trial) -> list[int]:
    """Return the size of each value in bytes, as far as types are known."""
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
    """Yield the numbers of values that are compared together, so that memory stays bounded."""
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
