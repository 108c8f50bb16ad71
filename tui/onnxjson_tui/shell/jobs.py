"""Background jobs: work in threads, shown in the footer after a second, and cancelled with escape."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from onnxjson.model.display import visible
from onnxjson.model.errors import OnnxJsonError, is_out_of_memory

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.worker import Worker

_T = TypeVar("_T")

QUIET: Final = 1.0  # seconds before a job is shown

SHOWN_AFTER: Final = 0.3
"""Seconds before a job that holds the keys is shown, since the keys have no other visible effect."""


_AT_LEAST: Final = 0.01  # minimum seconds of a timer, for what is already late
_AT_ONCE: Final = 0.05  # maximum seconds between two jobs of the same action


class Job:
    """A piece of work."""

    def __init__(self, group: str, label: str, *, is_kept: bool = False, holds_keys: bool = False) -> None:
        self.group = group
        self.label = label
        self.is_kept = is_kept  # whether it cannot be cancelled, such as a save
        self.holds_keys = holds_keys  # whether it may lead to a question, to which keys typed in the meantime belong
        self.started = time.monotonic()
        self.keys_wait_since = self.started
        """When the keys began to wait: the start of the first of several successive jobs of an action."""
        self.is_dropped = False
        """Whether it is cancelled, so that the result is ignored. Long work may check this and stop."""
        self.dropped: Callable[[], object] | None = None  # called when the job is cancelled
        self.worker: Worker[None] | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def is_slow(self) -> bool:
        """Whether it has been running long enough to be shown."""
        if self.holds_keys:
            return time.monotonic() - self.keys_wait_since >= SHOWN_AFTER
        return self.seconds >= QUIET

    @property
    def status(self) -> str:
        """Text for the footer: label, seconds, and how to cancel. Without control characters."""
        seconds = f" {self.seconds:.0f} s" if self.seconds >= QUIET else ""
        return f"{visible(self.label)} ...{seconds}{'' if self.is_kept else '   esc cancels'}"


class Jobs:
    """The jobs of one screen. A new job of a group cancels the previous one."""

    def __init__(
        self, screen: "Screen[Any]", failed: Callable[[BaseException], None], looked: Callable[[], None]
    ) -> None:
        """Start without jobs.

        `failed` gets the error of a job that has no handler of its own; `looked` is called when a job starts and ends,
        and every half second in between. Jobs end with the screen.
        """
        self._screen = screen
        self._app = screen.app
        self._failed = failed
        self._looked = looked
        self._jobs: dict[str, Job] = {}
        self._timer: Any = None
        self._last_holder: tuple[Job, float] | None = None  # the last job that held the keys, and when it ended

    @property
    def running(self) -> tuple[Job, ...]:
        """The running jobs, oldest first."""
        return tuple(self._jobs.values())

    def is_running(self, group: str) -> bool:
        """Whether a job of a group is running."""
        return group in self._jobs

    @property
    def hold_keys(self) -> bool:
        """Whether one of them may lead to a question."""
        return any(job.holds_keys for job in self._jobs.values())

    def start(
        self,
        group: str,
        label: str,
        work: Callable[[], _T],
        done: Callable[[_T], object],
        failed: Callable[[BaseException], None] | None = None,
        *,
        is_kept: bool = False,
        holds_keys: bool = False,
    ) -> Job:
        """Run `work`, which must not use widgets, in a thread; `done` gets its result unless the job was cancelled.

        Only the newest job of a group counts. With `is_kept`, escape does not cancel it; with `holds_keys`, keys that
        are typed meanwhile wait for the result.
        """
        self.drop(group)
        job = self._jobs[group] = Job(group, label, is_kept=is_kept, holds_keys=holds_keys)
        # A worker ends with its screen.
        job.worker = self._screen.run_worker(
            partial(self._answer, job, work, done, failed or self._failed), group="jobs", exit_on_error=False
        )
        self._tick(job)
        return job

    async def _answer(
        self, job: Job, work: Callable[[], _T], done: Callable[[_T], object], failed: Callable[[BaseException], None]
    ) -> None:
        outcome: Callable[[], object]
        try:
            outcome = partial(done, await _in_thread(work, f"onnxjson-{job.group}"))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            outcome = partial(failed, error)
        if self._jobs.get(job.group) is job:
            del self._jobs[job.group]
            self._ended(job)
        if job.is_dropped or getattr(self._screen, "is_answered", False):
            return  # The screen is about to close.
        try:
            outcome()
        except Exception as error:
            self._failed(error)

    async def awaited(self, group: str, label: str, work: Callable[[], _T], *, holds_keys: bool = True) -> _T:
        """Run work in a thread and return its result; it cannot be cancelled. Raises what `work` raises."""
        job = Job(group, label, is_kept=True, holds_keys=holds_keys)
        # In addition to a running job of the same group: both continue.
        key = f"{group} {id(job)}"
        self._jobs[key] = job
        self._tick(job)
        try:
            return await asyncio.to_thread(work)
        finally:
            del self._jobs[key]
            self._ended(job)

    async def run(self, group: str, label: str, work: Callable[[], _T], *, holds_keys: bool = True) -> _T:
        """Run work in a thread, hold the keys meanwhile unless it only reads, and return its result.

        Raises:
            asyncio.CancelledError: the job was cancelled.
            Exception: whatever `work` raises.
        """
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()

        def failed(error: BaseException) -> None:
            if not future.done():
                future.set_exception(error)

        def done(result: _T) -> None:
            if not future.done():
                future.set_result(result)

        job = self.start(group, label, work, done, failed, holds_keys=holds_keys)
        job.dropped = future.cancel
        return await future

    def drop(self, group: str) -> None:
        """Cancel the job of a group."""
        job = self._jobs.pop(group, None)
        if job is not None:
            job.is_dropped = True
            if job.worker is not None:
                job.worker.cancel()
            if job.dropped is not None:
                job.dropped()
            self._look()

    def drop_all(self) -> bool:
        """Cancel all jobs that were started, because the screen closes; return whether there were any."""
        groups = [group for group, job in self._jobs.items() if job.worker is not None]
        for group in groups:
            self.drop(group)
        return bool(groups)

    def _ended(self, job: Job) -> None:
        if job.holds_keys:
            self._last_holder = (job, time.monotonic())
        self._look()

    def _tick(self, job: Job) -> None:
        if job.holds_keys and self._last_holder is not None and job.started - self._last_holder[1] < _AT_ONCE:
            job.keys_wait_since = self._last_holder[0].keys_wait_since
        self._look()
        if job.holds_keys:
            rest = SHOWN_AFTER - (time.monotonic() - job.keys_wait_since)
            self._app.set_timer(max(rest, _AT_LEAST), lambda: self._look() if job in self.running else None)
        if self._timer is None:
            self._timer = self._app.set_interval(0.5, self._look)

    def _look(self) -> None:
        if not self._jobs and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._looked()


async def _in_thread(work: Callable[[], _T], name: str) -> _T:
    """Run work in a thread that does not keep the program alive, unlike those of `asyncio.to_thread`.

    Raises:
        MemoryError: the system starts no more threads.
    """
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[_T] = loop.create_future()

    def answer(outcome: Callable[[], None]) -> None:
        if not answered.done():
            outcome()

    def run() -> None:
        try:
            outcome = partial(answered.set_result, work())
        except BaseException as error:
            outcome = partial(answered.set_exception, error)
        with suppress(RuntimeError):  # the program ended meanwhile
            loop.call_soon_threadsafe(answer, outcome)

    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError as error:
        raise MemoryError from error
    return await answered


def is_own_error(error: BaseException) -> bool:
    """Whether an error is internal, and not caused by the user's request."""
    return not isinstance(error, OnnxJsonError | OSError) and not is_out_of_memory(error)


def error_text(error: BaseException) -> str:
    """Return an error as a message for the footer."""
    if is_out_of_memory(error):
        return "not enough memory; nothing was changed"
    if is_own_error(error):
        return f"internal error of onnxjson, nothing was changed: {type(error).__name__}: {error}"
    return str(error)
