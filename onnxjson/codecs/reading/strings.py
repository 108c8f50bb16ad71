"""Strings, bytes and base64 (docs/format.md, section 2)."""

import re
from typing import Final

from onnxjson.codecs.reading.context import Context, Place
from onnxjson.codecs.reading.tree import Tree
from onnxjson.codecs.wire_format import NotCanonicalError, UnknownTail
from onnxjson.model.display import counted
from onnxjson.model.errors import DecodeError, LimitError, OnnxJsonError
from onnxjson.model.messages import Field
from onnxjson.model.payloads import Data, Digest

SHA256: Final = re.compile(r"[0-9a-f]{64}")

_LINE_BREAKS: Final = b"\r\n"
_SPACE: Final = b" \t\r\n"

_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def read_string(tree: Tree, place: Place, context: Context) -> str | None:
    """Read a string field: a JSON string, or ``{"base64": ...}`` if not UTF-8. None, after a report, if neither."""
    if isinstance(tree, str):
        return tree
    data = read_bytes(tree, place, context)
    return None if data is None else data.decode("utf-8", "surrogateescape")


def read_bytes(tree: Tree, place: Place, context: Context) -> bytes | None:
    """Read a bytes field: a JSON string if it is UTF-8, else ``{"base64": ...}``. None, after a report, if neither."""
    if isinstance(tree, str):
        return tree.encode("utf-8")
    if isinstance(tree, dict):
        return read_base64_object(tree, place, context, "a string")
    context.wrong_type(tree, place, "a string")
    return None


def read_text_or_lines(tree: Tree, place: Place, context: Context) -> str | None:
    """Read a string, or the list of its lines."""
    if not isinstance(tree, list):
        return read_string(tree, place, context)
    if all(isinstance(line, str) for line in tree):
        return "\n".join(tree)
    for index, line in enumerate(tree):
        if not isinstance(line, str):
            context.wrong_type(line, place.at(index), "a string without line breaks")
    return None


def read_base64_object(tree: dict[str, Tree], place: Place, context: Context, fits: str) -> bytes | None:
    """Read the bytes of ``{"base64": "..."}``."""
    if "base64" not in tree:
        context.wrong_type(tree, place, f'{fits} or {{"base64": "..."}}')
        return None
    for key in tree:
        if key != "base64":
            context.unknown_key(key, place.at(key), ("base64",), "an object of base64")
    return read_base64(tree["base64"], place.at("base64"), context)


def read_base64(tree: Tree, place: Place, context: Context, *, needed: int | None = None) -> bytes | None:
    """Read the bytes of a string of canonical base64; `needed` is the expected number of bytes, if it is known."""
    if not isinstance(tree, str):
        context.wrong_type(tree, place, "a string of base64")
        return None
    if (cut := context.cuts.get(tree)) is not None:
        return cut.read()
    import pybase64

    try:
        data: bytes = pybase64.b64decode(tree, validate=True)
        if pybase64.b64encode_as_string(data) == tree:
            return data
    except ValueError:
        pass
    message, index = base64_mistake(tree)
    context.error(place, "bad-base64", message, _length_hint(len(tree), needed), character=index)
    return None


def _length_hint(found: int, needed: int | None) -> str:
    """A hint: how many characters are missing or too many for the needed bytes."""
    missing = 0 if needed is None else -(-needed // 3) * 4 - found
    if not missing or abs(missing) > 9:
        return ""
    what = "character is" if abs(missing) == 1 else "characters are"
    return f"{abs(missing)} {what} {'missing' if missing > 0 else 'too many'} for {needed:,} bytes"


def base64_mistake(text: str) -> tuple[str, int | None]:
    """Describe the mistake in a text that is not canonical base64 -> a message and the index of the wrong character."""
    body = text.rstrip("=")
    for index, character in enumerate(body):
        if character not in _ALPHABET:
            return f"the base64 has {character!a}, which base64 does not use", index
    padding = len(text) - len(body)
    if len(text) % 4:
        if len(body) % 4 == 1:
            return (f"the base64 has {len(body):,} digits, which is impossible: one digit is missing or too many", None)
        return (
            f"the base64 has {len(text):,} characters with {padding} `=`; `=` must fill it up to a multiple of 4",
            None,
        )
    if padding > 2 or (len(body) + padding) % 4 or (padding and (-len(body)) % 4 != padding):
        return f"the base64 ends with {padding} `=`", len(body)
    return f"the last digit of the base64, {body[-1:]}, has bits beyond the last byte", max(len(body) - 1, 0)


def read_payload(tree: Tree, place: Place, context: Context, *, needed: int | None = None) -> Data | None:
    """Read the bytes of a tensor from base64, in the text or cut out of it; see `read_base64`."""
    if isinstance(tree, str) and (cut := context.cuts.get(tree)) is not None:
        return cut
    return read_base64(tree, place, context, needed=needed)


def is_by_sha256(tree: Tree, context: Context) -> bool:
    """Whether a value refers to its bytes by their sha256, in a text with a table of payloads."""
    return context.payloads is not None and isinstance(tree, dict) and "sha256" in tree


def read_by_sha256(tree: Tree, place: Place, context: Context) -> Data | None:
    """Read ``{"sha256": "...", "bytes": 4096}``: the bytes of the table, else a `Digest`."""
    if not isinstance(tree, dict) or context.payloads is None:
        return None
    for key in tree:
        if key not in ("sha256", "bytes"):
            context.unknown_key(key, place.at(key), ("sha256", "bytes"), "a reference to bytes")
    sha256, length = tree["sha256"], tree.get("bytes")
    if not isinstance(sha256, str) or not SHA256.fullmatch(sha256):
        context.wrong_type(sha256, place.at("sha256"), "the sha256 of the bytes, 64 digits and letters a to f")
        return None
    if type(length) is not int or not 0 <= length < 2**63:
        context.error(place, "missing-key", "the number of bytes is missing", 'add "bytes", an integer')
        return None
    return payload_of(sha256, length, place, context)


def payload_of(sha256: str, length: int, place: Place, context: Context) -> Data | None:
    """The bytes of a hash in the table of the text; a `Digest` if the table does not have them."""
    data = (context.payloads or {}).get(sha256)
    if data is None:
        return Digest(sha256, length)
    if len(data) != length:
        message = f"the payload has {counted(len(data), 'byte')}; {length:,} are needed here"
        context.error(place, "wrong-length", message)
        return None
    return data


def read_unknown_fields(tree: Tree, fields: tuple[Field, ...], place: Place, context: Context) -> bytes | None:
    """Read serialised fields that onnx.proto does not define, for a message with `fields`."""
    data = read_base64(tree, place, context)
    if data is None:
        return None
    try:
        UnknownTail(fields).check(data, 0, len(data), 0)
    except NotCanonicalError:
        reason = "has a field that onnx.proto defines"
    except IndexError:
        reason = "ends within a field"
    except LimitError:
        reason = "nests too deep"
    except OnnxJsonError as error:
        reason = f"is not well formed: {error}"
    else:
        return data
    context.error(place, "bad-unknown-fields", f"unknown_fields {reason}", "leave it as it was written, or delete it")
    return None


def base64_bytes(text: str | bytes, source: str = "") -> bytes:
    """Decode canonical base64 (RFC 4648 section 4), which may be broken into lines, or raise DecodeError.

    `source` begins the messages of errors.
    """
    import pybase64

    joined = (text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text).strip(_SPACE)
    if b"\n" in joined:
        joined = joined.translate(None, _LINE_BREAKS)
    try:
        data: bytes = pybase64.b64decode(joined, validate=True)
        # Four digits are three bytes, up to the last digits: only those can have bits beyond the last byte.
        last = len(data) - (len(data) % 3 or 3)
        if len(joined) == (len(data) + 2) // 3 * 4 and joined.endswith(pybase64.b64encode(data[max(last, 0) :])):
            return data
    except ValueError:
        pass
    message, index = base64_mistake(joined.decode("utf-8", "replace"))
    where = "" if index is None else f" (character {index + 1:,})"
    raise DecodeError(f"{source}{': ' if source else ''}{message}{where}")
