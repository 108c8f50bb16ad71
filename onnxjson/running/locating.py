"""Where two models part: values inside both, paired by structure, compared from the inputs to the outputs.

A value is computed from others; where it is apart and none of those is, the nodes between made the difference. Rounding
differs wherever operators were fused, and grows on the way; so from the first value that is not close the search goes
back along the values that it is computed from, to the greatest jump of the error.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from onnxjson.diffing.regions import taken_names
from onnxjson.display import visible
from onnxjson.document import Node, Tensor
from onnxjson.index import NodeRef, Scope
from onnxjson.matching.alignment import GraphPair
from onnxjson.matching.contents import content
from onnxjson.operators import plain_domain
from onnxjson.running.inner_pairs import Pair, Pairing, batches, is_constant, value_sizes
from onnxjson.running.tasks import Compared, Failed, Refused
from onnxjson.running.tolerances import Comparison
from onnxjson.running.value_comparison import error_share
from onnxjson.running.verification import Trial, Verification, Verifier

_NOISE: Final = 2.0**-22
"""Shares of an error below which it is rounding."""

_MOST_INNER: Final = 24
"""Values inside a place that are looked for in the other model, on each side."""

_JUMP: Final = 4.0
"""How much faster an error must grow somewhere else for that to be where it comes from."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the numbers part."""

    base: tuple[str, ...]
    """Addresses of the nodes in the base that made the difference, the likeliest first."""
    target: tuple[str, ...]
    """Those in the target."""
    nodes: tuple[str, ...]
    """The nodes in the base for a person: operator and name; made visible."""
    target_nodes: tuple[str, ...]
    """Those in the target."""
    value: tuple[str, str]
    """The value that is apart, by its names in both."""
    comparison: Comparison
    constants: tuple[tuple[str, str], ...] = ()
    """Constants of these nodes, by their names in both, whose elements differ."""
    lost: tuple[str, ...] = ()
    """Where several nodes became others: constants that the nodes in the base take, and those in the target do not."""
    before: float = 0.0
    """The greatest error, as a share of the values, among those that it is computed from."""


class Location(msgspec.Struct, frozen=True, kw_only=True):
    """What the search found."""

    places: tuple[Place, ...]
    """The first ones, in the order of the base; empty where all values that were compared are close."""
    compared: int
    """How many pairs of values were compared."""
    pairs: int
    """How many there are."""
    run: str
    """On which values."""
    problem: str = ""
    """Why not all of them were compared."""


def locate(verifier: Verifier, found: Verification) -> Location:
    """The first nodes from which two models give different numbers.

    Args:
        verifier: what compared them.
        found: what it found; the first run in which they differ is done again.

    Raises:
        EvaluationError, WorkerError: the process does not answer.
    """
    number = next((place for place, run in enumerate(found.runs) if run.verdict == "different"), 0)
    trial = verifier.trials[number]
    main = verifier.models.main
    if main is None:
        return Location(places=(), compared=0, pairs=0, run=trial.name, problem="their graphs have nothing in common")
    pairs = Pairing(verifier, main).pairs()
    sizes = value_sizes(verifier, pairs, trial)
    outcome = verifier.compare(
        [(trial.feeds[0], trial.feeds[1])],
        [(each.base, each.target) for each in pairs],
        batches=list(batches(sizes)),
        reshaped=True,
    )
    compared = {each.pair: each for each in outcome.reports if isinstance(each, Compared)}
    refused = next((each.problem for each in outcome.reports if isinstance(each, Refused)), "")
    failed = next((each.problem for each in outcome.reports if isinstance(each, Failed)), "")
    search = _Search(verifier, main, pairs, {pair: each.comparison for pair, each in compared.items()})
    return Location(
        places=tuple(
            [search.place(origin, _found_inside(verifier, search, origin, trial)) for origin in search.origins()]
        ),
        compared=len(compared),
        pairs=len(pairs),
        run=trial.name,
        problem=refused or failed or (f"the run {outcome.problem}" if outcome.problem else ""),
    )


def _found_inside(verifier: Verifier, search: "_Search", origin: int, trial: Trial) -> set[str]:
    """Values between the nodes of a place that are somewhere in the target, whatever they are called there."""
    mine, its = search.inner_values(origin)
    pairs = [(one, other) for one in mine for other in its]
    if not pairs:
        return set()
    outcome = verifier.compare([(trial.feeds[0], trial.feeds[1])], pairs, reshaped=True)
    close = [each.pair for each in outcome.reports if isinstance(each, Compared) and each.comparison.close]
    return {pairs[number][0] for number in close}


class _Search:
    """The places in what was compared.

    Values that cannot be compared, since something reshaped or moved them, are passed through: what is computed from
    them counts as computed from what they are computed from.
    """

    def __init__(
        self, verifier: Verifier, main: GraphPair, pairs: Sequence[Pair], compared: Mapping[int, Comparison]
    ) -> None:
        self._main = main
        self._regions = [region for region in verifier.models.diff.regions.values() if region.pair is main]
        self._compared = {number: each for number, each in compared.items() if each.problem is None}
        self._pairs: list[Pair] = []
        for number, pair in enumerate(pairs):
            behind = [self._pairs[each] for each in pair.sources if each not in self._compared]
            direct = [each for each in pair.sources if each in self._compared]
            sources = sorted({*direct, *[each for other in behind for each in other.sources]})
            inside = dict.fromkeys([each for other in behind for each in other.inside])
            self._pairs.append(pair._replace(sources=tuple(sources), inside=(*inside, *pair.inside)))
            assert len(self._pairs) == number + 1
        self._apart = self._reaching({one for one, _ in verifier.models.interface.outputs})

    def _reaching(self, outputs: set[str]) -> set[int]:
        """Values that are apart and lead to an output through others that are; else the difference came to nothing."""
        found: set[int] = set()
        reached: set[int] = set()
        for number in range(len(self._pairs) - 1, -1, -1):
            compared = self._compared.get(number)
            if compared is None or compared.close:
                continue
            if self._pairs[number].base in outputs or number in reached:
                found.add(number)
                reached.update(self._pairs[number].sources)
        return found

    def origins(self) -> Iterator[int]:
        """The pairs of values from which the numbers part, each once."""
        told: set[int] = set()
        for number in sorted(self._apart):
            if self._apart.intersection(self._pairs[number].sources):
                continue
            origin = self._origin(number)
            if origin not in told:
                told.add(origin)
                yield origin

    def _origin(self, number: int) -> int:
        """Of a value that is apart and those that it is computed from the one where the error jumps."""
        path = [number]
        while True:
            sources = self._pairs[path[-1]].sources
            worst = max(sources, key=lambda each: error_share(self._compared[each]), default=None)
            if worst is None or error_share(self._compared[worst]) <= _NOISE:
                break
            path.append(worst)
        jumps = [self._jump(each) for each in path]
        best = 0
        for place, jump in enumerate(jumps):
            if jump > jumps[best] * _JUMP or (math.isinf(jump) and not math.isinf(jumps[best])):
                best = place
        return path[best]

    def _jump(self, number: int) -> float:
        after = error_share(self._compared[number])
        return after / max(self._before(number), _NOISE)

    def _before(self, number: int) -> float:
        sources = [self._compared[each] for each in self._pairs[number].sources]
        return max(map(error_share, sources), default=0.0)

    def inner_values(self, number: int) -> tuple[list[str], list[str]]:
        """Of a place with several nodes: what they make on both sides, beside the values that part."""
        pair = self._pairs[number]
        nodes, its = self._main.base.graph.node, self._main.target.graph.node
        mine = [name for each in pair.inside for name in nodes[each].output if name and name != pair.base]
        other = [name for each in self._in_target(pair) for name in its[each].output if name and name != pair.target]
        return mine[:_MOST_INNER], other[:_MOST_INNER]

    def place(self, number: int, known: Collection[str] = ()) -> Place:
        """What is known of a place.

        Args:
            number: the pair that parts.
            known: values of its nodes in the base that the target makes, too.
        """
        pair = self._pairs[number]
        scope = self._main.base
        constants = tuple(self._changed_constants(pair))
        there = self._in_target(pair)
        lost = () if constants or len(pair.inside) == 1 else tuple(self._lost_constants(pair, there))
        blamed = {one for one, _ in constants} or set(lost)
        nodes = scope.graph.node
        # The node that takes a changed or a lost constant comes first, then one that takes only what the target has,
        # too, and gives what it has not, then those without a counterpart.
        right = {name for each in pair.sources for name in nodes[self._pairs[each].inside[-1]].output} | set(known)
        made = {name for position in pair.inside if self._varies(position) for name in nodes[position].output}
        order = sorted(
            pair.inside,
            key=lambda position: (
                not blamed.intersection(taken_names(nodes[position])),
                any(name in made and name not in right for name in taken_names(nodes[position])),
                bool(right.intersection(nodes[position].output)),
                self._main.target_of[position] >= 0,
                -position,
            ),
        )
        likely = [each for each in order if self._varies(each)] or order
        return Place(
            base=tuple([NodeRef(scope, position).address for position in likely]),
            target=tuple([NodeRef(self._main.target, position).address for position in there]),
            nodes=tuple([_described(nodes[position]) for position in likely]),
            target_nodes=tuple([_described(self._main.target.graph.node[position]) for position in there]),
            value=(pair.base, pair.target),
            comparison=self._compared[number],
            constants=constants,
            lost=lost,
            before=self._before(number),
        )

    def _varies(self, position: int) -> bool:
        """Whether a node computes anything that is no constant, or another name of one."""
        node = self._main.base.graph.node[position]
        if node.op_type == "Identity" and plain_domain(node.domain) == "" and node.input:
            return _constant(self._main.base, node.input[0]) is None
        return not is_constant(node)

    def _in_target(self, pair: Pair) -> list[int]:
        """The nodes of the target that stand in the place of those in the base."""
        maker = self._main.target.makers.get(pair.target)
        found = dict.fromkeys([] if maker is None else [maker[0]])
        for region in self._regions:
            if set(region.base) & set(pair.inside):
                found.update(dict.fromkeys(region.target))
        found.update(dict.fromkeys([each for each in map(self._main.target_of.__getitem__, pair.inside) if each >= 0]))
        return list(found)

    def _changed_constants(self, pair: Pair) -> Iterator[tuple[str, str]]:
        """Constants that the nodes take and that have a counterpart with other elements."""
        base, target = self._main.base, self._main.target
        for position in pair.inside:
            for name in taken_names(base.graph.node[position]):
                other = self._main.values.get(name)
                if other is None:
                    continue
                one, its = _constant(base, name), _constant(target, other)
                if one is not None and its is not None and content(one) != content(its):
                    yield name, other

    def _lost_constants(self, pair: Pair, there: Collection[int]) -> Iterator[str]:
        """Constants that the nodes take, while no node of the target in their place takes the same elements."""
        base, target = self._main.base, self._main.target
        taken = [_constant(target, name) for position in there for name in taken_names(target.graph.node[position])]
        known = {content(tensor) for tensor in taken if tensor is not None}
        names = dict.fromkeys([name for position in pair.inside for name in taken_names(base.graph.node[position])])
        for name in names if known else ():
            tensor = _constant(base, name)
            if tensor is not None and content(tensor) not in known:
                yield name


def _constant(scope: Scope, name: str) -> Tensor | None:
    home = next((each for each in scope.chain() if each.defines(name)), None)
    if home is None:
        return None
    found = home.initializer(name)
    if isinstance(found, Tensor):
        return found
    if name in home.makers and name not in home.inputs:
        node = home.graph.node[home.makers[name][0]]
        if is_constant(node):
            return next((each.t for each in node.attribute if each.t is not None), None)
    return None


def _described(node: Node) -> str:
    name = node.name or next((each for each in node.output if each), "")
    return f"{visible(node.op_type or '?')} {visible(name)}".strip()
