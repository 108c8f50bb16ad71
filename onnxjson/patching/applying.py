"""Apply a tree of changes to a model, completely or not at all; invert a tree; report where a patch does not fit."""

from collections.abc import Sequence as Listing
from typing import Any, Final, TypeVar

from msgspec.structs import astuple, replace

from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.model.addresses import attribute_segments
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Attribute, Record
from onnxjson.model.dtypes import float32_text
from onnxjson.model.errors import PatchError
from onnxjson.model.messages import FIELDS, Kind
from onnxjson.model.payloads import Payload
from onnxjson.patching import changes as c
from onnxjson.patching.factors import computed_from

R = TypeVar("R", bound=Record)


def apply_fields(record: R, fields: c.Fields, address: str = "") -> R:
    """Return `record` after its changes, or raise PatchError; it shares everything that they do not touch."""
    found: dict[str, Any] = {}
    for name, change in fields.changes.items():
        value = getattr(record, name)
        if type(change) is c.Replace:
            if value is not change.old and value != change.old:
                raise _field_mismatch(type(record), name, change.old, value, address)
            found[name] = computed_from(change.new, value)
            continue
        plan = c.plans(type(record))[name]
        if type(change) is c.Members:
            found[name] = apply_members(value, change, plan, f"{address}/{name}")
        elif value is None:
            raise inapplicable(f"{address}/{name}", "there is nothing to change")
        else:
            found[name] = apply_fields(value, change, f"{address}/{name}")  # type: ignore[arg-type]
    result = replace(record, **found)
    _check_oneofs(result, address)
    return result


def apply_members(members: tuple[Any, ...], change: c.Members, plan: c.FieldPlan, address: str) -> tuple[Any, ...]:
    """Return the list at `address` after its changes."""
    changed: Listing[Any] = members
    if change.changes:
        changed = list(members)
        names = attribute_segments(members) if plan.is_named else None
        for key, below in change.changes.items():
            position = _position(key, len(members), names, address)
            place = f"{address}/{c.segment(key, is_named=plan.is_named)}"
            changed[position] = apply_fields(members[position], below, place)
            if plan.is_named and changed[position].name != members[position].name:
                raise inapplicable(f"{place}/name", "an attribute is addressed by its name, so its name cannot change")
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
            place = f"{address}/{c.segment(key, is_named=True)}"
            raise inapplicable(place, "there is no attribute with that name, or more than one")
        return names.index(key)
    place = f"{address}/{c.segment(key, is_named=names is not None)}"
    if key >= count:
        raise inapplicable(place, f"the list has {counted(count, 'member')}")
    if names is not None and not names[key].startswith("#"):
        raise inapplicable(place, "this attribute has a unique name, so a patch must address it by name")
    return key


def _check_removed(members: tuple[Any, ...], change: c.Members, plan: c.FieldPlan, address: str) -> None:
    assert change.sequence is not None
    length = c.base_length(change.sequence, change.removed)
    if len(members) != length:
        raise length_mismatch(address, length, len(members))
    for position, member in change.removed.items():
        found = members[position]
        if found is not member and found != member:
            name = attribute_segments(members)[position] if plan.is_named else ""
            key: int | str = position if name.startswith("#") or not plan.is_named else name
            raise mismatch(f"{address}/{c.segment(key, is_named=plan.is_named)}", member, found)


def _check_names(members: tuple[Attribute, ...], change: c.Members, address: str) -> None:
    """Raise if a name that is added or removed is also the name of an attribute that stays (see `changes`)."""
    assert change.sequence is not None
    moving = {item.name for item in change.sequence if isinstance(item, Attribute)}
    moving |= {member.name for member in change.removed.values() if isinstance(member, Attribute)}
    for position, member in enumerate(members):
        name = member.name
        if name in moving and name is not None and not name.startswith("#") and position not in change.removed:
            place = f"{address}/{c.segment(name, is_named=True)}"
            raise inapplicable(place, "one attribute with this name stays, and another is added or removed")


_ONEOFS: dict[type[Record], tuple[str, ...]] = {
    message: names for message, fields in FIELDS.items() if (names := tuple(each.name for each in fields if each.oneof))
}
"""The fields of a oneof, by message: a record sets at most one of them. No message has two oneofs."""


def _check_oneofs(record: Record, address: str) -> None:
    names = _ONEOFS.get(type(record))
    if names is not None:
        held = [name for name in names if getattr(record, name) is not None]
        if len(held) > 1:
            raise inapplicable(address, f"only one of {' and '.join(held)} can be set")


def invert_fields(fields: c.Fields) -> c.Fields:
    """Return the tree that undoes the changes of a record."""
    return c.Fields({name: _invert_change(change) for name, change in fields.changes.items()})


def _invert_change(change: c.Change) -> c.Change:
    if type(change) is c.Replace:
        return c.Replace(change.new, change.old)
    if type(change) is c.Fields:
        return invert_fields(change)
    assert type(change) is c.Members
    if change.sequence is None:
        return c.Members(None, {}, {key: invert_fields(below) for key, below in change.changes.items()})
    positions = c.Positions(change.sequence)
    sequence, removed = c.invert_sequence(change.sequence, change.removed)
    changes: dict[int | str, c.Fields] = {}
    for key, below in change.changes.items():
        after = positions.after(key) if isinstance(key, int) else key
        assert after is not None  # only members that stay are changed
        changes[after] = invert_fields(below)
    return c.Members(sequence, removed, changes)


NOT_FITTING: Final = "the patch does not fit"
"""Start of every message about a patch that does not fit the model."""


def mismatch(address: str, expected: object, found: object, kind: Kind | None = None) -> PatchError:
    """Return the error for an unexpected value; for two records, it is about the first field that differs."""
    if isinstance(expected, Record) and type(expected) is type(found):
        return _in_records(address, expected, found)
    if isinstance(expected, tuple) and isinstance(found, tuple) and any(isinstance(each, Record) for each in expected):
        if len(expected) != len(found):
            return length_mismatch(address, len(expected), len(found))
        place = next(place for place, (old, new) in enumerate(zip(expected, found, strict=True)) if old != new)
        return mismatch(f"{address}/{place}", expected[place], found[place])
    text = f"expected {describe_value(expected, kind)}, found {describe_value(found, kind)}"
    return PatchError(f"{NOT_FITTING}: {show_address(address)}: {text}", address, expected, found)


def _in_records(address: str, expected: Record, found: Record) -> PatchError:
    for name, old, new in zip(expected.__struct_fields__, astuple(expected), astuple(found), strict=True):
        if old is not new and old != new:
            return _field_mismatch(type(expected), name, old, new, address)
    raise AssertionError("the records are equal")


def _field_mismatch(message: type[Record], name: str, expected: object, found: object, address: str) -> PatchError:
    plan = c.plans(message).get(name)
    repeated = plan is None or plan.field.repeated
    there, here = [None if c.is_absent(value, repeated=repeated) else value for value in (expected, found)]
    return mismatch(f"{address}/{name}", there, here, None if plan is None else plan.field.kind)


def length_mismatch(address: str, expected: int, found: int) -> PatchError:
    """Return the error for a list of unexpected length."""
    text = f"expected {counted(expected, 'member')}, found {found:,}"
    return PatchError(f"{NOT_FITTING}: {show_address(address)}: {text}", address, expected, found)


def inapplicable(address: str, reason: str) -> PatchError:
    """Return the error for a change that is impossible at an address, with the reason."""
    return PatchError(f"{NOT_FITTING}: {show_address(address)}: {reason}", address)


def show_address(address: str) -> str:
    """Return an address as text for a message."""
    return visible(address, 200) if address else "the model"


def describe_value(value: Any, kind: Kind | None = None) -> str:
    """Describe a value in a few words that are safe to print."""
    match value:
        case None:
            return "nothing"
        case Record():
            name = getattr(value, "name", None) or getattr(value, "key", None)
            return type(value).__name__ + (f' "{visible(name, 40)}"' if isinstance(name, str) else "")
        case str():
            return f'"{visible(value, 60)}"'
        case bytes() if kind is Kind.FLOAT and len(value) == 4:
            return float32_text(value)
        case bytes() if len(value) <= 16:
            return f"the byte{'s' * (len(value) > 1)} {value.hex()}" if value else "no bytes"
        case bytes() | Payload():
            return f"{len(value):,} bytes with the sha256 {sha256_of(value)[:12]}"
        case tuple():
            items = [describe_value(each, kind) for each in value[:8]]
            return "[" + ", ".join(items) + (f", ... {len(value):,} in all]" if len(value) > 8 else "]")
        case _:
            return str(value)
