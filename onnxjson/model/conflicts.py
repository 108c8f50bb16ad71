"""Merge conflicts, as they are written in a text (docs/format.md, section 11b).

A conflict is a slot of the model with the value that it has in the base and on both sides. The model of the text has
what ours has. Conflicts with one id belong together: they are settled at once, or not at all.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from onnxjson.model.addresses import attribute_segments, format_address, parse_address, resolve
from onnxjson.model.display import listed, visible
from onnxjson.model.document import Model, Node, Record
from onnxjson.model.errors import AddressError, Conflict, ConflictError
from onnxjson.model.messages import FIELDS, Field, Kind

Choice = Literal["base", "ours", "theirs"]
"""The side whose value a slot gets."""

SIDES: Final[tuple[Choice, ...]] = ("base", "ours", "theirs")
"""All sides, in the order in which they are shown."""

_LARGEST: Final = 18
_SHOWN: Final = 3


class Slot(NamedTuple):
    """The record, field and member at an address of a model."""

    owner: tuple[str, ...]
    """The segments of the record that has the field."""
    message: type[Record]
    """The type of that record."""
    field: Field | None
    """None for `unknown_fields`, and for the model itself."""
    name: str
    """The name of the field; empty for the model itself."""
    member: str | None
    """The segment of one member, of a list of records or of strings; None for the whole field."""

    @property
    def is_record(self) -> bool:
        """Whether one record is there."""
        if self.field is None:
            return not self.name
        return self.field.message is not None and self.field.repeated == (self.member is not None)

    @property
    def list_address(self) -> str:
        """Return the address of the field."""
        return format_address((*self.owner, self.name)) if self.name else ""


def slot_at(at: str) -> Slot:
    """Return what an address refers to, by the table of messages alone.

    Raises:
        AddressError: no model can have a slot there.
    """
    segments = parse_address(at)
    owner: list[str] = []
    message: type[Record] = Model
    place = 0
    while place < len(segments):
        name = segments[place]
        fields = {field.name: field for field in FIELDS[message]}
        field = fields.get(name)
        if field is None and name != "unknown_fields":
            raise AddressError(f'"{visible(at)}" is no slot of a model: {message.__name__} has no "{visible(name)}"')
        rest = segments[place + 1 :]
        if not rest:
            return Slot(tuple(owner), message, field, name, None)
        is_many = field is not None and field.repeated
        if field is None or not (field.message or (is_many and field.kind is Kind.STRING)):
            raise AddressError(f'"{visible(at)}" is no slot of a model: nothing stands below {name}')
        if is_many:
            _check_member(at, rest[0], by_name=message is Node and name == "attribute")
            if len(rest) == 1:
                return Slot(tuple(owner), message, field, name, rest[0])
        if field.message is None:
            raise AddressError(f'"{visible(at)}" is no slot of a model: nothing stands below a string')
        owner += segments[place : place + 1 + is_many]
        place += 1 + is_many
        message = field.message
    return Slot((), Model, None, "", None)


def value_at(model: Model, slot: Slot) -> Any:
    """Return the value that a model has in a slot, as in a conflict.

    Raises:
        AddressError: nothing stands there.
    """
    if not slot.name:
        return model
    owner = resolve(model, format_address(slot.owner))
    value = getattr(owner, slot.name)
    if slot.member is None:
        return value
    if slot.message is Node and slot.name == "attribute":
        return value[attribute_segments(value).index(slot.member)]
    return value[int(slot.member)]


def _check_member(at: str, segment: str, *, by_name: bool) -> None:
    digits = segment.removeprefix("#") if by_name else segment
    is_position = digits.isascii() and digits.isdigit() and len(digits) <= _LARGEST
    if not is_position and (not by_name or digits != segment):
        raise AddressError(f'"{visible(at)}" is no slot of a model: "{visible(segment)}" is no position')


def require_settled(conflicts: Sequence[Conflict], file: str) -> None:
    """Raise if there are conflicts.

    Raises:
        ConflictError: some do.
    """
    if not conflicts:
        return
    name = visible(file, None) if file else "the text"
    count = len({conflict.id for conflict in conflicts})
    places = [visible(conflict.at) or "the whole model" for conflict in conflicts]
    shown = listed(places, _SHOWN)
    number = "a conflict" if count == 1 else f"{count:,} conflicts"
    raise ConflictError(
        f"{name} holds {number} of a merge, at {shown}; see them with `onnxjson conflicts`, "
        "settle them with `onnxjson resolve`",
        conflicts,
    )
