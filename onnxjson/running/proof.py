"""Whether rewrites compute the same: both sides are evaluated on the same made-up inputs, and the results compared.

This proves a difference; that no difference shows on some inputs makes a rewrite believable, and no more. What stands
behind a verdict is said in the event's evidence. Everything runs in the guarded process; the same seed gives the same
verdicts and figures.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

from onnxjson.diffing.difference import Diff
from onnxjson.diffing.events import Event, Verdict
from onnxjson.diffing.regions import Region
from onnxjson.display import counted, visible
from onnxjson.document import Tensor
from onnxjson.errors import OnnxJsonError
from onnxjson.payloads import Data
from onnxjson.running.dimensions import SIZES
from onnxjson.running.inferred_types import InferredTypes
from onnxjson.running.parts import Elements, NotRunError, UnsettledError
from onnxjson.running.rewrites import Rewrite, Side, rewrite
from onnxjson.running.sessions import Results, Values, evaluate_all, evaluation
from onnxjson.running.tolerances import TOLERANCES, Comparison, Tolerance, compare, tolerance_for
from onnxjson.running.widening import Surroundings
from onnxjson.tensors import to_numpy
from onnxjson.worker import Worker
from onnxjson.worker_protocol import Limits
from onnxjson.worker_tasks import ENGINES, Engine, Evaluation

PLACES: Final = 8
"""Places of one event that are evaluated if nobody says otherwise."""

TIMEOUT: Final = 10.0
"""Seconds that evaluating one side of a rewrite may take."""

WIDENINGS: Final = 3
"""How often a region that differs takes its neighbours in."""

SHAPE_WIDENINGS: Final = 12
"""The same where values around it have other shapes: a Reshape that moved changes all nodes that it moved past."""

_RANKS: Final[dict[Verdict, int]] = {"equal": 0, "within-tolerance": 1, "different": 2}


_Place = tuple[int, int]
"""The numbers of an event and of its member."""


class _Outcome(NamedTuple):
    """What evaluating one place said."""

    verdict: Verdict
    reason: str
    """Why it is "not-run" or "different", where figures do not say it."""
    worst: Comparison | None = None
    """Of the output that is furthest apart."""
    output: str = ""
    """The name of that output; made visible."""
    runs: int = 0
    inputs: bool = False
    """Whether anything was made up."""
    engines: frozenset[str] = frozenset()
    unsettled: bool = False
    """Whether it may come out otherwise together with the nodes around it."""
    reshaped: bool = False
    """Whether that is since a value has another shape on the other side."""
    alone: str = ""
    """What the rewrite alone showed, where it is equal only together with nodes around it."""
    nodes: int = 0
    """How many nodes that are then."""


def prove(
    diff: Diff,
    *,
    seed: int = 0,
    tolerances: Mapping[str, Tolerance] | None = None,
    timeout: float = TIMEOUT,
    places: int = PLACES,
    engines: Sequence[Engine] = ENGINES,
) -> Diff:
    """The diff with a verdict for each event that rewrites nodes.

    Args:
        diff: stays as it is.
        seed: where made-up values come from.
        tolerances: by name of a dtype, in place of `onnxjson.running.tolerances.TOLERANCES`.
        timeout: seconds that evaluating one side may take.
        places: so many places of an event are evaluated at most, spread over all of them.
        engines: what may evaluate.
    """
    with ExitStack() as stack:
        worker = stack.enter_context(Worker(Limits(wall_seconds=timeout, processor_seconds=math.ceil(timeout))))
        tasks = _Tasks(diff, worker, seed, engines)
        chosen = {
            number: _spread(len(event.members), places)
            for number, event in enumerate(diff.events)
            if event.verdict is not None
        }
        allowed = {**TOLERANCES, **(tolerances or {})}
        outcomes = tasks.outcomes([(event, member) for event, members in chosen.items() for member in members], allowed)
    return diff.with_verdicts({
        number: _summary(diff.events[number], [outcomes[number, member] for member in members])
        for number, members in chosen.items()
    })  # fmt: skip


def _spread(count: int, places: int) -> list[int]:
    """The numbers of some of `count` members: the first one, the last one, and others between."""
    if count <= places or places < 2:
        return list(range(min(count, max(places, 1))))
    return [round(number * (count - 1) / (places - 1)) for number in range(places)]


class _Tasks:
    """The rewrites of a diff, evaluated."""

    def __init__(self, diff: Diff, worker: Worker, seed: int, engines: Sequence[Engine]) -> None:
        self._diff = diff
        self._worker = worker
        self._seed = seed
        self._engines = engines
        self._surroundings = Surroundings(diff.alignment, diff.regions.values())
        indices = diff.alignment.base, diff.alignment.target
        self._sides = [
            Side(index.model, InferredTypes(index, worker), _elements(diff, number))
            for number, index in enumerate(indices)
        ]

    def outcomes(
        self, members: Sequence[tuple[int, int]], tolerances: Mapping[str, Tolerance]
    ) -> dict[_Place, _Outcome]:
        """By event and member, what evaluating it said."""
        regions = {place: self._diff.regions.get(place) for place in members}
        found = self._evaluated(regions, tolerances)
        settled = {
            place: wider
            for place, region in regions.items()
            if region is not None
            and found[place].unsettled
            and (wider := self._surroundings.settled(region)) is not None
        }
        self._look_again(found, settled, tolerances)
        regions |= settled
        for number in range(SHAPE_WIDENINGS):
            # What differs on any input may be right for what the nodes before it make, or after those behind it; a
            # value that has another shape now is made and taken by nodes that belong to the change.
            wider_ones = {
                place: wider
                for place, region in regions.items()
                if region is not None
                and found[place].unsettled
                and (number < WIDENINGS or found[place].reshaped)
                and (wider := self._surroundings.widened(region)) is not None
            }
            self._look_again(found, wider_ones, tolerances)
            regions = {**wider_ones}
        return found

    def _look_again(
        self, found: dict[_Place, _Outcome], regions: Mapping[_Place, Region], tolerances: Mapping[str, Tolerance]
    ) -> None:
        """Evaluate wider regions, and note what says more than before."""
        for place, outcome in self._evaluated(regions, tolerances).items():
            region, before = regions[place], found[place]
            if _is_better(outcome, before):
                alone = "" if before.worst is None else before.alone or _found(before)
                found[place] = outcome._replace(alone=alone, nodes=max(len(region.base), len(region.target)))

    def _evaluated(
        self, regions: Mapping[_Place, Region | None], tolerances: Mapping[str, Tolerance]
    ) -> dict[_Place, _Outcome]:
        found: dict[_Place, _Outcome] = {}
        ready: list[tuple[_Place, Rewrite, tuple[Evaluation, Evaluation]]] = []
        for place, region in regions.items():
            try:
                if region is None:
                    raise NotRunError("no values around it are known to be counterparts")
                if region.outputs:
                    ready.append((place, *self._prepared(place, region)))
                else:
                    found[place] = _Outcome("equal", "nothing takes what these nodes make")
            except (NotRunError, OnnxJsonError) as error:
                found[place] = _not_run(error)
        results = evaluate_all(self._worker, [each for _, _, both in ready for each in both])
        for number, (place, made, _) in enumerate(ready):
            try:
                found[place] = _judged(made, results[2 * number], results[2 * number + 1], tolerances)
            except NotRunError as error:
                found[place] = _not_run(error)
        return found

    def _prepared(self, place: _Place, region: Region) -> tuple[Rewrite, tuple[Evaluation, Evaluation]]:
        made = rewrite(region, self._sides[0], self._sides[1], (self._seed, *place))
        base = evaluation(made.base.model, [run.base for run in made.runs], engines=self._engines)
        target = evaluation(made.target.model, [run.target for run in made.runs], engines=self._engines)
        return made, (base, target)


def _elements(diff: Diff, side: int) -> Elements:
    """Where the elements of tensors in other files are found."""

    def found(tensor: Tensor) -> Data | None:
        return diff.elements(side, tensor)

    return found


def _judged(made: Rewrite, base: Results, target: Results, tolerances: Mapping[str, Tolerance]) -> _Outcome:
    """What the results of both sides say.

    Raises:
        NotRunError: they say nothing.
    """
    for results, side in ((base, "base"), (target, "target")):
        if results.engine is None:
            # What does not fit its inputs may be fed by a node that was changed with it.
            kind = UnsettledError if "InferenceError]" in results.problem else NotRunError
            raise kind(f"the part of the {side}: {results.problem}")
    ran = _both_ran(made, base, target)
    worst, output, told = None, "", False
    for number in ran:
        one, other = base.runs[number], target.runs[number]
        assert not isinstance(one, str)
        assert not isinstance(other, str)
        for place, comparison in enumerate(_compared(made, one, other, tolerances)):
            seen = comparison.elements and (comparison.exact or comparison.largest_absolute is not None)
            told = told or bool(seen) or not comparison.equal
            if worst is None or _badness(comparison) > _badness(worst):
                worst, output = comparison, made.base.asked[place]
    if worst is None or not told:
        raise NotRunError("the results have no finite elements that could be compared")
    verdict: Verdict = "equal" if worst.equal else "within-tolerance" if worst.close else "different"
    if verdict == "different" and made.alone:
        raise UnsettledError(f'the results differ, but so may "{made.alone[0]}", which has no counterpart')
    engines = frozenset(each.engine for each in (base, target) if each.engine is not None)
    return _Outcome(
        verdict,
        worst.problem or "",
        worst,
        visible(output),
        runs=len(ran),
        inputs=any(run.base or run.target for run in made.runs),
        engines=engines,
        unsettled=verdict == "different",
        reshaped=worst.problem is not None,
    )


def _both_ran(made: Rewrite, base: Results, target: Results) -> list[int]:
    """The runs to compare: those of all choices of sizes that suit both sides.

    Raises:
        UnsettledError: there is none, or the base takes sizes that the target does not take.
    """
    problem = narrower = ""
    good: list[int] = []
    for sizes in dict.fromkeys(run.sizes for run in made.runs):
        numbers = [number for number, run in enumerate(made.runs) if run.sizes == sizes]
        failed = [(isinstance(base.runs[number], str), isinstance(target.runs[number], str)) for number in numbers]
        ran = [number for number, each in zip(numbers, failed, strict=True) if each == (False, False)]
        if ran and (True, False) not in failed and (False, True) not in failed:
            good += ran
            continue
        for number, (first, second) in zip(numbers, failed, strict=True):
            if first or second:
                who = "neither side takes" if first and second else f"only the {'target' if first else 'base'} takes"
                said = base.runs[number] if first else target.runs[number]
                problem = problem or f"{who} the inputs that were made up: {said}"
                if second and not first:
                    where = ", ".join(map(str, SIZES[sizes]))
                    narrower = narrower or f"{who} inputs with open dimensions of {where}: {said}"
    if good and not narrower:
        return good
    raise UnsettledError(narrower if good else problem)


def _compared(made: Rewrite, one: Values, other: Values, tolerances: Mapping[str, Tolerance]) -> list[Comparison]:
    found = []
    for name, its in zip(made.base.outputs, made.target.outputs, strict=True):
        arrays = to_numpy(one[name]), to_numpy(other[its])
        found.append(compare(*arrays, tolerance_for(arrays[0].dtype, arrays[1].dtype, tolerances=tolerances)))
    return found


def _badness(comparison: Comparison) -> tuple[bool, bool, bool, float]:
    """Greater for what is further apart."""
    return (
        comparison.problem is not None,
        not comparison.close,
        not comparison.equal,
        comparison.largest_absolute or 0.0,
    )


def _not_run(error: Exception) -> _Outcome:
    unsettled = isinstance(error, UnsettledError)
    return _Outcome("not-run", str(error), unsettled=unsettled, reshaped=unsettled)


def _is_better(outcome: _Outcome, before: _Outcome) -> bool:
    """Whether a verdict on more nodes says more than that on fewer."""
    return outcome.verdict != "not-run" and (before.verdict == "not-run" or outcome.verdict != "different")


def _summary(event: Event, outcomes: Sequence[_Outcome]) -> tuple[Verdict, str]:
    """The verdict on an event, and its evidence with what was found."""
    ran = [each for each in outcomes if each.verdict != "not-run"]
    missed = [each for each in outcomes if each.verdict == "not-run"]
    if not ran:
        verdict: Verdict = "not-run"
        text = f"not run: {missed[0].reason}" if missed else "not run: it has no place"
    else:
        worst = max(ran, key=lambda each: (_RANKS[each.verdict], _badness(each.worst) if each.worst else ()))
        verdict = worst.verdict
        text = _found(worst)
        if event.count > 1:
            text += f", at {len(ran)} of {event.count:,} places"
        if missed:
            text += f"; not run at {len(missed)}: {missed[0].reason}"
    return verdict, text


def _found(outcome: _Outcome) -> str:
    """What evaluating a place showed, for a person."""
    if outcome.worst is None:
        return outcome.reason
    if not outcome.inputs:
        tried = "evaluated once, without inputs"
    else:
        tried = f"on {counted(outcome.runs, 'made-up input')}"
    tried += f" ({' and '.join(sorted(outcome.engines))})"
    if outcome.nodes:
        tried += f", within the {outcome.nodes} nodes around it" + (f"; alone {outcome.alone}" if outcome.alone else "")
    if outcome.verdict == "equal":
        return f"same results {tried}"
    return f"{_figures(outcome)} {tried}"


def _figures(outcome: _Outcome) -> str:
    worst = outcome.worst
    assert worst is not None
    if worst.problem is not None:
        return f'"{outcome.output}" has {worst.problem}'
    share = f'{worst.unequal:,} of {worst.elements:,} elements of "{outcome.output}" differ'
    if worst.largest_absolute is None:
        return share
    return f"{share} by up to {worst.largest_absolute:.3g} among values of up to about {worst.scale or 0:.2g},"
