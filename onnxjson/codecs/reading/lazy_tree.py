"""The tree of a strict JSON text, decoded only as far as somebody looks at it, with the place of each value.

A few places in a text of 100,000 nodes are found without the values of all nodes. The text must have been read without
a mistake before: what nobody looks at is hardly checked, and the last of two equal keys wins.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from onnxjson.codecs.reading.tree import Key, Tree

_decode: Final = msgspec.json.Decoder().decode
_decode_object: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_GAP: Final = re.compile(rb"[ \t\r\n,:]*")
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class LazyObject(dict[str, Any]):
    """An object; its members are decoded when they are asked for."""

    def __init__(self, text: bytes) -> None:
        super().__init__(_decode_object(text))
        self.text = text
        self.lengths = [len(memoryview(raw)) for raw in self.values()]

    def __getitem__(self, key: str) -> Tree:
        value = super().__getitem__(key)
        if type(value) is msgspec.Raw:
            value = self[key] = _opened(bytes(value))
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """See `dict.get`."""
        return self[key] if super().__contains__(key) else default

    @cached_property
    def places(self) -> Sequence[int]:
        """The offset of each member in `text`."""
        return list(_places(self.text, self.lengths, has_keys=True))


class LazyList(list[Any]):
    """A list; its items are decoded when they are asked for."""

    def __init__(self, text: bytes) -> None:
        super().__init__(_decode_list(text))
        self.text = text
        self.lengths = [len(memoryview(raw)) for raw in super().__iter__()]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        value = super().__getitem__(index)
        if type(value) is msgspec.Raw:
            value = self[index] = _opened(bytes(value))
        return value

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    @cached_property
    def places(self) -> Sequence[int]:
        """The offset of each item in `text`."""
        return list(_places(self.text, self.lengths, has_keys=False))


def _opened(text: bytes) -> Tree:
    if text[:1] == b"{":
        return LazyObject(text)
    return LazyList(text) if text[:1] == b"[" else _decode(text)


def offset(tree: Tree, path: Sequence[Key]) -> int:
    """The offset in bytes of the value at `path`, which exists, in the text of an object."""
    assert isinstance(tree, LazyObject)
    start = 0 if path else _gap(tree.text, 0)
    for key in path:
        if isinstance(tree, LazyObject):
            start += tree.places[list(tree).index(str(key))]
        else:
            assert isinstance(tree, LazyList)
            start += tree.places[int(key)]
        tree = tree[key]  # type: ignore[index]
    return start


def _places(text: bytes, lengths: Iterable[int], *, has_keys: bool) -> Iterator[int]:
    position = _gap(text, 0) + 1
    for length in lengths:
        position = _gap(text, position)
        name = _STRING.match(text, position) if has_keys else None
        if name is not None:
            position = _gap(text, name.end())
        yield position
        position += length


def _gap(text: bytes, position: int) -> int:
    match = _GAP.match(text, position)
    return match.end() if match else position
