"""Constants as JSON text, written piece by piece: the values alone, or the object that stands for the tensor.

`write_values` lays values out as docs/format.md (section 7) does, one innermost row a line. The objects stand on one
line each. All of it is ASCII.
"""

import json
import math
from collections.abc import Callable, Iterator

from onnxjson import elements
from onnxjson.canonical.strings import is_text
from onnxjson.canonical.tensors import DEEPEST_VALUES, MOST_VALUES
from onnxjson.constants.values import Kind
from onnxjson.document import Tensor
from onnxjson.errors import DecodeError
from onnxjson.names import STRING
from onnxjson.payloads import even_pieces

Write = Callable[[bytes], object]
"""Takes the next bytes of a text."""


def write_values(tensor: Tensor, write: Write) -> None:
    """The elements as canonical JSON values, and a line break.

    Args:
        tensor: with its elements in ``raw_data`` or ``string_data``.
        write: takes the text.

    Raises:
        DecodeError: a bool that is neither 0 nor 1, or padding bits that are not zero.
    """
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
    # How many rows stand in a block of each level between the outermost list and the rows.
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
    size = elements.BITS[data_type]
    for piece in even_pieces(tensor.raw_data if tensor.raw_data is not None else b""):
        here = min(count, len(piece) * 8 // size)
        tokens = elements.tokens(data_type, piece, here)
        if tokens is None:
            raise DecodeError(
                f"the elements are no {Kind(data_type, tensor.dims)}: a bool that is neither 0 nor 1, or bits that pad "
                "the last byte and are not zero"
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
    """The base64 of the elements, without a line break.

    Raises:
        DecodeError: the elements are strings, which have none.
    """
    if tensor.data_type == STRING:
        raise DecodeError("strings have no base64 as a whole; --json gives the tensor with its values")
    for piece in even_pieces(tensor.raw_data if tensor.raw_data is not None else b""):
        write(_base64(piece))


def write_object(tensor: Tensor, write: Write) -> None:
    """The tensor in its short form as onnxjson/1 has it (docs/format.md, section 7), on one line."""
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
    """All values on one line."""
    if not dims:
        return tokens[0]
    if not tokens:
        return "[]"
    if len(dims) <= DEEPEST_VALUES:
        for dim in reversed(dims[1:]):
            tokens = [f"[{', '.join(tokens[start : start + dim])}]" for start in range(0, len(tokens), dim)]
    return f"[{', '.join(tokens)}]"


def write_proto_json(tensor: Tensor, write: Write) -> None:
    """The TensorProto as protobuf's JSON has it, on one line: ``dims``, ``dataType``, ``name``, ``rawData``.

    Raises:
        DecodeError: its name is not UTF-8, which protobuf's JSON cannot hold.
    """
    message: dict[str, object] = {"dims": [str(dim) for dim in tensor.dims]} if tensor.dims else {}
    message["dataType"] = tensor.data_type
    if tensor.data_type == STRING and tensor.string_data:
        message["stringData"] = [_base64(item).decode() for item in tensor.string_data]
    if tensor.name is not None:
        if not is_text(tensor.name):
            raise DecodeError("the name of the tensor is not UTF-8, which protobuf's JSON cannot hold")
        message["name"] = tensor.name
    start = json.dumps(message)
    if tensor.data_type == STRING:
        write(start.encode() + b"\n")
        return
    write(start[:-1].encode() + b', "rawData": "')
    write_base64(tensor, write)
    write(b'"}\n')
