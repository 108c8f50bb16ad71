"""The places of a few members of a big text, without a tree of all of them.

Only for a text that is known to be JSON (comments and trailing commas may stand). What nobody asks for is passed over.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from onnxjson.reading.positions import Key, Span

_Wanted = dict[Key, Any]
"""Keys and indices that lead to what is asked for -> the same one level deeper."""

_GAP: Final = re.compile(r"(?:[ \t\r\n,:]|//[^\n]*)*+")
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PLAIN: Final = re.compile(r"[^\s,\]}/]*")
_STRUCTURE: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|//[^\n]*|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL)


def skim(text: str, paths: Iterable[Sequence[Key]]) -> Span | int:
    """The spans that lead to `paths`, as the scanner would give them, and no others."""
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
