"""Execute tasks in the sandboxed process and collect its reports, including those of a process that crashed."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from onnxjson.codecs.wire_writing import message_bytes, message_size
from onnxjson.model.display import visible
from onnxjson.model.document import Model, Tensor
from onnxjson.model.errors import EvaluationError, LimitError, WorkerError
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import replace_records, tensors_of
from onnxjson.running import tasks
from onnxjson.running.box import readable_by_script
from onnxjson.running.server_process import scratch_folder
from onnxjson.running.worker import Worker
from onnxjson.running.worker_protocol import Limits, Request, encoded_paths
from onnxjson.storage.external_files import in_own_file, internalize
from onnxjson.storage.named_files import external_paths
from onnxjson.storage.remote import fetch_for

TIMEOUT: Final = 600.0

MAX_INLINE_BYTES: Final = 1 << 30
"""Maximum size of a model with its external data that is sent whole to the process."""

_MEMORY_SHARE: Final = 64
"""Bytes that may be allocated, at least, as a multiple of the size of the models and inputs."""

_ADDRESSES: Final = 8 << 30
"""Address space, at least; libraries reserve more than they use."""

_BATCH_COUNT: Final = 16

_BATCH_BYTES: Final = 64 << 20
"""Maximum bytes of models and values in one process, unless a single task has more."""

_PROCESSOR: Final = "CPUExecutionProvider"

_POLL_SECONDS: Final = 0.1

Listener = Callable[[tasks.Report], None]
Found = TypeVar("Found")


class Outcome(NamedTuple):
    """Outcome of a task."""

    reports: tuple[tasks.Report, ...]
    """All reports, even if the process crashed later."""
    problem: str
    """Why the process failed, as the end of a sentence; "" if it did not."""
    interrupted: bool

    def all(self, kind: type[Found]) -> list[Found]:
        """Return the reports of a kind."""
        return [each for each in self.reports if isinstance(each, kind)]

    def first(self, kind: type[Found]) -> Found | None:
        """Return the first report of a kind."""
        return next(iter(self.all(kind)), None)


def execute(
    worker: Worker,
    task: tasks.Task,
    *,
    timeout: float = TIMEOUT,
    on_report: Listener | None = None,
    size: int = 0,
    memory: int | None = None,
    trust: bool = False,
) -> Outcome:
    """Execute a task in the sandboxed process.

    Args:
        size: bytes of external data that the task reads from files.
        memory: bytes that may be allocated, at least; None for those of the settings.
        trust: run a script of the user without the box of `onnxjson.running.box`; other tasks are always in the box.

    Raises:
        WorkerError: the sandboxed process itself does not answer.
        LimitError: more bytes than can be sent.
        EvaluationError: a name is not UTF-8.
    """
    try:
        data = msgspec.msgpack.encode(task)
    except UnicodeEncodeError as error:
        name = visible(error.object, 60)
        raise EvaluationError(f'no engine runs a model with the name "{name}", which is not UTF-8') from None
    wanted = [settings.memory for _, settings in _models(task)]
    # Models that are compared are open at the same time.
    asked = memory or (sum(wanted) if isinstance(task, tasks.CompareTask) else max(wanted))
    allowed = max(asked, _MEMORY_SHARE * (len(data) + size))
    limits = Limits(
        memory=max(_ADDRESSES, 2 * allowed),
        data=None if _uses_devices(task) else allowed,
        processor_seconds=max(1, int(timeout * 64)),
        wall_seconds=timeout,
        open_files=256,
        file_bytes=1 << 40,
        may_start_threads=True,
    )
    trusted = trust and isinstance(task, tasks.ScoreTask)
    request = Request(job="run", limits=limits, reads=_reads(task), devices=_uses_devices(task), trusted=trusted)
    with scratch_folder("onnxjson-run-") as folder:
        place = folder / tasks.REPORTS
        place.touch()
        interrupted, problem = False, ""
        reports: list[tasks.Report] = []
        with place.open("rb") as file:

            def collect() -> None:
                for report in tasks.read_reports(file):
                    reports.append(report)
                    if on_report is not None:
                        on_report(report)

            try:
                with nullcontext() if on_report is None else _listening(collect):
                    problem = worker.run_contained(request, data, folder).problem
            except KeyboardInterrupt:
                interrupted = True
            collect()
    return Outcome(tuple(reports), problem, interrupted)


def execute_all(
    worker: Worker, series: Sequence[tasks.SingleTask], *, timeout: float = TIMEOUT, memory: int | None = None
) -> list[Outcome]:
    """Execute many tasks in few processes; a task that crashes or hangs does not affect the others.

    A task that ends a process is repeated in a separate process, unless it was the first one there; the tasks after it
    continue in a new process.
    """
    outcomes: list[Outcome] = []
    alone = False
    while (start := len(outcomes)) < len(series):
        batch = series[start : start + 1] if alone else _batch(series[start : start + _BATCH_COUNT])
        try:
            outcome = execute(worker, tasks.SeriesTask(tasks=tuple(batch)), timeout=timeout, memory=memory)
        except (WorkerError, LimitError) as error:
            outcome = Outcome((), f"could not be started: {error}", False)
        if outcome.interrupted:
            raise KeyboardInterrupt
        *done, last = _by_task(outcome.reports)
        outcomes += [Outcome(reports, "", False) for reports in done]
        alone = bool(outcome.problem) and len(done) > 0
        if not alone:
            outcomes.append(Outcome(last, outcome.problem, False))
    return outcomes


def _batch(series: Sequence[tasks.SingleTask]) -> list[tasks.SingleTask]:
    """Return the first tasks, as many as fit into one process; at least one."""
    batch: list[tasks.SingleTask] = []
    size = 0
    for task in series:
        fed = task.feeds if isinstance(task, tasks.RunTask) else [each for pair in task.feeds for each in pair]
        size += sum([len(subject.model) for subject, _ in _models(task)]) + sum(map(len, fed))
        if batch and size > _BATCH_BYTES:
            break
        batch.append(task)
    return batch


def _by_task(reports: Sequence[tasks.Report]) -> list[tuple[tasks.Report, ...]]:
    """Split the reports of a series at the task each is about; at least one part."""
    parts: list[list[tasks.Report]] = []
    for report in reports:
        if isinstance(report, tasks.Began):
            parts.append([])
        elif parts:
            parts[-1].append(report)
    return [tuple(each) for each in parts] or [()]


@contextmanager
def _listening(collect: Callable[[], None]) -> Iterator[None]:
    """Collect reports as they arrive while the block runs."""
    done = threading.Event()

    def listen() -> None:
        while not done.wait(_POLL_SECONDS):
            collect()

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class PackedModel(NamedTuple):
    """Model prepared for the sandboxed process."""

    subject: tasks.Subject
    model: Model
    """With all tensors inside, or unchanged if they are too large."""
    size: int
    """Size in bytes, including external data."""


def pack_model(model: Model, folder: Path | None, *, trust_links: bool = False) -> PackedModel:
    """Prepare a model for the sandboxed process.

    Raises:
        MissingInputError, UntrustedError, DecodeError, FileError: its external data cannot be read.
    """
    light = complete = model
    if folder is not None and any(is_external(tensor) for tensor in tensors_of(model)):
        complete = internalize(model, folder, trust_links=trust_links)
    size = message_size(complete)
    if complete is model and folder is not None:
        light = replace_records(model, Tensor, lambda tensor: in_own_file(tensor, folder))
    if folder is None or (light is complete) or (complete is not model and size <= MAX_INLINE_BYTES):
        return PackedModel(tasks.Subject(model=message_bytes(complete)), complete, size)
    # The files were resolved above; onnxruntime maps them into memory, which costs less than sending them.
    fetch_for(folder)
    files = tuple(map(str, external_paths(light, folder.absolute())))
    subject = tasks.Subject(model=message_bytes(light), data_folder=str(folder.absolute()), data_files=files)
    return PackedModel(subject, model, size)


def _models(task: tasks.Task) -> list[tuple[tasks.Subject, tasks.Settings]]:
    match task:
        case tasks.CompareTask():
            twice = [(task.base, task.settings)] * (1 if task.rounding is None else 2)
            return [*twice, (task.target, task.target_settings or task.settings)]
        case tasks.SeriesTask():
            return [found for each in task.tasks for found in _models(each)]
        case tasks.RaceTask():
            return [(each.subject, each.settings) for each in task.runners]
    return [(task.subject, task.settings)]


def _reads(task: tasks.Task) -> tuple[bytes, ...]:
    script = (task.script, readable_by_script(task.script)) if isinstance(task, tasks.ScoreTask) else ()
    return encoded_paths([*[path for subject, _ in _models(task) for path in subject.data_files], *script])


def _uses_devices(task: tasks.Task) -> bool:
    providers = [each.partition(":")[0] for _, settings in _models(task) for each in settings.providers]
    return any(each != _PROCESSOR for each in providers)
