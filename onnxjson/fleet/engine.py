"""Shares the models of a fleet among workers: threads of this process, or a cluster of Dask (extra ``fleet``).

A worker does one model at a time. Few models are sent ahead, so that what is known about them stays small, and no more
at once than the memory of the workers allows. If a worker dies, its models go to another one, once.

In a worker, commands run in a process of its own, one model after the other, with limits of time and memory. A model
that crashes, hangs or fills the memory ends this process only; the next model gets a new one.
"""

import importlib
import json
import logging
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.fleet.listing import Source
from onnxjson.fleet.results import Row
from onnxjson.model.display import visible
from onnxjson.model.errors import FileError, MissingInputError
from onnxjson.model.system import memory_bytes

Work = Callable[[Source], Row]
"""Does a model, on a worker; a function that can be pickled."""

_AHEAD: Final = 3
"""Batches that are sent to each worker before the first one is done."""

_LARGEST_BATCH: Final = 50
_SECONDS_A_BATCH: Final = 1.0
_BATCHES_A_WORKER: Final = 4
"""Batches into which a worker's share of the waiting models is divided at least, so that all end at the same time."""

_SECONDS_A_LOOK: Final = 0.5
_SECONDS_WITHOUT_WORKERS: Final = 60.0
_MEMORY_A_BYTE: Final = 4
"""Bytes of memory that a byte of a model is expected to need."""

_stopped: Final[set[str]] = set()
"""The runs of which this worker begins no other model."""

_doing: Final[list[str]] = []
"""The run of each model that this worker is doing."""

_idle: Final[dict[tuple[str, int], list[subprocess.Popen[bytes]]]] = {}
"""The processes of this worker that wait, by program and memory limit; a worker has several if it has threads."""

_busy: Final[set[subprocess.Popen[bytes]]] = set()


class Progress(NamedTuple):
    """Progress of a run."""

    done: int
    failed: int
    running: int
    total: int
    bytes: int
    """Of the models that are done."""
    seconds: float
    stopped: str = ""
    """Why no more models are begun."""

    @property
    def rate(self) -> float:
        """Models a second."""
        return self.done / self.seconds if self.seconds else 0.0


class Interrupted(Exception):  # noqa: N818 - it is not an error
    """The user stopped the run; what was running is finished and its rows are written."""


class _Threads:
    """Workers on this machine, as the engine sees those of Dask: threads, which wait for the processes of models."""

    def __init__(self, pool: ThreadPoolExecutor, jobs: int) -> None:
        self._pool = pool
        self._jobs = jobs

    def scheduler_info(self, **_: int) -> dict[str, Any]:
        """Describe the workers; see `distributed.Client`."""
        return {"workers": {"": {"nthreads": self._jobs, "memory_limit": 0, "host": ""}}}

    def submit(self, work: Callable[..., Any], *given: Any, pure: bool) -> "Future[Any]":
        """Do some work when a thread is free."""
        return self._pool.submit(work, *given)

    def run(self, work: Callable[..., Any], *given: Any, on_error: str = "", **named: Any) -> dict[str, Any]:
        """Do something at once, where all workers are."""
        return {"": work(*given, **named)}


@contextmanager
def workers(jobs: int, scheduler: str | None) -> Iterator[Any]:
    """Start workers on this machine, or connect to the scheduler of a cluster; yield the client.

    Raises:
        MissingInputError: Dask is not installed, for a cluster.
        FileError: the scheduler does not answer.
    """
    if scheduler is None:
        with ThreadPoolExecutor(jobs) as pool:
            yield _Threads(pool, jobs)
        return
    try:
        dask, distributed = (importlib.import_module(name) for name in ("dask", "distributed"))
    except ImportError as error:
        raise MissingInputError("--scheduler needs the package distributed; pip install 'onnxjson[fleet]'") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # A model whose worker died is tried once more. The memory is limited in the process of each model.
    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.comm.timeouts.connect": "10s"}
    with dask.config.set(settings):
        try:
            client = distributed.Client(scheduler, timeout="10s")
        except (OSError, ValueError) as error:
            raise FileError(f"the scheduler {visible(scheduler, None)} does not answer: {error}") from error
        with client:
            yield client


def run(
    client: Any,
    sources: Sequence[Source],
    work: Work,
    receive: Callable[[list[Row]], None],
    show: Callable[[Progress], None],
    *,
    command: str,
    most_failures: int | None,
) -> None:
    """Do all models; call `receive` with rows as they come, and `show` now and then.

    Raises:
        Interrupted: ctrl-c, or more than `most_failures` models failed; no new model was begun after that.
        KeyboardInterrupt: ctrl-c again.
    """
    known = list(client.scheduler_info(n_workers=-1)["workers"].values())
    count = max(1, sum(each["nthreads"] for each in known))
    # Workers without a limit are expected on machines like this one.
    machine = memory_bytes()
    memory = sum(each["memory_limit"] for each in known) or machine * max(1, len({each["host"] for each in known}))
    name = uuid.uuid4().hex
    waiting, alone = list(reversed(sources)), list[Source]()
    running: dict[Any, tuple[Source, ...]] = {}
    finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done = failed = size = finishing = 0
    begin, seconds, stopped = time.monotonic(), 0.0, ""

    def needed(batch: Sequence[Source]) -> float:
        """Bytes of memory for a batch; a model of unknown size is expected to need the share of a worker."""
        return max([memory / count if each.size is None else _MEMORY_A_BYTE * each.size for each in batch])

    def submit() -> None:
        while (waiting or alone) and len(running) < _AHEAD * count:
            fast = int(_SECONDS_A_BATCH * done / seconds) if seconds else done
            length = 1 if alone else max(1, min(_LARGEST_BATCH, fast, len(waiting) // (_BATCHES_A_WORKER * count)))
            place = alone or waiting
            batch = tuple(place[: -length - 1 : -1])
            if running and needed(batch) + sum(map(needed, running.values())) > memory:
                return
            del place[-length:]
            left = None if most_failures is None else most_failures - failed
            future = client.submit(_do, name, work, batch, left, pure=False)
            running[future] = batch
            future.add_done_callback(finished.put)

    def finish(future: Any) -> list[Row]:
        batch = running.pop(future)
        try:
            rows: list[Row] = future.result()  # waits if its worker ended meanwhile and another one does it again
        except Exception as error:
            if len(batch) == 1:
                return [_lost(batch[0], command, error)]
            alone.extend(batch)  # one of them ends workers
            return []
        return rows

    with _interrupts(name) as interrupts:
        submit()
        seen = time.monotonic()
        while running:
            try:
                rows = finish(finished.get(timeout=_SECONDS_A_LOOK))
            except queue.Empty:
                rows = []
                if client.scheduler_info(n_workers=-1)["workers"]:
                    seen = time.monotonic()
                elif time.monotonic() - seen > _SECONDS_WITHOUT_WORKERS:
                    raise FileError("all workers ended, and no new worker started") from None
            receive(rows)
            done += len(rows)
            failed += sum(row.status == "failed" for row in rows)
            size += sum(row.bytes or 0 for row in rows)
            seconds += sum(row.seconds for row in rows)
            if not stopped and (interrupts or (most_failures is not None and failed > most_failures)):
                stopped = "interrupted" if interrupts else f"more than {most_failures:,} models failed (--failures)"
                finishing = sum(client.run(_stop, name, on_error="ignore").values())
            if stopped:
                waiting.clear()
                alone.clear()
            submit()
            begun = min(finishing, len(running)) if stopped else min(sum(map(len, running.values())), count)
            show(Progress(done, failed, begun, len(sources), size, time.monotonic() - begin, stopped))
    if stopped:
        raise Interrupted(stopped)


@contextmanager
def _interrupts(name: str) -> Iterator[list[int]]:
    """Provide a list that is empty until ctrl-c; the second one raises KeyboardInterrupt, and ends the run here."""
    interrupts: list[int] = []

    def note(number: int, frame: Any) -> None:
        if interrupts:
            signal.default_int_handler(number, frame)
        interrupts.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    except KeyboardInterrupt:
        _stop(name)
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(name: str) -> int:
    """Begin no other model of a run; return how many the worker is doing."""
    _stopped.add(name)
    return _doing.count(name)


def _do(name: str, work: Work, batch: Sequence[Source], left: int | None) -> list[Row]:
    """Do some models on a worker, until their run is stopped, or more than `left` of them failed."""
    rows: list[Row] = []
    for source in batch:
        if name in _stopped:
            break
        _doing.append(name)
        try:
            rows.append(work(source))
        finally:
            _doing.remove(name)
        if left is not None and sum(row.status == "failed" for row in rows) > left:
            _stopped.add(name)
    return rows


def _lost(source: Source, command: str, error: Exception) -> Row:
    reason = "its worker ended twice" if type(error).__name__ == "KilledWorker" else "its worker failed"
    text = f"{reason}: {visible(str(error), 200)}"
    return Row(model=source.shown, command=command, status="failed", error=text, bytes=source.size)


class Limits(msgspec.Struct, frozen=True):
    """Limits for one model."""

    seconds: float = 600.0
    memory: int = 0
    """Bytes of address space; 0 is no limit."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended."""

    code: int | None
    """Its exit code; None if the process ended, or was ended, before the command did."""
    stdout: str = ""
    stderr: str = ""
    problem: str = ""
    """Why there is no exit code."""
    seconds: float = 0.0
    bytes: int | None = None
    """Size of the model, if it was read from a URL."""


def run_limited(program: str, words: Sequence[str], limits: Limits) -> Outcome:
    """Run a command line in the process of this worker; `program` is the module that serves it (see `serve`)."""
    idle = _idle.setdefault((program, limits.memory), [])
    process = idle.pop() if idle else _started(program, limits)
    if process.poll() is not None:
        process = _started(program, limits)
    _busy.add(process)
    begin = time.monotonic()
    line = b""
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(list(words)).encode() + b"\n")  # msgspec refuses paths that are not UTF-8
        process.stdin.flush()
        line = _answer(process, begin + limits.seconds)
    except OSError:
        line = b""
    seconds = time.monotonic() - begin
    _busy.discard(process)
    if line.endswith(b"\n"):
        idle.append(process)
        return msgspec.structs.replace(msgspec.json.decode(line, type=Outcome), seconds=seconds)
    is_late = seconds >= limits.seconds
    _end(process)
    status = process.returncode
    reason = f"it was stopped after {limits.seconds:g} s (--timeout)" if is_late else _reason(status)
    return Outcome(code=None, problem=reason, seconds=seconds)


def _reason(status: int) -> str:
    with suppress(ValueError):
        return f"its process crashed ({signal.Signals(-status).name})"
    return f"its process ended with the code {status}"


def _started(program: str, limits: Limits) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", program, str(os.getpid()), str(limits.memory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _answer(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    """The line that the process answers; without a line feed if it ended, or did not answer in time."""
    assert process.stdout is not None
    line = bytearray()
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            return bytes(line[:-1])
        piece = os.read(process.stdout.fileno(), 1 << 20)
        if not piece:
            return b""
        line += piece
    return bytes(line)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def end_processes(*, all_: bool) -> None:
    """End the processes of this worker that wait, or all."""
    for process in list(_busy) if all_ else ():
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    for processes in list(_idle.values()):
        while processes:
            _end(processes.pop())
