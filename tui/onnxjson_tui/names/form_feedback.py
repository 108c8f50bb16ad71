"""Feedback of a form while it is filled in: missing fields, mistakes, attribute values, what the edit would change."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Final, Literal, NamedTuple

from onnxjson.editing.attributes import attribute_of
from onnxjson.editing.declaration import Edit
from onnxjson.editing.parameters import Parameter, Shape
from onnxjson.editing.spelling import json_or_text, spell_value
from onnxjson.editing.values import ValueMistakeError, attribute_values
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Attribute, Node
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import NodeRef
from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES
from onnxjson.model.operators import attribute_types, operator_signature, plain_domain
from onnxjson.patterns.selectors import select_nodes
from onnxjson.rendering.node import opset_of
from onnxjson.rendering.tables import clipped
from onnxjson_tui.names.form_filling import SELECTION, Filling
from onnxjson_tui.session.answers import Preview
from onnxjson_tui.session.session import Session

SLOW: Final = frozenset(
    {"infer-shapes", "inline-functions", "convert-opset", "combine", "set-batch-size", "set-shape", "set-dim",
     "deduplicate-initializers", "set-tensor", "cast-tensor"}
)  # fmt: skip
"""Edits that are tried only on ctrl+s, since they run onnx, read files or process weights."""


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


class Feedback(NamedTuple):
    """Feedback of a form."""

    text: str
    """Message about the whole form, without control characters."""
    tone: Literal["plain", "good", "bad", "changed"]
    notes: Mapping[str, str]
    """Notes by field: what the field refers to and what it expects. Without control characters."""
    mistakes: Mapping[str, str]
    """Mistakes by field. Without control characters."""


Also = Callable[[Edit], tuple[Edit, ...]]
"""Returns further edits that belong to the same step."""


def edits_of(session: Session, filling: Filling, also: Also | None = None) -> tuple[Edit, ...]:
    """Return the edits of a form: one, or one for each selected node, and the edits that belong to it.

    Raises:
        ParameterError: a field is invalid or missing.
        EditError: nothing is selected.
    """
    edit = filling.edit()
    for field in filling.fields:
        if field.role in ("nodes", "node") and filling.texts[field.name].strip() == SELECTION:
            return session.on_selection(edit, field.name)
    return (edit, *(also(edit) if also is not None else ()))


def feedback(session: Session, filling: Filling, *, is_trying: bool, also: Also | None = None) -> Feedback:
    """Return feedback for a form, which must not change meanwhile; run it in a thread, since it searches nodes.

    With `is_trying`, the edit is previewed unless that is slow. `also` returns further edits of the same step.
    """
    mistakes = {field.name: text for field in filling.fields if (text := visible(filling.mistake(field.name), 500))}
    notes: dict[str, str] = {}
    ref: NodeRef | None = None
    for field in filling.fields:
        if field.role in ("nodes", "node") and filling.texts[field.name].strip():
            note, mistake, first = _nodes(session, filling.texts[field.name])
            ref = ref or first
            notes[field.name] = note
            if mistake:
                mistakes.setdefault(field.name, mistake)
    for field in filling.fields:
        note = _note(session, filling, field, ref)
        if note:
            notes.setdefault(field.name, visible(note, 500))
    value = next((field.name for field in filling.fields if field.role == "attribute-value"), None)
    if value is not None and ref is not None and filling.texts["attribute"] and filling.texts[value].strip():
        mistake = value_mistake(ref, filling.texts["attribute"], filling.texts[value].strip())
        if mistake:
            mistakes.setdefault(value, visible(mistake, 500))
    missing = [field.label for field in filling.missing()]
    if missing or mistakes or not is_trying or filling.name in SLOW:
        text = f"still needed: {', '.join(missing)}" if missing else ""
        return Feedback(text, "plain", notes, mistakes)
    try:
        preview = session.preview(*edits_of(session, filling, also))
    except (OnnxJsonError, OSError) as error:
        return Feedback(visible(str(error), 1000), "bad", notes, mistakes)
    return Feedback(preview_text(preview), "good" if preview.patch else "changed", notes, mistakes)


def preview_text(preview: Preview) -> str:
    """Describe in one line what an edit would change."""
    change = f"would change {counted(preview.matches, 'place')}" if preview.patch else "nothing would change"
    return "; ".join([change, *[visible(note, 300) for note in preview.notes]])


def _nodes(session: Session, text: str) -> tuple[str, str, NodeRef | None]:
    """Return a description of the nodes that a selector finds, its mistake, and the first node."""
    if text.strip() == SELECTION:
        refs = session.selected
        if not refs:
            return "", "no node is selected; v selects the one under the cursor", None
    else:
        try:
            refs = select_nodes(session.model, session.index, text)
        except OnnxJsonError as error:
            return "", visible(str(error), 500), None
    first = refs[0].node
    name = visible(first.name or next((each for each in first.output if each), ""), 80)
    start = "" if len(refs) == 1 else f"{counted(len(refs), 'node')}, the first one "
    return f"{start}{visible(first.op_type or '?', 40)} {name}", "", refs[0]


def _note(session: Session, filling: Filling, field: Parameter, ref: NodeRef | None) -> str:
    """Describe what a field expects."""
    if field.role == "attribute-value" and ref is not None and filling.texts["attribute"]:
        name = filling.texts["attribute"]
        found, now = expected(session, ref, name), written(ref, name)
        return "; ".join([*([f"now {clipped(now, 40)}"] if now else []), *([f"expects {found}"] if found else [])])
    if field.role == "operator" and filling.texts[field.name]:
        return _signature(session, filling.texts[field.name], filling.texts.get("domain", ""))
    if field.role == "input" and field.name == "input" and ref is not None and filling.texts["input"].isdigit():
        slot = int(filling.texts["input"])
        names = ref.node.input
        return f"now {names[slot]}" if slot < len(names) and names[slot] else "now omitted"
    return ""


def _signature(session: Session, op_type: str, domain: str) -> str:
    """Describe the inputs, outputs and required attributes of an operator."""
    wanted = plain_domain(domain)
    opset = next((each.version for each in session.model.opset_import if plain_domain(each.domain) == wanted), None)
    found = operator_signature(wanted, op_type, opset) if opset is not None else None
    if found is None:
        return ""
    marks = {"optional": "?", "variadic": "..."}
    inputs = ", ".join([each.name + marks.get(each.option, "") for each in found.inputs])
    outputs = ", ".join([each.name for each in found.outputs])
    needed = [each.name for each in found.attributes.values() if each.required]
    return f"({inputs}) -> ({outputs})" + (f", requires the attribute {', '.join(needed)}" if needed else "")


def can_be_typed(attribute: Attribute) -> bool:
    """Whether the value of an attribute is short enough to be edited as text, and contains no graph."""
    tensor = attribute.t
    if attribute.g is not None or attribute.graphs or attribute.tensors or attribute.sparse_tensor is not None:
        return False
    if len(attribute.floats) > _BIGGEST or len(attribute.ints) > _BIGGEST or attribute.ref_attr_name:
        return False
    if tensor is None:
        return True
    return prod(tensor.dims) * 16 <= _BIGGEST and not tensor.external_data


def _attribute(node: Node, name: str) -> Attribute | None:
    return next((each for each in node.attribute if each.name == name), None)


def written(ref: NodeRef, name: str) -> str:
    """Return the value of an attribute as editable text; "" if it is too big or contains a graph."""
    attribute = _attribute(ref.node, name)
    if attribute is None or not can_be_typed(attribute):
        return ""
    single = Node(op_type=ref.node.op_type, domain=ref.node.domain, attribute=(attribute,))
    values = attribute_values(single) or {}
    return spell_value(Shape("value"), values[name])[0] if name in values else ""


def expected(session: Session, ref: NodeRef, name: str) -> str:
    """Describe the value that an attribute of a node expects: its type and default; "" if unknown."""
    found = operator_signature(ref.node.domain, ref.node.op_type, opset_of(session.model, ref))
    formal = found.attributes.get(name) if found is not None else None
    if formal is None:
        there = _attribute(ref.node, name)
        kind = None if there is None or there.type is None else ATTRIBUTE_TYPE_NAMES.get(there.type)
        return _KINDS.get(kind or "", "")
    kind = ATTRIBUTE_TYPE_NAMES[formal.type]
    words = _KINDS.get(kind, kind)
    if formal.required:
        return f"{words}; required"
    return words if formal.default is None else f"{words}; {visible(formal.default, 60)} by default"


def value_mistake(ref: NodeRef, name: str, text: str) -> str:
    """Return the mistake in the text of an attribute value, or "". Does not run the ONNX checker."""
    node = ref.node
    there = _attribute(node, name)
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
