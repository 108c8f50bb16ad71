"""Verify that two models compute the same: run both on the same values and compare their outputs.

A difference proves that the models are not equivalent; equal results on some inputs only make it plausible that they
are.
"""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Self

import msgspec

from onnxjson.model.display import listed, visible
from onnxjson.model.document import Model
from onnxjson.model.errors import EvaluationError, FeedError, LimitError
from onnxjson.running.comparisons import EXACT, TOLERANCES, Tolerance, error_share
from onnxjson.running.coverage import Difference, differences, rows_by_input
from onnxjson.running.engines import OUT_OF_MEMORY
from onnxjson.running.input_files import DataSet
from onnxjson.running.inputs import InputOptions, free_inputs
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.precision import least_tolerances
from onnxjson.running.random_values import LADDER, SPREADS, Spread
from onnxjson.running.sandbox import TIMEOUT, Listener, Outcome, PackedModel, execute, pack_model
from onnxjson.running.tasks import Compared, CompareTask, Failed, Level, Opened, Refused, Settings
from onnxjson.running.value_types import ALL_SIZES
from onnxjson.running.values import Value, packed_values
from onnxjson.running.verdicts import (
    OutputResult,
    RunVerdict,
    Verdict,
    Verification,
    is_told,
    notes_on,
    output_result,
    verdict_on,
)
from onnxjson.running.worker import Worker
from onnxjson.storage.api import model_and_file

SEEDS: Final = 3

DEFAULT: Final = Settings()
"""Default settings: no optimization by onnxruntime, one thread."""

_OTHER_SEED: Final = 7919

_ROUNDING: Final = 1e-2
"""Share of the largest element up to which a difference can be rounding; see `Verifier._rounded`."""

_REPLACEMENTS: Final = 3
"""Number of times that values which the base rejects are replaced by others."""

_SIDES: Final = ("the base", "the target")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Plan of a verification."""

    seed: int = 0
    seeds: int = SEEDS
    dims: Mapping[str, Sequence[int]] = {}
    """Sizes of open dimensions, by name; each combination is tried with each set."""
    input_options: InputOptions = InputOptions()
    """Options for random values; their `dims` apply too."""
    spreads: Sequence[Spread] = SPREADS
    sets: Sequence[DataSet] = ()
    tolerances: Mapping[str, Tolerance] = {}
    """By name of a dtype; they override `onnxjson.running.comparisons.TOLERANCES`."""
    settings: Settings = DEFAULT
    target_settings: Settings | None = None
    timeout: float = TIMEOUT
    trust_links: bool = False


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """Input values of one run."""

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
    """Verify that two models compute the same, in a sandboxed process.

    Args:
        base: the reference model, or its file.
        target: the model that should compute the same, or its file.
        seeds: number of sets of random values.
        seed: seed of the first set.
        dims: sizes of dynamic dimensions by name, one or several; each combination is tried.
        tolerances: by name of a dtype; they override `onnxjson.running.comparisons.TOLERANCES`.
        settings: how both models run.
        timeout: time limit for everything, in seconds.

    Raises:
        EvaluationError: no engine supports one of the models, or the base fails on all values.
        FeedError: random values for an input cannot be generated.
        MissingInputError, AccessDeniedError, FileError, DecodeError, LimitError: a file cannot be read as a model.
    """
    (one, its_file), (other, other_file) = model_and_file(base), model_and_file(target)
    sizes = {name: (size,) if isinstance(size, int) else tuple(size) for name, size in (dims or {}).items()}
    plan = Plan(seed=seed, seeds=seeds, dims=sizes, tolerances=tolerances or {}, settings=settings, timeout=timeout)
    with Verifier(TwoModels(one, other, (its_file, other_file)), plan) as verifier:
        return verifier.result()


def _require_open(outcome: Outcome) -> None:
    """Raise EvaluationError unless both models were opened, or the user interrupted it."""
    refused = outcome.first(Refused)
    if refused is not None:
        raise EvaluationError(f"no engine runs {_SIDES[refused.side]}: {refused.problem}", refused.side)
    open_sides = {each.side for each in outcome.all(Opened)}
    if outcome.problem and len(open_sides) < len(_SIDES):
        side = 1 if 0 in open_sides else 0
        raise EvaluationError(f"{_SIDES[side]} cannot be opened: the process {outcome.problem}", side)


def _packed_feeds(first: Mapping[str, Value], second: Mapping[str, Value]) -> tuple[bytes, bytes]:
    packed = packed_values(first)
    return packed, packed if first == second else packed_values(second)


class Verifier:
    """Compares two models; use it in a ``with`` statement. `onnxjson.running.locating` continues from its result."""

    def __init__(
        self, models: TwoModels, plan: Plan, *, worker: Worker | None = None, on_report: Listener | None = None
    ) -> None:
        self.models = models
        self.plan = plan
        self._is_own = worker is None
        self.worker = worker or Worker()
        self._on_report = on_report
        self.packed: tuple[PackedModel, PackedModel] = (self._packed(0), self._packed(1))
        self.trials: list[Trial] = []
        """The runs that count: those with the first sizes that the base accepts."""
        self._amplifying: dict[str, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_own:
            self.worker.close()

    def _packed(self, side: int) -> PackedModel:
        model, path = (self.models.base, self.models.target)[side], self.models.paths[side]
        return pack_model(model, None if path is None else path.parent, trust_links=self.plan.trust_links)

    def result(self) -> Verification:
        """Run both models and compare their outputs.

        Raises:
            EvaluationError: no engine supports one of the models, or the base fails on all values.
            FeedError: random values for an input cannot be generated.
        """
        pairs = self.models.interface.outputs
        if not pairs and not self.models.interface.missing:
            raise EvaluationError("the base has no outputs, so there is nothing to compare", 0)
        until = time.monotonic() + self.plan.timeout
        # At first each set of values has its own sizes, which reveals sizes that became constants in the target.
        for attempt, cycle in enumerate((ALL_SIZES[0], *ALL_SIZES)):
            try:
                self.trials = list(self._trials(self.plan, cycle, turned=attempt == 0, until=until))
            except (FeedError, LimitError):  # such as sizes that are too big together: what the base said tells more
                if attempt == 0:
                    raise
                break
            outcome = self.compare([trial.feeds for trial in self.trials], pairs)
            _require_open(outcome)
            base_failed = {each.run: each for each in outcome.all(Failed) if each.side == 0}
            # Sizes that need more memory than a run may have are not those of most users: others are tried.
            ended = [each.problem for each in outcome.all(Failed) if each.problem.startswith(OUT_OF_MEMORY)]
            is_too_big = bool(ended) or "(--memory)" in outcome.problem
            has_run = not is_too_big and len(base_failed) < (1 if attempt == 0 else len(self.trials))
            if has_run or outcome.interrupted or not self._has_open_dimensions:
                break
        outcome = self._replaced(outcome, cycle, until)
        outcome = self._rounded(self._tried_further(outcome, cycle, until))
        if len(base_failed) == len(self.trials) and not outcome.interrupted:
            sizes = [f"{visible(name)}={size}" for name, size in self.trials[0].sizes.items()]
            raise EvaluationError(
                f"the base fails on all values that were tried: {base_failed[0].problem}; `onnxjson verify` "
                f"compares on others, with --input or --dim{f' (last: {listed(sizes, 6)})' if sizes else ''}"
            )
        failed = [each for each in outcome.all(Failed) if each.side == 1 and each.problem not in ended]
        if (outcome.problem or ended) and not failed and all(each.comparison.close for each in outcome.all(Compared)):
            reason = f"a model fails: {ended[0]}" if ended else f"the run {outcome.problem}"
            raise EvaluationError(f"{reason}; nothing different was found before")
        return self._verification(outcome)

    def _tried_further(self, outcome: Outcome, cycle: Sequence[int], until: float) -> Outcome:
        """Add runs on other values while an output is NaN or infinite everywhere on those so far."""
        pairs = self.models.interface.outputs
        for spread in () if self.plan.sets else LADDER:
            reports = outcome.all(Compared)
            told = {report.pair for report in reports if is_told(report)}
            is_settled = len(told) == len(pairs) or not all(report.comparison.close for report in reports)
            if is_settled or not reports or outcome.problem or outcome.interrupted:
                break
            further = self._extended(outcome, msgspec.structs.replace(self.plan, spreads=(spread,)), cycle, until)
            if further is None:
                break
            outcome = further
        return outcome

    def _replaced(self, outcome: Outcome, cycle: Sequence[int], until: float) -> Outcome:
        """Add runs on other values for those on which the base fails."""
        wanted = len(self.trials)
        if self.plan.sets or any(len(sizes) > 1 for sizes in self.plan.dims.values()):
            return outcome
        for _ in range(_REPLACEMENTS):
            rejected = {each.run for each in outcome.all(Failed) if each.side == 0}
            lacking = wanted - (len(self.trials) - len(rejected))
            if not 0 < lacking < wanted or outcome.problem or outcome.interrupted:
                break
            further = self._extended(outcome, msgspec.structs.replace(self.plan, seeds=lacking), cycle, until)
            if further is None:
                break
            outcome = further
        return outcome

    def _extended(self, outcome: Outcome, plan: Plan, cycle: Sequence[int], until: float) -> Outcome | None:
        """Add runs on values with other seeds; None if they end early."""
        count = len(self.trials)
        plan = msgspec.structs.replace(plan, seed=plan.seed + count)
        more = list(self._trials(plan, cycle, turned=False, until=until))
        further = self.compare([trial.feeds for trial in more], self.models.interface.outputs)
        if further.problem or further.interrupted:
            return None
        is_named = plan.spreads != self.plan.spreads
        self.trials += [
            msgspec.structs.replace(each, name=f"{each.name}, {plan.spreads[0]}") if is_named else each for each in more
        ]
        return outcome._replace(reports=(*outcome.reports, *[
            msgspec.structs.replace(report, run=report.run + count)
            for report in further.reports if isinstance(report, Compared | Failed)
        ]))  # fmt: skip

    def _rounded(self, outcome: Outcome) -> Outcome:
        """Accept small differences of elements that rounding changes as much in the base; see `rounding`."""
        far = {
            (report.run, report.pair)
            for report in outcome.all(Compared)
            if not (report.comparison.close or report.comparison.exact or report.comparison.nonfinite)
            and error_share(report.comparison) <= _ROUNDING
        }
        runs, numbers = sorted({run for run, _ in far}), sorted({pair for _, pair in far})
        if not far or outcome.problem or outcome.interrupted or self.plan.tolerances:
            return outcome
        pairs = self.models.interface.outputs
        again = self.compare(
            [self.trials[run].feeds for run in runs], [pairs[number] for number in numbers], rounding=True
        )
        close = {(runs[each.run], numbers[each.pair]) for each in again.all(Compared) if each.comparison.close} & far
        self._amplifying = {pairs[pair][0]: None for _, pair in sorted(close)}
        return outcome._replace(reports=tuple([
            msgspec.structs.replace(report, comparison=msgspec.structs.replace(
                report.comparison, outside=0, stray=report.comparison.stray + report.comparison.outside
            )) if isinstance(report, Compared) and (report.run, report.pair) in close else report
            for report in outcome.reports
        ]))  # fmt: skip

    @cached_property
    def _differing(self) -> dict[str, Difference]:
        """Constants that differ between the models, by name."""
        folders = [None if path is None else path.parent for path in self.models.paths]
        return differences(self.models.indices, folders)

    def compare(
        self,
        feeds: Sequence[tuple[Mapping[str, Value], Mapping[str, Value]]],
        pairs: Sequence[tuple[str, str]],
        *,
        sides: tuple[int, int] = (0, 1),
        rounding: bool = False,
        batches: Sequence[Sequence[int]] | None = None,
        reshaped: bool = False,
    ) -> Outcome:
        """Run two models on the same values and compare some of their values.

        Args:
            sides: the two models; the base twice shows whether its results are deterministic.
            rounding: whether what rounding does to the base is allowed.
            batches: pairs that are compared together; all of them if None.
            reshaped: whether values of different shapes with equal numbers of elements are compared.
        """
        one, other = self.packed[sides[0]], self.packed[sides[1]]
        twice = sides[0] == sides[1]
        level: Level = "all" if self.plan.settings.level == "off" else "off"
        task = CompareTask(
            base=one.subject,
            target=msgspec.structs.replace(other.subject, seed=_OTHER_SEED) if twice else other.subject,
            settings=self.plan.settings,
            feeds=tuple([_packed_feeds(*each) for each in feeds]),
            pairs=tuple(pairs),
            batches=(tuple(range(len(pairs))),) if batches is None else tuple(map(tuple, batches)),
            reshaped=reshaped,
            tolerances={**TOLERANCES, **self.plan.tolerances},
            least=tuple(self._least([pair[0] for pair in pairs], sides[0])),
            target_settings=self.plan.target_settings if sides[1] else None,
            rounding=level if rounding else None,
        )
        return execute(
            self.worker, task, timeout=self.plan.timeout, on_report=self._on_report, size=max(one.size, other.size)
        )

    def _least(self, names: Sequence[str], side: int = 0) -> list[Tolerance]:
        """Return the least tolerance of values: that of the least precise dtype on the way in the reference.

        EXACT if the user chose tolerances.
        """
        if self.plan.tolerances:
            return [EXACT] * len(names)
        return least_tolerances(self.models.indices[side], names, TOLERANCES)

    def _trials(self, plan: Plan, cycle: Sequence[int], *, turned: bool, until: float) -> Iterator[Trial]:
        rows = rows_by_input(self.models.indices[0], free_inputs(self.models.base), self._differing)
        self._has_open_dimensions = False
        sets = list(plan.sets) or [DataSet(f"seed {plan.seed + each}", {}, {}) for each in range(plan.seeds)]
        choices = [[(name, size) for size in sizes] for name, sizes in plan.dims.items()]
        for chosen in itertools.product(*choices):
            dims = {**plan.input_options.dims, **dict(chosen)}
            input_options = msgspec.structs.replace(plan.input_options, dims=dims)
            inputs = self.models.inputs(input_options, self.worker)
            for number, data_set in enumerate(sets):
                if number and data_set.inputs:  # the given values of the former set have fixed the sizes
                    inputs = self.models.inputs(input_options, self.worker)
                spread = plan.spreads[number % len(plan.spreads)]
                turn = number % len(cycle) if turned else 0
                own_cycle = inputs.cycle_for(spread, (*cycle[turn:], *cycle[:turn]))
                first, second = inputs.feeds(
                    data_set.inputs, (plan.seed + number,), spread=spread, cycle=own_cycle, until=until, rows=rows
                )
                self._has_open_dimensions |= bool(inputs.shapes.open_dimensions())
                yield Trial(name=data_set.name, sizes=inputs.shapes.sizes(own_cycle), feeds=(first, second))

    def _verification(self, outcome: Outcome) -> Verification:
        # Values that the base rejects do not count against the target.
        useless = {each.run for each in outcome.all(Failed) if each.side == 0}
        kept = [number for number in range(len(self.trials)) if number not in useless]
        numbers = {number: place for place, number in enumerate(kept)}
        self.trials = [self.trials[number] for number in kept]
        compared = {(numbers[each.run], each.pair): each for each in outcome.all(Compared)}
        failed = {numbers[each.run]: each for each in outcome.all(Failed) if each.side == 1 and each.run in numbers}
        pairs = self.models.interface.outputs
        runs = []
        for number, trial in enumerate(self.trials):
            outputs = [compared[number, pair] for pair in range(len(pairs)) if (number, pair) in compared]
            if len(outputs) < len(pairs) and outcome.interrupted:
                break
            problem = self._problem(failed.get(number), outcome, is_complete=len(outputs) == len(pairs))
            verdict: Verdict = "failed" if problem else verdict_on(outputs)
            runs.append(RunVerdict(name=trial.name, sizes=trial.sizes, verdict=verdict, problem=problem))
        engines = {each.side: each.engine for each in outcome.all(Opened)}
        tolerances, least = {**TOLERANCES, **self.plan.tolerances}, self._least([one for one, _ in pairs])
        results = [
            output_result(names, {run: each for (run, its), each in compared.items() if its == pair}, tolerances, floor)
            for pair, (names, floor) in enumerate(zip(pairs, least, strict=True))
        ]
        results += [OutputResult(name=name, target_name=None) for name in self.models.interface.missing]
        result = Verification(
            runs=tuple(runs),
            outputs=tuple(results),
            engines=(engines.get(0, ""), engines.get(1, "")),
            is_interrupted=outcome.interrupted,
        )
        notes = [*notes_on(result, self.models.interface, self._differing, self._amplifying)]
        if result.failed and not result.is_interrupted:
            notes += self._nondeterminism()
        if useless:
            notes.append(f"the base fails on {len(useless)} more sets of values, which do not count")
        return msgspec.structs.replace(result, notes=tuple(notes))

    def _problem(self, failed: Failed | None, outcome: Outcome, *, is_complete: bool) -> str:
        """Return why a run has no results to compare; "" if it has."""
        missing = self.models.interface.missing
        if missing:
            return f'the target has no output "{visible(missing[0])}"'
        if failed is not None:
            return f"{_SIDES[failed.side]}: {failed.problem}"
        return "" if is_complete else f"the run {outcome.problem or 'reported nothing'}"

    def _nondeterminism(self) -> Iterator[str]:
        """Yield a note for each output of the base that differs between two runs."""
        pairs = [(one, one) for one, _ in self.models.interface.outputs]
        feeds = [(trial.feeds[0], trial.feeds[0]) for trial in self.trials[:1]]
        outcome = self.compare(feeds, pairs, sides=(0, 0))
        for report in outcome.all(Compared):
            if not report.comparison.close:
                yield f'the base itself returns a different "{visible(pairs[report.pair][0])}" in each run'
