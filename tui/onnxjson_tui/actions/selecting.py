"""Selecting nodes, so that an edit is made on all of them; making the last edit again."""

from typing import TYPE_CHECKING, Final

import msgspec

from onnxjson.display import counted
from onnxjson.edits.declaration import Edit
from onnxjson.edits.parameters import parameters
from onnxjson.edits.spelling import spell_line
from onnxjson_tui.action import Action, Given
from onnxjson_tui.actions.editing import looked_at, made, ready, require_here
from onnxjson_tui.answers import Preview
from onnxjson_tui.forms.words import node_words

if TYPE_CHECKING:
    from onnxjson_tui.workbench import Workbench


def toggle(bench: "Workbench", given: Given) -> None:
    """Selects the node under the cursor, or no longer; with a count as many from here on."""
    require_here(bench)
    lines = bench.nodes
    for address in _addresses(bench, range(lines.cursor, min(lines.cursor + (given.number or 1), len(lines.rows)))):
        bench.session.places.toggle(address)
    _show(bench)


def select_range(bench: "Workbench", given: Given) -> None:
    """Selects everything that is shown between the node that was selected last and this one."""
    require_here(bench)
    places, cursor = bench.session.places, bench.nodes.cursor
    other = next(
        (number for address in reversed(places.selected) if (number := _number(bench, address)) is not None), cursor
    )
    for address in _addresses(bench, range(min(other, cursor), max(other, cursor) + 1)):
        places.selected.setdefault(address, None)
    _show(bench)


def select_all(bench: "Workbench", given: Given) -> None:
    """Selects all nodes that are shown: of the graph, or of the filter; or those that a selector finds."""
    if given.text:
        bench.session.select(given.text)
    else:
        bench.session.places.select(_addresses(bench, range(len(bench.nodes.rows))))
    _show(bench)


def select_none(bench: "Workbench", given: Given) -> None:
    """Nothing is selected any more."""
    bench.session.places.select(())
    _show(bench)


async def repeat(bench: "Workbench", given: Given) -> None:
    """Makes the last edit again, on this node or on the selected ones."""
    session = bench.session
    step = next((each for each in reversed(session.history.made) if each.edits), None)
    if step is None:
        bench.say("there is no edit to repeat")
        return
    edit = step.edits[-1]
    field = next((each.field for each in parameters(type(edit)) if each.role == "nodes" and each.required), None)
    if not _is_one(step.edits, field):
        bench.say("the last step was several edits that belong to their nodes; y in the history copies them", "changed")
        return
    if field is None:
        await made(bench, *step.edits)
        return
    await ready(bench)
    here = None if session.places.selected else node_words(session.index, require_here(bench))

    def find() -> Preview:
        if here is None:
            return session.preview(*session.on_selection(edit, field))
        return session.preview(msgspec.structs.replace(edit, **{field: here}))

    await looked_at(bench, await bench.jobs.run("edit", "finding out what changes", find))


def _is_one(edits: tuple[Edit, ...], field: str | None) -> bool:
    """Whether edits are one and the same, each on a node of its own; or say themselves what they are about."""
    if field is None:
        return all(each.role != "nodes" or not each.required for edit in edits for each in parameters(type(edit)))
    kinds = {type(each) for each in edits}
    return len(kinds) == 1 and len({spell_line(msgspec.structs.replace(each, **{field: "x"})) for each in edits}) == 1


def _addresses(bench: "Workbench", numbers: range) -> list[str]:
    """The addresses of the nodes of some rows."""
    scope = bench.scope
    if scope is None:
        return []
    start = f"{scope.address}/node/"
    return [f"{start}{position}" for number in numbers if (position := bench.position_of(number)) is not None]


def _number(bench: "Workbench", address: str) -> int | None:
    """The row of a node; None where it is not shown."""
    scope = bench.scope
    owner, _, position = address.rpartition("/node/")
    return bench.number_of(int(position)) if scope is not None and owner == scope.address else None


def _show(bench: "Workbench") -> None:
    bench.nodes.refresh()
    bench.draw_chrome()
    count = len(bench.session.places.selected)
    bench.say(f"{counted(count, 'node')} selected; edits are made on all of them" if count else "nothing is selected")


ACTIONS: Final = (
    Action("select", "select the node, or no longer", ("v",), toggle, "Edit", footer="select"),
    Action("select-range", "select all from the last selected node to this one", ("V",), select_range, "Edit"),
    Action("select-all", "select all that is shown, or what a selector finds", (), select_all, "Edit",
           argument="[SELECTOR]"),
    Action("select-none", "select nothing", (), select_none, "Edit"),
    Action("repeat", "the last edit again, on this node or the selected ones", (".",), repeat, "Edit", changes=True),
)  # fmt: skip
