"""What merging a slot gives: a value, and where the sides cannot be had both a conflict with the state of all three."""

from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.document import Record
from onnxjson.patching.applying import applied, members_applied
from onnxjson.patching.changes import Change, FieldPlan, Fields, Replace

OURS: Final = 0
THEIRS: Final = 1

Both = tuple[Fields | None, Fields | None]
"""What ours and theirs do to one record."""


class Clash(msgspec.Struct):
    """A conflict before the merged model is there: its place is a record of the base and what follows below it."""

    owner: str
    """The address, in the base, of a record that stays."""
    tail: str
    """What follows, as it will be in the merged model."""
    base: Any
    ours: Any
    theirs: Any
    key: str
    """Of the unit (`Units`); conflicts of keys that were tied together get one id."""
    rank: tuple[int, ...] = ()
    """Order among clashes at one place."""


class Units:
    """Which changes must not be taken as they are, since they do not go together; each by a key.

    A key is the address of a slot in the base, or, for a member that a side adds, ``LIST+SIDE.NUMBER``: the address of
    its list in the base, 0 for ours and 1 for theirs, and which of the added members it is.
    """

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}
        self._above: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._roots

    def __len__(self) -> int:
        return len(self._roots)

    def tie(self, keys: list[str]) -> bool:
        """Note that some units are one conflict; whether any of them was not known to be in one."""
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
        """The key that stands for all units tied to one; the key itself where it is tied to none."""
        while (up := self._roots.get(key, key)) != key:
            key = up
        return key

    def has_below(self, address: str) -> bool:
        """Whether a unit stands at an address or below it."""
        return address in self._above

    @property
    def keys(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self._roots)


def added_key(address: str, side: int, number: int) -> str:
    """The key of a member that a side adds to the list at an address."""
    return f"{address}+{side}.{number}"


def value_after(old: Any, change: Change | None, plan: FieldPlan | None) -> Any:
    """The value of a field after a change."""
    if change is None:
        return old
    if type(change) is Replace:
        return change.new
    if type(change) is Fields:
        return applied(old, change)
    assert plan is not None
    return members_applied(old, change, plan, "")  # type: ignore[arg-type]


def record_after(old: Record, changes: Fields | None) -> Any:
    """A record after its changes."""
    return old if changes is None else applied(old, changes)


class Span(NamedTuple):
    """A run of a sequence and what stands in its place."""

    start: int
    stop: int
    items: tuple[Any, ...]


def span(old: tuple[Any, ...], new: tuple[Any, ...]) -> Span:
    """The smallest run that differs."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return Span(start, len(old) - end, new[start : len(new) - end])


def both_spans(old: tuple[Any, ...], mine: tuple[Any, ...], its: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The sequence with both changes; None where they touch."""
    first, second = span(old, mine), span(old, its)
    if first == second:
        return mine
    if (first.start, first.stop) > (second.start, second.stop):
        first, second = second, first
    if first.stop > second.start or (first.start, first.stop) == (second.start, second.stop):
        return None
    return (*old[: first.start], *first.items, *old[first.stop : second.start], *second.items, *old[second.stop :])
