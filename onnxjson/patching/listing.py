"""Flat views of a tree of changes: operations to read and store, units to account for, addresses after the change."""

from collections.abc import Iterator
from typing import NamedTuple

from onnxjson.model.addresses import format_address, parse_address
from onnxjson.model.document import Attribute, Model, Record
from onnxjson.model.errors import AddressError
from onnxjson.patching.changes import (
    Change,
    FieldPlan,
    Fields,
    ListChange,
    Members,
    Operation,
    Positions,
    Replace,
    Set,
    Unit,
    changes_in_order,
    is_absent,
    keeps_order,
    members_in_order,
    plans,
    segment,
    with_positions,
)


class _Found(NamedTuple):
    """A field that is replaced, or a list whose members change."""

    message: type[Record]
    name: str
    change: Replace | Members
    base: str
    """Address in the base."""
    target: str


def _walk(message: type[Record], fields: Fields, base: str = "", target: str = "") -> Iterator[_Found]:
    """Yield all changes in the order of the base: a list before its members."""
    for name, change in changes_in_order(message, fields):
        below, its = f"{base}/{name}", f"{target}/{name}"
        if type(change) is not Fields:
            yield _Found(message, name, change, below, its)  # type: ignore[arg-type]
        if type(change) is Replace:
            continue
        plan = plans(message)[name]
        assert plan.field.message is not None
        if type(change) is Fields:
            yield from _walk(plan.field.message, change, below, its)
            continue
        assert type(change) is Members
        positions = None if change.sequence is None else Positions(change.sequence)
        for key, member in members_in_order(change):
            after = key if positions is None or isinstance(key, str) else positions.after(key)
            assert after is not None
            segments = [segment(each, is_named=plan.is_named) for each in (key, after)]
            yield from _walk(plan.field.message, member, f"{below}/{segments[0]}", f"{its}/{segments[1]}")


def operations(fields: Fields | None) -> Iterator[Operation]:
    """Yield the operations in the order of the base: a list before its members."""
    return (each.operation for each in typed_operations(fields))


class TypedOperation(NamedTuple):
    """An operation with the field that it changes."""

    message: type[Record]
    name: str
    """Name of the field of `message` that is set or whose list changes."""
    operation: Operation


def typed_operations(fields: Fields | None) -> Iterator[TypedOperation]:
    """Yield `operations`, each with its field."""
    for message, name, change, address, _ in () if fields is None else _walk(Model, fields):
        if type(change) is Replace:
            plan = plans(message).get(name)
            repeated = plan is None or plan.field.repeated
            old, new = [None if is_absent(each, repeated=repeated) else each for each in (change.old, change.new)]
            yield TypedOperation(message, name, Set(address, old, new))
        elif type(change) is Members and change.sequence is not None:
            yield TypedOperation(message, name, ListChange(address, change.sequence, change.removed))


def units(fields: Fields | None) -> Iterator[Unit]:
    """Yield every difference once; see `Unit`."""
    for message, name, change, base, target in () if fields is None else _walk(Model, fields):
        if type(change) is Replace:
            yield Unit("set", base, target)
        elif type(change) is Members and change.sequence is not None:
            yield from _additions_and_removals(change, plans(message)[name], base, target)


def _additions_and_removals(change: Members, plan: FieldPlan, base: str, target: str) -> Iterator[Unit]:
    assert change.sequence is not None
    if not keeps_order(change.sequence):
        yield Unit("order", base, target)
    added = {place: item for place, item in with_positions(change.sequence) if isinstance(item, Record)}
    for name in _segments(change.removed, plan.is_named):
        yield Unit("remove", f"{base}/{name}", None)
    for name in _segments(added, plan.is_named):
        yield Unit("add", None, f"{target}/{name}")


def _segments(members: dict[int, Record], is_named: bool) -> Iterator[str]:
    """Yield the address segments of members that are added or removed, each in its own model."""
    if not is_named:
        for position in members:
            yield str(position)
        return
    names = [member.name for member in members.values() if isinstance(member, Attribute)]
    for (position, _), name in zip(members.items(), names, strict=True):
        is_unique = name is not None and not name.startswith("#") and names.count(name) == 1
        yield segment(name if is_unique and name is not None else position, is_named=True)


def change_at(fields: Fields | None, address: str) -> Change | None:
    """Return the change of the element at an address of the base, or of all of a value around it; None for none."""
    change: Change | None = fields
    for part in parse_address(address):
        if type(change) is Fields:
            change = change.changes.get(part)
        elif type(change) is Members:
            key = part.removeprefix("#")
            change = change.changes.get(part) or (change.changes.get(int(key)) if key.isdigit() else None)
        else:
            break
    return change


class AddressMap:
    """Translates addresses of the base to addresses of the target, by one tree of changes."""

    def __init__(self, fields: Fields | None) -> None:
        self._fields = fields
        self._positions: dict[int, Positions] = {}

    def after(self, address: str) -> str | None:
        """Return the new address of the element at `address`; None if it is removed.

        Raises:
            AddressError: `address` is not an address, or no model can have an element there.
        """
        passed: list[str] = []
        change: Change | None = self._fields
        message: type[Record] | None = Model
        plan: FieldPlan | None = None
        for name in parse_address(address):
            if plan is not None and plan.is_list:
                after, change = self._member(name, change, plan)
                if after is None:
                    return None
                passed.append(after)
                message, plan = plan.field.message, None
                continue
            if message is None:
                passed.append(name)
                if type(change) is Replace and not _has_item(change.new, name):
                    return None
                continue
            plan = _field(message, name, address)
            passed.append(name)
            change = change.changes.get(name) if type(change) is Fields else None
            message = None if plan is None or plan.is_list else plan.field.message
            if type(change) is Replace:
                repeated = plan is None or plan.field.repeated
                if (message is not None or not repeated) and is_absent(change.new, repeated=repeated):
                    return None
                if is_absent(change.old, repeated=repeated) and not repeated:
                    return None
        return format_address(passed)

    def _member(self, name: str, change: Change | None, plan: FieldPlan) -> tuple[str | None, Change | None]:
        """Return the segment of a member afterwards, None if it is removed, and the change of the member."""
        by_name = plan.is_named and not name.startswith("#")
        key: int | str = name if by_name else int(_digits(name.removeprefix("#") if plan.is_named else name))
        if type(change) is not Members:
            return name, None
        below = change.changes.get(key)
        if change.sequence is None:
            return name, below
        if isinstance(key, str):
            is_removed = any(isinstance(each, Attribute) and each.name == key for each in change.removed.values())
            return (None if is_removed else name), below
        known = self._positions.get(id(change))
        if known is None:
            known = self._positions[id(change)] = Positions(change.sequence)
        position = known.after(key)
        if position is None:
            return None, None
        return (f"#{position}" if plan.is_named else str(position)), below


def _field(message: type[Record], name: str, address: str) -> FieldPlan | None:
    plan = plans(message).get(name)
    if plan is None and name != "unknown_fields":
        raise AddressError(f'"{address}" is not an address of a model: {message.__name__} has no field "{name}"')
    return plan


def _digits(text: str) -> str:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise AddressError(f'"{text}" is not a position in a list')
    return text


def _has_item(value: object, position: str) -> bool:
    return isinstance(value, tuple) and position.isascii() and position.isdigit() and int(position) < len(value)
