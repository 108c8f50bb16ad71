"""The tree of changes in a patch: changes of fields, of records, and of lists of records.

A tree contains the old and the new value of every place it touches. So applying, inverting, composing and following an
address are short recursions, and only applying needs a model. Values are represented as in records
(`onnxjson.model.document`): an absent field is None, or ``()`` or ``b""`` if it is repeated.

A member of the ``attribute`` list of a node is addressed by its name where that is unique. Such a list follows one
rule: a name that is added or removed is not the name of a member that stays. So the address of a member that stays is
the same before and after, and a name that is added or removed once is unique.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from onnxjson.model.addresses import escape
from onnxjson.model.document import Node, Record
from onnxjson.model.messages import FIELDS, Field

ABSENT: Final = None
"""The value in `Set` of an absent field, repeated or not."""

Sequence: TypeAlias = tuple[range | Record, ...]
"""A list after the change: runs of old positions, and new members."""


class Replace(msgspec.Struct, frozen=True, gc=False):
    """A field with a new value: a scalar, a whole repeated scalar, or a record that is added or removed."""

    old: Any
    new: Any


class Fields(msgspec.Struct, frozen=True, gc=False):
    """A record that stays, with the changes of its fields; at least one."""

    changes: "dict[str, Change]"


class Members(msgspec.Struct, frozen=True, gc=False):
    """A list of records: which members stay and where, which are added and removed, and how those that stay change."""

    sequence: Sequence | None
    """None if every member stays at its place. Each old position is in one run or in `removed`, exactly once."""
    removed: dict[int, Record]
    """The removed members by old position, ascending."""
    changes: "dict[int | str, Fields]"
    """Changes of the members that stay, by old position; in ``attribute`` of a node by name where that is unique."""


Change: TypeAlias = Replace | Fields | Members


class ExternalFile(msgspec.Struct, frozen=True):
    """A file with weights that the base or the target of a patch needs; a patch lists it and does not contain it."""

    location: str
    """Location in the tensors."""
    sha256: str | None = None
    """SHA-256 of the whole file; None if it could not be read."""
    side: str = "target"
    """``base`` or ``target``: which model needs it."""


class PatchRecord(msgspec.Struct, frozen=True, dict=True):
    """The contents of a patch, as they are stored; `onnxjson.Patch` has the operations."""

    root: Fields | None = None
    """The tree of changes; None for an empty patch."""
    base: str | None = None
    """Hexadecimal SHA-256 of the model it was made for, as SerializeToString writes it; None if not computed."""
    target: str | None = None
    """Hexadecimal SHA-256 of the result, computed in the same way; None if not computed."""
    external: tuple[ExternalFile, ...] = ()
    """Files with weights that the two models need."""


class Set(NamedTuple):
    """Operation: a field gets another value."""

    address: str
    """Address in the base."""
    old: Any
    """As in the record; `ABSENT` for an absent field."""
    new: Any


class ListChange(NamedTuple):
    """Operation: members of a list are added, removed or moved."""

    address: str
    """Address in the base."""
    sequence: Sequence
    removed: Mapping[int, Record]


Operation: TypeAlias = Set | ListChange


class Unit(NamedTuple):
    """One indivisible difference: every patch is a set of these."""

    kind: Literal["set", "add", "remove", "order"]
    base: str | None
    """Address of the field, the member or the list before; None if it is added."""
    target: str | None
    """Address of the same place afterwards; None if it is removed."""


class FieldPlan(NamedTuple):
    """How a patch treats a field of a message."""

    field: Field
    absent: Any
    """The value of the field in a record where it is absent."""
    is_list: bool
    """Whether it is a list of records."""
    is_named: bool
    """Whether its members are addressed by name where that is unique."""


@cache
def plans(message: type[Record]) -> dict[str, FieldPlan]:
    """Return the plan of each field of a message, in field order; ``unknown_fields`` is not included."""
    defaults = dict(zip(message.__struct_fields__, message.__struct_defaults__, strict=True))
    return {
        field.name: FieldPlan(
            field,
            defaults[field.name],
            field.repeated and field.message is not None,
            message is Node and field.name == "attribute",
        )
        for field in FIELDS[message]
    }


def is_absent(value: Any, *, repeated: bool) -> bool:
    """Whether this value means that the field is absent."""
    return value is None or (repeated and not len(value))


def changes_in_order(message: type[Record], fields: Fields) -> Iterator[tuple[str, Change]]:
    """Yield the changes of a record in the order of its fields."""
    changes = fields.changes
    if len(changes) == 1:
        yield from changes.items()
        return
    for name in message.__struct_fields__:
        if name in changes:
            yield name, changes[name]


def members_in_order(members: Members) -> list[tuple[int | str, Fields]]:
    """Return the changes of members: by position ascending, then by name."""
    return sorted(members.changes.items(), key=lambda each: (isinstance(each[0], str), each[0]))


def segment(key: int | str, *, is_named: bool) -> str:
    """Return the address segment, escaped, of a key of `Members.changes`."""
    if isinstance(key, str):
        return escape(key)
    return f"#{key}" if is_named else str(key)


def join_runs(items: Iterable[range | Record]) -> Sequence:
    """Return a sequence with adjacent runs joined and empty runs left out."""
    joined: list[range | Record] = []
    for item in items:
        if type(item) is range:
            if not item:
                continue
            last = joined[-1] if joined else None
            if type(last) is range and last.stop == item.start:
                joined[-1] = range(last.start, item.stop)
                continue
        joined.append(item)
    return tuple(joined)


def sequence_of(positions: Iterable[int], members: tuple[Record, ...]) -> Sequence:
    """Return the sequence of a list whose members had the old `positions`; -1 marks a new one, taken from `members`."""
    sequence: list[range | Record] = []
    start = stop = -1
    for place, position in enumerate(positions):
        if position >= 0 and position == stop:
            stop += 1
            continue
        if start >= 0:
            sequence.append(range(start, stop))
        if position < 0:
            start = stop = -1
            sequence.append(members[place])
        else:
            start, stop = position, position + 1
    if start >= 0:
        sequence.append(range(start, stop))
    return tuple(sequence)


def base_length(sequence: Sequence, removed: Mapping[int, Record]) -> int:
    """Number of members before."""
    return len(removed) + sum([item.stop - item.start for item in sequence if type(item) is range])


def target_length(sequence: Sequence) -> int:
    """Number of members afterwards."""
    return sum([item.stop - item.start if type(item) is range else 1 for item in sequence])


def is_identity(sequence: Sequence, removed: Mapping[int, Record]) -> bool:
    """Whether a sequence of joined runs leaves every member at its place."""
    if removed or len(sequence) > 1:
        return False
    return not sequence or (type(sequence[0]) is range and sequence[0].start == 0)


def keeps_order(sequence: Sequence) -> bool:
    """Whether the members that stay keep their order."""
    last = -1
    for item in sequence:
        if type(item) is range:
            if item.start < last:
                return False
            last = item.stop
    return True


def with_positions(sequence: Sequence) -> Iterator[tuple[int, range | Record]]:
    """Yield every item with the new position of its first member."""
    position = 0
    for item in sequence:
        yield position, item
        position += item.stop - item.start if type(item) is range else 1


def invert_sequence(sequence: Sequence, removed: Mapping[int, Record]) -> tuple[Sequence, dict[int, Record]]:
    """Return the sequence that undoes this one, and the members that it removes."""
    back: list[tuple[int, range | Record]] = list(removed.items())
    added: dict[int, Record] = {}
    for position, item in with_positions(sequence):
        if type(item) is range:
            back.append((item.start, range(position, position + item.stop - item.start)))
        else:
            added[position] = item
    back.sort(key=lambda each: each[0])
    return join_runs([item for _, item in back]), added


class Positions:
    """New positions of the members that stay."""

    __slots__ = ("_starts", "_targets")

    def __init__(self, sequence: Sequence) -> None:
        runs = sorted(
            [(item.start, item.stop, place) for place, item in with_positions(sequence) if type(item) is range]
        )
        self._starts = [start for start, _, _ in runs]
        self._targets = runs

    def after(self, position: int) -> int | None:
        """Return the new position of the member at an old position; None if it does not stay."""
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return None
        start, stop, place = self._targets[index]
        return place + position - start if position < stop else None
