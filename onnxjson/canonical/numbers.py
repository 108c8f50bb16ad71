"""Numbers of attributes and full forms as canonical JSON (docs/format.md, section 3)."""

from collections.abc import Sequence

from onnxjson import elements, tensors
from onnxjson.messages import Kind
from onnxjson.payloads import Data, whole
from onnxjson.scalars import LARGEST_PLAIN


def integer(value: int) -> bytes:
    """A JSON integer, or a decimal string beyond 2^53."""
    return b"%d" % value if -LARGEST_PLAIN <= value <= LARGEST_PLAIN else b'"%d"' % value


def integers(values: Sequence[int]) -> bytes:
    """A list of integers on one line."""
    if not values or (max(values) <= LARGEST_PLAIN and min(values) >= -LARGEST_PLAIN):
        # Python prints a list of integers as the text has it.
        return str(list(values)).encode()
    return b"[" + b", ".join([integer(value) for value in values]) + b"]"


def float32(data: bytes) -> bytes:
    """One float32, given by its four bytes."""
    return elements.float32_text(data).encode()


def float32_list(data: bytes) -> bytes:
    """A list of float32 on one line."""
    return b"[" + b", ".join([float32(data[at : at + 4]) for at in range(0, len(data), 4)]) + b"]"


def typed_data(kind: Kind, data: Data) -> bytes:
    """The elements of a typed field of a tensor (packed numbers of `kind`) as a list on one line."""
    packed = whole(data)
    if kind is Kind.FLOAT:
        return b"[" + b", ".join(elements.float32_tokens(packed)) + b"]"
    if kind is Kind.DOUBLE:
        texts = [elements.float64_text(packed[at : at + 8]) for at in range(0, len(packed), 8)]
        return ("[" + ", ".join(texts) + "]").encode()
    return integers(tensors.read_varints(packed, signed=kind is not Kind.UINT64))
