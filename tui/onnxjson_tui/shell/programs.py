"""Access to the program for its screens: internal errors, opening another model, the external editor."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from onnxjson.model.errors import OnnxJsonError
from onnxjson_tui.session.opening import Unreadable, expanded, remember
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.jobs import error_text, is_own_error

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

    from onnxjson_tui.widgets.key_order import KeyOrder


class Program(Protocol):
    """The program that the screens are part of."""

    sessions: list[Session]  # sessions whose edits must reach the disk when the program is ended from outside
    failures: list[BaseException]  # errors of the program itself that were shown to the user
    keys: "KeyOrder"  # keys that are not handled yet

    def screen_for(self, found: Session | Unreadable, *, readonly: bool) -> "Screen[Any]":
        """Return the screen for what was opened."""
        ...


def program(app: "App[Any]") -> Program:
    """Return the program of a screen with its own type."""
    # Not checked at run time, since screens do not import the program.
    return cast(Program, app)


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
    found = Session.open(str(expanded(name)) if name.startswith("~") else name, readonly=readonly)
    path = found.path if isinstance(found, Unreadable) else found.opened.path
    if path is not None:
        remember(path)
    if isinstance(found, Session):
        # Before anything is shown: a later question would catch keys that are meant for the model.
        found.find_abandoned()
    return found


def enter(app: "App[Any]", found: Session | Unreadable, *, readonly: bool, left: Session | None = None) -> None:
    """Replace the current screen by that of an opened model; close the session of the current screen if it is given."""
    screen = program(app).screen_for(found, readonly=readonly)
    if left is not None:
        left.close()
        program(app).sessions = [each for each in program(app).sessions if each is not left]
    # Not awaited: the caller belongs to the screen that is removed.
    app.call_later(app.switch_screen, screen)


def edit_file(app: "App[Any]", path: Path, place: tuple[int, int] | None = None) -> None:
    """Open a file in $VISUAL or $EDITOR, at a line and column if the editor supports it; wait until the editor ends.

    The event loop is blocked meanwhile: its output would be invisible, and writing to a terminal that belongs to
    another program can block forever.

    Raises:
        OnnxJsonError: no editor is set, it cannot be started, or it failed.
    """
    from onnxjson.cli import processes

    command = processes.chosen_editor().command(path, place)
    failure: OnnxJsonError | None = None
    with app.suspend():
        # An exception in here would never resume the program.
        try:
            processes.run_editor(command)
        except OnnxJsonError as error:
            failure = error
    if failure is not None:
        raise failure
