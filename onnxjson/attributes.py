"""What an attribute holds: its one payload, and that as a Python value."""

import struct
from typing import Any, Final

from msgspec.structs import astuple

from onnxjson.document import Attribute
from onnxjson.names import ATTRIBUTE_PAYLOADS

_FIELDS: Final = Attribute.__struct_fields__
_EMPTY: Final = astuple(Attribute())
_TYPE: Final = _FIELDS.index("type")
_PAYLOAD_INDEX: Final = {kind: _FIELDS.index(name) for kind, name in ATTRIBUTE_PAYLOADS.items()}


def _others(index: int) -> list[tuple[slice, tuple[Any, ...]]]:
    """The runs of fields other than name, type and one payload, as they are when absent."""
    first, second = sorted((index, _TYPE))
    parts = (slice(1, first), slice(first + 1, second), slice(second + 1, None))
    return [(part, _EMPTY[part]) for part in parts if _EMPTY[part]]


_OTHERS: Final = {index: _others(index) for index in _PAYLOAD_INDEX.values()}


def short_payload(attribute: Attribute) -> tuple[int, Any] | None:
    """(AttributeType number, payload field) of an attribute that is name, type and that payload, and nothing else.

    A repeated payload may be empty. None for any other attribute: the text writes those in full.
    """
    fields = astuple(attribute)
    kind = fields[_TYPE]
    index = _PAYLOAD_INDEX.get(kind)
    if index is None:
        return None
    payload = fields[index]
    if payload is None or not all([fields[part] == empty for part, empty in _OTHERS[index]]):
        return None
    return kind, payload


def value_of(attribute: Attribute) -> Any:
    """The value of an attribute by its type, as Python has it.

    FLOAT and INT are numbers, STRING is str (bytes that are not UTF-8 as lone surrogates), FLOATS, INTS and STRINGS are
    tuples of those; tensors, graphs and types are their records. None where the type names no payload that is there.
    """
    kind = attribute.type
    name = ATTRIBUTE_PAYLOADS.get(kind) if kind is not None else None
    payload = None if name is None else getattr(attribute, name)
    if payload is None:
        return None
    if name == "f":
        return struct.unpack("<f", payload)[0]
    if name == "floats":
        return struct.unpack(f"<{len(payload) // 4}f", payload)
    if name == "s":
        return payload.decode("utf-8", "surrogateescape")
    if name == "strings":
        return tuple([each.decode("utf-8", "surrogateescape") for each in payload])
    return payload
