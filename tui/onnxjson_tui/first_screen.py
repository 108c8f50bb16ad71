"""Which screen comes first, by what is named: a model, two of them, a file that is no model, nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.screen import Screen

from onnxjson_tui.entering import opened
from onnxjson_tui.opening import Unreadable
from onnxjson_tui.session import Session
from onnxjson_tui.terminal import Terminal
from onnxjson_tui.workbench import Workbench


def first_screen(models: Sequence[str], *, readonly: bool, terminal: Terminal) -> tuple[Screen[Any], Session | None]:
    """The screen to begin with, and the session on its model if there is one.

    Raises:
        MissingInputError, AccessDeniedError, FileError: a model cannot be read.
    """
    if not models:
        from onnxjson_tui.screens.opening import StartScreen

        return StartScreen(readonly=readonly), None
    if len(models) == 2:
        from onnxjson_tui.screens.comparison import comparison_of_files

        return comparison_of_files(models[0], models[1], terminal), None
    if is_trace(models[0]):
        from onnxjson_tui.screens.tracing import trace_of_folder

        return trace_of_folder(models[0], terminal), None
    return screen_of(opened(models[0], readonly=readonly), terminal, readonly=readonly)


def is_trace(name: str) -> bool:
    """Whether a folder holds the trace of a pipeline."""
    return (Path(name) / "trace.json").is_file()


def screen_of(found: Session | Unreadable, terminal: Terminal, *, readonly: bool) -> tuple[Screen[Any], Session | None]:
    """The screen for what was opened, and its session if there is one."""
    if isinstance(found, Unreadable):
        from onnxjson_tui.screens.findings import FindingsScreen

        return FindingsScreen(found, readonly=readonly), None
    return Workbench(found, terminal), found
