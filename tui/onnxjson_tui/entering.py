"""From one screen to that of another model, while the program runs."""

from typing import TYPE_CHECKING

from onnxjson_tui.first_screen import screen_of
from onnxjson_tui.opening import Unreadable
from onnxjson_tui.session import Session
from onnxjson_tui.terminal import Terminal

if TYPE_CHECKING:
    from textual.app import App


def enter(
    app: "App[int]", found: Session | Unreadable, terminal: Terminal, *, readonly: bool, left: Session | None = None
) -> None:
    """Shows what was opened in the place of the screen that is seen.

    Args:
        app: the program.
        found: what `first_screen.opened` gave.
        terminal: what it is shown on.
        readonly: whether every change is refused.
        left: the session that ends with the screen, if it has one.
    """
    from onnxjson_tui.app import WorkbenchApp

    screen, session = screen_of(found, terminal, readonly=readonly)
    if left is not None:
        left.close()
    if isinstance(app, WorkbenchApp):
        app.sessions = [each for each in app.sessions if each is not left] + ([session] if session is not None else [])
    # Not awaited: the work that asks for it belongs to the screen that goes.
    app.call_later(app.switch_screen, screen)
