"""Key and value pairs, opset imports and the metadata of elements (docs/format.md, sections 8 and 9)."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from onnxjson import document as d
from onnxjson.canonical.strings import INDENTS, encode_string, is_text, string, string_or_lines
from onnxjson.scalars import LARGEST_PLAIN

Exact = Callable[[d.Record], bytes]


@lru_cache(maxsize=4096)
def is_object_key(key: str | None) -> bool:
    """Whether a name can be the key of a JSON object: JavaScript puts keys that are all digits first."""
    return is_text(key) and not (key.isascii() and key.isdigit())  # type: ignore[union-attr]


@lru_cache(maxsize=4096)
def are_object_keys(keys: tuple[str | None, ...]) -> bool:
    """Whether names can be the keys of one JSON object."""
    return len(set(keys)) == len(keys) and all(map(is_object_key, keys))


def pairs(entries: Sequence[d.StringStringEntry], exact: Exact, indent: int | None = None) -> bytes:
    """Pairs on one line, or, with the `indent` of their key, one pair a line and values as lists of their lines."""
    as_object = are_object_keys(tuple([entry.key for entry in entries])) and all(
        [entry.value is not None and not entry.unknown_fields for entry in entries]
    )
    items = [_pair(entry, exact, as_object, indent) for entry in entries]
    start, end = (b"{", b"}") if as_object else (b"[", b"]")
    if indent is None:
        return start + b", ".join(items) + end
    line = INDENTS[indent + 2]
    return start + line + (b"," + line).join(items) + INDENTS[indent] + end


def _pair(entry: d.StringStringEntry, exact: Exact, as_object: bool, indent: int | None) -> bytes:
    if not as_object and (entry.key is None or entry.value is None or entry.unknown_fields):
        return exact(entry)
    assert entry.key is not None
    assert entry.value is not None
    value = string(entry.value) if indent is None else string_or_lines(entry.value, indent + 2)[0]
    if as_object:
        return encode_string(entry.key) + b": " + value
    return b"[" + string(entry.key) + b", " + value + b"]"


def opset_imports(imports: Sequence[d.OperatorSetId], exact: Exact) -> bytes:
    """``{"": 20}``, or the list of messages where an object cannot say it."""
    if are_object_keys(tuple([each.domain for each in imports])) and all(
        [
            each.version is not None and abs(each.version) <= LARGEST_PLAIN and not each.unknown_fields
            for each in imports
        ]
    ):
        items = [encode_string(each.domain) + b": %d" % each.version for each in imports if each.version is not None]
        return b"{" + b", ".join(items) + b"}"
    return b"[" + b", ".join([exact(each) for each in imports]) + b"]"


def owner_name(kind: str, element: Any) -> str | None:
    """The name under which `element_metadata` refers to an element of a graph; empty names are none."""
    if kind == "node":
        return next((name for name in element.output if name), None)
    return element.name or None


def element_metadata(groups: Iterable[tuple[str, Sequence[Any]]]) -> tuple[list[bytes], set[int]]:
    """The lines of `element_metadata`, and the identities of the elements whose metadata stays inline.

    `groups` are the kinds in their order with all elements of the kind in file order.
    """
    lines: list[bytes] = []
    inline: set[int] = set()
    for kind, elements in groups:
        described = [element for element in elements if element.metadata_props]
        if not described:
            continue
        counts = Counter([owner_name(kind, element) for element in elements])
        for element in described:
            name = owner_name(kind, element)
            own = _own_lines(kind, name, element.metadata_props) if name and counts[name] == 1 else None
            if own is None:
                inline.add(id(element))
            else:
                lines += own
    return lines, inline


def _own_lines(kind: str, name: str, entries: Sequence[d.StringStringEntry]) -> list[bytes] | None:
    """The lines of one element; None where they cannot say it."""
    encode = encode_string
    try:
        head = b'["%b", %b, ' % (kind.encode(), encode(name))
        lines = []
        for entry in entries:
            key, value = entry.key, entry.value
            if key is None or value is None or entry.unknown_fields:
                return None
            lines.append(b"%b%b, %b]" % (head, encode(key), encode(value)))
    except UnicodeEncodeError:
        return None
    return lines
