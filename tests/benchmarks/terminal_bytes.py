"""``python -m tests.benchmarks.terminal_bytes``: the bytes that keys of the workbench send to a terminal of 120x35.

Each number is the largest of several presses: of what comes at once, and of the inspector, which follows when the
cursor rests.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.benchmarks.report import table
from tests.benchmarks.tui_screen import Answer, start

SIZE: Final = (120, 35)
_MODEL: Final = Path(__file__).parent.parent / "models" / "encoder_ts.onnx"
_ROUNDS: Final = 8

_KEYS: Final = (
    ("j on the page of lines", b"gg", (b"j",) * _ROUNDS),
    ("j in the list of nodes", b"Zgg", (b"j",) * _ROUNDS),
    ("ctrl+d in the list of nodes", b"gg", (b"\x04",) * _ROUNDS),
    ("a dialog opens (gn)", b"", (b"gn",)),
    ("it closes (esc)", b"", (b"\x1b",)),
    ("the list of keys opens (?)", b"", (b"?",)),
    ("it closes (esc)", b"", (b"\x1b",)),
    ("the next pane (tab)", b"", (b"\t",)),
)
"""What is measured, keys before it, and keys whose answers are measured."""


def _answers(path: Path, folder: Path, *, remote: bool) -> list[tuple[str, str]]:
    rows = []
    with start(path, folder, remote=remote, size=SIZE) as terminal:
        terminal.wait_for(b"main graph")
        terminal.read(quiet=2.0)
        for title, before, keys in _KEYS:
            if before:
                terminal.press(before)
            answers: list[Answer] = [terminal.press(key) for key in keys]
            at_once, after = max(each.size for each in answers), max(each.after for each in answers)
            rows.append((title, f"{at_once:,} + {after:,}" if after else f"{at_once:,}"))
    return rows


def main(arguments: list[str]) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.terminal_bytes", description=__doc__)
    parser.add_argument("--model", type=Path, default=_MODEL, help="an exported model if left out")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        local, remote = [_answers(given.model, Path(folder), remote=each) for each in (False, True)]
    rows = [(title, one, other) for (title, one), (_, other) in zip(local, remote, strict=True)]
    print(table("Bytes to a terminal of 120x35", ["key", "local", "over SSH"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
