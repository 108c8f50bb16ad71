"""The program as its screens see it: errors of its own, and the way to another model while it runs."""

from typing import TYPE_CHECKING, Any, cast

from onnxjson_tui.jobs import is_own_error, said
from onnxjson_tui.opening import Unreadable
from onnxjson_tui.recent import remember
from onnxjson_tui.session import Session

if TYPE_CHECKING:
    from textual.app import App

    from onnxjson_tui.app import WorkbenchApp


def program(app: "App[Any]") -> "WorkbenchApp":
    """The program that a screen is part of, by its own type."""
    # Not asked at run time: the program stands above its screens, which do not import it.
    return cast("WorkbenchApp", app)


def failure_said(app: "App[Any]", error: BaseException) -> str:
    """An error as a person reads it; errors of the program itself are kept for tests and for the end."""
    if is_own_error(error):
        program(app).failures.append(error)
    return said(error)


def opened(name: str, *, readonly: bool) -> Session | Unreadable:
    """A session on what was named, which is remembered; takes as long as reading does.

    Raises:
        MissingInputError, AccessDeniedError, FileError: it cannot be read.
    """
    found = Session.open(name, readonly=readonly)
    path = found.path if isinstance(found, Unreadable) else found.opened.path
    if path is not None:
        remember(path)
    if isinstance(found, Session):
        # Before anything is shown: a question that comes later would take keys that are meant for the model.
        found.find_abandoned()
    return found


def enter(app: "App[Any]", found: Session | Unreadable, *, readonly: bool, left: Session | None = None) -> None:
    """Shows what was opened in the place of the screen that is seen.

    Args:
        app: the program.
        found: what `opened` gave.
        readonly: whether every change is refused.
        left: the session that ends with the screen, if it has one.
    """
    screen = program(app).screen_for(found, readonly=readonly)
    if left is not None:
        left.close()
        program(app).sessions = [each for each in program(app).sessions if each is not left]
    # Not awaited: the work that asks for it belongs to the screen that goes.
    app.call_later(app.switch_screen, screen)
