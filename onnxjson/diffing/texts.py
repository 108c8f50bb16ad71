"""Values of a model as short texts for details of events; names and bytes as they are, to be made visible later."""

from typing import Final

from onnxjson.diffing.weight_changes import type_text
from onnxjson.display import counted
from onnxjson.document import Attribute, Graph, Tensor, Type, ValueInfo
from onnxjson.elements import element_count, tokens
from onnxjson.node_properties import attribute_text
from onnxjson.payloads import whole
from onnxjson.tensors import raw_bytes
from onnxjson.types import format_type

_FEW: Final = 16
"""Elements up to which a constant is written out."""


def attribute_value_text(attribute: Attribute) -> str:
    """The value of an attribute for a person."""
    if attribute.ref_attr_name is not None:
        return f"@{attribute.ref_attr_name}"
    if attribute.t is not None:
        return tensor_value_text(attribute.t)
    if attribute.g is not None:
        return graph_text(attribute.g)
    if attribute.graphs:
        return ", ".join(map(graph_text, attribute.graphs))
    if attribute.tensors:
        return ", ".join(map(type_text, attribute.tensors))
    if attribute.sparse_tensor is not None:
        return "a sparse tensor"
    text = attribute_text(attribute)
    return text if text is not None else "not as its type says"


def graph_text(graph: Graph) -> str:
    """A graph for a person: how big it is."""
    return f"a graph of {counted(len(graph.node), 'node')}"


def tensor_value_text(tensor: Tensor) -> str:
    """Type and, where they are few, elements of a constant: ``int64[2] = [1, 2]``."""
    text = type_text(tensor)
    count = element_count(tensor.dims)
    if count > _FEW or tensor.data_type is None:
        return text
    if tensor.string_data:
        found: list[str] | None = [each.decode("utf-8", "surrogateescape") for each in tensor.string_data]
    else:
        stored = raw_bytes(tensor)
        found = None if stored is None else tokens(tensor.data_type, whole(stored[0]), count)
    if found is None:
        return text
    return f"{text} = {found[0]}" if not tensor.dims and found else f"{text} = [{', '.join(found)}]"


def value_type_text(value: Type | None) -> str | None:
    """The type of a value for a person; None where there is none."""
    if value is None:
        return None
    return format_type(value) or "a type that has no short text"


def info_text(value: ValueInfo) -> str:
    """Name and type of a value."""
    kind = value_type_text(value.type)
    return f"{value.name or ''}: {kind}" if kind else value.name or ""
