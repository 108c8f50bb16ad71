"""The elements of a tensor: where a TensorProto stores them, as bytes, and as numpy arrays; whether there are enough.

A TensorProto has its elements in ``raw_data``, in one of five typed fields, in ``string_data``, or in another file.
`raw_bytes` returns the bytes as ``raw_data`` would have them, wherever they are, for tensors that the short form of the
text (docs/format.md, section 7) can represent exactly; `with_storage` puts them back.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import astuple

from onnxjson.model import dtypes
from onnxjson.model.display import counted
from onnxjson.model.document import Tensor
from onnxjson.model.elements import (
    byte_length,
    element_count,
    fixed_from_varints,
    join_bits,
    split_bits,
    varints_from_fixed,
)
from onnxjson.model.errors import DecodeError
from onnxjson.model.messages import DATA_LOCATIONS
from onnxjson.model.payloads import Data, even_pieces, pieces, whole
from onnxjson.model.scalars import ElementError
from onnxjson.model.types import format_data_type

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_EXTERNAL: Final = DATA_LOCATIONS["EXTERNAL"]
_TYPED_FIELDS: Final = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")

_MOST_PRINTED: Final = 1 << 64
_LAST_BYTES: Final = bytes(range(128))
"""Bytes that end a varint."""


def is_external(tensor: Tensor) -> bool:
    """Whether the elements of a tensor are in another file."""
    return tensor.data_location == _EXTERNAL


def typed_fields(tensor: Tensor) -> list[str]:
    """Return the typed fields that have elements."""
    return [name for name in _TYPED_FIELDS if len(getattr(tensor, name))]


def location_of(tensor: Tensor) -> str | None:
    """Return the file that contains the elements ("" if the tensor names none), or None if the tensor does."""
    if not is_external(tensor):
        return None
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), None) or ""


def needed_bytes(tensor: Tensor) -> int | None:
    """Return the number of bytes that dtype and dims require, or None if they do not determine it."""
    if tensor.data_type is None or tensor.segment is not None or any(dim < 0 for dim in tensor.dims):
        return None
    return byte_length(tensor.data_type, element_count(tensor.dims))


def raw_bytes(tensor: Tensor) -> tuple[Data, str | None] | None:
    """Return the elements as in ``raw_data``, lazy if possible, and the typed field that stores them, else None.

    None if the short form of the text cannot represent this tensor exactly: strings, external data, dims or a dtype
    that it cannot write, several payloads, the wrong one, or one that does not fit. Of ``raw_data`` only the length is
    checked.
    """
    data_type = tensor.data_type
    if data_type is None or data_type not in dtypes.STORAGE or any(dim < 0 for dim in tensor.dims):
        return None
    if tensor.segment is not None or tensor.data_location is not None or tensor.external_data:
        return None
    count = element_count(tensor.dims)
    length = byte_length(data_type, count)
    field, code = dtypes.DTYPES[data_type].field, dtypes.DTYPES[data_type].entry
    filled = typed_fields(tensor)
    if tensor.raw_data is not None:
        return (tensor.raw_data, None) if not filled and len(tensor.raw_data) == length else None
    if not filled:
        return (b"", field) if count == 0 else None
    if filled != [field]:
        return None
    data: Data | None = getattr(tensor, field)
    if code != dtypes.IEEE and data is not None:
        data = _from_entries(whole(data), code, count)
    return (data, field) if data is not None and len(data) == length else None


def _from_entries(data: bytes, code: str, count: int) -> bytes | None:
    if code != dtypes.SIX_BITS:
        return fixed_from_varints(data, code)
    # Entries below 64 are one byte each.
    return join_bits(data, 6) if len(data) == count and max(data) < 64 else None


def with_storage(raw: Data, data_type: int, storage: str | None, count: int) -> dict[str, Any]:
    """Return the keyword argument of `Tensor` that puts elements into a field; the inverse of `raw_bytes`.

    `storage` is the typed field of the dtype, or None for ``raw_data``; the length of the elements must fit.
    ElementError if bits that pad the last byte are not zero, where the field has no room for them.
    """
    if storage is None:
        return {"raw_data": raw}
    field, code = dtypes.DTYPES[data_type].field, dtypes.DTYPES[data_type].entry
    if storage != field:
        raise ValueError(f"elements of {dtypes.DATA_TYPE_NAMES[data_type]} are stored in {field}, not in {storage}")
    if code == dtypes.IEEE:
        return {field: raw}
    if code != dtypes.SIX_BITS:
        return {field: varints_from_fixed(whole(raw), code)}
    entries = split_bits(whole(raw), count, 6)
    if entries is None:
        raise ElementError("padding bits that are not zero", "zeros after the last element", count)
    return {field: bytes(entries)}


def to_numpy(tensor: Tensor) -> "NDArray[Any]":
    """Return the elements of a tensor that is not external as an array; see `onnxjson.Tensor.numpy`.

    Raises:
        DecodeError: the elements are in another file, or do not fit dtype and dims.
    """
    import numpy

    if is_external(tensor):
        raise DecodeError(
            f"{_called(tensor)} is in another file; onnxjson.storage.external finds it and reads its bytes"
        )
    if tensor.data_type == dtypes.STRING:
        return _strings(tensor)
    stored = raw_bytes(msgspec.structs.replace(tensor, data_location=None))
    if stored is None or tensor.data_type is None:
        raise DecodeError(f"{_called(tensor)} does not have the elements that its data_type and dims require")
    data, dtype, size = whole(stored[0]), numpy_dtype(tensor.data_type), dtypes.BITS[tensor.data_type]
    if tensor.data_type == dtypes.BOOL:
        elements: NDArray[Any] = numpy.frombuffer(data, numpy.uint8) != 0
    elif size >= 8:
        elements = numpy.frombuffer(data, dtype)
    else:
        elements = unpack(data, element_count(tensor.dims), size, dtype)
    return _shaped(elements, tensor)


def arrays(data_type: int, data: Data, count: int) -> "Iterator[NDArray[Any]]":
    """Yield `count` elements that are stored as in ``raw_data``, in flat arrays of 768 KiB of bytes or less."""
    size = dtypes.BITS[data_type]
    for piece in even_pieces(data):
        here = min(count, len(piece) * 8 // size)
        count -= here
        yield to_numpy(Tensor(dims=(here,), data_type=data_type, raw_data=piece))


def numbers(data_type: int, data: Data, count: int) -> "Iterator[NDArray[Any]]":
    """Yield elements as `arrays` does, as numbers that numpy can subtract: float64, complex128, or integers."""
    import numpy

    for array in arrays(data_type, data, count):
        if array.dtype.kind == "c":
            yield array.astype(numpy.complex128)
        elif array.dtype.kind in "iu":
            yield array
        else:
            is_whole = data_type == dtypes.BOOL or data_type in dtypes.INTEGERS
            yield array.astype(numpy.int64 if is_whole else numpy.float64)


def _shaped(elements: "NDArray[Any]", tensor: Tensor) -> "NDArray[Any]":
    try:
        return elements.reshape(tensor.dims)
    except (ValueError, OverflowError) as error:  # more than 64 dims, or huge ones next to a 0
        raise DecodeError(f"numpy has no array of the shape of {_called(tensor)}: {error}") from None


def _called(tensor: Tensor) -> str:
    return f"tensor {tensor.name!a}" if tensor.name else "the tensor"


def _strings(tensor: Tensor) -> "NDArray[Any]":
    import numpy

    if any(dim < 0 for dim in tensor.dims) or len(tensor.string_data) != element_count(tensor.dims):
        raise DecodeError(f"{_called(tensor)} does not have the elements that its data_type and dims require")
    elements = numpy.empty(len(tensor.string_data), dtype=object)
    for index, data in enumerate(tensor.string_data):
        try:
            elements[index] = data.decode()
        except UnicodeDecodeError:
            elements[index] = data
    return _shaped(elements, tensor)


def numpy_dtype(data_type: int) -> "numpy.dtype[Any]":
    """Return the little-endian dtype of a data type, numpy's or ml_dtypes' (not for strings)."""
    import ml_dtypes
    import numpy

    name = dtypes.DATA_TYPE_NAMES[data_type]
    return numpy.dtype(getattr(ml_dtypes, name, None) or name).newbyteorder("<")


def unpack(data: bytes, count: int, size: int, dtype: "numpy.dtype[Any]") -> "NDArray[Any]":
    """Unpack elements of 2, 4 or 6 bits to one byte each."""
    import numpy

    bits = numpy.unpackbits(numpy.frombuffer(data, numpy.uint8), count=count * size, bitorder="little")
    return numpy.packbits(bits.reshape(count, size), axis=1, bitorder="little").reshape(count).view(dtype)


def from_numpy(array: "NDArray[Any]", name: str | None = None) -> Tensor:
    """Return a tensor with the shape, dtype and elements of an array, in ``raw_data`` (strings: in ``string_data``).

    TypeError for a dtype of numpy that ONNX does not have.
    """
    import numpy

    array = numpy.asarray(array)
    dims = tuple(int(dim) for dim in array.shape)
    if array.dtype.kind in "OUST":
        texts = tuple(_string(element) for element in array.reshape(-1).tolist())
        return Tensor(dims=dims, data_type=dtypes.STRING, string_data=texts, name=name)
    data_type = _data_type(array.dtype)
    if data_type not in dtypes.BITS:
        raise TypeError(f"ONNX has no data type for arrays of {array.dtype}; convert it with astype first")
    size = dtypes.BITS[data_type]
    if size >= 8:
        data = numpy.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    else:
        data = _join(array, size)
    return Tensor(dims=dims, data_type=data_type, name=name, raw_data=data)


def _data_type(dtype: "numpy.dtype[Any]") -> int | None:
    return dtypes.DATA_TYPES.get(dtype.name)


def _string(element: object) -> bytes:
    if isinstance(element, str):
        return element.encode(errors="surrogateescape")
    if isinstance(element, bytes):
        return element
    raise TypeError(f"elements of a tensor of strings are str or bytes, not {type(element).__name__}")


def _join(array: "NDArray[Any]", size: int) -> bytes:
    import numpy

    patterns = numpy.ascontiguousarray(array).reshape(-1, 1).view(numpy.uint8)
    bits = numpy.unpackbits(patterns, axis=1, count=size, bitorder="little")
    return numpy.packbits(bits, bitorder="little").tobytes()


def tensor_mistakes(tensor: Tensor) -> Iterator[tuple[str, str, str]]:
    """Yield the errors of a tensor: code, message and hint of each finding."""
    if not is_plain(tensor):
        yield from _mistakes(tensor)


def _length(data_type: int, dims: tuple[int, ...]) -> int | None:
    return None if any(dim < 0 for dim in dims) else byte_length(data_type, element_count(dims))


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has raw bytes, the right number of them, and nothing else, like almost all tensors."""
    dims, dtype, segment, floats, ints, texts, longs, _, raw, doubles, unsigned, _, _, location, *_ = astuple(tensor)
    if raw is None or dtype is None or segment is not None or location is not None:
        return False
    return not (floats or ints or texts or longs or doubles or unsigned) and len(raw) == _length(dtype, dims)


def _mistakes(tensor: Tensor) -> Iterator[tuple[str, str, str]]:
    name = None if tensor.data_type is None else dtypes.DATA_TYPE_NAMES.get(tensor.data_type)
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
    filled = ["raw_data"] * (tensor.raw_data is not None) + typed_fields(tensor)
    shape = f"{dtypes.DATA_TYPE_NAMES[data_type]}[{','.join(map(str, tensor.dims))}]"
    count = element_count(tensor.dims)
    if len(filled) > 1:
        message = f"the tensor has elements in {' and '.join(filled)}"
        yield "several-payloads", message, "only one of these fields may have elements"
        return
    if not filled:
        if count:
            yield "wrong-length", f"the tensor has no elements; {shape} needs {_number_text(count)}", ""
        return
    field = filled[0]
    fits = "string_data" if data_type == dtypes.STRING else dtypes.STORAGE[data_type]
    if field not in (fits, "raw_data") or (field == "raw_data" and data_type == dtypes.STRING):
        message = f"elements of {dtypes.DATA_TYPE_NAMES[data_type]} are not stored in {field}"
        yield "wrong-storage", message, f"they belong in {fits}"
        return
    found, needed, unit = _sizes(tensor, field, data_type, count)
    if found != needed:
        yield "wrong-length", f"{field} holds {counted(found, unit)}; {shape} needs {_number_text(needed)}", ""


def _number_text(number: int) -> str:
    """Format a number for a message; the product of dims can be too large for Python to print."""
    return f"{number:,}" if number <= _MOST_PRINTED else f"more than {_MOST_PRINTED:,}"


def _sizes(tensor: Tensor, field: str, data_type: int, count: int) -> tuple[int, int, str]:
    if field == "string_data":
        return len(tensor.string_data), count, "string"
    if field == "raw_data":
        return len(tensor.raw_data or b""), byte_length(data_type, count) or 0, "byte"
    data: Data = getattr(tensor, field)
    if field in ("float_data", "double_data"):
        each = 4 if field == "float_data" else 8
        return len(data) // each, count * (2 if data_type in dtypes.COMPLEX_PARTS else 1), "number"
    entries = sum(len(piece) - len(piece.translate(None, _LAST_BYTES)) for piece in pieces(data))
    dtype = dtypes.DTYPES[data_type]
    elements_per_entry = 8 // dtype.bits if dtype.bits < 8 and dtype.entry != dtypes.SIX_BITS else 1
    return entries, -(-count // elements_per_entry), "number"
