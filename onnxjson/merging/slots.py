"""Slots of a merge: clashes with the values of all three models, and units, the changes that are accepted together.

Tensors in other files: all tensors that share a file are one slot, since both sides cannot write that file.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from onnxjson.diffing.line_changes import common_length
from onnxjson.model import document as d
from onnxjson.model.addresses import Slot, attribute_segments, escape
from onnxjson.model.walking import tensors_of
from onnxjson.patching.applying import apply_fields, apply_members
from onnxjson.patching.changes import Change, FieldPlan, Fields, Members, Replace, plans

T = TypeVar("T")

OURS: Final = 0
THEIRS: Final = 1

Both = tuple[Fields | None, Fields | None]
"""The changes that ours and theirs make to one record."""

_LISTS: Final[dict[type[d.Record], str]] = {
    d.Node: "node",
    d.Tensor: "initializer",
    d.SparseTensor: "sparse_initializer",
    d.ValueInfo: "value_info",
    d.TensorAnnotation: "quantization_annotation",
}


class Clash(msgspec.Struct):
    """A conflict before the merged model exists: at an address of the base and the path below it."""

    owner: str
    """The address, in the base, of a record that stays."""
    tail: str
    """The path below it in the merged model."""
    base: Any
    ours: Any
    theirs: Any
    key: str
    """Key of the unit (`Units`); conflicts of keys that were tied together get one id."""
    rank: tuple[int, ...] = ()
    """Order among clashes at one address."""


class Units:
    """Changes that become conflicts because they are incompatible; each has a key.

    A key is the address of a slot in the base, or, for a member that a side adds, ``LIST+SIDE.NUMBER``: the address of
    its list in the base, 0 for ours and 1 for theirs, and which of the added members it is.
    """

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}
        self._above: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._roots

    def tie(self, keys: list[str]) -> bool:
        """Make some units one conflict; return whether any of them is new."""
        new = False
        for key in keys:
            if key not in self._roots:
                self._roots[key] = key
                new = True
                place = key.partition("+")[0]
                while place:
                    self._above.add(place)
                    place = place.rpartition("/")[0]
                self._above.add("")
        first = self.root(keys[0])
        for key in keys[1:]:
            other = self.root(key)
            if other != first:
                first, other = min(first, other), max(first, other)
                self._roots[other] = first
        return new

    def root(self, key: str) -> str:
        """Key that represents all units tied to this one; the key itself if it is tied to none."""
        while (up := self._roots.get(key, key)) != key:
            key = up
        return key

    def has_below(self, address: str) -> bool:
        """Whether any unit is at an address or below it."""
        return address in self._above

    @property
    def keys(self) -> frozenset[str]:
        """All keys."""
        return frozenset(self._roots)


def added_key(address: str, side: int, number: int) -> str:
    """Key of a member that a side adds to the list at an address."""
    return f"{address}+{side}.{number}"


def value_after(old: Any, change: Change | None, plan: FieldPlan | None) -> Any:
    """Return the value of a field, or (without `plan`) a record, after a change."""
    if change is None:
        return old
    if type(change) is Replace:
        return change.new
    if type(change) is Fields:
        return apply_fields(old, change)
    assert plan is not None
    return apply_members(old, change, plan, "")  # type: ignore[arg-type]


def three_way(base: Any, ours: T, theirs: T) -> T:
    """Choose the side that changed a value; ours if both did."""
    return theirs if ours == base else ours


class _Span(NamedTuple):
    start: int
    stop: int
    items: tuple[Any, ...]


def _span(old: tuple[Any, ...], new: tuple[Any, ...]) -> _Span:
    start = common_length(old, new, 0, 0)
    end = common_length(old[start:][::-1], new[start:][::-1], 0, 0)
    return _Span(start, len(old) - end, new[start : len(new) - end])


def both_spans(old: tuple[Any, ...], ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the sequence with both changes; None if they touch each other."""
    first, second = _span(old, ours), _span(old, theirs)
    if first == second:
        return ours
    if (first.start, first.stop) > (second.start, second.stop):
        first, second = second, first
    if first.stop > second.start or (first.start, first.stop) == (second.start, second.stop):
        return None
    return (*old[: first.start], *first.items, *old[first.stop : second.start], *second.items, *old[second.stop :])


def rival_units(base: d.Model, changes: tuple[Fields | None, Fields | None]) -> Iterator[list[str]]:
    """Yield, for each file whose tensors both sides change in different ways, the units of these changes."""
    by_side: tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]] = ({}, {})
    for side, change in enumerate(changes):
        for location, key, value in () if change is None else _units(base, change, "", side):
            by_side[side].setdefault(location, {})[key] = value
    for location in sorted(by_side[0].keys() & by_side[1].keys()):
        our_units, their_units = [each[location] for each in by_side]
        values = [[(key.partition("+")[0], value) for key, value in each.items()] for each in (our_units, their_units)]
        if values[0] != values[1]:
            yield [*our_units, *their_units]


def _units(record: d.Record, fields: Fields, address: str, side: int) -> Iterator[tuple[str, str, Any]]:
    if isinstance(record, d.Tensor | d.Attribute):
        after = value_after(record, fields, None)
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
            names = {named.name: named for named in value} if plans(type(record))[name].is_named else {}
            for key, below in change.changes.items():
                member = names[key] if isinstance(key, str) else value[key]
                yield from _units(member, below, f"{at}/{escape(str(key))}", side)
            added = [added_member for added_member in change.sequence or () if isinstance(added_member, d.Record)]
            for number, new_member in enumerate(added):
                for tensor in _external(new_member):
                    yield _location(tensor), added_key(at, side, number), new_member


def _external(record: d.Record) -> list[d.Tensor]:
    return [tensor for tensor in tensors_of(record) if tensor.external_data]


def _location(tensor: d.Tensor) -> str:
    return next((entry.value or "" for entry in tensor.external_data if entry.key == "location"), "")


def wrapped(value: Any, slot: Slot) -> tuple[d.Model, str] | None:
    """Wrap a record with names in a model; return it and the address of the record, or None for other values."""
    below = ""
    match value:
        case d.Function():
            return d.Model(functions=(value,)), "/functions/0"
        case d.TrainingInfo():
            return d.Model(graph=d.Graph(), training_info=(value,)), "/training_info/0"
        case d.StringStringEntry() if slot.message is d.TensorAnnotation:
            value = d.TensorAnnotation(quant_parameter_tensor_names=(value,))
            below = "/quant_parameter_tensor_names/0"
        case d.Attribute():
            below = f"/attribute/{escape(attribute_segments((value,))[0])}"
            value = d.Node(attribute=(value,))
        case d.Graph():
            value, below = d.Node(attribute=(d.Attribute(name="g", g=value),)), "/attribute/g/g"
    field = _LISTS.get(type(value))
    if field is None:
        return None
    return d.Model(graph=msgspec.structs.replace(d.Graph(), **{field: (value,)})), f"/graph/{field}/0{below}"
