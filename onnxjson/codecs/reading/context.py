"""Place and Context: the position of a tree in its document, and the collector of findings about it."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeGuard

from onnxjson.codecs.reading.tree import UNREADABLE, Key, Tree
from onnxjson.model.conflicts import Conflict
from onnxjson.model.display import suggest, visible
from onnxjson.model.errors import Severity
from onnxjson.model.payloads import Data, Payload

_MOST_LISTED = 24
_MOST_SUGGESTIONS = 50


class Place:
    """A place in the tree, as its key and the place of the enclosing value."""

    __slots__ = ("_key", "_parent")

    def __init__(self, parent: "Place | None", key: Key) -> None:
        self._parent = parent
        self._key = key

    @classmethod
    def of(cls, *path: Key) -> "Place":
        """The place at a path from the top."""
        place = ROOT
        for key in path:
            place = cls(place, key)
        return place

    def at(self, key: Key) -> "Place":
        """The place of a member of the value here."""
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
    """A finding about a place; its line and column are determined at the end."""

    place: Place
    severity: Severity
    code: str
    message: str
    hint: str
    on_key: bool
    """Whether it refers to the key at the place, not to the value."""
    character: int | None
    """The index of a character of the string at the place, if it refers to one."""


class Context:
    """Collects findings, and has the settings of the whole document."""

    def __init__(self, *, cuts: Mapping[str, Payload] | None = None, drop_orphans: bool = False) -> None:
        self.cuts: Mapping[str, Payload] = cuts or {}
        """Payloads whose base64 was cut out of the text, by the marker that replaces it."""
        self.drop_orphans = drop_orphans
        """Whether metadata of elements that do not exist is left out with a warning instead of an error."""
        self.has_digests = False
        """Whether the document declares digests of tensors instead of their bytes."""
        self.blobs: str | None = None
        """The folder of blobs that the document names."""
        self.payloads: Mapping[str, Data] | None = None
        """The bytes in the table of payloads of the text, by their sha256; None if it has no such table."""
        self.conflicts: tuple[Conflict, ...] = ()
        """The merge conflicts of the document."""
        self.moved: Sequence[tuple[int, int]] = ()
        """Lines of the text that are further down in the whole text; see `Lines`."""
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
        """Add an error."""
        self.remarks.append(Remark(place, "error", code, message, hint, on_key, character))

    def warning(self, place: Place, code: str, message: str, hint: str = "") -> None:
        """Add a warning."""
        self.remarks.append(Remark(place, "warning", code, message, hint, False, None))

    def suggest(self, name: str, names: Collection[str]) -> str:
        """A hint with the names that are similar to a missing one; "" after some dozens of calls, since it is slow."""
        self._suggestions -= 1
        return suggest(name, names) if self._suggestions >= 0 else ""

    def nearest(self, name: str, names: Iterable[str]) -> str:
        """A hint as from `nearest`; "" after as many calls as `suggest` allows."""
        self._suggestions -= 1
        return nearest(name, names) if self._suggestions >= 0 else ""

    def wrong_type(self, tree: Tree, place: Place, fits: str, hint: str = "") -> None:
        """Add an error about a value of the wrong kind, unless it is not JSON, which was already reported."""
        if tree is UNREADABLE:
            return
        if tree is None:
            hint = "leave out the key of an absent field"
        elif fits.startswith("a list") and isinstance(tree, str | int | float):
            hint = hint or f"write {_as_list(tree)}"
        self.error(place, "wrong-type", f"found {describe(tree)}, expected {fits}", hint)

    def unknown_key(self, key: str, place: Place, fits: Iterable[str], owner: str) -> None:
        """Add an error about a key that `owner` does not have; `place` is that of the value of the key."""
        shown = visible(key)
        self.error(place, "unknown-key", f'{owner} has no key "{shown}"', self.nearest(key, fits), on_key=True)


USES: Final = {
    "onnxjson/1": "this is a model; name it where the command expects MODEL",
    "onnxjson-patch/1": "this is a patch; `onnxjson apply FILE MODEL -o OUT` applies it",
    "onnxjson-rewrite/1": "this is a script of edits; `onnxjson apply FILE MODEL -o OUT` applies it",
    "onnxjson-recipe/1": "this is a recipe; `onnxjson optimize MODEL --recipe FILE -o OUT` runs it",
    "onnxjson-rule/1": "this is a rule; `onnxjson find MODEL --rules FILE` runs it",
}
"""What to do with a text of another format."""


def has_format(tree: Tree, expected: str, what: str, context: Context) -> TypeGuard[dict[str, Tree]]:
    """Whether a document is an object whose key "format" has the value `expected`; report the reason if not."""
    if not isinstance(tree, dict):
        context.wrong_type(tree, ROOT, f'{what}, {{"format": "{expected}", ...}}')
        return False
    declared = tree.get("format")
    if "format" not in tree:
        context.error(ROOT, "no-format", 'the key "format" is missing', f'add the line "format": "{expected}",')
    elif not isinstance(declared, str):
        context.wrong_type(declared, ROOT.at("format"), f'"{expected}"')
    elif declared != expected:
        is_newer = declared.startswith(expected.partition("/")[0] + "/")
        message = f'the format is "{visible(declared)}"; this version of onnxjson reads "{expected}"'
        if declared in USES:
            message = f'the format is "{declared}", expected "{expected}"'
        hint = USES.get(declared, f"{what} is expected here")
        hint = f'a newer onnxjson may read it, else write "{expected}"' if is_newer else hint
        context.error(ROOT.at("format"), "other-format", message, hint)
    return declared == expected


def _as_list(tree: str | float) -> str:
    """The list that is meant by a value, or by a text such as ``1,3,8``."""
    text = f"[{str(tree).strip('[]() ')}]"
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        text = f"[{json.dumps(tree, ensure_ascii=False)}]"
    return visible(text, 80)


def describe(tree: Tree) -> str:
    """Describe a value in a few words that are safe to print."""
    match tree:
        case bool():
            return "true" if tree else "false"
        case int() if abs(tree) >= 10**40:
            return "a number of more than 40 digits"
        case int() | float():
            return f"the number {visible(str(tree), 40)}"
        case str():
            return f'the string "{visible(tree, 40)}"'
        case list():
            return f"a list of {len(tree)}" if tree else "an empty list"
        case dict():
            return "an object"
        case None:
            return "null"
    return "a value that is not JSON"


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint for a missing name: the similar ones; all names if none is similar and there are few."""
    names = list(names)
    hint = suggest(name, names)
    if hint or len(names) > _MOST_LISTED:
        return hint
    return "expected: " + ", ".join(visible(each) for each in names) if names else ""
