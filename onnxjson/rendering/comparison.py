"""Summaries side by side: a row for each thing that can be counted or named, a column for each model."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from onnxjson.display import counted, visible
from onnxjson.operators import operator_name
from onnxjson.rendering.summary import Summary, Value
from onnxjson.rendering.summary_text import FORMATS, opsets_text
from onnxjson.rendering.tables import GAP, cells, padded, shortened, size

_LABEL: Final = 24
"""Columns for what a row is about."""

_NARROWEST: Final = 16
"""Columns that a model needs."""

_MARK: Final = "* "
"""Stands before rows in which the models differ."""


class _Row(NamedTuple):
    """One thing of all models."""

    label: str
    values: tuple[str, ...]


def comparison_lines(summaries: Sequence[Summary], width: int) -> list[str]:
    """The models side by side, as many as fit into `width` columns, the others below them."""
    rows = _rows(summaries)
    fitting = max((width - len(_MARK) - _LABEL) // (_NARROWEST + GAP), 1)
    lines: list[str] = []
    for start in range(0, len(summaries), fitting):
        part = slice(start, start + fitting)
        each = (width - len(_MARK) - _LABEL) // len(summaries[part]) - GAP
        lines += [""] if lines else []
        lines += _table(rows, part, each)
    return [*lines, "", f"{_MARK}differs"] if any(_differs(row) for row in rows[2:]) else lines


def _table(rows: Sequence[_Row], part: slice, each: int) -> list[str]:
    wanted = max(cells(visible(value, 1000)) for row in rows for value in row.values[part])
    each = min(each, max(wanted, 8))
    label = min(_LABEL, max(cells(visible(row.label, 1000)) for row in rows))
    lines = []
    for position, row in enumerate(rows):
        if not any(row.values[part]):
            continue
        mark = _MARK if position > 1 and _differs(row) else " " * len(_MARK)
        parts = [mark + padded(shortened(visible(row.label, 1000), label), label)]
        parts += [padded(shortened(visible(value, 1000), each), each) for value in row.values[part]]
        lines.append((" " * GAP).join(parts).rstrip())
    return lines


def _differs(row: _Row) -> bool:
    return len(set(row.values)) > 1


def _rows(summaries: Sequence[Summary]) -> list[_Row]:
    def row(label: str, values: Sequence[str]) -> _Row:
        return _Row(label, tuple(values))

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


def _value_rows(label: str, models: Sequence[Sequence[Value]]) -> list[_Row]:
    """A row for each input or output, by name; those with initializers as one number."""
    free = [{each.name: each.type or "no type" for each in values if not each.has_initializer} for values in models]
    names = dict.fromkeys(name for values in free for name in values)
    rows = [_Row(f"{label} {name}", tuple([values.get(name, "") for values in free])) for name in list(names)[:20]]
    if len(names) > 20:
        rows.append(_Row(f"{label}s", tuple([counted(len(values), label) for values in free])))
    return rows


def _operator_rows(summaries: Sequence[Summary]) -> list[_Row]:
    counts = [
        {operator_name(each.domain, each.op_type): each.nodes for each in summary.operators} for summary in summaries
    ]
    names = dict.fromkeys(name for count in counts for name in count)
    order = sorted(names, key=lambda name: -max(count.get(name, 0) for count in counts))
    return [
        _Row(f"  {name}", tuple([f"{count[name]:,}" if name in count else "" for count in counts])) for name in order
    ]
