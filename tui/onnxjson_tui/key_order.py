"""One key after the other: what a key does to focus and screens is done before the next one is looked at.

Textual gives a key to the widget that has the focus when it arrives, and widgets hear of their keys later, each by
itself. Keys that come in a burst, as they do over a slow line or when a text is pasted, would be given to the list
though the first of them opened a field, and one that answers a question to the model below the question.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from textual.app import App
    from textual.events import Event
    from textual.message_pump import MessagePump

_LONGEST: Final = 0.5
"""Seconds that the next key waits at most for a widget that is busy."""

_STEPS: Final = 20
"""Rounds of the loop, some µs each, that work which an action begins may take to open a screen; it takes about five."""

_LOOKS_EVERY: Final = 0.02
"""Seconds after which it is looked whether keys still have to wait for work that a key has begun."""

_WAYS_OUT: Final = ("escape", "ctrl+c")
"""Keys that wait for nothing, and drop those that do."""

_LOOKED: Final = 0.05
"""Seconds after which it is looked whether a widget that was asked has gone."""


class KeyOrder:
    """The keys of one program that wait for those before them."""

    def __init__(
        self, app: "App[Any]", give: "Callable[[Event], Awaitable[None]]", is_held: Callable[[], bool]
    ) -> None:
        """Begins with none.

        Args:
            app: whose keys they are.
            give: gives a key to whatever has the focus.
            is_held: whether work goes on of which a question may come that the next keys are for.
        """
        self._app = app
        self._give = give
        self._is_held = is_held
        self._waiting: deque[Event] = deque()
        self._task: asyncio.Task[None] | None = None

    def put(self, event: "Event") -> None:
        """A key, or a text that was pasted."""
        self._waiting.append(event)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="keys")

    def drop(self) -> None:
        """Forgets the keys that wait: what they were typed for does not come, or something else came."""
        self._waiting.clear()

    async def _run(self) -> None:
        while self._waiting:
            try:
                await self._released()
                if not self._waiting:
                    return
                event = self._waiting.popleft()
                await self._give(event)
                await self._settled()
            except Exception as error:
                self._app._handle_exception(error)
                return

    @property
    def is_idle(self) -> bool:
        """Whether every key was heard."""
        return self._task is None or self._task.done()

    async def _released(self) -> None:
        """Until no work goes on of which a question may come; there it is then."""
        while self._is_held():
            way_out = next((place for place, event in enumerate(self._waiting) if _is_way_out(event)), None)
            if way_out is not None or not self._waiting:
                # What was typed before it was for the question that nobody wants any more.
                for _ in range(way_out or 0):
                    self._waiting.popleft()
                return
            await asyncio.sleep(_LOOKS_EVERY)
            if not self._is_held():
                # The action goes on now: it asks, or begins the next work.
                await self._settled(_STEPS)

    async def _settled(self, steps: int = 3) -> None:
        """Until those that may hear of the key have heard of it, and what they asked for is there."""
        if not self._app.screen_stack:
            return  # The program has ended.
        screen, focused = self._app.screen, self._app.focused
        await self._heard(focused or screen)
        for _ in range(steps):
            await asyncio.sleep(0)
        if not self._app.screen_stack:
            return
        if self._app.screen is not screen or self._app.focused is not focused:
            await self._heard(self._app.focused or self._app.screen)

    async def _heard(self, target: "MessagePump") -> None:
        node: MessagePump | None = target
        while node is not None:
            parent = node._parent
            done = asyncio.Event()
            if node.is_running and node.call_later(done.set):
                await _wait(done, node)
            node = parent


def _is_way_out(event: "Event") -> bool:
    return getattr(event, "key", "") in _WAYS_OUT


async def _wait(done: asyncio.Event, node: "MessagePump") -> None:
    """Until it is done, or the widget has gone and will never do it."""
    waited = 0.0
    while waited < _LONGEST and node.is_running and not done.is_set():
        try:
            await asyncio.wait_for(done.wait(), _LOOKED)
        except TimeoutError:
            waited += _LOOKED
