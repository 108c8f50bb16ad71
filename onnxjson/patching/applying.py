"""A tree of changes and a model -> the model after them; all at once, or a refusal."""

from collections.abc import Sequence as Listing
from typing import Any, TypeVar

from msgspec.structs import replace

from onnxjson.addresses import attribute_segments
from onnxjson.display import counted
from onnxjson.document import Attribute, Record
from onnxjson.errors import PatchError
from onnxjson.messages import FIELDS
from onnxjson.patching.changes import FieldPlan, Fields, Members, Replace, is_absent, plans, segment
from onnxjson.patching.refusals import refusal, unfit, wrong_length
from onnxjson.patching.sequences import base_length

R = TypeVar("R", bound=Record)


def applied(record: R, fields: Fields, address: str = "") -> R:
    """`record`, which stands at `address`, after its changes; it shares all that they do not touch.

    Raises:
        PatchError: something is not what the changes say it was; or the result would hold two members of a oneof.
    """
    found: dict[str, Any] = {}
    for name, change in fields.changes.items():
        value = getattr(record, name)
        if type(change) is Replace:
            if value is not change.old and value != change.old:
                raise _refused_value(record, name, change, f"{address}/{name}")
            found[name] = change.new
            continue
        plan = plans(type(record))[name]
        if type(change) is Members:
            found[name] = members_applied(value, change, plan, f"{address}/{name}")
        elif value is None:
            raise unfit(f"{address}/{name}", "nothing stands there that could be changed")
        else:
            found[name] = applied(value, change, f"{address}/{name}")  # type: ignore[arg-type]
    result = replace(record, **found)
    _check_oneofs(result, address)
    return result


def _refused_value(record: Record, name: str, change: Replace, address: str) -> PatchError:
    plan = plans(type(record)).get(name)
    repeated = plan is None or plan.field.repeated
    found = getattr(record, name)
    expected, value = [None if is_absent(each, repeated=repeated) else each for each in (change.old, found)]
    return refusal(address, expected, value, None if plan is None else plan.field.kind)


def members_applied(members: tuple[Any, ...], change: Members, plan: FieldPlan, address: str) -> tuple[Any, ...]:
    """The list at `address` after its changes."""
    changed: Listing[Any] = members
    if change.changes:
        changed = list(members)
        names = attribute_segments(members) if plan.is_named else None
        for key, below in change.changes.items():
            position = _position(key, len(members), names, address)
            place = f"{address}/{segment(key, is_named=plan.is_named)}"
            changed[position] = applied(members[position], below, place)
            if plan.is_named and changed[position].name != members[position].name:
                raise unfit(f"{place}/name", "an attribute is addressed by its name, so that it cannot change")
    if change.sequence is None:
        return tuple(changed)
    _check_removed(members, change, plan, address)
    result: list[Any] = []
    for item in change.sequence:
        if type(item) is range:
            result += changed[item.start : item.stop]
        else:
            result.append(item)
    if plan.is_named:
        _check_names(members, change, address)
    return tuple(result)


def _position(key: int | str, count: int, names: list[str] | None, address: str) -> int:
    if isinstance(key, str):
        if names is None or key not in names or key.startswith("#"):
            place = f"{address}/{segment(key, is_named=True)}"
            raise unfit(place, "there is no attribute of that name, or there are several")
        return names.index(key)
    place = f"{address}/{segment(key, is_named=names is not None)}"
    if key >= count:
        raise unfit(place, f"the list has {counted(count, 'member')}")
    if names is not None and not names[key].startswith("#"):
        raise unfit(place, "this attribute has a name of its own, by which a patch addresses it")
    return key


def _check_removed(members: tuple[Any, ...], change: Members, plan: FieldPlan, address: str) -> None:
    """The list is as long as the sequence says, and what goes is what stands there."""
    assert change.sequence is not None
    length = base_length(change.sequence, change.removed)
    if len(members) != length:
        raise wrong_length(address, length, len(members))
    for position, member in change.removed.items():
        found = members[position]
        if found is not member and found != member:
            name = attribute_segments(members)[position] if plan.is_named else ""
            key: int | str = position if name.startswith("#") or not plan.is_named else name
            raise refusal(f"{address}/{segment(key, is_named=plan.is_named)}", member, found)


def _check_names(members: tuple[Attribute, ...], change: Members, address: str) -> None:
    """A name that comes or goes is not the name of an attribute that stays (see `changes`)."""
    assert change.sequence is not None
    moving = {item.name for item in change.sequence if isinstance(item, Attribute)}
    moving |= {member.name for member in change.removed.values() if isinstance(member, Attribute)}
    for position, member in enumerate(members):
        name = member.name
        if name in moving and name is not None and not name.startswith("#") and position not in change.removed:
            place = f"{address}/{segment(name, is_named=True)}"
            raise unfit(place, "an attribute of this name stays, and another comes or goes")


_ONEOFS: dict[type[Record], tuple[str, ...]] = {
    message: names for message, fields in FIELDS.items() if (names := tuple(each.name for each in fields if each.oneof))
}
"""The fields of which one record holds one at most; no message has two such groups."""


def _check_oneofs(record: Record, address: str) -> None:
    names = _ONEOFS.get(type(record))
    if names is not None:
        held = [name for name in names if getattr(record, name) is not None]
        if len(held) > 1:
            raise unfit(address, f"only one of {' and '.join(held)} can stand")
