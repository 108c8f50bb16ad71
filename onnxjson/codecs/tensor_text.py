"""Tensors as canonical text: their values, or the form of their bytes (docs/format.md, section 7)."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from onnxjson.codecs.canonical_values import INDENTS, bytes_value
from onnxjson.model import document as d
from onnxjson.model import elements, tensors, types
from onnxjson.model.dtypes import STRING, float32_tokens
from onnxjson.model.elements import element_count
from onnxjson.model.payloads import Data, Digest, hash_all, whole
from onnxjson.model.walking import tensors_of

MOST_VALUES = 64
"""Tensors of more elements are written as base64."""

DEEPEST_VALUES = 8
"""Values of a tensor of higher rank are a flat list."""

_FLOAT = 1

WeightsMode = Literal["inline", "blobs", "digest", "keep"]
"""All as base64; all as blobs; all as digests; blobs and digests as they were read, the rest as base64."""

_NEVER_ELSEWHERE: Final = ("int32_data", "int64_data", "uint64_data")
"""Typed fields of varints, whose bytes are not those of `raw_data`: their tensors are always base64."""


@lru_cache(maxsize=4096)
def type_text(data_type: int, dims: tuple[int, ...]) -> bytes | None:
    """``"float32[2,3]"`` in quotes, or None if the grammar of types cannot represent it."""
    text = types.format_tensor_type(data_type, dims)
    return None if text is None else b'"' + text.encode() + b'"'


def is_plain_external_tensor(tensor: d.Tensor) -> bool:
    """Whether a tensor is only a reference to another file, so that its short form is complete."""
    is_elsewhere = tensors.is_external(tensor) and bool(tensor.external_data)
    return is_elsewhere and tensor.raw_data is None and tensor.segment is None and not tensors.typed_fields(tensor)


@lru_cache(maxsize=4096)
def values_template(dims: tuple[int, ...], indent: int) -> bytes:
    """The layout of `values` for one shape with ``%b`` for each element; `indent` is that of the key."""
    count = element_count(dims)
    if not dims:
        return b"%b"
    if count == 0:
        return b"[]"
    if len(dims) > DEEPEST_VALUES or len(dims) == 1:
        return b"[" + b", ".join([b"%b"] * count) + b"]"
    return b"[" + INDENTS[indent + 2] + _rows(dims, indent + 2) + INDENTS[indent] + b"]"


def _rows(dims: tuple[int, ...], indent: int) -> bytes:
    """The rows of a nested list without the outermost brackets, starting at `indent`."""
    if len(dims) == 2:
        row = b"[" + b", ".join([b"%b"] * dims[1]) + b"]"
        return (b"," + INDENTS[indent]).join([row] * dims[0])
    block = b"[" + _rows(dims[1:], indent + 1) + b"]"
    return (b"," + INDENTS[indent]).join([block] * dims[0])


@lru_cache(maxsize=4096)
def spans_lines(dims: tuple[int, ...]) -> bool:
    """Whether values of this shape span several lines."""
    return 2 <= len(dims) <= DEEPEST_VALUES and element_count(dims) > 0


@lru_cache(maxsize=4096)
def head_of_values(data_type: int, dims: tuple[int, ...], indent: int) -> bytes:
    """What is between name and values of a plain tensor whose type the grammar can represent; keys are at `indent`."""
    kind = type_text(data_type, dims)
    assert kind is not None
    return b', "type": %b%b"values": ' % (kind, b"," + INDENTS[indent] if spans_lines(dims) else b", ")


def small_values(batch: Sequence[d.Tensor], indent: int) -> dict[int, bytes]:
    """Format the values of plain float32 tensors of a batch, by identity: ten times faster than one by one."""
    chosen = [each for each in batch if _is_small_float32(each)]
    tokens = float32_tokens(b"".join([tensor.raw_data for tensor in chosen]))  # type: ignore[misc]
    texts = {}
    position = 0
    for tensor in chosen:
        stop = position + len(tensor.raw_data) // 4  # type: ignore[arg-type]
        texts[id(tensor)] = values_template(tensor.dims, indent) % tuple(tokens[position:stop])
        position = stop
    return texts


def _is_small_float32(tensor: d.Tensor) -> bool:
    """Whether a tensor has only a name, a type that the grammar can represent, and raw bytes of few float32."""
    raw = tensor.raw_data
    if tensor.data_type != _FLOAT or type(raw) is not bytes or not 0 < len(raw) <= 4 * MOST_VALUES:
        return False
    if tensor.name is None or tensor.doc_string is not None or tensor.external_data or tensor.unknown_fields:
        return False
    return tensors.is_plain(tensor) and type_text(_FLOAT, tensor.dims) is not None


class Body(NamedTuple):
    """The elements of a tensor in its short form."""

    key: bytes
    """The key and its whole value; if `payload` is set, the key of its base64 alone."""
    storage: str | None = None
    payload: Data | None = None
    spans_lines: bool = False


def body(tensor: d.Tensor, indent: int) -> Body | None:
    """Encode the elements of a tensor as a key at `indent`; None if only the full form represents them."""
    if is_plain_external_tensor(tensor):
        return Body(b'"external_data": ')
    if tensor.data_type == STRING:
        return _string_body(tensor, indent) if is_plain_string_tensor(tensor) else None
    stored = tensors.raw_bytes(tensor)
    if stored is None or tensor.external_data:
        return None
    raw, storage = stored
    assert tensor.data_type is not None
    count = element_count(tensor.dims)
    if count > MOST_VALUES or isinstance(raw, Digest):
        return Body(b'"base64": ', storage, raw)
    texts = elements.tokens(tensor.data_type, whole(raw), count)
    if texts is None:
        return None
    values = values_template(tensor.dims, indent) % tuple([text.encode() for text in texts])
    return Body(b'"values": ' + values, storage, spans_lines=spans_lines(tensor.dims))


def _string_body(tensor: d.Tensor, indent: int) -> Body:
    items = [bytes_value(item) for item in tensor.string_data]
    if len(tensor.dims) == 1 and len(items) > MOST_VALUES:
        line = INDENTS[indent + 2]
        return Body(b'"values": [' + line + (b"," + line).join(items) + INDENTS[indent] + b"]", spans_lines=True)
    values = values_template(tensor.dims, indent) % tuple(items)
    return Body(b'"values": ' + values, spans_lines=spans_lines(tensor.dims))


def is_plain_string_tensor(tensor: d.Tensor) -> bool:
    """Whether a tensor has dtype string and its short form is complete."""
    if tensor.data_type != STRING or any([dim < 0 for dim in tensor.dims]) or tensor.external_data:
        return False
    others = (tensor.raw_data, tensor.segment, tensor.data_location) != (None, None, None)
    is_whole = len(tensor.string_data) == element_count(tensor.dims)
    return is_whole and not others and set(tensors.typed_fields(tensor)) <= {"string_data"}


def sha256_of(data: Data) -> str:
    """Hexadecimal SHA-256 of a payload."""
    return hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else data.sha256


def blobs_folder(data: Data) -> str | None:
    """The folder of blobs that a payload was read from, as its text names it; None if it is not a blob."""
    return getattr(data, "folder", None)


class Weights(NamedTuple):
    """The form of the big tensors of one text, as its first lines declare it."""

    mode: WeightsMode = "inline"
    has_digests: bool = False
    """Whether any tensor is stored as its digest, so that the text is incomplete."""
    blobs: str | None = None
    """The folder of blobs, relative to that of the text."""

    def kind(self, data: Data, storage: str | None) -> Literal["base64", "blob", "sha256"]:
        """The key of a payload in the text."""
        if self.mode == "inline" or storage in _NEVER_ELSEWHERE:
            return "base64"
        if self.mode == "blobs":
            return "blob"
        if self.mode == "digest":
            return "sha256"
        if blobs_folder(data) is not None:
            return "blob"
        return "sha256" if isinstance(data, Digest) else "base64"

    @classmethod
    def of(cls, model: d.Model, mode: WeightsMode, blobs: str | None = None) -> "Weights":
        """Choose the form of `model` in a mode; `blobs` is the folder that the mode "blobs" names."""
        if mode == "inline":
            return INLINE
        probe = cls(mode)
        forms = [(probe.kind(data, storage), data) for data, storage in payloads(model)]
        hash_all(data for kind, data in forms if kind != "base64")
        folders = [blobs or blobs_folder(data) for kind, data in forms if kind == "blob"]
        return cls(mode, any(kind == "sha256" for kind, _ in forms), folders[0] if folders else None)


INLINE: Final = Weights()


def payloads(model: d.Model) -> "list[tuple[Data, str | None]]":
    """All elements that are written as payloads, each with its typed field, in the order of the records."""
    all_payloads = []
    for tensor in tensors_of(model):
        if tensor.data_type is None or type_text(tensor.data_type, tensor.dims) is None:
            continue
        if tensor.data_type == STRING or tensor.external_data:
            continue
        if element_count(tensor.dims) > MOST_VALUES or isinstance(tensor.raw_data, Digest):
            form = body(tensor, 0)
            if form is not None and form.payload is not None:
                all_payloads.append((form.payload, form.storage))
    return all_payloads
