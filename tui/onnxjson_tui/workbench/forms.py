"""Any edit by its form, and operators that are inserted before or after the node under the cursor."""

from collections.abc import Mapping
from typing import Final

from onnxjson.editing.catalogue import NAMES, edit_named
from onnxjson.editing.declaration import Edit, summary
from onnxjson.editing.nodes import AddNode, Rewire
from onnxjson.model.display import visible
from onnxjson.model.index import NodeRef
from onnxjson.model.operators import operator_signature
from onnxjson.model.renaming import fresh_name
from onnxjson.rendering.node import opset_of
from onnxjson_tui.names.editable_names import is_plain, item_line, node_selector, selector_of_value
from onnxjson_tui.names.form_filling import Also, Filling, prefilled
from onnxjson_tui.names.offers import Offers
from onnxjson_tui.rows.choices import Choice, Searchable
from onnxjson_tui.screens.form import FormScreen
from onnxjson_tui.session.history import Preview
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments
from onnxjson_tui.workbench.editing import ready, require_here
from onnxjson_tui.workbench.finding import pattern_in

_AFTER: Final = "after "  # start of the key of an operator that is inserted

_BEFORE: Final = "before"


def edit_choices() -> list[Choice]:
    """Return all edits, by group."""
    return [Choice(name, name, f"{edit.group:<11}{visible(summary(edit), 200)}") for name, edit in NAMES.items()]


async def _add(workbench: Workbench, arguments: Arguments) -> None:
    """Ask for an edit, or for an operator to insert after the node under the cursor."""
    name: str | None = arguments.text.partition(" ")[0]
    if not name:
        choices, ref = edit_choices(), workbench.here
        if ref is not None:
            choices.insert(0, Choice(_BEFORE, "insert before", "a node before an input of this one"))
            choices += [
                Choice(_AFTER + each.key, each.label, f"insert after {ref.position}  {each.detail}")
                for each in await _operators(workbench)
            ]
        hint = "type an operator to insert, or part of an edit   enter choose   esc cancel"
        name = await workbench.choose("Insert an operator, or edit", choices, hint=hint, is_wide=True)
    if name == _BEFORE:
        await _insert_before(workbench)
    elif name is not None and name.startswith(_AFTER):
        await _insert_after(workbench, name.removeprefix(_AFTER))
    elif name is not None:
        await fill_in(workbench, name)


async def fill_in(
    workbench: Workbench,
    name: str,
    texts: Mapping[str, str] | None = None,
    *,
    focus: str = "",
    also: Also | None = None,
    title: str = "",
) -> Preview | None:
    """Ask for an edit by its form and make it; return the change, or None if the user cancels.

    `texts` replace what the cursor suggests; `also` makes further edits of the same step.

    Raises:
        ParameterError: there is no edit of that name.
    """
    edit = edit_named(name)
    session, here = workbench.session, workbench.here
    known = await workbench.jobs.run("edit", "filling in the form", lambda: prefilled(session, edit, here))
    if name == "replace-pattern" and (pattern := pattern_in(workbench.finder.selector)):
        known["pattern"] = pattern
    if name == "set-attribute":
        focus = focus or "attribute"  # the only one of the node is a suggestion
    filling = Filling(edit, known | dict(texts or {}))
    preview = await workbench.app.push_screen_wait(FormScreen(workbench, filling, focus=focus, also=also, title=title))
    if preview is not None and workbench.accept(preview) is not None:
        added = next((each for each in preview.edits if isinstance(each, AddNode)), None)
        if added is not None and workbench.chosen is None:  # a filter stays
            _go_to_added(workbench, added)
    return preview


def _go_to_added(workbench: Workbench, added: AddNode) -> None:
    index = workbench.session.index
    for ref in index.nodes_with("output", added.output[0]):
        # Before an output of the graph, the node whose output was one has the new name.
        uses = index.consumers(ref.scope, added.output[0])
        around = [ref, *[NodeRef(use.scope, use.position) for use in uses if use.position is not None]]
        workbench.go(next((each for each in around if each.node.op_type == added.op_type), ref).address)


async def _insert_after(workbench: Workbench, operator: str) -> None:
    ref = require_here(workbench)
    await ready(workbench)
    outputs = [name for name in ref.node.output if name]
    if not outputs:
        workbench.say("the node has no outputs", "changed")
        return
    choices = [Choice(name, visible(name, 300)) for name in outputs]
    value = outputs[0] if len(outputs) == 1 else await workbench.choose("After which output", choices)
    if value is None:
        return
    is_taken = bool(workbench.session.index.consumers(ref.scope, value))
    texts = _texts(workbench, ref, value, operator) | {"insert": "yes" if is_taken else ""}
    await fill_in(workbench, "add-node", texts, focus="input", title=f"Insert {visible(operator, 40)} after")


async def _insert_before(workbench: Workbench) -> None:
    ref = require_here(workbench)
    await ready(workbench)
    used = [slot for slot, name in enumerate(ref.node.input) if name]
    if not used:
        workbench.say("the node has no inputs", "changed")
        return
    slot = used[0]
    if len(used) > 1:
        choices = [Choice(str(each), f"input {each}", visible(ref.node.input[each], 300)) for each in used]
        chosen = await workbench.choose("Before which input", choices)
        if chosen is None:
            return
        slot = int(chosen)
    operator = await workbench.choose("Which operator", await _operators(workbench))
    if operator is None:
        return
    words = node_selector(workbench.session.index, ref)
    if words.startswith("@"):
        # The new node is inserted before this one, whose position grows by 1.
        words = f"@{ref.scope.address}/node/{ref.position + 1}"

    def connect(edit: Edit) -> tuple[Edit, ...]:
        assert isinstance(edit, AddNode)
        return (Rewire(node=words, input=slot, tensor=edit.output[0]),)

    texts = _texts(workbench, ref, ref.node.input[slot], operator)
    title = f"Insert {visible(operator, 40)} before"
    await fill_in(workbench, "add-node", texts, focus="input", also=connect, title=title)


async def _operators(workbench: Workbench) -> Searchable:
    """Return the operators of the model's opset that have inputs."""
    offers = Offers(workbench.session, workbench.here)
    return await workbench.jobs.run(
        "edit", "looking for operators", lambda: Searchable(offers.operators("", take_inputs=True))
    )


def _texts(workbench: Workbench, ref: NodeRef, value: str, operator: str) -> dict[str, str]:
    """Return the contents of the form: the value as first input, names of outputs, required attributes."""
    index = workbench.session.index
    signature = operator_signature("", operator, opset_of(workbench.session.model, ref))
    lines = [item_line(selector_of_value(ref, value))]
    lines += [""] * (signature.least_inputs - 1 if signature is not None else 0)
    base = value if is_plain(value) else operator.lower()
    outputs = max(signature.least_outputs, 1) if signature is not None else 1
    names: list[str] = []
    for _ in range(outputs):
        names.append(fresh_name(index, f"{base}_{operator.lower()}", names))
    needed = [each.name for each in signature.attributes.values() if each.required] if signature is not None else []
    graph = {"graph": ref.scope.address} if ref.scope.address != "/graph" else {}
    return {
        "op_type": operator,
        "input": "\n".join(lines),
        "output": "\n".join(item_line(name) for name in names),
        "attribute": "\n".join(f"{name}=" for name in needed),
        **graph,
    }


ACTIONS: Final = (
    Action(
        "edits", "add, and all other edits", ("a",), _add, "Edit", changes=True, footer="add", argument="[EDIT]",
        help="An operator inserts a node after this one; an edit shows its form, as :edits set-tensor does.",
    ),
)  # fmt: skip
