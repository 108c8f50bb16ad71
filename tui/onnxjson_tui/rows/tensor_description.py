"""Description of a tensor: name, type, storage and consumers; statistics and a histogram in characters."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from onnxjson.model.display import counted, visible
from onnxjson.model.document import SparseTensor, Tensor
from onnxjson.model.elements import element_count
from onnxjson.model.index import Index
from onnxjson.model.tensor_statistics import Histogram, Spread
from onnxjson.model.types import format_data_type
from onnxjson.model.walking import stored_bytes
from onnxjson.patterns.tensor_refs import TensorRef
from onnxjson.rendering.tables import Line, Span, cells, number, padded, shortened, size
from onnxjson.rendering.tensor import producer_text, storage_of, storage_text
from onnxjson.rendering.values import consumers, source, tensor_type_text

HEIGHT: Final = 6  # rows of a histogram, its axis not counted
BINS: Final = 36  # columns of a histogram
_LEFT: Final = 40  # columns of the numbers next to a histogram

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_HALVES: Final = " .:"  # for terminals without block characters: empty, less than half of a row, more than half
_MOST_LISTED: Final = 3  # maximum number of consumers, or of tensors with the same bytes, that are listed


def title_line(ref: TensorRef, width: int) -> Line:
    """Return name, type, number of elements and size."""
    name = visible(ref.name or "(no name)", 500)
    tensor = ref.tensor.values if isinstance(ref.tensor, SparseTensor) else ref.tensor
    if tensor is None:
        return (Span(f" {shortened(name, width - 2)}", "title"),)
    assert ref.tensor is not None
    kind = tensor_type_text(tensor) or f"{format_data_type(tensor.data_type or 0)}{list(tensor.dims)}"
    if isinstance(ref.tensor, SparseTensor):
        kind = f"sparse {kind} of {list(ref.tensor.dims)}"
    kind = shortened(visible(kind, 200), max(width // 3, 10))
    detail = f"  {counted(element_count(ref.tensor.dims), 'element')}, {size(stored_bytes(tensor))}"
    room = max(width - 4 - cells(kind) - cells(detail), 8)
    return (Span(f" {shortened(name, room)}", "title"), Span(f"  {kind}"), Span(detail, "quiet"))


def place_text(index: Index, ref: TensorRef) -> str:
    """Describe where a tensor is stored, its producer and its consumers."""
    tensor = ref.tensor.values if isinstance(ref.tensor, SparseTensor) else ref.tensor
    parts = []
    if tensor is not None:
        parts = [visible(storage_text(storage_of(tensor)), 300), *_shared(index, tensor)]
    if ref.scope is not None and ref.name:
        made = source(index, ref.scope, ref.name)
        if made.node is not None:
            parts.append(f"produced by {producer_text(made)}")
        elif made.produced_by == "input":
            parts.append("an input of the graph")
        users = consumers(index, ref.scope, ref.name)
        names = [
            "the output of the graph"
            if each.node is None
            else f"{visible(each.node.op_type, 60)} {visible(each.node.name or '', 60)}".rstrip()
            for each in users[:_MOST_LISTED]
        ]
        more = f" and {len(users) - _MOST_LISTED:,} more" if len(users) > _MOST_LISTED else ""
        parts.append(f"consumed by {len(users):,}: {', '.join(names)}{more}" if users else "not consumed")
    else:
        parts.append(visible(f"@{ref.address}", 200))
    return "; ".join(parts)


def _shared(index: Index, tensor: Tensor) -> list[str]:
    """Return other constants that refer to the same bytes of a file."""
    if not tensor.external_data:
        return []
    names = [
        visible(each.name or "?", 60)
        for scope in index.scopes
        for each in getattr(scope.graph, "initializer", ())
        if each is not tensor and each.external_data == tensor.external_data
    ]
    return [f"the same bytes as {', '.join(names[:_MOST_LISTED])}"] if names else []


def histogram_lines(histogram: Histogram, *, ascii_only: bool = False) -> list[str]:
    """Return a column for each bin, then the axis with the minimum and the maximum.

    A bin with few elements remains visible: it has at least the lowest mark.
    """
    most = max(histogram.counts)
    each = max(BINS // len(histogram.counts), 1)
    levels = 2 if ascii_only else 8
    heights = [0 if not count else max(round(count / most * HEIGHT * levels), 1) for count in histogram.counts]
    lines = [
        "".join([_mark(height - row * levels, levels, ascii_only) * each for height in heights])
        for row in range(HEIGHT - 1, -1, -1)
    ]
    low, high = number_text(histogram.edges[0]), number_text(histogram.edges[-1])
    width = each * len(heights)
    axis = ("-" if ascii_only else "─") * width
    return [*lines, axis, low + " " * max(width - len(low) - len(high), 1) + high]


def _mark(height: int, levels: int, ascii_only: bool) -> str:
    if height >= levels:
        return "#" if ascii_only else "█"
    return (_HALVES if ascii_only else _EIGHTHS)[max(height, 0)]


def number_text(value: float) -> str:
    """Format a number in at most 13 columns."""
    text = number(int(value) if float(value).is_integer() and abs(value) < 1e12 else value)
    return text if len(text) <= 13 else f"{float(value):.6g}"


def quantile_lines(spread: Spread, width: int) -> list[str]:
    """Return the quantiles in as many lines as needed, and whether they are exact."""
    if not spread.quantiles:
        return []
    which = "of all elements" if spread.is_exact else f"of {spread.looked_at:,} of {spread.elements:,} elements"
    lines = [f"quantiles {which}:"]
    for share, value in spread.quantiles:
        part = f"{share:.0%} {number_text(float(f'{value:.3g}'))}"
        if len(lines[-1]) + 2 + len(part) > width:
            lines.append("")
        lines[-1] += f"  {part}"
    return lines


def side_by_side(rows: Sequence[tuple[str, str]], chart: Sequence[str], width: int) -> list[Line]:
    """Return labels and values, with a chart on the right if there is room, otherwise below."""
    widest = max((len(label) for label, _ in rows), default=0)
    left: list[Line] = [
        (Span(f" {label:<{widest}}  ", "quiet"), Span(shortened(text, max(width - widest - 4, 8))))
        for label, text in rows
    ]
    if not chart:
        return left
    if width < _LEFT + max(map(cells, chart)):
        return [*left, *[(Span(" " + each, "title"),) for each in chart]]
    lines: list[Line] = []
    for line, drawn in zip_longest(left, chart, fillvalue=None):
        text = "".join(span.text for span in line or ())
        gap = padded("", _LEFT - cells(text))
        lines.append((*(line or ()), Span(gap), Span(drawn or "", "title")))
    return lines
