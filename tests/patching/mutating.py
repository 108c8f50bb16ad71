"""Random changes of any record, driven by the table of messages, so that every field is changed sooner or later."""

from collections.abc import Sequence
from random import Random
from typing import Any

from msgspec.structs import replace

from onnxjson.model import document as d
from onnxjson.model.messages import FIELDS, Field, Kind

STRINGS = ("", "a", "x/y~z", "caf\u00e9", "#0", "7", "\udcff\udc80", "\x1b[31m", "two\nlines")
NUMBERS = (0, 1, 2, -1, 2**31 - 1, 2**53 + 1)
FLOATS = (b"\0\0\0\0", b"\0\0\0\x80", b"\1\0\x80\x7f", b"\1\0\xc0\xff", b"\0\0\x80?")
DOUBLES = (b"\0" * 8, b"\1\0\0\0\0\0\xf0\x7f", b"\0\0\0\0\0\0\xf0?")
UNKNOWN = (b"", b"\xc2>\x01a", b"\xc8>\x05")


def mutated(model: d.Model, rng: Random, count: int) -> d.Model:
    """`model` after `count` changes at random places."""
    for _ in range(count):
        model = _mutated(model, rng)
    return model


def _mutated(record: Any, rng: Random) -> Any:
    fields = FIELDS[type(record)]
    held = [field for field in fields if field.message is not None and getattr(record, field.name)]
    if held and rng.random() < 0.8:
        field = rng.choice(held)
        return _with(record, field, _below(getattr(record, field.name), rng, field))
    if rng.random() < 0.1:
        return replace(record, unknown_fields=rng.choice(UNKNOWN))
    field = rng.choice(fields)
    return _with(record, field, _value(getattr(record, field.name), rng, field))


def _with(record: Any, field: Field, value: Any) -> Any:
    """`record` with another value in a field; the others of its oneof go."""
    changes = {field.name: value}
    if field.oneof and value is not None:
        others = [each.name for each in FIELDS[type(record)] if each.oneof == field.oneof]
        changes = dict.fromkeys(others) | changes
    return replace(record, **changes)


def _below(value: Any, rng: Random, field: Field) -> Any:
    if not field.repeated:
        return _mutated(value, rng)
    members = list(value)
    match rng.randrange(8):
        case 0:
            del members[rng.randrange(len(members))]
        case 1:
            members.insert(rng.randrange(len(members) + 1), rng.choice(members))
        case 2:
            rng.shuffle(members)
        case 3:
            members.append(members.pop(rng.randrange(len(members))))
        case _:
            place = rng.randrange(len(members))
            members[place] = _mutated(members[place], rng)
    return tuple(members)


def _value(value: Any, rng: Random, field: Field) -> Any:
    """Another value for a field; absent ones too."""
    if field.message is not None:
        fresh = field.message()
        if field.repeated:
            return (*value, fresh) if rng.random() < 0.8 else ()
        return fresh if value is None else None
    if field.packed:
        return _packed(rng, field)
    if field.kind is Kind.FLOAT and field.repeated:
        return b"".join(rng.choices(FLOATS, k=rng.randrange(4)))
    if field.repeated:
        return tuple([_scalar(rng, field) for _ in range(rng.randrange(4))])
    return None if value is not None and rng.random() < 0.4 else _scalar(rng, field)


def _scalar(rng: Random, field: Field) -> Any:
    choices: Sequence[Any]
    match field.kind:
        case Kind.STRING:
            choices = STRINGS
        case Kind.BYTES:
            choices = (b"", b"text", b"\xff\0", bytes(range(64)) * 3)
        case Kind.FLOAT:
            choices = FLOATS
        case Kind.ATTRIBUTE_TYPE:
            choices = (0, 1, 2, 5)
        case Kind.DATA_LOCATION:
            choices = (0, 1)
        case _:
            choices = NUMBERS[:5] if field.kind in (Kind.INT32, Kind.DATA_TYPE) else NUMBERS
    return rng.choice(choices)


def _packed(rng: Random, field: Field) -> bytes:
    if field.kind is Kind.FLOAT:
        return b"".join(rng.choices(FLOATS, k=rng.randrange(70)))
    if field.kind is Kind.DOUBLE:
        return b"".join(rng.choices(DOUBLES, k=rng.randrange(70)))
    return b"".join(rng.choices((b"\0", b"\1", b"\x96\1"), k=rng.randrange(70)))
