"""Values of attributes as a person types them: JSON as in a document, and what the operator expects."""

from typing import Final

from onnxjson.display import visible
from onnxjson.document import Attribute, Node
from onnxjson.edits.attributes import attribute_of
from onnxjson.edits.parameters import Shape
from onnxjson.edits.spelling import json_or_text, texts_of
from onnxjson.edits.values import ValueMistakeError, attribute_values
from onnxjson.errors import OnnxJsonError
from onnxjson.index import NodeRef
from onnxjson.names import ATTRIBUTE_TYPE_NAMES
from onnxjson.operators import attribute_types, documentation
from onnxjson.rendering.node import opset_of
from onnxjson_tui.session import Session

_BIGGEST: Final = 4096
"""Bytes of a tensor that is typed."""

_KINDS: Final = {
    "FLOAT": "a number, such as 0.5",
    "INT": "a whole number",
    "STRING": "a text",
    "TENSOR": 'a tensor, such as {"type": "int64[2]", "values": [1, 2]}',
    "GRAPH": "a graph, which E opens in an editor",
    "FLOATS": "a list of numbers, such as [0.5, 1]",
    "INTS": "a list of whole numbers, such as [1, 1]",
    "STRINGS": 'a list of texts, such as ["a", "b"]',
    "TENSORS": "a list of tensors",
    "GRAPHS": "a list of graphs",
    "TYPE_PROTO": "a type, such as float32[N,3]",
}
"""Types of attributes for a person."""


def can_be_typed(attribute: Attribute) -> bool:
    """Whether the value of an attribute is short enough to be typed, and no graph."""
    tensor = attribute.t
    if attribute.g is not None or attribute.graphs or attribute.tensors or attribute.sparse_tensor is not None:
        return False
    if len(attribute.floats) > _BIGGEST or len(attribute.ints) > _BIGGEST or attribute.ref_attr_name:
        return False
    if tensor is None:
        return True
    elements = 1
    for size in tensor.dims:
        elements *= size
    return elements * 16 <= _BIGGEST and not tensor.external_data


def written(ref: NodeRef, name: str) -> str:
    """The value of an attribute as a person types it; "" where it is too big, or none that is typed."""
    attribute = next((each for each in ref.node.attribute if each.name == name), None)
    if attribute is None or not can_be_typed(attribute):
        return ""
    single = Node(op_type=ref.node.op_type, domain=ref.node.domain, attribute=(attribute,))
    values = attribute_values(single) or {}
    return texts_of(Shape("value"), values[name])[0] if name in values else ""


def expected(session: Session, ref: NodeRef, name: str) -> str:
    """What the value of an attribute of a node is, in words: its type and its default; "" where nobody knows."""
    found = documentation(ref.node.domain, ref.node.op_type, opset_of(session.model, ref))
    formal = next((each for each in found.attributes if each.name == name), None) if found is not None else None
    if formal is None:
        there = next((each for each in ref.node.attribute if each.name == name), None)
        kind = None if there is None or there.type is None else ATTRIBUTE_TYPE_NAMES.get(there.type)
        return _KINDS.get(kind or "", "")
    words = _KINDS.get(formal.type, formal.type)
    if formal.required:
        return f"{words}; it cannot be left out"
    return words if formal.default is None else f"{words}; {visible(formal.default, 60)} by default"


def value_mistake(ref: NodeRef, name: str, text: str) -> str:
    """What is wrong with a typed value of an attribute; "" where nothing is. Does not ask onnx."""
    node = ref.node
    there = next((each for each in node.attribute if each.name == name), None)
    table = dict(attribute_types(node.domain, node.op_type))
    if name not in table and there is not None and there.type is not None:
        table[name] = there.type
    if name not in table:
        # Whether there is such an attribute, and of which type, is found out when the edit is made.
        return ""
    try:
        value = json_or_text(text)
        attribute_of(name, value, table, node.op_type or "", "")
    except (OnnxJsonError, ValueMistakeError) as error:
        return str(error).removeprefix(": ").removeprefix("value: ")
    return ""
