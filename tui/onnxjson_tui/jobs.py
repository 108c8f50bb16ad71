"""Work that takes longer than a frame: in a thread, with a word at the bottom after a second, dropped on escape."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from onnxjson.display import visible
from onnxjson.errors import OnnxJsonError

if TYPE_CHECKING:
    from textual.screen import Screen

_T = TypeVar("_T")

QUIET: Final = 1.0
"""Seconds before anything is said of a job."""

SAID_AFTER: Final = 0.3
"""Seconds before it is said of one for which the keys wait: nothing else shows that they were heard."""


_HARDLY: Final = 0.01
"""Seconds of a timer for what is late already."""

_AT_ONCE: Final = 0.05
"""Seconds after the end of a job within which the next one belongs to the same action."""


class Job:
    """One piece of work."""

    def __init__(self, group: str, label: str, *, is_kept: bool = False, holds_keys: bool = False) -> None:
        self.group = group
        self.label = label
        self.is_kept = is_kept
        """Whether it cannot be dropped, such as a save."""
        self.holds_keys = holds_keys
        """Whether a question may come of it, so that the keys that are typed meanwhile are for that."""
        self.started = time.monotonic()
        self.keys_wait_since = self.started
        """When the keys began to wait: of several jobs that an action does one after the other, with the first."""
        self.is_dropped = False
        """Whether nobody waits for what comes of it any more. Long work may look at it, and end."""
        self.dropped: Callable[[], object] | None = None
        """Is called when nobody waits any more."""

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.monotonic() - self.started

    @property
    def is_slow(self) -> bool:
        """Whether it takes so long that it should be said."""
        if self.holds_keys:
            return time.monotonic() - self.keys_wait_since >= SAID_AFTER
        return self.seconds >= QUIET

    @property
    def said(self) -> str:
        """What it does, how long it has done so, and the way out. Visible."""
        seconds = f" {self.seconds:.0f} s" if self.seconds >= QUIET else ""
        return f"{visible(self.label)} ...{seconds}{'' if self.is_kept else '   esc drops it'}"


class Jobs:
    """The jobs of one screen. A new job of a group drops the one before it."""

    def __init__(
        self, screen: "Screen[Any]", failed: Callable[[BaseException], None], looked: Callable[[], None]
    ) -> None:
        """Begins with none.

        Args:
            screen: to which results belong; those that come when it goes are dropped.
            failed: is given what a job raised, unless the job says itself who wants it.
            looked: is called when a job starts and ends, and every half second between.
        """
        self._screen = screen
        self._app = screen.app
        self._failed = failed
        self._looked = looked
        self._jobs: dict[str, Job] = {}
        self._timer: Any = None
        self._last_holder: tuple[Job, float] | None = None
        """The last job that held the keys, and when it ended."""

    @property
    def running(self) -> tuple[Job, ...]:
        """Jobs that somebody waits for, the oldest first."""
        return tuple(self._jobs.values())

    @property
    def hold_keys(self) -> bool:
        """Whether a question may come of one of them."""
        return any(job.holds_keys for job in self._jobs.values())

    def start(
        self,
        group: str,
        label: str,
        work: Callable[[], _T],
        done: Callable[[_T], object],
        failed: Callable[[BaseException], None] | None = None,
        *,
        holds_keys: bool = False,
    ) -> Job:
        """Does work in a thread; `done` is called on the loop, unless the job was dropped by then.

        Args:
            group: of jobs of which only the newest counts.
            label: what the person reads after a second.
            work: must not touch widgets.
            done: is given what it returns.
            failed: is given what it raises.
            holds_keys: whether keys that are typed meanwhile are for what comes of it.
        """
        self.drop(group)
        job = self._jobs[group] = Job(group, label, holds_keys=holds_keys)

        def answer(outcome: Callable[[], object]) -> None:
            if self._jobs.get(group) is job:
                del self._jobs[group]
                self._ended(job)
            if not job.is_dropped:
                outcome()

        def run() -> None:
            try:
                result = work()
            except BaseException as error:
                raised = error
                self._post(answer, lambda: (failed or self._failed)(raised))
            else:
                self._post(answer, lambda: done(result))

        threading.Thread(target=run, name=f"onnxjson-{group}", daemon=True).start()
        self._tick(job)
        return job

    async def awaited(self, group: str, label: str, work: Callable[[], _T], *, holds_keys: bool = True) -> _T:
        """Does work in a thread that somebody waits for, whatever happens: it is not dropped. Raises what it raises."""
        job = Job(group, label, is_kept=True, holds_keys=holds_keys)
        # Beside the job of the same group, if there is one: both are waited for.
        key = f"{group} {id(job)}"
        self._jobs[key] = job
        self._tick(job)
        try:
            return await asyncio.to_thread(work)
        finally:
            del self._jobs[key]
            self._ended(job)

    async def run(self, group: str, label: str, work: Callable[[], _T]) -> _T:
        """`start` for those who wait, for whom the keys wait, too: what `work` returns.

        Raises:
            asyncio.CancelledError: the job was dropped.
            Exception: whatever `work` raises.
        """
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()

        def failed(error: BaseException) -> None:
            if not future.done():
                future.set_exception(error)

        def done(result: _T) -> None:
            if not future.done():
                future.set_result(result)

        job = self.start(group, label, work, done, failed, holds_keys=True)
        job.dropped = future.cancel
        return await future

    def drop(self, group: str) -> None:
        """Nobody waits for a group any more."""
        job = self._jobs.pop(group, None)
        if job is not None:
            job.is_dropped = True
            if job.dropped is not None:
                job.dropped()
            self._look()

    def drop_all(self) -> bool:
        """Nobody waits for anything any more that can be dropped; whether anybody did."""
        groups = [group for group, job in self._jobs.items() if not job.is_kept]
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
            rest = SAID_AFTER - (time.monotonic() - job.keys_wait_since)
            self._app.set_timer(max(rest, _HARDLY), lambda: self._look() if job in self.running else None)
        if self._timer is None:
            self._timer = self._app.set_interval(0.5, self._look)

    def _look(self) -> None:
        if not self._jobs and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._looked()

    def _post(self, answer: Callable[[Callable[[], object]], None], outcome: Callable[[], object]) -> None:
        loop = getattr(self._app, "_loop", None)
        if loop is None or loop.is_closed():
            return
        try:
            loop.call_soon_threadsafe(self._answered, answer, outcome)
        except RuntimeError:
            return  # The program ended meanwhile, so nobody is there to hear.

    def _answered(self, answer: Callable[[Callable[[], object]], None], outcome: Callable[[], object]) -> None:
        if not self._app._running or self._screen._pruning or getattr(self._screen, "is_answered", False):
            return  # It is about to end: what would be drawn on is gone.
        with self._app._context():
            try:
                answer(outcome)
            except Exception as error:
                self._failed(error)


def is_own_error(error: BaseException) -> bool:
    """Whether an error is one of the program itself, not of what a person asked for."""
    return not isinstance(error, OnnxJsonError | OSError)


def said(error: BaseException) -> str:
    """An error as a person reads it at the bottom of the screen."""
    if is_own_error(error):
        return f"an error of onnxjson itself, nothing was changed: {type(error).__name__}: {error}"
    return str(error)
