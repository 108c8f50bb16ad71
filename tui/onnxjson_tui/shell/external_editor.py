"""External editor in this terminal, while the program waits."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxjson.model.errors import OnnxJsonError

if TYPE_CHECKING:
    from textual.app import App


def edit(app: "App[Any]", path: Path, place: tuple[int, int] | None = None) -> None:
    """Open a file in $VISUAL or $EDITOR and wait until the editor ends.

    The event loop is blocked meanwhile: its output would be invisible, and writing to a terminal that belongs to
    another program can block forever.

    Args:
        app: the program, which is suspended.
        path: the file.
        place: initial line and column, from 1, for editors that support it.

    Raises:
        OnnxJsonError: no editor is set, it cannot be started, or it failed.
    """
    from onnxjson.cli import editors, processes

    command = editors.chosen().command(path, place)
    failure: OnnxJsonError | None = None
    with app.suspend():
        # An exception in here would never resume the program.
        try:
            processes.run_editor(command)
        except OnnxJsonError as error:
            failure = error
    if failure is not None:
        raise failure
