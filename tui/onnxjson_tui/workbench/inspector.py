"""The inspector, and the list of inputs and outputs of the model: go where a row leads, edit what is in it."""

from typing import Final

from onnxjson.editing.annotations import SetDoc, SetMetadata
from onnxjson.editing.attributes import RemoveAttribute, SetAttribute
from onnxjson.editing.catalogue import NAMES
from onnxjson.editing.interface import RemoveInput, RemoveOutput
from onnxjson.editing.nodes import Rewire
from onnxjson.editing.spelling import json_or_text
from onnxjson.model.display import counted, visible
from onnxjson.model.errors import OnnxJsonError
from onnxjson.model.index import NodeRef, Scope
from onnxjson_tui.names.editable_names import model_value_selector, node_selector
from onnxjson_tui.names.form_filling import can_be_typed, expected, value_mistake, written
from onnxjson_tui.names.offers import Offers
from onnxjson_tui.rows.choices import Choice, Searchable
from onnxjson_tui.rows.inspector import Entry, InspectorRows, port_choices
from onnxjson_tui.session.edited_model import READ_ONLY
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments
from onnxjson_tui.workbench.editing import (
    ask,
    ask_and_make,
    ask_text,
    ask_value_name,
    make,
    ready,
    rename_this,
    require_here,
    rewire_input,
)
from onnxjson_tui.workbench.forms import fill_in

_INTERFACE_EDITS: Final = (
    ("set-batch-size", "set the batch size"),
    ("add-input", "add an input"),
    ("add-output", "add an output"),
)

_PORT_ACTIONS: Final = (
    ("batch", "set the batch size, in all constants that fix it too"),
    ("shape", "set the shape"),
    ("dimension", "set the size of a dimension"),
    ("rename", "rename"),
    ("remove", "remove"),
)


def entry_here(workbench: Workbench) -> Entry | None:
    """Return the row of the inspector under its cursor."""
    rows = workbench.inspector.rows
    if not isinstance(rows, InspectorRows) or workbench.inspector.cursor >= len(rows):
        return None
    return rows.entries[workbench.inspector.cursor]


async def open_entry(workbench: Workbench, arguments: Arguments) -> None:
    """Go where the row of the inspector leads, or edit it."""
    entry = entry_here(workbench)
    if entry is None:
        return
    if entry.kind in ("input", "consumer") and entry.address:
        workbench.go(entry.address)
    elif workbench.session.readonly:
        workbench.say(READ_ONLY, "bad")
    else:
        await edit_entry(workbench, arguments)


async def edit_entry(workbench: Workbench, arguments: Arguments) -> None:
    """Edit the row of the inspector."""
    entry, ref = entry_here(workbench), require_here(workbench)
    await ready(workbench)
    if entry is None:
        return
    match entry.kind:
        case "operator":
            await fill_in(
                workbench, "replace-node", {"node": node_selector(workbench.session.index, ref)}, focus="op_type"
            )
        case "name":
            await rename_this(workbench, ref)
        case "input":
            await rewire_input(workbench, ref, entry.slot)
        case "output" if entry.name:
            await ask_value_name(workbench, ref.scope, entry.name)
        case "attribute":
            await edit_attribute(workbench, ref, entry.name)
        case "add":
            await add_attribute(workbench, ref)
        case "metadata":
            await edit_metadata(workbench, ref, entry.name)
        case "doc":
            await edit_documentation(workbench, ref)
        case "consumer":
            workbench.say("a consumer is edited at its own place; enter goes there", "plain")


async def remove_entry(workbench: Workbench, arguments: Arguments) -> None:
    """Remove what is in the row of the inspector."""
    entry, ref = entry_here(workbench), require_here(workbench)
    await ready(workbench)
    words = node_selector(workbench.session.index, ref)
    if entry is None:
        return
    match entry.kind:
        case "attribute":
            await make(workbench, RemoveAttribute(node=words, attribute=entry.name))
        case "metadata":
            await make(workbench, SetMetadata(key=entry.name, node=words, remove=True))
        case "doc":
            await make(workbench, SetDoc(text="", node=words))
        case "input":
            await make(workbench, Rewire(node=words, input=entry.slot, tensor=""))
        case _:
            workbench.say("attributes, metadata, doc strings and optional inputs can be removed here", "changed")


async def edit_attribute(workbench: Workbench, ref: NodeRef, name: str) -> None:
    """Ask for the value of an attribute, checked while the user types."""
    session = workbench.session
    there = next((each for each in ref.node.attribute if each.name == name), None)
    if there is not None and not can_be_typed(there):
        workbench.say(f"{visible(name, 100)} is too big to type; E opens the node in an editor", "changed")
        return
    hint = await workbench.jobs.run("edit", "looking up the operator", lambda: expected(session, ref, name))
    words = node_selector(session.index, ref)

    def edit(text: str) -> SetAttribute:
        return SetAttribute(node=words, attribute=name, value=json_or_text(text.strip()))

    await ask_and_make(
        workbench,
        f"{visible(name, 60)} = ",
        written(ref, name),
        edit,
        hint=hint,
        mistake=lambda text: "" if not text.strip() else value_mistake(ref, name, text.strip()),
    )


async def add_attribute(workbench: Workbench, ref: NodeRef) -> None:
    """Offer the missing attributes of the operator, then ask for the value."""
    offers, words = Offers(workbench.session, ref), node_selector(workbench.session.index, ref)
    existing = {each.name for each in ref.node.attribute}

    def find() -> Searchable:
        return Searchable([each for each in offers.attributes(words) if each.key not in existing])

    choices = await workbench.jobs.run("edit", "looking up the operator", find)
    if choices:
        name = await workbench.choose("Which attribute", choices)
    else:
        # The operator is unknown, or the node has all its attributes.
        hint = "the operator has no other known attributes"
        name = await ask(workbench, "name of the attribute: ", hint=hint)
    if name:
        await edit_attribute(workbench, ref, name)


async def edit_metadata(workbench: Workbench, ref: NodeRef, key: str) -> None:
    """Ask for the value of an entry of the metadata of a node."""
    value = next((each.value or "" for each in ref.node.metadata_props if each.key == key), "")
    answer = await ask_text(workbench, f"{visible(key, 60)} = ", value)
    if answer is not None:
        await make(workbench, SetMetadata(key=key, value=answer, node=node_selector(workbench.session.index, ref)))


async def edit_documentation(workbench: Workbench, ref: NodeRef) -> None:
    """Ask for the doc string of a node, in a form if it has several lines."""
    old, words = ref.node.doc_string or "", node_selector(workbench.session.index, ref)
    lines = old.split("\n")
    if len(lines) > 1 and all(visible(line, None) == line for line in lines):
        await fill_in(workbench, "set-doc", {"text": old, "node": words}, focus="text")
        return
    answer = await ask_text(workbench, "doc string: ", old)
    if answer is not None:
        await make(workbench, SetDoc(text=answer, node=words))


def to_inspector(workbench: Workbench, arguments: Arguments) -> None:
    """Go to the first attribute in the inspector."""
    workbench.show_details()
    rows = workbench.inspector.rows
    workbench.focus_pane("inspector")
    if isinstance(rows, InspectorRows):
        places = [number for number, entry in enumerate(rows.entries) if entry.kind in ("attribute", "add")]
        workbench.inspector.move_to(places[0] if places else 0)


async def _interface(workbench: Workbench, arguments: Arguments) -> None:
    while True:
        choices = port_choices(workbench.session.index)
        inputs = sum([each.key.startswith("input ") for each in choices])
        title = f"{counted(inputs, 'input')}, {counted(len(choices) - inputs, 'output')}"
        if not workbench.session.readonly:
            choices += [Choice(*each) for each in _INTERFACE_EDITS]
        chosen = await workbench.choose(title, choices, is_wide=True)
        if chosen is None or workbench.session.readonly:
            return
        try:
            if chosen in NAMES:
                await fill_in(workbench, chosen, focus="size" if chosen == "set-batch-size" else "")
            else:
                await _edit_port(workbench, *chosen.split(" ", 1))
        except OnnxJsonError as error:
            workbench.failed(error)
            return


async def _edit_port(workbench: Workbench, kind: str, name: str) -> None:
    scope = workbench.session.index.main
    choices = [Choice(key, label) for key, label in _PORT_ACTIONS]
    action = await workbench.choose(f"{kind} {visible(name, 100)}", choices)
    if scope is None:
        return
    words = model_value_selector(workbench.session.index, scope, name)
    match action:
        case "batch":
            await fill_in(workbench, "set-batch-size", focus="size")
        case "shape":
            await fill_in(workbench, "set-shape", {"tensor": words, "shape": _shape(scope, name)}, focus="shape")
        case "dimension":
            dim = next((each for each in _shape(scope, name).split(",") if each and not each.isdigit()), "")
            if dim and dim != "?":
                await fill_in(workbench, "set-dim", {"dim": dim}, focus="size")
            else:
                await fill_in(workbench, "set-dim", {"dim": f"{words}:0"}, focus="size")
        case "rename":
            await ask_value_name(workbench, scope, name, kind)
        case "remove":
            await make(workbench, RemoveInput(tensor=name) if kind == "input" else RemoveOutput(tensor=name))


def _shape(scope: Scope, name: str) -> str:
    """Return the shape of a value as the form expects it; "" if it is unknown."""
    found = scope.types.get(name)
    shape = found.tensor_type.shape if found is not None and found.tensor_type is not None else None
    if shape is None:
        return ""
    sizes = [str(dim.dim_value) if dim.dim_value is not None else dim.dim_param or "?" for dim in shape.dim]
    return ",".join(sizes) if all(visible(size, None) == size and "," not in size for size in sizes) else ""


ACTIONS: Final = (
    Action(
        "interface", "inputs and outputs", ("i",), _interface, "Edit",
        help="Edits their shapes and the batch size, and adds inputs and outputs.",
    ),
)  # fmt: skip
