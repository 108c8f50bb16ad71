"""The times of a benchmark as bars, SVG: the median, and a line to the time that 95 of 100 runs stay below."""

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from onnxjson.benchmarking.rows import Report, Row
from onnxjson.display import visible
from onnxjson.rendering.bench_report import conditions, milliseconds, session_text
from onnxjson.rendering.tables import cells, shortened

_WIDTH: Final = 860
_ROW: Final = 26
_BAR: Final = 16
_CHARACTER: Final = 7.2
"""Points that a column of text takes at most, at this size of the font, but for some letters."""
_WIDE: Final = 12.0
"""Points that the widest letters take."""
_ROOM: Final = 190
"""Points right of the longest bar, for its numbers."""
_LONGEST: Final = 44
_COLOURS: Final = {"same": "#3b7dd8", "close": "#3b7dd8", "differs": "#d98c2b", "fails": "#b3b3b3", "": "#7f8fa6"}

_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#222}.q{fill:#666}.t{font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.q{fill:#999}.w{stroke:#ddd}}"
)

CAPTION: Final = (
    "Bar: median of a run. Line: to what 95 of 100 runs stay below; an arrow where that is further.",
    "Orange: other numbers than the original's, as its passes may give. Grey: wrong.",
)


def report_svg(report: Report) -> str:
    """A group of bars for each model, each group to a scale of its own."""
    labels = [_label(report, row) for row in report.rows]
    left = 16 + max([cells(label) for label in labels], default=0) * _CHARACTER
    body: list[str] = []
    top = 8.0
    for name in dict.fromkeys(row.model for row in report.rows):
        rows = [(row, label) for row, label in zip(report.rows, labels, strict=True) if row.model == name]
        top += 22
        body.append(_text(8, top, visible(name, 100), "t"))
        top += 18
        body.append(_text(8, top, shortened(conditions(report, [row for row, _ in rows]), 110), "q"))
        top += 8
        longest = _longest([row for row, _ in rows])
        for row, label in rows:
            body += _bar(row, label, left, top, longest)
            top += _ROW
    top += 6
    for line in CAPTION:
        top += 16
        body.append(_text(8, top, line, "q"))
    height = top + 12
    size = f'width="{_WIDTH}" height="{height:.0f}" viewBox="0 0 {_WIDTH} {height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        "<title>Time of a run, milliseconds</title>",
        f"<style>{_STYLE}</style>",
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _label(report: Report, row: Row) -> str:
    several = len({each.settings for each in report.rows}) > 1
    text = visible(row.variant, 200) + (f" ({session_text(row.settings)})" if several else "")
    return shortened(text, _LONGEST)


def _longest(rows: Sequence[Row]) -> float:
    """The seconds at the right end: those of stray runs do not make all bars short."""
    medians = [row.median for row in rows if row.median is not None]
    highs = [row.p95 for row in rows if row.p95 is not None]
    return min(max(highs, default=1.0), 2 * max(medians, default=1.0)) or 1.0


def _bar(row: Row, label: str, left: float, top: float, longest: float) -> Iterator[str]:
    scale = (_WIDTH - left - _ROOM) / longest
    middle = top + _ROW / 2
    yield _text(left - 8, middle + 4, label, anchor="end", room=left - 16)
    median, p95 = row.median, row.p95
    if median is None or p95 is None:
        yield _text(left, middle + 4, "fails" if row.verdict == "fails" else "no time", "q")
        return
    size = max(median * scale, 1.0)
    colour = _COLOURS[row.verdict if row.is_fine else "fails"]
    yield f'<rect x="{left:.1f}" y="{middle - _BAR / 2:.1f}" width="{size:.1f}" height="{_BAR}" fill="{colour}"/>'
    end = left + min(p95, longest) * scale
    # A line that ends in an arrow goes on.
    tip = f"M{end:.1f} {middle - 5:.1f}v10" if p95 <= longest else f"M{end - 4:.1f} {middle - 4:.1f}l4 4l-4 4"
    yield f'<path class="w" d="M{left + size:.1f} {middle:.1f}H{end:.1f}{tip}" stroke="#222" fill="none"/>'
    words: Sequence[str] = [f"{milliseconds(median)} ms", "" if row.bytes is None else _size_text(row.bytes)]
    if row.verdict in ("differs", "fails"):
        words = [*words, row.verdict]
    yield _text(end + 6, middle + 4, ", ".join(filter(None, words)), "q")


def _size_text(count: int) -> str:
    """Bytes, for a person."""
    if count >= 100_000_000:
        return f"{count / 1_000_000:,.0f} MB"
    return f"{count / 1000:,.{0 if count >= 10_000 else 1}f} KB"


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start", room: float | None = None) -> str:
    """A text; one of many wide letters, which would not fit into `room` points, is made narrower."""
    points = cells(text) * _CHARACTER + sum(character in "MWm@%" for character in text) * (_WIDE - _CHARACTER)
    fitted = "" if room is None or points <= room else f' textLength="{room:.1f}" lengthAdjust="spacingAndGlyphs"'
    named = f' class="{kind}"' if kind else ""
    placed = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}{placed}{fitted}>{escape(text)}</text>'
