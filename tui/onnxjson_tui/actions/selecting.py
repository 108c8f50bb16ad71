"""Select nodes for an edit on all of them, repeat the last edit, copy to the clipboard."""

import os
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from onnxjson.codecs.canonical_writer import TextWriter
from onnxjson.editing.declaration import Edit
from onnxjson.editing.nodes import AddNode
from onnxjson.editing.parameters import parameters
from onnxjson.editing.spelling import spell_line
from onnxjson.editing.values import attribute_values
from onnxjson.model.display import counted, visible
from onnxjson.model.document import Node
from onnxjson.model.index import Index, NodeRef
from onnxjson.rendering.tables import size
from onnxjson_tui.actions.editing import make, previewed, ready, require_here
from onnxjson_tui.keys.action import Action, Arguments
from onnxjson_tui.names.editable_names import node_selector
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.session.answers import Preview
from onnxjson_tui.shell.bench import Bench

_LIMIT: Final = 74_000
"""Maximum bytes of base64 that terminals accept for the clipboard (OSC 52)."""


def _toggle(bench: Bench, arguments: Arguments) -> None:
    require_here(bench)
    lines = bench.nodes
    for address in _addresses(bench, range(lines.cursor, min(lines.cursor + (arguments.number or 1), len(lines.rows)))):
        bench.session.places.toggle(address)
    _show(bench)


def _select_range(bench: Bench, arguments: Arguments) -> None:
    require_here(bench)
    places, cursor = bench.session.places, bench.nodes.cursor
    other = next(
        (number for address in reversed(places.selected) if (number := _number(bench, address)) is not None), cursor
    )
    for address in _addresses(bench, range(min(other, cursor), max(other, cursor) + 1)):
        places.selected.setdefault(address, None)
    _show(bench)


def _select_all(bench: Bench, arguments: Arguments) -> None:
    if arguments.text:
        bench.session.select(arguments.text)
        _show(bench)
    else:
        _select(bench, range(len(bench.nodes.rows)))


def _select(bench: Bench, numbers: range) -> None:
    """Select the nodes in some rows."""
    bench.session.places.select(_addresses(bench, numbers))
    _show(bench)


async def _repeat(bench: Bench, arguments: Arguments) -> None:
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
        await make(bench, *step.edits)
        return
    await ready(bench)
    here = None if session.places.selected else node_selector(session.index, require_here(bench))

    def find() -> Preview:
        if here is None:
            return session.preview(*session.on_selection(edit, field))
        return session.preview(msgspec.structs.replace(edit, **{field: here}))

    await previewed(bench, find)


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
    bench.draw_bars()
    count = len(bench.session.places.selected)
    bench.say(f"{counted(count, 'node')} selected; edits apply to all of them" if count else "nothing is selected")


class Copy(NamedTuple):
    """A text that can be copied."""

    key: str
    label: str
    text: str
    """The original text; escape it before showing it."""


def copies_of(index: Index, ref: NodeRef) -> list[Copy]:
    """Return the texts that can be copied for a node, in the order of the chooser."""
    node = ref.node
    found = [Copy("name", "name", node.name)] if node.name else []
    found += [Copy(f"output {slot}", f"output {slot}", name) for slot, name in enumerate(node.output) if name]
    found += [
        Copy("selector", "selector", node_selector(index, ref)),
        Copy("address", "address", f"@{ref.address}"),
        Copy("json", "JSON of the node", json_of(node)),
        Copy("command", "command that adds such a node", spell_line(command_of(ref))),
    ]
    return found


def json_of(node: Node) -> str:
    """Return a node as JSON, including big constants."""
    parts: list[bytes] = []
    writer = TextWriter(parts.append)
    writer.node(node, 0)
    writer.flush()
    return b"".join(parts).decode()


def command_of(ref: NodeRef) -> Edit:
    """Return the edit that adds a copy of a node; its outputs need other names while the original exists."""
    node = ref.node
    return AddNode(
        op_type=node.op_type or "?",
        input=node.input,
        output=node.output,
        attribute=attribute_values(node) or {},
        name=node.name or None,
        domain=node.domain or None,
        graph=ref.scope.address,
    )


def copy_text(bench: Bench, text: str, what: str) -> None:
    """Copy a text to the clipboard of the terminal, or to a file if it is too big.

    Args:
        bench: the workbench that reports it.
        text: any text; it is not shown.
        what: a name of the text for the message; must be visible.
    """
    data = text.encode("utf-8", "surrogateescape")
    if fits_clipboard(data):
        # Lone surrogates represent bytes that a clipboard does not accept.
        bench.app.copy_to_clipboard(data.decode("utf-8", "replace"))
        bench.say(f"copied {what} to the terminal's clipboard (OSC 52, unconfirmed)", "good")
        return
    path = write_file(data)
    bench.say(f"{what} is too big for a clipboard ({size(len(data))}) and was written to {path}", "changed")


def fits_clipboard(data: bytes) -> bool:
    """Whether a text is short enough for the clipboard of a terminal."""
    return len(data) * 4 // 3 + 4 <= _LIMIT


def write_file(data: bytes) -> Path:
    """Write a text that is too long for the clipboard to a new private file; return its path."""
    handle, name = tempfile.mkstemp(prefix="onnxjson-copy-", suffix=".txt")
    with os.fdopen(handle, "wb") as opened:
        opened.write(data)
    return Path(name)


async def _copy(bench: Bench, arguments: Arguments) -> None:
    ref = require_here(bench)
    found = {each.key: each for each in copies_of(bench.session.index, ref)}
    if arguments.text in found:
        chosen: str | None = arguments.text
    else:
        choices = [Choice(each.key, each.label, visible(each.text, 300)) for each in found.values()]
        chosen = await bench.choose("Copy", choices, is_wide=True)
    if chosen is not None:
        copy_text(bench, found[chosen].text, found[chosen].label)


def _copy_row(bench: Bench, arguments: Arguments) -> None:
    page = bench.drawer.page
    text = "" if page is None else page.copied(bench.drawer.lines.cursor)
    if text:
        copy_text(bench, text, "the row")
    else:
        bench.say("this row has nothing to copy")


ACTIONS: Final[tuple[Action[Bench], ...]] = (
    Action("select", "toggle the selection of the node", ("v",), _toggle, "Edit", footer="select"),
    Action("select-range", "select from the last selected node to this one", ("V",), _select_range, "Edit"),
    Action("select-all", "select all listed nodes, or what a selector finds", (), _select_all, "Edit",
           argument="[SELECTOR]"),
    Action("select-none", "select nothing", (), lambda bench, arguments: _select(bench, range(0)), "Edit"),
    Action("repeat", "repeat the last edit on this node or the selection", (".",), _repeat, "Edit", changes=True),
    Action(
        "copy", "copy a name, the JSON, the command ...", ("y",), _copy, "Edit", footer="copy",
        argument="[name|selector|address|json|command]",
    ),
    Action("copy-row", "copy the row", ("y",), _copy_row, "Keep", "drawer"),
)  # fmt: skip
