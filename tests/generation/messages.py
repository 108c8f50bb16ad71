"""Serialised ModelProtos from a seed: every message, every field, plausible models and hopeless ones.

The walk follows protobuf's descriptors, so a field that a new release adds is generated without a change here. What
stands by name below only makes some fields more likely or more plausible. Everything is written as wire bytes, since
the protobuf API cannot hold signalling NaNs, strings outside UTF-8, unknown fields, or varints that are too long.
"""

from collections.abc import Callable
from random import Random

from google.protobuf.descriptor import FieldDescriptor
from onnx import ModelProto

from tests.generation import tensors, values
from tests.generation.descriptors import FieldShape, MessageShape, messages
from tests.generation.likelihood import (
    BIG,
    DEFAULTS,
    PAYLOADS,
    PRESENCE,
    RARE,
    SMALL_MESSAGES,
    STRING_SOURCES,
    VALUE_NAMES,
    WEIGHTS,
)
from tests.generation.operators import operators
from tests.generation.unknown_fields import unknown_fields
from tests.generation.wire_encoding import FIXED32, LENGTH, VARINT, longer, signed, tag, varint

DEEPEST = 90
"""Messages inside one another; protobuf reads 100."""

Piece = tuple[int, int, bytes]
"""Field number, wire type, payload (without the length)."""


class Generator:
    """One model, drawn from `rng`; `rng` may be Hypothesis's."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.oddity = rng.choice((0.0, 0.004, 0.03, 0.12, 0.5))
        """The share of values and fields that no exporter writes."""
        self.unknown_rate = rng.choice((0.0, 0.0, 0.0, 0.01, 0.1))
        self.odd_wire = rng.random() < 0.1
        """Whether the bytes are ordered and encoded as no protobuf library writes them."""
        self.base = rng.choice(RARE)
        self.deepest = DEEPEST if rng.random() < 0.03 else 14
        self.shapes = messages()
        prefix = rng.choice((b"", b"", b"/block/", b"t"))
        self.names = [prefix + b"%d" % n if prefix else b"value_%d" % n for n in range(rng.choice((4, 12, 40)))]
        self.names.append(b"")

    def odd(self) -> bool:
        """Whether the next choice is an odd one."""
        return self.rng.random() < self.oddity

    def message(self, shape: MessageShape, budget: int, depth: int) -> bytes:
        """One serialised message of about `budget` bytes."""
        maker = MAKERS.get(shape.name)
        if maker is None or self.odd():
            pieces = self.walk(shape, budget, depth)
        else:
            pieces = maker(self, shape, budget, depth)
        return self.assemble(shape, pieces, depth)

    def walk(self, shape: MessageShape, budget: int, depth: int) -> list[Piece]:
        """Any fields of `shape`, whether they belong together or not."""
        rng = self.rng
        if self.odd() and rng.random() < 0.1:
            return []
        wild = self.odd()
        base = self.base if shape.name in BIG else SMALL_MESSAGES
        chosen = [field for field in shape.fields if rng.random() < (0.35 if wild else PRESENCE.get(field.path, base))]
        if not chosen and shape.fields and rng.random() < 0.8:
            chosen = [rng.choice(shape.fields)]
        if not self.odd_wire or not self.odd():
            chosen = self.one_of_each_oneof(chosen)
        pieces: list[Piece] = []
        nested: list[FieldShape] = []
        for field in chosen:
            if field.message is None:
                self.scalars(field, budget, pieces)
            elif depth < self.deepest:
                nested.append(field)
        self.nested(nested, budget - sum(len(payload) + 2 for _, _, payload in pieces), depth, pieces)
        return pieces

    def one_of_each_oneof(self, chosen: list[FieldShape]) -> list[FieldShape]:
        """`chosen` with at most one member of each oneof."""
        groups = {field.oneof for field in chosen if field.oneof}
        keep = {group: self.rng.choice([field for field in chosen if field.oneof == group]) for group in sorted(groups)}
        return [field for field in chosen if field.oneof is None or keep[field.oneof] is field]

    def nested(self, fields: list[FieldShape], budget: int, depth: int, pieces: list[Piece]) -> None:
        """Messages in `fields`, `budget` bytes in all, more or less."""
        rng = self.rng
        total = sum(WEIGHTS.get(field.path, 1) for field in fields)
        for field in fields:
            assert field.message is not None
            share = budget * WEIGHTS.get(field.path, 1) // total
            if not field.repeated:
                pieces.append((field.number, LENGTH, self.message(field.message, max(share, 0), depth + 1)))
                continue
            spent = 0
            while True:
                room = max(share - spent, 0)
                payload = self.message(field.message, rng.randint(room // 20, room) if room > 40 else room, depth + 1)
                pieces.append((field.number, LENGTH, payload))
                spent += len(payload) + 8
                if spent >= share or rng.random() < 0.02:
                    break

    def scalars(self, field: FieldShape, budget: int, pieces: list[Piece]) -> None:
        """The value or values of a field that holds no messages."""
        if not field.repeated:
            pieces.append((field.number, field.wire_type, self.scalar(field)))
            return
        rng = self.rng
        count = rng.choice((1, 1, 2, 2, 3, 4, 8))
        if field.packed and rng.random() < 0.3:
            count = rng.randint(1, max(1, min(budget // 4, 90)))
        found = [self.scalar(field) for _ in range(count)]
        if field.packed:
            pieces.append((field.number, LENGTH, b"".join(found)))
        else:
            pieces.extend((field.number, field.wire_type, one) for one in found)

    def scalar(self, field: FieldShape) -> bytes:
        """One value as wire bytes (strings without their length)."""
        rng, odd, kind = self.rng, self.odd(), field.type
        if rng.random() < 0.01:
            return DEFAULTS[field.wire_type]
        if kind == FieldDescriptor.TYPE_STRING:
            return self.string(field, odd)
        if kind == FieldDescriptor.TYPE_BYTES:
            if rng.random() < 0.3:
                return rng.randbytes(rng.randint(0, 9))
            return values.odd_string(rng) if odd else rng.choice(values.TEXTS)
        if kind == FieldDescriptor.TYPE_FLOAT:
            return values.float32(rng, odd or rng.random() < 0.1)
        if kind == FieldDescriptor.TYPE_DOUBLE:
            return values.float64(rng, odd or rng.random() < 0.1)
        if kind == FieldDescriptor.TYPE_ENUM:
            return signed(values.int32(rng, odd=True) if odd else rng.choice(field.enum_numbers))
        if kind == FieldDescriptor.TYPE_INT32:
            return signed(values.int32(rng, odd))
        if kind == FieldDescriptor.TYPE_UINT64:
            return varint(values.uint64(rng, odd))
        return signed(values.int64(rng, odd or rng.random() < 0.05))

    def string(self, field: FieldShape, odd: bool) -> bytes:
        """A string for `field`, as its bytes."""
        rng = self.rng
        if odd:
            return values.odd_string(rng)
        if field.path in STRING_SOURCES:
            return rng.choice(STRING_SOURCES[field.path])
        if field.name in VALUE_NAMES:
            return rng.choice(self.names)
        if field.name == "doc_string":
            return rng.choice(values.TEXTS)
        if field.name == "domain":
            return rng.choice(values.DOMAINS)
        return rng.choice(values.IDENTIFIERS)

    def assemble(self, shape: MessageShape, pieces: list[Piece], depth: int) -> bytes:
        """The pieces as one message, unknown fields last."""
        rng = self.rng
        pieces.sort(key=lambda piece: piece[0])
        unknown = unknown_fields(rng, shape) if self.unknown_rate and rng.random() < self.unknown_rate else b""
        if self.odd_wire and rng.random() < 0.3:
            return self.disorder(shape, pieces, unknown, depth)
        return (
            b"".join(
                [
                    tag(number, kind) + varint(len(payload)) + payload
                    if kind == LENGTH
                    else tag(number, kind) + payload
                    for number, kind, payload in pieces
                ]
            )
            + unknown
        )

    def disorder(self, shape: MessageShape, pieces: list[Piece], unknown: bytes, depth: int) -> bytes:
        """The same message, or a merged one, as a hostile writer would put it."""
        rng = self.rng
        done: list[bytes] = [unknown] if unknown else []
        for number, kind, payload in pieces:
            field = shape.by_number[number]
            if field.packed and field.wire_type == FIXED32 and rng.random() < 0.5:
                done.extend(tag(number, FIXED32) + payload[at : at + 4] for at in range(0, len(payload), 4))
                continue
            if field.repeated and not field.packed and kind in (VARINT, FIXED32) and rng.random() < 0.5:
                kind = LENGTH
            head = longer(tag(number, kind), rng.choice((0, 0, 1, 2)))
            if kind == LENGTH:
                head += longer(varint(len(payload)), rng.choice((0, 0, 1, 2)))
            elif kind == VARINT and len(payload) < 7:
                payload = longer(payload, rng.choice((0, 1, 2)))
            done.append(head + payload)
            if depth and not field.repeated and rng.random() < 0.2:
                done.append(head + payload)
        if rng.random() < 0.7:
            rng.shuffle(done)
        return b"".join(done)

    def node(self, shape: MessageShape, budget: int, depth: int) -> list[Piece]:
        """A call of an operator that exists, attributes of their types most of the time."""
        rng = self.rng
        operator = rng.choice(operators())
        pieces = [
            piece
            for piece in self.walk(shape, budget // 2, self.deepest)
            if piece[0] != shape.by_name["op_type"].number
        ]
        pieces.append((shape.by_name["op_type"].number, LENGTH, operator.name))
        domain = shape.by_name["domain"].number
        if operator.domain or rng.random() < 0.1:
            pieces = [piece for piece in pieces if piece[0] != domain] + [(domain, LENGTH, operator.domain)]
        if rng.random() < 0.2:
            self.nested([shape.by_name["metadata_props"]], 20, depth, pieces)
        if rng.random() < self.base:
            others = [
                field for field in shape.fields if field.message and field.name not in ("attribute", "metadata_props")
            ]
            self.nested(others, budget // 4, depth, pieces)
        attribute = shape.by_name["attribute"]
        assert attribute.message is not None
        room = budget - sum(len(piece[2]) for piece in pieces)
        wanted = [one for one in operator.attributes if rng.random() < 0.6]
        while wanted and room > 0 and depth < self.deepest:
            name, kind = wanted.pop()
            if rng.random() < 0.1:
                kind = rng.choice(tuple(PAYLOADS))
            if rng.random() < 0.15:
                name = values.odd_string(rng) if self.odd() else rng.choice(values.KEYS)
            made = self.assemble(
                attribute.message, self.attribute_of(attribute.message, name, kind, room, depth + 1), depth + 1
            )
            pieces.append((attribute.number, LENGTH, made))
            room -= len(made)
        return pieces

    def attribute(self, shape: MessageShape, budget: int, depth: int) -> list[Piece]:
        """An attribute of a function or of a node that is no known operator."""
        rng = self.rng
        name = rng.choice(values.KEYS + values.IDENTIFIERS)
        kinds = tuple(PAYLOADS) if budget > 30 else (1, 2, 3, 6, 7, 8)
        return self.attribute_of(shape, name, rng.choice(kinds), budget, depth)

    def attribute_of(self, shape: MessageShape, name: bytes, kind: int, budget: int, depth: int) -> list[Piece]:
        """Name, type and the payload of the type; now and then one of them missing, or something besides."""
        rng = self.rng
        pieces: list[Piece] = []
        if not self.odd():
            pieces.append((shape.by_name["name"].number, LENGTH, name))
        if not self.odd():
            pieces.append((shape.by_name["type"].number, VARINT, varint(kind)))
        field = shape.by_name[PAYLOADS[kind]]
        if (field.message is not None and depth >= self.deepest) or (field.repeated and rng.random() < 0.08):
            pass
        elif field.message is not None:
            self.nested([field], budget, depth, pieces)
        elif field.name == "s":
            pieces.append((field.number, LENGTH, rng.choice(values.STRING_VALUES)))
        else:
            self.scalars(field, budget, pieces)
        if self.odd() or rng.random() < 0.02:
            self.scalars(
                rng.choice([one for one in shape.fields if one.message is None and one.name != field.name]), 8, pieces
            )
        return pieces

    def tensor(self, shape: MessageShape, budget: int, depth: int) -> list[Piece]:
        """A tensor whose data fits its dims, in one of the places for it."""
        rng = self.rng
        number = {field.name: field.number for field in shape.fields}
        dtype, _ = rng.choice(tensors.DATA_TYPES)
        layout = tensors.BY_NUMBER.get(dtype)
        dims = tensors.dims(rng, max(budget * 8 // layout.bits if layout else budget // 6, 1))
        count = 1
        for size in dims:
            count *= size
        if self.odd():
            count += rng.choice((-1, 1, 7))
        pieces: list[Piece] = [(number["dims"], VARINT, signed(size)) for size in dims]
        pieces.append((number["data_type"], VARINT, varint(dtype)))
        if rng.random() < 0.8:
            pieces.append((number["name"], LENGTH, self.string(shape.by_name["name"], self.odd())))
        pieces.extend(self.contents(shape, dtype, max(count, 0), budget, depth))
        if rng.random() < 0.04:
            self.scalars(shape.by_name["doc_string"], 8, pieces)
        if rng.random() < 0.1:
            self.nested([shape.by_name["metadata_props"]], 20, depth, pieces)
        if self.odd():
            pieces.extend(
                piece for piece in self.walk(shape, 30, self.deepest) if piece[0] not in {one[0] for one in pieces}
            )
        return pieces

    def contents(self, shape: MessageShape, dtype: int, count: int, budget: int, depth: int) -> list[Piece]:
        """Payload fields of a tensor of `count` elements."""
        rng, odd = self.rng, self.odd()
        number = {field.name: field.number for field in shape.fields}
        if rng.random() < 0.06:
            pieces: list[Piece] = [(number["data_location"], VARINT, varint(rng.choice((0, 1, 1, 1))))]
            self.nested([shape.by_name["external_data"]], 40, depth, pieces)
            return pieces
        if dtype == tensors.STRING:
            drawn = [values.odd_string(rng) if rng.random() < 0.2 else rng.choice(values.TEXTS) for _ in range(count)]
            return [(number["string_data"], LENGTH, one) for one in drawn]
        if dtype not in tensors.BY_NUMBER:
            return [(number["raw_data"], LENGTH, rng.randbytes(rng.choice((0, 3))))] if rng.random() < 0.5 else []
        if rng.random() < 0.6:
            return [(number["raw_data"], LENGTH, tensors.raw(rng, dtype, count, odd))]
        name, payload = tensors.typed(rng, dtype, count, odd)
        return [(number[name], LENGTH, payload)] if payload else []

    def type(self, shape: MessageShape, budget: int, depth: int) -> list[Piece]:
        """A type, tensors most of the time."""
        rng = self.rng
        choice = rng.random()
        name = "tensor_type"
        if choice > 0.8 or (self.deepest == DEEPEST and choice > 0.1):
            name = rng.choice([field.name for field in shape.fields if field.oneof and field.name != "tensor_type"])
        field = shape.by_name[name]
        if depth >= self.deepest:
            return []
        assert field.message is not None
        pieces: list[Piece] = [(field.number, LENGTH, self.message(field.message, budget, depth + 1))]
        if self.odd():
            self.scalars(shape.by_name["denotation"], 8, pieces)
        return pieces


MAKERS: dict[str, Callable[[Generator, MessageShape, int, int], list[Piece]]] = {
    "NodeProto": Generator.node,
    "AttributeProto": Generator.attribute,
    "TensorProto": Generator.tensor,
    "TypeProto": Generator.type,
}
"""Messages that are plausible only when their fields belong together."""


def generate_from(rng: Random, size: int) -> bytes:
    """A serialised ModelProto of about `size` bytes, drawn from `rng`."""
    return Generator(rng).message(messages()["ModelProto"], size, 0)


def generate(seed: int, size: int) -> bytes:
    """A serialised ModelProto of about `size` bytes; the same for the same seed and size, always and everywhere."""
    return generate_from(Random(seed), size)


def size_of(seed: int) -> int:
    """A size from 1 to 10,000 bytes for `seed`, as many small ones as big ones."""
    return round(10 ** Random(-seed - 1).uniform(0, 4))


def generate_model(seed: int, size: int) -> ModelProto:
    """The same, parsed by protobuf."""
    return ModelProto.FromString(generate(seed, size))
