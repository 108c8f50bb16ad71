"""Tensors in other files: all that share a file are one slot, since two sides cannot both write that file."""

from collections.abc import Iterator
from typing import Any

from onnxjson import document as d
from onnxjson.addresses import escape
from onnxjson.merging.slots import added_key, record_after
from onnxjson.patching.changes import Fields, Members, plans
from onnxjson.walking import walk


def rival_units(base: d.Model, changes: tuple[Fields | None, Fields | None]) -> Iterator[list[str]]:
    """For each file of which both sides change what tensors take from it, in different ways: the units of that."""
    found = [_by_location(base, each, side) for side, each in enumerate(changes)]
    for location in sorted(found[0].keys() & found[1].keys()):
        mine, its = [each[location] for each in found]
        said = [[(key.partition("+")[0], value) for key, value in each.items()] for each in (mine, its)]
        if said[0] != said[1]:
            yield [*mine, *its]


def _by_location(base: d.Model, changes: Fields | None, side: int) -> dict[str, dict[str, Any]]:
    """By file: units that change what is taken from it, with what they make of it."""
    found: dict[str, dict[str, Any]] = {}
    if changes is not None:
        for location, key, value in _units(base, changes, "", side):
            found.setdefault(location, {})[key] = value
    return found


def _units(record: d.Record, fields: Fields, address: str, side: int) -> Iterator[tuple[str, str, Any]]:
    if isinstance(record, d.Tensor | d.Attribute):
        after = record_after(record, fields)
        old, new = _external(record), _external(after)
        if old != new:
            for tensor in (*old, *new):
                yield _location(tensor), address, after
        return
    for name, change in fields.changes.items():
        value = getattr(record, name)
        at = f"{address}/{name}"
        if isinstance(change, Fields):
            yield from _units(value, change, at, side)
        elif isinstance(change, Members):
            is_named = plans(type(record))[name].is_named
            yield from _members(value, change, at, side, is_named=is_named)


def _members(members: Any, change: Members, at: str, side: int, *, is_named: bool) -> Iterator[tuple[str, str, Any]]:
    positions = {each.name: position for position, each in enumerate(members)} if is_named else {}
    for key, below in change.changes.items():
        position = positions[key] if isinstance(key, str) else key
        yield from _units(members[position], below, f"{at}/{escape(str(key))}", side)
    added = [each for each in change.sequence or () if isinstance(each, d.Record)]
    for number, record in enumerate(added):
        for tensor in _external(record):
            yield _location(tensor), added_key(at, side, number), record


def _external(record: d.Record) -> list[d.Tensor]:
    return [tensor for tensor in walk(record, d.Tensor) if tensor.external_data]


def _location(tensor: d.Tensor) -> str:
    return next((entry.value or "" for entry in tensor.external_data if entry.key == "location"), "")
