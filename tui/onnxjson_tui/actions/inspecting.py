"""The inspector: going where a row leads, and editing what stands in it."""

from typing import TYPE_CHECKING, Final

from onnxjson.display import visible
from onnxjson.edits.attributes import RemoveAttribute, SetAttribute
from onnxjson.edits.declaration import Edit
from onnxjson.edits.doc_strings import SetDoc
from onnxjson.edits.nodes import Rewire
from onnxjson.edits.spelling import json_or_text
from onnxjson.edits.versions import SetMetadata
from onnxjson.index import NodeRef
from onnxjson_tui.action import Action, Given
from onnxjson_tui.actions.asking import ask
from onnxjson_tui.actions.editing import made, ready, rename_output, rename_this, require_here, rewire_input
from onnxjson_tui.actions.forms import fill_in
from onnxjson_tui.edited_model import READ_ONLY
from onnxjson_tui.forms.attribute_values import can_be_typed, expected, value_mistake, written
from onnxjson_tui.forms.offers import Offers
from onnxjson_tui.forms.words import meant, node_words, typed
from onnxjson_tui.rows.choices import Searchable
from onnxjson_tui.rows.inspector import Entry, InspectorRows
from onnxjson_tui.screens.choosing import PickerScreen

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


def entry_here(bench: "Workbench") -> Entry | None:
    """The row of the inspector under its cursor."""
    rows = bench.inspector.rows
    if not isinstance(rows, InspectorRows) or bench.inspector.cursor >= len(rows):
        return None
    return rows.entries[bench.inspector.cursor]


async def open_entry(bench: "Workbench", given: Given) -> None:
    """Goes to the producer of an input and to consumers; edits the rest."""
    entry = entry_here(bench)
    if entry is None:
        return
    if entry.kind in ("input", "consumer") and entry.address:
        bench.go(entry.address)
    elif bench.session.readonly:
        bench.say(READ_ONLY, "bad")
    else:
        await edit_entry(bench, given)


async def edit_entry(bench: "Workbench", given: Given) -> None:
    """Edits what stands in a row."""
    entry, ref = entry_here(bench), require_here(bench)
    await ready(bench)
    match entry.kind if entry is not None else "":
        case "operator":
            await fill_in(bench, "replace-node", {"node": node_words(bench.session.index, ref)}, focus="op_type")
        case "name":
            await rename_this(bench, ref)
        case "input":
            assert entry is not None
            await rewire_input(bench, ref, entry.slot)
        case "output":
            assert entry is not None
            if entry.name:
                await rename_output(bench, ref, entry.name)
        case "attribute":
            assert entry is not None
            await edit_attribute(bench, ref, entry.name)
        case "add":
            await add_attribute(bench, ref)
        case "metadata":
            assert entry is not None
            await edit_metadata(bench, ref, entry.name)
        case "doc":
            await edit_documentation(bench, ref)
        case "consumer":
            bench.say("a consumer is edited where it stands; enter goes there", "plain")


async def remove_entry(bench: "Workbench", given: Given) -> None:
    """Removes what stands in a row: an attribute, an entry of the metadata, the comment, the value of an input."""
    entry, ref = entry_here(bench), require_here(bench)
    await ready(bench)
    words = node_words(bench.session.index, ref)
    if entry is None:
        return
    match entry.kind:
        case "attribute":
            await made(bench, RemoveAttribute(node=words, attribute=entry.name))
        case "metadata":
            await made(bench, SetMetadata(key=entry.name, node=words, remove=True))
        case "doc":
            await made(bench, SetDoc(text="", node=words))
        case "input":
            await made(bench, Rewire(node=words, input=entry.slot, tensor=""))
        case _:
            bench.say("attributes, metadata, comments and optional inputs can be removed here", "changed")


async def edit_attribute(bench: "Workbench", ref: NodeRef, name: str) -> None:
    """Asks for the value of an attribute; what fits is said while it is typed."""
    session = bench.session
    there = next((each for each in ref.node.attribute if each.name == name), None)
    if there is not None and not can_be_typed(there):
        bench.say(f"{visible(name, 100)} is too big to be typed; E opens the node in an editor", "changed")
        return
    hint = await bench.jobs.run("edit", "looking at the operator", lambda: expected(session, ref, name))
    answer = await ask(
        bench,
        f"{visible(name, 60)} = ",
        text=written(ref, name),
        hint=hint,
        mistake=lambda text: "" if not text.strip() else value_mistake(ref, name, text.strip()),
    )
    if answer is None or not answer.strip():
        return
    await made(bench, _set(session_words(bench, ref), name, answer.strip()))


def session_words(bench: "Workbench", ref: NodeRef) -> str:
    """A selector for a node."""
    return node_words(bench.session.index, ref)


def _set(words: str, name: str, text: str) -> Edit:
    return SetAttribute(node=words, attribute=name, value=json_or_text(text))


async def add_attribute(bench: "Workbench", ref: NodeRef) -> None:
    """Offers the attributes that the operator could have, then asks for the value."""
    offers, words = Offers(bench.session, ref), session_words(bench, ref)
    there = {each.name for each in ref.node.attribute}

    def find() -> Searchable:
        return Searchable([each for each in offers.attributes(words) if each.key not in there])

    choices = await bench.jobs.run("edit", "looking at the operator", find)
    if choices:
        name = await bench.app.push_screen_wait(PickerScreen("Which attribute", choices))
    else:
        # Nobody knows the operator, or it has all its attributes.
        hint = "the operator has no other attributes that are known"
        name = await ask(bench, "name of the attribute: ", hint=hint)
    if name:
        await edit_attribute(bench, ref, name)


async def edit_metadata(bench: "Workbench", ref: NodeRef, key: str) -> None:
    """Asks for the value of an entry of the metadata of a node."""
    value = next((each.value or "" for each in ref.node.metadata_props if each.key == key), "")
    answer = await ask(bench, f"{visible(key, 60)} = ", text=typed(value) if value else "")
    if answer is not None and meant(answer) != value:
        await made(bench, SetMetadata(key=key, value=meant(answer), node=session_words(bench, ref)))


async def edit_documentation(bench: "Workbench", ref: NodeRef) -> None:
    """Asks for the comment of a node: in a form where it has several lines, all of which are seen."""
    old, words = ref.node.doc_string or "", session_words(bench, ref)
    lines = old.split("\n")
    if len(lines) > 1 and all(visible(line, None) == line for line in lines):
        await fill_in(bench, "set-doc", {"text": old, "node": words}, focus="text")
        return
    answer = await ask(bench, "comment: ", text=typed(old) if old else "")
    if answer is not None and meant(answer) != old:
        await made(bench, SetDoc(text=meant(answer), node=words))


def to_inspector(bench: "Workbench", given: Given) -> None:
    """To the first attribute of the node, in the inspector."""
    bench.settle()
    rows = bench.inspector.rows
    bench.focus_pane("inspector")
    if isinstance(rows, InspectorRows):
        places = [number for number, entry in enumerate(rows.entries) if entry.kind in ("attribute", "add")]
        bench.inspector.move_to(places[0] if places else 0)


ACTIONS: Final = (
    Action("inspect", "edit a field of the node, in the inspector", ("e",), to_inspector, "Edit", footer="edit"),
    Action("open-row", "go where the row leads, or edit what stands in it", ("enter",), open_entry, "Edit", "inspector",
           footer="go or edit"),
    Action("edit-row", "edit what stands in the row", ("e",), edit_entry, "Edit", "inspector", changes=True,
           footer="edit"),
    Action("remove-row", "remove the attribute, entry or optional input", ("d", "delete"), remove_entry, "Edit",
           "inspector", changes=True, footer="remove"),
)  # fmt: skip
