"""From the words of the command line to the first screen, and from the last one to an exit code."""

import gc
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from onnxjson_tui.session import Session
from onnxjson_tui.terminal import Choice, Terminal, detect

if TYPE_CHECKING:
    from onnxjson_tui.app import WorkbenchApp

LONGEST_END: Final = 1.5
"""Seconds after a signal when the program ends in any case, whatever disk or terminal it still waits for."""

_RESTORE: Final = (
    b"\x1b[?2004l"  # no brackets around what is pasted
    b"\x1b[?7h"  # long lines go on in the next row
    b"\x1b[?2048l\x1b[?1004l"  # nothing said of sizes and focus
    b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"  # nothing of the mouse
    b"\x1b[<u"  # keys as they are everywhere
    b"\x1b[?1049l\x1b[?25h"  # the screen as it was before, with its cursor
)
"""What gives a terminal back: xterm control sequences, and kitty's keyboard protocol."""


def start(models: Sequence[str], *, readonly: bool, remote: Choice, ascii_only: bool | None, mouse: bool) -> int:
    """Runs the program until the person leaves it; gives the exit code.

    Args:
        models: none, one, or two to compare.
        readonly: whether every change is refused.
        remote: whether the line is slow.
        ascii_only: draw with ASCII characters only; None looks at the terminal.
        mouse: whether the mouse is asked for.

    Raises:
        MissingInputError, AccessDeniedError, FileError: a model cannot be read.
    """
    from onnxjson.cli import output

    terminal = detect(remote=remote, ascii_only=ascii_only, mouse=mouse)
    with output.working(f"reading {' and '.join(models)}"):
        from onnxjson_tui.first_screen import first_screen

        first, session = first_screen(models, readonly=readonly, terminal=terminal)
    return run_program(first, terminal, () if session is None else (session,))


def run_program(first: Any, terminal: Terminal, sessions: Sequence[Session] = ()) -> int:
    """Shows a screen and those that follow until the person leaves; gives the exit code.

    Args:
        first: the screen.
        terminal: what it is shown on.
        sessions: those whose edits are to be on the disk when the program is ended from outside.
    """
    from onnxjson_tui.app import WorkbenchApp

    # Records of a big model would otherwise be looked through at every full collection, 0.2 s each time.
    gc.collect()
    gc.freeze()
    app = WorkbenchApp(first, terminal)
    app.sessions += sessions
    former = {number: signal.signal(number, _ending(app)) for number in (signal.SIGHUP, signal.SIGTERM)}
    # ctrl+c is a key of the program, and between two programs of a terminal it is nobody's.
    former[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = app.run(mouse=terminal.has_mouse)
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    if app.failures:
        print(f"onnxjson: {len(app.failures)} errors of the program itself were shown", file=sys.stderr)  # noqa: T201
    return code or app.return_code or 0


def _ending(app: "WorkbenchApp") -> Callable[[int, object], None]:
    """What is done when the line is gone or somebody ends the program: nothing is lost, the terminal is given back."""

    def end(number: int, _: object) -> None:
        code = 128 + number
        timer = threading.Timer(LONGEST_END, os._exit, (code,))
        timer.daemon = True
        timer.start()
        with suppress(Exception):
            for session in app.sessions:
                session.sync()
        _give_back(app)
        # An exception out of a handler would be caught by whatever runs now, and the loop would wait for its threads.
        os._exit(code)

    return end


def _give_back(app: "WorkbenchApp") -> None:
    """Leaves the terminal as it was, if there still is one; waits for nothing."""
    driver = app._driver
    before = getattr(driver, "attrs_before", None)
    descriptor = getattr(driver, "fileno", None)
    if descriptor is None or before is None:
        return
    with suppress(OSError, termios.error):
        was_blocking = os.get_blocking(descriptor)
        os.set_blocking(descriptor, False)
        try:
            os.write(descriptor, _RESTORE)
        finally:
            os.set_blocking(descriptor, was_blocking)
    with suppress(OSError, termios.error):
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
