"""Putting a new node after or before the one under the cursor."""

from typing import TYPE_CHECKING, Final

from onnxjson.display import visible
from onnxjson.edits.declaration import Edit
from onnxjson.edits.nodes import AddNode, Rewire
from onnxjson.index import NodeRef
from onnxjson.operator_signatures import typed_signature
from onnxjson.rendering.node import opset_of
from onnxjson_tui.action import Action, Given
from onnxjson_tui.actions.editing import ready, require_here
from onnxjson_tui.actions.forms import fill_in
from onnxjson_tui.forms.changes import fresh_name, words_of_value
from onnxjson_tui.forms.offers import Offers
from onnxjson_tui.forms.words import is_plain, item_line, node_words
from onnxjson_tui.rows.choices import Choice, Searchable
from onnxjson_tui.screens.choosing import PickerScreen

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


async def insert_after(bench: "Workbench", given: Given) -> None:
    """A node that takes what this one makes; whoever took that takes what the new one makes."""
    ref = require_here(bench)
    await ready(bench)
    outputs = [name for name in ref.node.output if name]
    if not outputs:
        bench.say("the node makes nothing that another could take", "changed")
        return
    value: str | None = outputs[0]
    if len(outputs) > 1:
        value = await bench.app.push_screen_wait(
            PickerScreen("After which output", [Choice(name, visible(name, 300)) for name in outputs])
        )
    operator = await _operator(bench) if value is not None else None
    if value is None or operator is None:
        return
    is_taken = bool(bench.session.index.consumers(ref.scope, value))
    texts = _texts(bench, ref, value, operator) | {"insert": "yes" if is_taken else ""}
    await fill_in(bench, "add-node", texts, focus="input", title=f"Insert {visible(operator, 40)} after")


async def insert_before(bench: "Workbench", given: Given) -> None:
    """A node that stands between this one and what it takes; the count before the keys says which input."""
    ref = require_here(bench)
    await ready(bench)
    taken = [slot for slot, name in enumerate(ref.node.input) if name]
    if not taken:
        bench.say("the node takes nothing that another could stand before", "changed")
        return
    slot = given.number if given.number in taken else taken[0]
    if given.number not in taken and len(taken) > 1:
        choices = [Choice(str(each), f"input {each}", visible(ref.node.input[each], 300)) for each in taken]
        chosen = await bench.app.push_screen_wait(PickerScreen("Before which input", choices))
        if chosen is None:
            return
        slot = int(chosen)
    operator = await _operator(bench)
    if operator is None:
        return
    words = node_words(bench.session.index, ref)
    if words.startswith("@"):
        # What it takes stands before it, so the new node does, too.
        words = f"@{ref.scope.address}/node/{ref.position + 1}"

    def connect(edit: Edit) -> tuple[Edit, ...]:
        assert isinstance(edit, AddNode)
        return (Rewire(node=words, input=slot, tensor=edit.output[0]),)

    texts = _texts(bench, ref, ref.node.input[slot], operator)
    title = f"Insert {visible(operator, 40)} before"
    await fill_in(bench, "add-node", texts, focus="input", also=connect, title=title)


async def _operator(bench: "Workbench") -> str | None:
    """The operator that a person chooses, of those of the model's opset that take something."""
    offers = Offers(bench.session, bench.here)
    choices = await bench.jobs.run(
        "edit", "looking for operators", lambda: Searchable(offers.operators("", take_inputs=True))
    )
    return await bench.app.push_screen_wait(PickerScreen("Which operator", choices))


def _texts(bench: "Workbench", ref: NodeRef, value: str, operator: str) -> dict[str, str]:
    """What stands in the form: the value as its first input, a name for what it makes, the attributes that it needs."""
    index = bench.session.index
    found = typed_signature("", operator, opset_of(bench.session.model, ref))
    lines = [item_line(words_of_value(bench.session, ref, value))]
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
    Action("insert-after", "a new node behind this one", ("o",), insert_after, "Edit", changes=True, footer="insert"),
    Action("insert-before", "a new node between this one and an input", ("O",), insert_before, "Edit", changes=True),
)
