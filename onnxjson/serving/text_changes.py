"""Changes of a text in an editor: the replacements that format it, correct it, or apply edits."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from msgspec.structs import replace

from onnxjson.codecs.node_blocks import canonical_node
from onnxjson.codecs.reading.tree import Key
from onnxjson.codecs.text_file import read_bytes
from onnxjson.diffing.line_changes import changes
from onnxjson.editing.applying import run
from onnxjson.editing.attributes import attribute_of
from onnxjson.editing.declaration import Edit
from onnxjson.editing.names import NameKind, Rename
from onnxjson.model.document import Model
from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES
from onnxjson.model.operators import operator_signature
from onnxjson.model.walking import replace_at
from onnxjson.rendering.node import opset_of
from onnxjson.serving.edited_text import EditedText
from onnxjson.serving.text_names import Named, ends_of_nodes
from onnxjson.storage.api import dumps

_KINDS: Final[dict[str, NameKind]] = {"node": "node", "dimension": "dim"}
_FIRST_VALUES: Final = {"INT": 1, "INTS": [1, 1], "FLOAT": 1.0, "FLOATS": [1.0], "STRING": "", "STRINGS": [""]}
"""Initial value of a required attribute, by type."""

_DEEPEST: Final = 200
"""Maximum number of columns before a formatted node, however deep it is."""


class Replacement(NamedTuple):
    """Characters from `start` to `end` of a text, and what replaces them."""

    start: int
    end: int
    text: str


def changed(text: EditedText, edits: list[Edit]) -> list[Replacement]:
    """The replacements by which edits change a valid text, in its canonical form; errors are those of the edits."""
    if not text.is_valid or text.model is None:
        return []
    return _turned_into(text, run(text.model, edits, model_folder=text.path.parent).model if edits else text.model)


def renamed(text: EditedText, named: Named, name: str) -> list[Replacement]:
    """The replacements by which the edit `rename` changes a text; errors are those of the edit."""
    return changed(text, [Rename(kind=_KINDS.get(named.kind, "tensor"), names={named.name: name})])


def formatted_nodes(text: EditedText, start: int, end: int) -> list[Replacement]:
    """The replacements that make the outermost valid nodes of a range canonical, in a text with errors."""
    found: list[Replacement] = []
    opened: dict[tuple[Key, ...], int] = {}
    place = text.path_at(start)[0]
    for first, last, path, _ in text.walk_around(place[: (*ends_of_nodes(place), len(place))[0]], start):
        if first > end and not opened:
            break
        if path[-2:-1] != ("node",) or not isinstance(path[-1], int):
            continue
        if text.text[first] == "{":
            opened[path] = first
        elif text.text[first] == "}" and (begin := opened.pop(path, end + 1)) <= end and last > start:
            new = canonical_node(text.text[begin:last], _indent(path))
            if new is not None:
                found = [each for each in found if each.end < begin]  # without nodes of its subgraphs
                found += [Replacement(begin, last, new)] if new != text.text[begin:last] else []
    return found


def _indent(path: Sequence[Key]) -> int:
    """Columns before a node in the canonical text: two for each level, but one for each block of attributes."""
    shared = sum([each in ("AttributeProto", "attribute_proto") for each in path])
    return min(max(2 * (len(path) - 1 - shared) - 3 * list(path).count("attribute"), 0), _DEEPEST)


def with_attribute(text: EditedText, offset: int, name: str) -> list[Replacement]:
    """The replacements that add an attribute to the node at an offset, with a value of its type."""
    ref = text.node_at(text.path_at(offset)[0])
    if ref is None or text.model is None or not text.is_valid:
        return []
    found = operator_signature(ref.node.domain, ref.node.op_type, opset_of(text.model, ref))
    kind = None if found is None or name not in found.attributes else found.attributes[name].type
    value = _FIRST_VALUES.get(ATTRIBUTE_TYPE_NAMES.get(kind or 0, ""))
    if kind is None or value is None:
        return []
    new = attribute_of(name, value, {name: kind}, ref.node.op_type or "", "set-attribute")
    node = replace(ref.node, attribute=(*ref.node.attribute, new))
    return _turned_into(text, replace_at(text.model, ref.address, node)[""])  # type: ignore[arg-type]


def without_orphans(text: EditedText) -> list[Replacement]:
    """The replacements that drop metadata of elements which no longer exist, as `--drop-orphans` does."""
    data = text.text.encode("utf-8", "surrogatepass")
    return _turned_into(text, read_bytes(data, drop_orphans=True, conflicted=True).model)


def _turned_into(text: EditedText, model: Model) -> list[Replacement]:
    old, new = (each.encode("utf-8", "surrogatepass").splitlines(keepends=True)
                for each in (text.text, dumps(model, weights="keep")))  # fmt: skip
    starts = [0, *accumulate([len(line.decode("utf-8", "surrogatepass")) for line in old])]
    return [
        Replacement(starts[each.old_start], starts[each.old_end],
                    b"".join(new[each.new_start : each.new_end]).decode("utf-8", "surrogatepass"))
        for each in changes(old, new)
    ]  # fmt: skip
