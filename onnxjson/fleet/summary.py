"""All rows of a fleet in one report: counts, failures by cause, operators and opsets, duplicates, slow models."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from onnxjson.fleet.results import Row
from onnxjson.model.display import counted, visible
from onnxjson.rendering.diff_html import html_page, page_code, page_number, page_table, page_text
from onnxjson.rendering.markdown_reports import LARGEST, code
from onnxjson.rendering.tables import size

_MOST: Final = 20
_MOST_ROWS: Final = 5_000
_DETAILS: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\S*[/\\]\S*|[0-9][0-9,.]*")


class Group(NamedTuple):
    """Models that have something in common."""

    label: str
    models: int
    examples: tuple[str, ...]


class Summary(NamedTuple):
    """Statistics of all rows."""

    command: str
    counts: dict[str, int]
    """Models by status."""
    bytes: int
    seconds: float
    """Sum of the times of all models."""
    failures: tuple[Group, ...]
    """By cause: messages without names, paths and numbers."""
    tables: dict[str, tuple[Group, ...]]
    """Models by operator, by opset, by code of finding, by fingerprint: whatever the reports have."""
    rows: tuple[Row, ...]
    """Failures and findings first, then the slowest; at most `_MOST_ROWS`."""


def summarise(rows: Iterable[Row]) -> Summary:
    """Read all rows once."""
    counts: Counter[str] = Counter()
    tables: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    failures: dict[str, list[str]] = defaultdict(list)
    kept: list[Row] = []
    total, seconds, command = 0, 0.0, ""
    for row in rows:
        command = row.command
        counts[row.status] += 1
        total += row.bytes or 0
        seconds += row.seconds
        if row.status == "failed":
            failures[_cause(row.error or "")].append(row.model)
        for table, labels in _facts(row.report):
            for label in labels:
                tables[table][label].append(row.model)
        kept.append(row)
    kept.sort(key=lambda row: (row.status != "failed", row.status != "findings", -row.seconds))
    order = {status: counts[status] for status in ("ok", "findings", "failed") if counts[status]}
    grouped = {name: _groups(found, least=2 if name in _EQUAL else 1) for name, found in tables.items()}
    shown = {name: groups for name, groups in grouped.items() if groups}
    return Summary(command, order, total, seconds, _groups(failures), shown, tuple(kept[:_MOST_ROWS]))


_EQUAL: Final = {"model": "equal models", "structure": "equal structures", "weights": "equal weights"}
"""The hashes of a fingerprint; only those that several models share are shown."""


def _cause(error: str) -> str:
    """A message without names, paths and numbers."""
    return _DETAILS.sub("...", error)[:200]


def _facts(report: Any) -> Iterator[tuple[str, Iterable[str]]]:
    """The labels of a model in each table, from the report of a command."""
    if isinstance(report, dict):
        if isinstance(operators := report.get("operators"), list):
            yield "operators", [str(each.get("op_type")) for each in operators]
        if isinstance(opsets := report.get("opsets"), list):
            yield "opsets", [f"{each.get('domain') or 'ai.onnx'} {each.get('version')}" for each in opsets]
        for name in _EQUAL:
            if isinstance(value := report.get(name), str) and value:
                yield name, [value]
    elif isinstance(report, list):
        if report and all(isinstance(each, dict) and "bindings" in each for each in report):
            yield "matches", ["models with a match"]
        codes = {str(each["code"]) for each in report if isinstance(each, dict) and "code" in each}
        if codes:
            yield "findings", sorted(codes)


def _groups(found: dict[str, list[str]], least: int = 1) -> tuple[Group, ...]:
    groups = [Group(label, len(models), tuple(sorted(models)[:_MOST])) for label, models in found.items()]
    return tuple(sorted([each for each in groups if each.models >= least], key=lambda each: (-each.models, each.label)))


def _headline(summary: Summary) -> str:
    models = counted(sum(summary.counts.values()), "model")
    parts = ", ".join(f"{count:,} {status}" for status, count in summary.counts.items())
    return f"{models}: {parts}" if parts else "no models"


def _title(name: str) -> str:
    return _EQUAL.get(name, name)


def summary_lines(summary: Summary, width: int) -> Iterator[str]:
    """Yield the summary for a terminal."""
    yield _headline(summary)
    yield f"{size(summary.bytes)} read, {summary.seconds:,.1f} s of work"
    for name, groups in {"failures": summary.failures, **summary.tables}.items():
        if groups:
            yield ""
            yield _title(name)
            for group in groups[:_MOST]:
                yield f"{group.models:>7,}  {_line(name, group, max(40, width - 9))}"
            if len(groups) > _MOST:
                yield f"{'':>7}  ... and {len(groups) - _MOST:,} more"


def _line(name: str, group: Group, width: int) -> str:
    if name in _EQUAL:
        return " = ".join([visible(each, width) for each in group.examples])
    if name in ("operators", "opsets"):
        return visible(group.label, width)
    example = visible(group.examples[0], width // 3)
    return f"{visible(group.label, width - len(example) - 4)}  ({example})"


def summary_markdown(summary: Summary) -> str:
    """Return the summary as Markdown, at most 65,000 characters."""
    text = f"### {_headline(summary)}\n\n{code(summary.command)} · {size(summary.bytes)}\n"
    for name, groups in {"failures": summary.failures, **summary.tables}.items():
        rows = [f"|{each.models:,}|{code(each.label)}|{code(each.examples[0])}|\n" for each in groups[:_MOST]]
        piece = f"\n#### {_title(name)}\n\n|models||for example|\n|--:|---|---|\n{''.join(rows)}"
        if rows and len(text) + len(piece) < LARGEST:
            text += piece
    return text


def summary_html(summary: Summary) -> Iterator[str]:
    """Yield the summary as a page; its tables are sorted by a click on a heading."""
    return html_page(_headline(summary), _content(summary), "onnxjson fleet")


def _content(summary: Summary) -> Iterator[str]:
    yield f"<h1>{page_text(_headline(summary))}</h1>\n"
    yield f"<p>{page_code(summary.command)}, {size(summary.bytes)}, {summary.seconds:,.1f} s of work</p>\n"
    for name, groups in {"failures": summary.failures, **summary.tables}.items():
        if groups:
            yield f"<h2>{page_text(_title(name))}</h2>\n"
            rows = [
                (page_text(each.label, 300), [page_number(f"{each.models:,}"), _examples(each.examples)])
                for each in groups[:200]
            ]
            yield from page_table(("models", "for example"), rows)
    yield "<h2>Models</h2>\n"
    headings = ("status", "seconds", "bytes", "error")
    yield from page_table(headings, [(page_code(row.model, 200), list(_cells(row))) for row in summary.rows])


def _examples(names: Sequence[str]) -> str:
    return f"<td>{page_code(names[0], 120)}{f' and {len(names) - 1:,} more' if len(names) > 1 else ''}</td>"


def _cells(row: Row) -> Iterator[str]:
    yield f"<td>{row.status}</td>"
    yield page_number(f"{row.seconds:,.3f}")
    yield page_number("" if row.bytes is None else f"{row.bytes:,}")
    yield f"<td>{page_text(row.error or '', 300)}</td>"
