"""Comparison of the external data of two models by SHA-256, since their texts only name the files.

Tensors that are external in one model and internal in the other are compared, too. Every range of a file is hashed
once, in pieces, and not at all if both models refer to the same range.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.diffing.constant_elements import TensorSource
from onnxjson.model.addresses import walk as walk_with_addresses
from onnxjson.model.display import visible
from onnxjson.model.document import Model, Tensor
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.tensors import is_external
from onnxjson.model.walking import tensors_of

_Key = tuple[bool, str]
"""Key of a tensor in both models: its name if it is unique (True), else its address."""

_Range = tuple[str, int, int]
"""Real path of a file, offset and length in bytes."""


class Place(NamedTuple):
    """A model with its file; locations of external data are relative to its folder."""

    model: Model
    path: Path
    name: str = ""


class Comparison(NamedTuple):
    """Lines about the external data of two models, UTF-8, and problems."""

    old: bytes
    new: bytes
    problems: tuple[str, ...]
    """A message for each file that is missing or rejected; visible text."""


def compare(old: Place, new: Place, *, trust_links: bool = False) -> Comparison:
    """Return a line ``NAME: sha256 ...`` for every tensor that is external in one of two models."""
    if not any(is_external(tensor) for place in (old, new) for tensor in tensors_of(place.model)):
        return Comparison(b"", b"", ())
    sides = [
        (TensorSource(place.path, place.name or str(place.path), trust_links=trust_links), _tensors(place.model))
        for place in (old, new)
    ]
    hashes: dict[_Range, str] = {}
    lines: tuple[list[str], list[str]] = ([], [])
    for key in dict.fromkeys(key for _, tensors in sides for key in tensors):
        pair = [(source, tensors.get(key)) for source, tensors in sides]
        for digest, of_side in zip(_digests(pair, hashes), lines, strict=True):
            if digest is not None:
                of_side.append(f"{'' if key[0] else '@'}{visible(key[1], None)}: sha256 {digest}\n")
    texts = ["".join(of_side).encode("utf-8") for of_side in lines]
    return Comparison(texts[0], texts[1], tuple([problem for source, _ in sides for problem in source.problems()]))


def _digests(pair: Sequence[tuple[TensorSource, Tensor | None]], hashes: dict[_Range, str]) -> Sequence[str | None]:
    """Return the SHA-256 of the bytes of a tensor on each side; none of them if they need not or cannot be compared."""
    if not any(tensor is not None and is_external(tensor) for _, tensor in pair):
        return None, None
    found = [None if tensor is None else source.data(tensor) for source, tensor in pair]
    ranges = [source.range(data) for (source, _), data in zip(pair, found, strict=True)]
    is_complete = not any(
        data is None and tensor is not None and is_external(tensor)
        for (_, tensor), data in zip(pair, found, strict=True)
    )
    if not is_complete or (ranges[0] is not None and ranges[0] == ranges[1]):
        return None, None
    digests: list[str | None] = []
    for (source, tensor), data, place in zip(pair, found, ranges, strict=True):
        try:
            digest = hashes.get(place) if place is not None else None
            digests.append(None if data is None else digest or sha256_of(data))
        except OnnxJsonError as error:
            assert tensor is not None
            source.fail(tensor, error)
            is_complete = False
            continue
        if place is not None:
            hashes[place] = digests[-1] or ""
    return digests if is_complete else (None, None)


def _tensors(model: Model) -> dict[_Key, Tensor]:
    found = [(address, record) for address, record in walk_with_addresses(model) if isinstance(record, Tensor)]
    times = Counter(tensor.name for _, tensor in found)
    return {
        (True, tensor.name) if tensor.name and times[tensor.name] == 1 else (False, address): tensor
        for address, tensor in found
    }
