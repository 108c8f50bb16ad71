"""Select nodes for an edit on all of them, repeat the last edit, copy to the clipboard."""

from typing import Final

import msgspec

from onnxjson.editing.declaration import Edit
from onnxjson.editing.parameters import parameters
from onnxjson.editing.spelling import spell_line
from onnxjson.model.display import counted, visible
from onnxjson.rendering.tables import size
from onnxjson_tui.actions.editing import looked_at, made, ready, require_here
from onnxjson_tui.keys.action import Action, Given
from onnxjson_tui.names.editable_names import node_selector
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.screens.dialogs import PickerScreen
from onnxjson_tui.session.answers import Preview
from onnxjson_tui.shell.bench import Bench
from onnxjson_tui.shell.copies import copies_of, fits_clipboard, write_file


def toggle(bench: Bench, given: Given) -> None:
    """Toggle the selection of the node under the cursor, or of as many nodes as the count."""
    require_here(bench)
    lines = bench.nodes
    for address in _addresses(bench, range(lines.cursor, min(lines.cursor + (given.number or 1), len(lines.rows)))):
        bench.session.places.toggle(address)
    _show(bench)


def select_range(bench: Bench, given: Given) -> None:
    """Select all listed nodes between the last selected one and this one."""
    require_here(bench)
    places, cursor = bench.session.places, bench.nodes.cursor
    other = next(
        (number for address in reversed(places.selected) if (number := _number(bench, address)) is not None), cursor
    )
    for address in _addresses(bench, range(min(other, cursor), max(other, cursor) + 1)):
        places.selected.setdefault(address, None)
    _show(bench)


def select_all(bench: Bench, given: Given) -> None:
    """Select all listed nodes, or those that a selector finds."""
    if given.text:
        bench.session.select(given.text)
    else:
        bench.session.places.select(_addresses(bench, range(len(bench.nodes.rows))))
    _show(bench)


def select_none(bench: Bench, given: Given) -> None:
    """Clear the selection."""
    bench.session.places.select(())
    _show(bench)


async def repeat(bench: Bench, given: Given) -> None:
    """Repeat the last edit on this node or on the selected ones."""
    session = bench.session
    step = next((each for each in reversed(session.history.made) if each.edits), None)
    if step is None:
        bench.say("there is no edit to repeat")
        return
    edit = step.edits[-1]
    field = next((each.field for each in parameters(type(edit)) if each.role == "nodes" and each.required), None)
    if not _is_one(step.edits, field):
        bench.say("the last step has several edits of different nodes; y in the history copies them", "changed")
        return
    if field is None:
        await made(bench, *step.edits)
        return
    await ready(bench)
    here = None if session.places.selected else node_selector(session.index, require_here(bench))

    def find() -> Preview:
        if here is None:
            return session.preview(*session.on_selection(edit, field))
        return session.preview(msgspec.structs.replace(edit, **{field: here}))

    await looked_at(bench, await bench.jobs.run("edit", "computing the changes", find))


def _is_one(edits: tuple[Edit, ...], field: str | None) -> bool:
    """Whether edits are the same one on different nodes, or do not depend on the node under the cursor."""
    if field is None:
        return all(each.role != "nodes" or not each.required for edit in edits for each in parameters(type(edit)))
    kinds = {type(each) for each in edits}
    return len(kinds) == 1 and len({spell_line(msgspec.structs.replace(each, **{field: "x"})) for each in edits}) == 1


def _addresses(bench: Bench, numbers: range) -> list[str]:
    """Return the addresses of the nodes in some rows."""
    scope = bench.scope
    if scope is None:
        return []
    start = f"{scope.address}/node/"
    return [f"{start}{position}" for number in numbers if (position := bench.position_of(number)) is not None]


def _number(bench: Bench, address: str) -> int | None:
    """Return the row of a node, if it is listed."""
    scope = bench.scope
    owner, _, position = address.rpartition("/node/")
    return bench.number_of(int(position)) if scope is not None and owner == scope.address else None


def _show(bench: Bench) -> None:
    bench.nodes.refresh()
    bench.draw_chrome()
    count = len(bench.session.places.selected)
    bench.say(f"{counted(count, 'node')} selected; edits apply to all of them" if count else "nothing is selected")


def copy_text(bench: Bench, text: str, what: str) -> None:
    """Copy a text to the clipboard of the terminal, or to a file if it is too big.

    Args:
        bench: the workbench that reports it.
        text: any text; it is not shown.
        what: a name of the text for the message; must be visible.
    """
    if fits_clipboard(text):
        # Lone surrogates stand for bytes that a clipboard does not accept.
        bench.app.copy_to_clipboard(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
        bench.say(f"copied {what} to the terminal's clipboard (OSC 52, unconfirmed)", "good")
        return
    path = write_file(text)
    count = size(len(text.encode("utf-8", "surrogateescape")))
    bench.say(f"{what} is too big for a clipboard ({count}) and was written to {path}", "changed")


async def copy(bench: Bench, given: Given) -> None:
    """Offer the texts of the node that can be copied."""
    ref = require_here(bench)
    found = {each.key: each for each in copies_of(bench.session.index, ref)}
    if given.text in found:
        chosen: str | None = given.text
    else:
        choices = [Choice(each.key, each.label, visible(each.text, 300)) for each in found.values()]
        chosen = await bench.app.push_screen_wait(PickerScreen("Copy", choices, is_wide=True))
    if chosen is not None:
        copy_text(bench, found[chosen].text, found[chosen].label)


def copy_row(bench: Bench, given: Given) -> None:
    """Copy the text that the page offers for the row."""
    page = bench.drawer.page
    text = "" if page is None else page.copied(bench.drawer.lines.cursor)
    if text:
        copy_text(bench, text, "the row")
    else:
        bench.say("this row has nothing to copy")


ACTIONS: Final = (
    Action("select", "toggle the selection of the node", ("v",), toggle, "Edit", footer="select"),
    Action("select-range", "select from the last selected node to this one", ("V",), select_range, "Edit"),
    Action("select-all", "select all listed nodes, or what a selector finds", (), select_all, "Edit",
           argument="[SELECTOR]"),
    Action("select-none", "select nothing", (), select_none, "Edit"),
    Action("repeat", "repeat the last edit on this node or the selection", (".",), repeat, "Edit", changes=True),
    Action(
        "copy", "copy a name, the JSON, the command ...", ("y",), copy, "Edit", footer="copy",
        argument="[name|selector|address|json|command]",
    ),
    Action("copy-row", "copy the row", ("y",), copy_row, "Keep", "drawer"),
)  # fmt: skip
