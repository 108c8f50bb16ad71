"""The person's own editor in this terminal, while the program waits."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxjson.errors import OnnxJsonError

if TYPE_CHECKING:
    from textual.app import App


def edit(app: "App[Any]", path: Path, place: tuple[int, int] | None = None) -> None:
    """Opens a file in $VISUAL or $EDITOR and comes back when that ends.

    The loop stands still meanwhile: nobody could see what it draws, and work that goes on while the terminal belongs to
    another program can block for ever when it writes.

    Args:
        app: gives the terminal away.
        path: the file.
        place: line and column to begin at, from 1, where the editor can be told.

    Raises:
        OnnxJsonError: no editor is known, it cannot be started, or it failed.
    """
    from onnxjson.cli import editors, processes

    command = editors.chosen().command(path, place)
    failure: OnnxJsonError | None = None
    with app.suspend():
        # What is raised in here would leave the terminal to the editor for good.
        try:
            processes.run_editor(command)
        except OnnxJsonError as error:
            failure = error
    if failure is not None:
        raise failure
