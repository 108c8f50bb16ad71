"""Capabilities of the terminal, and Textual's driver for it, with ASCII output for terminals that need it.

Textual queues up to thirty frames for a slow connection; after a key was held down, they are still drawn long after it
was released. With a queue of one frame the program waits for the connection and then draws the current state.
"""

import os
import sys
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from onnxjson.rendering.tables import cells
from onnxjson_tui.rows.lanes import Glyphs

if TYPE_CHECKING:
    from textual.driver import Driver

Choice = Literal["auto", "on", "off"]

DARK: Final = "onnxjson"
LIGHT: Final = "onnxjson-light"
ANSI: Final = "onnxjson-ansi"
"""Names of the themes: for a dark and a light background, and with only the colours of the terminal itself."""

_PLAIN_TERMINALS = frozenset({"linux", "dumb", "vt100", "vt220", "ansi"})
"""Values of TERM of terminals whose fonts lack most of the line characters."""


class Terminal(NamedTuple):
    """The capabilities that screens depend on."""

    is_remote: bool  # whether to send few bytes: no animation, sixteen colours, one frame at a time
    glyphs: Glyphs
    theme: str
    has_mouse: bool


def detect(
    environment: Mapping[str, str] | None = None,
    *,
    remote: Choice = "auto",
    ascii_only: bool | None = None,
    mouse: bool = True,
) -> Terminal:
    """Detect the terminal from the environment and the user's options; "auto" and None mean that they are not given."""
    found = os.environ if environment is None else environment
    is_remote = remote == "on" or (remote == "auto" and bool(found.get("SSH_CONNECTION") or found.get("SSH_TTY")))
    term = found.get("TERM", "")
    if ascii_only is None:
        ascii_only = term in _PLAIN_TERMINALS or not _is_unicode(found)
    few_colours = is_remote or "NO_COLOR" in found or not _has_many_colours(found)
    is_light = found.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")
    theme = ANSI if few_colours else LIGHT if is_light else DARK
    return Terminal(is_remote, "ascii" if ascii_only else "unicode", theme, mouse)


def _has_many_colours(environment: Mapping[str, str]) -> bool:
    """Whether the terminal has 256 colours or more, as Rich decides it."""
    return environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit") or environment.get(
        "TERM", ""
    ).rpartition("-")[2] in ("256color", "kitty")


def _is_unicode(environment: Mapping[str, str]) -> bool:
    """Whether the locale, or else the stream, is UTF-8."""
    locale = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    if locale and locale not in ("C", "POSIX"):
        return "utf-8" in locale.lower() or "utf8" in locale.lower()
    encoding = getattr(sys.__stdout__, "encoding", None) or ""
    return encoding.lower().replace("-", "") == "utf8"


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
    """Return Textual's driver with a queue of one frame; None on Windows, where Textual chooses."""
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
