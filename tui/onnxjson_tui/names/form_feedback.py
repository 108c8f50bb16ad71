"""Feedback of a form while it is filled in: missing fields, mistakes, and what the edit would change."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from onnxjson.editing.declaration import Edit
from onnxjson.editing.parameters import Parameter
from onnxjson.model.display import counted, visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import NodeRef
from onnxjson.model.operator_signatures import typed_signature
from onnxjson.model.operators import plain_domain
from onnxjson.model.selectors import select_nodes
from onnxjson.rendering.tables import clipped
from onnxjson_tui.names.attribute_values import expected, value_mistake, written
from onnxjson_tui.names.form_filling import Filling
from onnxjson_tui.names.offers import SELECTION
from onnxjson_tui.session.answers import Preview
from onnxjson_tui.session.session import Session

SLOW: Final = frozenset(
    {"infer-shapes", "inline-functions", "convert-opset", "combine", "set-batch-size", "set-shape", "set-dim",
     "deduplicate-initializers", "set-tensor", "cast-tensor"}
)  # fmt: skip
"""Edits that are tried only on ctrl+s, since they run onnx, read files or process weights."""


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
    """Return feedback for a form; run it in a thread, since it searches nodes.

    Args:
        session: the session.
        filling: the form, which must not change meanwhile.
        is_trying: whether to preview the edit, unless that is slow.
        also: returns further edits of the same step.
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
    if missing := [field.label for field in filling.missing()]:
        return Feedback(f"still needed: {', '.join(missing)}", "plain", notes, mistakes)
    if mistakes:
        return Feedback("", "plain", notes, mistakes)
    if not is_trying or filling.name in SLOW:
        return Feedback("", "plain", notes, mistakes)
    try:
        preview = session.preview(*edits_of(session, filling, also))
    except (OnnxJsonError, OSError) as error:
        return Feedback(visible(str(error), 1000), "bad", notes, mistakes)
    return Feedback(preview_text(preview), "good" if preview.patch else "changed", notes, mistakes)


def preview_text(preview: Preview) -> str:
    """Describe in one line what an edit would change."""
    if not preview.patch:
        return "; ".join(["nothing would change", *[visible(note, 300) for note in preview.notes]])
    return "; ".join(
        [f"would change {counted(preview.matches, 'place')}", *[visible(note, 300) for note in preview.notes]]
    )


def _nodes(session: Session, text: str) -> tuple[str, str, NodeRef | None]:
    """Return a description of the nodes that a selector finds, what is wrong with it, and the first node."""
    if text.strip() == SELECTION:
        wanted = session.places.selected
        refs = tuple([ref for ref in session.index.node_refs if ref.address in wanted])
        if not refs:
            return "", "no node is selected; v selects the one under the cursor", None
    else:
        try:
            refs = select_nodes(session.model, session.index, text)
        except OnnxJsonError as error:
            return "", visible(str(error), 500), None
    first = refs[0].node
    name = visible(first.name or next((each for each in first.output if each), ""), 80)
    if len(refs) == 1:
        return f"{visible(first.op_type or '?', 40)} {name}", "", refs[0]
    return f"{counted(len(refs), 'node')}, the first one {visible(first.op_type or '?', 40)} {name}", "", refs[0]


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
    found = typed_signature(wanted, op_type, opset) if opset is not None else None
    if found is None:
        return ""
    taken = ", ".join(
        [
            f"{each.name}{'?' if each.option == 'optional' else '...' if each.option == 'variadic' else ''}"
            for each in found.inputs
        ]
    )
    made = ", ".join([each.name for each in found.outputs])
    needed = [each.name for each in found.attributes.values() if each.required]
    return f"({taken}) -> ({made})" + (f", requires the attribute {', '.join(needed)}" if needed else "")
