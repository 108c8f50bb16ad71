"""What a form says while it is filled in: what is missing, what does not fit, what it would change."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from onnxjson.display import counted, visible
from onnxjson.edits.declaration import Edit
from onnxjson.edits.forms import Field
from onnxjson.errors import OnnxJsonError
from onnxjson.index import NodeRef
from onnxjson.operator_signatures import typed_signature
from onnxjson.operators import plain_domain
from onnxjson.rendering.tables import clipped
from onnxjson.selectors import select_nodes
from onnxjson_tui.answers import Preview
from onnxjson_tui.forms.attribute_values import expected, value_mistake, written
from onnxjson_tui.forms.filling import Filling
from onnxjson_tui.forms.offers import SELECTION
from onnxjson_tui.session import Session

SLOW: Final = frozenset(
    {"infer-shapes", "inline-functions", "convert-opset", "combine", "set-batch-size", "set-shape", "set-dim",
     "deduplicate-initializers", "set-tensor", "cast-tensor"}
)  # fmt: skip
"""Edits that are tried only when the person is done, since they run onnx, read files or go through weights."""


class Look(NamedTuple):
    """What there is to say of a form."""

    text: str
    """Of the whole form. Visible."""
    tone: Literal["plain", "good", "bad", "changed"]
    notes: Mapping[str, str]
    """Of single fields, by their names: what they name, what they expect. Visible."""
    mistakes: Mapping[str, str]
    """Of single fields: what is wrong with them. Visible."""


Also = Callable[[Edit], tuple[Edit, ...]]
"""What is done with the edit of a form, in the same step."""


def edits_of(session: Session, filling: Filling, also: Also | None = None) -> tuple[Edit, ...]:
    """The edits that a form makes: one, or one for each node of the selection, and what goes with it.

    Raises:
        ParameterError: a field does not fit, or is missing.
        EditError: nothing is selected.
    """
    edit = filling.edit()
    for field in filling.fields:
        if field.role in ("nodes", "node") and filling.texts[field.name].strip() == SELECTION:
            return session.on_selection(edit, field.name)
    return (edit, *(also(edit) if also is not None else ()))


def look(session: Session, filling: Filling, *, is_trying: bool, also: Also | None = None) -> Look:
    """Looks at a form; in a thread, since it goes through nodes.

    Args:
        session: has the model.
        filling: must not change meanwhile.
        is_trying: whether the edit may be made to see what it does, where that is not slow.
        also: what goes with the edit.
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
        return Look(f"still needed: {', '.join(missing)}", "plain", notes, mistakes)
    if mistakes:
        return Look("", "plain", notes, mistakes)
    if not is_trying or filling.form.edit in SLOW:
        return Look("", "plain", notes, mistakes)
    try:
        preview = session.preview(*edits_of(session, filling, also))
    except (OnnxJsonError, OSError) as error:
        return Look(visible(str(error), 1000), "bad", notes, mistakes)
    return Look(outlook(preview), "good" if preview.patch else "changed", notes, mistakes)


def outlook(preview: Preview) -> str:
    """What an edit would change, in a line."""
    if not preview.patch:
        return "; ".join(["nothing would change", *[visible(note, 300) for note in preview.notes]])
    return "; ".join(
        [f"would change {counted(preview.matches, 'place')}", *[visible(note, 300) for note in preview.notes]]
    )


def _nodes(session: Session, text: str) -> tuple[str, str, NodeRef | None]:
    """What a selector finds in words, what is wrong with it, and the first node that it finds."""
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


def _note(session: Session, filling: Filling, field: Field, ref: NodeRef | None) -> str:
    """What is expected of a field."""
    if field.role == "attribute-value" and ref is not None and filling.texts["attribute"]:
        name = filling.texts["attribute"]
        found, now = expected(session, ref, name), written(ref, name)
        return "; ".join([*([f"now {clipped(now, 40)}"] if now else []), *([f"expects {found}"] if found else [])])
    if field.role == "operator" and filling.texts[field.name]:
        return _signature(session, filling.texts[field.name], filling.texts.get("domain", ""))
    if field.role == "input" and field.name == "input" and ref is not None and filling.texts["input"].isdigit():
        slot = int(filling.texts["input"])
        names = ref.node.input
        return f"takes {names[slot]} now" if slot < len(names) and names[slot] else "left out now"
    return ""


def _signature(session: Session, op_type: str, domain: str) -> str:
    """What an operator takes and needs."""
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
    return f"takes ({taken}), makes ({made})" + (f", needs the attribute {', '.join(needed)}" if needed else "")
