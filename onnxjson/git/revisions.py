"""Files, ranges and pathspecs as users write them for git; parsed here without starting git.

A file at a revision is ``<rev>:<path>`` or ``:<n>:<path>`` (gitrevisions), such as ``HEAD~1:model.onnx``, and
``:model.onnx`` for what is staged. A path begins at the top of the repository unless it begins with ``./`` or ``../``.
"""

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

_INDEX: Final = re.compile(r":(?:([0-3]):)?(.+)", re.DOTALL)


class Spec(NamedTuple):
    """A file at a revision, as the user wrote it."""

    text: str
    """The whole word."""
    revision: str | None
    """None for the index."""
    stage: int
    """Stage of the index: 0, or 1 to 3 for base, ours and theirs of an unfinished merge."""
    path: str


def parse(text: str) -> Spec | None:
    """Split ``REV:path``; return None if the text is not of this form."""
    if "\0" in text:
        return None
    if (staged := _INDEX.fullmatch(text)) is not None:
        path = staged[2]
        # ":/text" is a search for a commit by its message.
        return None if path.startswith("/") else Spec(text, None, int(staged[1] or 0), path)
    colon = _colon(text)
    revision, path = text[:colon], text[colon + 1 :]
    if colon < 1 or not path or path.startswith("/") or "\n" in revision:
        return None
    return Spec(text, revision, 0, path)


def is_revision_spec(text: str) -> bool:
    """Whether a text names a file in git; a file of that very name on the disk takes precedence."""
    return parse(text) is not None and not os.path.lexists(text)


def _colon(text: str) -> int:
    """Position of the first colon outside of braces, as in ``HEAD^{/fix: this}:model.onnx``; -1 if there is none."""
    depth = 0
    for position, character in enumerate(text):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        elif character == ":" and depth <= 0:
            return position
    return -1


PARENT: Final = re.compile(r"(.+)\^(?:!|-([1-9][0-9]{0,3})?)", re.DOTALL)
"""``A^!`` and ``A^-N``, see gitrevisions."""


def is_range(text: str) -> bool:
    """Whether a word names two revisions: ``A..B``, ``A...B``, ``A^!`` or ``A^-``; an omitted one is HEAD."""
    if PARENT.fullmatch(text):
        return True
    if ".." not in text or "/.." in text or text.startswith("/"):
        return False
    # ".." and "../m.onnx" are paths, "..topic" is a range.
    return text.lstrip(".")[:1] not in ("", "/") if text.startswith("..") else not text.startswith(".")


def ends(text: str) -> tuple[str, str]:
    """Both revisions of a range; an omitted one is HEAD."""
    old, _, new = text.partition("..." if "..." in text else "..")
    return old or "HEAD", new or "HEAD"


_MAGIC: Final = re.compile(
    r":(?:/+(?::|(?![!^/]))|\((?P<words>(?:top|literal)(?:,(?:top|literal))*)\))(?P<path>.*)", re.DOTALL
)
"""Magic that still names one path, from the top of the repository or without patterns. Signs in a row are all magic, up
to a colon or the path: ``:/!tests`` excludes, ``:/:!tests`` is a file."""

_PATTERN: Final = re.compile(r"[*?\[\\]")


def literal_path(pathspec: str, top: Path) -> str | None:
    """The one path that a pathspec names; None if it is a pattern or excludes paths.

    Args:
        pathspec: as the user writes it, ``m.onnx``, ``:/m.onnx`` or ``:(literal)m.onnx``.
        top: the top of the work tree.
    """
    magic = _MAGIC.fullmatch(pathspec)
    if magic is None:
        return None if pathspec.startswith(":") or _PATTERN.search(pathspec) else pathspec
    words = (magic["words"] or "top").split(",")
    if "literal" not in words and _PATTERN.search(magic["path"]):
        return None
    return os.path.join(top, magic["path"]) if "top" in words else magic["path"]
