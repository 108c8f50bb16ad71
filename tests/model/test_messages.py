"""The field table and the records are those of the installed onnx: a field that a release adds fails here."""

import typing
from typing import Any

import msgspec
import pytest
from google.protobuf.descriptor import FieldDescriptor

from onnxjson.model import document
from onnxjson.model.messages import FIELDS, Field, Kind
from onnxjson.model.payloads import Data
from tests.generation.descriptors import FieldShape, MessageShape, messages

NESTED = {
    "TensorProto.Segment": "Segment", "TensorShapeProto.Dimension": "Dimension", "TypeProto.Tensor": "TensorType",
    "TypeProto.Sequence": "SequenceType", "TypeProto.Map": "MapType", "TypeProto.Optional": "OptionalType",
    "TypeProto.SparseTensor": "SparseTensorType", "TypeProto.Opaque": "OpaqueType",
}  # fmt: skip
"""Records of nested messages; the other records have the message's name without "Proto"."""
KINDS = {
    FieldDescriptor.TYPE_INT64: Kind.INT64, FieldDescriptor.TYPE_UINT64: Kind.UINT64,
    FieldDescriptor.TYPE_INT32: Kind.INT32, FieldDescriptor.TYPE_FLOAT: Kind.FLOAT,
    FieldDescriptor.TYPE_DOUBLE: Kind.DOUBLE, FieldDescriptor.TYPE_STRING: Kind.STRING,
    FieldDescriptor.TYPE_BYTES: Kind.BYTES, FieldDescriptor.TYPE_MESSAGE: Kind.MESSAGE,
}  # fmt: skip
DATA_TYPE_FIELDS = {
    "TensorProto.data_type",
    "TypeProto.Tensor.elem_type",
    "TypeProto.SparseTensor.elem_type",
    "TypeProto.Map.key_type",
}
"""int32 in the .proto, numbers of TensorProto.DataType by its comments."""
ENUM_FIELDS = {"AttributeProto.type": Kind.ATTRIBUTE_TYPE, "TensorProto.data_location": Kind.DATA_LOCATION}
LAZY_FIELDS = {"raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"}


def record_of(shape: MessageShape) -> type[document.Record]:
    record: type[document.Record] = getattr(document, NESTED.get(shape.name, shape.name.removesuffix("Proto")))
    return record


def kind_of(field: FieldShape) -> Kind:
    if field.path in DATA_TYPE_FIELDS:
        assert field.type == FieldDescriptor.TYPE_INT32
        return Kind.DATA_TYPE
    if field.type == FieldDescriptor.TYPE_ENUM:
        return ENUM_FIELDS[field.path]
    return KINDS[field.type]


def expected_field(field: FieldShape) -> Field:
    return Field(
        number=field.number,
        name=field.name,
        kind=kind_of(field),
        repeated=field.repeated,
        packed=field.packed,
        message=record_of(field.message) if field.message else None,
        oneof=field.oneof,
    )


def expected_annotation(field: FieldShape) -> Any:
    """The annotation of the record's field, from what the docstring of `onnxjson.model.document` says about kinds."""
    one: Any = {FieldDescriptor.TYPE_STRING: str, FieldDescriptor.TYPE_BYTES: bytes}.get(field.type, int)
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        one = bytes
    if field.message:
        one = record_of(field.message)
    if field.name in LAZY_FIELDS:
        one = Data
    if not field.repeated:
        return one | None
    joined = field.name in LAZY_FIELDS or field.type == FieldDescriptor.TYPE_FLOAT
    return one if joined else tuple[one, ...]


def expected_default(field: FieldShape) -> object:
    if not field.repeated:
        return None
    return b"" if field.name in LAZY_FIELDS or field.type == FieldDescriptor.TYPE_FLOAT else ()


def test_the_table_has_every_message_that_a_model_can_hold_and_no_other() -> None:
    assert set(FIELDS) == {record_of(shape) for shape in messages().values()}
    assert len(FIELDS) == len(messages())


@pytest.mark.parametrize("shape", messages().values(), ids=lambda shape: shape.name)
def test_the_table_has_exactly_the_fields_of_the_installed_onnx(shape: MessageShape) -> None:
    assert FIELDS[record_of(shape)] == tuple(expected_field(field) for field in shape.fields)


@pytest.mark.parametrize("shape", messages().values(), ids=lambda shape: shape.name)
def test_the_record_has_the_fields_in_order_with_their_types_and_defaults(shape: MessageShape) -> None:
    record = record_of(shape)
    assert record.__struct_fields__ == (*(field.name for field in shape.fields), "unknown_fields")
    annotations = typing.get_type_hints(record)
    assert {name: annotations[name] for name in record.__struct_fields__} == {
        **{field.name: expected_annotation(field) for field in shape.fields},
        "unknown_fields": bytes,
    }
    assert record.__struct_defaults__ == (*(expected_default(field) for field in shape.fields), b"")


@pytest.mark.parametrize("record", FIELDS, ids=lambda record: record.__name__)
def test_a_record_is_frozen_and_outside_the_collectors_books(record: type[document.Record]) -> None:
    assert record.__struct_config__.frozen
    assert not record.__struct_config__.gc
    assert issubclass(record, msgspec.Struct)
