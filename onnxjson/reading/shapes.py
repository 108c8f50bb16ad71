"""The shape of a canonical text, as the typed decoder fills it: what is rare stays raw.

Keys stand as in docs/format.md. A document that has any other key is no canonical text, or has something rare that the
exact reader knows.
"""

from typing import Final

import msgspec

ABSENT: Final = msgspec.Raw()
"""Stands for a key that is not there."""


class TextShape(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The base of the shapes that are decoded."""


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
