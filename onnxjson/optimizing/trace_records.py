"""A trace as data: the first model, then events and a patch for each part of each pass; recorded by `Recorder`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import ClassVar

import msgspec

from onnxjson.codecs import serde
from onnxjson.diffing.difference import diff_models
from onnxjson.diffing.events import Event
from onnxjson.model.brief import Brief
from onnxjson.model.document import Model
from onnxjson.model.errors import LimitError, ParameterError, PassError, WireError
from onnxjson.model.index import Index
from onnxjson.model.methods import ReportedPage
from onnxjson.model.weights import held_constants, weight_totals
from onnxjson.optimizing.passes.big_constants import InternalizedModel, Stage, stage_of
from onnxjson.optimizing.passes.catalogue import parse_step
from onnxjson.optimizing.passes.declaration import PartStage, is_installed
from onnxjson.optimizing.passes.pipeline import PassResult, Pipeline
from onnxjson.patching.patch import Patch, sha256_of_model
from onnxjson.storage.api import model_and_file


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """Size of a model in numbers."""

    nodes: int
    parameters: int
    """Elements of weights."""
    bytes: int
    """Size of the serialized model."""
    operators: dict[str, int]
    """Nodes by operator, prefixed by its domain unless that is ai.onnx; alphabetical."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Changes by one part of a pass, such as a rule; a pass without separate parts is one part without a name."""

    name: str
    after: Size
    events: tuple[Event, ...]
    incomplete: tuple[str, ...] = ()
    """What could not be compared, as messages."""
    patch: Patch
    """Patch from the model before to the model after."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One pass of a pipeline."""

    name: str
    packages: dict[str, str] = {}
    seconds: float
    """Wall time, including the start of its process, excluding tracing."""
    rounds: int = 1
    """Number of times it ran; more than 1 only with ``*``."""
    notes: tuple[str, ...] = ()
    """Side effects, such as lost metadata, and messages of the pass."""
    failure: str | None = None
    parts: tuple[Part, ...] = ()
    """Parts in order; empty if no byte changed."""

    @property
    def is_changed(self) -> bool:
        """Whether a byte changed."""
        return bool(self.parts)


class Trace(Brief, ReportedPage, msgspec.Struct, frozen=True, kw_only=True):
    """Record of a pipeline that ran on a model."""

    verdict_name: ClassVar = ".parts(), which is empty if nothing changed"

    source: str
    """Name of the model, such as its path."""
    first: Model
    before: Size
    """Size of the first model."""
    steps: tuple[Step, ...] = ()
    first_sha256: str
    """SHA-256 of the first model as SerializeToString writes it, hexadecimal."""
    last_sha256: str
    """SHA-256 of the last model."""

    @property
    def after(self) -> Size:
        """Size of the last model."""
        return next((part.after for part in reversed(self.parts())), self.before)

    @property
    def last(self) -> Model:
        """Last model: all patches applied to the first model in order.

        Raises:
            PatchError: they do not fit; the trace was changed.
        """
        model = self.first
        for part in self.parts():
            model = part.patch.apply(model)
        return model

    @property
    def model(self) -> Model:
        """The same as `last`."""
        return self.last

    def parts(self) -> list[Part]:
        """Return the parts of all passes, in order."""
        return [part for step in self.steps for part in step.parts]

    def models(self) -> Iterator[Model]:
        """Yield the first model, then the model after each part.

        Raises:
            PatchError: the patches do not fit; the trace was changed.
        """
        model = self.first
        yield model
        for part in self.parts():
            model = part.patch.apply(model)
            yield model


def size_of(model: Model, length: int) -> Size:
    """Return the size of a model that has `length` serialized bytes."""
    index = Index(model)
    operators = index.operator_counts()
    parameters = weight_totals(held_constants(index)).parameters
    return Size(nodes=operators.total(), parameters=parameters, bytes=length, operators=dict(sorted(operators.items())))


class Recorder:
    """Records the changes of passes as a trace; it runs them again to separate their parts if it has their pipeline."""

    def __init__(self, source: str, first: Stage, pipeline: Pipeline | None = None) -> None:
        self._source = source
        self._first = first
        self._last = first.model
        self._pipeline = pipeline
        self._steps: list[Step] = []

    def add(self, passed: PassResult) -> Step:
        """Record one more pass and return its step."""
        before = passed.before
        self._last = passed.after.model
        notes = list(passed.notes)
        parts = []
        for name, after in self._models(passed, notes) if passed.is_changed else ():
            diff = diff_models(before.model, after.model, paths=(Path(self._source), Path(self._source)))
            size = size_of(after.model, after.size)
            parts.append(Part(name=name, after=size, events=diff.events, incomplete=diff.incomplete, patch=diff.patch))
            before = after
        step = Step(
            name=passed.name,
            packages={each: metadata.version(each) for each in passed.step.subject.packages if is_installed(each)},
            seconds=passed.seconds,
            rounds=passed.rounds,
            notes=tuple(notes),
            failure=None if passed.failure is None else str(passed.failure),
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
            before=size_of(self._first.model, self._first.size),
            steps=tuple(self._steps),
            first_sha256=first,
            last_sha256=first if self._last is self._first.model else sha256_of_model(self._last),
        )

    def _models(self, passed: PassResult, notes: list[str]) -> list[tuple[str, Stage]]:
        """Return the models after each part of a pass, by its name; the last one is the result of the pass."""
        if self._pipeline is not None:
            try:
                return _together(self._pipeline.parts(passed), passed.after)
            except PassError as error:
                notes.append(f"recorded as one step, because its parts do not run one by one: {error}")
        return [("", passed.after)]


def _together(parts: list[PartStage], result: Stage) -> list[tuple[str, Stage]]:
    """Return the parts that lead to the result, with the result as the last one."""
    ends = [position for position, part in enumerate(parts) if part.model == result.data]
    if ends:
        parts = parts[: ends[-1] + 1]
    try:
        models = [(each.name, Stage(each.model, serde.parse(each.model).model)) for each in parts]
    except (WireError, IndexError, LimitError):
        return [("", result)]
    # Some optimizers choose other names and another order each time they run.
    is_result = models and (ends or _is_alike(models[-1][1].model, result.model))
    name = models.pop()[0] if is_result else ""
    return [*models, (name, result)]


def _is_alike(one: Model, other: Model) -> bool:
    """Whether two models have the same operators, so that they may differ in names and order only."""
    kinds = [Counter((node.domain, node.op_type) for node in each.graph.node) for each in (one, other) if each.graph]
    return len(kinds) == 2 and kinds[0] == kinds[1]


def optimize(
    model: Model | str | Path,
    *passes: str | Sequence[str],
    parts: bool = False,
    keep_going: bool = False,
    unloadable: bool = False,
    trust: bool = False,
    timeout: float = 300.0,
) -> Trace:
    """Run passes on a model, and return what each of them changed; ``last`` of the result is the new model.

    Args:
        model: the model, or its file; weights in other files become part of the result.
        passes: names, or lists of names, as on the command line: ``"onnxsim"``, ``"onnxscript*"``,
            ``"onnxoptimizer:fuse_bn_into_conv"``, or the path of a script.
        parts: whether to run each optimizer once more, part by part, so that the trace distinguishes its rules.
        keep_going: whether to skip passes that fail; their steps have the reason.
        unloadable: whether to accept a result that onnxruntime no longer loads, which otherwise is a failure.
        trust: whether your own Python code runs outside the sandbox.
        timeout: time limit of one pass, in seconds.

    Raises:
        PassError: a pass failed.
        ParameterError: no pass is named, or there is no such pass or option.
        WeightsMissingError: only the sha256 of some tensors is available.
        LimitError: the model is too big for protobuf; or as for `onnxjson.load`.
    """
    loaded, file = model_and_file(model)
    names = [name for group in passes for name in ([group] if isinstance(group, str) else group)]
    if not names:
        raise ParameterError('no pass is named; write optimize(model, "onnxsim"); `onnxjson passes` lists others')
    steps = [parse_step(name) for name in names]
    folder = Path() if file is None else file.parent
    first = InternalizedModel(loaded, folder).model
    with Pipeline(seconds=timeout, keep_going=keep_going, unloadable=unloadable, trust=trust) as pipeline:
        recorder = Recorder("model" if file is None else str(file), stage_of(first), pipeline if parts else None)
        for made in pipeline.run(first, steps, folder):
            recorder.add(made)
    return recorder.trace()
