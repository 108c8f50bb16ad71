"""Text for users: strings from models made safe to show, counts, lists, and suggestions for wrong names.

Every string that comes out of a file passes `visible` before it reaches a terminal, a log, an error message or a
widget. That changes what is shown, never what is stored. The result has no control, format or bidirectional
character, so it can neither move the cursor nor reorder its neighbours; it is still plain text: widgets show it as
``Text``, never as markup.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

ELLIPSIS = "…"
"""The last character of a text that was cut."""

LONGEST = 4096
"""Characters of a name that are shown where texts are shown whole."""

MARKS = 4
"""Combining marks that are shown on one character; further ones are written as code points."""

_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that show as nothing: the Hangul fillers and the empty Braille cell."""

_ASCII = re.compile(r"[ -~]*\Z")

_WHOLE: ContextVar[bool] = ContextVar("whole", default=False)

_MOST_COMPARED = 2000
"""Names that are compared letter by letter; of more names only those that begin or end alike."""

_LONGEST = 200
_ENDS = 4
_MOST_NEAR = 20
_SHORTEST_START = 3
"""Characters of a name from which names that begin with it are similar."""
_NUMBER = re.compile("[0-9]+")

_WORD = 3
"""Characters of a part of a name that is no slip of the keyboard."""

_ALIKE = 0.4
"""Least likeness of such parts."""

_UNPRINTABLE = Path(__file__).with_name("unprintable.txt")
"""The categories Cc, Cf, Cs, Co, Cn, Zl and Zp of Unicode 14.0 (control, format, surrogate, private use, unassigned,
line and paragraph separator), as ``unicodedata`` of Python 3.11 has them: code points in hexadecimal."""

_GROUP = 40
"""Ranges above U+FFFF in one character class; all in one would be tried one by one for each character."""


@contextmanager
def whole_texts(whole: bool = True) -> Iterator[None]:
    """Show names and values in full, up to `LONGEST` characters: for output that a program reads."""
    token = _WHOLE.set(whole)
    try:
        yield
    finally:
        _WHOLE.reset(token)


def is_whole() -> bool:
    """Whether texts are shown in full; see `whole_texts`."""
    return _WHOLE.get()


def visible(text: str, limit: int | None = 80) -> str:
    r"""Return `text` on one line, with nothing in it that a terminal or a reader could misread.

    Characters of the categories Cc, Cf, Cs, Co, Cn, Zl and Zp, blanks other than the space, and combining marks after
    the fourth become ``\u{hex}``; a literal ``\u{`` becomes ``\u{5c}u{``, so no two texts look the same.
    The result has at most `limit` characters (any number where it is None), the last one "…" where text was cut;
    within `whole_texts` at least `LONGEST`.
    """
    if limit is not None and limit < LONGEST and _WHOLE.get():
        limit = LONGEST
    # Each character becomes one or more, so nothing beyond the limit can be shown; names may have 64 MiB.
    start = text if limit is None else text[: limit + 1]
    if _ASCII.match(start) and "\\u{" not in start:
        return start if limit is None or len(start) <= limit else start[: max(limit - 1, 0)] + ELLIPSIS[:limit]
    parts = _parts(start)
    if limit is None:
        return "".join(parts)
    return _capped(parts, limit)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 node``, ``1,234 nodes``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def listed(items: Sequence[str], shown: int = 3, separator: str = ", ", *, word: str = "") -> str:
    """Join items, visible already: ``a, b, c and 1,234 more``; all of them where there are at most `shown`.

    `word` joins the last two where all are named, "or" for example; the separator if it is empty.
    """
    left = len(items) - shown
    if left > 0:
        return f"{separator.join(items[:shown])} and {left:,} more"
    if word and len(items) > 1:
        return f"{separator.join(items[:-1])} {word} {items[-1]}"
    return separator.join(items)


def _parts(text: str) -> list[str]:
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
    return bool(unprintable().match(character) or _hidden_characters().match(character))


def suggest(name: str, names: Collection[str]) -> str:
    """Return ``did you mean "a" or "b"?`` with up to three names that are similar apart from case and ``_``, or "".

    Of names that differ in their numbers only, the most similar one is suggested, and none that so differs from `name`,
    nor one of several that are `name` with a number.
    """
    import difflib

    wanted = _plain(name)
    spelled: dict[str, str] = {}
    for other in _comparable(name, names):
        spelled.setdefault(_plain(other), other)
    stem = _NUMBER.sub("", wanted)
    with_numbers = {other for other in spelled if other != wanted and _NUMBER.sub("", other) == stem}
    guesses = with_numbers if len(with_numbers) > 1 else ()
    near: dict[str, str] = {}
    candidates = [other for other in spelled if other not in guesses]
    for other in difflib.get_close_matches(wanted, candidates, n=_MOST_NEAR, cutoff=0.65):
        numbered = _NUMBER.sub("0", other)
        if other == wanted or (numbered != _NUMBER.sub("0", wanted) and not _differ_by_a_word(wanted, other)):
            near.setdefault(numbered, f'"{visible(spelled[other])}"')
    if not near and len(wanted) >= _SHORTEST_START:
        begun = [other for other in candidates if other.startswith(wanted)]
        near = {other: f'"{visible(spelled[other])}"' for other in begun} if len(begun) <= _MOST_NEAR else {}
    return f"did you mean {' or '.join([*near.values()][:3])}?" if near else ""


def _differ_by_a_word(one: str, other: str) -> bool:
    """Whether two names are alike because of what is around a part, such as ``/l/Softmax_0`` and ``/l/Mul_0``."""
    import difflib

    start = _common_start(one, other)
    end = _common_start(one[start:][::-1], other[start:][::-1])
    parts = one[start : len(one) - end], other[start : len(other) - end]
    return min(map(len, parts)) >= _WORD and difflib.SequenceMatcher(None, *parts).ratio() < _ALIKE


def _common_start(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _comparable(name: str, names: Collection[str]) -> Collection[str]:
    if len(names) <= _MOST_COMPARED:
        return names
    start, end = name[:_ENDS], name[-_ENDS:]
    alike = [each for each in names if each.startswith(start) or each.endswith(end)]
    alike.sort(key=lambda each: abs(len(each) - len(name)))
    return alike[:_MOST_COMPARED]


def _plain(name: str) -> str:
    return name[:_LONGEST].lower().replace("_", "")


@cache
def unprintable() -> re.Pattern[str]:
    """Return the pattern of one character that cannot be seen; built when it is first needed (3 ms).

    The list belongs to the canonical text, which escapes these characters (docs/format.md, section 2). So it does not
    follow the Unicode version of the Python that happens to run.
    """
    return re.compile(_expression(_unprintable_ranges()))


def _unprintable_ranges() -> list[tuple[int, int]]:
    runs = (run.partition("-") for run in _UNPRINTABLE.read_bytes().decode().split())
    return [(int(first, 16), int(last or first, 16)) for first, _, last in runs]


def _expression(runs: list[tuple[int, int]]) -> str:
    # The first test lets ASCII pass at 3 ns a character. The class below U+10000 compiles to a bitmap; those above do
    # not, and are therefore cut into groups that are skipped as a whole.
    low = [run for run in runs if run[1] < 0x10000]
    high = runs[len(low) :]
    groups = [high[start : start + _GROUP] for start in range(0, len(high), _GROUP)]
    branches = [_one_of([(group[0][0], group[-1][1])]) + _one_of(group) for group in groups]
    return f"[^ -~](?:{_one_of(low)}|{_one_of([(0x10000, 0x10FFFF)])}(?:{'|'.join(branches)}))"


def _one_of(runs: list[tuple[int, int]]) -> str:
    """Return an expression that looks back at one character of some runs."""
    parts = [f"{_character(first)}-{_character(last)}" if last > first else _character(first) for first, last in runs]
    return f"(?<=[{''.join(parts)}])"


def _character(code: int) -> str:
    # A raw character is parsed several times faster than an escape.
    return chr(code) if code > 0x7F else f"\\x{code:02x}"
