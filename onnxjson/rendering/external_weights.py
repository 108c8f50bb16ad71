"""Comparison of the external data of two models by SHA-256, since their texts only name the files.

Tensors that are external in one model and internal in the other are compared, too. Every range of a file is hashed
once, in pieces, and not at all if both models refer to the same range.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.diffing.constant_elements import TensorSource
from onnxjson.model.addresses import walk as walk_with_addresses
from onnxjson.model.display import visible
from onnxjson.model.document import Model, Tensor
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.payloads import Data
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
    """Displayed name, if not the path."""


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
    hashes: dict[_Range, str] = {}
    sides = [_Side(place, hashes, trust_links=trust_links) for place in (old, new)]
    lines: tuple[list[str], list[str]] = ([], [])
    for key in dict.fromkeys((*sides[0].tensors, *sides[1].tensors)):
        if not any(side.has_outside(key) for side in sides):
            continue
        ranges = [side.find(key) for side in sides]
        if any(side.is_unreadable(key) for side in sides) or (ranges[0] is not None and ranges[0] == ranges[1]):
            continue
        found = [side.sha256(key) for side in sides]
        if any(side.is_unreadable(key) for side in sides):
            continue
        for digest, of_side in zip(found, lines, strict=True):
            if digest is not None:
                of_side.append(f"{_shown(key)}: sha256 {digest}\n")
    texts = ["".join(of_side).encode("utf-8") for of_side in lines]
    return Comparison(texts[0], texts[1], (*sides[0].problems(), *sides[1].problems()))


def _shown(key: _Key) -> str:
    is_name, text = key
    return visible(text, None) if is_name else f"@{visible(text, None)}"


def _tensors(model: Model) -> dict[_Key, Tensor]:
    found = [(address, record) for address, record in walk_with_addresses(model) if isinstance(record, Tensor)]
    times = Counter(tensor.name for _, tensor in found)
    return {
        (True, tensor.name) if tensor.name and times[tensor.name] == 1 else (False, address): tensor
        for address, tensor in found
    }


class _Side:
    """Tensors of one of the models, with the bytes of those that were requested."""

    def __init__(self, place: Place, hashes: dict[_Range, str], *, trust_links: bool) -> None:
        self._source = TensorSource(place.path, place.name or str(place.path), trust_links=trust_links)
        self._hashes = hashes
        self._data: dict[_Key, Data | None] = {}
        self._unreadable: set[_Key] = set()
        self.problems = self._source.problems
        self.tensors = _tensors(place.model)

    def has_outside(self, key: _Key) -> bool:
        return key in self.tensors and is_external(self.tensors[key])

    def is_unreadable(self, key: _Key) -> bool:
        return key in self._unreadable

    def find(self, key: _Key) -> _Range | None:
        """Find the bytes of a tensor; return their range if they are in another file."""
        tensor = self.tensors.get(key)
        if tensor is None:
            return None
        self._data[key] = data = self._source.data(tensor)
        if data is None and is_external(tensor):
            self._unreadable.add(key)
        return self._source.range(data)

    def sha256(self, key: _Key) -> str | None:
        """Return the SHA-256 of the bytes from `find`; None if there are none."""
        data = self._data.get(key)
        if data is None:
            return None
        place = self._source.range(data)
        if place is None:
            return sha256_of(data)
        if place not in self._hashes:
            try:
                self._hashes[place] = sha256_of(data)
            except OnnxJsonError as error:
                self._source.fail(self.tensors[key], error)
                self._unreadable.add(key)
                return None
        return self._hashes[place]
