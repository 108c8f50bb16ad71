"""A tree of changes as flat lists: operations to read and store, units to account for."""

from collections.abc import Iterator
from typing import NamedTuple

from onnxjson.document import Attribute, Model, Record
from onnxjson.patching.changes import (
    Change,
    FieldPlan,
    Fields,
    ListChange,
    Members,
    Operation,
    Replace,
    Set,
    Unit,
    in_order,
    is_absent,
    members_in_order,
    plans,
    segment,
)
from onnxjson.patching.sequences import Positions, keeps_order, placed


def operations(fields: Fields | None) -> Iterator[Operation]:
    """The operations in the order of the base: a list before its members."""
    for each in typed_operations(fields):
        yield each.operation


class TypedOperation(NamedTuple):
    """An operation with what it is about."""

    message: type[Record]
    name: str
    """The field of `message` that is set, or whose list changes."""
    operation: Operation


def typed_operations(fields: Fields | None) -> Iterator[TypedOperation]:
    """`operations`, each with its field."""
    if fields is not None:
        yield from _operations(Model, fields, "")


def _operations(message: type[Record], fields: Fields, address: str) -> Iterator[TypedOperation]:
    for name, change in in_order(message, fields):
        plan = plans(message).get(name)
        below = f"{address}/{name}"
        if type(change) is Replace:
            repeated = plan is None or plan.field.repeated
            old, new = [None if is_absent(each, repeated=repeated) else each for each in (change.old, change.new)]
            yield TypedOperation(message, name, Set(below, old, new))
            continue
        assert plan is not None
        assert plan.field.message is not None
        if type(change) is Fields:
            yield from _operations(plan.field.message, change, below)
            continue
        assert type(change) is Members
        if change.sequence is not None:
            yield TypedOperation(message, name, ListChange(below, change.sequence, change.removed))
        for key, member in members_in_order(change):
            place = segment(key, is_named=plan.is_named)
            yield from _operations(plan.field.message, member, f"{below}/{place}")


def units(fields: Fields | None) -> Iterator[Unit]:
    """Every difference once; see `Unit`."""
    if fields is not None:
        yield from _units(Model, fields, "", "")


def _units(message: type[Record], fields: Fields, base: str, target: str) -> Iterator[Unit]:
    for name, change in fields.changes.items():
        if type(change) is Replace:
            yield Unit("set", f"{base}/{name}", f"{target}/{name}")
            continue
        yield from _below(plans(message)[name], change, f"{base}/{name}", f"{target}/{name}")


def _below(plan: FieldPlan, change: Change, base: str, target: str) -> Iterator[Unit]:
    message = plan.field.message
    assert message is not None
    if type(change) is Fields:
        yield from _units(message, change, base, target)
        return
    assert type(change) is Members
    positions = None
    if change.sequence is not None:
        positions = Positions(change.sequence)
        yield from _comings_and_goings(change, plan, base, target)
    for key, member in change.changes.items():
        after = key if positions is None or isinstance(key, str) else positions.after(key)
        assert after is not None
        before, place = segment(key, is_named=plan.is_named), segment(after, is_named=plan.is_named)
        yield from _units(message, member, f"{base}/{before}", f"{target}/{place}")


def _comings_and_goings(change: Members, plan: FieldPlan, base: str, target: str) -> Iterator[Unit]:
    assert change.sequence is not None
    if not keeps_order(change.sequence):
        yield Unit("order", base, target)
    added = {place: item for place, item in placed(change.sequence) if isinstance(item, Record)}
    for name in _segments(change.removed, plan.is_named):
        yield Unit("remove", f"{base}/{name}", None)
    for name in _segments(added, plan.is_named):
        yield Unit("add", None, f"{target}/{name}")


def _segments(members: dict[int, Record], is_named: bool) -> Iterator[str]:
    """The segments, each on its side, of members that come or go."""
    if not is_named:
        for position in members:
            yield str(position)
        return
    names = [member.name for member in members.values() if isinstance(member, Attribute)]
    for (position, _), name in zip(members.items(), names, strict=True):
        is_unique = name is not None and not name.startswith("#") and names.count(name) == 1
        yield segment(name if is_unique and name is not None else position, is_named=True)
