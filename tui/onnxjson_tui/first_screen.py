"""Which screen comes first, by what is named: a model, two of them, a file that is no model, nothing."""

from collections.abc import Sequence
from typing import Any

from textual.screen import Screen

from onnxjson_tui.session import Session
from onnxjson_tui.terminal import Terminal
from onnxjson_tui.workbench import Workbench


def first_screen(models: Sequence[str], *, readonly: bool, terminal: Terminal) -> tuple[Screen[Any], Session | None]:
    """The screen to begin with, and the session on its model if there is one.

    Raises:
        MissingInputError, AccessDeniedError, FileError: a model cannot be read.
    """
    session = Session.open(models[0], readonly=readonly)
    assert isinstance(session, Session)
    return Workbench(session, terminal), session
