"""One element of a model put in the place of another: the records above it are made anew, all others are shared."""

from collections.abc import Sequence
from typing import Any

import msgspec

from onnxjson.addresses import attribute_segments, parse_address
from onnxjson.document import Model, Node, Record


def put(model: Model, address: str, new: object) -> dict[str, Record]:
    """Puts `new` where `address` is.

    Args:
        model: stays as it is.
        address: as `walk` spells it.
        new: a record, a tuple of records or the value of a field.

    Returns:
        The new records above the address, and `new` itself if it is one, by their addresses; the model's is "".
    """
    segments = parse_address(address)
    held: list[Any] = [model]
    keys: list[str | int] = []
    for segment in segments:
        owner = held[-1]
        if isinstance(owner, Record):
            keys.append(segment)
            held.append(getattr(owner, segment))
        else:
            position = _position(owner, segment, of_attributes=isinstance(held[-2], Node) and keys[-1] == "attribute")
            keys.append(position)
            held.append(owner[position])
    current: Any = new
    made: dict[str, Record] = {}
    prefix = address
    for owner, key in zip(reversed(held[:-1]), reversed(keys), strict=True):
        if isinstance(current, Record):
            made[prefix] = current
        if isinstance(owner, Record):
            current = msgspec.structs.replace(owner, **{str(key): current})
        else:
            assert isinstance(key, int)
            current = (*owner[:key], current, *owner[key + 1 :])
        prefix = prefix.rpartition("/")[0]
    made[""] = current
    return made


def _position(members: Sequence[Any], segment: str, *, of_attributes: bool) -> int:
    return attribute_segments(members).index(segment) if of_attributes else int(segment)
