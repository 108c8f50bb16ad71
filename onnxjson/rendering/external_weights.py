"""What two models have in files beside them, compared by SHA-256: their texts only name those files.

Tensors that are in a file in one model and inside the other are compared, too. Every range of a file is hashed once,
in pieces; where both models name the very same range, not at all.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from onnxjson.addresses import walk as walk_with_addresses
from onnxjson.canonical.payload_forms import sha256_of
from onnxjson.diffing.tensor_sources import TensorSource
from onnxjson.display import visible
from onnxjson.document import Model, Tensor
from onnxjson.errors import OnnxJsonError
from onnxjson.payloads import Data
from onnxjson.tensors import is_external
from onnxjson.walking import walk

_Key = tuple[bool, str]
"""What a tensor is known by in both models: its name where only one has it (True), else its address."""

_Range = tuple[str, int, int]
"""The real path of a file, and offset and length in bytes."""


class Place(NamedTuple):
    """A model and the file it came from; locations begin in the folder of that."""

    model: Model
    path: Path
    name: str = ""
    """What a person calls it, if not by its path."""


class Comparison(NamedTuple):
    """The lines of two models about their external data, UTF-8, and what could not be compared."""

    old: bytes
    new: bytes
    problems: tuple[str, ...]
    """One for each file that is missing or refused, each made visible."""


def compare(old: Place, new: Place, *, trust_links: bool = False) -> Comparison:
    """The SHA-256 of every tensor that stands in another file in one of two models, a line each: ``NAME: sha256 ...``.

    Args:
        old: a model.
        new: another one.
        trust_links: see `onnxjson.external.Resolver`.

    Raises:
        ChangedUnderneathError, FileError: a model file cannot be read any more.
    """
    if not any(is_external(tensor) for place in (old, new) for tensor in walk(place.model, Tensor)):
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
    """One of the two models: its tensors and the bytes of those that are asked for."""

    def __init__(self, place: Place, hashes: dict[_Range, str], *, trust_links: bool) -> None:
        self._source = TensorSource(place.path, place.name or str(place.path), trust_links=trust_links)
        self._hashes = hashes
        self._data: dict[_Key, Data | None] = {}
        self._unreadable: set[_Key] = set()
        self.problems = self._source.problems
        self.tensors = _tensors(place.model)

    def has_outside(self, key: _Key) -> bool:
        """Whether the tensor stands in another file."""
        return key in self.tensors and is_external(self.tensors[key])

    def is_unreadable(self, key: _Key) -> bool:
        """Whether its bytes could not be had."""
        return key in self._unreadable

    def find(self, key: _Key) -> _Range | None:
        """Look for the bytes of a tensor; where they are in another file, which range of it."""
        tensor = self.tensors.get(key)
        if tensor is None:
            return None
        self._data[key] = data = self._source.data(tensor)
        if data is None and is_external(tensor):
            self._unreadable.add(key)
        return self._source.range(data)

    def sha256(self, key: _Key) -> str | None:
        """That of the bytes that `find` found; None where there are none."""
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
