"""Recording a pipeline while it runs."""

from collections import Counter
from importlib import metadata
from typing import NamedTuple

from onnxjson import serde
from onnxjson.diffing.difference import diff_models
from onnxjson.document import Model
from onnxjson.errors import LimitError, PassError, WireError
from onnxjson.passes.pipeline import Made, Pipeline, Stage
from onnxjson.passes.stages import PartStage
from onnxjson.patching.patch import sha256_of_model
from onnxjson.tracing.records import Part, Step, Trace, size_of


class _Model(NamedTuple):
    """A model between two parts."""

    name: str
    """Of the part that made it."""
    data: bytes
    model: Model


class Recorder:
    """Makes a trace of what passes of a pipeline did.

    ::

        recorder = Recorder("m.onnx", stage_of(model), pipeline)
        for made in pipeline.run(model, steps):
            recorder.add(made)
        recorder.trace()

    Args:
        source: what the model is called.
        first: the model that the first pass is given.
        pipeline: where passes are asked for what their parts did; None to take each pass as a whole.
    """

    def __init__(self, source: str, first: Stage, pipeline: Pipeline | None = None) -> None:
        self._source = source
        self._first = first
        self._last = first.model
        self._pipeline = pipeline
        self._steps: list[Step] = []

    def add(self, made: Made) -> Step:
        """What one more pass did."""
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
        """The trace of all passes so far."""
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
        """The models after each part of a pass; the last one is what the pass gave."""
        result = _Model("", made.after.data, made.after.model)
        if self._pipeline is None:
            return [result]
        try:
            stages = self._pipeline.parts(made)
        except PassError as error:
            notes.append(f"its parts cannot be told apart: {error}")
            return [result]
        return _together(stages, result)


def _together(stages: list[PartStage], result: _Model) -> list[_Model]:
    """The stages that lead to the result, and the result as the last of them."""
    ends = [position for position, stage in enumerate(stages) if stage.model == result.data]
    if ends:
        stages = stages[: ends[-1] + 1]
    try:
        models = [_Model(each.name, each.model, serde.parse(each.model).model) for each in stages]
    except (WireError, IndexError, LimitError):
        return [result]
    if models and (ends or _is_alike(models[-1].model, result.model)):
        # Some optimizers name and order things differently each time they run.
        name = models.pop().name
        return [*models, result._replace(name=name)]
    return [*models, result]


def _is_alike(one: Model, other: Model) -> bool:
    """Whether two models have the same operators, so that names and order alone may tell them apart."""
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
