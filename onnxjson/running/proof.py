"""Verify rewrites of a diff: evaluate both sides on the same random inputs and compare the results.

A difference proves that a rewrite is wrong; equal results on some inputs only make it plausible that it is right. The
evidence of an event states the basis of its verdict. Everything runs in the sandbox; the same seed leads to the
same verdicts and figures.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from onnxjson.diffing.changes import Region
from onnxjson.diffing.difference import Diff
from onnxjson.diffing.events import Event, Verdict
from onnxjson.model.display import counted, visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.running.engines import INFERENCE_ERROR
from onnxjson.running.inferred_types import InferredTypes
from onnxjson.running.regions import Elements, NotRunError, Surroundings, UnsettledError
from onnxjson.running.rewrites import ModelSide, Rewrite, rewrite
from onnxjson.running.sandbox import Results, evaluate_all, evaluation_task
from onnxjson.running.tasks import ENGINES, Engine, RunTask
from onnxjson.running.value_types import SIZES
from onnxjson.running.values import TOLERANCES, Comparison, Tolerance, badness, compare_values
from onnxjson.running.worker import Worker
from onnxjson.running.worker_protocol import Limits

PLACES: Final = 8
"""Default for the maximum number of places of one event that are evaluated."""

TIMEOUT: Final = 10.0
"""Default time limit for the evaluation of one side of a rewrite, in seconds."""

WIDENINGS: Final = 3
"""Number of times a region that differs is widened by adjacent nodes."""

SHAPE_WIDENINGS: Final = 12
"""The number for regions with values of different shapes: a moved Reshape affects all nodes that it passed."""

_RANKS: Final[dict[Verdict, int]] = {"equal": 0, "within-tolerance": 1, "different": 2}


_Member = tuple[int, int]


class _Finding(NamedTuple):
    verdict: Verdict
    reason: str
    """Why it is "not-run" or "different", if figures do not show it."""
    worst: Comparison | None = None
    output: str = ""
    """Name of that output; made visible."""
    runs: int = 0
    inputs: bool = False
    engines: frozenset[str] = frozenset()
    unsettled: bool = False
    """Whether the verdict may change together with adjacent nodes."""
    reshaped: bool = False
    """Whether values have different shapes on the two sides."""
    alone: str = ""
    """Result of the rewrite alone, if it is equal only together with adjacent nodes."""
    nodes: int = 0


def prove(
    diff: Diff,
    *,
    seed: int = 0,
    tolerances: Mapping[str, Tolerance] | None = None,
    timeout: float = TIMEOUT,
    places: int = PLACES,
    engines: Sequence[Engine] = ENGINES,
) -> Diff:
    """Return the diff with a verdict for each event that rewrites nodes.

    Args:
        timeout: time limit for the evaluation of one side, in seconds.
        places: maximum number of evaluated places of an event, spread over all of them.
    """
    with _worker(timeout) as worker:
        indices = diff.alignment.base, diff.alignment.target
        sides = [
            ModelSide(index.model, InferredTypes(index, worker), partial(diff.elements, side))
            for side, index in enumerate(indices)
        ]
        tasks = _Evaluator(sides, worker, seed, engines, timeout)
        around = Surroundings(diff.alignment, diff.regions.values())
        chosen = {
            number: _spread(len(event.members), places)
            for number, event in enumerate(diff.events)
            if event.verdict is not None
        }
        allowed = {**TOLERANCES, **(tolerances or {})}
        members = [(event, member) for event, each in chosen.items() for member in each]
        findings = tasks.findings({member: diff.regions.get(member) for member in members}, around, allowed)
    return diff.with_verdicts({
        number: _summary(diff.events[number], [findings[number, member] for member in members])
        for number, members in chosen.items()
    })  # fmt: skip


def prove_regions(
    before: Index, after: Index, regions: Sequence[Region], elements: Elements
) -> list[tuple[Verdict, str]]:
    """Return the verdict on each of some regions of two models, and its evidence; they are not widened."""
    with _worker(TIMEOUT) as worker:
        sides = [ModelSide(index.model, InferredTypes(index, worker), elements) for index in (before, after)]
        tasks = _Evaluator(sides, worker, 0, ENGINES, TIMEOUT)
        found = tasks.evaluate({(0, number): region for number, region in enumerate(regions)}, TOLERANCES)
    return [(found[0, number].verdict, _describe(found[0, number])) for number in range(len(regions))]


def _worker(timeout: float) -> Worker:
    return Worker(Limits(wall_seconds=timeout, processor_seconds=math.ceil(timeout)))


def _spread(count: int, places: int) -> list[int]:
    """Return the numbers of some of `count` members: the first one, the last one, and others between."""
    if count <= places or places < 2:
        return list(range(min(count, max(places, 1))))
    return [round(number * (count - 1) / (places - 1)) for number in range(places)]


class _Evaluator(NamedTuple):
    sides: Sequence[ModelSide]
    worker: Worker
    seed: int
    engines: Sequence[Engine]
    timeout: float

    def findings(
        self, regions: Mapping[_Member, Region | None], around: Surroundings, tolerances: Mapping[str, Tolerance]
    ) -> dict[_Member, _Finding]:
        findings = self.evaluate(regions, tolerances)
        known = {member: region for member, region in regions.items() if region is not None}
        known |= self._look_again(findings, known, around.include_derivations, tolerances)
        for number in range(SHAPE_WIDENINGS):
            # A rewrite that differs on any input may be correct for the outputs of the nodes before it, or together
            # with the nodes after it; nodes around a value with another shape belong to the change.
            if number >= WIDENINGS:
                known = {member: region for member, region in known.items() if findings[member].reshaped}
            known = self._look_again(findings, known, around.widen, tolerances)
        return findings

    def _look_again(
        self,
        findings: dict[_Member, _Finding],
        regions: Mapping[_Member, Region],
        grown: Callable[[Region], Region | None],
        tolerances: Mapping[str, Tolerance],
    ) -> dict[_Member, Region]:
        """Evaluate unsettled regions after they grew, and keep better results; return these regions."""
        unsettled = {member: grown(region) for member, region in regions.items() if findings[member].unsettled}
        wider = {member: region for member, region in unsettled.items() if region is not None}
        for member, finding in self.evaluate(wider, tolerances).items():
            region, before = wider[member], findings[member]
            if _is_better(finding, before):
                alone = "" if before.worst is None else before.alone or _describe(before)
                findings[member] = finding._replace(alone=alone, nodes=max(len(region.base), len(region.target)))
        return wider

    def evaluate(
        self, regions: Mapping[_Member, Region | None], tolerances: Mapping[str, Tolerance]
    ) -> dict[_Member, _Finding]:
        findings: dict[_Member, _Finding] = {}
        ready: list[tuple[_Member, Rewrite, tuple[RunTask, RunTask]]] = []
        for member, region in regions.items():
            try:
                if region is None:
                    raise NotRunError("no values around it have counterparts")
                if region.outputs:
                    ready.append((member, *self._prepare(member, region)))
                else:
                    findings[member] = _Finding("equal", "the outputs of these nodes have no consumers")
            except (NotRunError, OnnxJsonError) as error:
                findings[member] = _not_run(error)
        results = evaluate_all(self.worker, [each for _, _, both in ready for each in both], timeout=self.timeout)
        for number, (member, prepared, _) in enumerate(ready):
            try:
                findings[member] = _judge(prepared, results[2 * number], results[2 * number + 1], tolerances)
            except NotRunError as error:
                findings[member] = _not_run(error)
        return findings

    def _prepare(self, member: _Member, region: Region) -> tuple[Rewrite, tuple[RunTask, RunTask]]:
        prepared = rewrite(region, self.sides[0], self.sides[1], (self.seed, *member))
        base = evaluation_task(prepared.base.model, [run.base for run in prepared.runs], engines=self.engines)
        target = evaluation_task(prepared.target.model, [run.target for run in prepared.runs], engines=self.engines)
        return prepared, (base, target)


def _judge(prepared: Rewrite, base: Results, target: Results, tolerances: Mapping[str, Tolerance]) -> _Finding:
    """Judge the results of both sides; raise NotRunError if they allow no verdict."""
    for results, side in ((base, "base"), (target, "target")):
        if results.engine is None:
            # Nodes that reject their inputs may have a producer that was changed too.
            kind = UnsettledError if INFERENCE_ERROR in results.problem else NotRunError
            raise kind(f"the part of the {side}: {results.problem}")
    ran = _comparable_runs(prepared, base, target)
    worst, output, conclusive = None, "", False
    for number in ran:
        one, other = base.runs[number], target.runs[number]
        assert not isinstance(one, str)
        assert not isinstance(other, str)
        for slot, (name, its) in enumerate(zip(prepared.base.outputs, prepared.target.outputs, strict=True)):
            comparison = compare_values(one[name], other[its], tolerances)
            conclusive = conclusive or comparison.conclusive
            if worst is None or badness(comparison) > badness(worst):
                worst, output = comparison, prepared.base.requested[slot]
    if worst is None or not conclusive:
        raise NotRunError("the results have no finite elements to compare")
    verdict: Verdict = "equal" if worst.equal else "within-tolerance" if worst.close else "different"
    if verdict == "different" and prepared.alone:
        raise UnsettledError(f'the results differ, but the input "{prepared.alone[0]}" has no counterpart')
    engines = frozenset(each.engine for each in (base, target) if each.engine is not None)
    return _Finding(
        verdict,
        worst.problem or "",
        worst,
        visible(output),
        runs=len(ran),
        inputs=any(run.base or run.target for run in prepared.runs),
        engines=engines,
        unsettled=verdict == "different",
        reshaped=worst.problem is not None,
    )


def _comparable_runs(prepared: Rewrite, base: Results, target: Results) -> list[int]:
    """Return the runs with sizes that both sides accept; raise UnsettledError if only the base accepts some."""
    problem = narrower = ""
    good: list[int] = []
    for sizes in dict.fromkeys(run.sizes for run in prepared.runs):
        numbers = [number for number, run in enumerate(prepared.runs) if run.sizes == sizes]
        failed = [(isinstance(base.runs[number], str), isinstance(target.runs[number], str)) for number in numbers]
        ran = [number for number, each in zip(numbers, failed, strict=True) if each == (False, False)]
        if ran and (True, False) not in failed and (False, True) not in failed:
            good += ran
            continue
        for number, (first, second) in zip(numbers, failed, strict=True):
            if first or second:
                only = f"only the {'target' if first else 'base'} accepts"
                who = "neither side accepts" if first and second else only
                reason = base.runs[number] if first else target.runs[number]
                problem = problem or f"{who} the random inputs: {reason}"
                if second and not first:
                    where = ", ".join(map(str, SIZES[sizes]))
                    narrower = narrower or f"{who} inputs with open dimensions of {where}: {reason}"
    if good and not narrower:
        return good
    raise UnsettledError(narrower if good else problem)


def _not_run(error: Exception) -> _Finding:
    unsettled = isinstance(error, UnsettledError)
    return _Finding("not-run", str(error), unsettled=unsettled, reshaped=unsettled)


def _is_better(finding: _Finding, before: _Finding) -> bool:
    """Whether a verdict on more nodes is more informative than one on fewer nodes."""
    return finding.verdict != "not-run" and (before.verdict == "not-run" or finding.verdict != "different")


def _summary(event: Event, findings: Sequence[_Finding]) -> tuple[Verdict, str]:
    """Return the verdict on an event, and its evidence."""
    ran = [each for each in findings if each.verdict != "not-run"]
    missed = [each for each in findings if each.verdict == "not-run"]
    if not ran:
        verdict: Verdict = "not-run"
        text = f"not run: {missed[0].reason}" if missed else "not run: it has no place"
    else:
        worst = max(ran, key=lambda each: (_RANKS[each.verdict], badness(each.worst) if each.worst else ()))
        verdict = worst.verdict
        text = _describe(worst)
        if event.count > 1:
            text += f", at {len(ran)} of {event.count:,} places"
        if missed:
            text += f"; not run at {len(missed)}: {missed[0].reason}"
    return verdict, text


def _describe(finding: _Finding) -> str:
    if finding.worst is None:
        return finding.reason
    tried = f"on {counted(finding.runs, 'random input')}" if finding.inputs else "evaluated once, without inputs"
    tried += f" ({' and '.join(sorted(finding.engines))})"
    if finding.nodes:
        tried += f", within the {finding.nodes} nodes around it" + (f"; alone {finding.alone}" if finding.alone else "")
    if finding.verdict == "equal":
        return f"same results {tried}"
    return f"{_figures(finding)} {tried}"


def _figures(finding: _Finding) -> str:
    worst = finding.worst
    assert worst is not None
    if worst.problem is not None:
        return f'"{finding.output}" has {worst.problem}'
    share = f'{worst.unequal:,} of {worst.elements:,} elements of "{finding.output}" differ'
    if worst.largest_absolute is None:
        return share
    return f"{share} by up to {worst.largest_absolute:.3g} among values of up to about {worst.scale or 0:.2g},"
