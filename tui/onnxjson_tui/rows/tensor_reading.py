"""Reading of the elements of a constant as rows; to be run in a thread."""

from pathlib import Path

from onnxjson.model import tensors
from onnxjson.model.display import counted
from onnxjson.model.document import SparseTensor, Tensor
from onnxjson.model.dtypes import BITS, STRING
from onnxjson.model.errors import DecodeError
from onnxjson.model.types import format_data_type
from onnxjson.storage.external import Resolver
from onnxjson.storage.stored_constants import with_elements
from onnxjson_tui.rows.tensor_values import Key, SparseGrid, ValueGrid, parse_slice


def opened_grid(tensor: Tensor | SparseTensor, folder: Path | None, wanted: str) -> ValueGrid:
    """Return the elements of a tensor with the first block read.

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
    """Return the rows with the first block read."""
    if grid.rows:
        grid.take(Key(0, 0), grid.read(Key(0, 0)))
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
