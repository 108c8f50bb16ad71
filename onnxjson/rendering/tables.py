"""Text layout: styled lines, tables, lists in several columns, shortened and wrapped text, sizes and numbers."""

import os
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from onnxjson.model.display import ELLIPSIS, counted, is_whole, visible

Style = Literal[
    "plain", "title", "quiet", "added", "removed", "rewritten", "changed", "good", "bad",
    "compute", "activation", "norm", "shaping", "control", "cell",
]  # fmt: skip
"""Style of a span: effects of events, good or bad for verified results, families of operators, the cell of a cursor."""

GAP: Final = 2
_LEAST_END: Final = 6  # minimum columns for the end of a name if its first number is kept
_DIGIT: Final = re.compile("[0-9]")

_LONGEST: Final = 20_000
_MOST_CUTS: Final = 8  # number of attempts to cut a text in another way than those that were cut before
_SHOWN: ContextVar[dict[str, str] | None] = ContextVar("shown", default=None)
"""Cut texts of the current output, and the texts in full."""


class Span(NamedTuple):
    """A part of a line, visible (`onnxjson.model.display`); the caller that prints it decides how a style looks."""

    text: str
    style: Style = "plain"


Line = tuple[Span, ...]


@contextmanager
def distinct_texts(distinct: bool = True) -> Iterator[None]:
    """Cut no two different texts to the same text as long as the context lasts, such as one report."""
    token = _SHOWN.set({} if distinct else None)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def cells(text: str) -> int:
    """Return the width of a text in columns of a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_character_cells, text))


@lru_cache(4096)
def _character_cells(character: str) -> int:
    return 0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1


def limited(wanted: int, limit: int) -> int:
    """Limit a width to `limit` columns, unless texts are shown whole."""
    return wanted if is_whole() else min(wanted, limit)


def shortened(text: str, limit: int) -> str:
    """Shorten visible text in the middle to `limit` columns, unless texts are shown whole."""
    return text if is_whole() else _distinct(text, cut(text, limit), limit)


def _distinct(text: str, short: str, limit: int) -> str:
    """Return the cut form of a text, another one if the output has it for another text; in full if none is left."""
    shown = _SHOWN.get()
    if shown is None or ELLIPSIS not in short or limit < _LEAST_END:  # Too few columns to recognise a name.
        return short
    for attempt in range(2 * _MOST_CUTS):
        other = shown.setdefault(short, text)
        if other == text:
            return short
        if attempt < _MOST_CUTS:
            short = _cut_around(text, len(os.path.commonprefix([text, other])), limit)  # noqa: RUF071 - of characters
        else:
            short = cut(text, limit, (attempt - _MOST_CUTS) / _MOST_CUTS)
    return text


def _cut_around(text: str, place: int, limit: int) -> str:
    """Shorten a text to the first numbered part of its path, the part around `place`, and its end, as far as fits."""
    mark = "/" if "/" in text else "."
    start = text.rfind(mark, 0, place + 1) + 1
    end = text.find(mark, place + 1) if mark in text[place + 1 :] else len(text)
    full, head = _numbered_part(text, mark, start)
    if cells(head) + cells(text[start:end]) + 3 > limit:
        full = head = ""
    if cells(text[start:end]) > limit // 2:
        start, end = place, place + limit // 4
    between = mark if full and start == len(full) + 1 else ELLIPSIS if start else ""
    shown = head + between + text[start:end]
    rest = _end(text[end:], max(limit - cells(shown) - 1, 1))
    return shown + ELLIPSIS * (len(rest) < len(text) - end) + rest


def cut(text: str, limit: int, share: float = 1 / 3) -> str:
    """Shorten visible text in the middle to `limit` columns, as names differ at their end; `share` is for the start."""
    if cells(text) <= limit:
        return text
    start = int(limit * share)
    return _end(text[::-1], start)[::-1] + ELLIPSIS + _end(text, limit - 1 - start)


def shortened_name(text: str, limit: int) -> str:
    """Shorten the visible name of a node or value to `limit` columns, between the parts of a path if possible.

    ``/layers.0/attention/Softmax`` becomes ``/layers.0…Softmax``: the start up to the first number, which identifies
    the layer, and as many parts of the end as fit.
    """
    return text if is_whole() else _distinct(text, _cut_name(text, limit), limit)


def _cut_name(text: str, limit: int) -> str:
    width = len if text.isascii() else cells
    if width(text) <= limit:
        return text
    mark = "/" if "/" in text else "."
    last = text.rfind(mark, 0, -1) + 1
    if last <= 1:
        return cut(text, limit)
    full, head = _numbered_part(text, mark, last)
    room = limit - width(head) - 1
    if width(text[last:]) > room:
        return cut(text, limit) if room < _LEAST_END or not head else head + ELLIPSIS + _end(text, room)
    while (before := text.rfind(mark, 0, last - 1) + 1) > len(full) and width(text[before:]) <= room:
        last = before
    if not head:
        last -= mark == "/" and width(text[last:]) < room
    elif width(full) + 1 + width(text[last:]) <= limit:
        head = full
    is_whole = head and last == len(full) + 1
    return head + (mark if is_whole else ELLIPSIS) + text[last:]


def _numbered_part(text: str, mark: str, last: int) -> tuple[str, str]:
    """Return a path up to its first part with a number before `last`, and the short form of that; "" without one."""
    if (digit := _DIGIT.search(text, 0, last)) is None:
        return "", ""
    full = text[: text.find(mark, digit.start())]
    # A part that is only a number is meaningless without the one before it.
    start = text.rfind(mark, 0, digit.start())
    start = text.rfind(mark, 0, max(start, 0)) if start + 1 == digit.start() else start
    return full, ELLIPSIS + full[start + 1 :] if start > 0 else full


def _end(text: str, width: int) -> str:
    """Return the end of a text, `width` columns wide."""
    if text.isascii():
        return text[-width:] if width > 0 else ""
    room = width
    for number, character in enumerate(reversed(text)):
        room -= cells(character)
        if room < 0:
            return text[len(text) - number :]
    return text


def clipped(text: str, width: int) -> str:
    """Shorten visible text at its end to `width` columns, with an ellipsis."""
    return text if cells(text) <= width else fitting(text, width - 1) + (ELLIPSIS if width > 0 else "")


def fitting(text: str, width: int) -> str:
    """Return the start of a text that fits into `width` columns, at least one character."""
    room = width
    for number, character in enumerate(text):
        room -= cells(character)
        if room < 0:
            return text[: max(number, 1)]
    return text


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Pad text with spaces to `width` columns."""
    space = " " * max(width - cells(text), 0)
    return space + text if right else text + space


def table(
    rows: Sequence[Sequence[str]], width: int, *, right: Iterable[int] = (), fixed: Iterable[int] = (), indent: int = 2
) -> list[str]:
    """Return lines of a table; the widest left-aligned columns are shortened to fit into `width`.

    Columns of numbers, `right`, are aligned to the right and, like those in `fixed`, never shortened.
    """
    if not rows:
        return []
    numbers = set(right)
    shown = [[visible(cell, 1000) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(*shown, strict=True)]
    room = width - indent - GAP * (len(widths) - 1)
    flexible = [place for place in range(len(widths)) if place not in {*numbers, *fixed}]
    while sum(widths) > room and flexible and not is_whole():
        widest = max(flexible, key=lambda place: widths[place])
        others = [widths[place] for place in flexible if place != widest]
        target = max(widths[widest] - (sum(widths) - room), max(others, default=0) - 1, 8)
        if target >= widths[widest]:
            break
        widths[widest] = target
    lines = []
    for row in shown:
        columns = enumerate(zip(row, widths, strict=True))
        parts = [padded(shortened_name(cell, width), width, right=place in numbers) for place, (cell, width) in columns]
        lines.append((" " * indent + (" " * GAP).join(parts)).rstrip())
    return lines


def columns(pairs: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Arrange pairs of a name and a number in as many columns as fit, to be read downwards."""
    if not pairs:
        return []
    pairs = [(visible(name, 1000), number) for name, number in pairs]
    names = max(cells(name) for name, _ in pairs)
    numbers = max(len(number) for _, number in pairs)
    names = limited(names, width - 2 - numbers - GAP)
    count = max((width - 2 + 2 * GAP) // (names + numbers + 3 * GAP), 1)
    height = -(-len(pairs) // count)
    lines = []
    for row in range(height):
        parts = [
            padded(shortened_name(name, names), names + GAP) + padded(number, numbers, right=True)
            for name, number in pairs[row::height]
        ]
        lines.append(("  " + (" " * 2 * GAP).join(parts)).rstrip())
    return lines


def wrapped(text: str, width: int, *, indent: int = 2, whole_words: bool = False) -> list[str]:
    """Make the lines of a text visible and wrap them; consecutive empty lines become one.

    Words longer than a line are broken, unless `whole_words` is set.
    """
    lines: list[str] = []
    if len(text) > _LONGEST and not is_whole():
        text = text[:_LONGEST] + ELLIPSIS
    for line in text.splitlines():
        space = " " * (indent + min(len(line) - len(line.lstrip()), 12))
        shown = visible(line.strip(), None)
        if not shown:
            if lines and lines[-1]:
                lines.append("")
            continue
        wrapper = textwrap.TextWrapper(max(width, 40), initial_indent=space, subsequent_indent=space)
        wrapper.break_long_words = wrapper.break_on_hyphens = not (whole_words or is_whole())
        lines += wrapper.wrap(shown)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def first_lines(lines: list[str], most: int) -> list[str]:
    """Return at most so many lines, and one with the number of the others, indented as the first one."""
    left = len(lines) - most
    indent = " " * (len(lines[0]) - len(lines[0].lstrip())) if lines else ""
    return [*lines[:most], f"{indent}... and {left:,} more"] if left > 0 else lines


def size(count: int) -> str:
    """Format a number of bytes: ``1.2 kB``, decimal units."""
    if count < 1000:
        return counted(count, "byte")
    amount = float(count)
    for unit in ("kB", "MB", "GB", "TB", "PB", "EB"):
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount:.0f} EB"


def number(value: float) -> str:
    """Format a number: integers in full, others with six digits."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def paragraph(
    text: str, width: int, style: Style = "plain", *, indent: int = 0, whole_words: bool = False
) -> Iterator[Line]:
    """Yield a text as lines in one style; see `wrapped`."""
    return ((Span(line, style),) for line in wrapped(text, width, indent=indent, whole_words=whole_words))


def wide_table(
    heads: Sequence[str], rows: Sequence[tuple[str, Sequence[Span]]], width: int, label: int, *, right: bool = True
) -> Iterator[Line]:
    """Yield a table of visible texts; columns that do not fit into `width` follow below, without rows of dots only."""
    columns = [(head, [spans[place] for _, spans in rows]) for place, head in enumerate(heads[1:])]
    widths = [max(cells(head), *[cells(span.text) for span in spans]) for head, spans in columns]
    start = 0
    while start < len(columns):
        end, room = start + 1, width - label - GAP - widths[start]
        while end < len(columns) and room >= GAP + widths[end]:
            room -= GAP + widths[end]
            end += 1
        yield from [()] if start else ()
        shown = [padded(heads[place + 1], widths[place], right=right) for place in range(start, end)]
        yield (Span((" " * GAP).join([padded(heads[0], label), *shown]), "title"),)
        for name, spans in rows:
            cut = [
                Span(" " * GAP + padded(spans[place].text, widths[place], right=right), spans[place].style)
                for place in range(start, end)
            ]
            if any(span.text.strip(" .") for span in cut):
                yield (Span(padded(shortened(name, label), label)), *cut)
        start = end


def plain(line: Line) -> str:
    """Return a line without its styles."""
    return "".join(span.text for span in line)
