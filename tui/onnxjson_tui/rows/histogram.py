"""Statistics of a tensor as lines: range, mean, counts, quantiles, and a histogram in characters."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from onnxjson.model.tensor_statistics import Histogram, Spread, Statistics, StringStatistics
from onnxjson.rendering.spans import Line, Span
from onnxjson.rendering.tables import cells, number, padded, shortened

HEIGHT: Final = 6
"""Rows of a histogram, its axis not counted."""

BINS: Final = 36
"""Columns of a histogram."""

_LEFT: Final = 40
"""Columns of the numbers next to a histogram."""

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_HALVES: Final = " .:"
"""For terminals without block characters: empty, less than half of a row, more than half."""


def histogram_lines(histogram: Histogram, *, ascii_only: bool = False) -> list[str]:
    """Return a column for each bin, then the axis with the minimum and the maximum.

    A bin with few elements remains visible: it has at least the lowest mark.
    """
    most = max(histogram.counts)
    each = max(BINS // len(histogram.counts), 1)
    levels = 2 if ascii_only else 8
    heights = [0 if not count else max(round(count / most * HEIGHT * levels), 1) for count in histogram.counts]
    lines = []
    for row in range(HEIGHT - 1, -1, -1):
        lines.append("".join([_mark(height - row * levels, levels, ascii_only) * each for height in heights]))
    low, high = number_text(histogram.edges[0]), number_text(histogram.edges[-1])
    width = each * len(heights)
    axis = ("-" if ascii_only else "─") * width
    return [*lines, axis, low + " " * max(width - len(low) - len(high), 1) + high]


def _mark(height: int, levels: int, ascii_only: bool) -> str:
    if height >= levels:
        return "#" if ascii_only else "█"
    return (_HALVES if ascii_only else _EIGHTHS)[max(height, 0)]


def number_text(value: float) -> str:
    """Format a number in at most 13 columns."""
    text = number(int(value) if float(value).is_integer() and abs(value) < 1e12 else value)
    return text if len(text) <= 13 else f"{float(value):.6g}"


def statistics_rows(found: Statistics, spread: Spread | None, *, magnitudes: bool = False) -> list[tuple[str, str]]:
    """Return labels and values of numeric statistics."""
    rows: list[tuple[str, str]] = []
    if found.minimum is not None and found.maximum is not None:
        rows += [("min", number_text(found.minimum)), ("max", number_text(found.maximum))]
    rows += [
        (label, number_text(value))
        for label, value in (("mean", found.mean), ("std", found.standard_deviation))
        if value is not None
    ]
    rows.append(("zero", share(found.zero, found.elements)))
    rows.append(("NaN", share(found.nan, found.elements)))
    infinite = found.positive_infinity + found.negative_infinity
    detail = f" ({found.negative_infinity:,} below)" if found.negative_infinity else ""
    rows.append(("Infinity", share(infinite, found.elements) + detail))
    if spread is not None and spread.distinct is not None:
        rows.append(("distinct", f"{spread.distinct:,}"))
    if magnitudes:
        rows = [(label if label in ("zero", "NaN", "Infinity") else f"|{label}|", text) for label, text in rows]
    return rows


def quantile_lines(spread: Spread, width: int) -> list[str]:
    """Return the quantiles in as many lines as needed, and whether they are exact."""
    if not spread.quantiles:
        return []
    which = "of all elements" if spread.is_exact else f"of {spread.looked_at:,} of {spread.elements:,} elements"
    lines = [f"quantiles {which}:"]
    for share, value in spread.quantiles:
        part = f"{share:.0%} {number_text(float(f'{value:.3g}'))}"
        if len(lines[-1]) + 2 + len(part) > width:
            lines.append("")
        lines[-1] += f"  {part}"
    return lines


def share(count: int, whole: int) -> str:
    """Format a count and its percentage."""
    if not count or not whole:
        return f"{count:,}"
    return f"{count:,} ({count / whole:.1%})" if count / whole >= 0.0005 else f"{count:,} (< 0.1%)"


def string_rows(found: StringStatistics) -> list[tuple[str, str]]:
    """Return labels and values of string statistics."""
    rows = [("empty", share(found.empty, found.elements)), ("not UTF-8", share(found.not_utf8, found.elements))]
    if found.shortest is not None:
        rows.insert(0, ("lengths", f"{found.shortest:,} to {found.longest:,} bytes"))
    return rows


def beside(rows: Sequence[tuple[str, str]], chart: Sequence[str], width: int) -> list[Line]:
    """Return labels and values, with a chart on the right if there is room, otherwise below."""
    widest = max((len(label) for label, _ in rows), default=0)
    left: list[Line] = [
        (Span(f" {label:<{widest}}  ", "quiet"), Span(shortened(text, max(width - widest - 4, 8))))
        for label, text in rows
    ]
    if not chart:
        return left
    if width < _LEFT + max(map(cells, chart)):
        return [*left, *[(Span(" " + each, "title"),) for each in chart]]
    lines: list[Line] = []
    for line, drawn in zip_longest(left, chart, fillvalue=None):
        text = "".join(span.text for span in line or ())
        gap = padded("", _LEFT - cells(text))
        lines.append((*(line or ()), Span(gap), Span(drawn or "", "title")))
    return lines
