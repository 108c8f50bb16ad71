"""Single changes, the regions of rewrites, the ledger of what each change explains, and their grouping into events.

A `Change` becomes one member of one event. It claims the differences that it explains by address: a claim covers
the element at that address and everything below it, except what another change claims. A change can turn out to be a
consequence of another one (``into``), which then explains everything that the first one claimed.
"""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Final, NamedTuple

import msgspec

from onnxjson.diffing.events import KIND_PROPERTIES, Detail, Event, Kind, Member
from onnxjson.diffing.matching.alignment import GraphPair
from onnxjson.patching.changes import Unit

EXAMPLES: Final = 100
"""Maximum number of details of a change at many places (renames, metadata of nodes)."""

ORDER: Final = "#order"
"""Suffix of the address of a list in a claim for the order of its members."""

Place = tuple[int, int]
"""Numbers of an event and of one of its members."""


class Region(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A part of one graph and the part of the other that replaces it; one of them may have no nodes.

    Replacing the base nodes by the target nodes, with inputs and outputs connected pair by pair, turns one graph into
    the other at this place.
    """

    pair: GraphPair
    """The graphs of the nodes; the names below are names in these graphs."""
    base: tuple[int, ...]
    """Positions of nodes, in the order of the graph."""
    target: tuple[int, ...]
    inputs: tuple[tuple[str | None, str | None], ...]
    """Values from outside that either side consumes, with their counterparts; None for no counterpart."""
    outputs: tuple[tuple[str, str], ...]
    """Values that are consumed outside: a name in the base, and the name that replaces it in the target.

    Each is produced by a node of its side, is one of `inputs` (a value that is passed through), or is a constant.
    """
    base_constants: tuple[str, ...]
    """Initializers and outputs of Constant nodes that the base nodes consume, or that are in `outputs`."""
    target_constants: tuple[str, ...]

    def nodes(self, side: int) -> tuple[int, ...]:
        """Return the positions of the nodes of the base (0) or the target (1)."""
        return self.target if side else self.base

    def constants(self, side: int) -> tuple[str, ...]:
        """Return the constants of the base (0) or the target (1)."""
        return self.target_constants if side else self.base_constants


class Change(msgspec.Struct, eq=False):
    """One member of an event, before grouping."""

    kind: Kind
    pattern: str
    base: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    place: str = ""
    details: tuple[Detail, ...] = ()
    key: Hashable = None
    """Changes of one kind and pattern are members of one event only if this key is also equal."""
    order: tuple[int, ...] = ()
    """Sort key among the members of an event: the number of its graph, then the position there."""
    region: Region | None = None
    """The rewritten nodes, for a rewrite."""
    into: "Change | None" = None
    """The change of which this one is a consequence."""
    count: int = 1
    """Number of places in this change."""

    def cause(self) -> "Change":
        """Return the change that explains everything that this one claims."""
        change = self
        while change.into is not None:
            change = change.into
        return change


class Ledger:
    """All changes of a diff, and the differences that each of them explains."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._base: dict[str, Change] = {}
        self._target: dict[str, Change] = {}
        self.fallback: Callable[[Unit], Change | None] = lambda unit: None
        """Explains units that no change claims: for changes at too many places to list each one."""

    def add(self, change: Change, base: Iterable[str] = (), target: Iterable[str] = ()) -> Change:
        """Add a change with its claims: addresses in the base, and in the target for added elements."""
        self.changes.append(change)
        self.claim(change, base, target)
        return change

    def report(
        self,
        kind: Kind,
        pattern: str,
        base: str | None,
        target: str | None,
        details: Iterable[Detail] = (),
        *,
        place: str | None = "",
        order: tuple[int, ...] = (-1,),
        fields: Iterable[str] = ("",),
    ) -> Change:
        """Add the change of one element by its addresses, None where it is absent; it claims `fields` below them."""
        bases, targets = [() if address is None else (address,) for address in (base, target)]
        change = Change(kind, pattern, bases, targets, place or "", tuple(details), order=order)
        names = list(fields)
        claims = [[address + name for address in addresses for name in names] for addresses in (bases, targets)]
        return self.add(change, *claims)

    def claim(self, change: Change, base: Iterable[str] = (), target: Iterable[str] = ()) -> None:
        """Claim addresses for a change, except those that another change has claimed."""
        for address in base:
            self._base.setdefault(address, change)
        for address in target:
            self._target.setdefault(address, change)

    def take(self, change: Change, base: Iterable[str]) -> None:
        """Claim addresses in the base for a change, even if another change has claimed them."""
        for address in base:
            self._base[address] = change

    def claimed(self, address: str, side: int = 0) -> Change | None:
        """Return the change that claimed exactly this address of the base (0) or the target (1)."""
        change = (self._target if side else self._base).get(address)
        return None if change is None else change.cause()

    def explains(self, unit: Unit) -> Change | None:
        """Return the change that explains a unit of the patch."""
        change: Change | None = None
        if unit.base is not None:
            start = unit.base + ORDER if unit.kind == "order" else unit.base
            change = _nearest(self._base, start)
        elif unit.target is not None:
            change = _nearest(self._target, unit.target)
        change = change or self.fallback(unit)
        return None if change is None else change.cause()


def _nearest(claims: dict[str, Change], address: str) -> Change | None:
    while address:
        found = claims.get(address)
        if found is not None:
            return found
        address = address.removesuffix(ORDER) if address.endswith(ORDER) else address.rpartition("/")[0]
    return None


def one_sided(side: int, address: str) -> tuple[str | None, str | None]:
    """Return the address in base and target of an element that only one side (0 or 1) has."""
    return (None, address) if side else (address, None)


def one_sided_addresses(side: int, address: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the addresses in base and target of an element that only one side (0 or 1) has."""
    return ((), (address,)) if side else ((address,), ())


def one_sided_detail(side: int, what: str, text: str | None, other: str | None = None) -> Detail:
    """Return a detail about an element that only one side (0 or 1) has; `other` is its replacement in the other."""
    return Detail(what, other, text) if side else Detail(what, text, other)


class Grouped(NamedTuple):
    """The events of a diff, with their regions and changes."""

    events: tuple[Event, ...]
    regions: dict[Place, Region]
    """Regions of rewrites."""
    places: dict[int, Place]
    """Numbers of the event and of its member by the identity of a change; ignored changes are left out."""
    changes: tuple[Change, ...]
    """All changes, kept alive since `places` uses their identity."""


def group(changes: Iterable[Change], ignore: Collection[str]) -> Grouped:
    """Group all changes that are not consequences of others into events."""
    kept = [change for change in changes if change.into is None and not _is_ignored(change, ignore)]
    groups: dict[tuple[Kind, str, Hashable], list[Change]] = {}
    for change in kept:
        groups.setdefault((change.kind, change.pattern, change.key), []).append(change)
    for members in groups.values():
        members.sort(key=lambda change: (change.order, change.base, change.target))
    events, regions, places = [], {}, {}
    for number, ((kind, pattern, _), members) in enumerate(sorted(groups.items(), key=_place_in_report)):
        listed = [Member(change.base, change.target, change.place, change.details, change.count) for change in members]
        events.append(
            Event(
                kind,
                pattern,
                tuple(listed),
                "not-run" if any(change.region is not None for change in members) else None,
            )
        )
        for place, change in enumerate(members):
            places[id(change)] = number, place
            if change.region is not None:
                regions[number, place] = change.region
    return Grouped(tuple(events), regions, places, tuple(kept))


def _place_in_report(group: tuple[tuple[Kind, str, Hashable], list[Change]]) -> tuple[Hashable, ...]:
    (kind, pattern, _), members = group
    return KIND_PROPERTIES[kind].order, members[0].order, kind, pattern


def _is_ignored(change: Change, ignore: Collection[str]) -> bool:
    word = KIND_PROPERTIES[change.kind].ignored_with
    if word == "metadata" and "doc" in change.pattern:
        word = "docs"
    return word in ignore
