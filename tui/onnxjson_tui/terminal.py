"""What the terminal at the other end can do: how far away it is, and which characters and colours it shows."""

import os
import sys
from collections.abc import Mapping
from typing import Literal, NamedTuple

from onnxjson_tui.rows.lanes import Glyphs

Choice = Literal["auto", "on", "off"]

_PLAIN_TERMINALS = frozenset({"linux", "dumb", "vt100", "vt220", "ansi"})
"""Values of TERM of terminals whose fonts lack most of what is drawn with."""


class Terminal(NamedTuple):
    """What the screen is made for."""

    is_remote: bool
    """Whether every byte counts: no animation, no colours beyond the sixteen, one frame on its way at a time."""
    glyphs: Glyphs
    theme: str
    has_mouse: bool

    @property
    def ellipsis(self) -> str:
        """Stands where something was cut."""
        return "…" if self.glyphs == "unicode" else "~"


def detect(
    environment: Mapping[str, str] | None = None,
    *,
    remote: Choice = "auto",
    ascii_only: bool | None = None,
    mouse: bool = True,
) -> Terminal:
    """The terminal, by what its environment says and what the person chose.

    Args:
        environment: ``os.environ`` if None.
        remote: whether it is at the other end of a slow line; "auto" looks for SSH_CONNECTION and SSH_TTY.
        ascii_only: draw with ASCII characters; None looks at the encoding and TERM.
        mouse: whether the mouse is asked for at all.
    """
    found = os.environ if environment is None else environment
    is_remote = remote == "on" or (remote == "auto" and bool(found.get("SSH_CONNECTION") or found.get("SSH_TTY")))
    term = found.get("TERM", "")
    if ascii_only is None:
        ascii_only = term in _PLAIN_TERMINALS or not _is_unicode(found)
    few_colours = is_remote or "NO_COLOR" in found or term in _PLAIN_TERMINALS
    return Terminal(is_remote, "ascii" if ascii_only else "unicode", "ansi-dark" if few_colours else "onnxjson", mouse)


def _is_unicode(environment: Mapping[str, str]) -> bool:
    """Whether the locale, or where it says nothing the stream, is UTF-8."""
    said = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    if said and said not in ("C", "POSIX"):
        return "utf-8" in said.lower() or "utf8" in said.lower()
    encoding = getattr(sys.__stdout__, "encoding", None) or ""
    return encoding.lower().replace("-", "") == "utf8"
