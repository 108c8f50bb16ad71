"""Constants as base64: canonical base64 of as many bytes as dtype and dims need."""

import math

from onnxjson import elements
from onnxjson.constants.values import Kind, place_in
from onnxjson.document import Tensor
from onnxjson.errors import DecodeError
from onnxjson.names import BOOL, DATA_TYPE_NAMES, STRING
from onnxjson.reading.strings import base64_mistake

_LINE_BREAKS = b"\r\n"
_SPACE = b" \t\r\n"


def base64_bytes(text: str | bytes, source: str = "") -> bytes:
    """The bytes of canonical base64 (RFC 4648 section 4); it may be broken into lines, as `base64` and mail do.

    Raises:
        DecodeError: it is not; the message says what is wrong with which character.
    """
    import pybase64

    joined = (text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text).strip(_SPACE)
    if b"\n" in joined:
        joined = joined.translate(None, _LINE_BREAKS)
    try:
        data: bytes = pybase64.b64decode(joined, validate=True)
        # What stands before the last digits gives three bytes for four digits; only these can have bits of no byte.
        last = len(data) - (len(data) % 3 or 3)
        if len(joined) == (len(data) + 2) // 3 * 4 and joined.endswith(pybase64.b64encode(data[max(last, 0) :])):
            return data
    except ValueError:
        pass
    message, index = base64_mistake(joined.decode("utf-8", "replace"))
    where = "" if index is None else f" (character {index + 1:,})"
    raise DecodeError(f"{source}{': ' if source else ''}{message}{where}")


def from_base64(text: str | bytes, kind: Kind, *, name: str | None = None) -> Tensor:
    """The constant whose elements a base64 text holds, laid out as ``raw_data``.

    Args:
        text: canonical base64; line breaks are skipped.
        kind: dtype and dims; without dims it is one list, of dtypes whose elements fill whole bytes.
        name: the name of the constant.

    Raises:
        DecodeError: no canonical base64, or bytes that are no elements of that dtype and those dims.
    """
    dtype = DATA_TYPE_NAMES[kind.data_type]
    if kind.data_type == STRING:
        raise DecodeError("strings have no base64 as a whole; a text writes them as values")
    data = base64_bytes(text)
    dims = kind.dims if kind.dims is not None else (_count(kind.data_type, len(data)),)
    needed = elements.byte_length(kind.data_type, math.prod(dims)) or 0
    if len(data) != needed:
        raise DecodeError(
            f"the base64 holds {_bytes(len(data))}, but {Kind(kind.data_type, dims)} needs {_bytes(needed)}"
        )
    count = math.prod(dims)
    _check_padding(data, count, elements.BITS[kind.data_type], dtype)
    if kind.data_type == BOOL and (other := data.translate(None, b"\0\1")):
        index = data.index(other[:1])
        raise DecodeError(f"{place_in(dims)(index)}: the byte is {other[0]}; a bool is 0 or 1")
    return Tensor(dims=dims, data_type=kind.data_type, raw_data=data, name=name)


def _count(data_type: int, length: int) -> int:
    size = elements.BITS[data_type]
    name = DATA_TYPE_NAMES[data_type]
    if size < 8:
        raise DecodeError(f"the last byte of {name} may be padded, so say how many there are, such as {name}[3]")
    if length * 8 % size:
        raise DecodeError(f"the base64 holds {_bytes(length)}, which is no whole number of {name} ({size // 8} each)")
    return length * 8 // size


def _check_padding(data: bytes, count: int, size: int, dtype: str) -> None:
    padding = len(data) * 8 - count * size
    if padding and (bits := data[-1] >> (8 - padding)):
        raise DecodeError(
            f"the highest {padding} bits of the last byte (0x{data[-1]:02x}) are 0b{bits:0{padding}b}; "
            f"they only pad {count:,} elements of {dtype} and must be zero"
        )


def _bytes(number: int) -> str:
    return f"{number:,} byte" + ("" if number == 1 else "s")
