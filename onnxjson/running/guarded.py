"""Tasks given to the guarded process; what it tells is heard as it comes, and kept whatever becomes of the process."""

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from onnxjson.document import Model, Tensor
from onnxjson.external_files import internalize
from onnxjson.running.tasks import REPORTS, Report, Subject, Task, read_reports
from onnxjson.tensors import is_external
from onnxjson.walking import walk
from onnxjson.wire.writing import message_bytes, message_size
from onnxjson.worker import Worker
from onnxjson.worker_protocol import Limits

TIMEOUT: Final = 600.0
"""Seconds that a task may take if nobody says otherwise."""

MOST_INSIDE: Final = 1 << 30
"""Bytes of a model with its external data up to which all of it is sent to the process."""

_MEMORY: Final = 8 << 30
"""Bytes of address space that a task has at least."""

_MEMORY_SHARE: Final = 8
"""How many times the size of its models a task may use."""

_PATIENCE: Final = 0.1
"""Seconds between two looks at the reports."""

Listener = Callable[[Report], None]


class Outcome(NamedTuple):
    """What became of a task."""

    reports: tuple[Report, ...]
    """All that was told, also by a process that crashed later."""
    problem: str
    """Why the process came to no good end, as the end of a sentence; "" where it did."""
    interrupted: bool
    """Whether the person who waited did not want to any more."""


def execute(
    worker: Worker, task: Task, *, timeout: float = TIMEOUT, heard: Listener | None = None, size: int = 0
) -> Outcome:
    """Executes a task in the guarded process.

    Args:
        worker: the guarded process.
        task: what to do.
        timeout: seconds that it may take.
        heard: is told every report as it comes, in a thread of its own.
        size: bytes of external data that the task needs beside its models.

    Raises:
        WorkerError: the guarded process itself does not answer.
        LimitError: more bytes than can be sent.
    """
    data = msgspec.msgpack.encode(task)
    limits = Limits(
        memory=max(_MEMORY, _MEMORY_SHARE * (len(data) + size)),
        processor_seconds=max(1, int(timeout * 64)),
        wall_seconds=timeout,
        open_files=256,
        file_bytes=1 << 40,
        may_start_threads=True,
    )
    with tempfile.TemporaryDirectory(prefix="onnxjson-run-") as folder:
        place = Path(folder, REPORTS)
        place.touch()
        interrupted, problem = False, ""
        with place.open("rb") as file:
            reports: list[Report] = []
            try:
                with _listening(file, reports, heard):
                    problem = worker.run_task(data, Path(folder), limits).problem
            except KeyboardInterrupt:
                interrupted = True
            for report in read_reports(file):
                reports.append(report)
                if heard is not None:
                    heard(report)
    return Outcome(tuple(reports), problem, interrupted)


@contextmanager
def _listening(file: BinaryIO, reports: list[Report], heard: Listener | None) -> Iterator[None]:
    """Within the block, reports are read as they come."""
    if heard is None:
        yield
        return
    done = threading.Event()

    def listen() -> None:
        while not done.wait(_PATIENCE):
            for report in read_reports(file):
                reports.append(report)
                heard(report)

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class Sent(NamedTuple):
    """A model as the guarded process gets it."""

    subject: Subject
    model: Model
    """With all tensors in it, or as it was where they are too many."""
    size: int
    """Bytes, external data included."""


def sendable(model: Model, folder: Path | None, *, trust_links: bool = False) -> Sent:
    """A model for the guarded process.

    Args:
        model: stays as it is.
        folder: where its external data begins; None where it has none.
        trust_links: see `onnxjson.external.Resolver`.

    Raises:
        MissingInputError, UntrustedError, DecodeError, FileError: its external data cannot be had.
        WeightsMissingError: of some tensors only the sha256 is here.
        LimitError: it is more than protobuf reads.
    """
    outside = any(is_external(tensor) for tensor in walk(model, Tensor))
    if not outside or folder is None:
        data = message_bytes(model)
        return Sent(Subject(model=data), model, len(data))
    whole = internalize(model, folder, trust_links=trust_links)
    size = message_size(whole)
    if size <= MOST_INSIDE:
        return Sent(Subject(model=message_bytes(whole)), whole, size)
    # The files were resolved above; onnxruntime maps them into memory, which costs less than sending them.
    return Sent(Subject(model=message_bytes(model), data_folder=str(folder.absolute())), model, size)
