"""Editing the node under the cursor, or the selected ones: rename, rewire, delete, insert."""

import re
from typing import TYPE_CHECKING, Final

from onnxjson.display import counted, visible
from onnxjson.edits.declaration import Edit
from onnxjson.edits.deletion import DeleteNode
from onnxjson.edits.node_names import SetName
from onnxjson.edits.nodes import Rewire
from onnxjson.errors import EditError, OnnxJsonError
from onnxjson.index import Index, NodeRef, Use
from onnxjson_tui.action import Action, Given
from onnxjson_tui.actions.asking import ask
from onnxjson_tui.answers import Preview
from onnxjson_tui.forms.changes import name_mistake, rename_node, rename_value, value_mistake
from onnxjson_tui.forms.value_choices import LEFT_OUT, slot_choices, slots, value_choices
from onnxjson_tui.forms.words import meant, node_words, typed
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.screens.choosing import PickerScreen
from onnxjson_tui.screens.preview import PreviewScreen

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench

_ENOUGH: Final = 10
"""Questions after which an index has a table."""

_MOST_BYPASSES: Final = 8
"""Inputs that are tried in the place of a node that is deleted."""


def require_here(bench: "Workbench") -> NodeRef:
    """The node under the cursor.

    Raises:
        EditError: there is none.
    """
    ref = bench.here
    if ref is None:
        raise EditError("there is no node under the cursor")
    return ref


async def ready(bench: "Workbench") -> None:
    """Has the tables of names made in a thread, where they are big: what asks for names then does so at once."""
    if bench.is_big:
        index = bench.session.index
        await bench.jobs.run("edit", "looking at the names", lambda: learn(index))


def learn(index: Index) -> None:
    """Asks an index so often that it has a table of the names of nodes and of their outputs."""
    for field in ("name", "output"):
        for _ in range(_ENOUGH):
            index.nodes_with(field, "")
    for scope in index.scopes:
        scope.defines("")


async def made(bench: "Workbench", *edits: Edit, title: str = "") -> bool:
    """Makes edits one step; they are shown first where they are about several places. Whether they were made."""
    session = bench.session

    preview = await bench.jobs.run("edit", "finding out what changes", lambda: session.preview(*edits, title=title))
    return await looked_at(bench, preview)


async def looked_at(bench: "Workbench", preview: Preview, title: str = "") -> bool:
    """Makes a change, after a look at it where it is about several places. Whether it was made."""
    is_several = preview.matches > 1 and bool(preview.patch)
    if is_several and not await bench.app.push_screen_wait(PreviewScreen(bench, preview, title)):
        return False
    return bench.accept(preview) is not None


# Names


async def rename(bench: "Workbench", given: Given) -> None:
    """Renames the node, or something that it makes."""
    ref = require_here(bench)
    await ready(bench)
    choices = [Choice("node", "node", visible(ref.node.name or "", 300) or "(has no name)")]
    choices += [
        Choice(str(slot), f"output {slot}", visible(name, 300)) for slot, name in enumerate(ref.node.output) if name
    ]
    chosen: str | None = "node"
    if len(choices) > 1:
        chosen = await bench.app.push_screen_wait(PickerScreen("Rename", choices))
    if chosen == "node":
        await rename_this(bench, ref)
    elif chosen is not None:
        await rename_output(bench, ref, ref.node.output[int(chosen)])


async def rename_this(bench: "Workbench", ref: NodeRef) -> None:
    """Asks for the name of a node."""
    session, old = bench.session, ref.node.name or ""
    same = sum([each.scope is ref.scope for each in session.index.nodes_with("name", old)]) if old else 0
    hint = f"{counted(same, 'node')} of this graph have that name; all of them are renamed" if same > 1 else ""
    answer = await ask(
        bench,
        "name of the node: ",
        text=typed(old) if old else "",
        hint=hint,
        mistake=lambda text: name_mistake(session.index, ref, meant(text), old),
    )
    if answer is None:
        return
    if meant(answer) == old:
        bench.say("nothing changed: the node " + (f"is called {visible(old, 200)}" if old else "has no name"))
    elif old:
        await made(bench, rename_node(session.index, ref, meant(answer)))
    else:
        await made(bench, SetName(node=node_words(session.index, ref), name=meant(answer)))


async def rename_output(bench: "Workbench", ref: NodeRef, old: str) -> None:
    """Asks for the name of a value that a node makes."""
    index = bench.session.index
    answer = await ask(
        bench,
        "name of the value: ",
        text=typed(old),
        hint="whoever takes it follows",
        mistake=lambda text: value_mistake(index, meant(text), old),
    )
    if answer is not None and meant(answer) != old:
        await made(bench, rename_value(index, ref.scope, old, meant(answer)))


# Inputs


async def rewire(bench: "Workbench", given: Given) -> None:
    """Has the node take another value; the count before the keys says which input."""
    ref = require_here(bench)
    model = bench.session.model
    await ready(bench)
    known = await bench.jobs.run("edit", "looking at the operator", lambda: slots(model, ref))
    if not known:
        bench.say(f"{visible(ref.node.op_type or 'the node', 60)} takes no inputs", "changed")
        return
    slot = given.number if given.number is not None else known[0].position
    if given.number is None and len(known) > 1:
        chosen = await bench.app.push_screen_wait(PickerScreen("Which input", slot_choices(model, ref)))
        if chosen is None:
            return
        slot = int(chosen)
    if slot >= len(known):
        bench.say(f"there is no input {slot}; there are {len(known)}", "bad")
        return
    await rewire_input(bench, ref, slot)


async def rewire_input(bench: "Workbench", ref: NodeRef, slot: int) -> None:
    """Lets a person choose the value that an input takes."""
    session = bench.session
    model = session.model
    choices = await bench.jobs.run("edit", "looking at the values that fit", lambda: value_choices(model, ref, slot))
    operator = visible(ref.node.op_type or "?", 60)
    title = f"Input {slot} of {operator}: the value that it takes"
    chosen = await bench.app.push_screen_wait(PickerScreen(title, choices, is_wide=True))
    if chosen is not None:
        tensor = "" if chosen == LEFT_OUT else chosen
        await made(bench, Rewire(node=node_words(session.index, ref), input=slot, tensor=tensor))


# Deleting


async def delete(bench: "Workbench", given: Given) -> None:
    """Deletes the selected nodes, or the one under the cursor; asks who takes the place of what it made."""
    if bench.session.places.selected:
        await _delete_selection(bench)
        return
    ref = require_here(bench)
    await ready(bench)
    takers = takers_of(bench, ref)
    if not takers:
        await made(bench, DeleteNode(node=node_words(bench.session.index, ref)))
        return
    await _choose_bypass(bench, ref, takers, may_leave_out=True)


async def delete_and_bridge(bench: "Workbench", given: Given) -> None:
    """Deletes it; whoever took what it made takes what it took, without a question where that is clear."""
    if bench.session.places.selected:
        await _delete_selection(bench)
        return
    ref, session = require_here(bench), bench.session
    await ready(bench)
    edit = DeleteNode(node=node_words(session.index, ref))
    try:
        preview = await bench.jobs.run("edit", "finding out what changes", lambda: session.preview(edit))
    except EditError:
        # It is not clear what takes its place, or that cannot be.
        await _choose_bypass(bench, ref, takers_of(bench, ref), may_leave_out=False)
    else:
        await looked_at(bench, preview)


async def _delete_selection(bench: "Workbench") -> None:
    session = bench.session

    def find() -> Preview:
        return session.preview(*session.on_selection(DeleteNode(node="x")))

    await looked_at(bench, await bench.jobs.run("edit", "finding out what changes", find))


def takers_of(bench: "Workbench", ref: NodeRef) -> list[Use]:
    """The places that take what a node makes, but for those inside of it."""
    found: list[Use] = []
    for name in ref.node.output:
        for use in bench.session.index.consumers(ref.scope, name) if name else ():
            if not any(scope.owner == ref for scope in use.scope.chain()):
                found.append(use)
    return found


def taker_words(use: Use) -> str:
    """Who takes a value, in a few words. Visible."""
    if use.position is None:
        return "output of the graph"
    node = use.scope.graph.node[use.position]
    return f"{use.position} {visible(node.op_type or '?', 40)} input {use.slot}"


async def _choose_bypass(bench: "Workbench", ref: NodeRef, takers: list[Use], *, may_leave_out: bool) -> None:
    session, words = bench.session, node_words(bench.session.index, ref)
    ways: dict[str, tuple[tuple[Edit, ...], str, str]] = {}
    for slot, name in enumerate(ref.node.input[:_MOST_BYPASSES]):
        if name:
            label = f"input {slot}  {visible(name, 200)}"
            ways[str(slot)] = (DeleteNode(node=words, bypass=slot),), label, "takes its place"
    if may_leave_out:
        edits = [
            Rewire(node=node_words(session.index, NodeRef(use.scope, use.position)), input=use.slot, tensor="")
            for use in takers
            if use.position is not None
        ]
        said = f"{counted(len(takers), 'input')} left out"
        ways["none"] = (*edits, DeleteNode(node=words)), "nothing takes its place", said

    def look() -> tuple[list[Choice], dict[str, Preview]]:
        choices, previews = [], {}
        for key, (changes, label, detail) in ways.items():
            try:
                previews[key] = session.preview(*changes)
                choices.append(Choice(key, label, detail))
            except OnnxJsonError as error:
                choices.append(Choice(key, label, detail, _reason(error)))
        return sorted(choices, key=lambda choice: bool(choice.refused)), previews

    choices, previews = await bench.jobs.run("edit", "finding out what can take its place", look)
    shown = ", ".join([taker_words(use) for use in takers[:3]]) + (", ..." if len(takers) > 3 else "")
    operator = visible(ref.node.op_type or "the node", 40)
    title = f"Delete {operator}: {counted(len(takers), 'place')} took what it made ({shown})"
    chosen = await bench.app.push_screen_wait(PickerScreen(title, choices, is_wide=True))
    if chosen is not None:
        bench.accept(previews[chosen])


def _reason(error: OnnxJsonError) -> str:
    """Why a way cannot be gone, without the words that say which of its edits, and where: the title says that."""
    return visible(re.sub(r"^edit [\d,]+ of [\d,]+ \([a-z-]+\): (/\S+: )?", "", str(error)), 500)


ACTIONS: Final = (
    Action("edit-name", "rename the node, or a value that it makes", ("r",), rename, "Edit", changes=True),
    Action(
        "edit-input", "another value for an input; 1w is input 1", ("w",), rewire, "Edit", changes=True, footer="rewire"
    ),
    Action("remove", "delete the node, or the selected ones", ("d",), delete, "Edit", changes=True, footer="delete"),
    Action(
        "bridge",
        "delete it, and connect what it took with who took it",
        ("D",),
        delete_and_bridge,
        "Edit",
        changes=True,
    ),
)
