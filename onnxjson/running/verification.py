"""Whether two models compute the same: run on the same values, their outputs compared one by one.

::

    result = verify("before.onnx", "after.onnx", seeds=5, dims={"N": (1, 8)})
    if not result.equal:
        print(result.failed, "of", len(result.runs), [each.name for each in result.outputs if each.failed])

That no difference shows on some inputs makes two models believable, and no more; a difference is a proof.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Self

import msgspec

from onnxjson.display import visible
from onnxjson.document import Model
from onnxjson.errors import EvaluationError
from onnxjson.running.dimensions import SIZES
from onnxjson.running.feeds import SPREADS, Spread
from onnxjson.running.guarded import TIMEOUT, Listener, Outcome, Sent, execute, sendable
from onnxjson.running.input_files import DataSet
from onnxjson.running.inputs import Inputs, Wishes
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.tasks import Compared, CompareTask, Failed, Opened, Refused, Settings
from onnxjson.running.tolerances import EXACT, TOLERANCES, Comparison, Tolerance
from onnxjson.running.value_comparison import badness, furthest, tolerance_of
from onnxjson.running.values import Value, packed_values
from onnxjson.worker import Worker

SEEDS: Final = 3
"""Sets of made-up values if nobody says otherwise."""

DEFAULT: Final = Settings()
"""Graphs as they stand, without what onnxruntime would make of them, in one thread."""

_OTHER_SEED: Final = 7919
_SIDES: Final = ("the base", "the target")

Verdict = Literal["equal", "within-tolerance", "different", "failed"]
"""Of a run: bit for bit the same values, close, not close, or one of the models gave nothing."""


class OutputResult(msgspec.Struct, frozen=True, kw_only=True):
    """One output, over all runs."""

    name: str
    """In the base."""
    target_name: str | None
    """In the target; None where it has no counterpart."""
    dtype: str = ""
    tolerance: Tolerance = EXACT
    compared: int = 0
    """In how many runs it was compared."""
    failed: int = 0
    """In how many of them it is not close."""
    elements: int = 0
    """Over all these runs."""
    worst: Comparison | None = None
    """Of the run in which it is furthest apart, with the greatest differences of any run."""
    worst_run: int | None = None


class RunVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One run of both models."""

    name: str
    """Where its values come from: "seed 0", the name of a folder."""
    sizes: dict[str, int]
    """Of open dimensions."""
    verdict: Verdict
    problem: str = ""
    """Why it failed."""


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    runs: tuple[RunVerdict, ...]
    outputs: tuple[OutputResult, ...]
    engines: tuple[str, str]
    notes: tuple[str, ...] = ()
    """What else a person should know; made visible."""
    is_interrupted: bool = False

    @property
    def failed(self) -> int:
        """In how many runs the models do not give the same."""
        return sum(run.verdict in ("different", "failed") for run in self.runs)

    @property
    def equal(self) -> bool:
        """Whether they gave the same within the tolerance in every run, and all outputs have counterparts."""
        return bool(self.runs) and not self.failed and all(each.target_name is not None for each in self.outputs)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to try."""

    seed: int = 0
    seeds: int = SEEDS
    """How many sets of values are made up."""
    dims: Mapping[str, Sequence[int]] = {}
    """Sizes of open dimensions, by name; every combination is tried with every set."""
    wishes: Wishes = Wishes()
    """How values are made up; its own `dims` count too."""
    spreads: Sequence[Spread] = SPREADS
    """How their numbers lie, in turn."""
    sets: Sequence[DataSet] = ()
    """Values that are given, in place of seeds."""
    tolerances: Mapping[str, Tolerance] = {}
    """By name of a dtype, in place of those of `onnxjson.running.tolerances.TOLERANCES`."""
    settings: Settings = DEFAULT
    target_settings: Settings | None = None
    """How the target runs, where that is another way."""
    timeout: float = TIMEOUT
    trust_links: bool = False


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one run."""

    name: str
    sizes: dict[str, int]
    feeds: tuple[dict[str, Value], dict[str, Value]]


def verify(
    base: Model | str | Path,
    target: Model | str | Path,
    *,
    seeds: int = SEEDS,
    seed: int = 0,
    dims: Mapping[str, int | Sequence[int]] | None = None,
    tolerances: Mapping[str, Tolerance] | None = None,
    settings: Settings = DEFAULT,
    timeout: float = TIMEOUT,
) -> Verification:
    """Whether two models compute the same, in a guarded process.

    Args:
        base: the model that is right, or its file.
        target: the model that is to compute the same, or its file.
        seeds: how many sets of values are made up.
        seed: where they come from.
        dims: sizes of open dimensions by name, one or several; every combination is tried.
        tolerances: by name of a dtype, in place of `onnxjson.running.tolerances.TOLERANCES`.
        settings: how both run.
        timeout: seconds for everything.

    Raises:
        EvaluationError: nothing runs one of the models, or the base fails on all values that were tried.
        FeedError: no values can be made up for an input.
        MissingInputError, AccessDeniedError, FileError, DecodeError, LimitError: a file cannot be read as a model.
    """
    from onnxjson import files

    models, paths = [], []
    for each in (base, target):
        models.append(each if isinstance(each, Model) else files.load(each).model)
        paths.append(None if isinstance(each, Model) else Path(each))
    sizes = {name: (size,) if isinstance(size, int) else tuple(size) for name, size in (dims or {}).items()}
    plan = Plan(seed=seed, seeds=seeds, dims=sizes, tolerances=tolerances or {}, settings=settings, timeout=timeout)
    with Verifier(TwoModels(models[0], models[1], (paths[0], paths[1])), plan) as verifier:
        return verifier.result()


def _require_open(outcome: Outcome) -> None:
    """Do nothing if both models could be opened, or nobody waited for that.

    Raises:
        EvaluationError: one could not.
    """
    refused = next((each for each in outcome.reports if isinstance(each, Refused)), None)
    if refused is not None:
        raise EvaluationError(f"nothing runs {_SIDES[refused.side]}: {refused.problem}", refused.side)
    open_sides = {each.side for each in outcome.reports if isinstance(each, Opened)}
    if outcome.problem and len(open_sides) < len(_SIDES):
        side = 1 if 0 in open_sides else 0
        raise EvaluationError(f"{_SIDES[side]} cannot be opened: the process {outcome.problem}", side)


class Verifier:
    """Compares two models; use it in a ``with`` statement. `onnxjson.running.locating` goes on from what it found.

    Args:
        models: both.
        plan: what to try.
        worker: the guarded process, if there is one already.
        heard: is told everything at once, in a thread of its own.
    """

    def __init__(
        self, models: TwoModels, plan: Plan, *, worker: Worker | None = None, heard: Listener | None = None
    ) -> None:
        self.models = models
        self.plan = plan
        self._own = Worker() if worker is None else None
        self.worker = worker or self._own or Worker()
        self._heard = heard
        self.sent: tuple[Sent, Sent] = (self._sent(0), self._sent(1))
        self.trials: list[Trial] = []
        """The runs that count: those of the first sizes that the base takes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.close()

    def _sent(self, side: int) -> Sent:
        model, path = (self.models.base, self.models.target)[side], self.models.paths[side]
        return sendable(model, None if path is None else path.parent, trust_links=self.plan.trust_links)

    def result(self) -> Verification:
        """Runs both models and compares their outputs.

        Raises:
            EvaluationError: nothing runs one of the models, or the base fails on all values that were tried.
            FeedError: no values can be made up for an input.
        """
        pairs = self.models.interface.outputs
        if not pairs and not self.models.interface.missing:
            raise EvaluationError("the base has no outputs, so there is nothing to compare", 0)
        for attempt in range(len(SIZES) + 1):
            # At first every set of values has sizes of its own: a size that was baked in shows at another one.
            cycle = SIZES[max(attempt - 1, 0)]
            self.trials = list(self._trials(cycle, turned=attempt == 0))
            outcome = self.compare([(trial.feeds[0], trial.feeds[1]) for trial in self.trials], pairs)
            _require_open(outcome)
            base_failed = {each.run: each for each in outcome.reports if isinstance(each, Failed) and each.side == 0}
            if len(base_failed) < (1 if attempt == 0 else len(self.trials)):
                break
            if outcome.interrupted or not self._has_open_dimensions:
                break
        if len(base_failed) == len(self.trials) and not outcome.interrupted:
            raise EvaluationError(
                f"the base does not run on the values that were tried: {base_failed[0].problem}; give it others with "
                "--input or --dim"
            )
        return self._verification(outcome)

    def compare(
        self,
        feeds: Sequence[tuple[Mapping[str, Value], Mapping[str, Value]]],
        pairs: Sequence[tuple[str, str]],
        *,
        sides: tuple[int, int] = (0, 1),
        batches: Sequence[Sequence[int]] | None = None,
        reshaped: bool = False,
    ) -> Outcome:
        """Runs two models on the same values and compares values of theirs.

        Args:
            feeds: for each run the values for both.
            pairs: what to compare.
            sides: which models; the base twice shows whether it gives the same twice.
            batches: which pairs are compared together; all of them if it is None.
            reshaped: whether values of another shape are compared where they have as many elements.
        """
        one, other = self.sent[sides[0]], self.sent[sides[1]]
        twice = sides[0] == sides[1]
        task = CompareTask(
            base=one.subject,
            target=msgspec.structs.replace(other.subject, seed=_OTHER_SEED) if twice else other.subject,
            settings=self.plan.settings,
            feeds=tuple([(packed_values(first), packed_values(second)) for first, second in feeds]),
            pairs=tuple(pairs),
            batches=(tuple(range(len(pairs))),) if batches is None else tuple(map(tuple, batches)),
            reshaped=reshaped,
            tolerances={**TOLERANCES, **self.plan.tolerances},
            target_settings=self.plan.target_settings if sides[1] else None,
        )
        return execute(self.worker, task, timeout=self.plan.timeout, heard=self._heard, size=max(one.size, other.size))

    def _trials(self, cycle: Sequence[int], *, turned: bool) -> Iterator[Trial]:
        plan, interface = self.plan, self.models.interface
        self._has_open_dimensions = False
        sets = list(plan.sets) or [DataSet(f"seed {plan.seed + each}", {}, {}) for each in range(plan.seeds)]
        choices = [[(name, size) for size in sizes] for name, sizes in plan.dims.items()]
        for chosen in itertools.product(*choices):
            wishes = msgspec.structs.replace(plan.wishes, dims={**plan.wishes.dims, **dict(chosen)})
            for number, each in enumerate(sets):
                inputs = Inputs(self.models.indices, interface.inputs, wishes, self.worker)
                given = inputs.checked(each.inputs)
                self._has_open_dimensions |= bool(inputs.open_dimensions())
                spread = plan.spreads[number % len(plan.spreads)]
                turn = number % len(cycle) if turned else 0
                own = (*cycle[turn:], *cycle[:turn])
                first, second = inputs.feeds(given, (plan.seed + number,), spread=spread, cycle=own)
                yield Trial(name=each.name, sizes=inputs.sizes(own), feeds=(first, second))

    def _verification(self, outcome: Outcome) -> Verification:
        # Values that the base does not take say nothing about the target.
        useless = {each.run for each in outcome.reports if isinstance(each, Failed) and each.side == 0}
        kept = [number for number in range(len(self.trials)) if number not in useless]
        numbers = {number: place for place, number in enumerate(kept)}
        self.trials = [self.trials[number] for number in kept]
        compared: dict[tuple[int, int], Compared] = {}
        for report in outcome.reports:
            if isinstance(report, Compared):
                compared[numbers[report.run], report.pair] = report
        failed = {
            numbers[each.run]: each
            for each in outcome.reports
            if isinstance(each, Failed) and each.side == 1 and each.run in numbers
        }
        pairs = self.models.interface.outputs
        runs = []
        for number, trial in enumerate(self.trials):
            found = [compared[number, pair] for pair in range(len(pairs)) if (number, pair) in compared]
            if len(found) < len(pairs) and outcome.interrupted:
                break
            runs.append(self._verdict(number, trial, found, failed.get(number), outcome))
        engines = {each.side: each.engine for each in outcome.reports if isinstance(each, Opened)}
        results = [self._output(pair, names, compared) for pair, names in enumerate(pairs)]
        results += [OutputResult(name=name, target_name=None) for name in self.models.interface.missing]
        made = Verification(
            runs=tuple(runs),
            outputs=tuple(results),
            engines=(engines.get(0, ""), engines.get(1, "")),
            is_interrupted=outcome.interrupted,
        )
        notes = list(self._notes(made))
        if useless:
            notes.append(f"the base fails on {len(useless)} more sets of values, which tell nothing")
        return msgspec.structs.replace(made, notes=tuple(notes))

    def _verdict(
        self, number: int, trial: Trial, found: Sequence[Compared], failed: Failed | None, outcome: Outcome
    ) -> RunVerdict:
        verdict: Verdict = "equal"
        problem = ""
        missing = self.models.interface.missing
        if missing:
            verdict, problem = "failed", f'the target has no output "{visible(missing[0])}"'
        elif failed is not None:
            verdict, problem = "failed", f"{_SIDES[failed.side]}: {failed.problem}"
        elif len(found) < len(self.models.interface.outputs):
            verdict, problem = "failed", f"the run {outcome.problem or 'gave nothing'}"
        elif not all(each.comparison.close for each in found):
            verdict = "different"
        elif not all(each.comparison.equal for each in found):
            verdict = "within-tolerance"
        return RunVerdict(name=trial.name, sizes=trial.sizes, verdict=verdict, problem=problem)

    def _output(self, pair: int, names: tuple[str, str], compared: Mapping[tuple[int, int], Compared]) -> OutputResult:
        found = [report for (_, its), report in compared.items() if its == pair]
        if not found:
            return OutputResult(name=names[0], target_name=names[1])
        worst = max(found, key=lambda each: badness(each.comparison))
        tolerance = tolerance_of(worst.dtypes, {**TOLERANCES, **self.plan.tolerances})
        dtypes = dict.fromkeys(worst.dtypes)
        return OutputResult(
            name=names[0],
            target_name=names[1],
            dtype=" / ".join(dtypes),
            tolerance=tolerance,
            compared=len(found),
            failed=sum(not each.comparison.close for each in found),
            worst=furthest([each.comparison for each in found]),
            elements=sum(each.comparison.elements for each in found),
            worst_run=next(run for (run, its), report in compared.items() if report is worst and its == pair),
        )

    def _notes(self, made: Verification) -> Iterator[str]:
        interface = self.models.interface
        for one, other in interface.inputs:
            if one is None:
                yield f'only the target has the input "{visible(str(other))}"; it got made-up values'
            elif other is None:
                yield f'only the base has the input "{visible(one)}"'
        for name in interface.added:
            yield f'only the target has the output "{visible(name)}"'
        renamed = [f'"{visible(one)}" is "{visible(other)}"' for one, other in interface.outputs if one != other]
        if renamed:
            yield f"outputs by structure: {', '.join(renamed[:5])}"
        for each in made.outputs:
            if each.compared and not each.elements and each.dtype != "nothing":
                yield f'"{visible(each.name)}" has no elements on these values, so nothing of it was compared'
        if made.engines[0] != made.engines[1] and all(made.engines):
            yield f"the base was evaluated by {made.engines[0]}, the target by {made.engines[1]}"
        if made.failed and not made.is_interrupted:
            yield from self._unsettled()

    def _unsettled(self) -> Iterator[str]:
        """Whether the base gives the same twice."""
        pairs = [(one, one) for one, _ in self.models.interface.outputs]
        feeds = [(trial.feeds[0], trial.feeds[0]) for trial in self.trials[:1]]
        outcome = self.compare(feeds, pairs, sides=(0, 0))
        for report in outcome.reports:
            if isinstance(report, Compared) and not report.comparison.close:
                yield f'the base itself gives another "{visible(pairs[report.pair][0])}" each time it runs'
