"""Locations of the elements of a model in a text: addresses of records -> lines and columns.

An address follows the records: field names of onnx.proto, members of lists by index, members of ``attribute`` by name
where it is unique in the node, else ``#index``; ``~0`` and ``~1`` as in RFC 6901. The text has tags, short forms and
side tables that the records do not have; this module maps one to the other.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from onnxjson.codecs.reading.attributes import FULL, TAGS
from onnxjson.codecs.reading.pairs import ELEMENT_KINDS
from onnxjson.codecs.reading.positions import Lines, find, skim
from onnxjson.codecs.reading.scan import scan
from onnxjson.codecs.reading.tree import Key, Tree, parse
from onnxjson.model.messages import ATTRIBUTE_PAYLOADS

_PAYLOAD_FIELDS = frozenset(ATTRIBUTE_PAYLOADS.values())
_ELEMENTS = ("values", "base64")


def locate(text: bytes, addresses: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Line and column, from 1, of each address; of the enclosing value where the text has no such place."""
    return positions(text, lambda tree: {address: path_of(tree, address) for address in addresses})


def positions(text: bytes, paths_in: Callable[[Tree], Mapping[str, Sequence[Key]]]) -> dict[str, tuple[int, int]]:
    """Line and column, from 1, of the paths that `paths_in` finds in the tree of a text, by their names."""
    is_clean, tree = parse(text)
    if is_clean:
        paths = paths_in(tree)
        decoded = text.decode("utf-8")
        root = skim(decoded, paths.values())
    else:
        scanned = scan(text)
        paths = paths_in(scanned.tree)
        decoded, root = scanned.text, scanned.root
    lines = Lines(decoded)
    return {name: lines.place(find(root, path)) for name, path in paths.items()}


def path_of(tree: Tree, address: str) -> tuple[Key, ...]:
    """The path to an address in the tree of a text, as far as the tree has it."""
    segments = [segment.replace("~1", "/").replace("~0", "~") for segment in address.split("/")[1:]]
    walk = _Walk(tree)
    for segment in segments:
        if not walk.step(segment):
            break
    return tuple(walk.path)


@dataclass(slots=True)
class _Walk:
    """A walk from the top of a tree downwards."""

    tree: Tree
    path: list[Key] = field(default_factory=list)
    holder: "tuple[Tree, list[Key]] | None" = None
    """The enclosing graph or function, and its path."""
    kind: str = ""
    """The list of the holder that was entered last."""
    element: Tree = None

    def step(self, segment: str) -> bool:
        """Follow one segment of an address; False if the text has nothing closer."""
        if isinstance(self.tree, list):
            return self._into_list(segment)
        if not isinstance(self.tree, dict):
            return False
        if segment in self.tree:
            if segment in ELEMENT_KINDS:
                self.holder, self.kind = (self.tree, list(self.path)), segment
            return self._go(segment)
        tag = next((key for key in self.tree if key in TAGS or key == FULL), None)
        if tag is not None:
            self._go(tag)
            return self.step(segment) if tag == FULL else True
        if segment in _PAYLOAD_FIELDS:
            return True
        if segment in ("dims", "data_type"):
            return "type" in self.tree and self._go("type")
        if segment.endswith("_data"):
            return any(key in self.tree and self._go(key) for key in _ELEMENTS)
        if segment == "metadata_props" and self.tree is self.element:
            return self._into_side_table()
        index = _index(segment)
        return index is not None and index < len(self.tree) and self._go(list(self.tree)[index])

    def _go(self, key: Key) -> bool:
        self.path.append(key)
        self.tree = self.tree[key]  # type: ignore[index]
        return True

    def _into_list(self, segment: str) -> bool:
        assert isinstance(self.tree, list)
        index = _index(segment)
        if index is None:
            index = next((at for at, item in enumerate(self.tree) if _is_named(item, segment)), None)
        if index is None and len(self.tree) == 2 and segment in ("key", "value"):
            index = int(segment == "value")
        if index is None or index >= len(self.tree):
            return False
        self._go(index)
        if self.path[-2:-1] == [self.kind]:
            self.element = self.tree
        return True

    def _into_side_table(self) -> bool:
        """Go to the lines of `element_metadata` that belong to the element."""
        if self.holder is None or not isinstance(self.holder[0], dict):
            return False
        lines = self.holder[0].get("element_metadata")
        owner = _owner_name(self.kind, self.element)
        if not isinstance(lines, list) or owner is None:
            return False
        own = [at for at, line in enumerate(lines) if isinstance(line, list) and line[:2] == [self.kind, owner]]
        if not own:
            return False
        self.path = [*self.holder[1], "element_metadata", own[0]]
        self.tree = None
        return True


def _owner_name(kind: str, element: Tree) -> str | None:
    if not isinstance(element, dict):
        return None
    if kind != "node":
        name = element.get("name")
        return name if isinstance(name, str) else None
    outputs = element.get("output")
    names = outputs if isinstance(outputs, list) else []
    return next((name for name in names if isinstance(name, str) and name), None)


def _is_named(item: Tree, name: str) -> bool:
    return isinstance(item, dict) and item.get("name") == name


def _index(segment: str) -> int | None:
    digits = segment.removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 12 else None
