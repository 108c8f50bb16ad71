"""All rows of a fleet in one report: counts, failures by cause, operators and opsets, duplicates, slow models."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from onnxjson.checking.catalogue import RULES
from onnxjson.fleet.results import Row
from onnxjson.model.display import counted, visible
from onnxjson.rendering.ci_reports import rule_text
from onnxjson.rendering.diff_html import html_page, page_code, page_number, page_table, page_text
from onnxjson.rendering.markdown_reports import LARGEST, code
from onnxjson.rendering.tables import size

_MOST: Final = 20
_MOST_ROWS: Final = 5_000
_DETAILS: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\S*(?:[/\\]|\.onnx\b)\S*|[0-9][0-9,.]*")

_OUTSIDE: Final = "with different outputs"
_WITHIN: Final = "with outputs that differ within the tolerance"
_UNKNOWN: Final = "with outputs that could not be compared"
_WRITTEN: Final = "written"
_DIFFERENCES: Final = (_WRITTEN, "changed", "removed", "added", "moved", _OUTSIDE, _UNKNOWN, _WITHIN)

_EQUAL: Final = {"model": "equal models", "structure": "equal structures", "weights": "equal weights"}
"""The hashes of a fingerprint; only those that several models share are shown."""

_MESSAGES: Final = {rule.code: rule_text(rule) for rule in RULES}


class Group(NamedTuple):
    """Models that have something in common; in the differences one model, its number of changes, and which."""

    label: str
    number: int
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
    differences: dict[str, tuple[Group, ...]]
    """All models that differ from those of the other root, the most important first, by how they differ."""
    tables: dict[str, tuple[Group, ...]]
    """Models by operator, by opset, by code of finding, by fingerprint: whatever the reports have."""
    written: str
    """Nodes and bytes of all models that were written, before and after; "" if none was."""
    rows: tuple[Row, ...]
    """Failures and findings first, then the slowest; at most `_MOST_ROWS`."""


def summarise(rows: Iterable[Row]) -> Summary:
    """Read all rows once."""
    counts: Counter[str] = Counter()
    tables: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    failures: dict[str, list[str]] = defaultdict(list)
    differences: list[tuple[str, float, Group]] = []
    kept: list[Row] = []
    total, seconds, command = 0, 0.0, ""
    written = [0, 0, 0, 0]
    for row in rows:
        command = row.command
        counts[row.status] += 1
        total += row.bytes or 0
        seconds += row.seconds
        if row.status == "failed":
            failures[_cause(row.error or "")].append(row.model)
        differences += _differences(row)
        if row.output is not None:
            written = [one + other for one, other in zip(written, _sizes(row), strict=True)]
        for table, labels in _facts(row.report) if row.status != "failed" else ():
            for label in labels:
                tables[table][label].append(row.model)
        kept.append(row)
    kept.sort(key=lambda row: (row.status != "failed", row.status != "findings", -row.seconds))
    order = {status: counts[status] for status in ("ok", "findings", "failed") if counts[status]}
    grouped = {name: _groups(found, least=2 if name in _EQUAL else 1) for name, found in tables.items()}
    shown = {name: groups for name, groups in grouped.items() if groups}
    differences.sort(key=lambda each: (_DIFFERENCES.index(each[0]), -each[1], each[2].label))
    found = {name: tuple([each[2] for each in several]) for name, several in groupby(differences, itemgetter(0))}
    text = _sizes_text(*written) if any(written) else ""
    return Summary(command, order, total, seconds, _groups(failures), found, shown, text, tuple(kept[:_MOST_ROWS]))


def _differences(row: Row) -> Iterator[tuple[str, float, Group]]:
    """How a model differs from that of the other root: a name of `_DIFFERENCES`, the importance, and which."""
    if row.output is not None:
        sizes = _sizes(row)
        yield _WRITTEN, abs(sizes[-1] - sizes[-2]), Group(row.model, 0, (_sizes_text(*sizes),))
    report = row.report if isinstance(row.report, dict) else {}
    changes, place = 0, report.get("moved_to")
    if (state := report.get("state")) in _DIFFERENCES:
        yield state, row.bytes or 0, Group(row.model, 0, (size(row.bytes or 0),))
    elif report.get("format") == "onnxjson-diff/1":
        events: dict[str, int] = report["summary"]["events"]
        changes = sum(events.values())
        if row.status == "findings":
            kinds = ", ".join([f"{count:,} {kind}" for kind, count in Counter(events).most_common()])
            yield "changed", changes, Group(row.model, changes, (kinds,))
    elif report.get("format") == "onnxjson-verification/1":
        outputs: list[dict[str, Any]] = report["outputs"] or [{"name": "no output", "failed": 0, "max_abs": 0.0}]
        output = max(outputs, key=_worst)
        worst = _worst(output)
        problems = [each["problem"] for each in (output, *report["each_run"]) if each.get("problem")]
        number = f"{worst:.3g}" if worst < math.inf else "not finite"
        text = problems[0] if problems else f"{number} in {output['name']}"
        changes = sum(_worst(each) > 0 for each in outputs)
        if names := report["not_compared"]:
            yield _UNKNOWN, len(names), Group(row.model, len(names), (", ".join(names),))
        elif row.status == "findings" or worst:
            yield _OUTSIDE if row.status == "findings" else _WITHIN, worst, Group(row.model, changes, (text,))
    if place is not None:
        yield "moved", changes, Group(row.model, changes, (f"to {place}",))


def _sizes(row: Row) -> tuple[int, int, int, int]:
    """Nodes before and after, if the report has them, and bytes before and after."""
    reports = row.report if isinstance(row.report, list) else []
    nodes = [each["nodes"] for each in reports if isinstance(each, dict) and "nodes" in each]
    before, after = nodes[0] if nodes else (0, 0)
    return before, after, row.bytes or 0, row.written_bytes or 0


def _sizes_text(nodes: int, nodes_after: int, before: int, after: int) -> str:
    counts = f"nodes {nodes:,} -> {nodes_after:,}, " if nodes or nodes_after else ""
    if before == after:
        return f"{counts}{size(after)} as before"
    difference = f" ({after - before:+,} bytes)" if size(before) == size(after) else ""
    return f"{counts}{size(before)} -> {size(after)}{difference}"


def _worst(output: dict[str, Any]) -> float:
    """The largest absolute difference of an output of two models; infinite if its elements cannot be compared."""
    value = output["max_abs"]
    return float(value) if isinstance(value, int | float) else math.inf if output["failed"] else 0.0


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
            yield "matches", sorted({str(each.get("rule") or "models with a match") for each in report})
        codes = {str(each["code"]) for each in report if isinstance(each, dict) and "code" in each}
        if codes:
            yield "findings", sorted(codes)


def _groups(found: dict[str, list[str]], least: int = 1) -> tuple[Group, ...]:
    groups = [Group(label, len(models), tuple(sorted(models)[:_MOST])) for label, models in found.items()]
    return tuple(sorted([each for each in groups if each.number >= least], key=lambda each: (-each.number, each.label)))


def _headline(summary: Summary) -> str:
    models = counted(sum(summary.counts.values()), "model")
    parts = ", ".join(f"{count:,} {status}" for status, count in summary.counts.items())
    return f"{models}: {parts}" if parts else "no models"


def _sections(summary: Summary) -> Iterator[tuple[str, str, str, Sequence[Group]]]:
    """Name, title, heading of the numbers, and rows of each table."""
    yield "failures", "failures", "models", summary.failures
    for name, groups in summary.differences.items():
        heading = ("outputs" if "output" in name else "changes") if any(each.number for each in groups) else ""
        yield name, f"{counted(len(groups), 'model')} {name}", heading, groups
    for name, groups in summary.tables.items():
        if name == "findings":
            labels = [f"{each.label}  {_MESSAGES.get(each.label, '')}".rstrip() for each in groups]
            groups = tuple([each._replace(label=label) for each, label in zip(groups, labels, strict=True)])
        yield name, _EQUAL.get(name, name), "models", groups


def summary_lines(summary: Summary, width: int) -> Iterator[str]:
    """Yield the summary for a terminal."""
    yield _headline(summary)
    yield f"{size(summary.bytes)} read, {summary.seconds:,.1f} s of work"
    if summary.written:
        yield f"written: {summary.written}"
    for name, title, _, groups in _sections(summary):
        if groups:
            yield ""
            yield title
            for group in groups[:_MOST]:
                yield f"{_number(group):>7}  {_line(name, group, max(40, width - 9))}"
            if len(groups) > _MOST:
                yield f"{'':>7}  ... and {len(groups) - _MOST:,} more"


def _number(group: Group) -> str:
    return f"{group.number:,}" if group.number else ""


def _line(name: str, group: Group, width: int) -> str:
    if name in _EQUAL:
        return " = ".join([visible(each, width) for each in group.examples])
    if name in ("operators", "opsets"):
        return visible(group.label, width)
    example = visible(group.examples[0], width // (2 if name in _DIFFERENCES else 3))
    return f"{visible(group.label, width - len(example) - 4)}  ({example})"


def summary_markdown(summary: Summary) -> str:
    """Return the summary as Markdown, at most 65,000 characters."""
    written = f" · written: {summary.written}" if summary.written else ""
    text = f"### {_headline(summary)}\n\n{code(summary.command)} · {size(summary.bytes)}{written}\n"
    for name, title, heading, groups in _sections(summary):
        rows = [f"|{_number(each)}|{code(each.label)}|{code(each.examples[0])}|\n" for each in groups[:_MOST]]
        if len(groups) > _MOST:
            rows.append(f"||... and {len(groups) - _MOST:,} more||\n")
        last = "" if name in summary.differences else "for example"
        piece = f"\n#### {title}\n\n|{heading}||{last}|\n|--:|---|---|\n{''.join(rows)}"
        if rows and len(text) + len(piece) < LARGEST:
            text += piece
    return text


def summary_html(summary: Summary) -> Iterator[str]:
    """Yield the summary as a page; its tables are sorted by a click on a heading."""
    return html_page(_headline(summary), _content(summary), "onnxjson fleet")


def _content(summary: Summary) -> Iterator[str]:
    yield f"<h1>{page_text(_headline(summary))}</h1>\n"
    yield f"<p>{page_code(summary.command)}, {size(summary.bytes)}, {summary.seconds:,.1f} s of work</p>\n"
    yield f"<p>written: {page_text(summary.written)}</p>\n" if summary.written else ""
    for name, title, heading, groups in _sections(summary):
        if groups:
            most, last = (len(groups), "") if name in summary.differences else (200, "for example")
            yield f"<h2>{page_text(title)}</h2>\n"
            rows = [
                (page_text(each.label, 300), [page_number(_number(each)), _examples(each.examples)])
                for each in groups[:most]
            ]
            yield from page_table((heading, last), rows)
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
