"""Terminal driver that queues at most one frame, and converts output to ASCII for terminals that need it.

Textual queues up to thirty frames for a slow connection; after a key was held down, they are still drawn long after it
was released. With a queue of one frame the program waits for the connection and then draws the current state.
"""

import sys
import unicodedata
from typing import TYPE_CHECKING, Final

from onnxjson.rendering.tables import cells
from onnxjson_tui.rows.lanes import Glyphs

if TYPE_CHECKING:
    from textual.driver import Driver

_DRAWN: Final = {
    "…": "~", "─": "-", "━": "-", "│": "|", "┃": "|", "▾": "-", "▸": "+", "→": ">", "←": "<", "↑": "^", "↓": "v",
    "×": "x", "·": ".", "•": "*", "●": "*", "○": "o", "█": "#", "‘": "'", "’": "'", "“": '"', "”": '"', "–": "-",
    **dict.fromkeys("▁▂▃▄▅▆▇▏▎▍▌▋▊▉", " "),  # the ends of scrollbars, whose whole cells are reversed blanks
}  # fmt: skip
"""ASCII replacements of characters that the program draws with."""


class _Plain(dict[int, str]):
    """ASCII replacements of any character, with the same number of columns."""

    def __missing__(self, number: int) -> str:
        character = chr(number)
        if number < 128:
            found = character
        elif character in _DRAWN:
            found = _DRAWN[character]
        elif unicodedata.name(character, "").startswith("BOX DRAWINGS"):
            found = "+"
        else:
            found = "?" * cells(character)
        self[number] = found
        return found


_PLAIN: Final = _Plain()


def plain(data: str) -> str:
    """Convert output to ASCII with the same number of columns; ? replaces characters without a similar one."""
    return data if data.isascii() else data.translate(_PLAIN)


def driver_class(glyphs: Glyphs = "unicode") -> "type[Driver] | None":
    """Return Textual's driver with a queue of one frame; None on Windows, where Textual chooses.

    Args:
        glyphs: the characters that the terminal shows. All output passes here: borders, scrollbars, names of the model.
    """
    if sys.platform == "win32":
        return None
    from textual.drivers.linux_driver import LinuxDriver

    class OneFrameDriver(LinuxDriver):
        """Textual's driver, with a queue of one frame."""

        def write(self, data: str) -> None:
            """Write output, converted to ASCII if needed."""
            super().write(plain(data) if glyphs == "ascii" else data)

        def start_application_mode(self) -> None:
            """Start to use the terminal."""
            super().start_application_mode()  # type: ignore[no-untyped-call]
            if self._writer_thread is not None:
                # queue.Queue checks maxsize on every put.
                self._writer_thread._queue.maxsize = 1

    return OneFrameDriver
