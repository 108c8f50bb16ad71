"""Queue of key events: each key takes full effect on focus and screens before the next one is delivered.

Textual sends a key to the widget that has the focus when the key arrives, and widgets handle their keys later. Keys
that arrive in a burst, as over a slow connection or from a paste, would all go to the list although the first of them
opened a field, and a key that answers a question would go to the screen below the question.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from textual.app import App
    from textual.events import Event
    from textual.message_pump import MessagePump

_LONGEST: Final = 0.5  # maximum seconds that the next key waits for a busy widget
_STEPS: Final = 20  # rounds of the event loop, some µs each, in which an action may open a screen; about five are usual
_HOLD_INTERVAL: Final = 0.02  # seconds between checks whether work started by a key still holds back the next keys
_CANCEL_KEYS: Final = ("escape", "ctrl+c")  # keys that do not wait, and that discard the waiting ones
_WIDGET_INTERVAL: Final = 0.05  # seconds between checks whether the target widget was removed


class KeyOrder:
    """Queue of the keys of one program."""

    def __init__(
        self, app: "App[Any]", deliver: "Callable[[Event], Awaitable[None]]", is_held: Callable[[], bool]
    ) -> None:
        """Create an empty queue.

        `deliver` sends a key to the widget that has the focus; `is_held` returns whether work is running that may ask a
        question, to which the next keys belong.
        """
        self._app = app
        self._deliver = deliver
        self._is_held = is_held
        self._waiting: deque[Event] = deque()
        self._task: asyncio.Task[None] | None = None

    def put(self, event: "Event") -> None:
        """Add a key or a pasted text."""
        self._waiting.append(event)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="keys")

    def drop(self) -> None:
        """Discard the waiting keys, because the question or screen for which they were typed will not appear."""
        self._waiting.clear()

    async def _run(self) -> None:
        while self._waiting:
            try:
                await self._wait_for_release()
                if not self._waiting:
                    return
                event = self._waiting.popleft()
                await self._deliver(event)
                await self._wait_for_effects()
            except Exception as error:
                self._app._handle_exception(error)
                return

    @property
    def is_idle(self) -> bool:
        """Whether every key was handled."""
        return self._task is None or self._task.done()

    async def _wait_for_release(self) -> None:
        """Wait until no running work may ask a question, or the question is on the screen."""
        while self._is_held():
            cancel = next((place for place, event in enumerate(self._waiting) if _is_cancel(event)), None)
            if cancel is not None or not self._waiting:
                # The keys before it were meant for the question that is now cancelled.
                for _ in range(cancel or 0):
                    self._waiting.popleft()
                return
            await asyncio.sleep(_HOLD_INTERVAL)
            if not self._is_held():
                # The action continues now: it asks its question or starts the next work.
                await self._wait_for_effects(_STEPS)

    async def _wait_for_effects(self, steps: int = 3) -> None:
        """Wait until all widgets that may handle the key have done so and their effects are visible."""
        if not self._app.screen_stack:
            return  # The program has ended.
        screen, focused = self._app.screen, self._app.focused
        await self._wait_for_handlers(focused or screen)
        for _ in range(steps):
            await asyncio.sleep(0)
        if not self._app.screen_stack:
            return
        if self._app.screen is not screen or self._app.focused is not focused:
            await self._wait_for_handlers(self._app.focused or self._app.screen)

    async def _wait_for_handlers(self, target: "MessagePump") -> None:
        node: MessagePump | None = target
        while node is not None:
            parent = node._parent
            done = asyncio.Event()
            if node.is_running and node.call_later(done.set):
                await _wait(done, node)
            node = parent


def _is_cancel(event: "Event") -> bool:
    return getattr(event, "key", "") in _CANCEL_KEYS


async def _wait(done: asyncio.Event, node: "MessagePump") -> None:
    """Wait until the event is set, or the widget was removed and will never set it."""
    waited = 0.0
    while waited < _LONGEST and node.is_running and not done.is_set():
        try:
            await asyncio.wait_for(done.wait(), _WIDGET_INTERVAL)
        except TimeoutError:
            waited += _WIDGET_INTERVAL
