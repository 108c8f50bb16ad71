"""The tree of changes that a patch is: what happens to a field, to a record, to a list of records.

A tree says of every place it touches what stood there and what stands there, so that applying, inverting, composing
and following an address are short recursions, and all but applying need no model. Values stand as records hold them
(`onnxjson.document`): None, or ``()`` or ``b""`` of a repeated field, is an absent one.

Members of the ``attribute`` list of a node have their name as address where it is unique. Such a list keeps to one
rule: a name that is added or removed is not the name of a member that stays. So every member that stays is addressed
in the same way before and after, and a name that is added or removed once is unique.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from onnxjson.addresses import escape
from onnxjson.document import Node, Record
from onnxjson.messages import FIELDS, Field

ABSENT: Final = None
"""What stands in `Set` for a field that is not there, a repeated one too."""


class Replace(msgspec.Struct, frozen=True, gc=False):
    """A field that has another value: a scalar, all of a repeated scalar, or a record that comes or goes."""

    old: Any
    new: Any


class Fields(msgspec.Struct, frozen=True, gc=False):
    """A record that stays, with what happens to its fields; never without any."""

    changes: "dict[str, Change]"


Sequence: TypeAlias = tuple[range | Record, ...]
"""A list after the change: runs of old positions, and members that are new."""


class Members(msgspec.Struct, frozen=True, gc=False):
    """A list of records: which stay and where, which come and go, and what happens to those that stay."""

    sequence: Sequence | None
    """None where every member stays at its place. The runs and `removed` have every old position exactly once."""
    removed: dict[int, Record]
    """The members that go, by old position, ascending."""
    changes: "dict[int | str, Fields]"
    """What happens to members that stay, by old position; in ``attribute`` of a node by name where that is unique."""


Change: TypeAlias = Replace | Fields | Members


class Set(NamedTuple):
    """One field gets another value."""

    address: str
    """In the base."""
    old: Any
    """As the record holds it; `ABSENT` where the field is not there."""
    new: Any


class ListChange(NamedTuple):
    """Members of a list come, go or move."""

    address: str
    """In the base."""
    sequence: Sequence
    removed: Mapping[int, Record]


Operation: TypeAlias = Set | ListChange


class Unit(NamedTuple):
    """One difference that cannot be divided: every patch is a set of these."""

    kind: Literal["set", "add", "remove", "order"]
    base: str | None
    """Of the field, the member or the list; None for what is added."""
    target: str | None
    """The same place afterwards; None for what is removed."""


class FieldPlan(NamedTuple):
    """What a patch has to know of a field."""

    field: Field
    absent: Any
    """What the record holds where the field is not there."""
    is_list: bool
    """Whether it holds several records."""
    is_named: bool
    """Whether its members are addressed by name where that is unique."""


@cache
def plans(message: type[Record]) -> dict[str, FieldPlan]:
    """The fields of a message that hold records or values, in their order; ``unknown_fields`` is not among them."""
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
    """Whether a field with this value is not there."""
    return value is None or (repeated and not len(value))


def in_order(message: type[Record], fields: Fields) -> Iterator[tuple[str, Change]]:
    """The changes of a record in the order of its fields."""
    changes = fields.changes
    if len(changes) == 1:
        yield from changes.items()
        return
    for name in message.__struct_fields__:
        if name in changes:
            yield name, changes[name]


def members_in_order(members: Members) -> list[tuple[int | str, Fields]]:
    """The changes of members: by position ascending, then by name."""
    return sorted(members.changes.items(), key=lambda each: (isinstance(each[0], str), each[0]))


def segment(key: int | str, *, is_named: bool) -> str:
    """The segment of an address, escaped, for a key of `Members.changes`."""
    if isinstance(key, str):
        return escape(key)
    return f"#{key}" if is_named else str(key)
