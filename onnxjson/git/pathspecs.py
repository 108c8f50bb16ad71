"""What can be said of a pathspec without git, which alone knows what else it is about (see git help gitglossary)."""

import os
import re
from pathlib import Path
from typing import Final

_MAGIC: Final = re.compile(
    r":(?:/+(?::|(?![!^/]))|\((?P<words>(?:top|literal)(?:,(?:top|literal))*)\))(?P<path>.*)", re.DOTALL
)
"""One path all the same, from the top of the repository or without patterns. Signs that follow each other are all
magic, up to a colon or the path: ``:/!tests`` leaves out, ``:/:!tests`` is a file."""

_PATTERN: Final = re.compile(r"[*?\[\\]")


def literal_path(pathspec: str, top: Path) -> str | None:
    """The one path that a pathspec names; None where it is a pattern, or says what to leave out.

    Args:
        pathspec: as a person writes it, ``m.onnx``, ``:/m.onnx`` or ``:(literal)m.onnx``.
        top: the top of the work tree.
    """
    magic = _MAGIC.fullmatch(pathspec)
    if magic is None:
        return None if pathspec.startswith(":") or _PATTERN.search(pathspec) else pathspec
    words = (magic["words"] or "top").split(",")
    if "literal" not in words and _PATTERN.search(magic["path"]):
        return None
    return os.path.join(top, magic["path"]) if "top" in words else magic["path"]
