"""Single changes while they are found, and the ledger that says which differences each of them explains.

A `Change` becomes one member of one event. What it explains is claimed by address: a claim holds for what stands at
that address and below, unless something below is claimed by another change. One change can turn out to be a
consequence of another (``into``); then that one explains all that this one claimed.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Final

import msgspec

from onnxjson.diffing.events import Detail, Kind
from onnxjson.patching.changes import Unit

EXAMPLES: Final = 100
"""Places that a change with many of one kind (renames, metadata of nodes) tells one by one."""

ORDER: Final = "#order"
"""Follows the address of a list in a claim of the order of its members."""


class Change(msgspec.Struct, eq=False):
    """One member of an event, not grouped yet."""

    kind: Kind
    pattern: str
    base: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    place: str = ""
    details: tuple[Detail, ...] = ()
    key: Hashable = None
    """Changes of one kind and pattern are members of one event only where this is equal, too."""
    order: tuple[int, ...] = ()
    """Where it stands among the others: the number of its graph, then the position there."""
    region: object | None = None
    """The `onnxjson.diffing.regions.Region`, where there is one."""
    into: "Change | None" = None
    """The change whose consequence this is."""
    count: int = 1
    """How many places it stands for."""

    def cause(self) -> "Change":
        """The change that explains what this one claims."""
        found = self
        while found.into is not None:
            found = found.into
        return found


class Ledger:
    """All changes of a diff, and what each of them explains."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._base: dict[str, Change] = {}
        self._target: dict[str, Change] = {}
        self._fallbacks: list[Callable[[Unit], Change | None]] = []

    def add(self, change: Change, base: Iterable[str] = (), target: Iterable[str] = ()) -> Change:
        """A new change, with what it explains: addresses in the base, and of what was added, in the target."""
        self.changes.append(change)
        self.claim(change, base, target)
        return change

    def claim(self, change: Change, base: Iterable[str] = (), target: Iterable[str] = ()) -> None:
        """What a change explains, as far as no other has claimed it."""
        for address in base:
            self._base.setdefault(address, change)
        for address in target:
            self._target.setdefault(address, change)

    def take(self, change: Change, base: Iterable[str]) -> None:
        """The same, whoever has claimed it before."""
        for address in base:
            self._base[address] = change

    def claimed(self, address: str, side: int = 0) -> Change | None:
        """The change that claimed exactly this address of the base (0) or the target (1)."""
        found = (self._target if side else self._base).get(address)
        return None if found is None else found.cause()

    def add_fallback(self, find: Callable[[Unit], Change | None]) -> None:
        """Something that knows what explains units nobody claimed: changes at so many places that no list is kept."""
        self._fallbacks.append(find)

    def explains(self, unit: Unit) -> Change | None:
        """The change that explains a unit of the patch."""
        found: Change | None = None
        if unit.base is not None:
            start = unit.base + ORDER if unit.kind == "order" else unit.base
            found = _nearest(self._base, start)
        elif unit.target is not None:
            found = _nearest(self._target, unit.target)
        for fallback in self._fallbacks:
            if found is not None:
                break
            found = fallback(unit)
        return None if found is None else found.cause()


def _nearest(claims: dict[str, Change], address: str) -> Change | None:
    while address:
        found = claims.get(address)
        if found is not None:
            return found
        address = address.removesuffix(ORDER) if address.endswith(ORDER) else address.rpartition("/")[0]
    return None


def one_sided(side: int, address: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The addresses in base and target of what only one side (0 or 1) has."""
    return ((), (address,)) if side else ((address,), ())


def one_sided_detail(side: int, what: str, text: str | None, other: str | None = None) -> Detail:
    """A detail about what only one side (0 or 1) has; `other` is what the other side has instead."""
    return Detail(what, other, text) if side else Detail(what, text, other)


def some(details: list[Detail], count: int, noun: str) -> tuple[Detail, ...]:
    """The first details of many, and how many there are besides."""
    shown = details[:EXAMPLES]
    more = count - len(shown)
    return (*shown, Detail(f"and {more:,} more {noun}")) if more > 0 else tuple(shown)
