"""Conversion of records to exact JSON in ASCII, for other programs."""

import json
import math
from typing import Any, Final

import msgspec
import pybase64

from onnxjson.model.scalars import LARGEST_PLAIN

_NAMES: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


class Json(msgspec.Struct, frozen=True):
    """A value that is already JSON text."""

    text: str


def as_json(value: object, indent: int | None = 2) -> str:
    """Return structs, named tuples, lists, numbers and strings as JSON text.

    Strings that are not UTF-8 (lone surrogates represent their bytes) become ``{"base64": "..."}``; numbers that are
    not finite become the strings "NaN", "Infinity" and "-Infinity", integers beyond 2^53 strings of digits.
    """
    return json.dumps(_plain(value), indent=indent, ensure_ascii=True, allow_nan=False)


def _plain(value: object) -> Any:
    match value:
        case None | bool():
            return value
        case int():
            return value if -LARGEST_PLAIN <= value <= LARGEST_PLAIN else str(value)
        case float():
            return value if math.isfinite(value) else _NAMES.get(value, "NaN")
        case str():
            return _text(value)
        case Json():
            return json.loads(value.text)
        case msgspec.Struct():
            return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        case tuple() if hasattr(value, "_asdict"):
            return {name: _plain(each) for name, each in value._asdict().items()}
        case tuple() | list():
            return [_plain(each) for each in value]
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON form here")


def picked(record: object, names: str) -> dict[str, Any]:
    """Return some properties of a record by name, in this order; ``key=name`` gives a property another key."""
    pairs = [name.partition("=") for name in names.split()]
    return {key: getattr(record, name or key) for key, _, name in pairs}


def _text(value: str) -> Any:
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"base64": pybase64.b64encode(value.encode("utf-8", "surrogateescape")).decode()}
    return value
