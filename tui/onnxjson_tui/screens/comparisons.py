"""The screens that compare two files, the session with another model, and the session with the saved file."""

from contextlib import ExitStack

from onnxjson_tui.rows.difference import (
    Compared,
    Side,
    compared,
    compared_edits,
    opened_side,
)
from onnxjson_tui.screens.comparison import ComparisonScreen
from onnxjson_tui.shell.terminal import Terminal
from onnxjson_tui.shell.workbench import Workbench


def comparison_of_files(base: str, target: str, terminal: Terminal) -> ComparisonScreen:
    """Return the screen that reads and compares two models, each a file or ``REV:path``."""
    resources = ExitStack()

    def work() -> Compared:
        return compared(opened_side(base, resources), opened_side(target, resources))

    return ComparisonScreen(f"comparing {base} and {target}", work, terminal)


def comparison_with(workbench: Workbench, other: str) -> ComparisonScreen:
    """Return the screen that compares the session with another model, a file or ``REV:path``."""
    session, resources = workbench.session, ExitStack()
    current = Side(session.opened.name, session.model, session.opened.path, session=session)

    def work() -> Compared:
        side = opened_side(other, resources)
        is_same = side.session is not None and side.session.opened.key == session.opened.key
        return compared(side._replace(session=None) if is_same else side, current)

    return ComparisonScreen(f"comparing {other} and {current.name}", work, workbench.terminal, workbench=workbench)


def comparison_unsaved(workbench: Workbench) -> ComparisonScreen:
    """Return the screen of changes since the model was opened or saved."""
    preview, path = workbench.session.unsaved(), workbench.session.opened.path
    name = workbench.session.opened.name
    base = Side(f"{name} as saved", preview.base, path)
    target = Side("current", preview.model, path, session=workbench.session)
    doing, work = "comparing with the saved model", lambda: compared_edits(base, target)
    return ComparisonScreen(doing, work, workbench.terminal, workbench=workbench, compare=compared_edits)
