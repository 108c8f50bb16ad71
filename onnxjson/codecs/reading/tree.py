"""Trees: the plain JSON values of a text, parsed fast, their positions in it, and texts in encodings other than UTF-8.

A tree consists of the values of the standard library's json: dict, list, str, int, float, bool and None. `parse`
returns one only if the text has nothing to report and nothing was lost; any other text is for `reading.scan`.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

from onnxjson.model.limits import TEXT_DEPTH
from onnxjson.model.scalars import json_float

Key = str | int
"""A key of an object, or an index of a list."""

Tree = object
"""dict[str, Tree], list[Tree], str, int, float, bool, None or `UNREADABLE`."""

_SUSPICIOUS = re.compile(rb"\\u[dD][89a-fA-F]|-0(?:[\s,\]}/]|\Z)|\A\xef\xbb\xbf")
"""Escapes of surrogates, which may be halves; a minus zero, which json reads as 0; a byte order mark."""

_COMMENT_OR_COMMA = re.compile(
    r"""
    (?P<string> "[^"\\]*(?:\\.[^"\\]*)*" )
    | (?P<comment> //[^\n]* )
    | (?P<wrong> [\[{,:] (?:\s|//[^\n]*)*+ , )
    | (?P<trailing> , (?= (?:\s|//[^\n]*)*+ [\]}] ) )
    """,
    re.VERBOSE | re.DOTALL,
)

_ESCAPED_QUOTE = re.compile(rb'\\["\\]')
_NOT_A_BRACKET = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_SAME_BRACKETS = bytes.maketrans(b"{}", b"[]")

_STARTS: Final = (
    (b"\xff\xfe\0\0", "UTF-32"), (b"\0\0\xfe\xff", "UTF-32"), (b"{\0\0\0", "UTF-32"), (b"\0\0\0{", "UTF-32"),
    (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"), (b"{\0", "UTF-16"), (b"\0{", "UTF-16"),
)  # fmt: skip
"""A byte order mark, or zeros around the `{` of a document; longer ones first."""

_ESCAPE_OR_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u....|\\.|.", re.DOTALL
)

_Wanted = dict[Key, Any]
"""The next key or index of the wanted paths -> the rest of those paths."""

_GAP: Final = re.compile(r"(?:[ \t\r\n,:]|//[^\n]*)*+")
_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PLAIN: Final = re.compile(r"[^\s,\]}/]*")
_STRUCTURE: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|//[^\n]*|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL)


class Unreadable:
    """The type of `UNREADABLE`."""

    def __repr__(self) -> str:
        return "UNREADABLE"


UNREADABLE: Final = Unreadable()
"""A value of a tree that is not JSON in the text; readers do not report it, since the scanner has already."""


def parse(text: bytes) -> tuple[bool, Tree]:
    """Parse a text -> (True, tree); ``//`` comments and trailing commas are allowed.

    (False, None) for a text that must be scanned: it has a mistake, a duplicate key or a number beyond a float, or
    might have a mistake (a lone surrogate, ``-0``).
    """
    if _SUSPICIOUS.search(text):
        return False, None
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError:
        return False, None
    for may_have_comments in (False, True):
        try:
            prepared = _COMMENT_OR_COMMA.sub(_blank, decoded) if may_have_comments else decoded
            if not _nests_too_deep(prepared):
                return True, _DECODER.decode(prepared)
        except (ValueError, RecursionError):
            continue
    return False, None


def _blank(match: re.Match[str]) -> str:
    if match.lastgroup == "string":
        return match.group()
    if match.lastgroup == "wrong":
        raise ValueError("a comma without a value before it")
    return " "


def _nests_too_deep(text: str) -> bool:
    """Whether brackets nest deeper than allowed, or do not pair; without recursion."""
    skeleton = _ESCAPED_QUOTE.sub(b"", text.encode()).translate(_SAME_BRACKETS, _NOT_A_BRACKET).replace(b'""', b"")
    skeleton = re.sub(rb'"[^"]*"', b"", skeleton)
    for _ in range(TEXT_DEPTH):
        if not skeleton:
            return False
        skeleton = skeleton.replace(b"[]", b"")
    return bool(skeleton)


def _object(pairs: list[tuple[str, Tree]]) -> dict[str, Tree]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key appears twice")
    return members


def _float(text: str) -> float:
    number = json_float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("beyond float64")
    return number


def _constant(text: str) -> float:
    raise ValueError(text)


HOOKS: Final[dict[str, Any]] = {"object_pairs_hook": _object, "parse_float": _float, "parse_constant": _constant}
"""Arguments of `json.JSONDecoder` that raise ValueError where something would be lost."""

_DECODER = json.JSONDecoder(**HOOKS)


def wide_encoding(head: bytes) -> str | None:
    """The encoding of a document in UTF-16 or UTF-32, else None; no field of a ModelProto begins like these."""
    return next((name for start, name in _STARTS if head.startswith(start)), None)


class Lines:
    """Converts offsets in characters to lines and columns, both from 1."""

    def __init__(self, text: str, moved: Sequence[tuple[int, int]] = ()) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._moved = moved
        """Lines from which on the text is part of a longer one, and how much further down they are there."""

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset; columns count characters."""
        line = bisect_right(self._starts, offset)
        after = bisect_right(self._moved, line, key=itemgetter(0))
        return line + (self._moved[after - 1][1] if after else 0), offset - self._starts[line - 1] + 1


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


def inside_string(text: str, start: int, index: int) -> int:
    """The offset of character `index` of the string whose opening quote is at `start`."""
    position = start + 1
    for _ in range(index):
        match = _ESCAPE_OR_CHARACTER.match(text, position)
        if match is None or match.group() == '"':
            break
        position = match.end()
    return position


def skim(text: str, paths: Iterable[Sequence[Key]]) -> Span | int:
    """Find the spans on `paths` in valid JSON, as the scanner does, without building a tree of the whole text."""
    wanted: _Wanted = {}
    for path in paths:
        level = wanted
        for key in path:
            level = level.setdefault(key, {})
    start = _GAP.match(text)
    position = start.end() if start else 0
    is_nested = text[position : position + 1] in ("{", "[")
    return _span(text, position, wanted, needs_end=False)[0] if is_nested else position


def _span(text: str, start: int, wanted: _Wanted, *, needs_end: bool) -> tuple[Span, int]:
    """The span of the object or list at `start`, with its wanted members, and the position after it if `needs_end`."""
    left = len(wanted)
    span = Span(start, text[start] == "{")
    position = _after_gap(text, start + 1)
    index = 0
    while (left or needs_end) and text[position] not in "]}":
        key: Key = index
        key_start = position
        if span.keys is not None:
            position = _skip(text, position)
            key = json.loads(text[key_start:position])
            position = _after_gap(text, position)
        if key not in wanted:
            position = _skip(text, position)
        else:
            left -= 1
            if span.keys is not None and isinstance(key, str):
                span.keys[key] = key_start
            if wanted[key] and text[position] in "{[":
                span.members[key], position = _span(text, position, wanted[key], needs_end=needs_end or left > 0)
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
