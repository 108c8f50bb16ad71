"""Part of a tree of changes: some of its units as a change of their own."""

from collections.abc import Container
from typing import Final

from onnxjson.model.document import Model, Record
from onnxjson.patching import changes as c
from onnxjson.patching.listing import segments

Wanted = Container[c.Unit]

_BEFORE_ALL: Final = -1


def selected(fields: c.Fields | None, wanted: Wanted) -> c.Fields | None:
    """Return the change that consists of some units of a change; None if it has none of them.

    An added member follows the member that precedes it in the target; a member that is no longer removed keeps its
    place. The result is a valid change of the base, but not necessarily one that leads to a valid model.
    """
    return None if fields is None else _fields(Model, fields, wanted, "", "")


def _fields(message: type[Record], fields: c.Fields, wanted: Wanted, base: str, target: str) -> c.Fields | None:
    kept: dict[str, c.Change] = {}
    for name, change in fields.changes.items():
        below, its = f"{base}/{name}", f"{target}/{name}"
        found: c.Change | None
        if type(change) is c.Replace:
            found = change if c.Unit("set", below, its) in wanted else None
        else:
            plan = c.plans(message)[name]
            assert plan.field.message is not None
            if type(change) is c.Fields:
                found = _fields(plan.field.message, change, wanted, below, its)
            else:
                assert type(change) is c.Members
                found = _members(plan, change, wanted, below, its)
        if found is not None:
            kept[name] = found
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
