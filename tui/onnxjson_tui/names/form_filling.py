"""The form of an edit without its screen: texts of the fields, the edit that they describe, feedback while typing."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Final, Literal, NamedTuple

from onnxjson.editing.attributes import attribute_of
from onnxjson.editing.declaration import Edit, in_form_order, name_of, paragraphs
from onnxjson.editing.parameters import JOINED, Parameter, Shape, parameters
from onnxjson.editing.spelling import build, json_or_text, parse_value, spell_value
from onnxjson.editing.type_correction import Flow
from onnxjson.editing.values import ValueMistakeError, attribute_values, record_value, write_value
from onnxjson.model.constants import Constant, find_constant
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Attribute, Node, SparseTensor
from onnxjson.model.errors import OnnxJsonError, ParameterError
from onnxjson.model.index import Index, NodeRef
from onnxjson.model.messages import ATTRIBUTE_TYPE_NAMES
from onnxjson.model.operators import attribute_types, operator_signature
from onnxjson.patterns.selectors import select_nodes
from onnxjson.rendering.node import imported_signature, opset_of
from onnxjson.rendering.tables import clipped
from onnxjson_tui.names.editable_names import is_plain, model_value_selector, node_selector, rank_mistake
from onnxjson_tui.session.session import Session

SELECTION: Final = "%"  # represents the selected nodes in a field for nodes
EMPTY: Final = '""'  # text that represents an empty string, since an empty field is omitted
_FEW: Final = 64  # maximum elements of a constant that the form shows for editing

_OF_NODES: Final = ("set-doc", "set-metadata")
"""Edits that apply to nodes if some are given, otherwise to the whole model."""

_OF_OUTPUTS: Final = ("add-output", "set-shape")  # edits that start with an output of the node under the cursor

NEEDED: Final = "still needed: "  # what feedback begins with while required fields are empty

YES: Final = "yes"
NO: Final = "no"

SLOW: Final = frozenset(
    {"infer-shapes", "inline-functions", "convert-opset", "combine", "set-batch-size", "set-shape", "set-dim",
     "deduplicate-initializers", "set-tensor", "cast-tensor"}
)  # fmt: skip
"""Edits that are tried only on ctrl+s, since they run onnx, read files or process weights."""

_BIGGEST: Final = 4096  # maximum bytes of a tensor that can be edited as text

_KINDS: Final = {
    "FLOAT": "a number, such as 0.5", "INT": "an integer", "STRING": "a string",
    "TENSOR": 'a tensor, such as {"type": "int64[2]", "values": [1, 2]}', "GRAPH": "a graph; E opens it in an editor",
    "FLOATS": "a list of numbers, such as [0.5, 1]", "INTS": "a list of integers, such as [1, 1]",
    "STRINGS": 'a list of strings, such as ["a", "b"]', "TENSORS": "a list of tensors", "GRAPHS": "a list of graphs",
    "TYPE_PROTO": "a type, such as float32[N,3]",
}  # fmt: skip
"""Attribute types in words."""

Also = Callable[[Edit], tuple[Edit, ...]]  # returns further edits that belong to the same step


class Filling:
    """A form that is being filled in; every field contains a text."""

    def __init__(self, edit: type[Edit], texts: Mapping[str, str] | None = None) -> None:
        """Create a form with initial texts by field; lists have one item per line, flags are "yes" or "no"."""
        self.edit_type = edit
        self.name = name_of(edit)
        self.title = self.name.replace("-", " ").capitalize()
        self.help = paragraphs(edit)
        # `expect` and `if-any` are for scripts: a form shows what it would change.
        fields = [field for field in in_form_order(edit) if not field.is_common]
        if self.name == "set-dim":  # `dim` takes VALUE:AXIS, too
            fields = [each for each in fields if each.name not in ("tensor", "axis")]
            fields[0] = replace(fields[0], required=True)
        self.fields = tuple(fields)
        self.texts: dict[str, str] = {field.name: "" for field in self.fields} | dict(texts or {})

    def has_lines(self, field: Parameter) -> bool:
        """Whether a field may have several lines."""
        is_list = field.shape.form == "list" and _item(field.shape).form not in JOINED
        return is_list or field.shape.form == "mapping" or field.role == "text"

    def options(self, field: Parameter) -> tuple[str, ...]:
        """Return the values that a field may have; () for a text field."""
        return (NO, YES) if field.shape.form == "flag" else field.shape.choices

    def parts(self, field: Parameter) -> tuple[str, ...]:
        """Return the values that each item of a list may have."""
        return _item(field.shape).choices if field.shape.form == "list" else ()

    def default(self, field: Parameter) -> str:
        """Return the default of an empty field, or ""."""
        if field.required or field.default is None or field.default in ((), {}, ""):
            return ""
        return text_of(field.shape, field.default).replace("\n", ", ")

    def may_be_empty(self, field: Parameter) -> bool:
        """Whether an empty string is a valid value of a required field."""
        return field.required and field.shape.form == "text" and not field.shape.least

    def given(self) -> dict[str, list[str]]:
        """Return the texts of the filled-in fields, as `onnxjson.editing.spelling.build` expects them."""
        found = {field.name: _texts(field, self.texts.get(field.name, "")) for field in self.fields}
        return {name: texts for name, texts in found.items() if texts is not None}

    def missing(self) -> tuple[Parameter, ...]:
        """Return the required fields that are empty."""
        given = self.given()
        return tuple([field for field in self.fields if field.required and field.name not in given])

    def mistake(self, name: str) -> str:
        """Return the mistake in the text of one field on its own, or ""."""
        texts = self.given().get(name)
        if texts is None:
            return ""
        field = next(field for field in self.fields if field.name == name)
        if field.shape.form == "mapping" and (empty := [each[:-1] for each in texts if each.endswith("=")]):
            return f'{empty[0]} has no value; "" is an empty text'
        try:
            parse_value(field, texts)
        except ValueMistakeError as mistake:
            path = "".join([f"[{part}]" if isinstance(part, int) else f".{part}" for part in mistake.path])
            return f"{path}: {mistake}" if path else str(mistake)
        except ParameterError as error:
            return str(error)
        return ""

    def edit(self) -> Edit:
        """Return the edit of the form.

        Raises:
            ParameterError: a field is invalid or missing.
        """
        return build(self.edit_type, self.given(), ())


def _item(shape: Shape) -> Shape:
    return shape.item or Shape("value")


def _texts(parameter: Parameter, text: str) -> list[str] | None:
    """Split the text of a field into words; None if the field is empty."""
    shape = parameter.shape
    if shape.form == "flag":
        is_default = text in ("", YES if parameter.default else NO)
        return None if is_default and not parameter.required else [] if text == YES else [NO]
    if shape.form in ("list", "mapping"):
        lines = text.splitlines()
        while lines and not lines[-1].strip():
            lines.pop()
        # An empty line between others represents an omitted value.
        lines = [line for line in lines if line.strip() or parameter.role == "tensors"]
        return lines or None
    if not text.strip():
        return None
    return [""] if text.strip() == EMPTY and shape.form == "text" else [text if shape.form == "text" else text.strip()]


def text_of(shape: Shape, value: object) -> str:
    """Return a value as the text of a field."""
    if shape.form == "flag":
        return YES if value else NO
    texts = spell_value(shape, value)
    if shape.form in ("list", "mapping"):
        is_clear = all([is_plain(text) and not text.startswith("{") for text in texts])
        return "\n".join(texts) if is_clear else write_value(value)
    return EMPTY if texts == [""] and shape.form in ("text", "size", "value") else texts[0]


def prefilled(session: Session, edit: type[Edit], ref: NodeRef | None) -> dict[str, str]:
    """Return the initial texts of the fields of an edit, from the selection and the node under the cursor."""
    texts: dict[str, str] = {}
    for parameter in parameters(edit):
        if parameter.role in ("node", "nodes") and (parameter.required or name_of(edit) in _OF_NODES):
            if session.places.selected and parameter.role == "nodes":
                texts[parameter.name] = SELECTION
            elif ref is not None:
                texts[parameter.name] = node_selector(session.index, ref)
        elif parameter.role == "nodes" and name_of(edit) == "replace-pattern" and session.places.selected:
            texts[parameter.name] = SELECTION
    if ref is None:
        return texts
    if name_of(edit) in _OF_OUTPUTS and ref.node.output:
        texts["tensor"] = _value(session, ref, ref.node.output[0])
    if name_of(edit) in ("set-tensor", "cast-tensor"):
        constants = [find_constant(ref.scope, name) for name in (*ref.node.input, *ref.node.output) if name]
        dense = [each for each in constants if each is not None and not isinstance(each.value, SparseTensor)]
        if dense:
            texts["tensor"] = _value(session, ref, dense[0].name)
            if name_of(edit) == "set-tensor":
                texts["value"] = _elements(dense[0])
    if name_of(edit) == "set-attribute" and len(ref.node.attribute) == 1 and not session.places.selected:
        texts["attribute"] = ref.node.attribute[0].name or ""
        texts["value"] = written(ref, texts["attribute"])
    if name_of(edit) == "add-node" and ref.scope.address != "/graph":
        texts["graph"] = ref.scope.address
    return {name: text for name, text in texts.items() if text}


def _elements(constant: Constant) -> str:
    """Return the elements of a small constant as editable text; "" for other constants."""
    tensor = constant.tensor
    if tensor is None or tensor.external_data or prod(tensor.dims) > _FEW:
        return ""
    values = record_value(tensor).get("values")
    return "" if values is None else write_value(values)


def _value(session: Session, here: NodeRef, name: str) -> str:
    defining_scope = Index.defining_scope(here.scope, name) if name else None
    if defining_scope is None:
        return ""
    return model_value_selector(session.index, defining_scope, name)


class Feedback(NamedTuple):
    """Feedback of a form."""

    text: str  # message about the whole form, without control characters
    tone: Literal["plain", "good", "bad", "changed"]
    notes: Mapping[str, str]
    """Notes by field: what the field refers to and what it expects. Without control characters."""
    mistakes: Mapping[str, str]
    """Mistakes by field. Without control characters."""
    flow: Flow = Flow()  # the types that the edit would change


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
    if missing or mistakes or filling.name in SLOW:
        text = f"{NEEDED}{', '.join(missing)}" if missing else ""
        return Feedback(text, "plain", notes, mistakes)
    flow = Flow()
    try:
        edits = edits_of(session, filling, also)
        flow = session.foresee(*edits)
        if not is_trying:
            changed = f"types of {counted(len(flow.types), 'node')} would change" if flow.types else ""
            return Feedback(_broken(flow) or changed, "bad" if flow.complaints else "good", notes, mistakes, flow)
        preview = session.preview(*edits)
    except (OnnxJsonError, OSError) as error:
        return Feedback(_broken(flow) or visible(str(error), 1000), "bad", notes, mistakes, flow)
    change = f"would change {counted(preview.matches, 'place')}" if preview.patch else "nothing would change"
    text = "; ".join([change, *[visible(note, 300) for note in preview.notes]])
    return Feedback(text, "good" if preview.patch else "changed", notes, mistakes, flow)


def _broken(flow: Flow) -> str:
    found = [f"node {address.rpartition('/')[2]}: {visible(text, 200)}" for address, text in flow.complaints.items()]
    return "; ".join(found)


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
    signature = imported_signature(session.model, op_type, domain)
    if signature is None:
        return ""
    marks = {"optional": "?", "variadic": "..."}
    inputs = ", ".join([each.name + marks.get(each.option, "") for each in signature.inputs])
    outputs = ", ".join([each.name for each in signature.outputs])
    needed = [each.name for each in signature.attributes.values() if each.required]
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
    existing = _attribute(node, name)
    table = dict(attribute_types(node.domain, node.op_type))
    if name not in table and existing is not None and existing.type is not None:
        table[name] = existing.type
    try:
        value = json_or_text(text)
        if name not in table:
            # The edit itself checks whether the attribute exists and which type it has.
            return ""
        attribute_of(name, value, table, node.op_type or "", "", where="")
    except (OnnxJsonError, ValueMistakeError) as error:
        return str(error)
    return rank_mistake(ref, name, value)
