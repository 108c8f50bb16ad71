"""How a person names a file at a revision: ``HEAD~1:model.onnx``, ``:model.onnx`` for what is staged.

The grammar is git's (gitrevisions, ``<rev>:<path>`` and ``:<n>:<path>``): a path begins at the top of the repository,
unless it begins with ``./`` or ``../``.
"""

import os
import re
from typing import Final, NamedTuple

_INDEX: Final = re.compile(r":(?:([0-3]):)?(.+)", re.DOTALL)


class Spec(NamedTuple):
    """A file at a revision, as somebody spelled it."""

    text: str
    """All of it."""
    revision: str | None
    """None for the index."""
    stage: int
    """Of the index: 0, or 1 to 3 for base, ours and theirs of an unfinished merge."""
    path: str


def parse(text: str) -> Spec | None:
    """The parts of ``REV:path``; None where the text cannot be one."""
    if "\0" in text:
        return None
    if (staged := _INDEX.fullmatch(text)) is not None:
        path = staged[2]
        # ":/text" finds a commit by its message and is no file.
        return None if path.startswith("/") else Spec(text, None, int(staged[1] or 0), path)
    colon = _colon(text)
    revision, path = text[:colon], text[colon + 1 :]
    if colon < 1 or not path or path.startswith("/") or "\n" in revision:
        return None
    return Spec(text, revision, 0, path)


def is_revision_spec(text: str) -> bool:
    """Whether a text names a file in git and not one on the disk: a file of that very name goes first."""
    return parse(text) is not None and not os.path.lexists(text)


def _colon(text: str) -> int:
    """The first colon that is in no braces, as in ``HEAD^{/fix: this}:model.onnx``; -1 where there is none."""
    depth = 0
    for position, character in enumerate(text):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        elif character == ":" and depth <= 0:
            return position
    return -1
