"""Bar chart of the times of a benchmark, as SVG: the median, with a line to the 95th percentile."""

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from onnxjson.model.display import visible
from onnxjson.optimizing.bench_rows import BenchReport, BenchRow
from onnxjson.rendering.bench_report import conditions, milliseconds, session_text
from onnxjson.rendering.tables import cells, cut

_WIDTH: Final = 860
_ROW: Final = 26
_BAR: Final = 16
_CHARACTER: Final = 7.2
"""Maximum width of a text column in points at this font size, except for a few letters."""
_WIDE: Final = 12.0
"""Width of the widest letters in points."""
_ROOM: Final = 190
"""Space right of the longest bar for its numbers, in points."""
_LONGEST: Final = 44
_COLOURS: Final = {"same": "#3b7dd8", "close": "#3b7dd8", "differs": "#d98c2b", "fails": "#b3b3b3", "": "#7f8fa6"}

_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#222}.q{fill:#666}.t{font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.q{fill:#999}.w{stroke:#ddd}}"
)

CAPTION: Final = (
    "Bar: median of the runs. Line: up to the 95th percentile; an arrow if it is beyond the scale.",
    "Orange: results differ from the original, as its passes allow. Gray: wrong or failed.",
)


def report_svg(report: BenchReport) -> str:
    """Return a chart with a group of bars for each model, each with its own scale."""
    labels = [_label(report, row) for row in report.rows]
    left = 16 + max([cells(label) for label in labels], default=0) * _CHARACTER
    body: list[str] = []
    top = 8.0
    for name in dict.fromkeys(row.model for row in report.rows):
        rows = [(row, label) for row, label in zip(report.rows, labels, strict=True) if row.model == name]
        top += 22
        body.append(_text(8, top, visible(name, 100), "t"))
        top += 18
        body.append(_text(8, top, cut(conditions(report, [row for row, _ in rows]), 110), "q"))
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


def _label(report: BenchReport, row: BenchRow) -> str:
    several = len({each.settings for each in report.rows}) > 1
    text = visible(row.variant, 200) + (f" ({session_text(row.settings)})" if several else "")
    return cut(text, _LONGEST)


def _longest(rows: Sequence[BenchRow]) -> float:
    """Return the seconds at the right end; outliers do not shorten all bars."""
    medians = [row.median for row in rows if row.median is not None]
    highs = [row.p95 for row in rows if row.p95 is not None]
    return min(max(highs, default=1.0), 2 * max(medians, default=1.0)) or 1.0


def _bar(row: BenchRow, label: str, left: float, top: float, longest: float) -> Iterator[str]:
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
    # An arrow marks a line that continues beyond the scale.
    tip = f"M{end:.1f} {middle - 5:.1f}v10" if p95 <= longest else f"M{end - 4:.1f} {middle - 4:.1f}l4 4l-4 4"
    yield f'<path class="w" d="M{left + size:.1f} {middle:.1f}H{end:.1f}{tip}" stroke="#222" fill="none"/>'
    words: Sequence[str] = [f"{milliseconds(median)} ms", "" if row.bytes is None else _size_text(row.bytes)]
    if row.verdict in ("differs", "fails"):
        words = [*words, row.verdict]
    yield _text(end + 6, middle + 4, ", ".join(filter(None, words)), "q")


def _size_text(count: int) -> str:
    """Return a number of bytes as text."""
    if count >= 100_000_000:
        return f"{count / 1_000_000:,.0f} MB"
    return f"{count / 1000:,.{0 if count >= 10_000 else 1}f} KB"


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start", room: float | None = None) -> str:
    """Return a text element, compressed if it does not fit into `room` points."""
    points = cells(text) * _CHARACTER + sum(character in "MWm@%" for character in text) * (_WIDE - _CHARACTER)
    fitted = "" if room is None or points <= room else f' textLength="{room:.1f}" lengthAdjust="spacingAndGlyphs"'
    named = f' class="{kind}"' if kind else ""
    placed = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}{placed}{fitted}>{escape(text)}</text>'
