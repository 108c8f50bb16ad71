"""Constants to .npy and .npz files, piece by piece.

A dtype that numpy lacks (bfloat16, float8, 6-, 4- and 2-bit types) is written as `numpy.save` writes such an array: raw
bytes, one or two an element (``V1``, ``V2``). ``numpy.load("x.npy").view(ml_dtypes.bfloat16)`` has the values again.
"""

import io
import math
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from onnxjson import elements
from onnxjson.canonical.strings import is_text
from onnxjson.display import visible
from onnxjson.document import Tensor
from onnxjson.errors import EncodeError
from onnxjson.names import STRING
from onnxjson.payloads import Data, even_pieces, pieces
from onnxjson.sinks import Sink
from onnxjson.tensors import numpy_dtype, unpack


def write_npy(tensor: Tensor, sink: Sink) -> None:
    """A .npy file of a tensor whose elements are in ``raw_data`` or ``string_data``.

    Raises:
        EncodeError: strings that numpy cannot hold.
    """
    for piece in _npy(tensor):
        sink.write(piece)


def write_npz(tensors: Sequence[Tensor], sink: Sink) -> None:
    """A .npz file, not compressed, as `numpy.savez` writes it: one array a tensor, under the tensor's name.

    Raises:
        EncodeError: strings that numpy cannot hold, a name twice, or one that no archive should have.
    """
    names = [tensor.name or "" for tensor in tensors]
    for name in names:
        if names.count(name) > 1:
            raise EncodeError(f"two tensors have the name {visible(name)!r}, and a .npz holds one of each name")
        if "\0" in name or "\\" in name or ".." in name.split("/") or not is_text(name):
            raise EncodeError(f"{visible(name)!r} cannot be the name of an array in a .npz; write it on its own")
    with zipfile.ZipFile(_Stream(sink), "w", zipfile.ZIP_STORED) as archive:
        for name, tensor in zip(names, tensors, strict=True):
            # A fixed time, so that the same tensors give the same file.
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as member:
                for piece in _npy(tensor):
                    member.write(piece)


class _Stream(io.RawIOBase):
    """A sink as `zipfile` wants it: written from start to end."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        content = bytes(data)
        self._sink.write(content)
        return len(content)


def _npy(tensor: Tensor) -> Iterator[bytes]:
    if tensor.data_type == STRING:
        yield from _npy_of_strings(tensor)
        return
    data_type = tensor.data_type or 0
    dtype = numpy_dtype(data_type)
    # numpy calls one dtype of ml_dtypes, float8_e5m2, "<f1" when it saves it, and cannot load that again.
    yield _header(tensor.dims, dtype.str if dtype.type.__module__ == "numpy" else f"<V{dtype.itemsize}")
    data = tensor.raw_data if tensor.raw_data is not None else b""
    size = elements.BITS[data_type]
    yield from pieces(data) if size >= 8 else _unpacked(data, math.prod(tensor.dims), size, data_type)


def _unpacked(data: Data, count: int, size: int, data_type: int) -> Iterator[bytes]:
    """Elements of 2, 4 or 6 bits, one byte each."""
    for piece in even_pieces(data):
        here = min(count, len(piece) * 8 // size)
        yield unpack(piece, here, size, numpy_dtype(data_type)).tobytes()
        count -= here


def _npy_of_strings(tensor: Tensor) -> Iterator[bytes]:
    import numpy

    try:
        texts = [item.decode() for item in tensor.string_data]
    except UnicodeDecodeError:
        raise EncodeError("a string is not UTF-8, which no .npy holds; write a .json") from None
    if any(text.endswith("\0") for text in texts):
        raise EncodeError("a string ends with a zero character, which numpy would drop; write a .json")
    width = max(map(len, texts), default=0) or 1
    array = numpy.array(texts, dtype=f"<U{width}")
    yield _header(tensor.dims, array.dtype.str)
    yield array.tobytes()


def _header(dims: tuple[int, ...], descr: str) -> bytes:
    from numpy.lib import format as npy_format

    header = io.BytesIO()
    npy_format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": dims})
    return header.getvalue()
