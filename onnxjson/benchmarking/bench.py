"""A benchmark: variants made, verified, judged, and timed side by side; what was found stays if it is interrupted."""

from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from onnxjson.benchmarking.rows import Report, Row
from onnxjson.benchmarking.variants import ORIGINAL, Grid, Variant
from onnxjson.benchmarking.verdicts import judged
from onnxjson.display import visible
from onnxjson.document import Model, Type
from onnxjson.errors import EvaluationError, FeedError, OnnxJsonError
from onnxjson.index import Index
from onnxjson.passes import Pipeline, Step
from onnxjson.passes.measuring import MeasuredPass
from onnxjson.passes.outside import TakenIn
from onnxjson.passes.pipeline import Stage, stage_of
from onnxjson.running import tasks
from onnxjson.running.feeds import NEAR, SPREADS
from onnxjson.running.guarded import TIMEOUT, execute, sendable
from onnxjson.running.input_files import DataSet
from onnxjson.running.inputs import Inputs, Wishes, free_inputs, wishes_for
from onnxjson.running.interfaces import TwoModels
from onnxjson.running.tasks import (
    Failed,
    Lap,
    Opened,
    RaceTask,
    Runner,
    Scored,
    ScoreTask,
    Settings,
    Started,
)
from onnxjson.running.tolerances import Tolerance
from onnxjson.running.values import packed_values
from onnxjson.running.verification import SEEDS, Plan, Verifier
from onnxjson.tracing.records import size_of
from onnxjson.worker import Worker

Say = Callable[[str], None]

_STARTS: Final = 3
"""How often a session is opened if nobody says otherwise."""


class Subject(NamedTuple):
    """A model to be benchmarked."""

    name: str
    model: Model
    folder: Path | None = None
    """Where its external data begins."""
    sets: Sequence[DataSet] = ()
    """Values of its inputs; the first ones are timed. All are made up where there are none."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure."""

    settings: Settings = Settings(level="all")
    grid: Grid | None = None
    """Session settings to try."""
    rounds: int = 50
    warm_up: int = 3
    starts: int = _STARTS
    seconds: float = 60.0
    """After so many seconds no further round begins."""
    seed: int = 0
    seeds: int = SEEDS
    """Sets of values that are made up to verify."""
    wishes: Wishes = Wishes()
    tolerances: Mapping[str, Tolerance] = {}
    script: Path | None = None
    """Judges models; see `onnxjson.running.scoring`."""
    data: tuple[str, ...] = ()
    """Files of values, for passes that calibrate."""
    timeout: float = TIMEOUT


class _Entry:
    """A row in the making."""

    def __init__(self, subject: int, variant: Variant, settings: Settings, name: str) -> None:
        self.subject = subject
        self.variant = variant
        self.row = Row(
            model=name,
            variant=variant.name,
            passes=tuple(map(str, variant.steps)),
            is_exact=variant.is_exact,
            settings=settings,
        )
        self.stage: Stage | None = None
        self.models: TwoModels | None = None

    def note(self, **found: object) -> None:
        """Put something into the row."""
        self.row = msgspec.structs.replace(self.row, **found)

    @property
    def can_run(self) -> bool:
        """Whether nothing went wrong yet."""
        return self.stage is not None and not self.row.problem


class Bench:
    """Benchmarks variants of models; use it in a ``with`` statement.

    Args:
        subjects: the models.
        variants: what is made of each of them; the model as it is goes first, whether it is among them or not.
        options: how to measure.
        say: is told what goes on.
    """

    def __init__(
        self, subjects: Sequence[Subject], variants: Sequence[Variant], options: Options, say: Say | None = None
    ) -> None:
        self._subjects = subjects
        self._wishes = wishes_for([each.model for each in subjects], options.wishes)
        self._options = options
        self._say = say or (lambda _: None)
        self._worker = Worker()
        self._pipeline = Pipeline(seconds=options.timeout)
        chosen = [*variants] if any(not each.steps for each in variants) else [ORIGINAL, *variants]
        self._entries = [
            _Entry(number, variant, settings, subject.name)
            for number, subject in enumerate(subjects)
            for variant in chosen
            for settings in self._settings(variant)
        ]
        self._stages: dict[tuple[int, tuple[str, ...]], Stage | OnnxJsonError] = {}
        self._sizes: dict[str, dict[str, int]] = {}
        self._is_interrupted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipeline.close()
        self._worker.close()

    def _settings(self, variant: Variant) -> list[Settings]:
        options = self._options
        base = options.settings
        if variant.level is not None:
            base = msgspec.structs.replace(base, level=variant.level)
        return [base] if options.grid is None else options.grid.settings(base)

    def run(self) -> Report:
        """Everything; what was found before an interruption stays.

        What fails for one row stands in it.

        Raises:
            FeedError: no values can be made up for an input, or those that are given do not fit.
            MissingInputError, UntrustedError, FileError: external data cannot be had.
            LimitError: a model is more than protobuf reads.
        """
        self._require_values()
        try:
            self._make()
            self._verify()
            self._score()
            self._race()
        except KeyboardInterrupt:
            self._is_interrupted = True
        return Report(
            rows=tuple([entry.row for entry in self._entries]),
            sizes=self._sizes,
            rounds=self._options.rounds,
            is_tuned=self._options.grid is not None,
            is_interrupted=self._is_interrupted,
        )

    def models(self) -> list[tuple[str, str, bytes]]:
        """What was made: the names of the model and of the variant, and the serialised model."""
        found = {
            (entry.row.model, entry.row.variant): entry.stage.data for entry in self._entries if entry.stage is not None
        }
        return [(model, variant, data) for (model, variant), data in found.items()]

    def _require_values(self) -> None:
        """Do nothing if there are values for the inputs of every model; nothing is lost yet if there are none.

        Raises:
            FeedError: there are none for one.
        """
        for subject, wishes in zip(self._subjects, self._wishes, strict=True):
            try:
                inputs = Inputs(
                    [Index(subject.model)], [(name,) for name in free_inputs(subject.model)], wishes, self._worker
                )
                for each in subject.sets or [DataSet("", {}, {})]:
                    inputs.feeds(inputs.checked(each.inputs), (self._options.seed, 0))
            except FeedError as error:
                raise FeedError(f"{visible(subject.name, None)}: {error}") from error

    def _make(self) -> None:
        for number, subject in enumerate(self._subjects):
            whole = TakenIn(subject.model, subject.folder or Path()).model
            self._stages[number, ()] = stage_of(whole)
        for place, entry in enumerate(self._entries):
            self._say(f"making variants: {entry.row.variant} ({place + 1} of {len(self._entries)})")
            try:
                stage = self._made(entry.subject, entry.variant.steps)
            except OnnxJsonError as error:
                entry.note(problem=str(error), verdict="fails")
                continue
            found = size_of(stage.model, len(stage.data))
            entry.stage = stage
            entry.note(nodes=found.nodes, parameters=found.parameters, bytes=found.bytes)

    def _made(self, number: int, steps: tuple[Step, ...]) -> Stage:
        key = number, tuple(map(str, steps))
        if key not in self._stages:
            before = self._made(number, steps[:-1])
            step = self._with_values(steps[-1], number)
            try:
                (made,) = self._pipeline.run(before.model, [step], self._subjects[number].folder)
                self._stages[key] = made.after
            except OnnxJsonError as error:
                self._stages[key] = error
        found = self._stages[key]
        if isinstance(found, OnnxJsonError):
            raise found
        return found

    def _with_values(self, step: Step, number: int) -> Step:
        """A pass that needs values gets those of the benchmark, unless it names its own."""
        subject, options = step.subject, self._options
        if not isinstance(subject, MeasuredPass):
            return step
        if not subject.dims and self._wishes[number].dims:
            subject = msgspec.structs.replace(subject, dims=dict(self._wishes[number].dims))
        if not subject.data and options.data:
            subject = msgspec.structs.replace(subject, data=options.data)
        return Step(subject, step.repeats)

    def _verify(self) -> None:
        options = self._options
        exact = msgspec.structs.replace(options.settings, level="off", threads=1, parallel=0)
        for place, entry in enumerate(self._entries):
            if not entry.can_run:
                continue
            self._say(f"verifying: {entry.row.variant} ({place + 1} of {len(self._entries)})")
            assert entry.stage is not None
            base = self._made(entry.subject, ())
            entry.models = TwoModels(base.model, entry.stage.model)
            plan = Plan(
                seed=options.seed,
                seeds=options.seeds,
                wishes=self._wishes[entry.subject],
                # Ranges that were calibrated hold for values such as those they come from, and no others.
                spreads=SPREADS if entry.variant.is_exact else NEAR,
                sets=self._subjects[entry.subject].sets,
                tolerances=options.tolerances,
                settings=exact,
                target_settings=entry.row.settings,
                timeout=options.timeout,
            )
            try:
                with Verifier(entry.models, plan, worker=self._worker) as verifier:
                    found = verifier.result()
            except (EvaluationError, FeedError) as error:
                entry.note(problem=str(error), verdict="fails")
                continue
            if found.is_interrupted:
                raise KeyboardInterrupt
            entry.note(**judged(found))

    def _score(self) -> None:
        script = self._options.script
        for place, entry in enumerate(self._entries):
            if script is None or not entry.can_run:
                continue
            self._say(f"loss and metric: {entry.row.variant} ({place + 1} of {len(self._entries)})")
            assert entry.stage is not None
            assert entry.models is not None
            interface, types = entry.models.interface, free_inputs(entry.stage.model)
            task = ScoreTask(
                subject=sendable(entry.stage.model, None).subject,
                settings=entry.row.settings,
                script=str(script.absolute()),
                inputs={one: (other, _data_type(types.get(other))) for one, other in interface.inputs if one and other},
                outputs={other: one for one, other in interface.outputs},
            )
            outcome = execute(self._worker, task, timeout=self._options.timeout)
            if outcome.interrupted:
                raise KeyboardInterrupt
            scored = next((each for each in outcome.reports if isinstance(each, Scored)), None)
            failed = next((each.problem for each in outcome.reports if isinstance(each, Failed)), outcome.problem)
            if scored is not None:
                entry.note(scores=scored.scores)
            else:
                entry.note(problem=f"no score: {failed or 'the script says nothing'}")

    def _race(self) -> None:
        options = self._options
        entries = [entry for entry in self._entries if entry.stage is not None and entry.row.verdict != "fails"]
        runners = [self._runner(entry) for entry in entries]
        if not runners:
            return
        task = RaceTask(
            runners=tuple(runners),
            warm_up=options.warm_up,
            rounds=options.rounds,
            starts=options.starts,
            seconds=options.seconds,
            seed=options.seed,
        )
        laps = [0]

        def heard(report: tasks.Report) -> None:
            if isinstance(report, Lap):
                laps[0] += 1
                done = laps[0] // len(runners)
                self._say(f"timing: round {done:,} of {options.rounds:,}; Ctrl-C keeps what is done")

        self._say(f"timing: opening {len(runners):,} sessions")
        outcome = execute(self._worker, task, timeout=options.timeout, heard=heard)
        self._note_race(entries, outcome.reports)
        if outcome.interrupted:
            raise KeyboardInterrupt
        if outcome.problem:
            for entry in entries:
                if len(entry.row.times) < options.rounds and not entry.row.problem:
                    entry.note(problem=f"the timing {outcome.problem}")

    def _runner(self, entry: _Entry) -> Runner:
        assert entry.stage is not None
        assert entry.models is not None
        options, subject = self._options, self._subjects[entry.subject]
        inputs = Inputs(entry.models.indices, entry.models.interface.inputs, self._wishes[entry.subject], self._worker)
        given = inputs.checked(subject.sets[0].inputs if subject.sets else {})
        _, feed = inputs.feeds(given, (options.seed, 0))
        self._sizes.setdefault(subject.name, inputs.sizes((1,)))
        sent = sendable(entry.stage.model, None)
        return Runner(subject=sent.subject, settings=entry.row.settings, feed=packed_values(feed))

    def _note_race(self, entries: Sequence[_Entry], reports: Sequence[tasks.Report]) -> None:
        times: dict[int, list[float]] = {}
        starts: dict[tuple[int, bool], list[float]] = {}
        for report in reports:
            match report:
                case Lap():
                    times.setdefault(report.runner, []).append(report.seconds)
                case Started():
                    starts.setdefault((report.runner, report.offline), []).append(report.seconds)
                case Opened():
                    entries[report.side].note(engine=_versioned(report.engine), providers=report.providers)
                case Failed():
                    entries[report.run].note(problem=report.problem)
        for number, entry in enumerate(entries):
            entry.note(
                times=tuple(times.get(number, ())),
                starts=tuple(starts.get((number, False), ())),
                offline_starts=tuple(starts.get((number, True), ())),
            )


def _data_type(said: Type | None) -> int:
    return 0 if said is None or said.tensor_type is None else said.tensor_type.elem_type or 0


def _versioned(engine: str) -> str:
    package = "onnxruntime" if engine == "onnxruntime" else "onnx"
    name = engine if engine == "onnxruntime" else "onnx reference"
    try:
        return f"{name} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return name


__all__ = ["Bench", "Options", "Subject"]
