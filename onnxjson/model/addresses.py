"""Addresses: the position of an element of a model, as a text.

An address follows the records of `onnxjson.model.document`, not the layout of a text: field names of onnx.proto,
members of lists by position from 0, members of ``attribute`` of a node by name where the name is unique in the node,
else as ``#position``. ``~0`` means ``~`` and ``~1`` means ``/``, as in RFC 6901::

    /graph/node/3/attribute/then_branch/g/node/0
    /functions/2/node/1/attribute/alpha

The empty address is the model itself. Addresses are positions, not identities: they change when
elements before them are added or removed.

A merge conflict is a slot of the model, given by its address, with the value that it has in the base and on both sides
(docs/format.md, section 11b). The model in the text has the values of ours. Conflicts with one id belong
together: they are resolved at once, or not at all.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeVar

from onnxjson.model.display import listed, suggest, visible
from onnxjson.model.document import Attribute, Model, Node, Record
from onnxjson.model.errors import AddressError
from onnxjson.model.messages import FIELDS, Field, Kind

_POSITION: Final = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
_WRONG_ESCAPE: Final = re.compile(r"~(?![01])")

Choice = Literal["base", "ours", "theirs"]
"""The side whose value a slot gets."""

SIDES: Final[tuple[Choice, ...]] = ("base", "ours", "theirs")
"""All sides, in the order in which they are shown."""


_T = TypeVar("_T")


def escape(segment: str) -> str:
    """Escape one segment for an address."""
    return segment.replace("~", "~0").replace("/", "~1")


def format_address(segments: Iterable[str | int]) -> str:
    """Return the address of segments: field names, positions, and the segments of attributes (`attribute_segments`)."""
    return "".join([f"/{escape(str(segment))}" for segment in segments])


def innermost(known: Mapping[str, _T], address: str) -> _T | None:
    """Return what is known of the innermost element that contains, or is, the one at an address; None if nothing is."""
    while address and address not in known:
        address = address.rpartition("/")[0]
    return known.get(address)


def parse_address(address: str) -> tuple[str, ...]:
    """Split an address into its segments, unescaped; AddressError for one without a slash, or with a wrong ``~``."""
    if not address:
        return ()
    if not address.startswith("/"):
        raise AddressError(
            f"{_quoted(address)} is not an address; an address begins with a slash, such as /graph/node/0"
        )
    if wrong := _WRONG_ESCAPE.search(address):
        raise AddressError(
            f'{_quoted(address)} has a "~" at character {wrong.start()}; in an address write ~0 for it and ~1 for "/"'
        )
    return tuple([segment.replace("~1", "/").replace("~0", "~") for segment in address[1:].split("/")])


def attribute_segments(attributes: Sequence[Attribute]) -> list[str]:
    """Return the segments of attributes, not escaped: the name, or ``#position`` if it is not unique."""
    names = [attribute.name for attribute in attributes]
    counts = Counter(names) if len({*names}) < len(names) else {}
    return [
        f"#{position}" if name is None or name.startswith("#") or counts.get(name, 1) > 1 else name
        for position, name in enumerate(names)
    ]


class Element(NamedTuple):
    """An element and its address."""

    address: str
    """As `walk` spells it: an attribute by its name if that is unique."""
    value: object
    """A record, a tuple of records, or the value of a field as in the record."""


def resolve(model: Model, address: str) -> object:
    """Return the element at an address: a record, a tuple of records, or the value of a field as in the record.

    Raises:
        AddressError: the address is not valid or has no element; the message suggests others.
    """
    return find_element(model, address).value


def find_element(model: Model, address: str) -> Element:
    """Return the element at an address, with the address in its usual spelling; see `resolve`."""
    current: object = model
    members_are_named = False
    passed: list[str] = []
    for segment in parse_address(address):
        if isinstance(current, Record):
            members_are_named = isinstance(current, Node) and segment == "attribute"
            current = _field(current, segment, passed)
            passed.append(segment)
        elif isinstance(current, tuple):
            position = _position(current, segment, passed, by_name=members_are_named)
            passed.append(attribute_segments(current)[position] if members_are_named else segment)
            current = current[position]
        else:
            raise AddressError(f"{_place(passed)} is a value and has nothing at {_quoted(segment)}")
    return Element(format_address(passed), current)


def _field(record: Record, name: str, passed: Sequence[str]) -> object:
    names = _names(type(record))
    if name not in names:
        hint = suggest(name, names) or f"there are {', '.join(names)}"
        raise AddressError(f"{_place(passed)} ({type(record).__name__}) has no field {_quoted(name)}; {hint}")
    value: object = getattr(record, name)
    if value is None:
        there = [each for each in names if getattr(record, each) not in (None, (), b"")]
        raise AddressError(f"{_place(passed)} has no {name} here; it has {', '.join(there) or 'nothing at all'}")
    return value


def _position(members: Sequence[object], segment: str, passed: Sequence[str], *, by_name: bool) -> int:
    digits = segment.removeprefix("#") if by_name else segment
    if (digits != segment or not by_name) and _POSITION.fullmatch(digits):
        if int(digits) < len(members):
            return int(digits)
        raise AddressError(f"{_place(passed)} has {_extent(members)}, none at {_quoted(segment)}")
    if not by_name:
        raise AddressError(
            f"{_place(passed)} is a list; {_quoted(segment)} is not a position; it has {_extent(members)}"
        )
    named = [each for each in members if isinstance(each, Attribute)]
    positions = [position for position, each in enumerate(named) if each.name == segment]
    if len(positions) == 1:
        return positions[0]
    if positions:
        choices = " or ".join(f"#{position}" for position in positions)
        raise AddressError(f"{_place(passed)} has {len(positions)} members called {_quoted(segment)}; write {choices}")
    names = attribute_segments(named)
    hint = suggest(segment, names) or (
        f"there are {listed([visible(name) for name in names], 8)}" if names else "it is empty"
    )
    raise AddressError(f"{_place(passed)} has no member {_quoted(segment)}; {hint}")


def _extent(members: Sequence[object]) -> str:
    count = len(members)
    if not count:
        return "no members"
    return "1 member, 0" if count == 1 else f"{count:,} members, 0 to {count - 1}"


def _place(passed: Sequence[str]) -> str:
    return visible(format_address(passed), 200) if passed else "the model"


def _quoted(text: str) -> str:
    return f'"{visible(text)}"'


def _names(message: type[Record]) -> tuple[str, ...]:
    return (*(field.name for field in FIELDS[message]), "unknown_fields")


def _record_fields(message: type[Record]) -> tuple[tuple[str, bool], ...]:
    """The fields that hold records: name, and whether they hold several."""
    return tuple((field.name, field.repeated) for field in FIELDS[message] if field.message is not None)


def walk(model: Model) -> Iterator[tuple[str, Record]]:
    """Yield every record of a model with its address, the outer before the inner, in the order of the fields."""
    pending: list[tuple[str, Record]] = [("", model)]
    while pending:
        address, record = pending.pop()
        yield address, record
        below: list[tuple[str, Record]] = []
        for name, repeated in _record_fields(type(record)):
            value = getattr(record, name)
            if not repeated:
                if value is not None:
                    below.append((f"{address}/{name}", value))
            elif value and name == "attribute":
                parts = map(escape, attribute_segments(value))
                below += [(f"{address}/{name}/{part}", each) for part, each in zip(parts, value, strict=True)]
            else:
                below += [(f"{address}/{name}/{position}", each) for position, each in enumerate(value)]
        pending += reversed(below)


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
    def list_address(self) -> str:
        """Return the address of the field."""
        return format_address((*self.owner, self.name)) if self.name else ""


def slot_at(at: str) -> Slot:
    """Return what an address refers to, by the table of messages alone; raise AddressError if no model has that."""
    segments = parse_address(at)
    owner: list[str] = []
    message: type[Record] = Model
    place = 0
    while place < len(segments):
        name = segments[place]
        fields = {field.name: field for field in FIELDS[message]}
        field = fields.get(name)
        if field is None and name != "unknown_fields":
            raise AddressError(f'"{visible(at)}" is not a slot of a model: {message.__name__} has no "{visible(name)}"')
        rest = segments[place + 1 :]
        if not rest:
            return Slot(tuple(owner), message, field, name, None)
        is_many = field is not None and field.repeated
        if field is None or not (field.message or (is_many and field.kind is Kind.STRING)):
            raise AddressError(f'"{visible(at)}" is not a slot of a model: there is nothing below {name}')
        if is_many:
            _check_member(at, rest[0], by_name=message is Node and name == "attribute")
            if len(rest) == 1:
                return Slot(tuple(owner), message, field, name, rest[0])
        if field.message is None:
            raise AddressError(f'"{visible(at)}" is not a slot of a model: there is nothing below a string')
        owner += segments[place : place + 1 + is_many]
        place += 1 + is_many
        message = field.message
    return Slot((), Model, None, "", None)


def value_at(model: Model, slot: Slot) -> Any:
    """Return the value that a model has in a slot, as in a conflict."""
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
    is_position = digits.isascii() and digits.isdigit() and len(digits) <= 18
    if not is_position and (not by_name or digits != segment):
        raise AddressError(f'"{visible(at)}" is not a slot of a model: "{visible(segment)}" is not a position')
