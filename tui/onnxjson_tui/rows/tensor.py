"""A tensor: its description, with statistics and a histogram in characters, and the elements of a slice as rows.

Elements are read when they become visible: of a tensor of 400 MB in a file only the visible parts.
The last dimension of a slice goes to the right, the others go down; a list is split into rows of ten.
"""

import json
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onnxjson.model import tensors
from onnxjson.model.dimensions import Pick, parse_slice, slice_text
from onnxjson.model.display import counted, visible
from onnxjson.model.document import SparseTensor, Tensor
from onnxjson.model.dtypes import BITS, COMPLEX_PARTS, INTEGERS, STRING
from onnxjson.model.elements import byte_length, element_count
from onnxjson.model.errors import DecodeError, EditError
from onnxjson.model.index import Index
from onnxjson.model.payloads import part
from onnxjson.model.tensor_statistics import Histogram, Spread, first_tokens
from onnxjson.model.types import format_data_type
from onnxjson.model.walking import stored_bytes
from onnxjson.patterns.names import TensorRef
from onnxjson.rendering.tables import Line, Span, cells, number, padded, shortened, size
from onnxjson.rendering.tensor import producer_text, storage_of, storage_text
from onnxjson.rendering.values import consumers, source, tensor_type_text
from onnxjson.storage.constant_reading import with_elements
from onnxjson.storage.external import Resolver

if TYPE_CHECKING:
    from numpy.typing import NDArray


LIST_COLUMNS: Final = 10  # elements in a row of a list
_MEASURED: Final = 16  # rows, and columns of them, that determine the first width of the columns

_WIDEST: Final = 24

HEIGHT: Final = 6  # rows of a histogram, its axis not counted

BINS: Final = 36  # columns of a histogram

_LEFT: Final = 40  # columns of the numbers next to a histogram

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"

_MOST_LISTED: Final = 3  # maximum number of consumers, or of tensors with the same bytes, that are listed


class ValueGrid:
    """The elements of a slice as rows and columns."""

    def __init__(self, tensor: Tensor, picks: Sequence[Pick], *, list_columns: int = LIST_COLUMNS) -> None:
        """Prepare the rows of a slice of a tensor with all its elements in ``raw_data`` or ``string_data``.

        `list_columns` is the number of elements in a row if the slice has one dimension.
        """
        self.tensor = tensor
        self.picks = tuple(picks)
        dims = tensor.dims
        strides = [1] * len(dims)
        for axis in range(len(dims) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * dims[axis + 1]
        self._strides = strides
        free = [axis for axis, pick in enumerate(picks) if isinstance(pick, range)]
        self._down = free[:-1]
        self._across = free[-1] if free else None
        self._ranges = [pick if isinstance(pick, range) else range(pick, pick + 1) for pick in picks]
        self.length = 1  # number of elements of the slice
        for axis in free:
            self.length *= len(self._ranges[axis])
        width = len(self._ranges[self._across]) if self._across is not None else 1
        self.is_list = len(free) == 1
        self.columns = min(width, list_columns) if self.is_list else width
        self.rows = -(-self.length // self.columns) if self.columns else 0
        self.width = 1  # terminal columns of the widest element so far

    def texts(self, row: int, first: int, count: int) -> list[str]:
        """Read elements of a row as text, at most `count` from a column on.

        Raises:
            OnnxJsonError: the bytes cannot be read.
        """
        last = min(first + count, self.columns)
        if self.is_list:
            last = min(last, self.length - row * self.columns)
        found = self._texts(self._flat(row, first, max(last - first, 0)))
        self.width = min(max(self.width, *map(cells, found), 1), _WIDEST)
        return found

    def index(self, row: int, column: int, count: int = 1) -> str:
        """Return the index of an element, or of `count` elements from it on in its row, as `parse_slice` reads it."""
        places = [str(place) for place in self._places(row)]
        if self._across is not None:
            across, first = self._ranges[self._across], column + (row * self.columns if self.is_list else 0)
            start, step = across[first], across.step
            stop = start + (min(first + count, len(across)) - first) * step
            if count > 1:
                places[self._across] = f"{start}:{stop if stop >= 0 else ''}" + (f":{step}" if step != 1 else "")
            else:
                places[self._across] = str(start)
        return ",".join(places)

    def exact(self, row: int, column: int, count: int = 1) -> list[str]:
        """Return elements of a row as JSON, exactly.

        Raises:
            OnnxJsonError: the bytes cannot be read, or are too few.
        """
        places = self._flat(row, column, min(count, self.columns - column))
        if self.tensor.data_type == STRING:
            try:
                return [json.dumps(self.tensor.string_data[each].decode()) for each in places]
            except UnicodeDecodeError:
                raise EditError("an element is not UTF-8 and cannot be typed; :set-tensor --at replaces it") from None
        texts: list[str] = []
        for each in places:
            part, at = self._part(each, 1)
            tokens = first_tokens(part, at + 1)
            if len(tokens) <= at:
                raise EditError("the bytes of the tensor do not have this element, or it cannot be typed")
            texts.append(tokens[-1])
        return texts

    def row_label(self, row: int) -> str:
        """Return the index of a row in the tensor."""
        if self._across is None:
            return slice_text(self.picks, self.tensor.dims)
        places = self._places(row)
        texts = [str(place) for place in places]
        if self.is_list:
            texts[self._across] = str(self._ranges[self._across][row * self.columns])
        else:
            texts[self._across] = ":"
        return f"[{','.join(texts)}]"

    def column_label(self, column: int) -> str:
        """Return the heading of a column: its index in the last dimension of the slice."""
        if self._across is None:
            return ""
        return f"+{column}" if self.is_list else str(self._ranges[self._across][column])

    def _places(self, row: int) -> list[int]:
        """Return the index of the first element of a row in each dimension."""
        places = [each[0] if each else 0 for each in self._ranges]
        if not self.is_list:
            for axis in reversed(self._down):
                row, at = divmod(row, len(self._ranges[axis]))
                places[axis] = self._ranges[axis][at]
        return places

    def _flat(self, row: int, column: int, count: int) -> range:
        if not count:
            return range(0)
        start = sum([place * stride for place, stride in zip(self._places(row), self._strides, strict=True)])
        if self._across is None:
            return range(start, start + 1)
        step = self._ranges[self._across].step * self._strides[self._across]
        first = start + ((row * self.columns if self.is_list else 0) + column) * step
        return range(first, first + count * step, step)

    def _texts(self, places: range) -> list[str]:
        if self.tensor.data_type == STRING:
            texts = [self.tensor.string_data[place][:400].decode(errors="surrogateescape") for place in places]
            return [f'"{visible(text, 100)}"' for text in texts]
        if abs(places.step) != 1:
            return [self._elements(place, 1)[0] for place in places]
        texts = self._elements(min(places), len(places)) if places else []
        return texts[:: places.step]

    def _elements(self, start: int, count: int) -> list[str]:
        """Return the texts of adjacent elements."""
        tensor, before = self._part(start, count)
        values = _python_values(tensors.to_numpy(tensor), self.tensor.data_type or 0)
        return [_number_text(value) for value in values[before:]]

    def _part(self, start: int, count: int) -> tuple[Tensor, int]:
        """Return adjacent elements as a tensor, and the number of other elements before them."""
        data_type = self.tensor.data_type or 0
        size = BITS[data_type]
        # Elements of less than a byte are read from the start of the bytes that they share.
        each = 1 if size >= 8 else 4 if size == 6 else 8 // size
        first = start // each * each
        wanted = start + count - first
        length = byte_length(data_type, wanted) or 0
        data = part(self.tensor.raw_data or b"", first * size // 8, length)
        return Tensor((wanted,), data_type=data_type, raw_data=data), start - first


def _python_values(array: "NDArray[Any]", data_type: int) -> list[Any]:
    import numpy

    if data_type in COMPLEX_PARTS or array.dtype.kind in "iub" or array.dtype in (numpy.float32, numpy.float64):
        return list(array.tolist())
    if data_type in INTEGERS:
        return list(array.astype(numpy.int64).tolist())
    return list(array.astype(numpy.float64).tolist())


def _number_text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case complex():
            return f"{value.real:.4g}{value.imag:+.4g}i"
        case float():
            return f"{value:.6g}"
        case _:
            return str(value)


class SparseGrid(ValueGrid):
    """The stored elements of a sparse tensor, one per row, with their indices."""

    def __init__(self, values: Tensor, indices: "NDArray[Any]", dims: Sequence[int]) -> None:
        """Prepare the rows of a list of elements, with a flat index or a row of indices for each."""
        super().__init__(values, parse_slice("", values.dims), list_columns=1)
        self._indices = indices
        self._sparse_dims = dims

    def row_label(self, row: int) -> str:
        """Return the index of an element."""
        entry = self._indices[row].tolist()
        places = entry if isinstance(entry, list) else _unravelled(entry, self._sparse_dims)
        return f"[{','.join(map(str, places))}]"

    def column_label(self, column: int) -> str:
        """Return no heading, since there is one column."""
        return ""


def _unravelled(place: int, dims: Sequence[int]) -> list[int]:
    places = []
    for dim in reversed(dims):
        place, at = divmod(place, dim) if dim else (0, 0)
        places.append(at)
    return places[::-1]


def opened_grid(tensor: Tensor | SparseTensor, folder: Path | None, wanted: str) -> ValueGrid:
    """Return the elements of a tensor with the first rows read.

    Raises:
        OnnxJsonError: the elements cannot be read.
        SliceError: the previous slice is out of range for the tensor.
    """
    resolver = Resolver(folder or Path())
    if isinstance(tensor, SparseTensor):
        return begun(_sparse(tensor, resolver))
    if tensor.data_type not in BITS and tensor.data_type != STRING:
        raise DecodeError(f"elements of {format_data_type(tensor.data_type or 0)} cannot be read")
    held = with_elements(tensor, resolver)
    return begun(ValueGrid(held, parse_slice(wanted, held.dims)))


def begun(grid: ValueGrid) -> ValueGrid:
    """Return the rows, with the width of the first ones."""
    for row in range(min(grid.rows, _MEASURED)):
        grid.texts(row, 0, _MEASURED)
    return grid


def _sparse(tensor: SparseTensor, resolver: Resolver) -> SparseGrid:
    if tensor.values is None or tensor.indices is None:
        raise DecodeError("the sparse tensor has no values or no indices")
    values = with_elements(tensor.values, resolver)
    if len(values.dims) != 1 or values.data_type not in (*BITS, STRING):
        raise DecodeError("the values of a sparse tensor must be a list, but these are not")
    indices = tensors.to_numpy(with_elements(tensor.indices, resolver))
    if not indices.ndim or indices.ndim > 2 or len(indices) != values.dims[0] or indices.dtype.kind not in "iu":
        raise DecodeError(
            f"the sparse tensor has {counted(values.dims[0], 'value')} and indices that do not match them"
        )
    return SparseGrid(values, indices, tensor.dims)


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


def place_lines(index: Index, ref: TensorRef, width: int) -> list[str]:
    """Describe where a tensor is stored, its producer and its consumers; each is whole, or shortened to a line."""
    tensor = ref.tensor.values if isinstance(ref.tensor, SparseTensor) else ref.tensor
    parts = []
    if tensor is not None:
        parts = [visible(storage_text(storage_of(tensor)), 300), *_shared(index, tensor)]
    if ref.scope is not None and ref.name:
        origin = source(index, ref.scope, ref.name)
        if origin.node is not None:
            parts.append(f"produced by {producer_text(origin)}")
        elif origin.produced_by == "input":
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
    whole = "; ".join(parts)
    return [whole] if cells(whole) <= width else [shortened(part, width) for part in parts]


def _shared(index: Index, tensor: Tensor) -> list[str]:
    """Return other constants that refer to the same bytes of a file."""
    if not tensor.external_data:
        return []
    names = [
        visible(other.name or "?", 60)
        for scope in index.scopes
        for other in getattr(scope.graph, "initializer", ())
        if other is not tensor and other.external_data == tensor.external_data
    ]
    return [f"the same bytes as {', '.join(names[:_MOST_LISTED])}"] if names else []


def histogram_lines(histogram: Histogram) -> list[str]:
    """Return a column for each bin, then the axis with the minimum and the maximum.

    A bin with few elements remains visible: it has at least the lowest mark.
    """
    most = max(histogram.counts)
    bin_width = max(BINS // len(histogram.counts), 1)
    heights = [0 if not count else max(round(count / most * HEIGHT * 8), 1) for count in histogram.counts]
    lines = [
        "".join([_EIGHTHS[max(min(height - row * 8, 8), 0)] * bin_width for height in heights])
        for row in range(HEIGHT - 1, -1, -1)
    ]
    low, high = number_text(histogram.edges[0]), number_text(histogram.edges[-1])
    width = bin_width * len(heights)
    return [*lines, "─" * width, low + " " * max(width - len(low) - len(high), 1) + high]


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
