"""What stands in a serialised message: the coverage counter of the generator.

It reads the bytes that protobuf itself wrote, so it counts what arrives, not what the generator meant to write.
"""

import struct
from collections import Counter

from google.protobuf.descriptor import FieldDescriptor

from tests.generation import tensors
from tests.generation.descriptors import FieldShape, MessageShape, messages
from tests.generation.wire_encoding import LENGTH, fields, length_payload, read_varint

Facet = tuple[str, str]
"""What was seen, and where (a field's path or a message's name)."""

SIGNED_64 = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_INT32)


def observe(data: bytes, shape: MessageShape, seen: Counter[Facet]) -> None:
    """Count the facets of one message of `shape` and of all messages in it."""
    if not data:
        seen["empty message", shape.name] += 1
    by_number = shape.by_number
    for number, wire_type, _, payload, end in fields(data):
        field = by_number.get(number)
        if field is None or wire_type not in (field.wire_type, LENGTH if field.packed else field.wire_type):
            seen["unknown field", shape.name] += 1
            seen["unknown wire type", str(wire_type)] += 1
            continue
        seen["field", field.path] += 1
        if field.message is not None:
            observe(length_payload(data, payload, end), field.message, seen)
        elif field.wire_type == LENGTH:
            _observe_string(field, length_payload(data, payload, end), seen)
        elif wire_type == LENGTH:
            _observe_packed(field, length_payload(data, payload, end), seen)
        else:
            _observe_scalar(field, data[payload:end], seen)
    if shape.name == "TensorProto":
        _observe_tensor(data, shape, seen)


def observed(models: list[bytes]) -> Counter[Facet]:
    """The facets of all `models`, serialised ModelProtos."""
    seen: Counter[Facet] = Counter()
    for data in models:
        observe(data, messages()["ModelProto"], seen)
    return seen


def _observe_string(field: FieldShape, payload: bytes, seen: Counter[Facet]) -> None:
    if not payload:
        seen["explicit default", field.path] += 1
    if payload.isdigit():
        seen["digits only", field.path] += 1
    if not payload.isascii():
        try:
            text = payload.decode()
        except UnicodeDecodeError:
            seen["not UTF-8", field.path] += 1
        else:
            seen["astral" if max(text) > "\uffff" else "not ASCII", field.path] += 1
    if b"\n" in payload:
        seen["line feed", field.path] += 1


def _observe_packed(field: FieldShape, payload: bytes, seen: Counter[Facet]) -> None:
    if field.wire_type == 0:
        at = 0
        while at < len(payload):
            _, following = read_varint(payload, at)
            _observe_scalar(field, payload[at:following], seen)
            at = following
    else:
        size = 4 if field.wire_type == 5 else 8
        for at in range(0, len(payload), size):
            _observe_scalar(field, payload[at : at + size], seen)


def _observe_scalar(field: FieldShape, payload: bytes, seen: Counter[Facet]) -> None:
    if not any(payload):
        seen["explicit default", field.path] += 1
    if field.wire_type != 0:
        _observe_float(field, payload, seen)
        return
    number, _ = read_varint(payload, 0)
    if field.enum_numbers and number not in field.enum_numbers:
        seen["unknown enum number", field.path] += 1
    if field.type == FieldDescriptor.TYPE_INT64 and number in (2**63 - 1, 2**63):
        seen["limit", field.path] += 1
    if field.type == FieldDescriptor.TYPE_UINT64 and number == 2**64 - 1:
        seen["limit", field.path] += 1
    if field.type in SIGNED_64 and number >= 2**63:
        seen["negative", field.path] += 1


def _observe_float(field: FieldShape, payload: bytes, seen: Counter[Facet]) -> None:
    fraction = 23 if len(payload) == 4 else 52
    bits = int.from_bytes(payload, "little")
    number = struct.unpack("<f" if len(payload) == 4 else "<d", payload)[0]
    if number == 0.0 and bits:
        seen["negative zero", field.path] += 1
    if number != number:
        seen["quiet NaN" if bits >> fraction - 1 & 1 else "signalling NaN", field.path] += 1


def _observe_tensor(data: bytes, shape: MessageShape, seen: Counter[Facet]) -> None:
    dtype = None
    places: set[str] = set()
    for number, wire_type, _, payload, _end in fields(data):
        field = shape.by_number.get(number)
        if field is None or wire_type not in (field.wire_type, LENGTH if field.packed else field.wire_type):
            continue
        if field.name == "data_type":
            dtype = read_varint(data, payload)[0]
        elif field.name == "raw_data" or field.name.endswith("_data"):
            places.add(field.name)
    for number, name in tensors.DATA_TYPES:
        if number == dtype:
            for place in places:
                seen[f"{place} of dtype", name] += 1
