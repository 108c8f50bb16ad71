"""Numbers about nodes: in columns of the list, as colours of the map, and as bars below it.

The bars show the whole graph in two lines: a bar for some consecutive nodes each, as high as their number.
"""

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from math import log10
from typing import Final, NamedTuple

from onnxjson.model.index import Scope
from onnxjson.rendering.tables import Line, Span, Style, cells, clipped, padded
from onnxjson_tui.rows.lanes import Glyphs

CHANGES: Final = "changes"
MACS: Final = "MACs"
NAN: Final = "NaN"
DIFFERENCE: Final = "diff"  # of several nodes, the largest number counts, not the sum
_COLOURS: Final = (CHANGES, DIFFERENCE, "ms", MACS, NAN)  # numbers that colour the map, in the order of its key

COLUMN: Final = 9  # columns of a number with the space before it
_NAMES: Final = 30  # columns for the rest of a row

Columns = Mapping[str, Mapping[str, float | str]]
"""What a number is -> address of a node -> number, or a formula."""

_HOT, _WARM = 0.5, 0.1  # parts of the largest number
_TINY: Final = 0.005  # part of the sum that is not worth a word


def shown(found: Columns, width: int) -> list[str]:
    """Return the numbers for which a list of some columns has room."""
    return list(found)[: max((width - _NAMES) // COLUMN, 1)]


def heads(found: Columns, width: int) -> str:
    """Return the line above a list."""
    return padded("".join([padded(each, COLUMN, right=True) for each in shown(found, width)]), width, right=True)


def cell(title: str, value: float | str | None) -> Span:
    """Return a number in its column."""
    if value is None or (title == NAN and not value):
        return Span(" " * COLUMN, "quiet")
    from onnxjson.rendering.cost_text import amount

    is_whole = not isinstance(value, str) and title in (MACS, NAN)
    text = amount(int(value)) if is_whole else value if isinstance(value, str) else f"{value:.3g}"
    text = f"{value:.2g}" if isinstance(value, float) and cells(text) >= COLUMN else text
    style: Style = "bad" if title == NAN else "changed" if title == DIFFERENCE and value else "quiet"
    return Span(padded(clipped(text, COLUMN - 1), COLUMN, right=True), style)


class Figures(NamedTuple):
    """A number about each node that colours the map."""

    title: str
    values: "array[float]"

    @property
    def is_sum(self) -> bool:
        """Whether the number of several nodes is the sum of theirs, else the largest."""
        return self.title != DIFFERENCE

    def of_parts(self, owner: "array[int]", count: int) -> tuple[float, ...]:
        """Return the numbers of boxes, by the number of the box of each node."""
        found = [0.0] * count
        for part, value in zip(owner, self.values, strict=True):
            if part >= 0 and value:
                found[part] = found[part] + value if self.is_sum else max(found[part], value)
        return tuple(found)

    def text(self, value: float, total: float) -> str:
        """Return the number of a box: its part of the sum, or the number itself; "" if it is next to nothing."""
        if not value or (self.title == CHANGES or not self.is_sum):
            return "" if not value else f"~{value:.0f}" if self.is_sum else f"{value:.2g}"
        return f"{100 * value / total:.0f}%" if value >= _TINY * total else ""

    def style(self, share: float) -> Style:
        """Return the style of a number by its part of the largest one."""
        if share <= 0:
            return "plain"
        return "changed" if self.title == CHANGES or _WARM <= share < _HOT else "bad" if share >= _HOT else "good"


def figures_of(scope: Scope, columns: Columns, changed: "list[int] | None" = None) -> dict[str, Figures]:
    """Return what colours the map of a graph; nodes inside of a node count for it. `changed` are positions."""
    count, start = len(scope.graph.node), f"{scope.address}/node/"
    found: dict[str, Figures] = {}
    marked = {CHANGES: {f"{start}{place}": 1.0 for place in changed or ()}}
    for title, numbers in {**marked, **columns}.items():
        values = array("d", [0.0]) * count
        for address, value in numbers.items():
            place = address.removeprefix(start).partition("/")[0]
            if place.isdecimal() and not isinstance(value, str):
                values[int(place)] = max(values[int(place)], abs(value))
        if any(values):
            found[title] = Figures(title, values)
    return {title: found[title] for title in _COLOURS if title in found}


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
