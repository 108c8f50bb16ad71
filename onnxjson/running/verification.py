"""Verify that two models compute the same: run both on the same values and compare their outputs.

A difference proves that the models are not equivalent; equal results on some inputs only make it plausible that they
are.
"""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final, Literal, Self

import msgspec

from onnxjson.model.display import listed, visible
from onnxjson.model.document import Model
from onnxjson.model.errors import EvaluationError, FeedError, LimitError
from onnxjson.model.methods import Brief, Reported
from onnxjson.running.engines import OUT_OF_MEMORY
from onnxjson.running.input_files import DataSet
from onnxjson.running.inputs import InputOptions
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.precision import least_tolerances
from onnxjson.running.random_values import SPREADS, Spread
from onnxjson.running.sandbox import TIMEOUT, Listener, Outcome, PackedModel, execute, pack_model
from onnxjson.running.tasks import Compared, CompareTask, Failed, Opened, Refused, Settings
from onnxjson.running.value_types import ALL_SIZES
from onnxjson.running.values import (
    EXACT,
    TOLERANCES,
    Comparison,
    Tolerance,
    Value,
    badness,
    furthest,
    looser,
    packed_values,
    tolerance_of,
)
from onnxjson.running.worker import Worker
from onnxjson.storage.api import model_and_file

SEEDS: Final = 3

DEFAULT: Final = Settings()
"""Default settings: no optimization by onnxruntime, one thread."""

_OTHER_SEED: Final = 7919
_SIDES: Final = ("the base", "the target")

Verdict = Literal["equal", "within-tolerance", "different", "failed"]
"""Verdict on a run: equal values, values within the tolerance, other values, or a failure of one model."""


class OutputResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result for one output over all runs."""

    name: str
    """Name in the base."""
    target_name: str | None
    """Name in the target; None if it has no counterpart."""
    dtype: str = ""
    tolerance: Tolerance = EXACT
    compared: int = 0
    failed: int = 0
    """Number of these runs in which it is not close."""
    elements: int = 0
    worst: Comparison | None = None
    """Comparison of the worst run, with the greatest differences of all runs."""
    worst_run: int | None = None


class RunVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Verdict on one run of both models."""

    name: str
    """Source of its values: "seed 0", or the name of a folder."""
    sizes: dict[str, int]
    verdict: Verdict
    problem: str = ""


class Verification(Brief, Reported, msgspec.Struct, frozen=True, kw_only=True):
    """Result of a verification."""

    verdict_name: ClassVar = ".equal"

    runs: tuple[RunVerdict, ...]
    outputs: tuple[OutputResult, ...]
    engines: tuple[str, str]
    notes: tuple[str, ...] = ()
    """Further notes for the user; made visible."""
    is_interrupted: bool = False

    @property
    def failed(self) -> int:
        """Number of runs in which the results differ or a model fails."""
        return sum(run.verdict in ("different", "failed") for run in self.runs)

    @property
    def equal(self) -> bool:
        """Whether all runs are equal within the tolerance, and all outputs have counterparts."""
        return bool(self.runs) and not self.failed and all(each.target_name is not None for each in self.outputs)


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
    """By name of a dtype; they override `onnxjson.running.values.TOLERANCES`."""
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
    """Verify that two models compute the same, in a guarded process.

    Args:
        base: the reference model, or its file.
        target: the model that should compute the same, or its file.
        seeds: number of sets of random values.
        seed: seed of the first set.
        dims: sizes of open dimensions by name, one or several; each combination is tried.
        tolerances: by name of a dtype; they override `onnxjson.running.values.TOLERANCES`.
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
                self.trials = list(self._trials(cycle, turned=attempt == 0, until=until))
            except (FeedError, LimitError):  # such as sizes that are too big together: what the base said tells more
                if attempt == 0:
                    raise
                break
            outcome = self.compare([trial.feeds for trial in self.trials], pairs)
            _require_open(outcome)
            base_failed = {each.run: each for each in outcome.all(Failed) if each.side == 0}
            # Sizes that need more memory than a run may have are not those of most users: others are tried.
            ended = [each.problem for each in outcome.all(Failed) if each.problem.startswith(OUT_OF_MEMORY)]
            has_run = not ended and len(base_failed) < (1 if attempt == 0 else len(self.trials))
            if has_run or outcome.interrupted or not self._has_open_dimensions:
                break
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

    def compare(
        self,
        feeds: Sequence[tuple[Mapping[str, Value], Mapping[str, Value]]],
        pairs: Sequence[tuple[str, str]],
        *,
        sides: tuple[int, int] = (0, 1),
        batches: Sequence[Sequence[int]] | None = None,
        reshaped: bool = False,
    ) -> Outcome:
        """Run two models on the same values and compare some of their values.

        Args:
            sides: the two models; the base twice shows whether its results are deterministic.
            batches: pairs that are compared together; all of them if None.
            reshaped: whether values of different shapes with equal numbers of elements are compared.
        """
        one, other = self.packed[sides[0]], self.packed[sides[1]]
        twice = sides[0] == sides[1]
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

    def _trials(self, cycle: Sequence[int], *, turned: bool, until: float) -> Iterator[Trial]:
        plan = self.plan
        self._has_open_dimensions = False
        sets = list(plan.sets) or [DataSet(f"seed {plan.seed + each}", {}, {}) for each in range(plan.seeds)]
        choices = [[(name, size) for size in sizes] for name, sizes in plan.dims.items()]
        for chosen in itertools.product(*choices):
            dims = {**plan.input_options.dims, **dict(chosen)}
            input_options = msgspec.structs.replace(plan.input_options, dims=dims)
            inputs = self.models.inputs(input_options, self.worker)
            for number, each in enumerate(sets):
                if number and each.inputs:  # the given values of the former set have fixed the sizes
                    inputs = self.models.inputs(input_options, self.worker)
                spread = plan.spreads[number % len(plan.spreads)]
                turn = number % len(cycle) if turned else 0
                own = (*cycle[turn:], *cycle[:turn])
                first, second = inputs.feeds(each.inputs, (plan.seed + number,), spread=spread, cycle=own, until=until)
                self._has_open_dimensions |= bool(inputs.shapes.open_dimensions())
                yield Trial(name=each.name, sizes=inputs.shapes.sizes(own), feeds=(first, second))

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
            found = [compared[number, pair] for pair in range(len(pairs)) if (number, pair) in compared]
            if len(found) < len(pairs) and outcome.interrupted:
                break
            runs.append(self._verdict(trial, found, failed.get(number), outcome))
        engines = {each.side: each.engine for each in outcome.all(Opened)}
        results = [self._output(pair, names, compared) for pair, names in enumerate(pairs)]
        results += [OutputResult(name=name, target_name=None) for name in self.models.interface.missing]
        result = Verification(
            runs=tuple(runs),
            outputs=tuple(results),
            engines=(engines.get(0, ""), engines.get(1, "")),
            is_interrupted=outcome.interrupted,
        )
        notes = list(self._notes(result))
        if useless:
            notes.append(f"the base fails on {len(useless)} more sets of values, which do not count")
        return msgspec.structs.replace(result, notes=tuple(notes))

    def _verdict(self, trial: Trial, found: Sequence[Compared], failed: Failed | None, outcome: Outcome) -> RunVerdict:
        verdict: Verdict = "equal"
        problem = ""
        missing = self.models.interface.missing
        if missing:
            verdict, problem = "failed", f'the target has no output "{visible(missing[0])}"'
        elif failed is not None:
            verdict, problem = "failed", f"{_SIDES[failed.side]}: {failed.problem}"
        elif len(found) < len(self.models.interface.outputs):
            verdict, problem = "failed", f"the run {outcome.problem or 'reported nothing'}"
        elif not all(each.comparison.close for each in found):
            verdict = "different"
        elif not all(each.comparison.equal for each in found):
            verdict = "within-tolerance"
        return RunVerdict(name=trial.name, sizes=trial.sizes, verdict=verdict, problem=problem)

    def _output(self, pair: int, names: tuple[str, str], compared: Mapping[tuple[int, int], Compared]) -> OutputResult:
        by_run = {run: report for (run, its), report in compared.items() if its == pair}
        if not by_run:
            return OutputResult(name=names[0], target_name=names[1])
        found = list(by_run.values())
        least = self._least(names[:1])[0]
        worst_run, worst = max(by_run.items(), key=lambda each: badness(each[1].comparison))
        tolerance = tolerance_of(worst.dtypes, {**TOLERANCES, **self.plan.tolerances})
        return OutputResult(
            name=names[0],
            target_name=names[1],
            dtype=" / ".join(dict.fromkeys(worst.dtypes)),
            tolerance=tolerance if tolerance == EXACT else looser((tolerance, least)),
            compared=len(found),
            failed=sum(not each.comparison.close for each in found),
            worst=furthest([each.comparison for each in found]),
            elements=sum(each.comparison.elements for each in found),
            worst_run=worst_run,
        )

    def _notes(self, result: Verification) -> Iterator[str]:
        interface = self.models.interface
        for one, other in interface.inputs:
            if one is None:
                yield f'only the target has the input "{visible(str(other))}"; it gets random values'
            elif other is None:
                yield f'only the base has the input "{visible(one)}"'
        for name in interface.added:
            yield f'only the target has the output "{visible(name)}"'
        renamed = [f'"{visible(one)}" is "{visible(other)}"' for one, other in interface.outputs if one != other]
        if renamed:
            yield f"outputs by structure: {', '.join(renamed[:5])}"
        for each in result.outputs:
            if each.compared and not each.elements and each.dtype != "nothing":
                yield f'"{visible(each.name)}" has no elements on these values, so nothing was compared'
            elif (at := each.worst) and not (at.exact or at.unequal or at.problem) and at.largest_absolute is None:
                yield f'"{visible(each.name)}" is NaN or infinite everywhere on these values, so nothing was compared'
        if result.engines[0] != result.engines[1] and all(result.engines):
            yield f"the base was evaluated by {result.engines[0]}, the target by {result.engines[1]}"
        if result.failed and not result.is_interrupted:
            yield from self._nondeterminism()

    def _nondeterminism(self) -> Iterator[str]:
        """Yield a note for each output of the base that differs between two runs."""
        pairs = [(one, one) for one, _ in self.models.interface.outputs]
        feeds = [(trial.feeds[0], trial.feeds[0]) for trial in self.trials[:1]]
        outcome = self.compare(feeds, pairs, sides=(0, 0))
        for report in outcome.all(Compared):
            if not report.comparison.close:
                yield f'the base itself returns another "{visible(pairs[report.pair][0])}" each time it runs'
