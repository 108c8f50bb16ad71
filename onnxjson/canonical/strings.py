"""Strings, bytes and lines as canonical JSON (docs/format.md, section 2)."""

import re
from typing import Final

import msgspec
import pybase64

encode_string = msgspec.json.Encoder().encode
"""The fast way for strings that are UTF-8; characters that must not stand raw are escaped later, by `escaped`."""

INDENTS: Final = tuple(b"\n" + b" " * width for width in range(400))
"""A line break and the start of the next line, by indentation."""


def base64_of(data: bytes) -> bytes:
    """``{"base64": "..."}``."""
    return b'{"base64": "' + pybase64.b64encode(data) + b'"}'


def string(value: str) -> bytes:
    """A string field: a JSON string, or its base64 where its bytes are not UTF-8."""
    try:
        return encode_string(value)
    except UnicodeEncodeError:
        return base64_of(value.encode("utf-8", "surrogateescape"))


def is_text(value: str | None) -> bool:
    """Whether a string field is present and UTF-8 (lone surrogates stand for bytes that are not)."""
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
    """Whether bytes are text."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def bytes_value(value: bytes) -> bytes:
    """A bytes field: text where it is UTF-8, else its base64."""
    try:
        return encode_string(value.decode("utf-8"))
    except UnicodeDecodeError:
        return base64_of(value)


def string_or_lines(value: str, indent: int) -> tuple[bytes, bool]:
    """A text that may have line feeds, its key standing at `indent` -> (JSON, whether it takes several lines)."""
    if "\n" not in value or not is_text(value):
        return string(value), False
    start = INDENTS[indent + 2]
    lines = (b"," + start).join([encode_string(line) for line in value.split("\n")])
    return b"[" + start + lines + INDENTS[indent] + b"]", True


def strings(values: tuple[str, ...]) -> bytes:
    """A list of string fields on one line."""
    return b"[" + b", ".join([string(value) for value in values]) + b"]"


def escaped(text: bytes) -> bytes:
    """Finished text with every character that must not stand raw in it as \\u escapes.

    Such characters occur only inside strings, so the text can be treated as a whole; line feeds are the layout's.
    """
    if text.isascii() and b"\x7f" not in text:
        return text
    from onnxjson.characters import UNPRINTABLE

    return UNPRINTABLE.sub(_escape, text.decode("utf-8")).encode("utf-8")


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
