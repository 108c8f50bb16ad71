"""Edit the node under the cursor, or the selected ones: rename, rewire, delete."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from onnxjson.editing.declaration import Edit
from onnxjson.editing.deletion import DeleteNode
from onnxjson.editing.names import SetName
from onnxjson.editing.nodes import Rewire
from onnxjson.model.display import counted, listed, visible
from onnxjson.model.errors import BrokenNodesError, EditError, OnnxJsonError
from onnxjson.model.index import Index, NodeRef, Scope, Use
from onnxjson.rendering.tables import wrapped
from onnxjson_tui.names.editable_names import (
    name_mistake,
    node_selector,
    parse_typed,
    rename_node,
    rename_value,
    typed,
    value_mistake,
)
from onnxjson_tui.names.offers import LEFT_OUT, slot_choices, value_choices
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.session.history import Preview
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments
from onnxjson_tui.widgets.fields import Complete

_ENOUGH: Final = 10  # queries after which an index builds a table

_MOST_BYPASSES: Final = 8  # inputs that are tried as replacement for the outputs of a deleted node


async def ask(
    workbench: Workbench,
    mark: str,
    *,
    text: str = "",
    hint: str | Callable[[str], str] = "",
    mistake: Callable[[str], str] = lambda text: "",
    complete: Complete | None = None,
    edit: Callable[[str], Edit] | None = None,
    is_selected: bool = True,
    is_bad: bool = False,
) -> str | None:
    """Ask for a line until it is valid; return None if the user cancels.

    `mark` is the visible text before the field, `hint` the expected text, for the footer, or a function of the typed
    text. `mistake` returns the mistake in a text, or ""; `edit` the edit of a valid text, whose effect on types is
    shown while the user types. With `is_selected`, typing replaces the initial `text`; with `is_bad`, the hint is an
    error.
    """

    def changed(typed: str) -> None:
        problem = mistake(typed)
        if edit is not None:
            workbench.foresee(*([edit(typed)] if typed.strip() and not problem else []))
        shown = problem or (hint if isinstance(hint, str) else hint(typed))
        workbench.say(shown, "bad" if problem or (is_bad and typed == text) else "plain")

    answer: str | None = text
    while True:
        pending = workbench.ask(
            mark, text=answer or "", changed=changed, complete=complete, is_selected=is_selected and answer == text
        )
        changed(answer or "")
        answer = await pending
        workbench.say("")
        if edit is not None:
            workbench.foresee()
        if answer is None or not mistake(answer):
            return answer


async def ask_text(
    workbench: Workbench, mark: str, old: str, *, hint: str = "", mistake: Callable[[str], str] = lambda text: ""
) -> str | None:
    """Ask for a text of the model, as JSON if it has invisible characters; return None if it stays the same."""
    shown = typed(old) if old else ""
    answer = await ask(workbench, mark, text=shown, hint=hint, mistake=lambda text: mistake(parse_typed(text)))
    if answer is None or parse_typed(answer) != old:
        return None if answer is None else parse_typed(answer)
    workbench.say(f"nothing changed: it is still {visible(old, 200) or 'empty'}")
    return None


def require_here(workbench: Workbench, *, asks: bool = True) -> NodeRef:
    """Return the node under the cursor; a line is unfolded, and the node that produces its value gets the cursor.

    Raises:
        EditError: there is none, or a line, and the action acts at once (`asks` is False).
    """
    ref, fold = workbench.here, workbench.fold_here
    if fold is not None and ref is not None:
        workbench.show_position(ref.position)
        if not asks:
            raise EditError(
                "the line is unfolded: the cursor is on the node that produces its value; press the key again"
            )
    if ref is None:
        raise EditError("there is no node under the cursor")
    return ref


async def ready(workbench: Workbench) -> None:
    """Build the tables of names of a big model in a thread, so that later queries are fast."""
    if workbench.is_big:
        index = workbench.session.index
        await workbench.jobs.run("edit", "reading the names", lambda: learn(index))


def learn(index: Index) -> None:
    """Query an index until it has tables of the names of nodes and of their outputs."""
    for field in ("name", "output"):
        for _ in range(_ENOUGH):
            index.nodes_with(field, "")
    for scope in index.scopes:
        scope.defines("")


async def make(workbench: Workbench, *edits: Edit) -> bool:
    """Make edits as one step, with a preview if they change several places; return whether they were made."""
    return await previewed(workbench, lambda force: workbench.session.preview(*edits, force=force))


async def previewed(workbench: Workbench, find: Callable[[bool], Preview], *, force: bool | None = None) -> bool:
    """Compute a change and make it, with a preview if it changes several places; return whether it was made.

    `find` gets whether to compute a change that breaks nodes, too; unless it is given, the user is asked for that.

    Raises:
        BrokenNodesError: the change breaks nodes, and `force` is False.
    """
    try:
        preview = await workbench.jobs.run("edit", "computing the changes", partial(find, bool(force)))
    except BrokenNodesError as error:
        if force is not None or not await confirm_broken(workbench, error):
            raise
        preview = await workbench.jobs.run("edit", "computing the changes", partial(find, True))
    is_several = preview.matches > 1 and bool(preview.patch)
    if is_several and not await workbench.agree(preview):
        return False
    return workbench.accept(preview) is not None


async def confirm_broken(workbench: Workbench, error: BrokenNodesError) -> bool:
    """Ask whether to make an edit that breaks nodes, as a step on the way."""
    width = min(workbench.app.size.width - 8, 66)
    answers = [("s", "stay", "stay"), ("y", "make it, and correct them afterwards", "make")]
    lines = wrapped(visible(str(error), None), max(width, 40), indent=0)
    return await workbench.confirm("It would break nodes", answers, lines=lines, escape="stay") == "make"


async def ask_and_make(workbench: Workbench, mark: str, text: str, edit: Callable[[str], Edit], **options: Any) -> None:
    """Ask for a line and make its edit; after one that breaks nodes, ask again, and the same line again makes it.

    `options` are those of `ask`.
    """
    refused = None
    while True:
        answer = await ask(workbench, mark, text=text, edit=edit, **options)
        if answer is None or not answer.strip():
            return
        made = edit(answer)
        try:
            await previewed(workbench, partial(_preview, workbench, made), force=answer == refused)
            return
        except BrokenNodesError as error:
            text = refused = answer
            options = {**options, "hint": f"! {error}; enter makes the change anyway", "is_bad": True}


def _preview(workbench: Workbench, edit: Edit, force: bool) -> Preview:
    return workbench.session.preview(edit, force=force)


# Names


async def _rename(workbench: Workbench, arguments: Arguments) -> None:
    ref = require_here(workbench)
    await ready(workbench)
    choices = [Choice("node", "node", visible(ref.node.name or "", 300) or "(has no name)")]
    choices += [
        Choice(str(slot), f"output {slot}", visible(name, 300)) for slot, name in enumerate(ref.node.output) if name
    ]
    chosen: str | None = "node"
    if len(choices) > 1:
        chosen = await workbench.choose("Rename", choices)
    if chosen == "node":
        await rename_this(workbench, ref)
    elif chosen is not None:
        await ask_value_name(workbench, ref.scope, ref.node.output[int(chosen)])


async def rename_this(workbench: Workbench, ref: NodeRef) -> None:
    """Ask for the name of a node."""
    session, old = workbench.session, ref.node.name or ""
    same = sum([each.scope is ref.scope for each in session.index.nodes_with("name", old)]) if old else 0
    hint = f"{counted(same, 'node')} of this graph have this name; all of them are renamed" if same > 1 else ""
    name = await ask_text(
        workbench,
        "name of the node: ",
        old,
        hint=hint,
        mistake=lambda text: name_mistake(session.index, ref, text, old),
    )
    if name is not None:
        words = node_selector(session.index, ref)
        await make(workbench, rename_node(session.index, ref, name) if old else SetName(node=words, name=name))


async def ask_value_name(workbench: Workbench, scope: Scope, old: str, kind: str = "value") -> None:
    """Ask for the name of a value that a graph defines."""
    index = workbench.session.index
    name = await ask_text(
        workbench,
        f"name of the {kind}: ",
        old,
        hint="its consumers are updated",
        mistake=lambda text: value_mistake(index, text, old),
    )
    if name is not None:
        await make(workbench, rename_value(index, scope, old, name))


# Inputs


async def _rewire(workbench: Workbench, arguments: Arguments) -> None:
    ref = require_here(workbench)
    model = workbench.session.model
    await ready(workbench)
    known = await workbench.jobs.run("edit", "looking up the operator", lambda: slot_choices(model, ref))
    if not known:
        workbench.say(f"{visible(ref.node.op_type or 'the node', 60)} has no inputs", "changed")
        return
    slot = arguments.number or 0
    if arguments.number is None and len(known) > 1:
        chosen = await workbench.choose("Which input", known)
        if chosen is None:
            return
        slot = int(chosen)
    if slot >= len(known):
        workbench.say(f"there is no input {slot}; there are {len(known)}", "bad")
        return
    await rewire_input(workbench, ref, slot)


async def rewire_input(workbench: Workbench, ref: NodeRef, slot: int) -> None:
    """Ask for the value that an input consumes."""
    session = workbench.session
    model = session.model
    choices = await workbench.jobs.run("edit", "looking for values", lambda: value_choices(model, ref, slot))
    operator = visible(ref.node.op_type or "?", 60)
    chosen = await workbench.choose(f"Input {slot} of {operator}: choose its value", choices, is_wide=True)
    if chosen is not None:
        tensor = "" if chosen == LEFT_OUT else chosen
        await make(workbench, Rewire(node=node_selector(session.index, ref), input=slot, tensor=tensor))


# Deleting


async def delete(workbench: Workbench, arguments: Arguments) -> None:
    """Delete the selected nodes, or the one under the cursor; ask what replaces its outputs if they are consumed."""
    if workbench.session.places.selected:
        await _delete_selection(workbench)
        return
    ref = require_here(workbench, asks=False)
    await ready(workbench)
    uses = uses_outside(workbench, ref)
    if not uses:
        await make(workbench, DeleteNode(node=node_selector(workbench.session.index, ref)))
        return
    await _choose_bypass(workbench, ref, uses)


async def _delete_and_bridge(workbench: Workbench, arguments: Arguments) -> None:
    if workbench.session.places.selected:
        await _delete_selection(workbench)
        return
    ref, session = require_here(workbench, asks=False), workbench.session
    await ready(workbench)
    edit = DeleteNode(node=node_selector(session.index, ref))
    try:
        await previewed(workbench, lambda force: session.preview(edit, force=force))
    except BrokenNodesError:
        raise
    except EditError:
        # The replacement is ambiguous or impossible.
        await _choose_bypass(workbench, ref, uses_outside(workbench, ref))


async def _delete_selection(workbench: Workbench) -> None:
    session = workbench.session
    edits = session.on_selection(DeleteNode(node="x"))
    await previewed(workbench, lambda force: session.preview(*edits, force=force))


def uses_outside(workbench: Workbench, ref: NodeRef) -> list[Use]:
    """Return the uses of the outputs of a node, except those inside its subgraphs."""
    uses: list[Use] = []
    for name in ref.node.output:
        for use in workbench.session.index.consumers(ref.scope, name) if name else ():
            if not any(scope.owner == ref for scope in use.scope.chain()):
                uses.append(use)
    return uses


def use_text(use: Use) -> str:
    """Describe a use of a value in a few words. Visible."""
    if use.position is None:
        return "output of the graph"
    node = use.scope.graph.node[use.position]
    return f"{use.position} {visible(node.op_type or '?', 40)} input {use.slot}"


async def _choose_bypass(workbench: Workbench, ref: NodeRef, uses: list[Use]) -> None:
    session, words = workbench.session, node_selector(workbench.session.index, ref)
    ways: dict[str, tuple[tuple[Edit, ...], str, str]] = {}
    for slot, name in enumerate(ref.node.input[:_MOST_BYPASSES]):
        if name:
            label = f"input {slot}  {visible(name, 200)}"
            ways[str(slot)] = (DeleteNode(node=words, bypass=slot),), label, "replaces the output"
    edits = [
        Rewire(node=node_selector(session.index, NodeRef(use.scope, use.position)), input=use.slot, tensor="")
        for use in uses
        if use.position is not None
    ]
    effect = f"{counted(len(uses), 'input')} left out"
    ways["none"] = (*edits, DeleteNode(node=words)), "no replacement", effect

    def look() -> tuple[list[Choice], dict[str, Preview]]:
        choices, previews = [], {}
        for key, (changes, label, detail) in ways.items():
            try:
                previews[key] = session.preview(*changes)
                choices.append(Choice(key, label, detail))
            except OnnxJsonError as error:
                # The title states the name and place of the edit.
                reason = re.sub(r"^edit [\d,]+ of [\d,]+ \([a-z-]+\): (/\S+: )?", "", str(error))
                choices.append(Choice(key, label, detail, visible(reason, 500)))
        return sorted(choices, key=lambda choice: bool(choice.refused)), previews

    choices, previews = await workbench.jobs.run("edit", "looking for replacements", look)
    shown = listed([use_text(use) for use in uses])
    operator = visible(ref.node.op_type or "the node", 40)
    title = f"Delete {operator}: {counted(len(uses), 'consumer')} ({shown})"
    chosen = await workbench.choose(title, choices, is_wide=True)
    if chosen is not None:
        workbench.accept(previews[chosen])


ACTIONS: Final = (
    Action("bridge", "delete and reconnect", ("D",), _delete_and_bridge, "Edit", changes=True),
    Action(
        "edit-name", "rename", ("r",), _rename, "Edit", changes=True, help="The node, or one of its outputs.",
    ),
    Action(
        "edit-input", "connect an input", ("w",), _rewire, "Edit", changes=True,
        help="To another value; 1w is input 1.",
    ),
)  # fmt: skip
