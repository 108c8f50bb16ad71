"""From the words of the command line to the first screen, and from the last one to an exit code."""

import gc
import signal
import sys
from collections.abc import Sequence
from typing import Any

from onnxjson_tui.session import Session
from onnxjson_tui.terminal import Choice, Terminal, detect


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
    terminal = detect(remote=remote, ascii_only=ascii_only, mouse=mouse)
    from onnxjson_tui.first_screen import first_screen

    first, session = first_screen(models, readonly=readonly, terminal=terminal)
    return _run(first, session, terminal)


def _run(first: Any, session: Session | None, terminal: Terminal) -> int:
    from onnxjson_tui.app import WorkbenchApp

    # Records of a big model would otherwise be looked through at every full collection, 0.2 s each time.
    gc.collect()
    gc.freeze()
    app = WorkbenchApp(first, terminal)
    app.sessions += [session] if session is not None else []

    def end(number: int, _: object) -> None:
        """The line is gone or somebody ends the program: what was done is on the disk before it ends."""
        for each in app.sessions:
            each.sync()
        sys.exit(128 + number)

    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, end)
    code = app.run(mouse=terminal.has_mouse)
    if app.failures:
        print(f"onnxjson: {len(app.failures)} errors of the program itself were shown", file=sys.stderr)  # noqa: T201
    return code or 0
