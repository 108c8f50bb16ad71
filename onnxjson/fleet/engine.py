"""Shares the models of a fleet among workers of Dask, on this machine or on a cluster (extra ``fleet``).

A worker does one model at a time. Few models are sent ahead, so that what is known about them stays small, and no more
at once than the memory of the workers allows. If a worker dies, its models go to another one, once.
"""

import importlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

from onnxjson.fleet.listing import Source
from onnxjson.fleet.results import Row
from onnxjson.model.display import visible
from onnxjson.model.errors import FileError, MissingInputError

Work = Callable[[tuple[Source, ...]], list[Row]]
"""Does some models, on a worker; a function that can be pickled."""

_AHEAD: Final = 3
"""Batches that are sent to each worker before the first one is done."""

_LARGEST_BATCH: Final = 50
_BATCHES_A_WORKER: Final = 40
_SECONDS_A_LOOK: Final = 0.5
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
    with dask.config.set(settings):
        if scheduler is not None:
            try:
                client = distributed.Client(scheduler, timeout="10s")
            except (OSError, ValueError) as error:
                raise FileError(f"the scheduler {visible(scheduler, None)} does not answer: {error}") from error
            with client:
                yield client
            return
        with ExitStack() as stack:
            with _ignoring_interrupts():
                cluster = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=jobs,
                        threads_per_worker=1,
                        memory_limit=0,
                        # Others on this machine can reach its ports; without a key, they could run code as this user.
                        security=distributed.Security.temporary(),
                        dashboard_address="127.0.0.1:0",
                        silence_logs=logging.CRITICAL,
                    )
                )
            yield stack.enter_context(distributed.Client(cluster))


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Start processes that ignore ctrl-c, which a terminal sends to all: workers finish what they do."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
    """Do all models; call `receive` with rows as they come.

    Raises:
        Interrupted: ctrl-c, or more than `most_failures` models failed; no new model was begun after that.
    """
    as_completed = importlib.import_module("distributed").as_completed
    count = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
    waiting = _batches(sources, count)
    running: dict[Any, tuple[Source, ...]] = {}
    completed = as_completed([], raise_errors=False)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    done = failed = size = 0
    begin = time.monotonic()
    stopped = ""

    def submit() -> None:
        while waiting and len(running) < _AHEAD * count:
            needed = _needed(waiting[-1])
            if running and needed + sum(map(_needed, running.values())) > memory:
                return
            batch = waiting.pop()
            future = client.submit(work, batch, pure=False)
            running[future] = batch
            completed.add(future)

    def finish() -> Iterator[None]:
        nonlocal done, failed, size
        while running:
            submit()
            future = next(completed)
            batch = running.pop(future)
            if future.status == "finished":
                rows = future.result()
            elif len(batch) > 1:  # one of them ends workers; each is tried alone
                waiting.extend((each,) for each in batch)
                continue
            else:
                rows = [_lost(batch[0], command, future.exception())]
            receive(rows)
            done += len(rows)
            failed += sum(row.status == "failed" for row in rows)
            size += sum(row.bytes or 0 for row in rows)
            yield

    submit()
    steps = finish()
    last = 0.0
    while True:
        try:
            next(steps)
        except StopIteration:
            break
        except KeyboardInterrupt:
            if stopped:
                raise
            stopped, steps = "interrupted", finish()
            waiting.clear()
        if most_failures is not None and failed > most_failures and not stopped:
            stopped = f"more than {most_failures:,} models failed (--failures)"
            waiting.clear()
        if time.monotonic() - last > _SECONDS_A_LOOK:
            last = time.monotonic()
            begun = sum(map(len, running.values()))
            show(Progress(done, failed, min(begun, count), len(sources), size, last - begin))
    if stopped:
        raise Interrupted(stopped)


def _batches(sources: Sequence[Source], count: int) -> list[tuple[Source, ...]]:
    """Models in batches, the next one last: single ones, and small ones together if there are very many."""
    length = min(_LARGEST_BATCH, max(1, len(sources) // (count * _BATCHES_A_WORKER)))
    found = [tuple(sources[start : start + length]) for start in range(0, len(sources), length)]
    return found[::-1]


def _needed(batch: Sequence[Source]) -> int:
    return _MEMORY_A_BYTE * max([each.size or 0 for each in batch])


def _lost(source: Source, command: str, error: BaseException | None) -> Row:
    text = f"its worker ended twice: {visible(str(error), 200)}"
    return Row(model=source.shown, command=command, status="failed", error=text, bytes=source.size)
