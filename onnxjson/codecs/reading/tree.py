"""Trees: the plain JSON values of a text, parsed fast, and texts in encodings other than UTF-8.

A tree consists of the values of the standard library's json: dict, list, str, int, float, bool and None. `parse`
returns one only if the text has nothing to report and nothing was lost; any other text is for `reading.scan`.
"""

import json
import re
from typing import Final

from onnxjson.model.limits import TEXT_DEPTH
from onnxjson.model.scalars import json_float

Key = str | int
"""A key of an object, or an index of a list."""

Tree = object
"""dict[str, Tree], list[Tree], str, int, float, bool, None or `UNREADABLE`."""


class Unreadable:
    """The type of `UNREADABLE`."""

    def __repr__(self) -> str:
        return "UNREADABLE"


UNREADABLE: Final = Unreadable()
"""A value of a tree that is not JSON in the text; readers do not report it, since the scanner has already."""


class _ScanError(Exception):
    """The text has something to report, or to check more closely."""


def parse(text: bytes) -> tuple[bool, Tree]:
    """Parse a text; ``//`` comments and trailing commas are allowed.

    Returns:
        (True, tree) for a text without syntax mistakes, duplicate keys or numbers beyond a float. (False, None) for a
        text that must be scanned: it has a mistake, or might have one (a lone surrogate, ``-0``).
    """
    if _SUSPICIOUS.search(text):
        return False, None
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError:
        return False, None
    for prepare in (_as_it_is, _without_comments):
        try:
            prepared = prepare(decoded)
            if _nests_too_deep(prepared):
                continue
            return True, _DECODER.decode(prepared)
        except (ValueError, RecursionError, _ScanError):
            continue
    return False, None


_SUSPICIOUS = re.compile(rb"\\u[dD][89a-fA-F]|-0(?:[\s,\]}/]|\Z)|\A\xef\xbb\xbf")
"""Escapes of surrogates, which may be halves; a minus zero, which json reads as 0; a byte order mark."""


def _as_it_is(text: str) -> str:
    return text


_COMMENT_OR_COMMA = re.compile(
    r"""
    (?P<string> "[^"\\]*(?:\\.[^"\\]*)*" )
    | (?P<comment> //[^\n]* )
    | (?P<wrong> [\[{,:] (?:\s|//[^\n]*)*+ , )
    | (?P<trailing> , (?= (?:\s|//[^\n]*)*+ [\]}] ) )
    """,
    re.VERBOSE | re.DOTALL,
)


def _without_comments(text: str) -> str:
    """Replace comments and trailing commas by spaces."""
    return _COMMENT_OR_COMMA.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    if match.lastgroup == "string":
        return match.group()
    if match.lastgroup == "wrong":
        raise _ScanError
    return " "


_ESCAPED_QUOTE = re.compile(rb'\\["\\]')
_NOT_A_BRACKET = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_SAME_BRACKETS = bytes.maketrans(b"{}", b"[]")


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
        raise _ScanError
    return members


def _float(text: str) -> float:
    number = json_float(text)
    if number in (float("inf"), float("-inf")):
        raise _ScanError
    return number


def _constant(_: str) -> float:
    raise _ScanError


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)


_STARTS: Final = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"{\0\0\0", "UTF-32"),
    (b"\0\0\0{", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"{\0", "UTF-16"),
    (b"\0{", "UTF-16"),
)
"""A byte order mark, or zeros around the `{` of a document; longer ones first."""


def wide_encoding(head: bytes) -> str | None:
    """The encoding of a document in UTF-16 or UTF-32, else None; no field of a ModelProto begins like these."""
    return next((name for start, name in _STARTS if head.startswith(start)), None)
