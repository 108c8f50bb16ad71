"""One model run: what it gives for values that are given or made up, how long that takes, and where the time goes.

::

    result = run("model.onnx", {"image": array}, repeat=100)
    print(result.arrays["probabilities"], result.median, result.percentile(95))
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onnxjson.display import visible
from onnxjson.document import Graph, Model, Type
from onnxjson.errors import EvaluationError, FeedError
from onnxjson.index import Index
from onnxjson.running.feeds import Spread
from onnxjson.running.guarded import TIMEOUT, Listener, Outcome, Sent, execute, sendable
from onnxjson.running.input_files import DataSet
from onnxjson.running.inputs import Inputs, Wishes, free_inputs
from onnxjson.running.tasks import (
    Began,
    Failed,
    Gave,
    NodeTime,
    Opened,
    Profiled,
    Refused,
    Report,
    RunTask,
    SeriesTask,
    Settings,
    Timed,
)
from onnxjson.running.tolerances import Comparison, Tolerance
from onnxjson.running.value_comparison import compare_values, dtype_of
from onnxjson.running.values import Value, as_array, as_value, packed_values, unpacked_values
from onnxjson.worker import Worker

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEFAULT = Settings(level="all")
"""As onnxruntime runs a model if nobody says otherwise, but in one thread."""


class Compared(NamedTuple):
    """An output and the one that was recorded."""

    name: str
    dtype: str
    comparison: Comparison


class Case(NamedTuple):
    """One run."""

    name: str
    """Where its values come from: "seed 0", the name of a folder."""
    inputs: dict[str, Value]
    outputs: dict[str, Value]
    """Empty where it gave nothing."""
    seconds: float | None
    problem: str
    """Why it gave nothing; made visible."""
    expected: tuple[Compared, ...] = ()
    """The outputs beside those that were recorded."""

    @property
    def is_fine(self) -> bool:
        """Whether it gave something, and what was recorded."""
        return not self.problem and all(each.comparison.close for each in self.expected)


class RunResult(NamedTuple):
    """What came of running a model."""

    engine: str
    """What evaluated it: "onnxruntime" or "reference"."""
    providers: tuple[str, ...]
    settings: Settings
    opening_seconds: float
    """What it took to make the model ready, its optimisation included."""
    sizes: dict[str, int]
    """Of open dimensions, by name."""
    cases: tuple[Case, ...]
    times: tuple[float, ...]
    """Seconds of each timed run."""
    profile: tuple[NodeTime, ...]
    """The slowest node first; empty where nothing was profiled."""
    profiled_runs: int
    problem: str
    """Why it ended before everything was done; "" where it did not."""
    is_interrupted: bool

    @property
    def outputs(self) -> dict[str, Value]:
        """What the first run gave."""
        return self.cases[0].outputs

    @property
    def arrays(self) -> "dict[str, Any]":
        """The same as arrays of numpy, lists of them, and dictionaries."""
        return {name: as_array(value) for name, value in self.outputs.items()}

    @property
    def median(self) -> float | None:
        """Seconds; None where nothing was timed."""
        return self.percentile(50)

    def percentile(self, share: float) -> float | None:
        """The time that `share` per cent of the timed runs stay below, in seconds."""
        return percentile(self.times, share)


def percentile(times: Sequence[float], share: float) -> float | None:
    """The value that `share` per cent stay below, between two of them in proportion; None where there are none."""
    if not times:
        return None
    ordered = sorted(times)
    place = (len(ordered) - 1) * share / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def run(
    model: Model | str | Path,
    inputs: "Mapping[str, NDArray[Any] | Value] | None" = None,
    *,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    settings: Settings = DEFAULT,
    repeat: int = 0,
    warm_up: int = 1,
    profile: int = 0,
    timeout: float = TIMEOUT,
) -> RunResult:
    """Runs a model in a guarded process.

    Args:
        model: the model, or its file.
        inputs: arrays of numpy, lists of them for sequences, or tensors; those that are missing are made up.
        seed: where made-up values come from.
        dims: sizes of open dimensions, by name; 1 for those that are missing.
        settings: level of optimisation, threads, providers.
        repeat: how many runs are timed.
        warm_up: how many runs go before these.
        profile: how many runs are profiled.
        timeout: seconds for everything.

    Raises:
        EvaluationError: nothing runs the model, or it fails on these values.
        FeedError: values do not fit its inputs.
        MissingInputError, AccessDeniedError, FileError, DecodeError, LimitError: its file cannot be read as a model.
    """
    from onnxjson import files

    path = None if isinstance(model, Model) else Path(model)
    loaded = model if isinstance(model, Model) else files.load(model).model
    given = {name: as_value(value) for name, value in (inputs or {}).items()}
    result = run_cases(
        loaded,
        None if path is None else path.parent,
        [DataSet(f"seed {seed}", given, {})],
        seed=seed,
        wishes=Wishes(dims=dims or {}),
        settings=settings,
        repeat=repeat,
        warm_up=warm_up,
        profile=profile,
        timeout=timeout,
    )
    if result.cases[0].problem:
        raise EvaluationError(f"the model fails on these values: {result.cases[0].problem}")
    if result.problem:
        raise EvaluationError(result.problem)
    return result


def run_cases(
    model: Model,
    folder: Path | None,
    sets: Sequence[DataSet],
    *,
    seed: int = 0,
    wishes: Wishes | None = None,
    spread: Spread = "normal",
    settings: Settings = DEFAULT,
    tolerances: Mapping[str, Tolerance] | None = None,
    repeat: int = 0,
    warm_up: int = 1,
    profile: int = 0,
    timeout: float = TIMEOUT,
    trust_links: bool = False,
    worker: Worker | None = None,
    heard: Listener | None = None,
) -> RunResult:
    """Runs a model on several sets of values; see `run`. What a run could not do is said in its case.

    Args:
        model: stays as it is.
        folder: where its external data begins.
        sets: for each run the values that are given, and what was recorded.
        seed: where values come from that are not given; each set has its own.
        wishes: how these are made up.
        spread: how their numbers lie.
        settings: how the model runs.
        tolerances: by name of a dtype, for what was recorded.
        repeat: how many runs of the first set are timed.
        warm_up: how many runs go before these.
        profile: how many runs are profiled.
        timeout: seconds for everything.
        trust_links: see `onnxjson.external.Resolver`.
        worker: the guarded process, if there is one already.
        heard: is told everything at once, in a thread of its own.

    Raises:
        EvaluationError: no engine takes the model, or the process crashed before the first run.
        FeedError: values do not fit its inputs.
    """
    sent = sendable(model, folder, trust_links=trust_links)
    with nullcontext(worker) if worker is not None else Worker() as guarded:
        fed = _Fed(model, guarded, wishes or Wishes(), sets, seed, spread)
        task = _task(sent, fed, settings, repeat=repeat, warm_up=warm_up, profile=profile)
        outcome = execute(guarded, task, timeout=timeout, heard=heard, size=sent.size)
    return _result(outcome, fed, settings, tolerances)


def run_many(
    models: Sequence[tuple[Model, DataSet]],
    worker: Worker,
    *,
    settings: Settings = DEFAULT,
    tolerances: Sequence[Mapping[str, Tolerance] | None] | None = None,
    timeout: float = TIMEOUT,
) -> list[RunResult | EvaluationError]:
    """Runs many small models, each once, in few processes: one that crashes costs the others nothing.

    Args:
        models: without external data, each with the values that are given to it.
        worker: the guarded process.
        settings: how they run.
        tolerances: for each model, see `run_cases`.
        timeout: seconds for all.

    Raises:
        FeedError: values do not fit the inputs of a model.
    """
    fed = [_Fed(model, worker, Wishes(), [each], 0, "normal") for model, each in models]
    tasks = [_task(sendable(model, None), each, settings) for (model, _), each in zip(models, fed, strict=True)]
    results: list[RunResult | EvaluationError] = []
    while len(results) < len(tasks):
        start = len(results)
        outcome = execute(worker, SeriesTask(tasks=tuple(tasks[start:])), timeout=timeout)
        reports: list[list[Report]] = []
        for report in outcome.reports:
            if isinstance(report, Began):
                reports.append([])
            elif reports:
                reports[-1].append(report)
        for number, each in enumerate(reports or [[]]):
            is_last = number == max(len(reports), 1) - 1
            part = Outcome(tuple(each), outcome.problem if is_last else "", outcome.interrupted and is_last)
            allowed = None if tolerances is None else tolerances[start + number]
            try:
                results.append(_result(part, fed[start + number], settings, allowed))
            except EvaluationError as error:
                results.append(error)
    return results


class _Fed:
    """The values of all runs."""

    def __init__(
        self, model: Model, worker: Worker, wishes: Wishes, sets: Sequence[DataSet], seed: int, spread: Spread
    ) -> None:
        index = Index(model)
        names = list(free_inputs(model))
        self.sets = sets
        self.values: list[dict[str, Value]] = []
        self.sizes: dict[str, int] = {}
        for number, each in enumerate(sets):
            inputs = Inputs([index], [(name,) for name in names], wishes, worker)
            unknown = [name for name in names if name not in each.inputs]
            if each.outputs and unknown:
                raise FeedError(f'{each.name} has recorded outputs, but no value of "{visible(unknown[0])}"')
            given = inputs.checked(each.inputs)
            self.values += inputs.feeds(given, (seed, number), spread=spread)
            if not number:
                self.sizes = inputs.sizes((1,))


def _task(sent: Sent, fed: _Fed, settings: Settings, *, repeat: int = 0, warm_up: int = 0, profile: int = 0) -> RunTask:
    return RunTask(
        subject=sent.subject,
        settings=settings,
        feeds=tuple([packed_values(values) for values in fed.values]),
        warm_up=warm_up,
        repeat=repeat,
        profiled=profile,
    )


def _result(outcome: Outcome, fed: _Fed, settings: Settings, tolerances: Mapping[str, Tolerance] | None) -> RunResult:
    opened = next((each for each in outcome.reports if isinstance(each, Opened)), None)
    refused = next((each for each in outcome.reports if isinstance(each, Refused)), None)
    if refused is not None:
        raise EvaluationError(f"nothing runs this model: {refused.problem}")
    if opened is None and not outcome.interrupted:
        raise EvaluationError(f"the run {outcome.problem or 'gave nothing'}; nothing was run")
    gave = {each.run: each for each in outcome.reports if isinstance(each, Gave)}
    failed = {each.run: each.problem for each in outcome.reports if isinstance(each, Failed)}
    cases = []
    for number, (each, values) in enumerate(zip(fed.sets, fed.values, strict=True)):
        found = gave.get(number)
        if found is None:
            ended = "interrupted before it" if outcome.interrupted else f"the run {outcome.problem}"
            cases.append(Case(each.name, values, {}, None, failed.get(number, ended)))
            continue
        outputs = unpacked_values(found.values)
        expected = tuple([
            Compared(name, dtype_of(value), compare_values(value, outputs.get(name), tolerances))
            for name, value in each.outputs.items()
        ])  # fmt: skip
        cases.append(Case(each.name, values, outputs, found.seconds, "", expected))
    profiles = [each for each in outcome.reports if isinstance(each, Profiled)]
    return RunResult(
        engine="" if opened is None else opened.engine,
        providers=() if opened is None else opened.providers,
        settings=settings,
        opening_seconds=0.0 if opened is None else opened.seconds,
        sizes=fed.sizes,
        cases=tuple(cases),
        times=tuple([each.seconds for each in outcome.reports if isinstance(each, Timed)]),
        profile=profiles[-1].nodes if profiles else (),
        profiled_runs=profiles[-1].runs if profiles else 0,
        problem=f"the run {outcome.problem}" if outcome.problem else "",
        is_interrupted=outcome.interrupted,
    )


def outputs_of(model: Model) -> dict[str, Type | None]:
    """The outputs of a model, in their order."""
    graph = model.graph or Graph()
    return {each.name: each.type for each in graph.output if each.name}
