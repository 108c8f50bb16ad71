"""Access to the program for its screens: internal errors, and opening another model."""

from typing import TYPE_CHECKING, Any, cast

from onnxjson_tui.session.opening import Unreadable, remember
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.jobs import error_text, is_own_error

if TYPE_CHECKING:
    from textual.app import App

    from onnxjson_tui.shell.bench import Program


def program(app: "App[Any]") -> "Program":
    """Return the program of a screen with its own type."""
    # Not checked at run time, since screens do not import the program.
    return cast("Program", app)


def failure_text(app: "App[Any]", error: BaseException) -> str:
    """Return an error as a message; internal errors are also stored for tests and for the end."""
    if is_own_error(error):
        program(app).failures.append(error)
    return error_text(error)


def opened(name: str, *, readonly: bool) -> Session | Unreadable:
    """Open a session on a file or revision and remember it as recent; reads the whole model.

    Raises:
        MissingInputError, AccessDeniedError, FileError: the file cannot be read.
    """
    found = Session.open(name, readonly=readonly)
    path = found.path if isinstance(found, Unreadable) else found.opened.path
    if path is not None:
        remember(path)
    if isinstance(found, Session):
        # Before anything is shown: a later question would catch keys that are meant for the model.
        found.find_abandoned()
    return found


def enter(app: "App[Any]", found: Session | Unreadable, *, readonly: bool, left: Session | None = None) -> None:
    """Replace the current screen by that of an opened model.

    Args:
        app: the program.
        found: the result of `opened`.
        readonly: whether to refuse every change.
        left: the session of the current screen, which is closed.
    """
    screen = program(app).screen_for(found, readonly=readonly)
    if left is not None:
        left.close()
        program(app).sessions = [each for each in program(app).sessions if each is not left]
    # Not awaited: the caller belongs to the screen that is removed.
    app.call_later(app.switch_screen, screen)
