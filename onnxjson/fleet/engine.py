"""Shares the models of a fleet among workers of Dask, on this machine or on a cluster (extra ``fleet``).

A worker does one model at a time. Few models are sent ahead, so that what is known about them stays small, and no more
at once than the memory of the workers allows. If a worker dies, its models go to another one, once.
"""

import importlib
import logging
import os
import queue
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from onnxjson.fleet.listing import Source
from onnxjson.fleet.results import Row
from onnxjson.model.display import visible
from onnxjson.model.errors import FileError, MissingInputError

Work = Callable[[Source], Row]
"""Does a model, on a worker; a function that can be pickled."""

_AHEAD: Final = 3
"""Batches that are sent to each worker before the first one is done."""

_STARTS: Final = 3
"""How often workers on this machine are started before that is given up."""

_LARGEST_BATCH: Final = 50
_SECONDS_A_BATCH: Final = 1.0
_BATCHES_A_WORKER: Final = 4
"""Batches into which a worker's share of the waiting models is divided at least, so that all end at the same time."""

_SECONDS_A_LOOK: Final = 0.5
_SECONDS_WITHOUT_WORKERS: Final = 60.0
_MEMORY_A_BYTE: Final = 4
"""Bytes of memory that a byte of a model is expected to need."""


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


@contextmanager
def workers(jobs: int, scheduler: str | None) -> Iterator[Any]:
    """Start workers on this machine, or connect to the scheduler of a cluster; yield the client of Dask.

    Raises:
        MissingInputError: Dask is not installed.
        FileError: the scheduler does not answer.
    """
    try:
        dask, distributed = (importlib.import_module(name) for name in ("dask", "distributed"))
    except ImportError as error:
        raise MissingInputError(
            "a fleet needs the package distributed; pip install distributed cryptography"
        ) from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # A model whose worker died is tried once more. The memory is limited in the process of each model.
    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.comm.timeouts.connect": "10s"}
    settings |= {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    settings |= {"distributed.worker.profile.enabled": False}
    with dask.config.set(settings):
        if scheduler is not None:
            try:
                client = distributed.Client(scheduler, timeout="10s")
            except (OSError, ValueError) as error:
                raise FileError(f"the scheduler {visible(scheduler, None)} does not answer: {error}") from error
            with client:
                yield client
            return
        with _cluster(distributed, jobs) as cluster:
            try:
                with distributed.Client(cluster) as client:
                    yield client
            except KeyboardInterrupt:  # waiting until each worker has ended by itself takes seconds
                for each in cluster.workers.values():
                    with suppress(OSError, TypeError):
                        os.kill(each.pid, signal.SIGKILL)
                raise


def _cluster(distributed: Any, jobs: int) -> Any:
    """Start workers on this machine; if one of them ends before it is ready, start again."""
    for _ in range(_STARTS):
        try:
            return distributed.LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                memory_limit=0,
                preload="onnxjson.fleet.process",
                # Others on this machine can reach its ports; without a key, they could run code as this user.
                security=distributed.Security.temporary(),
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
        except (RuntimeError, OSError) as error:
            reason = str(error.__cause__ or error)
    raise FileError(f"workers ended before they were ready, {_STARTS} times ({visible(reason, 200)})")


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
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
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

    with _interrupts() as interrupts:
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
                    raise FileError("all workers ended, and no other one came") from None
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
def _interrupts() -> Iterator[list[int]]:
    """Provide a list that is empty until ctrl-c; the second one raises KeyboardInterrupt."""
    found: list[int] = []

    def note(number: int, frame: Any) -> None:
        if found:
            signal.default_int_handler(number, frame)
        found.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)


_stopped: Final[set[str]] = set()
"""The runs of which this worker begins no other model."""

_doing: Final[list[str]] = []
"""The run of each model that this worker is doing."""


def _stop(name: str) -> int:
    """Begin no other model of a run; return how many the worker is doing."""
    _stopped.add(name)
    return _doing.count(name)


def _do(name: str, work: Work, batch: Sequence[Source], left: int | None) -> list[Row]:
    """Do some models on a worker, until their run is stopped, or more than `left` of them failed."""
    rows: list[Row] = []
    for each in batch:
        if name in _stopped:
            break
        _doing.append(name)
        try:
            rows.append(work(each))
        finally:
            _doing.remove(name)
        if left is not None and sum(row.status == "failed" for row in rows) > left:
            _stopped.add(name)
    return rows


def _lost(source: Source, command: str, error: Exception) -> Row:
    reason = "its worker ended twice" if type(error).__name__ == "KilledWorker" else "its worker could not do it"
    text = f"{reason}: {visible(str(error), 200)}"
    return Row(model=source.shown, command=command, status="failed", error=text, bytes=source.size)
