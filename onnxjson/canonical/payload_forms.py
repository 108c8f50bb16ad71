"""How the elements of big tensors stand in a text: as base64, as the name of a blob, as their sha256 alone."""

import hashlib
from typing import Final, Literal, NamedTuple

from onnxjson import document as d
from onnxjson.canonical import tensors as tensor_text
from onnxjson.elements import element_count
from onnxjson.names import STRING
from onnxjson.payloads import Data, Digest
from onnxjson.walking import walk

WeightsMode = Literal["inline", "blobs", "digest", "keep"]
"""All as base64; all as blobs; all as digests; blobs and digests that were read as they are, the rest as base64."""

_NEVER_ELSEWHERE: Final = ("int32_data", "int64_data", "uint64_data")
"""Typed fields whose bytes are no slice of anything: their tensors are always base64."""


def sha256_of(data: Data) -> str:
    """Hexadecimal SHA-256 of a payload."""
    return hashlib.sha256(data).hexdigest() if isinstance(data, bytes) else data.sha256


def blobs_folder(data: Data) -> str | None:
    """The folder of blobs that a payload was read from, as its text names it; None for any other."""
    return getattr(data, "folder", None)


class Weights(NamedTuple):
    """The form of the big tensors of one text, and what its first lines say of it."""

    mode: WeightsMode = "inline"
    has_digests: bool = False
    """Whether any tensor stands as its digest, so that the text is not whole."""
    blobs: str | None = None
    """The folder of blobs, relative to that of the text."""

    def kind(self, data: Data, storage: str | None) -> Literal["base64", "blob", "sha256"]:
        """The key under which a payload stands."""
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
        """The form of `model` in a mode; `blobs` is the folder that mode "blobs" names."""
        if mode == "inline":
            return INLINE
        probe = cls(mode)
        found = [(probe.kind(data, storage), blobs_folder(data)) for data, storage in payloads(model)]
        folders = [blobs or folder for kind, folder in found if kind == "blob"]
        return cls(mode, any(kind == "sha256" for kind, _ in found), folders[0] if folders else None)


INLINE: Final = Weights()


def payloads(model: d.Model) -> "list[tuple[Data, str | None]]":
    """The elements of all tensors that are written as payloads, each with its storage, in the order of the records."""
    found = []
    for tensor in walk(model, d.Tensor):
        if tensor.data_type is None or tensor_text.type_text(tensor.data_type, tensor.dims) is None:
            continue
        if tensor.data_type == STRING or tensor.external_data:
            continue
        if element_count(tensor.dims) > tensor_text.MOST_VALUES or isinstance(tensor.raw_data, Digest):
            body = tensor_text.body(tensor, 0)
            if body is not None and body.payload is not None:
                found.append((body.payload, body.storage))
    return found
