"""A walk through all records of a model, by the field table."""

from collections.abc import Iterator
from functools import cache
from typing import TypeVar

from onnxjson.document import Record
from onnxjson.messages import FIELDS

Found = TypeVar("Found", bound=Record)


def walk(record: Record, kind: type[Found]) -> Iterator[Found]:
    """Every record of a kind in `record` and below, the outer before the inner, in the order of the fields."""
    pending: list[Record] = [record]
    while pending:
        current = pending.pop()
        if isinstance(current, kind):
            yield current
        below: list[Record] = []
        for name, repeated in fields_leading_to(type(current), kind):
            value = getattr(current, name)
            if repeated:
                below += value
            elif value is not None:
                below.append(value)
        pending += reversed(below)


@cache
def fields_leading_to(message: type[Record], kind: type[Record]) -> tuple[tuple[str, bool], ...]:
    """The fields of a message that can lead to a record of a kind: name, and whether it is repeated."""
    return tuple(
        (field.name, field.repeated)
        for field in FIELDS[message]
        if field.message is not None and kind in _reachable(field.message)
    )


@cache
def _reachable(message: type[Record]) -> frozenset[type[Record]]:
    """The messages that can stand in a message, and itself."""
    found = {message}
    pending = [message]
    while pending:
        for field in FIELDS[pending.pop()]:
            if field.message is not None and field.message not in found:
                found.add(field.message)
                pending.append(field.message)
    return frozenset(found)
