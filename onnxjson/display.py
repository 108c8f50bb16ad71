"""Texts for people: those from models made safe to show, and counts.

Every string that comes out of a file passes `visible` before it reaches a terminal, a log, an error message or a
widget. It changes what is shown, never what is stored. The result holds no control, format or bidirectional character,
so it can neither move the cursor nor reorder its neighbours; it is still plain text: widgets take it as ``Text``, never
as markup.
"""

import re
import unicodedata
from functools import cache

from onnxjson import characters

ELLIPSIS = "…"
"""Stands last where text was cut."""

MARKS = 4
"""Combining marks shown on one character; those after them are written as code points."""

_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that show as nothing: the Hangul fillers and the empty Braille cell."""

_ASCII = re.compile(r"[ -~]*\Z")


def visible(text: str, limit: int | None = 80) -> str:
    r"""`text` on one line, with nothing in it that a terminal or a reader could misread.

    Characters of the categories Cc, Cf, Cs, Co, Cn, Zl and Zp, blanks other than the space, and combining marks after
    the fourth become ``\u{hex}``; a literal ``\u{`` becomes ``\u{5c}u{``, so no two texts look the same.
    The result has at most `limit` characters (no end where it is None), the last one "…" where text was left out.
    """
    # Each character gives one or more, so what lies beyond the limit cannot be shown; names may have 64 MiB.
    start = text if limit is None else text[: limit + 1]
    if _ASCII.match(start) and "\\u{" not in start:
        return start if limit is None or len(start) <= limit else start[: max(limit - 1, 0)] + ELLIPSIS[:limit]
    parts = _parts(start)
    if limit is None:
        return "".join(parts)
    return _capped(parts, limit)


def counted(number: int, noun: str) -> str:
    """``1 node``, ``1,234 nodes``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _parts(text: str) -> list[str]:
    """What is shown for each character."""
    parts = []
    marks = MARKS  # A mark without a base would sit on whatever is printed before.
    for place, character in enumerate(text):
        if character.isascii():
            hidden = not " " <= character <= "~" or text.startswith("\\u{", place)
            marks = 0
        elif unicodedata.category(character).startswith("M"):
            hidden = marks >= MARKS or _is_hidden(character)
            marks += 1
        else:
            hidden = _is_hidden(character)
            marks = 0
        parts.append(f"\\u{{{ord(character):x}}}" if hidden else character)
    return parts


def _capped(parts: list[str], limit: int) -> str:
    """The parts joined, whole ones only, with an ellipsis where they are more than `limit` characters."""
    kept = length = 0
    for count, part in enumerate(parts, 1):
        length += len(part)
        if length > limit:
            return "".join(parts[:kept]) + ELLIPSIS[:limit]
        if length < limit:
            kept = count
    return "".join(parts)


@cache
def _hidden_characters() -> re.Pattern[str]:
    blanks = "".join(map(chr, (0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
    return re.compile(f"[{blanks}{_BLANK}]")


def _is_hidden(character: str) -> bool:
    return bool(characters.UNPRINTABLE.match(character) or _hidden_characters().match(character))
