"""Pipelines of passes: each on what the one before gave, whatever becomes of it.

::

    steps = [parse_step("onnxoptimizer"), parse_step("onnxsim*")]
    with Pipeline() as pipeline:
        for made in pipeline.run(model, steps):
            print(made.name, len(made.before.data), len(made.after.data), made.seconds)
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import msgspec

from onnxjson import serde
from onnxjson.display import visible
from onnxjson.document import Model
from onnxjson.edits.applying import new_findings
from onnxjson.errors import LimitError, OnnxJsonError, PassError, WireError, WorkerError
from onnxjson.passes.executing import declared
from onnxjson.passes.losses import losses
from onnxjson.passes.new_files import NewFile
from onnxjson.passes.spelling import REPETITIONS, Step
from onnxjson.passes.stages import PartStage, unpacked
from onnxjson.weights import require_whole
from onnxjson.wire.varints import LARGEST_MESSAGE
from onnxjson.wire.writing import message_bytes, message_size
from onnxjson.worker import PassAnswer, Worker
from onnxjson.worker_protocol import Limits

_LONGEST_NAME: Final = 300
_LONGEST_LINE: Final = 200

_LEAST_FOR_PARTS: Final = 30.0
"""Seconds that an optimizer may take to tell its parts, however short the pass was."""

_TIMES_FOR_PARTS: Final = 20
"""How many times as long as the pass itself that may take."""

_SHOWN: Final = 3
"""Lines of what a pass printed that stand in a note, or in the message of its failure."""

_AS_BEFORE: Final = "the model is as it was before it"


class Stage(NamedTuple):
    """A model between two passes; where a pass changes nothing, both sides of it are the same object."""

    data: bytes
    """Serialised."""
    model: Model
    """What `data` holds."""


class Made(NamedTuple):
    """What one pass of a pipeline did."""

    step: Step
    name: str
    """As it was spelled."""
    before: Stage
    after: Stage
    """The same object as `before` where no byte changed, or where it failed."""
    seconds: float
    """Of wall time, the start of its process included."""
    rounds: int
    """How often it ran; more than once only where it repeats."""
    notes: tuple[str, ...] = ()
    """What it lost or changed besides, and what it had to say; for a person."""
    printed: str = ""
    """What it printed, cut; made visible."""
    files: tuple[NewFile, ...] = ()
    """What it wants to stand beside the model; `onnxjson.passes.files_written` writes them."""
    failure: PassError | None = None
    """Why it has no result."""

    @property
    def is_changed(self) -> bool:
        """Whether a byte changed."""
        return self.after is not self.before

    @property
    def is_grown(self) -> bool:
        """Whether the model has more than a tenth more bytes after it."""
        return is_grown(len(self.before.data), len(self.after.data))


def is_grown(before: int, after: int) -> bool:
    """Whether so many bytes after a pass are more than a tenth more than before it."""
    return after * 10 > before * 11


class _Round(NamedTuple):
    """What a pass did once."""

    after: Stage
    printed: str = ""
    notes: tuple[str, ...] = ()
    files: tuple[NewFile, ...] = ()


class Pipeline:
    """Runs passes, in a guarded process that starts with the first one; use it in a ``with`` statement.

    Args:
        seconds: what one pass may take, of wall time and of processor time.
        memory: bytes of address space of one pass; at least twelve times the size of the model.
        max_size: bytes of a model that a pass may give; None for what protobuf reads.
        keep_going: whether a pass that fails is left out; else its failure is raised.
    """

    def __init__(
        self,
        *,
        seconds: float = 300.0,
        memory: int = 4 << 30,
        max_size: int | None = None,
        keep_going: bool = False,
    ) -> None:
        self._seconds = seconds
        self._memory = memory
        self._max_size = max_size
        self.keep_going = keep_going
        """Whether a pass that fails is left out."""
        self._worker = Worker()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; the next pass would start another one."""
        self._worker.close()

    def interrupt(self) -> None:
        """End the pass that another thread runs; that one fails. Nothing happens between two passes."""
        self._worker.interrupt()

    def run(self, model: Model, steps: Sequence[Step], model_folder: Path | None = None) -> Iterator[Made]:
        """Runs passes one after the other, and gives what each did as soon as it is done.

        Args:
            model: every tensor must stand in it; `onnxjson.external_files.internalize` takes files in.
            steps: the passes.
            model_folder: where edits look for the external data of the model.

        Raises:
            PassError: a pass failed, and it is not to go on without it; what that pass did is given before.
            LimitError: the model has more bytes than protobuf reads.
            WeightsMissingError: of some tensors only the sha256 is here.
        """
        stage = stage_of(model)
        if not self.keep_going:
            for step in steps:  # What cannot run is told before anything has.
                _refuse_unavailable(step, str(step))
        for step in steps:
            made = self._made(stage, step, model_folder)
            yield made
            if made.failure is not None and not self.keep_going:
                raise made.failure
            stage = made.after

    def _made(self, before: Stage, step: Step, model_folder: Path | None) -> Made:
        started = time.monotonic()
        name = str(step)
        rounds, stage, stands_still = 0, before, False
        last = _Round(before)
        files: tuple[NewFile, ...] = ()
        failure = None
        try:
            while rounds < (REPETITIONS if step.repeats else 1):
                rounds += 1
                last = self._round(stage, step, name, model_folder)
                files += last.files
                stands_still = last.after.data == stage.data
                stage = stage if stands_still else last.after
                if stands_still:
                    break
            if stage is not before and stage.data == before.data:
                stage = before
        except PassError as error:
            failure, stage, files = error, before, ()
        seconds = time.monotonic() - started
        notes = [*last.notes, *_output(last.printed)]
        if step.repeats and rounds == REPETITIONS and not failure and not stands_still:
            notes.append(f"it still changes the model after {REPETITIONS} rounds")
        lost = losses(before.model, stage.model) if stage is not before else ()
        return Made(step, name, before, stage, seconds, rounds, (*lost, *notes), last.printed, files, failure)

    def _round(self, before: Stage, step: Step, name: str, model_folder: Path | None) -> "_Round":
        _refuse_unavailable(step, name)
        if not step.subject.is_guarded:
            try:
                made = step.subject.change(before.model, model_folder)
            except OnnxJsonError as error:
                raise PassError(f"{_called(name)}: {error}", name) from error
            after = before if made.model is before.model else stage_of(made.model)
            self._check_size(len(after.data), name)
            return _Round(after, notes=made.notes, files=made.files)
        answer = self._answered(before, step, name)
        self._check_size(len(answer.model), name, answer.printed)
        after = _stage(answer, before, name)
        if after is not before:
            _check_structure(before, after, name, answer.printed)
        return _Round(after, answer.printed, answer.remarks)

    def parts(self, made: Made) -> list[PartStage]:
        """What each part of a pass did, such as each rule of an optimizer; the last one leads to what the pass gave.

        Empty where it has no parts, or they cannot be told apart.

        Raises:
            PassError: the optimizer failed when it was asked for its parts.
        """
        if not (made.is_changed and made.step.subject.is_guarded and made.rounds == 1):
            return []
        seconds = min(self._seconds, max(_LEAST_FOR_PARTS, _TIMES_FOR_PARTS * made.seconds))
        answer = self._answered(made.before, made.step, made.name, stages=True, seconds=seconds)
        try:
            return unpacked(answer.model)
        except msgspec.MsgspecError as error:
            raise PassError(f"{_called(made.name)} does not tell its parts: {error}", made.name) from error

    def _answered(
        self, before: Stage, step: Step, name: str, *, stages: bool = False, seconds: float | None = None
    ) -> PassAnswer:
        seconds = self._seconds if seconds is None else seconds
        size = len(before.data)
        limits = Limits(
            memory=max(self._memory, 12 * size),
            processor_seconds=max(1, int(seconds)),
            wall_seconds=seconds,
            open_files=256,
            file_bytes=LARGEST_MESSAGE,
            may_start_threads=True,
        )
        with tempfile.TemporaryDirectory(prefix="onnxjson-pass-") as folder:
            try:
                declaration = declared(step.subject)
                answer = self._worker.run_pass(declaration, before.data, Path(folder), limits, stages=stages)
            except WorkerError as error:
                raise PassError(f"{_called(name)}: {error}; {_AS_BEFORE}", name) from error
        if answer.problem:
            raise PassError(
                f"{_called(name)} {answer.problem}{_last_words(answer)}; {_AS_BEFORE}",
                name,
                answer.printed,
            )
        return answer

    def _check_size(self, size: int, name: str, printed: str = "") -> None:
        """Do nothing if what a pass gave does not have too many bytes.

        Raises:
            PassError: it has.
        """
        if self._max_size is not None and size > self._max_size:
            raise PassError(
                f"{_called(name)} gives {size:,} bytes, and {self._max_size:,} are allowed; {_AS_BEFORE}",
                name,
                printed,
            )


def _check_structure(before: Stage, after: Stage, name: str, printed: str) -> None:
    """Do nothing if what a pass gave hangs together, as far as what it was given did.

    Raises:
        PassError: it does not.
    """
    broken = [finding for finding in new_findings(before.model, after.model) if finding.severity == "error"]
    if broken:
        more = f" (and {len(broken) - 1:,} more)" if len(broken) > 1 else ""
        finding = broken[0]
        where = f"{visible(finding.address, 200)}: " if finding.address else ""
        raise PassError(
            f"{_called(name)} leaves the model in pieces: {where}{finding.message}{more}; {_AS_BEFORE}",
            name,
            printed,
        )


def _refuse_unavailable(step: Step, name: str) -> None:
    """Do nothing if what a pass needs is installed.

    Raises:
        PassError: it is not.
    """
    reason = step.subject.available()
    if reason:
        raise PassError(f"{_called(name)} cannot be used: {reason}", name)


def stage_of(model: Model) -> Stage:
    """A model with its bytes.

    Raises:
        WeightsMissingError: of some tensors only the sha256 is here.
        LimitError: it has more than protobuf reads.
    """
    require_whole(model)
    size = message_size(model)
    if size > LARGEST_MESSAGE:
        raise LimitError(f"the model has {size:,} bytes, and passes take no more than {LARGEST_MESSAGE:,}")
    data = message_bytes(model)
    return Stage(data, model)


def _stage(answer: PassAnswer, before: Stage, name: str) -> Stage:
    """What a pass gave, as a model.

    Raises:
        PassError: it is none.
    """
    data = answer.model
    if data == before.data:
        return before
    what = ""
    if not data:
        what = "gives nothing"
    else:
        try:
            twice = serde.repeated_top_level(data)
            model = serde.parse(data).model
            if model.graph is None:
                what = "gives a model without a graph"
            elif twice is not None:
                what = f"gives what looks like two models: {twice} stands twice"
        except (WireError, IndexError, LimitError) as error:
            what = f"gives {len(data):,} bytes that are no model ({error})"
    if what:
        raise PassError(f"{_called(name)} {what}{_last_words(answer)}; {_AS_BEFORE}", name, answer.printed)
    return Stage(data, model)


def _called(name: str) -> str:
    """The name of a pass, which may be a path, for a message."""
    return visible(name, _LONGEST_NAME)


def _last_words(answer: PassAnswer) -> str:
    return "".join([f" ({said})" for said in _output(answer.printed)])


def _output(printed: str) -> list[str]:
    """What a pass printed, as a note; none where it printed nothing."""
    # Visible already, so that nothing of an escape is escaped again.
    lines = [line[:_LONGEST_LINE] for line in printed.splitlines() if line.strip()]
    return [f"it printed: {' | '.join(lines[-_SHOWN:])}"] if lines else []
