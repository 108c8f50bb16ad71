"""Flat views of a tree of changes: operations, units to account for, addresses after it; and some units as a tree."""

from collections.abc import Container, Iterator
from typing import Final, NamedTuple

from onnxjson.model.addresses import format_address, parse_address
from onnxjson.model.document import Attribute, Model, Record
from onnxjson.model.errors import AddressError
from onnxjson.patching import changes as c

Wanted = Container[c.Unit]

_BEFORE_ALL: Final = -1


class _Found(NamedTuple):
    """A field that is replaced, or a list whose members change."""

    message: type[Record]
    name: str
    change: c.Replace | c.Members
    base: str
    """Address in the base."""
    target: str


def _walk(message: type[Record], fields: c.Fields, base: str = "", target: str = "") -> Iterator[_Found]:
    """Yield all changes in the order of the base: a list before its members."""
    for name, change in c.changes_in_order(message, fields):
        base_address, target_address = f"{base}/{name}", f"{target}/{name}"
        if type(change) is not c.Fields:
            yield _Found(message, name, change, base_address, target_address)  # type: ignore[arg-type]
        if type(change) is c.Replace:
            continue
        plan = c.plans(message)[name]
        assert plan.field.message is not None
        if type(change) is c.Fields:
            yield from _walk(plan.field.message, change, base_address, target_address)
            continue
        assert type(change) is c.Members
        positions = None if change.sequence is None else c.Positions(change.sequence)
        for key, member in c.members_in_order(change):
            after = key if positions is None or isinstance(key, str) else positions.after(key)
            assert after is not None
            segments = [c.segment(each, is_named=plan.is_named) for each in (key, after)]
            yield from _walk(
                plan.field.message, member, f"{base_address}/{segments[0]}", f"{target_address}/{segments[1]}"
            )


def operations(fields: c.Fields | None) -> Iterator[c.Operation]:
    """Yield the operations in the order of the base: a list before its members."""
    return (each.operation for each in typed_operations(fields))


class TypedOperation(NamedTuple):
    """An operation with the field that it changes."""

    message: type[Record]
    name: str
    """Name of the field of `message` that is set or whose list changes."""
    operation: c.Operation


def typed_operations(fields: c.Fields | None) -> Iterator[TypedOperation]:
    """Yield `operations`, each with its field."""
    for message, name, change, address, _ in () if fields is None else _walk(Model, fields):
        if type(change) is c.Replace:
            plan = c.plans(message).get(name)
            repeated = plan is None or plan.field.repeated
            old, new = [None if c.is_absent(each, repeated=repeated) else each for each in (change.old, change.new)]
            yield TypedOperation(message, name, c.Set(address, old, new))
        elif type(change) is c.Members and change.sequence is not None:
            yield TypedOperation(message, name, c.ListChange(address, change.sequence, change.removed))


def units(fields: c.Fields | None) -> Iterator[c.Unit]:
    """Yield every difference once; see `Unit`."""
    for message, name, change, base, target in () if fields is None else _walk(Model, fields):
        if type(change) is c.Replace:
            yield c.Unit("set", base, target)
        elif type(change) is c.Members and change.sequence is not None:
            yield from _additions_and_removals(change, c.plans(message)[name], base, target)


def _additions_and_removals(change: c.Members, plan: c.FieldPlan, base: str, target: str) -> Iterator[c.Unit]:
    assert change.sequence is not None
    if not c.keeps_order(change.sequence):
        yield c.Unit("order", base, target)
    added = {place: item for place, item in c.with_positions(change.sequence) if isinstance(item, Record)}
    for name in segments(change.removed, plan.is_named):
        yield c.Unit("remove", f"{base}/{name}", None)
    for name in segments(added, plan.is_named):
        yield c.Unit("add", None, f"{target}/{name}")


def segments(members: dict[int, Record], is_named: bool) -> Iterator[str]:
    """Yield the address segments of members by position; attributes of a node by name where that is unique."""
    if not is_named:
        for position in members:
            yield str(position)
        return
    names = [member.name for member in members.values() if isinstance(member, Attribute)]
    for (position, _), name in zip(members.items(), names, strict=True):
        is_unique = name is not None and not name.startswith("#") and names.count(name) == 1
        yield c.segment(name if is_unique and name is not None else position, is_named=True)


def change_at(fields: c.Fields | None, address: str) -> c.Change | None:
    """Return the change of the element at an address of the base, or of all of a value around it; None for none."""
    change: c.Change | None = fields
    for part in parse_address(address):
        if type(change) is c.Fields:
            change = change.changes.get(part)
        elif type(change) is c.Members:
            key = part.removeprefix("#")
            change = change.changes.get(part) or (change.changes.get(int(key)) if key.isdigit() else None)
        else:
            break
    return change


class AddressMap:
    """Translates addresses of the base to addresses of the target, by one tree of changes."""

    def __init__(self, fields: c.Fields | None) -> None:
        self._fields = fields
        self._positions: dict[int, c.Positions] = {}

    def after(self, address: str) -> str | None:
        """Return the new address of an element, None if it is removed; raise AddressError if none can exist."""
        passed: list[str] = []
        change: c.Change | None = self._fields
        message: type[Record] | None = Model
        plan: c.FieldPlan | None = None
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
                if type(change) is c.Replace and not _has_item(change.new, name):
                    return None
                continue
            plan = _field(message, name, address)
            passed.append(name)
            change = change.changes.get(name) if type(change) is c.Fields else None
            message = None if plan is None or plan.is_list else plan.field.message
            if type(change) is c.Replace:
                repeated = plan is None or plan.field.repeated
                if (message is not None or not repeated) and c.is_absent(change.new, repeated=repeated):
                    return None
                if c.is_absent(change.old, repeated=repeated) and not repeated:
                    return None
        return format_address(passed)

    def _member(self, name: str, change: c.Change | None, plan: c.FieldPlan) -> tuple[str | None, c.Change | None]:
        """Return the segment of a member afterwards, None if it is removed, and the change of the member."""
        by_name = plan.is_named and not name.startswith("#")
        key: int | str = name if by_name else int(_digits(name.removeprefix("#") if plan.is_named else name))
        if type(change) is not c.Members:
            return name, None
        below = change.changes.get(key)
        if change.sequence is None:
            return name, below
        if isinstance(key, str):
            is_removed = any(isinstance(each, Attribute) and each.name == key for each in change.removed.values())
            return (None if is_removed else name), below
        known = self._positions.get(id(change))
        if known is None:
            known = self._positions[id(change)] = c.Positions(change.sequence)
        position = known.after(key)
        if position is None:
            return None, None
        return (f"#{position}" if plan.is_named else str(position)), below


def _field(message: type[Record], name: str, address: str) -> c.FieldPlan | None:
    plan = c.plans(message).get(name)
    if plan is None and name != "unknown_fields":
        raise AddressError(f'"{address}" is not an address of a model: {message.__name__} has no field "{name}"')
    return plan


def _digits(text: str) -> str:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise AddressError(f'"{text}" is not a position in a list')
    return text


def _has_item(value: object, position: str) -> bool:
    return isinstance(value, tuple) and position.isascii() and position.isdigit() and int(position) < len(value)


def selected(fields: c.Fields | None, wanted: Wanted) -> c.Fields | None:
    """Return the change that consists of some units of a change; None if it has none of them.

    An added member follows the member that precedes it in the target; a member that is no longer removed keeps its
    place. The result is a valid change of the base, but not necessarily one that leads to a valid model.
    """
    return None if fields is None else _fields(Model, fields, wanted, "", "")


def _fields(message: type[Record], fields: c.Fields, wanted: Wanted, base: str, target: str) -> c.Fields | None:
    kept: dict[str, c.Change] = {}
    for name, change in fields.changes.items():
        base_address, target_address = f"{base}/{name}", f"{target}/{name}"
        kept_change: c.Change | None
        if type(change) is c.Replace:
            kept_change = change if c.Unit("set", base_address, target_address) in wanted else None
        else:
            plan = c.plans(message)[name]
            assert plan.field.message is not None
            if type(change) is c.Fields:
                kept_change = _fields(plan.field.message, change, wanted, base_address, target_address)
            else:
                assert type(change) is c.Members
                kept_change = _members(plan, change, wanted, base_address, target_address)
        if kept_change is not None:
            kept[name] = kept_change
    return c.Fields(kept) if kept else None


def _members(plan: c.FieldPlan, members: c.Members, wanted: Wanted, base: str, target: str) -> c.Members | None:
    assert plan.field.message is not None
    positions = None if members.sequence is None else c.Positions(members.sequence)
    changes: dict[int | str, c.Fields] = {}
    for key, member in members.changes.items():
        after = key if positions is None or isinstance(key, str) else positions.after(key)
        assert after is not None
        here, there = [c.segment(each, is_named=plan.is_named) for each in (key, after)]
        found = _fields(plan.field.message, member, wanted, f"{base}/{here}", f"{target}/{there}")
        if found is not None:
            changes[key] = found
    if members.sequence is not None:
        sequence, removed = _sequence(plan, members.sequence, members.removed, wanted, base, target)
        if not c.is_identity(sequence, removed):
            return c.Members(sequence, removed, changes)
    return c.Members(None, {}, changes) if changes else None


def _sequence(
    plan: c.FieldPlan, sequence: c.Sequence, removed: dict[int, Record], wanted: Wanted, base: str, target: str
) -> tuple[c.Sequence, dict[int, Record]]:
    names = segments(removed, plan.is_named)
    gone = {
        position: member
        for (position, member), name in zip(removed.items(), names, strict=True)
        if c.Unit("remove", f"{base}/{name}", None) in wanted
    }
    added = {place: item for place, item in c.with_positions(sequence) if isinstance(item, Record)}
    new = {
        place
        for place, name in zip(added, segments(added, plan.is_named), strict=True)
        if c.Unit("add", None, f"{target}/{name}") in wanted
    }
    ranks: dict[int, int] = {}  # members that stay, in the order of the target
    following: dict[int, list[Record]] = {}
    last = _BEFORE_ALL
    for place, item in c.with_positions(sequence):
        if isinstance(item, Record):
            if place in new:
                following.setdefault(last, []).append(item)
            continue
        for position in item:
            ranks[position] = len(ranks)
            last = position
    order = [position for position in range(c.base_length(sequence, removed)) if position not in gone]
    if not c.keeps_order(sequence) and c.Unit("order", base, target) in wanted:
        rank, places = _BEFORE_ALL, {}
        for position in order:
            rank = ranks.get(position, rank)
            places[position] = rank, position
        order.sort(key=places.__getitem__)
    items: list[range | Record] = [*following.get(_BEFORE_ALL, ())]
    for position in order:
        items += [range(position, position + 1), *following.get(position, ())]
    return c.join_runs(items), gone
