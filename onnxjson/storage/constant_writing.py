"""Constants to JSON, base64, protobuf's JSON, .npy and .npz, piece by piece: no tensor is in memory as a whole.

`write_values` lays values out as docs/format.md (section 7) does, one innermost row a line; the objects are one line
each. All text is ASCII.

A dtype that numpy lacks (bfloat16, float8, 6-, 4- and 2-bit types) is written as `numpy.save` writes such an array: raw
bytes, one or two an element (``V1``, ``V2``). ``numpy.load("x.npy").view(ml_dtypes.bfloat16)`` returns the values.
"""

import io
import json
import math
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onnxjson.codecs.canonical_values import is_text
from onnxjson.codecs.tensor_text import DEEPEST_VALUES, MOST_VALUES
from onnxjson.model import elements
from onnxjson.model.display import visible
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import BITS, STRING
from onnxjson.model.errors import DecodeError, EncodeError
from onnxjson.model.payloads import Data, even_pieces, pieces
from onnxjson.model.tensors import numpy_dtype, unpack
from onnxjson.storage.constant_reading import Kind
from onnxjson.storage.saving import Sink

Write = Callable[[bytes], object]
"""Writes the next bytes of a text."""


def write_values(tensor: Tensor, write: Write) -> None:
    """Write the elements of a tensor in ``raw_data`` or ``string_data`` as canonical JSON values, and a line break."""
    tokens = _tokens(tensor)
    dims = tensor.dims
    if not dims:
        write(next(tokens).encode() + b"\n")
    elif math.prod(dims) == 0:
        write(b"[]\n")
    elif len(dims) == 1 or len(dims) > DEEPEST_VALUES:
        _write_row(tokens, math.prod(dims), write)
        write(b"\n")
    else:
        _write_rows(dims, tokens, write)


def _write_row(tokens: Iterator[str], length: int, write: Write) -> None:
    write(b"[")
    for start in range(0, length, 4096):
        row = [next(tokens) for _ in range(min(4096, length - start))]
        write((", " if start else "").encode() + ", ".join(row).encode())
    write(b"]")


def _write_rows(dims: tuple[int, ...], tokens: Iterator[str], write: Write) -> None:
    write(b"[\n")
    rows = math.prod(dims[:-1])
    # Number of rows in a block of each level between the outermost list and the rows.
    blocks = [math.prod(dims[level:-1]) for level in range(1, len(dims) - 1)]
    for row in range(rows):
        opened = sum(row % block == 0 for block in blocks)
        closed = sum((row + 1) % block == 0 for block in blocks)
        write(b" " * (2 + len(blocks) - opened) + b"[" * opened)
        _write_row(tokens, dims[-1], write)
        write(b"]" * closed + (b",\n" if row + 1 < rows else b"\n"))
    write(b"]\n")


def _tokens(tensor: Tensor) -> Iterator[str]:
    if tensor.data_type == STRING:
        yield from map(_string_token, tensor.string_data)
        return
    data_type = tensor.data_type or 0
    count = math.prod(tensor.dims)
    size = BITS[data_type]
    for piece in even_pieces(tensor.raw_data if tensor.raw_data is not None else b""):
        here = min(count, len(piece) * 8 // size)
        tokens = elements.tokens(data_type, piece, here)
        if tokens is None:
            raise DecodeError(
                f"the elements are not valid as {Kind(data_type, tensor.dims)}: a bool is neither 0 nor 1, or padding "
                "bits of the last byte are not zero"
            )
        count -= here
        yield from tokens


def _string_token(data: bytes) -> str:
    try:
        return json.dumps(data.decode())
    except UnicodeDecodeError:
        return json.dumps({"base64": _base64(data).decode()})


def _base64(data: bytes) -> bytes:
    import pybase64

    encoded: bytes = pybase64.b64encode(data)
    return encoded


def write_base64(tensor: Tensor, write: Write) -> None:
    """Write the base64 of the elements, without a line break; raise DecodeError for several strings."""
    if tensor.data_type == STRING:
        if len(tensor.string_data) != 1:
            raise DecodeError("only one string can be written as base64; --json writes several as values")
        write(_base64(tensor.string_data[0]))
    for piece in even_pieces(tensor.raw_data if tensor.raw_data is not None else b""):
        write(_base64(piece))


def write_object(tensor: Tensor, write: Write) -> None:
    """Write the tensor in its short form of onnxjson/1 (docs/format.md, section 7), on one line."""
    write(b"{")
    if tensor.name is not None:
        write(b'"name": ' + _name_token(tensor.name) + b", ")
    write(f'"type": "{Kind(tensor.data_type or 0, tensor.dims)}", '.encode())
    if tensor.data_type != STRING and math.prod(tensor.dims) > MOST_VALUES:
        write(b'"base64": "')
        write_base64(tensor, write)
        write(b'"}\n')
        return
    write(b'"values": ' + _nested(tensor.dims, list(_tokens(tensor))).encode() + b"}\n")


def _name_token(name: str) -> bytes:
    return _string_token(name.encode("utf-8", "surrogateescape")).encode()


def _nested(dims: tuple[int, ...], tokens: list[str]) -> str:
    if not dims:
        return tokens[0]
    if not tokens:
        return "[]"
    if len(dims) <= DEEPEST_VALUES:
        for dim in reversed(dims[1:]):
            tokens = [f"[{', '.join(tokens[start : start + dim])}]" for start in range(0, len(tokens), dim)]
    return f"[{', '.join(tokens)}]"


def write_proto_json(tensor: Tensor, write: Write) -> None:
    """Write the TensorProto in protobuf's JSON on one line: ``dims``, ``dataType``, ``name``, ``rawData``."""
    message: dict[str, object] = {"dims": [str(dim) for dim in tensor.dims]} if tensor.dims else {}
    message["dataType"] = tensor.data_type
    if tensor.data_type == STRING and tensor.string_data:
        message["stringData"] = [_base64(item).decode() for item in tensor.string_data]
    if tensor.name is not None:
        if not is_text(tensor.name):
            raise DecodeError("the name of the tensor is not UTF-8, which protobuf's JSON cannot represent")
        message["name"] = tensor.name
    start = json.dumps(message)
    if tensor.data_type == STRING:
        write(start.encode() + b"\n")
        return
    write(start[:-1].encode() + b', "rawData": "')
    write_base64(tensor, write)
    write(b'"}\n')


def write_npy(tensor: Tensor, sink: Sink) -> None:
    """Write a .npy file of a tensor whose elements are in ``raw_data`` or ``string_data``."""
    for piece in _npy(tensor):
        sink.write(piece)


def write_npz(tensors: Sequence[Tensor], sink: Sink) -> None:
    """Write a .npz file as `numpy.savez`: an array for each tensor, named after it; EncodeError if numpy cannot."""
    names = [tensor.name or "" for tensor in tensors]
    for name in names:
        if names.count(name) > 1:
            raise EncodeError(f"two tensors have the name {visible(name)!r}, and a .npz can have only one")
        if "\0" in name or "\\" in name or ".." in name.split("/") or not is_text(name):
            raise EncodeError(f"{visible(name)!r} cannot be the name of an array in a .npz; write it to a .npy")
    with zipfile.ZipFile(_Stream(sink), "w", zipfile.ZIP_STORED) as archive:
        for name, tensor in zip(names, tensors, strict=True):
            # A fixed time, so that equal tensors become equal files.
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as member:
                for piece in _npy(tensor):
                    member.write(piece)


class _Stream(io.RawIOBase):
    """A sink as a stream for `zipfile`, written from start to end."""

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
    # numpy saves one dtype of ml_dtypes, float8_e5m2, as "<f1", which it cannot load again.
    yield _header(tensor.dims, dtype.str if dtype.type.__module__ == "numpy" else f"<V{dtype.itemsize}")
    data = tensor.raw_data if tensor.raw_data is not None else b""
    size = BITS[data_type]
    yield from pieces(data) if size >= 8 else _unpacked(data, math.prod(tensor.dims), size, data_type)


def _unpacked(data: Data, count: int, size: int, data_type: int) -> Iterator[bytes]:
    for piece in even_pieces(data):
        here = min(count, len(piece) * 8 // size)
        yield unpack(piece, here, size, numpy_dtype(data_type)).tobytes()
        count -= here


def _npy_of_strings(tensor: Tensor) -> Iterator[bytes]:
    import numpy

    try:
        texts = [item.decode() for item in tensor.string_data]
    except UnicodeDecodeError:
        raise EncodeError("a string is not UTF-8, which a .npy cannot represent; write a .json") from None
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
