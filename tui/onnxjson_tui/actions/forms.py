"""Edits by form: any edit, and a new node after or before the one under the cursor."""

from collections.abc import Mapping
from typing import Final

from onnxjson.editing.catalogue import EDITS, NAMES, edit_named
from onnxjson.editing.declaration import Edit, name_of, summary
from onnxjson.editing.nodes import AddNode, Rewire
from onnxjson.model.display import visible
from onnxjson.model.index import NodeRef
from onnxjson.model.operators import operator_signature
from onnxjson.model.renaming import fresh_name
from onnxjson.rendering.node import opset_of
from onnxjson_tui.actions.editing import ready, require_here
from onnxjson_tui.actions.finding import pattern_in
from onnxjson_tui.names.editable_names import is_plain, item_line, node_selector, selector_of_value
from onnxjson_tui.names.form_filling import Also, Filling, prefilled
from onnxjson_tui.names.offers import Offers
from onnxjson_tui.rows.choices import Choice, Searchable
from onnxjson_tui.screens.form import FormScreen
from onnxjson_tui.session.history import Preview
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.widgets.actions import Action, Arguments

_GROUPS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("nodes", ("add-node", "delete-node", "replace-node", "replace-pattern", "rewire", "swap-inputs", "name-nodes",
               "inline-functions")),
    ("attributes", ("set-attribute", "remove-attribute")),
    ("constants", ("set-tensor", "cast-tensor", "deduplicate-initializers", "constants-to-initializers",
                   "initializers-to-constants", "initializers-to-inputs")),
    ("interface", ("add-input", "remove-input", "add-output", "remove-output", "transpose-input")),
    ("shapes", ("set-shape", "set-dim", "set-batch-size", "infer-shapes")),
    ("names", ("rename", "set-name", "prefix", "set-metadata", "set-doc", "strip")),
    ("model", ("extract", "combine", "prune", "convert-opset", "stamp-opset", "set-ir-version")),
)  # fmt: skip


def edit_choices() -> list[Choice]:
    """Return all edits, grouped by kind."""
    groups = {name: group for group, names in _GROUPS for name in names}
    order = {name: place for place, name in enumerate(groups)}
    names = sorted([name_of(edit) for edit in EDITS], key=lambda name: order.get(name, len(order)))
    return [
        Choice(name, name, f"{groups.get(name, 'other'):<11}{visible(summary(NAMES[name]), 200)}") for name in names
    ]


async def _edit_form(bench: Bench, arguments: Arguments) -> None:
    name = arguments.text.split()[0] if arguments.text else await bench.choose("Edits", edit_choices(), is_wide=True)
    if name is not None:
        await fill_in(bench, name)


async def fill_in(
    bench: Bench,
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
    session, here = bench.session, bench.here
    known = await bench.jobs.run("edit", "filling in the form", lambda: prefilled(session, edit, here))
    if name == "replace-pattern" and (pattern := pattern_in(bench.finder.selector)):
        known["pattern"] = pattern
    filling = Filling(edit, known | dict(texts or {}))
    preview = await bench.app.push_screen_wait(FormScreen(bench, filling, focus=focus, also=also, title=title))
    if preview is not None:
        bench.accept(preview)
    return preview


async def _insert_after(bench: Bench, arguments: Arguments) -> None:
    ref = require_here(bench)
    await ready(bench)
    outputs = [name for name in ref.node.output if name]
    if not outputs:
        bench.say("the node has no outputs", "changed")
        return
    choices = [Choice(name, visible(name, 300)) for name in outputs]
    value = outputs[0] if len(outputs) == 1 else await bench.choose("After which output", choices)
    operator = await _operator(bench) if value is not None else None
    if value is None or operator is None:
        return
    is_taken = bool(bench.session.index.consumers(ref.scope, value))
    texts = _texts(bench, ref, value, operator) | {"insert": "yes" if is_taken else ""}
    await fill_in(bench, "add-node", texts, focus="input", title=f"Insert {visible(operator, 40)} after")


async def _insert_before(bench: Bench, arguments: Arguments) -> None:
    ref = require_here(bench)
    await ready(bench)
    used = [slot for slot, name in enumerate(ref.node.input) if name]
    if not used:
        bench.say("the node has no inputs", "changed")
        return
    slot = arguments.number if arguments.number in used else used[0]
    if arguments.number not in used and len(used) > 1:
        choices = [Choice(str(each), f"input {each}", visible(ref.node.input[each], 300)) for each in used]
        chosen = await bench.choose("Before which input", choices)
        if chosen is None:
            return
        slot = int(chosen)
    operator = await _operator(bench)
    if operator is None:
        return
    words = node_selector(bench.session.index, ref)
    if words.startswith("@"):
        # The new node is inserted before this one, whose position grows by 1.
        words = f"@{ref.scope.address}/node/{ref.position + 1}"

    def connect(edit: Edit) -> tuple[Edit, ...]:
        assert isinstance(edit, AddNode)
        return (Rewire(node=words, input=slot, tensor=edit.output[0]),)

    texts = _texts(bench, ref, ref.node.input[slot], operator)
    title = f"Insert {visible(operator, 40)} before"
    await fill_in(bench, "add-node", texts, focus="input", also=connect, title=title)


async def _operator(bench: Bench) -> str | None:
    """Ask for an operator of the model's opset that has inputs."""
    offers = Offers(bench.session, bench.here)
    choices = await bench.jobs.run(
        "edit", "looking for operators", lambda: Searchable(offers.operators("", take_inputs=True))
    )
    return await bench.choose("Which operator", choices)


def _texts(bench: Bench, ref: NodeRef, value: str, operator: str) -> dict[str, str]:
    """Return the contents of the form: the value as first input, names of outputs, required attributes."""
    index = bench.session.index
    found = operator_signature("", operator, opset_of(bench.session.model, ref))
    lines = [item_line(selector_of_value(bench.session, ref, value))]
    lines += [""] * (found.least_inputs - 1 if found is not None else 0)
    base = value if is_plain(value) else operator.lower()
    outputs = max(found.least_outputs, 1) if found is not None else 1
    names: list[str] = []
    for _ in range(outputs):
        names.append(fresh_name(index, f"{base}_{operator.lower()}", names))
    needed = [each.name for each in found.attributes.values() if each.required] if found is not None else []
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
        "edits", "choose an edit and fill in its form", ("a",), _edit_form, "Edit", changes=True, footer="all edits"
    ),
    Action(
        "edit-form", "open the form of an edit, such as :edit-form set-tensor", (), _edit_form, "Edit",
        changes=True, argument="EDIT",
    ),
)  # fmt: skip

INSERTIONS: Final = (
    Action(
        "insert-after", "insert a node after this one", ("o",), _insert_after, "Edit", changes=True, footer="insert"
    ),
    Action("insert-before", "insert a node before an input", ("O",), _insert_before, "Edit", changes=True),
)
"""Separate from the other actions, because of the order of the keys in the footer."""
