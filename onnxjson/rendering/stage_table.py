"""Any number of models side by side: operators by count, nodes, parameters, bytes; a column for each model."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from onnxjson.display import counted, visible
from onnxjson.rendering.spans import Line, Span, Style
from onnxjson.rendering.tables import GAP, cells, padded, shortened, size
from onnxjson.tracing.records import Size

_LABEL: Final = 30
"""Columns for the names of operators."""

_WIDEST: Final = 18
"""Columns of a heading."""


class Column(NamedTuple):
    """One model."""

    name: str
    """Such as the pass that made it."""
    size: Size


class Row(NamedTuple):
    """One thing that is counted."""

    what: str
    """Visible."""
    numbers: tuple[int, ...]
    """For each model."""
    is_bytes: bool = False
    is_operator: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether two models next to each other differ in it."""
        return len(set(self.numbers)) > 1

    def text(self, position: int) -> str:
        """The number of a model, for a person."""
        number = self.numbers[position]
        if self.is_bytes:
            return size(number)
        return f"{number:,}" if number or not self.is_operator else "."

    def change(self, position: int) -> int:
        """How much more that is than of the model before."""
        return self.numbers[position] - self.numbers[position - 1] if position else 0


def table_rows(columns: Sequence[Column], *, most: int | None = None) -> list[Row]:
    """The rows: operators, those first that changed most, then nodes, parameters and bytes.

    Args:
        columns: the models.
        most: operators that get a row of their own at most, and only if their number changed; the others share one.
            None for all of them.
    """
    names = sorted({name for column in columns for name in column.size.operators})
    operators = [
        Row(visible(name, 200), tuple([column.size.operators.get(name, 0) for column in columns]), is_operator=True)
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
        operators = [*operators[:most], Row(label, sums, is_operator=True)]
    return [
        *operators,
        Row("nodes", tuple([column.size.nodes for column in columns])),
        Row("parameters", tuple([column.size.parameters for column in columns])),
        Row("bytes", tuple([column.size.bytes for column in columns]), is_bytes=True),
    ]


def table_lines(columns: Sequence[Column], width: int, *, most: int | None = None) -> Iterator[Line]:
    """The table for a terminal; where it is too narrow, the models that are left stand below the others."""
    rows = table_rows(columns, most=most)
    label = min(max(cells(row.what) + GAP * row.is_operator for row in rows), _LABEL)
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


def _fitting(columns: Sequence[Column], rows: Sequence[Row], start: int, room: int) -> tuple[list[int], list[int]]:
    """The models from `start` that fit into `room` columns, at least one, and how wide each is."""
    shown: list[int] = []
    widths: list[int] = []
    for position in range(start, len(columns)):
        heading = min(cells(visible(columns[position].name, 200)), _WIDEST)
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


def _spans(row: Row, shown: Sequence[int], widths: Sequence[int], label: int) -> Iterator[Span]:
    indent = " " * GAP * row.is_operator
    yield Span(padded(shortened(indent + row.what, label), label))
    for position, each in zip(shown, widths, strict=True):
        change = row.change(position)
        style: Style = "added" if change > 0 else "removed" if change < 0 else "plain"
        yield Span(" " * GAP + padded(row.text(position), each, right=True), style)
