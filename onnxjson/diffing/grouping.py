"""From single changes to events: what is of one kind and pattern is one event, with a member for each place."""

from collections.abc import Collection, Hashable, Iterable
from typing import Final, NamedTuple

from onnxjson.diffing.changes import Change
from onnxjson.diffing.events import Event, Kind, Member
from onnxjson.diffing.regions import Region

REWRITES: Final[frozenset[Kind]] = frozenset({
    "inserted", "eliminated", "folded", "fused", "decomposed", "replaced", "merged", "dead-code-removed", "quantized",
    "cast-inserted", "layout-changed", "function-inlined", "function-outlined",
})  # fmt: skip
"""Kinds of events that take nodes away or bring new ones; a proof can tell whether they changed results."""

_RANKS: Final[dict[Kind, int]] = {
    "opset-changed": 0,
    "io-changed": 1,
    "weights-changed": 3,
    "weights-re-laid": 3,
    "retyped": 3,
    "reshaped": 3,
    "value-info-changed": 4,
    "storage-changed": 5,
    "renamed": 6,
    "reordered": 7,
    "metadata-changed": 8,
    "info-changed": 8,
    "field-changed": 9,
}
"""Where events of a kind stand among the others; all others have 2 and stand in the order of the graph."""


class Grouped(NamedTuple):
    """The events of a diff, with what belongs to them."""

    events: tuple[Event, ...]
    regions: dict[tuple[int, int], Region]
    """By the number of the event and of its member."""
    numbers: dict[int, int]
    """By the identity of a change, the number of its event; what is ignored is not there."""
    changes: tuple[Change, ...]
    """Kept, since `numbers` goes by identity."""


def group(changes: Iterable[Change], ignore: Collection[str]) -> Grouped:
    """The events of all changes that are not consequences of others."""
    kept = [change for change in changes if change.into is None and not _is_ignored(change, ignore)]
    groups: dict[tuple[Kind, str, Hashable], list[Change]] = {}
    for change in kept:
        groups.setdefault((change.kind, change.pattern, change.key), []).append(change)
    for members in groups.values():
        members.sort(key=lambda change: (change.order, change.base, change.target))
    ordered = sorted(groups.items(), key=lambda each: (_RANKS.get(each[0][0], 2), each[1][0].order, each[0][:2]))
    events, regions, numbers = [], {}, {}
    for number, ((kind, pattern, _), members) in enumerate(ordered):
        events.append(
            Event(
                kind,
                pattern,
                tuple([_member(change) for change in members]),
                "not-run" if any(isinstance(change.region, Region) for change in members) else None,
            )
        )
        for place, change in enumerate(members):
            numbers[id(change)] = number
            if isinstance(change.region, Region):
                regions[number, place] = change.region
    return Grouped(tuple(events), regions, numbers, tuple(kept))


def _member(change: Change) -> Member:
    return Member(change.base, change.target, change.place, change.details, change.count)


def _is_ignored(change: Change, ignore: Collection[str]) -> bool:
    if not ignore:
        return False
    match change.kind:
        case "renamed":
            return "names" in ignore
        case "reordered":
            return "order" in ignore
        case "weights-changed" | "weights-re-laid":
            return "weights" in ignore
        case "metadata-changed":
            return ("docs" if "doc" in change.pattern else "metadata") in ignore
        case _:
            return False
