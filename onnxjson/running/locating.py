"""Find where the results of two models diverge: compare inner values, paired by structure, from inputs to outputs.

If a value differs but all values from which it is computed are equal, the nodes between them cause the difference.
Rounding differs where operators were fused, and grows along the graph. So the search starts at the first value that is
not close, and follows its sources back to the greatest jump of the error.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from onnxjson.diffing.matching.alignment import GraphPair
from onnxjson.diffing.matching.contents import content
from onnxjson.model.constants import find_constant, is_constant_node
from onnxjson.model.dataflow import consumed_names, producers_among, topological_order
from onnxjson.model.display import visible
from onnxjson.model.document import Node, Tensor
from onnxjson.model.dtypes import BITS
from onnxjson.model.elements import element_count
from onnxjson.model.index import NodeRef, Scope
from onnxjson.model.operators import plain_domain
from onnxjson.outline.places import lines_of
from onnxjson.running.comparisons import Comparison, error_share
from onnxjson.running.inferred_types import InferredTypes
from onnxjson.running.tasks import Compared, Failed, Refused
from onnxjson.running.value_types import tensor_type
from onnxjson.running.verdicts import Verification
from onnxjson.running.verification import Trial, Verifier

BATCH_BYTES: Final = 256 << 20
"""Maximum size of the values of one model that are compared together, in bytes."""

BATCH_VALUES: Final = 512

_UNKNOWN_BYTES: Final = 4 << 20

_NOISE: Final = 2.0**-22
"""Relative error below which a difference counts as rounding."""

_MAX_INNER: Final = 24
"""Maximum number of values inside a divergence that are compared, on each side."""

_JUMP: Final = 4.0
"""Factor by which an error must grow faster at another value for that to be its origin."""


class ValuePair(NamedTuple):
    """Two values that should be equal."""

    base: str
    target: str
    sources: tuple[int, ...]
    """Numbers of the nearest pairs that the value in the base is computed from."""
    inside: tuple[int, ...]
    """Positions of the nodes in the base between these and the value; the producer of the value is last."""


def paired_values(verifier: Verifier, main: GraphPair) -> list[ValuePair]:
    """Return the values of two main graphs that should be equal, producers before consumers, with their sources."""
    scope = main.base
    nodes = scope.graph.node
    values = _counterparts(verifier, main)
    pairs: list[ValuePair] = []
    numbers: dict[str, int] = {}
    reach: dict[int, tuple[set[int], set[int]]] = {}
    for position in topological_order(producers_among(nodes)):
        sources, inside = set[int](), {position}
        for name in consumed_names(nodes[position]):
            if name in numbers:
                sources.add(numbers[name])
            elif name in scope.producers and name not in scope.inputs:
                behind = reach.get(scope.producers[name][0], (set(), set()))
                sources |= behind[0]
                inside |= behind[1]
        reach[position] = sources, inside
        if is_constant_node(nodes[position]):
            continue
        for name in filter(values.__contains__, nodes[position].output):
            numbers[name] = len(pairs)
            around = (*sorted(inside - {position}), position)
            pairs.append(ValuePair(name, values[name], tuple(sorted(sources)), around))
    return pairs


def _counterparts(verifier: Verifier, main: GraphPair) -> dict[str, str]:
    """Return the paired outputs of nodes outside of rewrites, of rewrites, and of the models."""
    regions = [region for region in verifier.models.diff.regions.values() if region.pair is main]
    base = {position for region in regions for position in region.base}
    target = {position for region in regions for position in region.target}
    paired = {
        name: main.values[name]
        for position, counterpart in enumerate(main.target_of)
        if counterpart >= 0 and position not in base and counterpart not in target
        for name in main.base.graph.node[position].output
        if name and main.values.get(name)
    }
    outputs = [pair for region in regions for pair in region.outputs]
    paired.update([pair for pair in outputs if pair[0] in main.base.producers and pair[1] in main.target.producers])
    return {**dict(verifier.models.interface.outputs), **paired}


def value_sizes(types: InferredTypes, scope: Scope, names: Iterable[str], dims: Mapping[str, int]) -> list[int]:
    """Return the size of each value in bytes, as far as types are known; `dims` are sizes of open dimensions."""
    value_bytes = []
    for name in names:
        data_type, shape = tensor_type(types.type_of(scope, name), 0, name) or (0, None)
        if shape is None:
            value_bytes.append(_UNKNOWN_BYTES)
            continue
        axes = [str(size[1]) if isinstance(size, tuple) else "" for size in shape]
        sizes = [size if isinstance(size, int) else dims.get(axis, 16) for size, axis in zip(shape, axes, strict=True)]
        value_bytes.append(element_count(sizes) * max(BITS.get(data_type, 64) // 8, 1))
    return value_bytes


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


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes at which the results begin to differ."""

    base: tuple[str, ...]
    """Addresses of the nodes in the base that cause the difference, the most likely one first."""
    target: tuple[str, ...]
    nodes: tuple[str, ...]
    """Operators and names of the nodes in the base; made visible."""
    target_nodes: tuple[str, ...]
    lines: tuple[str, ...] = ()
    """Lines of the outline of the base that have these nodes, made visible; none for a very large model."""
    value: tuple[str, str]
    """Names of the value that differs, in both models."""
    comparison: Comparison
    constants: tuple[tuple[str, str], ...] = ()
    """Constants of these nodes whose elements differ, by their names in both models."""
    lost: tuple[str, ...] = ()
    """If several nodes were replaced: constants that the nodes in the base consume and those in the target do not."""
    before: float = 0.0
    """Greatest relative error of the values from which it is computed."""


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the search."""

    places: tuple[Divergence, ...]
    """First divergences, in the order of the base; empty if all compared values are close."""
    compared: int
    pairs: int
    run: str
    problem: str = ""
    reshaped: str = ""
    """Without places, what computes the first value that has another shape; "" if none has."""
    values: tuple[tuple[str, Comparison], ...] = ()
    """Compared values of the target, producers before consumers."""


def locate(verifier: Verifier, verification: Verification) -> Location:
    """Find the first nodes at which the results of two models differ.

    Raises:
        EvaluationError, WorkerError: the process does not answer.
    """
    number = next((place for place, run in enumerate(verification.runs) if run.verdict == "different"), 0)
    trial = verifier.trials[number]
    main = verifier.models.main
    if main is None:
        return Location(places=(), compared=0, pairs=0, run=trial.name, problem="their graphs have no common nodes")
    pairs = paired_values(verifier, main)
    types = InferredTypes(verifier.models.indices[0], verifier.worker)
    sizes = value_sizes(types, main.base, [each.base for each in pairs], trial.sizes)
    outcome = verifier.compare(
        [trial.feeds], [(each.base, each.target) for each in pairs], batches=list(batches(sizes)), reshaped=True
    )
    compared = {each.pair: each.comparison for each in outcome.all(Compared)}
    failure = outcome.first(Refused) or outcome.first(Failed)
    problem = failure.problem if failure else f"the run {outcome.problem}" if outcome.problem else ""
    unlike = [number for number, each in sorted(compared.items()) if each.problem is not None]
    search = _Search(verifier, main, pairs, compared)
    places = [search.divergence(origin, _found_inside(verifier, search, origin, trial)) for origin in search.origins()]
    reshaped = ""
    if not places and unlike and not problem:
        ref = NodeRef(main.base, pairs[unlike[0]].inside[-1])
        reshaped = f"the first value with another shape is computed by {_describe(ref.node)}  @{ref.address}: "
        reshaped += compared[unlike[0]].problem or ""
    addresses = [address for place in places for address in place.base]
    lines = lines_of(verifier.models.indices[0].model, addresses, infer=True)
    places = [
        msgspec.structs.replace(
            place,
            lines=tuple(dict.fromkeys([visible(lines[each].text, None) for each in place.base if each in lines])),
        )
        for place in places
    ]
    return Location(
        places=tuple(places), compared=len(compared) - (0 if places else len(unlike)), pairs=len(pairs),
        run=trial.name, problem=problem, reshaped=reshaped,
        values=tuple([(pairs[number].target, each) for number, each in sorted(compared.items())]),
    )  # fmt: skip


def _found_inside(verifier: Verifier, search: "_Search", origin: int, trial: Trial) -> set[str]:
    """Return inner values of a divergence that equal any value in the target, regardless of its name."""
    mine, its = search.inner_values(origin)
    pairs = [(one, other) for one in mine for other in its]
    if not pairs:
        return set()
    outcome = verifier.compare([trial.feeds], pairs, reshaped=True)
    return {pairs[each.pair][0] for each in outcome.all(Compared) if each.comparison.close}


class _Search:
    """Search for divergences in the results of comparisons.

    Values that cannot be compared, since they were reshaped or moved, are skipped: values computed from them count as
    computed from their sources.
    """

    def __init__(
        self, verifier: Verifier, main: GraphPair, pairs: Sequence[ValuePair], compared: Mapping[int, Comparison]
    ) -> None:
        self._main = main
        self._regions = [region for region in verifier.models.diff.regions.values() if region.pair is main]
        self._compared = {number: each for number, each in compared.items() if each.problem is None}
        self._pairs: list[ValuePair] = []
        for pair in pairs:
            behind = [self._pairs[each] for each in pair.sources if each not in self._compared]
            direct = [each for each in pair.sources if each in self._compared]
            sources = sorted({*direct, *[each for other in behind for each in other.sources]})
            inside = dict.fromkeys([each for other in behind for each in other.inside])
            self._pairs.append(pair._replace(sources=tuple(sources), inside=(*inside, *pair.inside)))
        self._apart = self._reaching({one for one, _ in verifier.models.interface.outputs})

    def _reaching(self, outputs: set[str]) -> set[int]:
        """Return values that differ and reach an output through values that differ, so that they have an effect."""
        effective, reached = set[int](), set[int]()
        for number, pair in reversed(list(enumerate(self._pairs))):
            compared = self._compared.get(number)
            if compared is not None and not compared.close and (pair.base in outputs or number in reached):
                effective.add(number)
                reached.update(pair.sources)
        return effective

    def origins(self) -> Iterator[int]:
        """Yield the pairs of values at which the results begin to differ, each once."""
        first = [each for each in sorted(self._apart) if not self._apart.intersection(self._pairs[each].sources)]
        yield from dict.fromkeys(map(self._origin, first))

    def _origin(self, number: int) -> int:
        """Return the value at which the error jumps, among a value that differs and its sources."""
        path = [number]
        while True:
            sources = self._pairs[path[-1]].sources
            worst = max(sources, key=lambda each: error_share(self._compared[each]), default=None)
            if worst is None or error_share(self._compared[worst]) <= _NOISE:
                break
            path.append(worst)
        jumps = [error_share(self._compared[each]) / max(self._before(each), _NOISE) for each in path]
        best = 0
        for place, jump in enumerate(jumps):
            if jump > jumps[best] * _JUMP or (math.isinf(jump) and not math.isinf(jumps[best])):
                best = place
        return path[best]

    def _before(self, number: int) -> float:
        sources = [self._compared[each] for each in self._pairs[number].sources]
        return max(map(error_share, sources), default=0.0)

    def inner_values(self, number: int) -> tuple[list[str], list[str]]:
        """Return the outputs of the nodes of a divergence on both sides, except the values that differ."""
        pair = self._pairs[number]
        nodes, its = self._main.base.graph.node, self._main.target.graph.node
        mine = [name for each in pair.inside for name in nodes[each].output if name and name != pair.base]
        other = [name for each in self._in_target(pair) for name in its[each].output if name and name != pair.target]
        return mine[:_MAX_INNER], other[:_MAX_INNER]

    def divergence(self, number: int, known: Collection[str]) -> Divergence:
        """Describe the divergence at a pair; `known` are outputs of its nodes that the target computes too."""
        pair = self._pairs[number]
        scope = self._main.base
        constants = tuple(self._changed_constants(pair))
        target_nodes = self._in_target(pair)
        lost = () if constants or len(pair.inside) == 1 else tuple(self._lost_constants(pair, target_nodes))
        blamed = {one for one, _ in constants} or set(lost)
        nodes = scope.graph.node
        # First the consumers of changed or lost constants, then nodes whose inputs exist in the target while their
        # outputs do not, then nodes without a counterpart.
        right = {name for each in pair.sources for name in nodes[self._pairs[each].inside[-1]].output} | set(known)
        computed = {name for position in pair.inside if self._varies(position) for name in nodes[position].output}
        order = sorted(
            pair.inside,
            key=lambda position: (
                not blamed.intersection(consumed_names(nodes[position])),
                any(name in computed and name not in right for name in consumed_names(nodes[position])),
                bool(right.intersection(nodes[position].output)),
                self._main.target_of[position] >= 0,
                -position,
            ),
        )
        likely = [each for each in order if self._varies(each)] or order
        return Divergence(
            base=tuple([NodeRef(scope, position).address for position in likely]),
            target=tuple([NodeRef(self._main.target, position).address for position in target_nodes]),
            nodes=tuple([_describe(nodes[position]) for position in likely]),
            target_nodes=tuple([_describe(self._main.target.graph.node[position]) for position in target_nodes]),
            value=(pair.base, pair.target),
            comparison=self._compared[number],
            constants=constants,
            lost=lost,
            before=self._before(number),
        )

    def _varies(self, position: int) -> bool:
        """Whether a node computes something other than a constant or a copy of one."""
        node = self._main.base.graph.node[position]
        if node.op_type == "Identity" and plain_domain(node.domain) == "" and node.input:
            return _constant(self._main.base, node.input[0]) is None
        return not is_constant_node(node)

    def _in_target(self, pair: ValuePair) -> list[int]:
        producer = self._main.target.producers.get(pair.target)
        positions = [] if producer is None else [producer[0]]
        for region in self._regions:
            if set(region.base) & set(pair.inside):
                positions += region.target
        positions += [each for each in map(self._main.target_of.__getitem__, pair.inside) if each >= 0]
        return list(dict.fromkeys(positions))

    def _changed_constants(self, pair: ValuePair) -> Iterator[tuple[str, str]]:
        """Yield constants that the nodes consume and whose counterparts have other elements."""
        base, target = self._main.base, self._main.target
        for position in pair.inside:
            for name in consumed_names(base.graph.node[position]):
                other = self._main.values.get(name)
                one, its = _constant(base, name), None if other is None else _constant(target, other)
                if other is not None and one is not None and its is not None and content(one) != content(its):
                    yield name, other

    def _lost_constants(self, pair: ValuePair, target_nodes: Collection[int]) -> Iterator[str]:
        """Yield constants that the nodes consume, unless a replacement in the target consumes equal elements."""
        base, target = self._main.base, self._main.target
        consumed = [name for position in target_nodes for name in consumed_names(target.graph.node[position])]
        taken = [_constant(target, name) for name in consumed]
        known = {content(tensor) for tensor in taken if tensor is not None}
        names = dict.fromkeys([name for position in pair.inside for name in consumed_names(base.graph.node[position])])
        for name in names if known else ():
            tensor = _constant(base, name)
            if tensor is not None and content(tensor) not in known:
                yield name


def _constant(scope: Scope, name: str) -> Tensor | None:
    found = find_constant(scope, name)
    return None if found is None else found.tensor


def _describe(node: Node) -> str:
    name = node.name or next((each for each in node.output if each), "")
    return f"{visible(node.op_type or '?')} {visible(name)}".strip()
