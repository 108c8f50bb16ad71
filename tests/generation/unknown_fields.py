"""Fields that a message does not name, as other programs and later releases write them."""

from random import Random

from tests.generation import values
from tests.generation.descriptors import MessageShape
from tests.generation.wire_encoding import (
    END_GROUP,
    FIXED32,
    FIXED64,
    LENGTH,
    START_GROUP,
    VARINT,
    longer,
    signed,
    tag,
    varint,
)


def unknown_fields(rng: Random, shape: MessageShape) -> bytes:
    """One to three fields that the message does not name, or names with another wire type."""
    return b"".join(unknown_field(rng, shape, 0) for _ in range(rng.choice((1, 1, 2, 3))))


def unknown_field(rng: Random, shape: MessageShape, depth: int) -> bytes:
    """One unknown field; groups up to four deep."""
    field = rng.choice(shape.fields)
    if depth == 0 and rng.random() < 0.2 and field.wire_type in (VARINT, FIXED32, FIXED64):
        wrong = FIXED64 if field.wire_type != FIXED64 else FIXED32
        return tag(field.number, wrong) + rng.randbytes(8 if wrong == FIXED64 else 4)
    number = rng.choice((12, 15, 17, 18, 19, 99, 1000, 19000, 2**29 - 1))
    if number in shape.by_number:
        number = 536870000
    kind = rng.choice((VARINT, FIXED64, LENGTH, START_GROUP, FIXED32) if depth < 4 else (VARINT, LENGTH))
    head = longer(tag(number, kind), rng.choice((0, 0, 0, 1)) if number < 2**25 else 0)
    if kind == VARINT:
        return head + longer(
            signed(values.int64(rng, odd=True) >> rng.choice((0, 40))), rng.choice((0, 0, 1)) if number < 99 else 0
        )
    if kind == LENGTH:
        payload = rng.randbytes(rng.randint(0, 12))
        return head + longer(varint(len(payload)), rng.choice((0, 0, 0, 2))) + payload
    if kind == START_GROUP:
        inside = b"".join(unknown_field(rng, shape, depth + 1) for _ in range(rng.randint(0, 2)))
        return head + inside + tag(number, END_GROUP)
    return head + rng.randbytes(8 if kind == FIXED64 else 4)
