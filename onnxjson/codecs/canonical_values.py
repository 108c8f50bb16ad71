"""Strings, bytes, numbers and pairs as canonical JSON (docs/format.md, sections 2, 3, 8 and 9)."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import pybase64

from onnxjson.model import document as d
from onnxjson.model.display import unprintable
from onnxjson.model.dtypes import float32_text, float32_tokens, float64_text
from onnxjson.model.elements import read_varints
from onnxjson.model.messages import Kind
from onnxjson.model.payloads import Data, whole
from onnxjson.model.scalars import LARGEST_PLAIN

encode_string = msgspec.json.Encoder().encode
"""Encode a UTF-8 string, fast; `escape` later replaces the characters that must not appear raw."""

_LONGER: Final = len(f"[{LARGEST_PLAIN + 1}]")
"""Bytes of the shortest list of integers on one line that has a number beyond `LARGEST_PLAIN`."""

INDENTS: Final = tuple(b"\n" + b" " * width for width in range(400))
"""A line break and the start of the next line, by indentation."""

Exact = Callable[[d.Record], bytes]


def base64_of(data: bytes) -> bytes:
    """Encode bytes as ``{"base64": "..."}``."""
    return b'{"base64": "' + pybase64.b64encode(data) + b'"}'


def string(value: str) -> bytes:
    """Encode a string field: a JSON string, or base64 if its bytes are not UTF-8."""
    try:
        return encode_string(value)
    except UnicodeEncodeError:
        return base64_of(value.encode("utf-8", "surrogateescape"))


def is_text(value: str | None) -> bool:
    """Whether a string field is present and UTF-8 (lone surrogates represent bytes that are not)."""
    if value is None:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_utf8(data: bytes) -> bool:
    """Whether bytes are valid UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def bytes_value(value: bytes) -> bytes:
    """Encode a bytes field: a JSON string if it is UTF-8, else base64."""
    try:
        return encode_string(value.decode("utf-8"))
    except UnicodeDecodeError:
        return base64_of(value)


def string_or_lines(value: str, indent: int) -> tuple[bytes, bool]:
    """Encode a string, as the list of its lines if it has line feeds -> the JSON, whether it spans several lines."""
    if "\n" not in value or not is_text(value):
        return string(value), False
    start = INDENTS[indent + 2]
    lines = (b"," + start).join([encode_string(line) for line in value.split("\n")])
    return b"[" + start + lines + INDENTS[indent] + b"]", True


def strings(values: tuple[str, ...]) -> bytes:
    """Encode a list of string fields on one line."""
    return b"[" + b", ".join([string(value) for value in values]) + b"]"


def escape(text: bytes) -> bytes:
    """Replace every character that must not appear raw in a finished text by its \\u escape.

    Such characters occur only inside strings, so the text can be processed as a whole; line feeds belong to the layout.
    """
    if text.isascii() and b"\x7f" not in text:
        return text
    return unprintable().sub(_escape, text.decode("utf-8")).encode("utf-8")


def _escape(match: "re.Match[str]") -> str:
    return "".join([_escape_character(character) for character in match.group()])


def _escape_character(character: str) -> str:
    code = ord(character)
    if code == 0x0A:
        return character
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def integer(value: int) -> bytes:
    """Encode an integer: a JSON number, or a decimal string beyond 2^53."""
    return b"%d" % value if -LARGEST_PLAIN <= value <= LARGEST_PLAIN else b'"%d"' % value


def integers(values: Sequence[int]) -> bytes:
    """Encode a list of integers on one line."""
    text = encode_string(values)
    if len(text) < _LONGER or (max(values) <= LARGEST_PLAIN and min(values) >= -LARGEST_PLAIN):
        return text.replace(b",", b", ")
    return b"[" + b", ".join([integer(value) for value in values]) + b"]"


def float32(data: bytes) -> bytes:
    """Encode one float32 from its four bytes, little-endian."""
    return float32_text(data).encode()


def float32_list(data: bytes) -> bytes:
    """Encode a list of float32 on one line."""
    return b"[" + b", ".join([float32(data[at : at + 4]) for at in range(0, len(data), 4)]) + b"]"


def typed_data(kind: Kind, data: Data) -> bytes:
    """Encode the elements of a typed field of a tensor (packed numbers of `kind`) as a list on one line."""
    packed = whole(data)
    if kind is Kind.FLOAT:
        return b"[" + b", ".join(float32_tokens(packed)) + b"]"
    if kind is Kind.DOUBLE:
        texts = [float64_text(packed[at : at + 8]) for at in range(0, len(packed), 8)]
        return ("[" + ", ".join(texts) + "]").encode()
    return integers(read_varints(packed, signed=kind is not Kind.UINT64))


@lru_cache(maxsize=4096)
def is_object_key(key: str | None) -> bool:
    """Whether a name can be the key of a JSON object: JavaScript puts keys that are all digits first."""
    return is_text(key) and not (key.isascii() and key.isdigit())  # type: ignore[union-attr]


@lru_cache(maxsize=4096)
def are_object_keys(keys: tuple[str | None, ...]) -> bool:
    """Whether names can be the keys of one JSON object."""
    return len(set(keys)) == len(keys) and all(map(is_object_key, keys))


def pairs(entries: Sequence[d.StringStringEntry], exact: Exact, indent: int | None = None) -> bytes:
    """Encode pairs on one line, or, given the `indent` of their key, one pair a line and values as lists of lines."""
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
    """Encode opset imports as ``{"": 20}``, or as a list of messages if an object cannot represent them."""
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
    """The name under which `element_metadata` refers to an element of a graph; None if it has no name."""
    if kind == "node":
        outputs = element.output
        return outputs[0] if outputs and outputs[0] else next((name for name in outputs if name), None)
    return element.name or None


def element_metadata(groups: Iterable[tuple[str, Sequence[Any]]]) -> tuple[list[bytes], set[int]]:
    """Encode the lines of `element_metadata` -> the lines, the identities of elements whose metadata stays inline."""
    lines: list[bytes] = []
    inline: set[int] = set()
    for kind, members in groups:
        described = [element for element in members if element.metadata_props]
        if not described:
            continue
        counts = Counter([owner_name(kind, element) for element in members])
        for element in described:
            name = owner_name(kind, element)
            element_lines = _own_lines(kind, name, element.metadata_props) if name and counts[name] == 1 else None
            if element_lines is None:
                inline.add(id(element))
            else:
                lines += element_lines
    return lines, inline


def _own_lines(kind: str, name: str, entries: Sequence[d.StringStringEntry]) -> list[bytes] | None:
    """The lines of one element; None if lines cannot represent its metadata."""
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
