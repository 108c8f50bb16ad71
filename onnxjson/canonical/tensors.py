"""Tensors as canonical text (docs/format.md, section 7)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from onnxjson import document as d
from onnxjson import elements, tensors, types
from onnxjson.canonical.strings import INDENTS, bytes_value
from onnxjson.elements import element_count
from onnxjson.names import STRING
from onnxjson.payloads import Data, Digest, whole

MOST_VALUES = 64
"""Tensors of more elements are written as base64."""

DEEPEST_VALUES = 8
"""Values of a tensor of higher rank are a flat list."""

FLOAT = 1


@lru_cache(maxsize=4096)
def type_text(data_type: int, dims: tuple[int, ...]) -> bytes | None:
    """``"float32[2,3]"`` in quotes, or None where the grammar cannot say it."""
    text = types.format_tensor_type(data_type, dims)
    return None if text is None else b'"' + text.encode() + b'"'


def is_plain_external_tensor(tensor: d.Tensor) -> bool:
    """Whether a tensor is nothing but a reference to another file, so that its short form holds it."""
    return (
        tensors.is_external(tensor)
        and bool(tensor.external_data)
        and tensor.raw_data is None
        and tensor.segment is None
        and not any(
            (
                tensor.float_data,
                tensor.int32_data,
                tensor.string_data,
                tensor.int64_data,
                tensor.double_data,
                tensor.uint64_data,
            )
        )
    )


@lru_cache(maxsize=4096)
def values_template(dims: tuple[int, ...], indent: int) -> bytes:
    """The layout of `values` for one shape, ``%b`` for each element; if they take lines, their key is at `indent`."""
    count = element_count(dims)
    if not dims:
        return b"%b"
    if count == 0:
        return b"[]"
    if len(dims) > DEEPEST_VALUES or len(dims) == 1:
        return b"[" + b", ".join([b"%b"] * count) + b"]"
    return b"[" + INDENTS[indent + 2] + _rows(dims, indent + 2) + INDENTS[indent] + b"]"


def _rows(dims: tuple[int, ...], indent: int) -> bytes:
    """The rows of a nested list without its own brackets; they start at `indent`."""
    if len(dims) == 2:
        row = b"[" + b", ".join([b"%b"] * dims[1]) + b"]"
        return (b"," + INDENTS[indent]).join([row] * dims[0])
    block = b"[" + _rows(dims[1:], indent + 1) + b"]"
    return (b"," + INDENTS[indent]).join([block] * dims[0])


@lru_cache(maxsize=4096)
def takes_lines(dims: tuple[int, ...]) -> bool:
    """Whether values of this shape take several lines."""
    return 2 <= len(dims) <= DEEPEST_VALUES and element_count(dims) > 0


def float_tokens(batch: Sequence[d.Tensor]) -> dict[int, list[bytes]]:
    """The values of all small raw float32 tensors of a batch, by identity: many at once is ten times faster."""
    chosen = []
    for tensor in batch:
        raw = tensor.raw_data
        if (
            tensor.data_type == FLOAT
            and type(raw) is bytes
            and raw
            and len(raw) <= 4 * MOST_VALUES
            and not len(raw) % 4
        ):
            chosen.append(tensor)
    tokens = elements.float32_tokens(b"".join([tensor.raw_data for tensor in chosen]))  # type: ignore[misc]
    found = {}
    position = 0
    for tensor in chosen:
        stop = position + len(tensor.raw_data) // 4  # type: ignore[arg-type]
        found[id(tensor)] = tokens[position:stop]
        position = stop
    return found


class Body(NamedTuple):
    """How the elements of a tensor stand in its short form."""

    key: bytes
    """The key with all of its value, or, where `payload` is set, the key of its base64."""
    storage: str | None = None
    payload: Data | None = None
    takes_lines: bool = False


def body(tensor: d.Tensor, indent: int, tokens: list[bytes] | None = None) -> Body | None:
    """The elements of a tensor whose dtype and dims have a text, or None where only the full form holds them.

    `indent` is where a key would stand on a line of its own; `tokens` are the values where the caller has them already.
    """
    if is_plain_external_tensor(tensor):
        return Body(b'"external_data": ')
    if tensor.data_type == STRING:
        return _string_body(tensor, indent) if is_plain_string_tensor(tensor) else None
    found = tensors.raw_bytes(tensor)
    if found is None or tensor.external_data:
        return None
    raw, storage = found
    assert tensor.data_type is not None
    count = element_count(tensor.dims)
    if count > MOST_VALUES or isinstance(raw, Digest):
        return Body(b'"base64": ', storage, raw)
    if tokens is None:
        texts = elements.tokens(tensor.data_type, whole(raw), count)
        if texts is None:
            return None
        tokens = [text.encode() for text in texts]
    values = values_template(tensor.dims, indent) % tuple(tokens)
    return Body(b'"values": ' + values, storage, takes_lines=takes_lines(tensor.dims))


def _string_body(tensor: d.Tensor, indent: int) -> Body:
    items = [bytes_value(item) for item in tensor.string_data]
    if len(tensor.dims) == 1 and len(items) > MOST_VALUES:
        line = INDENTS[indent + 2]
        return Body(b'"values": [' + line + (b"," + line).join(items) + INDENTS[indent] + b"]", takes_lines=True)
    values = values_template(tensor.dims, indent) % tuple(items)
    return Body(b'"values": ' + values, takes_lines=takes_lines(tensor.dims))


def is_plain_string_tensor(tensor: d.Tensor) -> bool:
    """Whether a tensor is of dtype string and its short form holds all of it."""
    return (
        tensor.data_type == STRING
        and all([dim >= 0 for dim in tensor.dims])
        and len(tensor.string_data) == element_count(tensor.dims)
        and tensor.raw_data is None
        and tensor.segment is None
        and tensor.data_location is None
        and not tensor.external_data
        and not any((tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data))
    )
