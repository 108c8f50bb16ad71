"""Capabilities of the terminal: remote or local, characters and colours."""

import os
import sys
from collections.abc import Mapping
from typing import Literal, NamedTuple

from onnxjson_tui.rows.lanes import Glyphs

Choice = Literal["auto", "on", "off"]

_PLAIN_TERMINALS = frozenset({"linux", "dumb", "vt100", "vt220", "ansi"})
"""Values of TERM of terminals whose fonts lack most of the line characters."""


class Terminal(NamedTuple):
    """The capabilities that screens depend on."""

    is_remote: bool
    """Whether to send few bytes: no animation, sixteen colours, one frame at a time."""
    glyphs: Glyphs
    theme: str
    has_mouse: bool

    @property
    def ellipsis(self) -> str:
        """The mark of shortened text."""
        return "…" if self.glyphs == "unicode" else "~"


def detect(
    environment: Mapping[str, str] | None = None,
    *,
    remote: Choice = "auto",
    ascii_only: bool | None = None,
    mouse: bool = True,
) -> Terminal:
    """Detect the terminal from the environment and the user's options.

    Args:
        environment: ``os.environ`` if None.
        remote: whether the connection is slow; "auto" checks SSH_CONNECTION and SSH_TTY.
        ascii_only: draw with ASCII characters; None checks the encoding and TERM.
        mouse: whether to use the mouse.
    """
    found = os.environ if environment is None else environment
    is_remote = remote == "on" or (remote == "auto" and bool(found.get("SSH_CONNECTION") or found.get("SSH_TTY")))
    term = found.get("TERM", "")
    if ascii_only is None:
        ascii_only = term in _PLAIN_TERMINALS or not _is_unicode(found)
    few_colours = is_remote or "NO_COLOR" in found or term in _PLAIN_TERMINALS
    return Terminal(is_remote, "ascii" if ascii_only else "unicode", "ansi-dark" if few_colours else "onnxjson", mouse)


def _is_unicode(environment: Mapping[str, str]) -> bool:
    """Whether the locale, or else the stream, is UTF-8."""
    locale = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    if locale and locale not in ("C", "POSIX"):
        return "utf-8" in locale.lower() or "utf8" in locale.lower()
    encoding = getattr(sys.__stdout__, "encoding", None) or ""
    return encoding.lower().replace("-", "") == "utf8"
