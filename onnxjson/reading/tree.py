"""Text -> a tree of plain JSON values, the ordinary fast way.

A tree is what the standard library's json gives: dict, list, str, int, float, bool and None. `parse` gives one only for
a text in which nothing has to be reported and nothing was lost on the way; any other is for `onnxjson.reading.scan`.
"""

import json
import re
from typing import Final

from onnxjson.scalars import json_float

Tree = object
"""dict[str, Tree], list[Tree], str, int, float, bool, None or `UNREADABLE`."""

MAXIMUM_NESTING: Final = 256
"""Objects and lists inside each other."""


class Unreadable:
    """The type of `UNREADABLE`."""

    def __repr__(self) -> str:
        return "UNREADABLE"


UNREADABLE: Final = Unreadable()
"""Stands in a tree where the text is no JSON value; whoever meets it says nothing, since that was reported already."""


class _ScanError(Exception):
    """Something in the text has to be reported, or looked at more closely."""


def parse(text: bytes) -> tuple[bool, Tree]:
    """(True, tree) of a text without syntax mistakes, duplicate keys or numbers that a float cannot hold.

    (False, None) where the text must be scanned: it has a mistake, or might have one (a lone surrogate, ``-0``).
    ``//`` comments and trailing commas are taken.
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
    """The text with comments and trailing commas turned into spaces."""
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
    """Whether brackets nest deeper than allowed, or do not pair; found without recursion."""
    skeleton = _ESCAPED_QUOTE.sub(b"", text.encode()).translate(_SAME_BRACKETS, _NOT_A_BRACKET).replace(b'""', b"")
    skeleton = re.sub(rb'"[^"]*"', b"", skeleton)
    for _ in range(MAXIMUM_NESTING):
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
