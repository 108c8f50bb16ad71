"""Shapes of a canonical text for the typed decoder, and quick ways to read attributes and types of tensors.

The keys are those of docs/format.md; rare ones stay raw. A document with any other key is not canonical, or has
something rare that is left to the exact reader.
"""

import struct
from typing import Any, Final, NamedTuple

import msgspec

from onnxjson.codecs import tensor_text
from onnxjson.model import document as d
from onnxjson.model import elements, types

ABSENT: Final = msgspec.Raw()
"""The value of a key that is absent."""

NUMBERS: Final = {1: ("f", list[float]), 7: ("q", list[int]), 11: ("d", list[float])}
"""Data types whose values are read many at a time: the code of `struct`, and their type in JSON."""


class TextShape(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Base of the decoded shapes."""


class ValueText(TextShape, forbid_unknown_fields=True, gc=False):
    """A ValueInfoProto with its type as text."""

    name: str | None = None
    type: str | None = None
    doc_string: msgspec.Raw = ABSENT
    metadata_props: msgspec.Raw = ABSENT


class TensorText(TextShape, forbid_unknown_fields=True, gc=False):
    """A TensorProto in its short form."""

    type: str
    name: str | None = None
    storage: str | None = None
    values: msgspec.Raw = ABSENT
    base64: str | None = None
    blob: str | None = None
    sha256: str | None = None
    external_data: msgspec.Raw = ABSENT
    doc_string: msgspec.Raw = ABSENT
    metadata_props: msgspec.Raw = ABSENT

    def has_rare(self) -> bool:
        """Whether a key is present that few tensors have."""
        return not (self.external_data is ABSENT and self.doc_string is ABSENT and self.metadata_props is ABSENT)


class NodeText(TextShape, forbid_unknown_fields=True, gc=False):
    """A NodeProto."""

    op_type: str | None = None
    output: tuple[str, ...] = ()
    input: tuple[str, ...] = ()
    name: str | None = None
    domain: str | None = None
    overload: str | None = None
    doc_string: msgspec.Raw = ABSENT
    attribute: msgspec.Raw = ABSENT
    metadata_props: msgspec.Raw = ABSENT
    device_configurations: msgspec.Raw = ABSENT


class GraphText(TextShape, forbid_unknown_fields=True, gc=False):
    """A GraphProto with the metadata of its elements."""

    name: str | None = None
    doc_string: msgspec.Raw = ABSENT
    input: list[ValueText] = []
    output: list[ValueText] = []
    node: list[NodeText] = []
    initializer: list[TensorText] = []
    sparse_initializer: msgspec.Raw = ABSENT
    quantization_annotation: msgspec.Raw = ABSENT
    value_info: list[ValueText] = []
    metadata_props: msgspec.Raw = ABSENT
    element_metadata: list[tuple[str, str, str, str]] = []


class FunctionText(TextShape, forbid_unknown_fields=True, gc=False):
    """A FunctionProto with the metadata of its elements."""

    name: str | None = None
    domain: str | None = None
    overload: str | None = None
    doc_string: msgspec.Raw = ABSENT
    opset_import: msgspec.Raw = ABSENT
    input: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    attribute: tuple[str, ...] = ()
    attribute_proto: msgspec.Raw = ABSENT
    node: list[NodeText] = []
    value_info: list[ValueText] = []
    metadata_props: msgspec.Raw = ABSENT
    element_metadata: list[tuple[str, str, str, str]] = []


class ModelText(TextShape, forbid_unknown_fields=True, gc=False):
    """A whole document."""

    format: str
    weights: str | None = None
    blobs: str | None = None
    ir_version: int | None = None
    producer_name: str | None = None
    producer_version: str | None = None
    domain: str | None = None
    model_version: int | None = None
    doc_string: msgspec.Raw = ABSENT
    opset_import: msgspec.Raw = ABSENT
    graph: GraphText | None = None
    functions: list[FunctionText] = []
    training_info: msgspec.Raw = ABSENT
    configuration: msgspec.Raw = ABSENT
    metadata_props: msgspec.Raw = ABSENT


class TensorShape(NamedTuple):
    """The parsed type of tensors, once for all that have it."""

    data_type: int
    dims: tuple[int, ...]
    size: int
    skeleton: bytes | None
    """The layout of `values` without its numbers, if they are read many at a time."""

    @classmethod
    def parse(cls, text: str) -> "TensorShape":
        """The shape of a type such as ``float32[2,3]``; raises `TypeSyntaxError` if it is not one."""
        data_type, dims = types.parse_tensor_type(text)
        count = elements.element_count(dims)
        many = data_type in NUMBERS and 0 < count <= tensor_text.MOST_VALUES
        skeleton = tensor_text.values_template(dims, 5).replace(b"%b", b"") if many else None
        return cls(data_type, dims, count, skeleton)


def quick_attribute(name: str, value: Any, expected: int | None) -> d.Attribute | None:
    """Read an attribute of a frequent form; writing the model again shows whether the guess was right."""
    kind = type(value)
    if kind is dict and len(value) == 1:
        expected = {"FLOAT": 1, "INT": 2, "FLOATS": 6, "INTS": 7}.get(next(iter(value)))
        if expected is None:
            return None
        value = next(iter(value.values()))
        kind = type(value)
    if kind is int:
        if expected is None or expected == 2:
            return d.Attribute(name, i=value, type=2)
        return d.Attribute(name, f=struct.pack("<f", value), type=1) if expected == 1 else None
    if kind is float:
        return d.Attribute(name, f=struct.pack("<f", value), type=1) if expected == 1 else None
    if kind is str:
        return d.Attribute(name, s=value.encode(), type=3) if expected is None or expected == 3 else None
    if kind is list:
        members = set(map(type, value))
        if expected == 6 and members <= {int, float}:
            return d.Attribute(name, floats=struct.pack(f"<{len(value)}f", *value), type=6)
        if members <= {int} and (expected == 7 or (expected is None and value)):
            return d.Attribute(name, ints=tuple(value), type=7)
        if members <= {str} and (expected == 8 or (expected is None and value)):
            return d.Attribute(name, strings=tuple([each.encode() for each in value]), type=8)
    return None
