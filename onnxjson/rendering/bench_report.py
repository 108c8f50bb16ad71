"""Results of a benchmark as a table, JSON, CSV, Markdown and a bar chart (SVG)."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape

from onnxjson.model.display import counted, visible
from onnxjson.optimizing.variants import BenchReport, BenchRow
from onnxjson.rendering.cost_text import amount
from onnxjson.rendering.tables import GAP, Line, Span, Style, cells, cut, limited, paragraph, size, wide_table, wrapped
from onnxjson.rendering.values import picked
from onnxjson.running.tasks import Settings

_NARROWEST: Final = 16
_LABEL: Final = 34
TIME_COLUMNS: Final = ("median_ms", "p95_ms", "runs", "start_ms", "offline_start_ms", "speedup")
"""Columns that vary between runs; all others are the same for the same models."""

LEGEND: Final = (
    "ms: median of the runs. start: time to open a session; offline: the same for a model optimized in advance. All "
    "are milliseconds. speed-up: ms of the original / ms. KB: 1,000 bytes. max diff: largest difference of an element "
    "from the original in a session of the same level; of max: its share of the largest element. verified: same "
    "values, close, or different."
)

_DOUBT: Final = ": an output is empty, or NaN or infinite everywhere, on these values (--input gives others)"

_WIDTH: Final = 860
_ROW: Final = 26
_BAR: Final = 16
_CHARACTER: Final = 7.2  # maximum width of a text column in points at this font size, except for a few letters
_WIDE: Final = 12.0  # width of the widest letters in points
_ROOM: Final = 190
_LONGEST_LABEL: Final = 44
_COLOURS: Final = {"same": "#3b7dd8", "close": "#3b7dd8", "differs": "#d98c2b", "fails": "#b3b3b3", "": "#7f8fa6"}

_CHART_STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#222}.q{fill:#666}.t{font-weight:600}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.q{fill:#999}.w{stroke:#ddd}}"
)

_CAPTION: Final = (
    "Bar: median of the runs. Line: up to the 95th percentile; an arrow if it is beyond the scale.",
    "Orange: results differ from the original, as its passes allow. Gray: wrong or failed.",
)


class Column(NamedTuple):
    """A column of the table."""

    heading: str
    text: Callable[[BenchRow], str]


def report_data(report: BenchReport) -> dict[str, Any]:
    """Return the results as data, onnxjson-bench/1. Times are seconds, all of them under "time"."""
    best = {id(row) for row in report.best.values()} if report.is_tuned else set()
    return {
        "format": "onnxjson-bench/1",
        "interrupted": report.is_interrupted,
        "rounds": report.rounds,
        "sizes": report.sizes,
        "rows": [
            _row_data(report, row) | ({"best": id(row) in best} if report.is_tuned else {}) for row in report.rows
        ],
    }


def _row_data(report: BenchReport, row: BenchRow) -> dict[str, Any]:
    return {
        **picked(row, "model variant passes engine providers"),
        "session": picked(row.settings, "level threads parallel binding"),
        **picked(row, "nodes parameters bytes macs"),
        "verdict": row.verdict or None,
        **picked(row, "exact=is_exact compared_runs=compared max_abs=largest_difference max_share=largest_share"),
        **picked(row, "scores problem"),
        "time": {
            **picked(row, "median p95"),
            "least": min(row.times, default=None),
            "runs": len(row.times),
            "speedup": report.speedup(row),
            **picked(row, "start offline_start"),
        },
    }


def report_csv(report: BenchReport) -> str:
    """Return a CSV line for each row; times are milliseconds, sizes kB of 1,000 bytes."""
    scores = [name for name in report.scores if name not in ("loss", "metric")]
    rows = [_csv_row(report, row, scores) for row in report.rows]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, rows[0] if rows else (), lineterminator="\n")
    writer.writeheader()
    writer.writerows([{name: _cell(value) for name, value in row.items()} for row in rows])
    return stream.getvalue()


def _cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula and no terminal for a command."""
    text = visible(value, None) if isinstance(value, str) else value
    return f"'{text}" if isinstance(text, str) and text.startswith(("=", "+", "-", "@")) else text


def _csv_row(report: BenchReport, row: BenchRow, scores: Iterable[str]) -> dict[str, object]:
    def ms(seconds: float | None) -> str:
        return "" if seconds is None else f"{seconds * 1000:.6g}"

    return {
        **picked(row, "model optimization=variant"),
        "passes": ",".join(row.passes),
        "runtime": row.engine,
        "providers": " ".join(row.providers),
        **picked(row.settings, "level threads parallel"),
        "parameters": row.parameters,
        "median_ms": ms(row.median),
        "p95_ms": ms(row.p95),
        "runs": len(row.times),
        **{name: row.scores.get(name) for name in ("loss", "metric")},
        "size_kb": None if row.bytes is None else row.bytes / 1000,
        **picked(row, "nodes verified=verdict max_difference=largest_difference max_share=largest_share"),
        **({} if row.macs is None else {"macs": row.macs}),
        "start_ms": ms(row.start),
        "offline_start_ms": ms(row.offline_start),
        "speedup": "" if (times := report.speedup(row)) is None else f"{times:.4g}",
        **{name: row.scores.get(name) for name in scores},
        "problem": row.problem,
        "binding": row.settings.binding,
    }


def report_markdown(report: BenchReport) -> str:
    """Return a Markdown table for each model."""
    parts = []
    for name in dict.fromkeys(row.model for row in report.rows):
        rows = [row for row in report.rows if row.model == name]
        shown = columns(report, rows, runtime=True)
        lines = [f"## {_markdown(name)}", "", f"{_markdown(conditions(report, rows))}", ""]
        lines.append("| optimization | " + " | ".join(_markdown(column.heading) for column in shown) + " |")
        lines.append("|---|" + "---:|" * len(shown))
        for row in rows:
            lines.append(
                f"| {_markdown(row.variant)} | " + " | ".join(_markdown(each.text(row)) for each in shown) + " |"
            )
        lines += ["", *[f"- {_markdown(text)}" for text in _remarks(report, rows)]]
        parts.append("\n".join(lines).rstrip() + "\n")
    return "\n".join(parts)


def _markdown(text: str) -> str:
    shown = visible(text, None).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{each}" if each in "\\|*_`[]" else each for each in shown)


def columns(report: BenchReport, rows: Sequence[BenchRow], *, runtime: bool = False) -> list[Column]:
    """Return the columns that apply to these rows, in order."""
    several = len({row.settings for row in rows}) > 1
    # All sessions of one variant have the same parameters.
    varies = not (report.is_tuned and len({row.variant for row in rows}) == 1)
    candidates = [
        (runtime, Column("runtime", lambda row: row.engine or "-")),
        (runtime or several, Column("session", lambda row: session_text(row.settings))),
        (varies, Column("parameters", lambda row: _count(row.parameters))),
        (True, Column("ms", lambda row: milliseconds(row.median))),
        (True, Column("p95", lambda row: milliseconds(row.p95))),
        (len(rows) > 1, Column("speed-up", lambda row: f"{factor:.3g}x" if (factor := report.speedup(row)) else "-")),
        *[(True, Column(visible(name, 20), _score(name))) for name in report.scores],
        (varies, Column("KB", lambda row: "-" if row.bytes is None else f"{row.bytes / 1000:,.1f}")),
        (varies, Column("nodes", lambda row: _count(row.nodes))),
        (any(row.macs is not None for row in rows), Column("MACs", lambda row: visible(amount(row.macs), 24))),
        (True, Column("max diff", lambda row: _difference(row.largest_difference))),
        (varies, Column("of max", lambda row: _difference(row.largest_share))),
        (True, Column("verified", lambda row: row.verdict or "-")),
        (True, Column("start", lambda row: milliseconds(row.start))),
        (True, Column("offline", lambda row: milliseconds(row.offline_start))),
    ]
    return [column for applies, column in candidates if applies]


def _score(name: str) -> Callable[[BenchRow], str]:
    return lambda row: f"{row.scores[name]:.5g}" if name in row.scores else "-"


def _difference(found: float | None) -> str:
    return "-" if found is None else "0" if found == 0 else f"{found:.1e}"


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def milliseconds(seconds: float | None) -> str:
    """Format seconds as milliseconds with three digits; "-" for None."""
    if seconds is None:
        return "-"
    value = seconds * 1000
    digits = 2 if value == 0 else max(0, min(4, 2 - math.floor(math.log10(value))))
    return f"{value:,.{digits}f}"


def session_text(settings: Settings) -> str:
    """Return the settings of a session in short: ``all``, ``basic 2t 2p``, ``all bound``."""
    threads = "" if settings.threads == 1 else f" {settings.threads or 'auto '}t"
    parallel = f" {settings.parallel}p" if settings.parallel else ""
    return settings.level + threads + parallel + (" bound" if settings.binding else "")


def conditions(report: BenchReport, rows: Sequence[BenchRow]) -> str:
    """Return the conditions that all rows share, in a line."""
    engines = dict.fromkeys(row.engine for row in rows if row.engine)
    providers = dict.fromkeys(each.removesuffix("ExecutionProvider") for row in rows for each in row.providers)
    parts = [" and ".join(engines) + (f" ({', '.join(providers)})" if providers else "")] if engines else []
    sessions = list(dict.fromkeys(row.settings for row in rows))
    if len({each.level for each in sessions}) == 1:
        parts.append(f"level {sessions[0].level}")
    if len({(each.threads, each.parallel) for each in sessions}) == 1:
        threads = sessions[0].threads
        parts.append("default threads" if not threads else counted(threads, "thread"))
    sizes = report.sizes.get(rows[0].model, {})
    parts += [f"{name}={size}" for name, size in sizes.items()]
    runs = [len(row.times) for row in rows if row.times]
    if runs:
        several = counted(max(runs), "run") if min(runs) == max(runs) else f"{min(runs):,} to {max(runs):,} runs"
        parts.append(f"{several} of each, alternating")
    return ", ".join(parts) or "nothing was measured"


def report_lines(report: BenchReport, width: int) -> Iterator[Line]:
    """Yield the table for a terminal; columns that do not fit follow below, with the names repeated."""
    for number, name in enumerate(dict.fromkeys(row.model for row in report.rows)):
        rows = [row for row in report.rows if row.model == name]
        if number:
            yield ()
        yield (Span(visible(name, None), "title"),)
        yield from paragraph(conditions(report, rows), width, "quiet")
        yield from _table(report, rows, width)
        for text in _remarks(report, rows):
            for place, line in enumerate(wrapped(text, width - GAP, indent=0)):
                yield (Span(("" if not place else " " * GAP) + line, "plain"),)
    yield ()
    yield from paragraph(LEGEND, width, "quiet")


def _remarks(report: BenchReport, rows: Sequence[BenchRow]) -> Iterator[str]:
    yield from _verified(rows)
    for row in rows:
        if row.problem:
            yield f"{row.variant}: {row.problem}"
        elif row.verdict == "differs" and row.is_exact:
            yield f"{row.variant}: its outputs differ, although its passes promise to preserve them"
    if not report.is_tuned:
        return
    for (model, variant), row in report.best.items():
        if model == rows[0].model:
            settings = row.settings
            mode = f"parallel, {settings.parallel} operators at a time" if settings.parallel else "sequential"
            options = f"--threads {settings.threads} --level {settings.level} --parallel {settings.parallel} ({mode})"
            options += ", with binding" if settings.binding else ""
            yield f"best of {variant}: {options}, {milliseconds(row.median)} ms"


def _verified(rows: Sequence[BenchRow]) -> Iterator[str]:
    compared = [row for row in rows if row.compared]
    if not compared:
        return

    def doing(count: int, verb: str) -> str:
        return verb + "s" * (count == 1)

    same = sum(row.verdict in ("same", "close") for row in compared)
    parts = [f"outputs of {same} of {counted(len(rows), 'row')} are equal within the tolerance"]
    traded = [row for row in compared if row.verdict == "differs" and not row.is_exact]
    if traded:
        greatest = max((row.largest_share or 0.0 for row in traded), default=0.0)
        parts.append(f"{len(traded)} {doing(len(traded), 'trade')} accuracy, by up to {greatest:.1%} of the largest")
    wrong = sum(row.verdict == "differs" and row.is_exact for row in compared)
    fails = sum(row.verdict == "fails" for row in rows)
    unknown = sum(not row.verdict for row in rows)
    texts = doing(wrong, "differ"), doing(fails, "fail"), f"not compared{_DOUBT}"
    parts += [f"{count} {text}" for count, text in zip((wrong, fails, unknown), texts, strict=True) if count]
    yield f"verified on {counted(max(row.compared for row in compared), 'set')} of values: {', '.join(parts)}"


def _table(report: BenchReport, rows: Sequence[BenchRow], width: int) -> Iterator[Line]:
    shown = columns(report, rows)
    best = {id(row) for row in report.best.values()} if report.is_tuned else set()
    names = [visible(row.variant, 200) + (" *" if id(row) in best else "") for row in rows]
    label = max(limited(max(map(cells, names)), min(_LABEL, width // 2)), min(_NARROWEST, width // 3))
    texts = [[Span(column.text(row), _style(column, row)) for column in shown] for row in rows]
    yield ()
    heads = ["optimization", *[column.heading for column in shown]]
    yield from wide_table(heads, list(zip(names, texts, strict=True)), width, label)


def _style(column: Column, row: BenchRow) -> Style:
    if column.heading != "verified":
        return "plain"
    return "bad" if not row.is_fine else "good" if row.verdict in ("same", "close") else "plain"


def report_svg(report: BenchReport) -> str:
    """Return a chart with a group of bars for each model, each with its own scale."""
    labels = [_bar_label(report, row) for row in report.rows]
    left = 16 + max([cells(label) for label in labels], default=0) * _CHARACTER
    body: list[str] = []
    top = 8.0
    for name in dict.fromkeys(row.model for row in report.rows):
        rows = [(row, label) for row, label in zip(report.rows, labels, strict=True) if row.model == name]
        measured = [row for row, _ in rows]
        body.append(_svg_text(8, top + 22, visible(name, 100), "t"))
        body.append(_svg_text(8, top + 40, cut(conditions(report, measured), 110), "q"))
        top += 48
        for row, label in rows:
            body += _bar(row, label, left, top, _right_end(measured))
            top += _ROW
    body += [_svg_text(8, top + 22 + 16 * number, line, "q") for number, line in enumerate(_CAPTION)]
    height = top + 18 + 16 * len(_CAPTION)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {_WIDTH} {height:.0f}" role="img">\n<title>Time of a run, milliseconds</title>\n'
        f"<style>{_CHART_STYLE}</style>\n" + "\n".join(body) + "\n</svg>\n"
    )


def _bar_label(report: BenchReport, row: BenchRow) -> str:
    several = len({each.settings for each in report.rows}) > 1
    text = visible(row.variant, 200) + (f" ({session_text(row.settings)})" if several else "")
    return cut(text, _LONGEST_LABEL)


def _right_end(rows: Sequence[BenchRow]) -> float:
    """Return the seconds at the right end; outliers do not shorten all bars."""
    medians = [row.median for row in rows if row.median is not None]
    highs = [row.p95 for row in rows if row.p95 is not None]
    return min(max(highs, default=1.0), 2 * max(medians, default=1.0)) or 1.0


def _bar(row: BenchRow, label: str, left: float, top: float, longest: float) -> Iterator[str]:
    scale = (_WIDTH - left - _ROOM) / longest
    middle = top + _ROW / 2
    yield _svg_text(left - 8, middle + 4, label, anchor="end", room=left - 16)
    median, p95 = row.median, row.p95
    if median is None or p95 is None:
        yield _svg_text(left, middle + 4, "fails" if row.verdict == "fails" else "no time", "q")
        return
    width = max(median * scale, 1.0)
    colour = _COLOURS[row.verdict if row.is_fine else "fails"]
    yield f'<rect x="{left:.1f}" y="{middle - _BAR / 2:.1f}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>'
    end = left + min(p95, longest) * scale
    # An arrow marks a line that continues beyond the scale.
    tip = f"M{end:.1f} {middle - 5:.1f}v10" if p95 <= longest else f"M{end - 4:.1f} {middle - 4:.1f}l4 4l-4 4"
    yield f'<path class="w" d="M{left + width:.1f} {middle:.1f}H{end:.1f}{tip}" stroke="#222" fill="none"/>'
    stored = "" if row.bytes is None else size(row.bytes)
    verdict = row.verdict if row.verdict in ("differs", "fails") else ""
    yield _svg_text(end + 6, middle + 4, ", ".join(filter(None, (f"{milliseconds(median)} ms", stored, verdict))), "q")


def _svg_text(x: float, y: float, text: str, kind: str = "", anchor: str = "start", room: float | None = None) -> str:
    """Return a text element, compressed if it does not fit into `room` points."""
    points = cells(text) * _CHARACTER + sum(character in "MWm@%" for character in text) * (_WIDE - _CHARACTER)
    fitted = "" if room is None or points <= room else f' textLength="{room:.1f}" lengthAdjust="spacingAndGlyphs"'
    named = f' class="{kind}"' if kind else ""
    placed = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}{placed}{fitted}>{escape(text)}</text>'
