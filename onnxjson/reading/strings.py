"""Strings, bytes and base64 (docs/format.md, section 2)."""

import re
from typing import Final

from onnxjson.errors import LimitError, OnnxJsonError
from onnxjson.messages import Field
from onnxjson.payloads import Data, Digest
from onnxjson.reading.context import Context, Place
from onnxjson.reading.tree import Tree
from onnxjson.wire.unknown import UnknownTail
from onnxjson.wire.varints import NotCanonicalError

SHA256: Final = re.compile(r"[0-9a-f]{64}")


def read_string(tree: Tree, place: Place, context: Context) -> str | None:
    """A string field: a JSON string, or ``{"base64": ...}`` where its bytes are not UTF-8. `None` if it is neither."""
    if isinstance(tree, str):
        return tree
    if isinstance(tree, dict):
        data = read_base64_object(tree, place, context, "a text")
        return None if data is None else data.decode("utf-8", "surrogateescape")
    context.wrong_type(tree, place, "a text")
    return None


def read_bytes(tree: Tree, place: Place, context: Context) -> bytes | None:
    """A bytes field: text where it is UTF-8, else ``{"base64": ...}``. `None` if it is neither."""
    if isinstance(tree, str):
        return tree.encode("utf-8")
    if isinstance(tree, dict):
        return read_base64_object(tree, place, context, "a text")
    context.wrong_type(tree, place, "a text")
    return None


def read_text_or_lines(tree: Tree, place: Place, context: Context) -> str | None:
    """A string, or the list of its lines."""
    if not isinstance(tree, list):
        return read_string(tree, place, context)
    if all(isinstance(line, str) for line in tree):
        return "\n".join(tree)
    for index, line in enumerate(tree):
        if not isinstance(line, str):
            context.wrong_type(line, place.at(index), "a line of text")
    return None


def read_base64_object(tree: dict[str, Tree], place: Place, context: Context, fits: str) -> bytes | None:
    """The bytes of ``{"base64": "..."}``."""
    if "base64" not in tree:
        context.wrong_type(tree, place, f'{fits} or {{"base64": "..."}}')
        return None
    for key in tree:
        if key != "base64":
            context.unknown_key(key, place.at(key), ("base64",), "an object of bytes")
    return read_base64(tree["base64"], place.at("base64"), context)


def read_base64(tree: Tree, place: Place, context: Context, *, needed: int | None = None) -> bytes | None:
    """The bytes of a string of canonical base64; `needed` are as many as belong there, where that is known."""
    if not isinstance(tree, str):
        context.wrong_type(tree, place, "base64 text")
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
    """How many characters of a base64 text are missing or too many, for the bytes that are needed."""
    missing = 0 if needed is None else -(-needed // 3) * 4 - found
    if not missing or abs(missing) > 9:
        return ""
    what = "character is" if abs(missing) == 1 else "characters are"
    return f"{abs(missing)} {what} {'missing' if missing > 0 else 'too many'} for {needed:,} bytes"


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def base64_mistake(text: str) -> tuple[str, int | None]:
    """What is wrong with a text that is not canonical base64, and with which character."""
    body = text.rstrip("=")
    for index, character in enumerate(body):
        if character not in _ALPHABET:
            return f"the base64 holds {character!a}, which base64 does not use", index
    padding = len(text) - len(body)
    if len(text) % 4:
        if len(body) % 4 == 1:
            return (
                f"the base64 has {len(body):,} digits, which no number of bytes has: a digit is lost or one too many",
                None,
            )
        return (
            f"the base64 has {len(text):,} characters with {padding} `=`; `=` must fill it up to a multiple of 4",
            None,
        )
    if padding > 2 or (len(body) + padding) % 4 or (padding and (-len(body)) % 4 != padding):
        return f"the base64 ends with {padding} `=`", len(body)
    return f"the last digit of the base64, {body[-1:]}, has bits that belong to no byte", max(len(body) - 1, 0)


def read_payload(tree: Tree, place: Place, context: Context, *, needed: int | None = None) -> Data | None:
    """The bytes of a tensor from base64: those of the text, or those that were cut out of it; see `read_base64`."""
    if isinstance(tree, str) and (cut := context.cuts.get(tree)) is not None:
        return cut
    return read_base64(tree, place, context, needed=needed)


def is_by_sha256(tree: Tree, context: Context) -> bool:
    """Whether a value says which bytes it is instead of holding them, in a text that has a table of payloads."""
    return context.payloads is not None and isinstance(tree, dict) and "sha256" in tree


def read_by_sha256(tree: Tree, place: Place, context: Context) -> Data | None:
    """The bytes of ``{"sha256": "...", "bytes": 4096}``: those of the table, else what is known of them."""
    if not isinstance(tree, dict) or context.payloads is None:
        return None
    for key in tree:
        if key not in ("sha256", "bytes"):
            context.unknown_key(key, place.at(key), ("sha256", "bytes"), "an object of bytes elsewhere")
    sha256, length = tree["sha256"], tree.get("bytes")
    if not isinstance(sha256, str) or not SHA256.fullmatch(sha256):
        context.wrong_type(sha256, place.at("sha256"), "the sha256 of the bytes, 64 digits and letters a to f,")
        return None
    if type(length) is not int or not 0 <= length < 2**63:
        context.error(place, "missing-key", "how many bytes there are is not said", 'add "bytes", a whole number')
        return None
    return payload_of(sha256, length, place, context)


def payload_of(sha256: str, length: int, place: Place, context: Context) -> Data | None:
    """The bytes of that hash in the table of the text; without them, a `Digest`."""
    data = (context.payloads or {}).get(sha256)
    if data is None:
        return Digest(sha256, length)
    if len(data) != length:
        message = f"the payload has {len(data):,} bytes; {length:,} are needed here"
        context.error(place, "wrong-length", message)
        return None
    return data


def read_unknown_fields(tree: Tree, fields: tuple[Field, ...], place: Place, context: Context) -> bytes | None:
    """The serialised fields that onnx.proto does not name, for a message with `fields`."""
    data = read_base64(tree, place, context)
    if data is None:
        return None
    try:
        UnknownTail(fields).check(data, 0, len(data), 0)
    except NotCanonicalError:
        reason = "holds a field that onnx.proto does name"
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
