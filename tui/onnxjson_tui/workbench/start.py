"""Start the program from the command line, and end it: exit code, signals, state of the terminal."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onnxjson.rendering.tables import distinct_texts
from onnxjson_tui.session.session import Session
from onnxjson_tui.shell.terminal import Choice, Terminal, detect, restore_terminal, terminal_attributes

if TYPE_CHECKING:
    from onnxjson.merging.conflicted_files import ResolutionSession
    from onnxjson_tui.workbench.app import WorkbenchApp

LONGEST_END: Final = 1.5
"""Seconds after a signal until the program ends in any case, even if disk or terminal do not respond."""

_TURN: Final = 0.0005
"""Seconds that a job in a thread computes before keys are looked at; Python's own 0.005 makes them ten times later."""

_ENDING: Final = ("SIGHUP", "SIGTERM", "SIGBREAK")
"""The signals of a closed connection, a kill, and a closed console of Windows; each system has some of them."""


def start(models: Sequence[str], *, readonly: bool, remote: Choice, ascii_only: bool | None, mouse: bool) -> int:
    """Run the program until the user leaves; return the exit code.

    With `ascii_only`, only ASCII characters are drawn; None detects what the terminal supports.

    Raises:
        MissingInputError, AccessDeniedError, FileError: a model cannot be read.
    """
    from onnxjson.cli import output

    terminal = detect(remote=remote, ascii_only=ascii_only, mouse=mouse)
    with output.working(f"reading {' and '.join(models)}"):
        from onnxjson_tui.workbench.app import first_screen

        first, session = first_screen(models, readonly=readonly, terminal=terminal)
    return run_program(first, terminal, () if session is None else (session,))


def run_program(first: Any, terminal: Terminal, sessions: Sequence[Session] = ()) -> int:
    """Run the program until the user leaves; return the exit code. Edits of `sessions` reach the disk in any case."""
    from textual.worker import WorkerFailed

    from onnxjson_tui.workbench.app import WorkbenchApp

    # Each full garbage collection would otherwise visit all records of a big model, which takes 0.2 s.
    gc.collect()
    gc.freeze()
    # A key takes many turns of the interpreter, for each of which it waits so long while a job computes.
    sys.setswitchinterval(_TURN)
    app = WorkbenchApp(first, terminal)
    app.sessions += sessions
    end = _ending(app, terminal_attributes())
    former = {number: signal.signal(number, end) for name in _ENDING if (number := getattr(signal, name, None))}
    # ctrl+c is a key of the program; while an editor starts or ends it must do nothing.
    former[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with distinct_texts(False):  # rows are drawn again and again
            code = app.run(mouse=terminal.has_mouse)
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    if app._exception is not None:
        from onnxjson.cli import output

        if any(session.is_changed for session in app.sessions):
            output.talk("onnxjson: unsaved edits are kept; open the model again to recover them", always=True)
        error = app._exception
        raise error.error if isinstance(error, WorkerFailed) else error
    if app.failures:
        print(f"onnxjson: {len(app.failures)} internal errors were shown", file=sys.stderr)  # noqa: T201
    return code or app.return_code or 0


def resolve(resolution: "ResolutionSession", terminal: Terminal | None = None) -> None:
    """Run the screen of conflicts until the user leaves, as ``onnxjson mergetool`` does."""
    from onnxjson_tui.screens.conflicts import ConflictsScreen

    terminal = terminal or detect()
    run_program(ConflictsScreen(resolution, terminal), terminal)


def resolve_file(path: str, *, remote: Choice, ascii_only: bool | None, mouse: bool) -> int:
    """Resolve the conflicts in a file, as ``onnxjson tui --merge`` does; return 0 if none is left.

    Raises:
        OnnxJsonError: the file cannot be read.
    """
    from onnxjson.merging.conflicted_files import open_session

    resolution = open_session(Path(path))
    if resolution.conflicts:
        resolve(resolution, detect(remote=remote, ascii_only=ascii_only, mouse=mouse))
    return resolution.exit_code


def _ending(app: "WorkbenchApp", attributes: "list[Any] | None") -> Callable[[int, object], None]:
    """Return the signal handler for a closed connection or a kill: write the journals and restore the terminal."""

    def end(number: int, _: object) -> None:
        code = 128 + number
        timer = threading.Timer(LONGEST_END, os._exit, (code,))
        timer.daemon = True
        timer.start()
        with suppress(Exception):
            for session in app.sessions:
                session.sync()
        if attributes is not None:
            restore_terminal(attributes)
        # An exception from a handler would be caught by the running code, and the loop would wait for its threads.
        os._exit(code)

    return end
