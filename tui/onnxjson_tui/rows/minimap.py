"""The whole graph in two lines: a bar for some consecutive nodes each, as high as their number, in braille."""

from array import array
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from math import log10
from typing import Final

from onnxjson.rendering.tables import Line, Span, Style
from onnxjson_tui.rows.figures import Figures
from onnxjson_tui.rows.lanes import Glyphs

_ROWS: Final = 2
_DOTS: Final = 4  # heights of a bar in a row of braille
_LEFT: Final = (0, 0x40, 0x44, 0x46, 0x47)  # dots of the left column of a character, by height; see U+2800
_RIGHT: Final = (0, 0x80, 0xA0, 0xB0, 0xB8)
_ASCII: Final = " .:|#"
_DECADES: Final = 6.0  # of differences, which are shown by their logarithm


def _bars(figures: Figures, width: int) -> list[float]:
    """Return the heights of two bars for each column, from 0 to 1."""
    count, values = len(figures.values), figures.values
    found = []
    for bar in range(2 * width):
        start = bar * count // (2 * width)
        part = values[start : max((bar + 1) * count // (2 * width), start + 1)]
        found.append((sum(part) if figures.is_sum else max(part)) if part else 0.0)
    most = max(found, default=0.0)
    if not figures.is_sum:
        return [max(1 + log10(each / most) / _DECADES, 0.1) if each > 0 else 0.0 for each in found]
    return [each / most if most else 0.0 for each in found]


def minimap(figures: Figures, width: int, glyphs: Glyphs) -> list[Line]:
    """Return lines of bars, coloured by their height; the lowest line has at least a dot for each bar."""
    heights = _bars(figures, width)
    return [tuple(_row(figures, heights, row, glyphs)) for row in reversed(range(_ROWS))]


def _row(figures: Figures, heights: Sequence[float], row: int, glyphs: Glyphs) -> Iterator[Span]:
    cells: list[tuple[Style, str]] = []
    for left, right in zip(heights[::2], heights[1::2], strict=True):
        dots = [min(max(round(each * _ROWS * _DOTS), 1) - row * _DOTS, _DOTS) for each in (left, right)]
        low, high = (max(each, 0) for each in dots)
        text = _ASCII[max(low, high)] if glyphs == "ascii" else chr(0x2800 + _LEFT[low] + _RIGHT[high])
        cells.append((figures.style(max(left, right)) if left or right else "quiet", text))
    for style, part in groupby(cells, key=lambda each: each[0]):
        yield Span("".join([text for _, text in part]), style)


def columns(owner: "array[int]", parts: int, width: int) -> list[set[int]]:
    """Return the columns with nodes of each box, by the number of the box of each node."""
    found: list[set[int]] = [set() for _ in range(parts)]
    count = len(owner)
    for place, part in enumerate(owner):
        if part >= 0:
            found[part].add(place * width // count)
            if count < width:
                found[part].update(range(place * width // count, (place + 1) * width // count))
    return found


def place_line(chosen: Collection[int], width: int, glyphs: Glyphs) -> Line:
    """Return the line below the bars: where the nodes of the chosen box are."""
    mark = "=" if glyphs == "ascii" else "━"
    return (Span("".join([mark if column in chosen else " " for column in range(width)]), "title"),)
