"""The messages of onnx.proto as the generator needs them, read from protobuf's descriptors and from nowhere else."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from onnx import ModelProto

WIRE_TYPES = {
    FieldDescriptor.TYPE_INT64: 0, FieldDescriptor.TYPE_UINT64: 0, FieldDescriptor.TYPE_INT32: 0,
    FieldDescriptor.TYPE_UINT32: 0, FieldDescriptor.TYPE_SINT32: 0, FieldDescriptor.TYPE_SINT64: 0,
    FieldDescriptor.TYPE_BOOL: 0, FieldDescriptor.TYPE_ENUM: 0, FieldDescriptor.TYPE_DOUBLE: 1,
    FieldDescriptor.TYPE_FIXED64: 1, FieldDescriptor.TYPE_SFIXED64: 1, FieldDescriptor.TYPE_STRING: 2,
    FieldDescriptor.TYPE_BYTES: 2, FieldDescriptor.TYPE_MESSAGE: 2, FieldDescriptor.TYPE_FLOAT: 5,
    FieldDescriptor.TYPE_FIXED32: 5, FieldDescriptor.TYPE_SFIXED32: 5,
}  # fmt: skip
"""The wire type of one value, by protobuf type."""


@dataclass(slots=True, eq=False)
class FieldShape:
    """One field of a message."""

    owner: str
    """The message's name without the package, such as ``TypeProto.Tensor``."""
    name: str
    number: int
    type: int
    """FieldDescriptor.TYPE_..."""
    wire_type: int
    repeated: bool
    packed: bool
    oneof: str | None
    enum_numbers: tuple[int, ...] = ()
    message: "MessageShape | None" = None

    @property
    def path(self) -> str:
        """Message and field, such as ``NodeProto.op_type``."""
        return f"{self.owner}.{self.name}"


@dataclass(slots=True, eq=False)
class MessageShape:
    """One message and its fields in the order of their numbers."""

    name: str
    fields: list[FieldShape] = field(default_factory=list)
    by_name: dict[str, FieldShape] = field(default_factory=dict)
    by_number: dict[int, FieldShape] = field(default_factory=dict)


@cache
def messages() -> dict[str, MessageShape]:
    """Every message that a ModelProto can hold, by name without the package."""
    shapes: dict[str, MessageShape] = {}
    _collect(ModelProto.DESCRIPTOR, shapes)
    return shapes


def _collect(descriptor: Any, shapes: dict[str, MessageShape]) -> MessageShape:
    name = descriptor.full_name.removeprefix("onnx.")
    if name in shapes:
        return shapes[name]
    shape = shapes[name] = MessageShape(name)
    for one in sorted(descriptor.fields, key=lambda one: one.number):
        entry = FieldShape(
            owner=name,
            name=one.name,
            number=one.number,
            type=one.type,
            wire_type=WIRE_TYPES[one.type],
            repeated=one.is_repeated,
            packed=one.is_packed,
            oneof=one.containing_oneof.name if one.containing_oneof else None,
            enum_numbers=tuple(value.number for value in one.enum_type.values) if one.enum_type else (),
            message=_collect(one.message_type, shapes) if one.message_type else None,
        )
        shape.fields.append(entry)
        shape.by_name[entry.name] = entry
        shape.by_number[entry.number] = entry
    return shape
