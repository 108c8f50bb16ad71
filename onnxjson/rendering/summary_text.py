"""Summaries of models as lines of text: one model, or several side by side."""

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from onnxjson.model.display import counted, is_whole, visible
from onnxjson.model.operators import operator_name
from onnxjson.rendering.spans import Span, plain, wide_table
from onnxjson.rendering.summary import Summary, Value
from onnxjson.rendering.tables import GAP, cells, columns, limited, padded, shortened, size, table, wrapped
from onnxjson.rendering.values import Weights

FORMATS: Final = {"onnx": "ONNX binary", "json": "onnxjson/1 text", "protojson": "proto-JSON"}
"""Names of file formats."""

_MOST_VALUES: Final = 20
"""Maximum number of listed inputs or outputs."""

_MOST_ROWS: Final = 30
"""Maximum number of listed functions, files and metadata."""

_MOST_DOC_LINES: Final = 6


def summary_lines(summary: Summary, width: int) -> list[str]:
    """Return the lines of a summary, visible and at most `width` columns wide."""
    lines = _head(summary, width)
    lines += _section(f"inputs {len(summary.inputs):,}", _value_lines(summary.inputs, width))
    lines += _section(f"outputs {len(summary.outputs):,}", _value_lines(summary.outputs, width))
    lines += _section(_operators_title(summary), _operator_lines(summary, width))
    lines += _section("functions", _function_lines(summary, width))
    lines += _section("weights", _weight_lines(summary, width))
    lines += _section("biggest tensors", _biggest_lines(summary, width))
    lines += _section("external data", _external_lines(summary, width))
    rows = [(entry.key or "", entry.value or "") for entry in summary.metadata]
    lines += _section("metadata", _limited(table(rows, width)))
    return lines


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *lines] if lines else []


def _limited(lines: list[str], most: int = _MOST_ROWS) -> list[str]:
    left = len(lines) - most
    indent = " " * (len(lines[0]) - len(lines[0].lstrip())) if lines else ""
    return [*lines[:most], f"{indent}... and {left:,} more"] if left > 0 else lines


def _head(summary: Summary, width: int) -> list[str]:
    rows = [
        ("file", f"{summary.file} ({FORMATS.get(summary.format, summary.format)}, {size(summary.file_bytes)})"),
        ("producer", " ".join(part for part in (summary.producer_name, summary.producer_version) if part)),
        ("ir_version", "" if summary.ir_version is None else str(summary.ir_version)),
        ("opsets", opsets_text(summary)),
        ("graph", _graph_text(summary)),
        ("domain", summary.domain or ""),
        ("model_version", str(summary.model_version) if summary.model_version else ""),
        ("training", counted(summary.training_steps, "step") if summary.training_steps else ""),
        ("devices", ", ".join(summary.devices)),
    ]
    lines = [line for label, text in rows if text for line in _labelled(label, text, width)]
    if summary.doc_string:
        lines += ["", *_limited(wrapped(summary.doc_string, width), _MOST_DOC_LINES)]
    return lines


def _labelled(label: str, text: str, width: int) -> list[str]:
    """Return a label followed by a wrapped text, shortened if very long."""
    lines = wrapped(text, width, indent=12)
    shown = _limited(lines, _MOST_DOC_LINES)
    return [padded(label, 12) + shown[0].lstrip(), *shown[1:]]


def opsets_text(summary: Summary) -> str:
    """Return ``ai.onnx 17, com.microsoft 1``; domains used without an import are marked."""
    return ", ".join(
        f"{each.domain or 'ai.onnx'} {'not imported' if each.version is None else each.version}"
        for each in summary.opsets
    )


def _graph_text(summary: Summary) -> str:
    inside = summary.nodes_in
    parts = [
        f"{number:,} in {name}"
        for name, number in (
            ("subgraphs", inside.subgraphs),
            ("functions", inside.functions),
            ("training", inside.training),
        )
        if number
    ]
    nodes = counted(summary.nodes, "node") + (f" ({', '.join(parts)})" if parts else "")
    return f"{summary.graph}: {nodes}" if summary.graph else nodes


def _value_lines(values: Sequence[Value], width: int) -> list[str]:
    free = [each for each in values if not each.has_initializer]
    rows = [(each.name, each.type or "no type") for each in free]
    lines = _limited(table(rows, width), _MOST_VALUES)
    if len(free) < len(values):
        lines.append(f"  {'and ' if free else ''}{len(values) - len(free):,} that have initializers")
    return lines


def _operators_title(summary: Summary) -> str:
    return f"operators {len(summary.operators):,}, nodes {summary.nodes:,}"


def _operator_lines(summary: Summary, width: int) -> list[str]:
    inside = summary.nodes_in
    if not (inside.subgraphs or inside.functions or inside.training):
        return columns(
            [(operator_name(each.domain, each.op_type), f"{each.nodes:,}") for each in summary.operators], width
        )
    places = [name for name in ("main", "subgraphs", "functions", "training") if getattr(inside, name)]
    rows = [("", "all", *places)]
    for each in summary.operators:
        counts = [getattr(each, name) for name in places]
        rows.append(
            (
                operator_name(each.domain, each.op_type),
                f"{each.nodes:,}",
                *(f"{count:,}" if count else "" for count in counts),
            )
        )
    return table(rows, width, right=range(1, len(places) + 2))


def _function_lines(summary: Summary, width: int) -> list[str]:
    rows = [("", "in", "out", "nodes", "calls")]
    for each in summary.functions:
        name = operator_name(each.domain, each.name, each.overload)
        rows.append((name, f"{each.inputs:,}", f"{each.outputs:,}", f"{each.nodes:,}", f"{each.calls:,}"))
    return _limited(table(rows, width, right=range(1, 5)), _MOST_ROWS + 1) if len(rows) > 1 else []


def weights_text(weights: Weights, noun: str) -> str:
    """Return ``1,234 parameters in 4 tensors, 4.9 kB``; the noun names the elements."""
    stored = size(weights.bytes)
    if weights.external_bytes:
        outside = "all" if weights.external_bytes == weights.bytes else size(weights.external_bytes)
        stored += f" ({outside} in other files)"
    return f"{counted(weights.elements, noun)} in {counted(weights.tensors, 'tensor')}, {stored}"


def _weight_lines(summary: Summary, width: int) -> list[str]:
    lines = []
    if summary.weights.tensors:
        lines += wrapped(f"initializers: {weights_text(summary.weights, 'parameter')}", width)
    if summary.constants.tensors:
        lines += wrapped(f"in attributes: {weights_text(summary.constants, 'element')}", width)
    rows = [
        (each.dtype, counted(each.tensors, "tensor"), counted(each.elements, "element"), size(each.bytes))
        for each in summary.dtypes
    ]
    return lines + table(rows, width, right=(1, 2, 3))


def _biggest_lines(summary: Summary, width: int) -> list[str]:
    rows = [
        (each.name or f"@{each.address}", each.type or "no type", size(each.bytes), each.location or "")
        for each in summary.biggest
    ]
    if not any(row[3] for row in rows):
        rows = [row[:3] for row in rows]  # type: ignore[misc]
    return table(rows, width, right=(2,))


def _external_lines(summary: Summary, width: int) -> list[str]:
    lines = []
    for each in summary.external[:_MOST_ROWS]:
        there = "" if each.file_bytes is None else f" of a file of {size(each.file_bytes)}"
        lines += table([(each.location, f"{counted(each.tensors, 'tensor')}, {size(each.bytes)}{there}")], width)
        if each.problem:
            lines += wrapped(f"! {each.problem}", width, indent=4)
    left = len(summary.external) - _MOST_ROWS
    return [*lines, f"  ... and {left:,} more"] if left > 0 else lines


_LABEL: Final = 24
"""Maximum width of labels, in columns."""

_NARROWEST: Final = 16
"""Minimum width for a model, in columns."""

_MARK: Final = "* "
"""Prefix of rows in which the models differ."""


class _ComparedRow(NamedTuple):
    label: str
    values: tuple[str, ...]


def comparison_lines(summaries: Sequence[Summary], width: int) -> list[str]:
    """Return the models side by side, as many as fit into `width` columns, the others below."""
    rows = _rows(summaries)
    most = max((width - len(_MARK) - _LABEL) // len(summaries) - GAP, _NARROWEST)
    label = len(_MARK) + limited(max(cells(visible(row.label, 1000)) for row in rows), _LABEL)
    texts = [
        (
            (_MARK if place > 1 and _differs(row) else " " * len(_MARK)) + visible(row.label, 1000),
            [Span(shortened(visible(value, 1000), most)) for value in row.values],
        )
        for place, row in enumerate(rows)
    ]
    width = sys.maxsize if is_whole() else width
    heads = [texts[0][0], *[span.text for span in texts[0][1]]]
    lines = [plain(line).rstrip() for line in wide_table(heads, texts[1:], width, label, right=False)]
    return [*lines, "", f"{_MARK}differs"] if any(_differs(row) for row in rows[2:]) else lines


def _differs(row: _ComparedRow) -> bool:
    return len(set(row.values)) > 1


def _rows(summaries: Sequence[Summary]) -> list[_ComparedRow]:
    def row(label: str, values: Sequence[str]) -> _ComparedRow:
        return _ComparedRow(label, tuple(values))

    rows = [
        row("file", [each.file for each in summaries]),
        row("format", [FORMATS.get(each.format, each.format) for each in summaries]),
        row("size", [size(each.file_bytes) for each in summaries]),
        row("producer", [" ".join(filter(None, (each.producer_name, each.producer_version))) for each in summaries]),
        row("ir_version", ["" if each.ir_version is None else str(each.ir_version) for each in summaries]),
        row("opsets", [opsets_text(each) for each in summaries]),
    ]
    for label, field in (("input", "inputs"), ("output", "outputs")):
        rows += _value_rows(label, [getattr(each, field) for each in summaries])
    rows += [
        row("parameters", [f"{each.weights.elements:,}" for each in summaries]),
        row("  bytes", [size(each.weights.bytes) for each in summaries]),
        row("  tensors", [f"{each.weights.tensors:,}" for each in summaries]),
    ]
    found = dict.fromkeys(dtype.dtype for each in summaries for dtype in each.dtypes)
    for name in found:
        totals = [next((dtype.bytes for dtype in each.dtypes if dtype.dtype == name), None) for each in summaries]
        rows.append(row(f"  {name}", ["" if total is None else size(total) for total in totals]))
    rows.append(row("functions", [f"{len(each.functions):,}" if each.functions else "" for each in summaries]))
    rows.append(row("nodes", [f"{each.nodes:,}" for each in summaries]))
    return rows + _operator_rows(summaries)


def _value_rows(label: str, models: Sequence[Sequence[Value]]) -> list[_ComparedRow]:
    """Return a row for each input or output, by name; those with initializers are only counted."""
    free = [{each.name: each.type or "no type" for each in values if not each.has_initializer} for values in models]
    names = dict.fromkeys(name for values in free for name in values)
    rows = [
        _ComparedRow(f"{label} {name}", tuple([values.get(name, "") for values in free])) for name in list(names)[:20]
    ]
    if len(names) > 20:
        rows.append(_ComparedRow(f"{label}s", tuple([counted(len(values), label) for values in free])))
    return rows


def _operator_rows(summaries: Sequence[Summary]) -> list[_ComparedRow]:
    counts = [
        {operator_name(each.domain, each.op_type): each.nodes for each in summary.operators} for summary in summaries
    ]
    names = dict.fromkeys(name for count in counts for name in count)
    order = sorted(names, key=lambda name: -max(count.get(name, 0) for count in counts))
    return [
        _ComparedRow(f"  {name}", tuple([f"{count[name]:,}" if name in count else "" for count in counts]))
        for name in order
    ]
