"""JSON values that edits carry, such as the value of an attribute: made plain, compared by bits, and written."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from onnxjson.canonical.strings import encode_string
from onnxjson.display import visible
from onnxjson.document import Graph, Node, Record, Tensor, Type
from onnxjson.reading.context import describe
from onnxjson.scalars import WrittenFloat


class ValueMistakeError(ValueError):
    """A value is of another kind than its parameter takes."""

    def __init__(self, found: str, fits: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{found}, but {fits} fits here")
        self.found = found
        """What stands there, in words."""
        self.fits = fits
        """What would fit, in words."""
        self.path = path
        """Keys and positions within the value."""


def found_words(value: object) -> str:
    """What a value is, in a few words, safe to print."""
    if isinstance(value, tuple):
        value = list(value)
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        return describe(value)
    return f"a {type(value).__name__}"


def plain_value(value: object) -> Any:
    """A value of Python as one of JSON: lists for tuples and arrays, words for NaN and infinities, text for records.

    Raises:
        ValueMistakeError: JSON has nothing like it.
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
    # Numbers and arrays of numpy, without importing it.
    if hasattr(value, "tolist"):
        return plain_value(value.tolist())
    raise ValueMistakeError(found_words(value), "a number, text, list or object")


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise ValueMistakeError(f"the key {found_words(key)}", "keys that are texts")
    return key


def _plain_member(value: object, key: str | int) -> Any:
    try:
        return plain_value(value)
    except ValueMistakeError as mistake:
        raise ValueMistakeError(mistake.found, mistake.fits, (key, *mistake.path)) from None


def record_value(record: Record) -> Any:
    """A tensor, type, graph ... as the JSON value that stands for it in a document."""
    from onnxjson.canonical.writer import TextWriter

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
    """A JSON value whose floats do not remember how they were written."""
    if isinstance(value, WrittenFloat):
        return float(value)
    if isinstance(value, list):
        return [without_spelling(each) for each in value]
    return value


def same_value(one: object, other: object) -> bool:
    """Whether two JSON values are written alike: 1, 1.0 and true are three values, as are 0.0 and -0.0."""
    return one is other or write_value(one) == write_value(other)


def attribute_values(node: Node) -> dict[str, Any] | None:
    """The attributes of a node as JSON values, as in a document; None where they stand there in another form."""
    from onnxjson.canonical.writer import TextWriter

    if not node.attribute:
        return {}
    parts: list[bytes] = []
    writer = TextWriter(parts.append)
    writer.node(Node(op_type=node.op_type, domain=node.domain, attribute=node.attribute), 0)
    writer.flush()
    found = json.loads(b"".join(parts)).get("attribute")
    return found if isinstance(found, dict) else None


def write_value(value: object) -> str:
    """A JSON value on one line, as scripts have it: a space after commas and colons, texts as they are.

    Raises:
        ValueError: a text holds half of a surrogate pair.
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
    raise TypeError(f"{visible(repr(value))} is no JSON value")


def write_text(text: str) -> str:
    """A text as JSON; characters that cannot be seen are escaped, bytes that are not UTF-8 make an object."""
    from onnxjson.canonical.strings import escaped, string

    try:
        return escaped(encode_string(text)).decode()
    except UnicodeEncodeError:
        return string(text).decode()
