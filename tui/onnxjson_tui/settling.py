"""The conflicts of a merge on the screen: what ``onnxjson mergetool`` starts, and ``onnxjson tui --merge``."""

from pathlib import Path

from onnxjson.merging.settling import Settling, open_settling
from onnxjson_tui.screens.conflicts import ConflictsScreen
from onnxjson_tui.start import run_program
from onnxjson_tui.terminal import Choice, Terminal, detect


def run(settling: Settling, terminal: Terminal | None = None) -> None:
    """Shows the conflicts until the person leaves; `Settling.exit_code` says what came of it.

    Args:
        settling: what there is to decide.
        terminal: what it is shown on; the one of this process if it is None.
    """
    terminal = terminal or detect()
    run_program(ConflictsScreen(settling, terminal), terminal)


def run_on(path: str, *, remote: Choice, ascii_only: bool | None, mouse: bool) -> int:
    """The same for a file that has conflicts; gives the exit code, 0 where none is left in it.

    Raises:
        OnnxJsonError: it cannot be read.
    """
    settling = open_settling(Path(path))
    if settling.conflicts:
        run(settling, detect(remote=remote, ascii_only=ascii_only, mouse=mouse))
    return settling.exit_code
