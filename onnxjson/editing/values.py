"""JSON values of parameters, such as the value of an attribute: convert, compare bit by bit, and write them."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from onnxjson.codecs.canonical_values import encode_string
from onnxjson.codecs.reading.context import describe
from onnxjson.model.display import visible
from onnxjson.model.document import Graph, Node, Record, Tensor, Type
from onnxjson.model.scalars import WrittenFloat


class ValueMistakeError(ValueError):
    """A value has another type than its parameter."""

    def __init__(self, found: str, fits: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"found {found}, expected {fits}")
        self.found = found
        """Description of the value."""
        self.fits = fits
        """Description of the values that fit."""
        self.path = path
        """Keys and positions inside the value."""


def found_words(value: object) -> str:
    """Describe a value in a few words that are safe to print."""
    if isinstance(value, tuple):
        value = list(value)
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        return describe(value)
    return f"a {type(value).__name__}"


def plain_value(value: object) -> Any:
    """Convert a Python value to a JSON value: tuples and arrays to lists, NaN and infinities to strings, records to
    the form that they have in a document.

    Raises:
        ValueMistakeError: JSON has no such value.
    """
    if value is None or isinstance(value, bool | str | WrittenFloat):
        return value
    if isinstance(value, float):
        return _float(float(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Record):
        return record_value(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain_member(each, key) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain_member(each, position) for position, each in enumerate(value)]
    # Numbers and arrays of numpy, without an import of it.
    if hasattr(value, "tolist"):
        return plain_value(value.tolist())
    raise ValueMistakeError(found_words(value), "a number, string, list or object")


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise ValueMistakeError(f"the key {found_words(key)}", "string keys")
    return key


def _plain_member(value: object, key: str | int) -> Any:
    try:
        return plain_value(value)
    except ValueMistakeError as mistake:
        raise ValueMistakeError(mistake.found, mistake.fits, (key, *mistake.path)) from None


def record_value(record: Record) -> Any:
    """Convert a tensor, type, graph ... to its JSON value in a document."""
    from onnxjson.codecs.canonical_writer import TextWriter

    parts: list[bytes] = []
    writer = TextWriter(parts.append)
    match record:
        case Tensor():
            writer.tensor(record, 0, is_item=True)
        case Graph():
            writer.graph(record, 0)
        case Type():
            writer.out.append(writer.type_text(record))
        case _:
            writer.exact(record, 0)
    writer.flush()
    return json.loads(b"".join(parts))


def without_spelling(value: object) -> Any:
    """Return a JSON value with plain floats, without the spelling that they had."""
    if isinstance(value, WrittenFloat):
        return float(value)
    if isinstance(value, list):
        return [without_spelling(each) for each in value]
    return value


def same_value(one: object, other: object) -> bool:
    """Whether two JSON values have the same text: 1, 1.0 and true are three values, as are 0.0 and -0.0."""
    return one is other or write_value(one) == write_value(other)


def attribute_values(node: Node) -> dict[str, Any] | None:
    """Return the attributes of a node as JSON values; None if a document writes them in another form."""
    from onnxjson.codecs.canonical_writer import TextWriter

    if not node.attribute:
        return {}
    parts: list[bytes] = []
    writer = TextWriter(parts.append)
    writer.node(Node(op_type=node.op_type, domain=node.domain, attribute=node.attribute), 0)
    writer.flush()
    found = json.loads(b"".join(parts)).get("attribute")
    return found if isinstance(found, dict) else None


def write_value(value: object) -> str:
    """Write a JSON value on one line, as in scripts: with a space after commas and colons.

    Raises:
        ValueError: a string has half of a surrogate pair.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case WrittenFloat():
            return value.spelling
        case float():
            return repr(value)
        case int():
            return str(value)
        case str():
            return write_text(value)
        case Mapping():
            return "{" + ", ".join([f"{write_text(key)}: {write_value(each)}" for key, each in value.items()]) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(write_value, value)) + "]"
    raise TypeError(f"{visible(repr(value))} is not a JSON value")


def write_text(text: str) -> str:
    """Write a string as JSON; invisible characters are escaped, bytes that are not UTF-8 make an object."""
    from onnxjson.codecs.canonical_values import escape, string

    try:
        return escape(encode_string(text)).decode()
    except UnicodeEncodeError:
        return string(text).decode()
