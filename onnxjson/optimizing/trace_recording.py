"""Recorder of a pipeline while it runs."""

from collections import Counter
from importlib import metadata
from typing import NamedTuple

from onnxjson.codecs import serde
from onnxjson.diffing.difference import diff_models
from onnxjson.model.document import Model
from onnxjson.model.errors import LimitError, PassError, WireError
from onnxjson.optimizing.passes.pipeline import Made, Pipeline, Stage
from onnxjson.optimizing.passes.stages import PartStage
from onnxjson.optimizing.trace_records import Part, Step, Trace, size_of
from onnxjson.patching.patch import sha256_of_model


class _Model(NamedTuple):
    """A model between two parts."""

    name: str
    """Name of the part that produced it."""
    data: bytes
    model: Model


class Recorder:
    """Records the changes of the passes of a pipeline as a trace.

    ::

        recorder = Recorder("m.onnx", stage_of(model), pipeline)
        for made in pipeline.run(model, steps):
            recorder.add(made)
        recorder.trace()

    Args:
        source: name of the model.
        first: input of the first pass.
        pipeline: runs passes again to separate their parts; None to record each pass as a whole.
    """

    def __init__(self, source: str, first: Stage, pipeline: Pipeline | None = None) -> None:
        self._source = source
        self._first = first
        self._last = first.model
        self._pipeline = pipeline
        self._steps: list[Step] = []

    def add(self, made: Made) -> Step:
        """Record one more pass and return its step."""
        before = made.before
        self._last = made.after.model
        notes = list(made.notes)
        parts = []
        for each in self._models(made, notes) if made.is_changed else ():
            parts.append(_part(before, each))
            before = Stage(each.data, each.model)
        step = Step(
            name=made.name,
            packages=_versions(made.step.subject.packages),
            seconds=made.seconds,
            rounds=made.rounds,
            notes=tuple(notes),
            failure=None if made.failure is None else str(made.failure),
            parts=tuple(parts),
        )
        self._steps.append(step)
        return step

    def trace(self) -> Trace:
        """Return the trace of all passes so far."""
        first = sha256_of_model(self._first.model)
        return Trace(
            source=self._source,
            first=self._first.model,
            before=size_of(self._first.model, len(self._first.data)),
            steps=tuple(self._steps),
            first_sha256=first,
            last_sha256=first if self._last is self._first.model else sha256_of_model(self._last),
        )

    def _models(self, made: Made, notes: list[str]) -> list[_Model]:
        """Return the models after each part of a pass; the last one is the result of the pass."""
        result = _Model("", made.after.data, made.after.model)
        if self._pipeline is None:
            return [result]
        try:
            stages = self._pipeline.parts(made)
        except PassError as error:
            notes.append(f"its parts cannot be separated: {error}")
            return [result]
        return _together(stages, result)


def _together(stages: list[PartStage], result: _Model) -> list[_Model]:
    """Return the stages that lead to the result, with the result as the last one."""
    ends = [position for position, stage in enumerate(stages) if stage.model == result.data]
    if ends:
        stages = stages[: ends[-1] + 1]
    try:
        models = [_Model(each.name, each.model, serde.parse(each.model).model) for each in stages]
    except (WireError, IndexError, LimitError):
        return [result]
    if models and (ends or _is_alike(models[-1].model, result.model)):
        # Some optimizers choose other names and another order each time they run.
        name = models.pop().name
        return [*models, result._replace(name=name)]
    return [*models, result]


def _is_alike(one: Model, other: Model) -> bool:
    """Whether two models have the same operators, so that they may differ in names and order only."""
    kinds = [Counter((node.domain, node.op_type) for node in each.graph.node) for each in (one, other) if each.graph]
    return len(kinds) == 2 and kinds[0] == kinds[1]


def _part(before: Stage, after: _Model) -> Part:
    found = diff_models(before.model, after.model)
    return Part(
        name=after.name,
        after=size_of(after.model, len(after.data)),
        events=found.events,
        incomplete=found.incomplete,
        patch=found.patch,
    )


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
