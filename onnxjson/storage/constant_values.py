"""Values of constants: from JSON to the bytes of a dtype, exactly or as the nearest; from bytes to JSON and base64.

The dtype must represent an integer, or an element of an array, exactly. It represents a decimal if the element, rounded
to the number of digits of the decimal, equals it: 0.1 is a float32, 0.123456789 is not. Any other value is refused or,
if the caller allows it, replaced by the nearest finite value of the dtype.

Text is written piece by piece, in ASCII: no tensor is in memory as a whole. `write_values` lays values out as
docs/format.md (section 7) does, one innermost row a line; the objects are one line each.
"""

import json
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from onnxjson.codecs.canonical_values import is_text
from onnxjson.codecs.tensor_text import DEEPEST_VALUES, MOST_VALUES
from onnxjson.model import elements
from onnxjson.model.document import Tensor
from onnxjson.model.dtypes import (
    BITS,
    BOOL,
    COMPLEX_PARTS,
    DATA_TYPE_NAMES,
    FLOAT32,
    FLOAT64,
    FLOATS,
    STRING,
    FloatFormat,
)
from onnxjson.model.errors import DecodeError, EncodeError
from onnxjson.model.payloads import even_pieces
from onnxjson.model.scalars import ElementError, float_bits, found_text
from onnxjson.model.types import format_tensor_type

_WHOLE_IN_FULL: Final = 1e16
"""Whole numbers below this are shown with all digits."""

_DIGITS_OF_BINARY64: Final = 17

Write = Callable[[bytes], object]
"""Writes the next bytes of a text."""


class BeyondBinary64(str):
    """A decimal beyond float64, which would become infinity or zero; the string is its spelling."""

    __slots__ = ()


class Packed(NamedTuple):
    """The bytes of values, and the values that were changed."""

    data: bytes
    """Laid out as in ``raw_data``."""
    changed: int = 0
    """Number of values that differ from the given ones."""
    first: str = ""
    """The first of those: its place, the given value, the new one."""


class InexactError(EncodeError):
    """A dtype cannot represent a value; its message is for commands with --lossy, and `loss` says what cannot be."""

    def __init__(self, loss: str, nearest: str) -> None:
        super().__init__(f"{loss}; with --lossy it becomes {nearest}")
        self.loss = loss
        self.nearest = nearest


def pack(
    data_type: int, values: list[object], place: Callable[[int], str], *, lossy: bool = False, exact: bool = False
) -> Packed:
    """Encode a flat list of JSON values, or raise EncodeError; complex numbers are lists of two.

    `place` names the value at an index. With `lossy`, a value that the dtype cannot represent becomes the nearest
    finite one; with `exact`, decimals are not rounded either.
    """
    if data_type in COMPLEX_PARTS:
        parts = _parts(data_type, values, place)
        return pack(COMPLEX_PARTS[data_type], parts, lambda index: place(index // 2), lossy=lossy, exact=exact)
    try:
        data = elements.pack(data_type, values)
    except ElementError as error:
        nearest = _nearest(data_type, values[error.index])
        if nearest is None:
            raise EncodeError(f"{place(error.index)}: found {error.found}, expected {error.fits}") from None
        if not lossy:
            raise _loss(data_type, place(error.index), values[error.index], nearest) from None
        data = elements.pack(data_type, _all_nearest(data_type, values, place))
    return _compared(data_type, values, data, place, lossy=lossy, exact=exact)


def _parts(data_type: int, values: list[object], place: Callable[[int], str]) -> list[object]:
    parts: list[object] = []
    for index, value in enumerate(values):
        if not isinstance(value, list) or len(value) != 2:
            fits = f"a list of two numbers, real and imaginary part ({DATA_TYPE_NAMES[data_type]})"
            raise EncodeError(f"{place(index)}: found {found_text(value)}, expected {fits}")
        parts += value
    return parts


def _all_nearest(data_type: int, values: list[object], place: Callable[[int], str]) -> list[object]:
    fitting: list[object] = []
    for index, value in enumerate(values):
        try:
            elements.pack(data_type, [value])
            fitting.append(value)
        except ElementError as error:
            nearest = _nearest(data_type, value)
            if nearest is None:
                raise EncodeError(f"{place(index)}: found {error.found}, expected {error.fits}") from None
            fitting.append(nearest)
    return fitting


def _nearest(data_type: int, value: object) -> object | None:
    """The finite value of a dtype that is nearest to one it cannot represent; None if there is none."""
    number = _number(value)
    if number is None or data_type == BOOL or number != number:
        return None
    form = FLOATS.get(data_type)
    if form is None:
        low, high = elements.integer_range(data_type)
        return None if math.isinf(number) else max(low, min(high, round(number)))
    if number == 0 and form.signed:
        return 0.0
    if not form.signed and number < 1:
        return form.decode(0)
    return math.copysign(form.decode(form.largest), number)


def _number(value: object) -> int | float | None:
    """The number of a JSON value, an integer if it is spelled as one; None if it is not a number."""
    if type(value) is int or type(value) is float:
        return value
    if isinstance(value, BeyondBinary64):
        return float(value)
    if not isinstance(value, str):
        return None
    try:
        bits = float_bits(FLOAT64, value)
    except ElementError:
        return None
    return int(value) if value.removeprefix("-").isdigit() else _value(FLOAT64, bits)


def _compared(
    data_type: int, values: list[object], data: bytes, place: Callable[[int], str], *, lossy: bool, exact: bool
) -> Packed:
    if data_type == BOOL or (data_type not in FLOATS and not lossy):
        return Packed(data)  # Integers, encoded exactly.
    changed, first = 0, ""
    for index, (value, element) in enumerate(zip(values, _decoded(data_type, data, len(values)), strict=True)):
        if (value == element and element) or _is_held(data_type, value, element, exact=exact):
            continue
        if not lossy:
            raise _loss(data_type, place(index), value, element)
        changed += 1
        first = first or f"{place(index)} was {_spelled(value)} and is {_token(data_type, element)}"
    return Packed(data, changed, first)


def _is_held(data_type: int, value: object, element: float, *, exact: bool) -> bool:
    number = _number(value)
    if isinstance(value, BeyondBinary64):
        return False
    if number is None or number != number:
        return True  # A NaN, encoded with its bits.
    if number == element:
        return data_type not in FLOATS or type(number) is int or math.copysign(1, number) == math.copysign(1, element)
    if exact or data_type not in FLOATS or type(number) is int or element == 0:
        return False
    digits = len(repr(number).partition("e")[0].replace(".", "").strip("-0"))
    if digits >= _DIGITS_OF_BINARY64:
        return False
    # At a power of two the canonical decimal may differ from the nearest one of its length.
    return number in (float(f"{element:.{digits - 1}e}"), float(_token(data_type, element)))


def _decoded(data_type: int, data: bytes, count: int) -> Sequence[int | float]:
    form = FLOATS.get(data_type)
    if form is None:
        return [int(token.strip('"')) for token in elements.tokens(data_type, data, count) or ()]
    if form is FLOAT32 or form is FLOAT64:
        return struct.unpack(f"<{count}{'f' if form is FLOAT32 else 'd'}", data)
    if form.size == 16:
        patterns: Sequence[int] = struct.unpack(f"<{count}H", data)
    else:
        patterns = data if form.size == 8 else elements.split_bits(data, count, form.size) or ()
    return [_value(form, bits) for bits in patterns]


def _value(form: FloatFormat, bits: int) -> float:
    if form.is_nan(bits):
        return math.nan
    if bits & ~form.sign_bit == form.infinity:
        return -math.inf if bits & form.sign_bit else math.inf
    return form.decode(bits)


def _token(data_type: int, value: object) -> str:
    tokens = elements.tokens(data_type, elements.pack(data_type, [value]), 1)
    return "" if tokens is None else tokens[0]


def _exactly(data_type: int, value: object, token: str, becomes: object) -> str:
    """The exact value for a message, if the canonical token of a float hides the difference; else ""."""
    if data_type not in FLOATS or not isinstance(becomes, float):
        return ""
    shown = float(token.strip('"'))
    if shown == becomes:
        return ""
    if becomes.is_integer() and (abs(becomes) < _WHOLE_IN_FULL or shown == _number(value)):
        return f" (exactly {int(becomes)})"
    return f" (exactly {becomes!r})" if shown == _number(value) else ""


def _loss(data_type: int, where: str, value: object, becomes: object) -> InexactError:
    name, token = DATA_TYPE_NAMES[data_type], _token(data_type, becomes)
    exactly = _exactly(data_type, value, token, becomes)
    return InexactError(f"{where}: {name} cannot represent {_spelled(value)}", f"{token}{exactly}")


def _spelled(value: object) -> str:
    text = found_text(value)
    return text.replace('"', "") if isinstance(value, BeyondBinary64) else text


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
        piece_count = min(count, len(piece) * 8 // size)
        tokens = elements.tokens(data_type, piece, piece_count)
        if tokens is None:
            kind = format_tensor_type(data_type, tensor.dims)
            raise DecodeError(
                f"the elements are not valid as {kind}: a bool is neither 0 nor 1, or padding bits of the last byte "
                "are not zero"
            )
        count -= piece_count
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
        name = tensor.name.encode("utf-8", "surrogateescape")
        write(b'"name": ' + _string_token(name).encode() + b", ")
    write(f'"type": "{format_tensor_type(tensor.data_type or 0, tensor.dims)}", '.encode())
    if tensor.data_type != STRING and math.prod(tensor.dims) > MOST_VALUES:
        write(b'"base64": "')
        write_base64(tensor, write)
        write(b'"}\n')
        return
    write(b'"values": ' + _nested(tensor.dims, list(_tokens(tensor))).encode() + b"}\n")


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
