"""Verify rewrites of a diff: evaluate both sides on the same random inputs and compare the results.

A difference proves that a rewrite is wrong; equal results on some inputs only make it plausible that it is right. The
evidence of an event states the basis of its verdict. Everything runs in the sandbox; the same seed leads to the
same verdicts and figures.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from onnxjson.codecs.wire_writing import message_bytes
from onnxjson.diffing.changes import Region
from onnxjson.diffing.difference import Diff
from onnxjson.diffing.events import Event, Verdict
from onnxjson.model.display import counted, visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import Index
from onnxjson.running.comparisons import TOLERANCES, Comparison, Tolerance, badness
from onnxjson.running.engines import INFERENCE_ERROR
from onnxjson.running.inferred_types import InferredTypes
from onnxjson.running.regions import Elements, NotRunError, Surroundings, UnsettledError
from onnxjson.running.rewrites import ModelSide, Rewrite, rewrite
from onnxjson.running.sandbox import Outcome, execute_all
from onnxjson.running.tasks import ENGINES, Compared, CompareTask, Engine, Failed, Opened, Refused, Settings, Subject
from onnxjson.running.value_types import SIZES
from onnxjson.running.values import packed_values
from onnxjson.running.worker import Worker
from onnxjson.running.worker_protocol import Limits

PLACES: Final = 8
"""Default for the maximum number of places of one event that are evaluated."""

TIMEOUT: Final = 10.0
"""Default time limit for the evaluation of a rewrite, in seconds."""

WIDENINGS: Final = 3
"""Number of times a region that differs is widened by adjacent nodes."""

SHAPE_WIDENINGS: Final = 12
"""The number for regions with values of different shapes: a moved Reshape affects all nodes that it passed."""

_MEMORY: Final = 2 << 30
"""Bytes that the models of a process may allocate; they are small."""

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
        timeout: time limit for the evaluation of a rewrite, in seconds.
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
        ready: list[tuple[_Member, Rewrite, CompareTask]] = []
        for member, region in regions.items():
            try:
                if region is None:
                    raise NotRunError("no values around it have counterparts")
                if region.outputs:
                    prepared = rewrite(region, self.sides[0], self.sides[1], (self.seed, *member))
                    ready.append((member, prepared, self._task(prepared, tolerances)))
                else:
                    findings[member] = _Finding("equal", "the outputs of these nodes have no consumers")
            except (NotRunError, OnnxJsonError) as error:
                findings[member] = _not_run(error)
        series = [task for _, _, task in ready]
        outcomes = execute_all(self.worker, series, timeout=self.timeout, memory=_MEMORY)
        for (member, prepared, _), outcome in zip(ready, outcomes, strict=True):
            try:
                findings[member] = _judge(prepared, outcome)
            except NotRunError as error:
                findings[member] = _not_run(error)
        return findings

    def _task(self, prepared: Rewrite, tolerances: Mapping[str, Tolerance]) -> CompareTask:
        base, target = [Subject(model=message_bytes(part.model)) for part in (prepared.base, prepared.target)]
        pairs = tuple(zip(prepared.base.outputs, prepared.target.outputs, strict=True))
        return CompareTask(
            base=base,
            target=target,
            settings=Settings(engines=tuple(self.engines)),
            feeds=tuple([(packed_values(run.base), packed_values(run.target)) for run in prepared.runs]),
            pairs=pairs,
            batches=(tuple(range(len(pairs))),),
            tolerances=dict(tolerances),
        )


def _judge(prepared: Rewrite, outcome: Outcome) -> _Finding:
    """Judge the results of both sides; raise NotRunError if they allow no verdict."""
    refused, engines = outcome.first(Refused), [each.engine for each in outcome.all(Opened)]
    if refused is not None or outcome.problem:
        side = len(engines) if refused is None else refused.side
        problem = f"the evaluation {outcome.problem}" if refused is None else refused.problem
        where = f"the part of the {('base', 'target')[side]}: " if side < 2 else ""
        # Nodes that reject their inputs may have a producer that was changed too.
        raise (UnsettledError if INFERENCE_ERROR in problem else NotRunError)(f"{where}{problem}")
    ran = _comparable_runs(prepared, {(each.run, each.side): each.problem for each in outcome.all(Failed)})
    compared = [each for each in outcome.all(Compared) if each.run in ran]
    if not any([each.comparison.conclusive for each in compared]):
        raise NotRunError("the results have no finite elements to compare")
    report = max(compared, key=lambda each: badness(each.comparison))
    worst = report.comparison
    verdict: Verdict = "equal" if worst.equal else "within-tolerance" if worst.close else "different"
    if verdict == "different" and prepared.alone:
        raise UnsettledError(f'the results differ, but the input "{prepared.alone[0]}" has no counterpart')
    return _Finding(
        verdict,
        worst.problem or "",
        worst,
        visible(prepared.base.requested[report.pair]),
        runs=len(ran),
        inputs=any(run.base or run.target for run in prepared.runs),
        engines=frozenset(engines),
        unsettled=verdict == "different",
        reshaped=worst.problem is not None,
    )


def _comparable_runs(prepared: Rewrite, failures: Mapping[tuple[int, int], str]) -> list[int]:
    """Return the runs with sizes that both sides accept; raise UnsettledError if only the base accepts some.

    Args:
        failures: why runs failed, by number and side.
    """
    problem = narrower = ""
    good: list[int] = []
    for sizes in dict.fromkeys(run.sizes for run in prepared.runs):
        numbers = [number for number, run in enumerate(prepared.runs) if run.sizes == sizes]
        failed = [((number, 0) in failures, (number, 1) in failures) for number in numbers]
        ran = [number for number, each in zip(numbers, failed, strict=True) if each == (False, False)]
        if ran and (True, False) not in failed and (False, True) not in failed:
            good += ran
            continue
        for number, (first, second) in zip(numbers, failed, strict=True):
            if first or second:
                only = f"only the {'target' if first else 'base'} accepts"
                who = "neither side accepts" if first and second else only
                reason = failures[number, 0 if first else 1]
                problem = problem or f"{who} the random inputs: {reason}"
                if second and not first:
                    where = ", ".join(map(str, SIZES[sizes]))
                    narrower = narrower or f"{who} inputs with dynamic dimensions of {where}: {reason}"
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
    return f"{share} by up to {worst.largest_absolute:.3g} (the largest value is about {worst.scale or 0:.2g})"
