"""Sizes of models side by side (operators, nodes, parameters, bytes), and their changes in words."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from onnxjson.model.display import counted, visible
from onnxjson.optimizing.passes.pipeline import is_grown
from onnxjson.optimizing.trace_records import Size
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson.rendering.tables import GAP, cells, limited, padded, shortened, size


def nodes_change(before: int, after: int) -> str:
    """Return ``67 -> 24 nodes``; ``67 nodes`` if the number is the same."""
    nodes = counted(after, "node")
    return nodes if before == after else f"{before:,} -> {nodes}"


def bytes_change(before: int, after: int) -> str:
    """Return ``1.6 MB -> 0.8 MB``; the difference if both round to the same text, one size if they are equal."""
    one, other = size(before), size(after)
    if one != other:
        return f"{one} -> {other}"
    return one if before == after else f"{one} ({after - before:+,} bytes)"


def growth(before: int, after: int) -> list[str]:
    """Return a sentence if a model grew by more than 10 %; else nothing."""
    return [f"the model grew by {(after - before) * 100 // before} %"] if is_grown(before, after) else []


_LABEL: Final = 30
"""Maximum width of the names of operators, in columns."""

_WIDEST: Final = 18
"""Maximum width of a heading, in columns."""


class Column(NamedTuple):
    """One model."""

    name: str
    """Name of the model, such as the pass that produced it."""
    size: Size


class SizeRow(NamedTuple):
    """One counted property."""

    what: str
    """Label; visible text."""
    numbers: tuple[int, ...]
    """The number for each model."""
    is_bytes: bool = False
    is_operator: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether the models differ in it."""
        return len(set(self.numbers)) > 1

    def text(self, position: int) -> str:
        """Return the number of a model as text."""
        number = self.numbers[position]
        if self.is_bytes:
            return size(number)
        return f"{number:,}" if number or not self.is_operator else "."

    def change(self, position: int) -> int:
        """Return the difference from the model before."""
        return self.numbers[position] - self.numbers[position - 1] if position else 0


def table_rows(columns: Sequence[Column], *, most: int | None = None) -> list[SizeRow]:
    """Return the rows: operators with the largest changes first, then nodes, parameters and bytes.

    Args:
        columns: the models.
        most: maximum number of changed operators with their own rows; the others share one row. None gives every
            operator its own row.
    """
    names = sorted({name for column in columns for name in column.size.operators})
    operators = [
        SizeRow(visible(name, 200), tuple([column.size.operators.get(name, 0) for column in columns]), is_operator=True)
        for name in names
    ]
    operators.sort(key=lambda row: (min(row.numbers) - max(row.numbers), -max(row.numbers)))
    if most is not None:
        most = min(most, sum(row.is_changed for row in operators))
    if most is not None and len(operators) > most:
        rest = operators[most:]
        label = f"{len(rest):,} other{'s' * (len(rest) > 1)}" if most else counted(len(rest), "operator")
        label += "" if any(row.is_changed for row in rest) else " as before"
        sums = tuple([sum(numbers) for numbers in zip(*[row.numbers for row in rest], strict=True)])
        operators = [*operators[:most], SizeRow(label, sums, is_operator=True)]
    return [
        *operators,
        SizeRow("nodes", tuple([column.size.nodes for column in columns])),
        SizeRow("parameters", tuple([column.size.parameters for column in columns])),
        SizeRow("bytes", tuple([column.size.bytes for column in columns]), is_bytes=True),
    ]


def table_lines(columns: Sequence[Column], width: int, *, most: int | None = None) -> Iterator[Line]:
    """Yield the table for a terminal; models that do not fit follow below the others."""
    rows = table_rows(columns, most=most)
    label = limited(max(cells(row.what) + GAP * row.is_operator for row in rows), _LABEL)
    start = 0
    while start < len(columns):
        shown, widths = _fitting(columns, rows, start, width - label)
        if start:
            yield ()
        yield (Span(_headings(columns, shown, widths, label), "title"),)
        for row in rows:
            if not row.is_operator or any(row.numbers[position] for position in shown):
                yield tuple(_spans(row, shown, widths, label))
        start = shown[-1] + 1


def _fitting(columns: Sequence[Column], rows: Sequence[SizeRow], start: int, room: int) -> tuple[list[int], list[int]]:
    """Return the models from `start` that fit into `room` columns, at least one, with their widths."""
    shown: list[int] = []
    widths: list[int] = []
    for position in range(start, len(columns)):
        heading = limited(cells(visible(columns[position].name, 200)), _WIDEST)
        wanted = max(heading, *[cells(row.text(position)) for row in rows])
        if shown and sum(widths) + wanted + GAP * (len(widths) + 1) > room:
            break
        shown.append(position)
        widths.append(wanted)
    return shown, widths


def _headings(columns: Sequence[Column], shown: Sequence[int], widths: Sequence[int], label: int) -> str:
    names = [
        shortened(visible(columns[position].name, 200), each) for position, each in zip(shown, widths, strict=True)
    ]
    texts = [padded(name, each, right=True) for name, each in zip(names, widths, strict=True)]
    return (" " * GAP).join([padded("", label), *texts])


def _spans(row: SizeRow, shown: Sequence[int], widths: Sequence[int], label: int) -> Iterator[Span]:
    indent = " " * GAP * row.is_operator
    yield Span(padded(shortened(indent + row.what, label), label))
    for position, each in zip(shown, widths, strict=True):
        change = row.change(position)
        style: Style = "added" if change > 0 else "removed" if change < 0 else "plain"
        yield Span(" " * GAP + padded(row.text(position), each, right=True), style)
