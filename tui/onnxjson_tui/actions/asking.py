"""Asking in the line at the bottom for a value that is checked while it is typed."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxjson_tui.widgets.prompt import Complete
    from onnxjson_tui.workbench import Workbench


def _nothing(text: str) -> str:
    return ""


async def ask(
    bench: "Workbench",
    mark: str,
    *,
    text: str = "",
    hint: str = "",
    mistake: Callable[[str], str] = _nothing,
    complete: "Complete | None" = None,
) -> str | None:
    """What a person types; None where they give up. What does not fit is asked for again, nothing of it is lost.

    Args:
        bench: has the prompt.
        mark: stands before the field. Visible.
        text: what stands there at first.
        hint: what is expected, for the line below.
        mistake: says what is wrong with a text; "" where nothing is.
        complete: what tab offers.
    """
    pane = bench.pane
    while True:
        answered: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

        def done(answer: str | None, answered: "asyncio.Future[str | None]" = answered) -> None:
            if not answered.done():
                answered.set_result(answer)

        def changed(typed: str) -> None:
            found = mistake(typed)
            bench.say(found or hint, "bad" if found else "plain")

        bench.prompt.ask(mark, done, text=text, changed=changed, complete=complete)
        changed(text)
        answer = await answered
        bench.focus_pane(pane)
        bench.say("")
        if answer is None or not mistake(answer):
            return answer
        text = answer
