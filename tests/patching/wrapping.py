"""Models that hold one record of any message, at a known address."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec.structs import replace

from onnxjson.model import document as d
from onnxjson.model.messages import FIELDS, Field


@cache
def way_to(message: type[d.Record]) -> tuple[tuple[type[d.Record], Field], ...]:
    """The shortest way of fields from a model to a message; none leads through the attributes of a node."""
    ways: dict[type[d.Record], tuple[tuple[type[d.Record], Field], ...]] = {d.Model: ()}
    pending: list[type[d.Record]] = [d.Model]
    for owner in pending:
        for field in FIELDS[owner]:
            if field.message is not None and field.message not in ways:
                ways[field.message] = (*ways[owner], (owner, field))
                pending.append(field.message)
    return ways[message]


def model_with(record: Any) -> d.Model:
    """A model in which the record stands first wherever it can."""
    message: type[d.Record] = type(record)
    for owner, field in reversed(way_to(message)):
        record = replace(owner(), **{field.name: (record,) if field.repeated else record})
    assert isinstance(record, d.Model)
    return record


def first_pairs(message: type[d.Record]) -> dict[str, Sequence[tuple[int, int]]]:
    """Pairs that say of every list on the way that its first members are counterparts."""
    pairs: dict[str, Sequence[tuple[int, int]]] = {}
    address = ""
    for _, field in way_to(message):
        address += f"/{field.name}"
        if field.repeated:
            pairs[address] = [(0, 0)]
            address += "/0"
    return pairs
