"""Derive the tree of changes between two models, apply one completely or not at all, invert it, report what misfits.

Records that are the same object are never entered, so a small edit of a big model costs a comparison of tuples.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Listing
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeVar

from msgspec.structs import astuple, replace

from onnxjson.codecs.tensor_text import sha256_of
from onnxjson.model import document as d
from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Attribute, Record
from onnxjson.model.dtypes import float32_text
from onnxjson.model.errors import PatchError
from onnxjson.model.messages import FIELDS, Kind
from onnxjson.model.payloads import Payload
from onnxjson.patching import changes as c
from onnxjson.patching.changes import Change, FieldPlan, Fields, Members, Replace, plans, sequence_of

Pairs = Mapping[str, Listing[tuple[int, int]]]
"""Address of a list in the base -> positions in base and target of counterparts."""

_NO_PAIRS: Final[Pairs] = {}

_name: Final = attrgetter("name")

KEYS: Final[dict[type[d.Record], Callable[[Any], Any]]] = {
    **dict.fromkeys((d.ValueInfo, d.Tensor, d.Graph, d.Attribute, d.DeviceConfiguration), _name),
    **dict.fromkeys((d.StringStringEntry, d.IntIntListEntry), attrgetter("key")),
    **dict.fromkeys((d.TensorAnnotation, d.ShardingSpec), attrgetter("tensor_name")),
    d.NodeDeviceConfiguration: attrgetter("configuration_id"),
    d.ShardedDim: attrgetter("axis"),
    d.OperatorSetId: lambda entry: entry.domain or "",
    d.Node: lambda node: node.name or node.output,
    d.SparseTensor: lambda tensor: tensor.values and tensor.values.name,
    d.Function: lambda function: (function.domain or "", function.name, function.overload or ""),
}
"""The key by which members of a list without pairs are recognised, by message."""

R = TypeVar("R", bound=Record)

_ONEOFS: dict[type[Record], tuple[str, ...]] = {
    message: names for message, fields in FIELDS.items() if (names := tuple(each.name for each in fields if each.oneof))
}
"""The fields of a oneof, by message: a record sets at most one of them. No message has two oneofs."""

"""Start of every message about a patch that does not fit the model."""


def difference(base: d.Record, target: d.Record, address: str = "", pairs: Pairs = _NO_PAIRS) -> Fields | None:
    """Return the changes that turn one record into another of the same message; None if they are equal."""
    return None if base is target or base == target else _difference(base, target, address, pairs)


def _difference(base: d.Record, target: d.Record, address: str, pairs: Pairs) -> Fields | None:
    """`difference` of records that are not equal."""
    if isinstance(base, d.Type) and isinstance(target, d.Type) and not pairs:
        return _difference_of_types(base, target)
    return _changed_fields(base, target, address, pairs)


@lru_cache(1024)  # most values of a model have one of a few types
def _difference_of_types(base: d.Type, target: d.Type) -> Fields | None:
    return _changed_fields(base, target, "", _NO_PAIRS)


def _changed_fields(base: d.Record, target: d.Record, address: str, pairs: Pairs) -> Fields | None:
    changes: dict[str, Change] = {}
    for name, old, new in zip(base.__struct_fields__, astuple(base), astuple(target), strict=True):
        if old is new or old == new:
            continue
        plan = plans(type(base)).get(name)
        if plan is None or plan.field.message is None:
            changes[name] = Replace(old, new)
            continue
        below = f"{address}/{name}"
        change: Change | None
        if plan.is_list:
            change = _list_difference(old, new, plan, below, pairs)
        elif old is None or new is None:
            change = Replace(old, new)
        else:
            change = _difference(old, new, below, pairs)
        if change is not None:
            changes[name] = change
    return Fields(changes) if changes else None


def _list_difference(
    base: tuple[Any, ...], target: tuple[Any, ...], plan: FieldPlan, address: str, pairs: Pairs
) -> Members | None:
    given = pairs.get(address)
    names: list[str] | None = None
    if plan.is_named:
        names = attribute_segments(base)
        origins = _origins_by_name(base, target)
    elif given is not None:
        origins = _origins_by_pairs(given, len(base), len(target), address)
    else:
        message = plan.field.message
        assert message is not None
        origins = _origins_by_key(base, target, KEYS.get(message, lambda record: None))
    changes: dict[int | str, Fields] = {}
    for new, position in zip(target, origins, strict=True):
        if position < 0:
            continue
        old = base[position]
        if old is new or old == new:
            continue
        below = names[position] if names is not None else str(position)
        change = _difference(old, new, f"{address}/{escape(below) if names is not None else below}", pairs)
        if change is not None:
            changes[position if names is None or below.startswith("#") else below] = change
    if origins == list(range(len(base))):
        return Members(None, {}, changes) if changes else None
    kept = set(origins)
    removed = {position: base[position] for position in range(len(base)) if position not in kept}
    return Members(sequence_of(origins, target), removed, changes)


def _origins_by_pairs(given: Listing[tuple[int, int]], base: int, target: int, address: str) -> list[int]:
    """Return for each member of the target the position of its counterpart, -1 for none."""
    origins = [-1] * target
    taken = bytearray(base)
    for old, new in given:
        if not (0 <= old < base and 0 <= new < target) or taken[old] or origins[new] >= 0:
            raise ValueError(f"the pair ({old}, {new}) of {address} is out of range, or names a position twice")
        taken[old] = 1
        origins[new] = old
    return origins


def _origins_by_name(base: tuple[Any, ...], target: tuple[Any, ...]) -> list[int]:
    """Return the origins of the attributes of a node: if the number of attributes of one name differs, none stays."""
    if [each.name for each in base] == [each.name for each in target]:
        return list(range(len(base)))  # as for most nodes: the order stays, which takes no search
    old = _by_key(zip(range(len(base)), base, strict=True), _name)
    new = _by_key(zip(range(len(target)), target, strict=True), _name)
    origins = [-1] * len(target)
    for name, places in new.items():
        if name is None or name.startswith("#"):
            _pair(base, target, old.get(name, []), places, origins)
        elif len(old.get(name, ())) == len(places):
            for position, place in zip(old[name], places, strict=True):
                origins[place] = position
    return origins


def _origins_by_key(base: tuple[Any, ...], target: tuple[Any, ...], key: Callable[[Any], Any]) -> list[int]:
    """Return the origins of the members of any other list: by identity and equality from both ends, then by key."""
    if len(base) == len(target) and all(
        [old is new or key(old) == key(new) for old, new in zip(base, target, strict=True)]
    ):
        # The general search below has the same result, but is slower.
        return list(range(len(base)))
    start, stop = _alike(base, target, range(len(base)), range(len(target)))
    length = len(target)
    origins = [*range(start), *[-1] * (length - start - stop), *range(len(base) - stop, len(base))]
    middle = slice(start, len(base) - stop)
    old = _by_key(zip(range(*middle.indices(len(base))), base[middle], strict=True), key)
    places = range(start, length - stop)
    new = _by_key(zip(places, target[start : length - stop], strict=True), key)
    for name, found in new.items():
        if name in old:
            _pair(base, target, old[name], found, origins)
    return origins


def _alike(base: tuple[Any, ...], target: tuple[Any, ...], old: Listing[int], new: Listing[int]) -> tuple[int, int]:
    """Return the number of equal members at the start, and of the rest the number at the end."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and _same(base[old[start]], target[new[start]]):
        start += 1
    stop = 0
    while stop < shorter - start and _same(base[old[-1 - stop]], target[new[-1 - stop]]):
        stop += 1
    return start, stop


def _same(old: Any, new: Any) -> bool:
    return old is new or old == new


def _pair(base: tuple[Any, ...], target: tuple[Any, ...], old: list[int], new: list[int], origins: list[int]) -> None:
    """Pair members with the same key: equal ones from the start and the end, then the rest in order."""
    start, stop = _alike(base, target, old, new) if len(old) != len(new) else (0, 0)
    for position, place in zip(old[:start], new[:start], strict=True):
        origins[place] = position
    if stop:
        for position, place in zip(old[-stop:], new[-stop:], strict=True):
            origins[place] = position
    for position, place in zip(old[start : len(old) - stop], new[start : len(new) - stop], strict=False):
        origins[place] = position


def _by_key(members: Iterable[tuple[int, Any]], key: Callable[[Any], Any]) -> dict[Any, list[int]]:
    positions: dict[Any, list[int]] = {}
    for position, member in members:
        positions.setdefault(key(member), []).append(position)
    return positions


def apply_fields(record: R, fields: c.Fields, address: str = "") -> R:
    """Return `record` after its changes, or raise PatchError; it shares everything that they do not touch."""
    new_values: dict[str, Any] = {}
    for name, change in fields.changes.items():
        value = getattr(record, name)
        if type(change) is c.Replace:
            if value is not change.old and value != change.old:
                raise _field_mismatch(type(record), name, change.old, value, address)
            new_values[name] = change.new
            continue
        plan = c.plans(type(record))[name]
        if type(change) is c.Members:
            new_values[name] = apply_members(value, change, plan, f"{address}/{name}")
        elif value is None:
            raise inapplicable(f"{address}/{name}", "there is nothing to change")
        else:
            new_values[name] = apply_fields(value, change, f"{address}/{name}")  # type: ignore[arg-type]
    changed = replace(record, **new_values)
    _check_oneofs(changed, address)
    return changed


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
        actual = members[position]
        if actual is not member and actual != member:
            name = attribute_segments(members)[position] if plan.is_named else ""
            key: int | str = position if name.startswith("#") or not plan.is_named else name
            raise mismatch(f"{address}/{c.segment(key, is_named=plan.is_named)}", member, actual)


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


def mismatch(address: str, expected: object, actual: object, kind: Kind | None = None) -> PatchError:
    """Return the error for an unexpected value; for two records, it is about the first field that differs."""
    if isinstance(expected, Record) and type(expected) is type(actual):
        return _in_records(address, expected, actual)
    if isinstance(expected, tuple) and isinstance(actual, tuple) and any(isinstance(each, Record) for each in expected):
        if len(expected) != len(actual):
            return length_mismatch(address, len(expected), len(actual))
        place = next(place for place, (old, new) in enumerate(zip(expected, actual, strict=True)) if old != new)
        return mismatch(f"{address}/{place}", expected[place], actual[place])
    text = f"expected {describe_value(expected, kind)}, found {describe_value(actual, kind)}"
    return _not_fitting(address, text, expected, actual)


def _in_records(address: str, expected: Record, found: Record) -> PatchError:
    for name, old, new in zip(expected.__struct_fields__, astuple(expected), astuple(found), strict=True):
        if old is not new and old != new:
            return _field_mismatch(type(expected), name, old, new, address)
    raise AssertionError("the records are equal")


def _field_mismatch(message: type[Record], name: str, expected: object, actual: object, address: str) -> PatchError:
    plan = c.plans(message).get(name)
    repeated = plan is None or plan.field.repeated
    old, new = [None if c.is_absent(value, repeated=repeated) else value for value in (expected, actual)]
    return mismatch(f"{address}/{name}", old, new, None if plan is None else plan.field.kind)


def length_mismatch(address: str, expected: int, actual: int) -> PatchError:
    """Return the error for a list of unexpected length."""
    return _not_fitting(address, f"expected {counted(expected, 'member')}, found {actual:,}", expected, actual)


def inapplicable(address: str, reason: str) -> PatchError:
    """Return the error for a change that is impossible at an address, with the reason."""
    return _not_fitting(address, reason)


def _not_fitting(address: str, text: str, expected: object = None, actual: object = None) -> PatchError:
    sentence = f"{show_address(address)}: {text}"
    return PatchError(sentence, address, expected, actual, place="the patch does not fit")


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
