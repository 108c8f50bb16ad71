"""The value of an attribute: its one payload, and that payload as a Python value."""

import struct
from typing import Any, Final

from msgspec.structs import astuple

from onnxjson.model.document import Attribute
from onnxjson.model.messages import ATTRIBUTE_PAYLOADS

_FIELDS: Final = Attribute.__struct_fields__
_EMPTY: Final = astuple(Attribute())
_TYPE: Final = _FIELDS.index("type")
_PAYLOAD_INDEX: Final = {kind: _FIELDS.index(name) for kind, name in ATTRIBUTE_PAYLOADS.items()}


def _empty_around(index: int) -> tuple[Any, Any, Any]:
    first, second = sorted((index, _TYPE))
    return _EMPTY[1:first], _EMPTY[first + 1 : second], _EMPTY[second + 1 :]


_EMPTY_AROUND: Final = {index: _empty_around(index) for index in _PAYLOAD_INDEX.values()}
"""The runs of fields other than name, type and one payload, as they are when absent, by the index of that payload."""


def short_payload(attribute: Attribute) -> tuple[int, Any] | None:
    """Return (AttributeType number, payload) of an attribute with name, type and that payload, and nothing else.

    A repeated payload may be empty. None for any other attribute: the text writes those in full.
    """
    fields = astuple(attribute)
    kind = fields[_TYPE]
    index = _PAYLOAD_INDEX.get(kind)
    if index is None:
        return None
    first, second = (index, _TYPE) if index < _TYPE else (_TYPE, index)
    before, between, after = _EMPTY_AROUND[index]
    if fields[1:first] != before or fields[first + 1 : second] != between or fields[second + 1 :] != after:
        return None
    payload = fields[index]
    return None if payload is None else (kind, payload)


def value_of(attribute: Attribute) -> Any:
    """Return the value of an attribute by its type, as a Python value.

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
