"""Derive the tree of changes that turns one model into another.

Records that are the same object are never entered, so a small edit of a big model costs a comparison of tuples.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Listing
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from msgspec.structs import astuple

from onnxjson.model import document as d
from onnxjson.model.addresses import attribute_segments, escape
from onnxjson.patching.changes import Change, FieldPlan, Fields, Members, Replace, is_identity, plans, sequence_of

Pairs = Mapping[str, Listing[tuple[int, int]]]
"""Address of a list in the base -> positions in base and target of counterparts."""

_NO_PAIRS: Final[Pairs] = {}


def difference(base: d.Record, target: d.Record, address: str = "", pairs: Pairs = _NO_PAIRS) -> Fields | None:
    """Return the changes that turn one record into another of the same message; None if they are equal."""
    if base is target or base == target:
        return None
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
            change = difference(old, new, below, pairs)
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
        change = difference(old, new, f"{address}/{escape(below) if names is not None else below}", pairs)
        if change is not None:
            changes[position if names is None or below.startswith("#") else below] = change
    sequence = sequence_of(origins, target)
    kept = set(origins)
    removed = {position: base[position] for position in range(len(base)) if position not in kept}
    if is_identity(sequence, removed):
        return Members(None, {}, changes) if changes else None
    return Members(sequence, removed, changes)


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
    found: dict[Any, list[int]] = {}
    for position, member in members:
        found.setdefault(key(member), []).append(position)
    return found


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
