"""Benchmarks: build variants, verify, score and time them in turns; an interruption keeps the results so far."""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from onnxjson.model.display import visible
from onnxjson.model.document import Model, Type
from onnxjson.model.errors import EvaluationError, FeedError, OnnxJsonError
from onnxjson.optimizing.passes import Pipeline, Step
from onnxjson.optimizing.passes.big_constants import InternalizedModel, Stage, stage_of
from onnxjson.optimizing.passes.declaration import is_installed
from onnxjson.optimizing.passes.measuring import MeasuredPass
from onnxjson.optimizing.trace_records import size_of
from onnxjson.optimizing.variants import ORIGINAL, BenchReport, BenchRow, Grid, Variant, verdict_fields
from onnxjson.running import tasks
from onnxjson.running.comparisons import Tolerance
from onnxjson.running.input_files import DataSet
from onnxjson.running.inputs import InputOptions, free_inputs, inputs_of, options_by_model
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.random_values import NEAR, SPREADS
from onnxjson.running.sandbox import TIMEOUT, execute, pack_model
from onnxjson.running.tasks import Failed, Opened, RaceTask, Runner, Scored, ScoreTask, Settings, Started, Timed
from onnxjson.running.values import packed_values
from onnxjson.running.verification import SEEDS, Plan, Verifier
from onnxjson.running.worker import Worker

Say = Callable[[str], None]

_STARTS: Final = 3
"""Default number of times that a session is opened."""


class Subject(NamedTuple):
    """A model to be benchmarked."""

    name: str
    model: Model
    folder: Path | None = None
    """Folder that locations of external data are relative to."""
    sets: Sequence[DataSet] = ()
    """Values of its inputs; timed runs use the first set. Without any, all inputs are random."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a benchmark."""

    settings: Settings = Settings(level="all")
    grid: Grid | None = None
    rounds: int = 50
    warm_up: int = 3
    starts: int = _STARTS
    seconds: float = 60.0
    """Time in seconds after which no further round starts."""
    seed: int = 0
    seeds: int = SEEDS
    input_options: InputOptions = InputOptions()
    tolerances: Mapping[str, Tolerance] = {}
    script: Path | None = None
    """Python file that scores models; see `onnxjson.running.executing`."""
    data: tuple[str, ...] = ()
    """Files of input values, for passes that calibrate."""
    timeout: float = TIMEOUT
    trust: bool = False
    """Whether `script` and passes of the user run outside the box of `onnxjson.running.box`."""


class _Entry:
    """A row that is not complete yet."""

    def __init__(self, subject: int, variant: Variant, settings: Settings, name: str) -> None:
        self.subject = subject
        self.variant = variant
        self.row = BenchRow(
            model=name,
            variant=variant.name,
            passes=tuple(map(str, variant.steps)),
            is_exact=variant.is_exact,
            settings=settings,
        )
        self.stage: Stage
        """The variant, and with the original, `models`, once it is built; its row then has the number of nodes."""
        self.models: TwoModels

    def note(self, **found: object) -> None:
        self.row = msgspec.structs.replace(self.row, **found)


class Bench:
    """Benchmarks variants of models; use it in a ``with`` statement.

    Args:
        variants: variants of each model; the unchanged model is always the first, whether it is listed or not.
    """

    def __init__(
        self, subjects: Sequence[Subject], variants: Sequence[Variant], options: Options, say: Say | None = None
    ) -> None:
        self._subjects = subjects
        self._input_options = options_by_model([each.model for each in subjects], options.input_options)
        self._options = options
        self._say = say or (lambda _: None)
        self._worker = Worker()
        self._pipeline = Pipeline(seconds=options.timeout, trust=options.trust)
        chosen = [*variants] if any(not each.steps for each in variants) else [ORIGINAL, *variants]
        self._entries = [
            _Entry(number, variant, settings, subject.name)
            for number, subject in enumerate(subjects)
            for variant in chosen
            for settings in self._settings(variant)
        ]
        self._stages: dict[tuple[int, tuple[str, ...]], Stage | OnnxJsonError] = {}
        self._sizes: dict[str, dict[str, int]] = {}
        self._drawn: list[tuple[bytes, dict[str, int]]] = []
        """Input values of each unchanged model in timed runs, and sizes of its symbolic dimensions."""
        self._is_interrupted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipeline.close()
        self._worker.close()

    def _settings(self, variant: Variant) -> list[Settings]:
        base = self._options.settings
        base = msgspec.structs.replace(base, level=variant.level or base.level)
        return [base] if self._options.grid is None else self._options.grid.settings(base)

    def _announced(self, work: str) -> Iterator[_Entry]:
        """Yield the entries that nothing failed for, each after a progress message."""
        for place, entry in enumerate(self._entries, 1):
            if not entry.row.problem:
                self._say(f"{work}: {entry.row.variant} ({place} of {len(self._entries)})")
                yield entry

    def run(self) -> BenchReport:
        """Run all steps; an interruption keeps the results so far.

        A failure of one variant is stored in its row.

        Raises:
            FeedError: random inputs cannot be generated, or given values do not fit.
        """
        self._require_values()
        try:
            self._build()
            self._verify()
            self._score()
            self._race()
        except KeyboardInterrupt:
            self._is_interrupted = True
        return BenchReport(
            rows=tuple([entry.row for entry in self._entries]),
            sizes=self._sizes,
            rounds=self._options.rounds,
            is_tuned=self._options.grid is not None,
            is_interrupted=self._is_interrupted,
        )

    def models(self) -> list[tuple[str, str, bytes]]:
        """Return the variants that were built: name of the model, name of the variant, serialized model."""
        found = {(each.row.model, each.row.variant): each.stage.data for each in self._entries
                 if each.row.nodes is not None}  # fmt: skip
        return [(model, variant, data) for (model, variant), data in found.items()]

    def _require_values(self) -> None:
        """Raise FeedError unless every model has values for its inputs, before any time is spent."""
        until = time.monotonic() + self._options.timeout
        for subject, input_options in zip(self._subjects, self._input_options, strict=True):
            try:
                inputs = inputs_of(subject.model, input_options, self._worker)
                for place, each in enumerate(subject.sets or [DataSet("", {}, {})]):
                    (values,) = inputs.feeds(each.inputs, (self._options.seed, 0), until=until)
                    if not place:
                        self._drawn.append((packed_values(values), inputs.shapes.sizes((1,))))
            except FeedError as error:
                raise FeedError(f"{visible(subject.name, None)}: {error}") from error

    def _build(self) -> None:
        for number, subject in enumerate(self._subjects):
            whole = InternalizedModel(subject.model, subject.folder or Path()).model
            self._stages[number, ()] = stage_of(whole)
        for entry in self._announced("creating variants"):
            try:
                stage = self._stage(entry.subject, entry.variant.steps)
            except OnnxJsonError as error:
                entry.note(problem=str(error), verdict="fails")
                continue
            found = size_of(stage.model, stage.size)
            entry.stage, entry.models = stage, TwoModels(self._stage(entry.subject, ()).model, stage.model)
            entry.note(nodes=found.nodes, parameters=found.parameters, bytes=found.bytes)

    def _stage(self, number: int, steps: tuple[Step, ...]) -> Stage:
        key = number, tuple(map(str, steps))
        if key not in self._stages:
            before = self._stage(number, steps[:-1])
            step = self._with_values(steps[-1], number)
            try:
                (result,) = self._pipeline.run(before.model, [step], self._subjects[number].folder)
                self._stages[key] = result.after
            except OnnxJsonError as error:
                self._stages[key] = error
        reached = self._stages[key]
        if isinstance(reached, OnnxJsonError):
            raise reached
        return reached

    def _with_values(self, step: Step, number: int) -> Step:
        """Return the step with the input values of the benchmark, if the pass needs values and names none."""
        subject, options = step.subject, self._options
        if not isinstance(subject, MeasuredPass):
            return step
        if not subject.dims and self._input_options[number].dims:
            subject = msgspec.structs.replace(subject, dims=dict(self._input_options[number].dims))
        if not subject.data and options.data:
            subject = msgspec.structs.replace(subject, data=options.data)
        return Step(subject, step.repeats)

    def _verify(self) -> None:
        options = self._options
        for entry in self._announced("verifying"):
            plan = Plan(
                seed=options.seed,
                seeds=options.seeds,
                input_options=self._input_options[entry.subject],
                # Calibrated ranges only hold for values like those they were calibrated with.
                spreads=SPREADS if entry.variant.is_exact else NEAR,
                sets=self._subjects[entry.subject].sets,
                tolerances=options.tolerances,
                settings=entry.row.settings,  # Levels of onnxruntime differ from each other, too.
                timeout=options.timeout,
            )
            try:
                with Verifier(entry.models, plan, worker=self._worker) as verifier:
                    verification = verifier.result()
            except (EvaluationError, FeedError) as error:
                entry.note(problem=str(error), verdict="fails")
                continue
            if verification.is_interrupted:
                raise KeyboardInterrupt
            entry.note(**verdict_fields(verification))

    def _score(self) -> None:
        script = self._options.script
        if script is None:
            return
        for entry in self._announced("loss and metric"):
            interface, types = entry.models.interface, free_inputs(entry.stage.model)
            task = ScoreTask(
                subject=pack_model(entry.stage.model, None).subject,
                settings=entry.row.settings,
                script=str(script.absolute()),
                inputs={one: (other, _data_type(types.get(other))) for one, other in interface.inputs if one and other},
                outputs={other: one for one, other in interface.outputs},
            )
            outcome = execute(self._worker, task, timeout=self._options.timeout, trust=self._options.trust)
            if outcome.interrupted:
                raise KeyboardInterrupt
            scored, failed = outcome.first(Scored), outcome.first(Failed)
            if scored is not None:
                entry.note(scores=scored.scores)
            else:
                problem = failed.problem if failed else outcome.problem
                entry.note(problem=f"no score: {problem or 'the script returned nothing'}")

    def _race(self) -> None:
        options = self._options
        entries = [entry for entry in self._entries if entry.row.verdict != "fails"]
        runners = [self._runner(entry) for entry in entries]
        if not runners:
            return
        shared = {name: getattr(options, name) for name in ("warm_up", "rounds", "starts", "seconds", "seed")}
        task = RaceTask(runners=tuple(runners), **shared)
        laps = itertools.count(1)

        def count_lap(report: tasks.Report) -> None:
            if isinstance(report, Timed):
                done = next(laps) // len(runners)
                self._say(f"timing: round {done:,} of {options.rounds:,}; Ctrl-C stops and keeps the results so far")

        self._say(f"timing: opening {len(runners):,} sessions")
        outcome = execute(self._worker, task, timeout=options.timeout, on_report=count_lap)
        self._note_race(entries, outcome.reports)
        if outcome.interrupted:
            raise KeyboardInterrupt
        for entry in entries if outcome.problem else ():
            if len(entry.row.times) < options.rounds and not entry.row.problem:
                entry.note(problem=f"the timing {outcome.problem}")

    def _runner(self, entry: _Entry) -> Runner:
        options, subject = self._options, self._subjects[entry.subject]
        feed, sizes = self._drawn[entry.subject]
        self._sizes.setdefault(subject.name, sizes)
        if entry.variant.steps:
            inputs = entry.models.inputs(self._input_options[entry.subject], self._worker)
            given = subject.sets[0].inputs if subject.sets else {}
            feed = packed_values(inputs.feeds(given, (options.seed, 0))[1])
        sent = pack_model(entry.stage.model, None)
        return Runner(subject=sent.subject, settings=entry.row.settings, feed=feed)

    def _note_race(self, entries: Sequence[_Entry], reports: Sequence[tasks.Report]) -> None:
        times: dict[int, list[float]] = {}
        starts: dict[tuple[int, bool], list[float]] = {}
        for report in reports:
            match report:
                case Timed():
                    times.setdefault(report.runner, []).append(report.seconds)
                case Started():
                    starts.setdefault((report.runner, report.offline), []).append(report.seconds)
                case Opened():
                    entries[report.side].note(engine=_with_version(report.engine), providers=report.providers)
                case Failed():
                    entries[report.run].note(problem=report.problem)
        for number, entry in enumerate(entries):
            entry.note(
                times=tuple(times.get(number, ())),
                starts=tuple(starts.get((number, False), ())),
                offline_starts=tuple(starts.get((number, True), ())),
            )


def _data_type(declared: Type | None) -> int:
    return 0 if declared is None or declared.tensor_type is None else declared.tensor_type.elem_type or 0


def _with_version(engine: str) -> str:
    package, name = ("onnxruntime", engine) if engine == "onnxruntime" else ("onnx", "onnx reference")
    return f"{name} {metadata.version(package)}" if is_installed(package) else name
