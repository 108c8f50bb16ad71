"""Check whether a constant has the number of bytes that its dtype and dims require."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from msgspec.structs import astuple

from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import COMPLEX_PARTS, DATA_TYPE_NAMES, DTYPES, SIX_BITS, STORAGE, STRING
from onnxjson.model.elements import byte_length, element_count
from onnxjson.model.payloads import Data, pieces
from onnxjson.model.tensors import is_external
from onnxjson.model.types import format_data_type

_FIELDS: Final = ("raw_data", "string_data", *sorted(set(STORAGE.values())))
_MOST_PRINTED: Final = 1 << 64
_LAST_BYTES: Final = bytes(range(128))
"""Bytes that end a varint."""


def tensor_mistakes(tensor: Tensor) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong with a tensor: code, message and hint of each finding."""
    if not _is_plain(tensor):
        yield from _mistakes(tensor)


@lru_cache(maxsize=4096)
def _length(data_type: int, dims: tuple[int, ...]) -> int | None:
    """Return the number of bytes of such a tensor, or None where its shape does not determine it."""
    return None if any(dim < 0 for dim in dims) else byte_length(data_type, element_count(dims))


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has raw bytes, the right number of them, and nothing else, like almost all tensors."""
    dims, dtype, segment, floats, ints, texts, longs, _, raw, doubles, unsigned, _, _, location, *_ = astuple(tensor)
    if raw is None or dtype is None or segment is not None or location is not None:
        return False
    return not (floats or ints or texts or longs or doubles or unsigned) and len(raw) == _length(dtype, dims)


def _mistakes(tensor: Tensor) -> Iterator[tuple[str, str, str]]:
    name = None if tensor.data_type is None else DATA_TYPE_NAMES.get(tensor.data_type)
    if tensor.data_type is None or not tensor.data_type:
        yield "undefined-dtype", "the tensor has no data_type", ""
        return
    if name is None:
        yield "undefined-dtype", f"onnx defines no data type {format_data_type(tensor.data_type)}", ""
        return
    if any(dim < 0 for dim in tensor.dims):
        yield "negative-dim", f"the tensor has the dim {min(tensor.dims)}", "dims of a constant are 0 or more"
        return
    if is_external(tensor):
        if not any(entry.key == "location" and entry.value for entry in tensor.external_data):
            yield "missing-location", "the tensor is in another file, but external_data has no location", ""
        return
    if tensor.segment is None:
        yield from _payload_mistakes(tensor, tensor.data_type)


def _payload_mistakes(tensor: Tensor, data_type: int) -> Iterator[tuple[str, str, str]]:
    filled = [field for field in _FIELDS if _is_filled(tensor, field)]
    shape = f"{DATA_TYPE_NAMES[data_type]}[{','.join(map(str, tensor.dims))}]"
    count = element_count(tensor.dims)
    if len(filled) > 1:
        yield "several-payloads", f"the tensor has elements in {' and '.join(filled)}", "only one of them can hold them"
        return
    if not filled:
        if count:
            yield "wrong-length", f"the tensor has no elements; {shape} needs {_counted(count)}", ""
        return
    field = filled[0]
    fits = "string_data" if data_type == STRING else STORAGE[data_type]
    if field not in (fits, "raw_data") or (field == "raw_data" and data_type == STRING):
        yield (
            "wrong-storage",
            f"elements of {DATA_TYPE_NAMES[data_type]} do not stand in {field}",
            f"they belong in {fits}",
        )
        return
    found, needed, unit = _sizes(tensor, field, data_type, count)
    if found != needed:
        yield "wrong-length", f"{field} holds {found:,} {unit}; {shape} needs {_counted(needed)}", ""


def _counted(number: int) -> str:
    """Format a number for a message; the product of dims can be too large for Python to print."""
    return f"{number:,}" if number <= _MOST_PRINTED else f"more than {_MOST_PRINTED:,}"


def _is_filled(tensor: Tensor, field: str) -> bool:
    value = getattr(tensor, field)
    return value is not None if field == "raw_data" else len(value) > 0


def _sizes(tensor: Tensor, field: str, data_type: int, count: int) -> tuple[int, int, str]:
    """Return the size found, the size required, and the unit."""
    if field == "string_data":
        return len(tensor.string_data), count, "strings"
    if field == "raw_data":
        return len(tensor.raw_data or b""), byte_length(data_type, count) or 0, "bytes"
    data: Data = getattr(tensor, field)
    if field in ("float_data", "double_data"):
        each = 4 if field == "float_data" else 8
        return len(data) // each, count * (2 if data_type in COMPLEX_PARTS else 1), "numbers"
    entries = sum(len(piece) - len(piece.translate(None, _LAST_BYTES)) for piece in pieces(data))
    dtype = DTYPES[data_type]
    elements_per_entry = 8 // dtype.bits if dtype.bits < 8 and dtype.entry != SIX_BITS else 1
    return entries, -(-count // elements_per_entry), "numbers"
