"""The way to the terminal: at most one frame waits to be written, and a terminal of ASCII gets nothing else.

Textual keeps up to thirty frames for a slow line; after a key was held they still have to be drawn when the person has
let go of it long ago. With one, the program waits for the line, and draws what is there to see then.
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
"""What stands for a character that the program draws with."""


class _Plain(dict[int, str]):
    """The ASCII characters for any character, in as many columns."""

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
    """What is written where only ASCII is shown: as many columns, with ? for what has no likeness there."""
    return data if data.isascii() else data.translate(_PLAIN)


def driver_class(glyphs: Glyphs = "unicode") -> "type[Driver] | None":
    """Textual's driver with a queue of one frame; None, for Textual to choose, where there are no POSIX terminals.

    Args:
        glyphs: the characters that the terminal shows. Borders, scrollbars and names of the model are drawn by many;
            here nothing gets past.
    """
    if sys.platform == "win32":
        return None
    from textual.drivers.linux_driver import LinuxDriver

    class OneFrameDriver(LinuxDriver):
        """Textual's driver, with a queue of one frame."""

        def write(self, data: str) -> None:
            """Write what the terminal shows."""
            super().write(plain(data) if glyphs == "ascii" else data)

        def start_application_mode(self) -> None:
            """Take the terminal over."""
            super().start_application_mode()  # type: ignore[no-untyped-call]
            if self._writer_thread is not None:
                # queue.Queue looks at maxsize whenever something is put.
                self._writer_thread._queue.maxsize = 1

    return OneFrameDriver
