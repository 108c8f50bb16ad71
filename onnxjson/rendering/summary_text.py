"""Summaries of models as lines of text: one model, or several side by side."""

import re
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final

from onnxjson.model.display import counted, is_whole, visible
from onnxjson.model.operators import operator_name
from onnxjson.rendering.summary import Summary, Value
from onnxjson.rendering.tables import (
    GAP,
    Span,
    cells,
    columns,
    first_lines,
    limited,
    padded,
    plain,
    shortened,
    size,
    table,
    wide_table,
    wrapped,
)
from onnxjson.rendering.values import Weights

FORMATS: Final = {"onnx": "ONNX binary", "json": "onnxjson/1 text", "protojson": "proto-JSON"}
_MOST_VALUES: Final = 20
_LAYER: Final = re.compile("([^0-9]*)([0-9]+)(.*)", re.DOTALL)
_LEAST_LAYERS: Final = 6  # number of layers from which the inputs, or the outputs, of all layers are one line
_MOST_ROWS: Final = 30
_MOST_DOC_LINES: Final = 6

_LABEL: Final = 24
_NARROWEST: Final = 16
_MARK: Final = "* "  # prefix of rows in which the models differ

_Row = tuple[str, Sequence[str]]  # a label, and a text for each model


def summary_lines(summary: Summary, width: int) -> list[str]:
    """Return the lines of a summary, visible and at most `width` columns wide."""
    lines = _head(summary, width)
    lines += _section(f"inputs {len(summary.inputs):,}", _value_lines(summary.inputs, width))
    lines += _section(f"outputs {len(summary.outputs):,}", _value_lines(summary.outputs, width))
    lines += _section(f"operators {len(summary.operators):,}, nodes {summary.nodes:,}", _operator_lines(summary, width))
    lines += _section("functions", _function_lines(summary, width))
    lines += _section("weights", _weight_lines(summary, width))
    lines += _section("biggest tensors", _biggest_lines(summary, width))
    lines += _section("external data", _external_lines(summary, width))
    rows = [(entry.key or "", entry.value or "") for entry in summary.metadata]
    lines += _section("metadata", first_lines(table(rows, width), _MOST_ROWS))
    return lines


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *lines] if lines else []


def _head(summary: Summary, width: int) -> list[str]:
    rows = [
        ("file", f"{summary.file} ({FORMATS.get(summary.format, summary.format)}, {size(summary.file_bytes)})"),
        ("producer", _producer(summary)),
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
        lines += ["", *first_lines(wrapped(summary.doc_string, width), _MOST_DOC_LINES)]
    return lines


def _producer(summary: Summary) -> str:
    return " ".join(filter(None, (summary.producer_name, summary.producer_version)))


def _labelled(label: str, text: str, width: int) -> list[str]:
    """Return a label followed by a wrapped text, shortened if very long."""
    shown = first_lines(wrapped(text, width, indent=12), _MOST_DOC_LINES)
    return [padded(f"{label} ", 12) + shown[0].lstrip(), *shown[1:]] if shown else []


def opsets_text(summary: Summary) -> str:
    """Return ``ai.onnx 17, com.microsoft 1``; domains used without an import are marked."""
    return ", ".join(
        f"{each.domain or 'ai.onnx'} {'not imported' if each.version is None else each.version}"
        for each in summary.opsets
    )


def _graph_text(summary: Summary) -> str:
    numbers = [(getattr(summary.nodes_in, name), name) for name in ("subgraphs", "functions", "training")]
    parts = [f"{number:,} in {name}" for number, name in numbers if number]
    nodes = counted(summary.nodes, "node") + (f" ({', '.join(parts)})" if parts else "")
    return f"{summary.graph}: {nodes}" if summary.graph else nodes


def _value_lines(values: Sequence[Value], width: int) -> list[str]:
    free = [each for each in values if not each.has_initializer]
    rows = [
        (label, free[places[0]].type or "no type", f"{len(places):,} values" if len(places) > 1 else "")
        for label, places in families([(each.name, each.type) for each in free])
    ]
    lines = first_lines(table(rows, width), _MOST_VALUES)
    if len(free) < len(values):
        lines.append(f"  {'and ' if free else ''}{len(values) - len(free):,} that have initializers")
    return lines


def families(values: Iterable[tuple[str, Hashable]]) -> list[tuple[str, Sequence[int]]]:
    """Return labels and positions of values, given by name and type.

    Values of many layers, such as ``past_key_values.0.key``, have one label, ``past_key_values.{0..31}.key``.
    """
    members_of: dict[tuple[str, str, Hashable], list[tuple[int, str, str]]] = {}
    for position, (name, its_type) in enumerate(values):
        match = _LAYER.fullmatch(name)
        start, number, end = (name, "", "\0") if match is None else match.groups()
        members_of.setdefault((start, end, its_type), []).append((position, number, name))
    rows: list[tuple[str, Sequence[int]]] = []
    for (start, end, _), members in members_of.items():
        if len(members) >= _LEAST_LAYERS and [each[1] for each in members] == [*map(str, range(len(members)))]:
            rows.append((f"{start}{{0..{len(members) - 1}}}{end}", [each[0] for each in members]))
        else:
            rows += [(name, [position]) for position, _, name in members]
    return rows


def _operator_lines(summary: Summary, width: int) -> list[str]:
    places = [name for name in ("main", "subgraphs", "functions", "training") if getattr(summary.nodes_in, name)]
    named = [(operator_name(each.domain, each.op_type), f"{each.nodes:,}", each) for each in summary.operators]
    if places in ([], ["main"]):
        return columns([(name, count) for name, count, _ in named], width)
    rows = [("", "all", *places)]
    for name, count, each in named:
        counts = [getattr(each, place) for place in places]
        rows.append((name, count, *[f"{number:,}" if number else "" for number in counts]))
    return table(rows, width, right=range(1, len(places) + 2))


def _function_lines(summary: Summary, width: int) -> list[str]:
    rows = [("", "in", "out", "nodes", "calls")]
    for each in summary.functions:
        name = operator_name(each.domain, each.name, each.overload)
        rows.append((name, f"{each.inputs:,}", f"{each.outputs:,}", f"{each.nodes:,}", f"{each.calls:,}"))
    return first_lines(table(rows, width, right=range(1, 5)), _MOST_ROWS + 1) if len(rows) > 1 else []


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
        lines += wrapped(f"weights: {weights_text(summary.weights, 'parameter')}", width)
    if summary.constants.tensors:
        lines += wrapped(f"other constants: {weights_text(summary.constants, 'element')}", width)
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
    for file in summary.external[:_MOST_ROWS]:
        there = "" if file.file_bytes is None else f" of a file of {size(file.file_bytes)}"
        lines += table([(file.location, f"{counted(file.tensors, 'tensor')}, {size(file.bytes)}{there}")], width)
        if file.problem:
            lines += wrapped(f"! {file.problem}", width, indent=4)
    left = len(summary.external) - _MOST_ROWS
    return [*lines, f"  ... and {left:,} more"] if left > 0 else lines


def comparison_lines(summaries: Sequence[Summary], width: int) -> list[str]:
    """Return the models side by side, as many as fit into `width` columns, the others below."""
    rows = _rows(summaries)
    most = max((width - len(_MARK) - _LABEL) // len(summaries) - GAP, _NARROWEST)
    label_width = len(_MARK) + limited(max(cells(visible(label, 1000)) for label, _ in rows), _LABEL)
    marks = [" " * len(_MARK)] * 2 + [_MARK if len(set(values)) > 1 else " " * len(_MARK) for _, values in rows[2:]]
    texts = [
        (mark + visible(label, 1000), [Span(shortened(visible(value, 1000), most)) for value in values])
        for mark, (label, values) in zip(marks, rows, strict=True)
    ]
    width = sys.maxsize if is_whole() else width
    heads = [texts[0][0], *[span.text for span in texts[0][1]]]
    lines = [plain(line).rstrip() for line in wide_table(heads, texts[1:], width, label_width, right=False)]
    return [*lines, "", f"{_MARK}differs"] if _MARK in marks else lines


def _rows(summaries: Sequence[Summary]) -> list[_Row]:
    def row(label: str, text: Callable[[Summary], str]) -> _Row:
        return label, [text(each) for each in summaries]

    rows = [
        row("file", lambda each: each.file),
        row("format", lambda each: FORMATS.get(each.format, each.format)),
        row("size", lambda each: size(each.file_bytes)),
        row("producer", _producer),
        row("ir_version", lambda each: "" if each.ir_version is None else str(each.ir_version)),
        row("opsets", opsets_text),
        *_value_rows("input", [each.inputs for each in summaries]),
        *_value_rows("output", [each.outputs for each in summaries]),
        row("parameters", lambda each: f"{each.weights.elements:,}"),
        row("  bytes", lambda each: size(each.weights.bytes)),
        row("  tensors", lambda each: f"{each.weights.tensors:,}"),
    ]
    totals = [{dtype.dtype: size(dtype.bytes) for dtype in each.dtypes} for each in summaries]
    rows += [(f"  {name}", [each.get(name, "") for each in totals]) for name in _names(totals)]
    rows.append(row("functions", lambda each: f"{len(each.functions):,}" if each.functions else ""))
    rows.append(row("nodes", lambda each: f"{each.nodes:,}"))
    counts = [{operator_name(each.domain, each.op_type): each.nodes for each in found.operators} for found in summaries]
    order = sorted(_names(counts), key=lambda name: -max(count.get(name, 0) for count in counts))
    return rows + [(f"  {name}", [f"{each[name]:,}" if name in each else "" for each in counts]) for name in order]


def _names(models: Sequence[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for each in models for name in each))


def _value_rows(label: str, models: Sequence[Sequence[Value]]) -> list[_Row]:
    """Return a row for each input or output, by name; those with initializers are only counted."""
    free = [{each.name: each.type or "no type" for each in values if not each.has_initializer} for values in models]
    names = _names(free)
    rows: list[_Row] = [(f"{label} {name}", [values.get(name, "") for values in free]) for name in names[:20]]
    return rows + ([(f"{label}s", [counted(len(values), label) for values in free])] if len(names) > 20 else [])
