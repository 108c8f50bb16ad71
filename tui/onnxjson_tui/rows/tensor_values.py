"""Elements of a slice of a tensor as rows, read from their storage when they become visible.

Of a tensor of 400 MB in a file only the visible parts are read. The last dimension of a slice goes to the right, the
others go down; a list is split into rows of ten.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onnxjson.model import tensors
from onnxjson.model.display import counted, visible
from onnxjson.model.document import SparseTensor, Tensor
from onnxjson.model.dtypes import BITS, COMPLEX_PARTS, INTEGERS, STRING
from onnxjson.model.elements import byte_length
from onnxjson.model.errors import DecodeError, EditError
from onnxjson.model.payloads import part
from onnxjson.model.slices import Pick, parse_slice, slice_text
from onnxjson.model.tensor_statistics import first_tokens
from onnxjson.model.types import format_data_type
from onnxjson.rendering.tables import cells
from onnxjson.storage.constant_reading import with_elements
from onnxjson.storage.external import Resolver

if TYPE_CHECKING:
    from numpy.typing import NDArray


LIST_COLUMNS: Final = 10  # elements in a row of a list
_MEASURED: Final = 16  # rows, and columns of them, that determine the first width of the columns

_WIDEST: Final = 24


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
        found: list[str] = []
        for each in places:
            part, at = self._part(each, 1)
            tokens = first_tokens(part, at + 1)
            if len(tokens) <= at:
                raise EditError("the bytes of the tensor do not have this element, or it cannot be typed")
            found.append(tokens[-1])
        return found

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
            found = [self.tensor.string_data[place][:400].decode(errors="surrogateescape") for place in places]
            return [f'"{visible(text, 100)}"' for text in found]
        if abs(places.step) != 1:
            return [self._elements(place, 1)[0] for place in places]
        found = self._elements(min(places), len(places)) if places else []
        return found[:: places.step]

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
