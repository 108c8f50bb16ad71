"""The summary of one model as lines for a person."""

from collections.abc import Sequence
from typing import Final

from onnxjson.display import counted
from onnxjson.operators import operator_name
from onnxjson.rendering.constants import Weights
from onnxjson.rendering.summary import Summary, Value
from onnxjson.rendering.tables import columns, padded, size, table, wrapped

FORMATS: Final = {"onnx": "ONNX binary", "json": "onnxjson/1 text", "protojson": "proto-JSON"}
"""What the forms of files are called."""

_MOST_VALUES: Final = 20
"""Inputs or outputs that are listed."""

_MOST_ROWS: Final = 30
"""Functions, files and metadata that are listed."""

_MOST_DOC_LINES: Final = 6


def summary_lines(summary: Summary, width: int) -> list[str]:
    """The lines, each made visible and at most `width` columns wide."""
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
    """A label and, beside it, a text in as many lines as it needs, within reason."""
    lines = wrapped(text, width, indent=12)
    shown = _limited(lines, _MOST_DOC_LINES)
    return [padded(label, 12) + shown[0].lstrip(), *shown[1:]]


def opsets_text(summary: Summary) -> str:
    """``ai.onnx 17, com.microsoft 1``; what is used but not imported is said."""
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
    """``1,234 parameters in 4 tensors, 4.9 kB``; the noun is what its elements are called."""
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
