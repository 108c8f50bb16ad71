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
from onnxjson_tui.workbench.forms_and_commands import fill_in


def entry_here(bench: Workbench) -> Entry | None:
    """Return the row of the inspector under its cursor."""
    rows = bench.inspector.rows
    if not isinstance(rows, InspectorRows) or bench.inspector.cursor >= len(rows):
        return None
    return rows.entries[bench.inspector.cursor]


async def open_entry(bench: Workbench, arguments: Arguments) -> None:
    """Go where the row of the inspector leads, or edit it."""
    entry = entry_here(bench)
    if entry is None:
        return
    if entry.kind in ("input", "consumer") and entry.address:
        bench.go(entry.address)
    elif bench.session.readonly:
        bench.say(READ_ONLY, "bad")
    else:
        await edit_entry(bench, arguments)


async def edit_entry(bench: Workbench, arguments: Arguments) -> None:
    """Edit the row of the inspector."""
    entry, ref = entry_here(bench), require_here(bench)
    await ready(bench)
    if entry is None:
        return
    match entry.kind:
        case "operator":
            await fill_in(bench, "replace-node", {"node": node_selector(bench.session.index, ref)}, focus="op_type")
        case "name":
            await rename_this(bench, ref)
        case "input":
            await rewire_input(bench, ref, entry.slot)
        case "output" if entry.name:
            await ask_value_name(bench, ref.scope, entry.name)
        case "attribute":
            await edit_attribute(bench, ref, entry.name)
        case "add":
            await add_attribute(bench, ref)
        case "metadata":
            await edit_metadata(bench, ref, entry.name)
        case "doc":
            await edit_documentation(bench, ref)
        case "consumer":
            bench.say("a consumer is edited at its own place; enter goes there", "plain")


async def remove_entry(bench: Workbench, arguments: Arguments) -> None:
    """Remove what is in the row of the inspector."""
    entry, ref = entry_here(bench), require_here(bench)
    await ready(bench)
    words = node_selector(bench.session.index, ref)
    if entry is None:
        return
    match entry.kind:
        case "attribute":
            await make(bench, RemoveAttribute(node=words, attribute=entry.name))
        case "metadata":
            await make(bench, SetMetadata(key=entry.name, node=words, remove=True))
        case "doc":
            await make(bench, SetDoc(text="", node=words))
        case "input":
            await make(bench, Rewire(node=words, input=entry.slot, tensor=""))
        case _:
            bench.say("attributes, metadata, doc strings and optional inputs can be removed here", "changed")


async def edit_attribute(bench: Workbench, ref: NodeRef, name: str) -> None:
    """Ask for the value of an attribute, checked while the user types."""
    session = bench.session
    there = next((each for each in ref.node.attribute if each.name == name), None)
    if there is not None and not can_be_typed(there):
        bench.say(f"{visible(name, 100)} is too big to type; E opens the node in an editor", "changed")
        return
    hint = await bench.jobs.run("edit", "looking up the operator", lambda: expected(session, ref, name))
    words = node_selector(session.index, ref)

    def edit(text: str) -> SetAttribute:
        return SetAttribute(node=words, attribute=name, value=json_or_text(text.strip()))

    await ask_and_make(
        bench,
        f"{visible(name, 60)} = ",
        written(ref, name),
        edit,
        hint=hint,
        mistake=lambda text: "" if not text.strip() else value_mistake(ref, name, text.strip()),
    )


async def add_attribute(bench: Workbench, ref: NodeRef) -> None:
    """Offer the missing attributes of the operator, then ask for the value."""
    offers, words = Offers(bench.session, ref), node_selector(bench.session.index, ref)
    there = {each.name for each in ref.node.attribute}

    def find() -> Searchable:
        return Searchable([each for each in offers.attributes(words) if each.key not in there])

    choices = await bench.jobs.run("edit", "looking up the operator", find)
    if choices:
        name = await bench.choose("Which attribute", choices)
    else:
        # The operator is unknown, or the node has all its attributes.
        hint = "the operator has no other known attributes"
        name = await ask(bench, "name of the attribute: ", hint=hint)
    if name:
        await edit_attribute(bench, ref, name)


async def edit_metadata(bench: Workbench, ref: NodeRef, key: str) -> None:
    """Ask for the value of an entry of the metadata of a node."""
    value = next((each.value or "" for each in ref.node.metadata_props if each.key == key), "")
    answer = await ask_text(bench, f"{visible(key, 60)} = ", value)
    if answer is not None:
        await make(bench, SetMetadata(key=key, value=answer, node=node_selector(bench.session.index, ref)))


async def edit_documentation(bench: Workbench, ref: NodeRef) -> None:
    """Ask for the doc string of a node, in a form if it has several lines."""
    old, words = ref.node.doc_string or "", node_selector(bench.session.index, ref)
    lines = old.split("\n")
    if len(lines) > 1 and all(visible(line, None) == line for line in lines):
        await fill_in(bench, "set-doc", {"text": old, "node": words}, focus="text")
        return
    answer = await ask_text(bench, "doc string: ", old)
    if answer is not None:
        await make(bench, SetDoc(text=answer, node=words))


def to_inspector(bench: Workbench, arguments: Arguments) -> None:
    """Go to the first attribute in the inspector."""
    bench.show_details()
    rows = bench.inspector.rows
    bench.focus_pane("inspector")
    if isinstance(rows, InspectorRows):
        places = [number for number, entry in enumerate(rows.entries) if entry.kind in ("attribute", "add")]
        bench.inspector.move_to(places[0] if places else 0)


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


async def _interface(bench: Workbench, arguments: Arguments) -> None:
    while True:
        choices = port_choices(bench.session.index)
        inputs = sum([each.key.startswith("input ") for each in choices])
        title = f"{counted(inputs, 'input')}, {counted(len(choices) - inputs, 'output')}"
        if not bench.session.readonly:
            choices += [Choice(*each) for each in _INTERFACE_EDITS]
        chosen = await bench.choose(title, choices, is_wide=True)
        if chosen is None or bench.session.readonly:
            return
        try:
            if chosen in NAMES:
                await fill_in(bench, chosen, focus="size" if chosen == "set-batch-size" else "")
            else:
                await _edit_port(bench, *chosen.split(" ", 1))
        except OnnxJsonError as error:
            bench.failed(error)
            return


async def _edit_port(bench: Workbench, kind: str, name: str) -> None:
    scope = bench.session.index.main
    choices = [Choice(key, label) for key, label in _PORT_ACTIONS]
    action = await bench.choose(f"{kind} {visible(name, 100)}", choices)
    if scope is None:
        return
    words = model_value_selector(bench.session.index, scope, name)
    match action:
        case "batch":
            await fill_in(bench, "set-batch-size", focus="size")
        case "shape":
            await fill_in(bench, "set-shape", {"tensor": words, "shape": _shape(scope, name)}, focus="shape")
        case "dimension":
            dim = next((each for each in _shape(scope, name).split(",") if each and not each.isdigit()), "")
            if dim and dim != "?":
                await fill_in(bench, "set-dim", {"dim": dim}, focus="size")
            else:
                await fill_in(bench, "set-dim", {"tensor": words, "axis": "0"}, focus="size")
        case "rename":
            await ask_value_name(bench, scope, name, kind)
        case "remove":
            await make(bench, RemoveInput(tensor=name) if kind == "input" else RemoveOutput(tensor=name))


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
        "interface", "inputs and outputs", ("i",), _interface, "Edit", footer="in/out",
        help="Their shapes, the batch size, other ones.",
    ),
)  # fmt: skip
