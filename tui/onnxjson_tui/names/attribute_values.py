"""Attribute values as text: the JSON of a document, what the operator expects, and what is wrong with an input."""

from typing import Final

from onnxjson.editing.attributes import attribute_of
from onnxjson.editing.parameters import Shape
from onnxjson.editing.spelling import json_or_text, spell_value
from onnxjson.editing.values import ValueMistakeError, attribute_values
from onnxjson.model.display import visible
from onnxjson.model.document import Attribute, Node
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import NodeRef
from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES
from onnxjson.model.operators import attribute_types, documentation
from onnxjson.rendering.node import opset_of
from onnxjson_tui.session.session import Session

_BIGGEST: Final = 4096
"""Maximum bytes of a tensor that can be edited as text."""

_KINDS: Final = {
    "FLOAT": "a number, such as 0.5",
    "INT": "an integer",
    "STRING": "a string",
    "TENSOR": 'a tensor, such as {"type": "int64[2]", "values": [1, 2]}',
    "GRAPH": "a graph; E opens it in an editor",
    "FLOATS": "a list of numbers, such as [0.5, 1]",
    "INTS": "a list of integers, such as [1, 1]",
    "STRINGS": 'a list of strings, such as ["a", "b"]',
    "TENSORS": "a list of tensors",
    "GRAPHS": "a list of graphs",
    "TYPE_PROTO": "a type, such as float32[N,3]",
}
"""Attribute types in words."""


def can_be_typed(attribute: Attribute) -> bool:
    """Whether the value of an attribute is short enough to be edited as text, and contains no graph."""
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
    """Return the value of an attribute as editable text; "" if it is too big or contains a graph."""
    attribute = next((each for each in ref.node.attribute if each.name == name), None)
    if attribute is None or not can_be_typed(attribute):
        return ""
    single = Node(op_type=ref.node.op_type, domain=ref.node.domain, attribute=(attribute,))
    values = attribute_values(single) or {}
    return spell_value(Shape("value"), values[name])[0] if name in values else ""


def expected(session: Session, ref: NodeRef, name: str) -> str:
    """Describe the value that an attribute of a node expects: its type and default; "" if unknown."""
    found = documentation(ref.node.domain, ref.node.op_type, opset_of(session.model, ref))
    formal = next((each for each in found.attributes if each.name == name), None) if found is not None else None
    if formal is None:
        there = next((each for each in ref.node.attribute if each.name == name), None)
        kind = None if there is None or there.type is None else ATTRIBUTE_TYPE_NAMES.get(there.type)
        return _KINDS.get(kind or "", "")
    words = _KINDS.get(formal.type, formal.type)
    if formal.required:
        return f"{words}; required"
    return words if formal.default is None else f"{words}; {visible(formal.default, 60)} by default"


def value_mistake(ref: NodeRef, name: str, text: str) -> str:
    """Return what is wrong with the text of an attribute value, or "". Does not run the ONNX checker."""
    node = ref.node
    there = next((each for each in node.attribute if each.name == name), None)
    table = dict(attribute_types(node.domain, node.op_type))
    if name not in table and there is not None and there.type is not None:
        table[name] = there.type
    if name not in table:
        # The edit itself checks whether the attribute exists and which type it has.
        return ""
    try:
        value = json_or_text(text)
        attribute_of(name, value, table, node.op_type or "", "")
    except (OnnxJsonError, ValueMistakeError) as error:
        return str(error).removeprefix(": ").removeprefix("value: ")
    return ""
