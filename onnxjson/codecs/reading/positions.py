"""Positions in a text: offsets in characters, lines and columns, and the spans of its values."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Final

from onnxjson.codecs.reading.tree import Key


class Lines:
    """Converts offsets in characters to lines and columns, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset; columns count characters."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


class Span:
    """Position of an object or a list: its first character, the spans of its members and, for an object, its keys."""

    __slots__ = ("keys", "members", "start")

    def __init__(self, start: int, is_object: bool) -> None:
        self.start = start
        self.members: dict[Key, Span | int] = {}
        """Keys or indices -> span of the member; for a number, a word or a string just its first character."""
        self.keys: dict[str, int] | None = {} if is_object else None
        """Position of the opening quote of each key; None for a list."""


def start_of(span: Span | int) -> int:
    """The offset of the first character of a value."""
    return span if isinstance(span, int) else span.start


def find(root: Span | int, path: Sequence[Key], *, on_key: bool = False) -> int:
    """The offset of the value at `path`, or of its key; of the last existing value on the path if it ends early."""
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
    """The offset of character `index` of the string whose opening quote is at `start`."""
    position = start + 1
    for _ in range(index):
        match = _ESCAPE_OR_CHARACTER.match(text, position)
        if match is None or match.group() == '"':
            break
        position = match.end()
    return position


_Wanted = dict[Key, Any]
"""The next key or index of the wanted paths -> the rest of those paths."""

_GAP: Final = re.compile(r"(?:[ \t\r\n,:]|//[^\n]*)*+")
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PLAIN: Final = re.compile(r"[^\s,\]}/]*")
_STRUCTURE: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|//[^\n]*|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL)


def skim(text: str, paths: Iterable[Sequence[Key]]) -> Span | int:
    """Find the spans on `paths`, as the scanner does, without building a tree of the whole text.

    The text must be valid JSON, apart from comments and trailing commas.
    """
    wanted: _Wanted = {}
    for path in paths:
        level = wanted
        for key in path:
            level = level.setdefault(key, {})
    start = _GAP.match(text)
    position = start.end() if start else 0
    return _span(text, position, wanted)[0] if text[position : position + 1] in ("{", "[") else position


def _span(text: str, start: int, wanted: _Wanted) -> tuple[Span, int]:
    """The span of the object or list at `start`, with its wanted members, and the position after it."""
    span = Span(start, text[start] == "{")
    position = _after_gap(text, start + 1)
    index = 0
    while text[position] not in "]}":
        key: Key = index
        key_start = position
        if span.keys is not None:
            position = _skip(text, position)
            key = json.loads(text[key_start:position])
            position = _after_gap(text, position)
        if key not in wanted:
            position = _skip(text, position)
        else:
            if span.keys is not None and isinstance(key, str):
                span.keys[key] = key_start
            if wanted[key] and text[position] in "{[":
                span.members[key], position = _span(text, position, wanted[key])
            else:
                span.members[key] = position
                position = _skip(text, position)
        index += 1
        position = _after_gap(text, position)
    return span, position + 1


def _after_gap(text: str, position: int) -> int:
    match = _GAP.match(text, position)
    return match.end() if match else position


def _skip(text: str, position: int) -> int:
    """The position after the value at `position`."""
    if text[position] not in "{[":
        match = (_STRING if text[position] == '"' else _PLAIN).match(text, position)
        return match.end() if match else len(text)
    depth = 0
    for token in _STRUCTURE.finditer(text, position):
        if token.lastgroup == "open":
            depth += 1
        elif token.lastgroup == "close":
            depth -= 1
            if not depth:
                return token.end()
    return len(text)
