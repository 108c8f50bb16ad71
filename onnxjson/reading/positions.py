"""Where things stand in a text: offsets in characters, lines and columns, and the spans of a scanned document."""

import re
from bisect import bisect_right
from collections.abc import Sequence

Key = str | int


class Lines:
    """Turns offsets in characters into lines and columns, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset; columns count characters."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


class Span:
    """Where an object or a list stands: its first character, its members' spans and, in an object, its keys."""

    __slots__ = ("keys", "members", "start")

    def __init__(self, start: int, is_object: bool) -> None:
        self.start = start
        self.members: dict[Key, Span | int] = {}
        """Keys or indices -> span of the member; a number, a word or a string is just its first character."""
        self.keys: dict[str, int] | None = {} if is_object else None
        """Where each key's opening quote stands; `None` for a list."""


def start_of(span: Span | int) -> int:
    """The offset of the first character of a value."""
    return span if isinstance(span, int) else span.start


def find(root: Span | int, path: Sequence[Key], *, on_key: bool = False) -> int:
    """The offset of the value at `path`, or of its key; where the path leads nowhere, of what it leads to last."""
    span: Span | int = root
    key_start: int | None = None
    for key in path:
        member = span.members.get(key) if isinstance(span, Span) else None
        if member is None or isinstance(span, int):
            return start_of(span)
        key_start = span.keys.get(key) if span.keys is not None and isinstance(key, str) else None
        span = member
    return key_start if on_key and key_start is not None else start_of(span)


_ESCAPE_OR_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u....|\\.|.", re.DOTALL
)


def inside_string(text: str, start: int, index: int) -> int:
    """The offset of character `index` of the string whose opening quote stands at `start`."""
    position = start + 1
    for _ in range(index):
        match = _ESCAPE_OR_CHARACTER.match(text, position)
        if match is None or match.group() == '"':
            break
        position = match.end()
    return position
