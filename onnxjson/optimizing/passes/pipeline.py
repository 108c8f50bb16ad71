"""Pipelines of passes: each runs on the result of the one before, and what it loses silently is reported."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from onnxjson.codecs import serde
from onnxjson.editing.applying import new_findings
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.errors import LimitError, OnnxJsonError, PassError, UnloadableError, WireError
from onnxjson.model.limits import MESSAGE_BYTES
from onnxjson.optimizing.passes import executing
from onnxjson.optimizing.passes.big_constants import Stage, Substituted, stage_of
from onnxjson.optimizing.passes.catalogue import REPETITIONS, Step
from onnxjson.optimizing.passes.declaration import PartStage
from onnxjson.optimizing.passes.losses import losses
from onnxjson.running.box import missing
from onnxjson.running.loading import require_loadable
from onnxjson.running.server_process import scratch_folder
from onnxjson.running.worker import PassAnswer, Worker
from onnxjson.running.worker_protocol import Limits, Request, encoded_paths
from onnxjson.storage.external_files import NewFile

_LONGEST_NAME: Final = 300
_LONGEST_LINE: Final = 200

_LEAST_FOR_PARTS: Final = 30.0
"""Minimum time limit, in seconds, for running a pass part by part."""

_TIMES_FOR_PARTS: Final = 20
"""Time limit for running a pass part by part, as a multiple of the time of the pass."""

_SHOWN: Final = 3
"""Maximum number of printed lines in a note or in the message of a failure."""

_KEPT_BYTES: Final = 64 << 20
"""Bytes of a result up to which it is kept until the last one is tried in onnxruntime."""

_HINT: Final = " (it runs without access to your files, the network and other programs; --trust allows them)"

_AS_BEFORE: Final = "the model is unchanged"


class PassResult(NamedTuple):
    """Result of one pass of a pipeline."""

    step: Step
    name: str
    before: Stage
    after: Stage
    """Same object as `before` if no byte changed or the pass failed."""
    seconds: float
    """Wall time, including the start of its process."""
    rounds: int
    """Number of times it ran; more than 1 only with ``*``."""
    notes: tuple[str, ...] = ()
    """Side effects, such as lost metadata, and messages of the pass."""
    printed: str = ""
    """Its output, shortened; visible text."""
    files: tuple[NewFile, ...] = ()
    """Additional files; `onnxjson.optimizing.passes.files_written` writes them."""
    failure: PassError | None = None

    @property
    def is_changed(self) -> bool:
        """Whether a byte changed."""
        return self.after is not self.before


class _Round(NamedTuple):
    after: Stage
    printed: str = ""
    notes: tuple[str, ...] = ()
    files: tuple[NewFile, ...] = ()


class Pipeline:
    """Runner of passes in a sandboxed process that starts with the first one; use it in a ``with`` statement.

    Args:
        memory: address space of one pass in bytes; at least twelve times the size of the model.
        max_size: maximum size of a resulting model in bytes; None for the limit of protobuf.
        keep_going: whether to skip passes that fail; otherwise their failure is raised.
        unloadable: whether to accept results that onnxruntime no longer loads; see `onnxjson.running.loading`.
        trust: whether Python files and functions of other packages run outside the box of `onnxjson.running.box`, and
            may use the network, all files of the user and other programs; optimizers never do, except that where there
            is no box, those that evaluate texts of the model run without it.
    """

    def __init__(
        self,
        *,
        seconds: float = 300.0,
        memory: int = 4 << 30,
        max_size: int | None = None,
        keep_going: bool = False,
        unloadable: bool = False,
        trust: bool = False,
    ) -> None:
        self._seconds = seconds
        self._memory = memory
        self._max_size = max_size
        self._unloadable = unloadable
        self._trust = trust
        self.keep_going = keep_going
        self._model_folder: Path | None = None
        self._worker = Worker()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; the next pass starts a new one."""
        self._worker.close()

    def interrupt(self) -> None:
        """Stop the pass that another thread runs, which then fails. Between two passes it has no effect."""
        self._worker.interrupt()

    def run(self, model: Model, steps: Sequence[Step], model_folder: Path | None = None) -> Iterator[PassResult]:
        """Run passes one after the other, and yield the result of each.

        Raises:
            PassError: a pass failed and `keep_going` is false; its result is yielded first.
        """
        stage = stage_of(model)
        self._model_folder = model_folder
        if not self.keep_going:
            for step in steps:  # Unavailable passes are reported before any pass runs.
                self._refuse(step, str(step))
        first, unjudged = stage.model, list[PassResult]()
        for number, step in enumerate(steps, 1):
            passed = self._run_step(stage, step)
            if passed.is_changed:
                unjudged.append(passed)
            # Results that are kept until the last one need memory.
            is_last = number == len(steps) and passed.failure is None
            if unjudged and not self._unloadable and (is_last or self.keep_going or passed.after.size > _KEPT_BYTES):
                passed = self._judged(first, unjudged, passed)
                unjudged.clear()
            yield passed
            if passed.failure is not None and not self.keep_going:
                raise passed.failure
            stage = passed.after

    def _judged(self, first: Model, unjudged: Sequence[PassResult], passed: PassResult) -> PassResult:
        """Return the result of a pass, as failed if onnxruntime loads the first model and not the last unjudged one."""
        try:
            notes = require_loadable(first, unjudged[-1].after.model, self._model_folder, self._worker)
            return passed._replace(notes=(*passed.notes, *notes))
        except UnloadableError as error:
            reason = error
        at_fault = unjudged[-1]
        for earlier in unjudged[:-1]:
            try:
                require_loadable(first, earlier.after.model, self._model_folder, self._worker)
            except UnloadableError as error:
                at_fault, reason = earlier, error
                break
        failure = PassError(f"{_label(at_fault.name)}: {reason}", at_fault.name)
        return passed._replace(after=passed.before, files=(), failure=failure)

    def _run_step(self, before: Stage, step: Step) -> PassResult:
        started = time.monotonic()
        name = str(step)
        rounds, stage, is_stable = 0, before, False
        last = _Round(before)
        files: tuple[NewFile, ...] = ()
        failure = None
        try:
            while not is_stable and rounds < (REPETITIONS if step.repeats else 1):
                rounds += 1
                last = self._round(stage, step, name)
                files += last.files
                is_stable = last.after.data == stage.data
                stage = stage if is_stable else last.after
            stage = before if stage.data == before.data else stage
        except PassError as error:
            failure, stage, files = error, before, ()
        seconds = time.monotonic() - started
        notes = [*last.notes, *_output(last.printed)]
        if step.repeats and rounds == REPETITIONS and not failure and not is_stable:
            notes.append(f"it still changes the model after {REPETITIONS} rounds")
        lost = losses(before.model, stage.model) if stage is not before else ()
        return PassResult(step, name, before, stage, seconds, rounds, (*lost, *notes), last.printed, files, failure)

    def _round(self, before: Stage, step: Step, name: str) -> _Round:
        self._refuse(step, name)
        if not step.subject.is_sandboxed:
            try:
                changed = step.subject.change(before.model, self._model_folder)
            except OnnxJsonError as error:
                raise PassError(f"{_label(name)}: {error}", name) from error
            after = before if changed.model is before.model else stage_of(changed.model)
            self._check_size(after.size, name)
            return _Round(after, notes=changed.notes, files=changed.files)
        given = _substituted(before, step, name, self._model_folder)
        answer = self._run_sandboxed(given, step, name)
        self._check_size(len(answer.model), name, answer.printed)
        after = _stage(answer, before, given, name)
        self._check_size(after.size, name, answer.printed)
        if after is not before:
            _check_structure(before, after, name, answer.printed)
        return _Round(after, answer.printed, (*answer.remarks, *given.remarks))

    def parts(self, passed: PassResult) -> list[PartStage]:
        """Return the model after each part of a pass, such as a rule of an optimizer; the last one is its result.

        Empty if it has no parts, or they cannot be separated.
        """
        if not (passed.is_changed and passed.step.subject.is_sandboxed and passed.rounds == 1):
            return []
        seconds = min(self._seconds, max(_LEAST_FOR_PARTS, _TIMES_FOR_PARTS * passed.seconds))
        given = _substituted(passed.before, passed.step, passed.name, self._model_folder)
        answer = self._run_sandboxed(given, passed.step, passed.name, stages=True, seconds=seconds)
        try:
            parts = msgspec.msgpack.decode(answer.model, type=list[PartStage])
        except msgspec.MsgspecError as error:
            raise PassError(f"{_label(passed.name)} did not return its parts: {error}", passed.name) from error
        if not given.is_needed:
            return parts
        return [PartStage(each.name, given.data_of(given.read(serde.parse(each.model).model))) for each in parts]

    def _run_sandboxed(
        self, given: Substituted, step: Step, name: str, *, stages: bool = False, seconds: float | None = None
    ) -> PassAnswer:
        seconds = self._seconds if seconds is None else seconds
        size = len(given.data)
        limits = Limits(
            # Address space: libraries map the files with the weights, some of them several times.
            memory=max(self._memory, 12 * size) + 4 * given.mapped,
            processor_seconds=max(1, int(seconds)),
            wall_seconds=seconds,
            open_files=256,
            file_bytes=max(MESSAGE_BYTES, given.mapped),
            may_start_threads=True,
        )
        request = Request(
            job="pass_stages" if stages else "pass",
            module=executing.__name__,
            declaration=executing.declared(step.subject, given.data_folder),
            limits=limits,
            reads=encoded_paths([*step.subject.reads(), *given.files]),
            trusted=self._trust and step.subject.is_own_code,
        )
        with scratch_folder("onnxjson-pass-") as folder:
            try:
                answer = self._worker.run_contained(request, given.data, folder)
                given.open_written(answer.model, folder)
            except (OnnxJsonError, IndexError) as error:
                raise PassError(f"{_label(name)}: {error}; {_AS_BEFORE}", name) from error
        if answer.problem:
            # Python reports what the box refuses as a PermissionError.
            is_refused = not self._trust and step.subject.is_own_code and "PermissionError" in answer.problem
            raise _failed(name, f"{answer.problem}{_last_words(answer)}{_HINT if is_refused else ''}", answer.printed)
        return answer

    def _refuse(self, step: Step, name: str) -> None:
        """Raise PassError if a pass cannot be used here, or its risk was not accepted."""
        if reason := step.subject.available():
            raise PassError(f"{_label(name)} cannot be used: {reason}", name)
        if step.subject.evaluates_texts and not self._trust and (lacking := missing()):
            what = f"it evaluates text from the model, and {lacking[0]}; --trust accepts that"
            raise PassError(f"{_label(name)} did not run: {what}", name)

    def _check_size(self, size: int, name: str, printed: str = "") -> None:
        if self._max_size is not None and size > self._max_size:
            raise _failed(name, f"returned {size:,} bytes, but at most {self._max_size:,} are allowed", printed)


def _failed(name: str, what: str, printed: str) -> PassError:
    return PassError(f"{_label(name)} {what}; {_AS_BEFORE}", name, printed)


def _check_structure(before: Stage, after: Stage, name: str, printed: str) -> None:
    """Raise PassError if the result of a pass has errors that its input does not have."""
    broken = [finding for finding in new_findings(before.model, after.model) if finding.severity == "error"]
    if broken:
        more = f" (and {len(broken) - 1:,} more)" if len(broken) > 1 else ""
        finding = broken[0]
        where = f"{visible(finding.address, 200)}: " if finding.address else ""
        raise _failed(name, f"returned an inconsistent model: {where}{finding.message}{more}", printed)


def _substituted(before: Stage, step: Step, name: str, model_folder: Path | None) -> Substituted:
    try:
        return Substituted(before, step.subject, model_folder)
    except PassError as error:
        raise PassError(f"{_label(name)} {error}; {_AS_BEFORE}", name) from error


def _stage(answer: PassAnswer, before: Stage, given: Substituted, name: str) -> Stage:
    """Parse the result of a pass; raise PassError if it is not a valid model."""
    data = answer.model
    if data == given.data:
        return before
    what = "" if data else "returned nothing"
    try:
        twice = serde.repeated_top_level(data)
        model = serde.parse(data).model
        if data and model.graph is None:
            what = "returned a model without a graph"
        elif twice is not None:
            what = f"returned what looks like two models: {twice} appears twice"
        elif given.is_needed:
            return stage_of(given.read(model))
    except PassError as error:
        what = str(error)
    except LimitError as error:
        what = f"returned a model that is too big: {error}"
    except (WireError, IndexError) as error:
        what = f"returned {len(data):,} bytes that are not a model ({error})"
    if what:
        raise _failed(name, f"{what}{_last_words(answer)}", answer.printed)
    return Stage(data, model)


def _label(name: str) -> str:
    return visible(name, _LONGEST_NAME)


def _last_words(answer: PassAnswer) -> str:
    return "".join([f" ({note})" for note in _output(answer.printed)])


def _output(printed: str) -> list[str]:
    """Return the output of a pass as a note; empty if it printed nothing."""
    # Already visible: escaping it again would double the escapes.
    lines = [line[:_LONGEST_LINE] for line in printed.splitlines() if line.strip()]
    return [f"it printed: {' | '.join(lines[-_SHOWN:])}"] if lines else []
