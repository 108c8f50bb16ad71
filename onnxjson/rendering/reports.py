"""Diffs and traces as JSON in ASCII, and the report of any result as a text.

The formats of JSON are onnxjson-diff/1, onnxjson-diffs/1 (several models) and onnxjson-trace/1 (trace.json and the
output of ``onnxjson trace``, with the provenance of every node).
"""

import html
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec

from onnxjson.codecs.wire_writing import message_size
from onnxjson.diffing.difference import Diff
from onnxjson.diffing.events import Event, Member
from onnxjson.model.display import visible
from onnxjson.model.document import Model
from onnxjson.model.index import index_of
from onnxjson.optimizing.provenance import Provenance, Story, provenance
from onnxjson.optimizing.trace_records import Trace
from onnxjson.optimizing.trace_storing import tree
from onnxjson.rendering.cost_text import cost_totals
from onnxjson.rendering.diff_report import Report, places_of, report
from onnxjson.rendering.trace_text import Subject
from onnxjson.rendering.values import as_json, picked

FORMAT: Final = "onnxjson-diff/1"
DIFFS_FORMAT: Final = "onnxjson-diffs/1"

_WIDTH: Final = 100


def diff_json(report: Report, *, with_matches: bool = False) -> Iterator[str]:
    """Yield the text in pieces, a line for each pair, if requested, and member; strings are exact, see `as_json`."""
    head: dict[str, Any] = {"format": FORMAT, "equal": report.equal}
    if report.incomplete:
        head["incomplete"] = list(report.incomplete)
    head["summary"] = {
        "base_nodes": report.nodes.before, "target_nodes": report.nodes.after, "matched_nodes": report.matched,
        "events": dict(places_of(report.events)), "changes": report.changes, "without_effect": report.without_effect,
    }  # fmt: skip
    if report.interface:
        head["interface"] = [{"breaking": each.is_breaking, "text": each.text} for each in report.interface]
    if report.costs is not None:
        head["cost"] = dict(zip(("base", "target"), map(cost_totals, report.costs), strict=True))
    yield "{" + ",\n".join(f"{_line(key)}: {_line(value)}" for key, value in head.items())
    if with_matches:
        yield from _list(',\n"matches": ', (_line(pair) for pair in report.alignment.node_pairs()))
    yield from _list(',\n"events": ', map(_event, report.events))
    yield "}\n"


def _list(before: str, members: Iterator[str]) -> Iterator[str]:
    yield before + "["
    separator = "\n"
    for text in members:
        yield separator + text
        separator = ",\n"
    yield "\n]" if separator != "\n" else "]"


def _line(value: object) -> str:
    return as_json(value, indent=None)


def _event(event: Event) -> str:
    head = _line(picked(event, "kind count pattern where verdict evidence"))
    members = "".join(_list("", (_line(_member(member)) for member in event.members)))
    return f'{head[:-1]}, "members": {members}}}'


def _member(member: Member) -> dict[str, Any]:
    data = msgspec.structs.asdict(member)
    if member.count == 1:
        del data["count"]
    return data


def trace_json(trace: Trace, provenance: Provenance, subjects: list[Subject] | None = None) -> Iterator[str]:
    """Yield the text, ASCII; with `subjects`, only these nodes have their provenance in it."""
    origins, fates = provenance.origins, provenance.fates
    if subjects is not None:
        origins = {each.ref.address: each.story for each in subjects if each.is_of_result}
        fates = {each.ref.address: each.story for each in subjects if not each.is_of_result}
    data = tree(trace)
    data["origins"] = {address: _story(story) for address, story in origins.items()}
    data["fates"] = {address: _story(story) for address, story in fates.items()}
    yield json.dumps(data, indent=1, ensure_ascii=True, allow_nan=False)
    yield "\n"


def _story(story: Story) -> dict[str, Any]:
    touches = [{"step": each.step, "part": each.part, "kind": each.kind} for each in story.touches]
    return {"nodes": list(story.nodes), "among": story.among, "parts": touches}


def report_text(result: object, form: Literal["json", "markdown", "html"]) -> str:
    """Return the report of a result in a form that its kind of result has."""
    # The forms of a command start faster without the modules of all results.
    from onnxjson.editing.places import Places
    from onnxjson.merging.conflict_text import side_values
    from onnxjson.merging.merge import Merged
    from onnxjson.outline.lines import Outline
    from onnxjson.rendering.diff_html import diff_html
    from onnxjson.rendering.markdown_reports import diff_markdown, trace_markdown
    from onnxjson.rendering.run_report import run_data
    from onnxjson.rendering.summary import Place, summarise
    from onnxjson.rendering.summary_text import summary_lines
    from onnxjson.rendering.trace_html import trace_html
    from onnxjson.rendering.verification_report import verification_data
    from onnxjson.running.checking import Findings
    from onnxjson.running.model_run import RunResult
    from onnxjson.running.verdicts import Verification

    match result:
        case Diff():
            shown = report(result, *result.names)
            if form == "markdown":
                return diff_markdown(shown)
            return "".join(diff_json(shown) if form == "json" else diff_html(shown))
        case Trace():
            if form == "markdown":
                return trace_markdown(result)
            found = provenance(result)
            return "".join(trace_json(result, found) if form == "json" else trace_html(result, found))
        case Model():
            summary = summarise(result, index_of(result), Place("", "onnx", message_size(result)))
            # The first line is about the file, which a model in memory does not have.
            lines = summary_lines(summary, _WIDTH)[1:]
            # Notebooks give their own font to all that is HTML.
            return f'<pre style="font-family: monospace">{html.escape(chr(10).join(lines))}</pre>'
        case Places():
            return _table(result, "address op_type name inputs outputs")
        case Outline():
            indented = [
                {"text": f"{'  ' * depth}{line.text}", "nodes": len(line.nodes)} for depth, line in result.walk()
            ]
            return _table(indented, "text nodes")
        case Verification():
            data = verification_data(result, "base", "target")
            return (
                as_json(data) if form == "json" else _table(data["outputs"], "name dtype runs failed max_abs max_rel")
            )
        case RunResult() if form == "json":
            return as_json(run_data(result, "model"))
        case RunResult():
            arrays = [{"output": name, "value": value} for name, value in result.arrays.items()]
            return _table(arrays, "output value")
        case Findings() if form == "json":
            return as_json([msgspec.structs.asdict(finding) for finding in result])
        case Findings():
            return _table(result, "severity code address message hint")
        case Merged():
            sides = [{"id": each.id, "at": each.at, **side_values(each)} for each in result.conflicts]
            return as_json(sides) if form == "json" else _table(sides, "at base ours theirs")
    raise TypeError(f"{type(result).__name__} has no report")


def _table(rows: Iterable[object], fields: str) -> str:
    """Return a table for a notebook: a row for each object, or dictionary, and a column for each of its fields."""
    names = fields.split()
    head = "".join([f"<th>{name}</th>" for name in names])
    body = "".join([f"<tr>{''.join([_cell(row, name) for name in names])}</tr>\n" for row in rows])
    return f'<table>\n<thead><tr>{head}</tr></thead>\n<tbody style="white-space: pre-wrap">\n{body}</tbody>\n</table>'


def _cell(row: object, name: str) -> str:
    value = row[name] if isinstance(row, dict) else getattr(row, name)
    text = "" if value is None else ", ".join(value) if isinstance(value, tuple) else str(value)
    return f"<td>{html.escape(visible(text, 400))}</td>"
