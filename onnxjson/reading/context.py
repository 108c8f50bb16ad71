"""What every decoding function is handed: the place of its tree, and where to say what is wrong with it."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from onnxjson.checking import Severity
from onnxjson.conflicts import Conflict
from onnxjson.display import visible
from onnxjson.payloads import Data, Payload
from onnxjson.reading.positions import Key
from onnxjson.reading.tree import UNREADABLE, Tree
from onnxjson.suggestions import suggest


class Place:
    """A place in the tree, as its key and the place that holds it."""

    __slots__ = ("_key", "_parent")

    def __init__(self, parent: "Place | None", key: Key) -> None:
        self._parent = parent
        self._key = key

    @classmethod
    def of(cls, *path: Key) -> "Place":
        """The place at the end of a path from the top."""
        place = ROOT
        for key in path:
            place = cls(place, key)
        return place

    def at(self, key: Key) -> "Place":
        """A member of what stands here."""
        return Place(self, key)

    @property
    def path(self) -> tuple[Key, ...]:
        """Keys and indices from the top of the tree."""
        path: list[Key] = []
        place: Place | None = self
        while place is not None and place._parent is not None:
            path.append(place._key)
            place = place._parent
        return tuple(reversed(path))


ROOT = Place(None, "")
"""The top of the tree."""


class Remark(NamedTuple):
    """Something to say about a place; its line and column are found out at the end."""

    place: Place
    severity: Severity
    code: str
    message: str
    hint: str
    on_key: bool
    """Whether it is about the key of the place rather than the value."""
    character: int | None
    """The character of the string at the place, where it is about that one."""


class Context:
    """Collects what is wrong, and knows what was agreed on for the whole document."""

    def __init__(self, *, cuts: Mapping[str, Payload] | None = None, drop_orphans: bool = False) -> None:
        self.cuts: Mapping[str, Payload] = cuts or {}
        """Payloads whose base64 was taken out of the text, by the string that stands in its place."""
        self.drop_orphans = drop_orphans
        """Whether metadata of elements that do not exist is left out with a warning."""
        self.has_digests = False
        """Whether the document says that it has digests of tensors instead of their bytes."""
        self.blobs: str | None = None
        """The folder of blobs that the document names."""
        self.payloads: Mapping[str, Data] | None = None
        """The bytes that stand in a table of the text, by their sha256; None in a text that has no such table."""
        self.conflicts: tuple[Conflict, ...] = ()
        """The conflicts of a merge that stand in the document."""
        self.remarks: list[Remark] = []
        self._suggestions = _MOST_SUGGESTIONS

    def error(
        self,
        place: Place,
        code: str,
        message: str,
        hint: str = "",
        *,
        on_key: bool = False,
        character: int | None = None,
    ) -> None:
        """Notes an error."""
        self.remarks.append(Remark(place, "error", code, message, hint, on_key, character))

    def warning(self, place: Place, code: str, message: str, hint: str = "") -> None:
        """Notes a warning."""
        self.remarks.append(Remark(place, "warning", code, message, hint, False, None))

    def suggest(self, name: str, names: Collection[str]) -> str:
        """The names most like one that does not exist; after some dozens of them no more, since it takes long."""
        self._suggestions -= 1
        return suggest(name, names) if self._suggestions >= 0 else ""

    def nearest(self, name: str, names: Iterable[str]) -> str:
        """`nearest`, as long as `suggest` would give something."""
        self._suggestions -= 1
        return nearest(name, names) if self._suggestions >= 0 else ""

    def wrong_type(self, tree: Tree, place: Place, fits: str, hint: str = "") -> None:
        """Notes that a value is of the wrong kind, unless it was no value of JSON at all and that was said already."""
        if tree is UNREADABLE:
            return
        if tree is None:
            self.error(place, "wrong-type", f"null, but {fits} fits here", "leave the key out where a field is absent")
        else:
            self.error(place, "wrong-type", f"{describe(tree)}, but {fits} fits here", hint)

    def unknown_key(self, key: str, place: Place, fits: Iterable[str], owner: str) -> None:
        """Notes a key that `owner` does not have; `place` is that of the key's value."""
        shown = visible(key)
        self.error(place, "unknown-key", f'{owner} has no key "{shown}"', self.nearest(key, fits), on_key=True)


def describe(tree: Tree) -> str:
    """What a value is, in a few words, safe to print."""
    match tree:
        case bool():
            return "true" if tree else "false"
        case int() if abs(tree) >= 10**40:
            return "a number of more than 40 digits"
        case int() | float():
            return f"the number {visible(str(tree), 40)}"
        case str():
            return f'the text "{visible(tree, 40)}"'
        case list():
            return f"a list of {len(tree)}" if tree else "an empty list"
        case dict():
            return "an object"
        case None:
            return "null"
    return "something that is no JSON"


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint for a name that does not exist: those most like it, or, if none is, all of them where they are few."""
    names = list(names)
    hint = suggest(name, names)
    if hint or len(names) > _MOST_LISTED:
        return hint
    return "what fits: " + ", ".join(visible(each) for each in names) if names else ""


_MOST_LISTED = 24
_MOST_SUGGESTIONS = 50
