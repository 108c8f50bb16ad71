"""The elements of a tensor: where a TensorProto keeps them, as bytes, and as numpy arrays.

A TensorProto holds its elements in ``raw_data``, in one of five typed fields, in ``string_data``, or in another file.
`raw_bytes` gives the bytes that ``raw_data`` would hold wherever they stand, for tensors that the short form of the
text (docs/format.md, section 7) can tell exactly; `with_storage` puts them back.
"""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from onnxjson.document import Tensor
from onnxjson.elements import BITS, ElementError, byte_length, element_count, join_bits, split_bits
from onnxjson.errors import DecodeError
from onnxjson.names import BOOL, DATA_LOCATIONS, DATA_TYPE_NAMES, STRING
from onnxjson.packed import fixed_from_varints, read_varints, varints, varints_from_fixed
from onnxjson.payloads import Data, whole

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

__all__ = [
    "STORAGE",
    "from_numpy",
    "is_external",
    "location_of",
    "needed_bytes",
    "numpy_dtype",
    "raw_bytes",
    "read_varints",
    "to_numpy",
    "unpack",
    "varints",
    "with_storage",
]

_EXTERNAL: Final = DATA_LOCATIONS["EXTERNAL"]
_IEEE: Final = "IEEE"
_SIX_BITS: Final = "six bits"

_STORED: Final[dict[int, tuple[str, str]]] = (
    dict.fromkeys((1, 14), ("float_data", _IEEE))
    | dict.fromkeys((11, 15), ("double_data", _IEEE))
    | dict.fromkeys((2, 9, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26), ("int32_data", "B"))
    | dict.fromkeys((4, 10, 16), ("int32_data", "H"))
    | dict.fromkeys((27, 28), ("int32_data", _SIX_BITS))
    | {3: ("int32_data", "b"), 5: ("int32_data", "h"), 6: ("int32_data", "i")}
    | {7: ("int64_data", "q"), 12: ("uint64_data", "I"), 13: ("uint64_data", "Q")}
)
"""By data type: the typed field, and how its entries stand in raw_data: as they are, as an integer of a `struct` code
(of 4- and 2-bit types an entry is a byte with several elements), or as six bits."""

STORAGE: Final[dict[int, str]] = {data_type: field for data_type, (field, _) in _STORED.items()}
"""The typed field that may hold the elements, by data type (onnx.proto, TensorProto)."""

_TYPED_FIELDS: Final = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def is_external(tensor: Tensor) -> bool:
    """Whether the elements of a tensor stand in another file."""
    return tensor.data_location == _EXTERNAL


def location_of(tensor: Tensor) -> str | None:
    """The file that a tensor names for its elements, "" where it names none; None where they stand in it."""
    if not is_external(tensor):
        return None
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), None) or ""


def needed_bytes(tensor: Tensor) -> int | None:
    """Bytes that dtype and dims call for; None where they do not say."""
    if tensor.data_type is None or tensor.segment is not None or any(dim < 0 for dim in tensor.dims):
        return None
    return byte_length(tensor.data_type, element_count(tensor.dims))


def raw_bytes(tensor: Tensor) -> tuple[Data, str | None] | None:
    """The elements as ``raw_data`` would hold them, and where they stand.

    A length that fits is all that is asked of ``raw_data``, which is not read; padding bits and bools other than 0 and
    1 show when `onnxjson.elements.tokens` is asked for values.

    Returns:
        the bytes, lazy where the tensor's are (typed integers are read), and the name of the typed field that holds
        them or None for ``raw_data``; no elements in no field count as the typed field of the dtype. None where the
        short form of the text does not tell this tensor exactly: no dtype or dims that it can write, a segment, a data
        location, several payloads or the wrong one, a length that does not fit, integers that are not canonical,
        strings.
    """
    data_type = tensor.data_type
    if data_type is None or data_type not in STORAGE or any(dim < 0 for dim in tensor.dims):
        return None
    if tensor.segment is not None or tensor.data_location is not None or tensor.external_data or tensor.string_data:
        return None
    count = element_count(tensor.dims)
    length = byte_length(data_type, count)
    field, code = _STORED[data_type]
    filled = [name for name in _TYPED_FIELDS if len(getattr(tensor, name))]
    if tensor.raw_data is not None:
        return (tensor.raw_data, None) if not filled and len(tensor.raw_data) == length else None
    if not filled:
        return (b"", field) if count == 0 else None
    if filled != [field]:
        return None
    data: Data | None = getattr(tensor, field)
    if code != _IEEE and data is not None:
        data = _from_entries(whole(data), code, count)
    return (data, field) if data is not None and len(data) == length else None


def _from_entries(data: bytes, code: str, count: int) -> bytes | None:
    if code != _SIX_BITS:
        return fixed_from_varints(data, code)
    # Entries below 64 are one byte each.
    return join_bits(data, 6) if len(data) == count and max(data) < 64 else None


def with_storage(raw: Data, data_type: int, storage: str | None, count: int) -> dict[str, Any]:
    """The keyword for `Tensor` that puts elements into a field; the inverse of `raw_bytes`.

    Args:
        raw: the elements as ``raw_data`` holds them; their length must fit (`onnxjson.elements.byte_length`).
        data_type: a number that `STORAGE` has.
        storage: the name of the typed field, or None for ``raw_data``.
        count: how many elements there are.

    Raises:
        ElementError: bits that pad the last byte are not zero, where the field has no room for them.
        ValueError: `storage` is not the typed field of the dtype.
    """
    if storage is None:
        return {"raw_data": raw}
    field, code = _STORED[data_type]
    if storage != field:
        raise ValueError(f"elements of {DATA_TYPE_NAMES[data_type]} stand in {field}, not in {storage}")
    if code == _IEEE:
        return {field: raw}
    if code != _SIX_BITS:
        return {field: varints_from_fixed(whole(raw), code)}
    entries = split_bits(whole(raw), count, 6)
    if entries is None:
        raise ElementError("padding bits that are not zero", "zeros after the last element", count)
    return {field: bytes(entries)}


def to_numpy(tensor: Tensor) -> "NDArray[Any]":
    """The elements as an array of shape ``tensor.dims``, read-only where no copy is needed.

    Its dtype is numpy's of the same name or ml_dtypes' (bfloat16, float8, 6-, 4- and 2-bit types, one byte an element);
    strings are an object array of ``str``, or of ``bytes`` where these are not UTF-8.

    Raises:
        DecodeError: the elements stand in another file, or do not fit dtype and dims.
        ChangedUnderneathError, FileError: lazy bytes cannot be read.
    """
    import numpy

    if is_external(tensor):
        raise DecodeError(f"{_called(tensor)} stands in another file; onnxjson.external finds it and reads its bytes")
    if tensor.data_type == STRING:
        return _strings(tensor)
    stored = raw_bytes(msgspec.structs.replace(tensor, data_location=None))
    if stored is None or tensor.data_type is None:
        raise DecodeError(f"{_called(tensor)} does not hold the elements that its data_type and dims call for")
    data, dtype, size = whole(stored[0]), numpy_dtype(tensor.data_type), BITS[tensor.data_type]
    if tensor.data_type == BOOL:
        elements: NDArray[Any] = numpy.frombuffer(data, numpy.uint8) != 0
    elif size >= 8:
        elements = numpy.frombuffer(data, dtype)
    else:
        elements = unpack(data, element_count(tensor.dims), size, dtype)
    return elements.reshape(tensor.dims)


def _called(tensor: Tensor) -> str:
    return f"tensor {tensor.name!a}" if tensor.name else "the tensor"


def _strings(tensor: Tensor) -> "NDArray[Any]":
    import numpy

    if any(dim < 0 for dim in tensor.dims) or len(tensor.string_data) != element_count(tensor.dims):
        raise DecodeError(f"{_called(tensor)} does not hold the elements that its data_type and dims call for")
    elements = numpy.empty(len(tensor.string_data), dtype=object)
    for index, data in enumerate(tensor.string_data):
        try:
            elements[index] = data.decode()
        except UnicodeDecodeError:
            elements[index] = data
    strings: NDArray[Any] = elements.reshape(tensor.dims)
    return strings


def numpy_dtype(data_type: int) -> "numpy.dtype[Any]":
    """The little-endian dtype of a data type, numpy's or ml_dtypes' (not for strings)."""
    import ml_dtypes
    import numpy

    name = DATA_TYPE_NAMES[data_type]
    return numpy.dtype(getattr(ml_dtypes, name, None) or name).newbyteorder("<")


def unpack(data: bytes, count: int, size: int, dtype: "numpy.dtype[Any]") -> "NDArray[Any]":
    """Elements of 2, 4 or 6 bits, one byte each."""
    import numpy

    step, each = (3, 4) if size == 6 else (1, 8 // size)
    padded = numpy.frombuffer(data + bytes(-len(data) % step), numpy.uint8).reshape(-1, step).astype(numpy.uint32)
    groups = sum(padded[:, index] << (8 * index) for index in range(step))
    columns = [groups >> (size * index) & ((1 << size) - 1) for index in range(each)]
    patterns = numpy.stack(columns, axis=1).reshape(-1)[:count].astype(numpy.uint8)
    return patterns.view(dtype)


def from_numpy(array: "NDArray[Any]", name: str | None = None) -> Tensor:
    """A tensor with the shape, dtype and elements of an array, in ``raw_data`` (strings: in ``string_data``).

    Args:
        array: of a dtype of numpy or ml_dtypes that ONNX has, or of ``str`` or ``bytes``.
        name: the tensor's name.

    Raises:
        TypeError: ONNX has no such data type.
    """
    import numpy

    array = numpy.asarray(array)
    dims = tuple(int(dim) for dim in array.shape)
    if array.dtype.kind in "OUST":
        texts = tuple(_string(element) for element in array.reshape(-1).tolist())
        return Tensor(dims=dims, data_type=STRING, string_data=texts, name=name)
    data_type = _NUMPY_NAMES.get(array.dtype.name)
    if data_type is None:
        raise TypeError(f"ONNX has no data type for arrays of {array.dtype}; convert it with astype first")
    size = BITS[data_type]
    if size >= 8:
        data = numpy.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    else:
        data = _join(array, size)
    return Tensor(dims=dims, data_type=data_type, name=name, raw_data=data)


_NUMPY_NAMES: Final = {DATA_TYPE_NAMES[data_type]: data_type for data_type in STORAGE}


def _string(element: object) -> bytes:
    if isinstance(element, str):
        return element.encode(errors="surrogateescape")
    if isinstance(element, bytes):
        return element
    raise TypeError(f"elements of a tensor of strings are str or bytes, not {type(element).__name__}")


def _join(array: "NDArray[Any]", size: int) -> bytes:
    """The inverse of `unpack`."""
    import numpy

    step, each = (3, 4) if size == 6 else (1, 8 // size)
    patterns = numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8) & ((1 << size) - 1)
    padded = numpy.concatenate([patterns, numpy.zeros(-len(patterns) % each, numpy.uint8)])
    columns = padded.reshape(-1, each).astype(numpy.uint32)
    groups = sum(columns[:, index] << (size * index) for index in range(each))
    joined = numpy.stack([groups >> (8 * index) & 0xFF for index in range(step)], axis=1).astype(numpy.uint8).tobytes()
    return joined[: (len(patterns) * size + 7) // 8]
