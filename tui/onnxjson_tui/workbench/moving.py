"""Move the cursor, go from pane to pane, open pages of the drawer; select nodes, repeat the last edit, copy."""

from typing import Final

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
from onnxjson_tui.names.editable_names import node_selector
from onnxjson_tui.rows.choices import Choice
from onnxjson_tui.session.history import Preview
from onnxjson_tui.shell.graph_screen import PANES
from onnxjson_tui.shell.keyed import MOTIONS
from onnxjson_tui.shell.workbench import Workbench
from onnxjson_tui.widgets.actions import Action, Arguments, Run
from onnxjson_tui.workbench.editing import make, previewed, ready, require_here

_LIMIT: Final = 74_000  # maximum bytes of base64 that terminals accept for the clipboard (OSC 52)


def _leap(workbench: Workbench, number: int) -> None:
    if workbench.lines is workbench.nodes and workbench.here is not None:
        workbench.session.places.jumps.leave(workbench.here.address)
    workbench.lines.move_to(number)


def _to_node(workbench: Workbench, number: int | None, otherwise: int) -> None:
    """Go to a node by its position, or in another pane to a row; without a number to the row `otherwise`."""
    scope = workbench.scope
    if number is None:
        _leap(workbench, otherwise)
    elif workbench.lines is not workbench.nodes or workbench.filter or scope is None or not scope.graph.node:
        _leap(workbench, number)
    else:
        workbench.go(f"{scope.address}/node/{min(number, len(scope.graph.node) - 1)}")


def _to_first(workbench: Workbench, arguments: Arguments) -> None:
    _to_node(workbench, arguments.number, 0)


def _to_last(workbench: Workbench, arguments: Arguments) -> None:
    _to_node(workbench, arguments.number, len(workbench.lines.rows) - 1)


def _turn(workbench: Workbench) -> None:
    panes = [each for each in PANES if each != "drawer" or workbench.drawer.is_open]
    workbench.focus_pane(panes[(panes.index(workbench.pane) + 1) % len(panes)])


def unfold(workbench: Workbench, arguments: Arguments) -> None:
    """Unfold the line under the cursor."""
    fold = workbench.fold_here
    if fold is None or workbench.is_open(workbench.nodes.cursor) or not workbench.turn_fold():
        workbench.nodes.move_by(1)


def fold(workbench: Workbench, arguments: Arguments) -> None:
    """Fold the line under the cursor, or the one around."""
    if workbench.fold_here is not None and not workbench.is_open(workbench.nodes.cursor):
        workbench.nodes.move_by(-1)
    elif not workbench.turn_fold():
        workbench.say("there is no line to fold here")


def _turn_fold(workbench: Workbench, arguments: Arguments) -> None:
    workbench.focus_pane("nodes")
    if not workbench.turn_fold():
        workbench.say("Z folds the nodes to lines" if not workbench.is_folded else "this line has nothing to fold")


def _turn_all(workbench: Workbench, arguments: Arguments) -> None:
    workbench.focus_pane("nodes")
    workbench.turn_all()


def choose_in_drawer(workbench: Workbench, arguments: Arguments) -> None:
    """Choose the row of the drawer."""
    if workbench.drawer.page is not None:
        workbench.drawer.page.choose(workbench.drawer.lines.cursor)


def _maximize(workbench: Workbench, arguments: Arguments) -> None:
    if workbench.pane == "drawer":
        workbench.toggle_class("whole-drawer")
    else:
        workbench.toggle_class("full")
        workbench.nodes.focus()


def page_opener(name: str) -> Run[Workbench]:
    """Return the action that opens a page of the drawer, or closes the drawer if the page is open."""

    def run(workbench: Workbench, arguments: Arguments) -> None:
        if workbench.drawer.page is workbench.drawer.pages[name]:
            workbench.drawer.close()
            workbench.focus_pane("nodes")
        else:
            workbench.drawer.open(name)
            workbench.call_after_refresh(workbench.focus_pane, "drawer")

    return run


ACTIONS: Final[tuple[Action[Workbench], ...]] = (
    *MOTIONS,
    Action("first", "first row", ("g g", "home"), _to_first, "Move"),
    Action("last", "last row", ("G", "end"), _to_last, "Move", help="120G goes to node 120."),
    Action("fold", "fold or unfold this line", ("z",), _turn_fold, "Graph", footer="fold"),
    Action(
        "fold-all", "lines or all nodes", ("Z",), _turn_all, "Graph", footer="all",
        help="The graph as lines of blocks and expressions, or as the list of its nodes with lanes.",
    ),
    Action("next-pane", "next pane", ("tab", "shift+tab"), lambda workbench, _: _turn(workbench), "Find"),
    Action("maximize", "this pane alone", ("+", "_"), _maximize, "Find"),
    Action("problems", "problems of the model", ("f5",), page_opener("problems"), "See"),
    Action("history", "steps so far", ("f8",), page_opener("history"), "See"),
)  # fmt: skip


def _toggle(workbench: Workbench, arguments: Arguments) -> None:
    lines = workbench.nodes
    if arguments.text:
        if arguments.text == "all":
            workbench.session.places.select(_addresses(workbench, range(len(lines.rows))))
        else:
            workbench.session.select(arguments.text)
        _show(workbench)
        return
    rows = range(lines.cursor, min(lines.cursor + (arguments.number or 1), len(lines.rows)))
    addresses = _addresses(workbench, rows)
    is_all = set(addresses) <= workbench.session.places.selected.keys()
    for address in addresses:
        # Of a line, all nodes are selected, or none.
        if len(addresses) == len(rows) or is_all or address not in workbench.session.places.selected:
            workbench.session.places.toggle(address)
    _show(workbench)


def _select_range(workbench: Workbench, arguments: Arguments) -> None:
    places, cursor = workbench.session.places, workbench.nodes.cursor
    other = next(
        (number for address in reversed(places.selected) if (number := _number(workbench, address)) is not None), cursor
    )
    for address in _addresses(workbench, range(min(other, cursor), max(other, cursor) + 1)):
        places.selected.setdefault(address, None)
    _show(workbench)


async def _repeat(workbench: Workbench, arguments: Arguments) -> None:
    session = workbench.session
    step = next((each for each in reversed(session.history.made) if each.edits), None)
    if step is None:
        workbench.say("there is no edit to repeat")
        return
    edit = step.edits[-1]
    field = next((each.field for each in parameters(type(edit)) if each.role == "nodes" and each.required), None)
    if not _is_one(step.edits, field):
        workbench.say("the last step has several edits of different nodes; y in the history copies them", "changed")
        return
    if field is None:
        await make(workbench, *step.edits)
        return
    await ready(workbench)
    selector = None if session.places.selected else node_selector(session.index, require_here(workbench, asks=False))

    def find(force: bool) -> Preview:
        if selector is None:
            return session.preview(*session.on_selection(edit, field), force=force)
        return session.preview(msgspec.structs.replace(edit, **{field: selector}), force=force)

    await previewed(workbench, find)


def _is_one(edits: tuple[Edit, ...], field: str | None) -> bool:
    """Whether edits are the same one on different nodes, or do not depend on the node under the cursor."""
    if field is None:
        return all(each.role != "nodes" or not each.required for edit in edits for each in parameters(type(edit)))
    kinds = {type(each) for each in edits}
    return len(kinds) == 1 and len({spell_line(msgspec.structs.replace(each, **{field: "x"})) for each in edits}) == 1


def _addresses(workbench: Workbench, numbers: range) -> list[str]:
    scope = workbench.scope
    if scope is None:
        return []
    start = f"{scope.address}/node/"
    return [f"{start}{position}" for number in numbers for position in workbench.positions_of(number)]


def _number(workbench: Workbench, address: str) -> int | None:
    scope = workbench.scope
    owner, _, position = address.rpartition("/node/")
    return workbench.number_of(int(position)) if scope is not None and owner == scope.address else None


def _show(workbench: Workbench) -> None:
    workbench.nodes.refresh()
    workbench.draw_bars()
    count = len(workbench.session.places.selected)
    more = "edits apply to all of them" if count > 1 else "V on another node selects all up to it"
    workbench.say(f"{counted(count, 'node')} selected; {more}" if count else "nothing is selected")


def copies_of(index: Index, ref: NodeRef) -> dict[str, tuple[str, str]]:
    """Return the texts that can be copied for a node, not escaped: key -> label and text."""
    node = ref.node
    found = {"name": ("name", node.name)} if node.name else {}
    found |= {f"output {slot}": (f"output {slot}", name) for slot, name in enumerate(node.output) if name}
    return found | {
        "selector": ("selector", node_selector(index, ref)),
        "address": ("address", f"@{ref.address}"),
        "json": ("JSON of the node", json_of(node)),
        "command": ("command that adds such a node", spell_line(command_of(ref))),
    }


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


def copy_text(workbench: Workbench, text: str, what: str) -> None:
    """Copy any text to the clipboard of the terminal unless it is too big; `what` is its name in messages."""
    data = text.encode("utf-8", "surrogateescape")
    if fits_clipboard(data):
        # Lone surrogates represent bytes that a clipboard does not accept.
        workbench.app.copy_to_clipboard(data.decode("utf-8", "replace"))
        workbench.say(f"copied {what} to the terminal's clipboard (OSC 52, unconfirmed)", "good")
        return
    workbench.say(f"not copied: {what} is too big for a clipboard ({size(len(data))})", "changed")


def fits_clipboard(data: bytes) -> bool:
    """Whether a text is short enough for the clipboard of a terminal."""
    return len(data) * 4 // 3 + 4 <= _LIMIT


async def copy(workbench: Workbench, arguments: Arguments) -> None:
    """Copy the row of the drawer, or a text of the node that is chosen."""
    page = workbench.drawer.page
    if workbench.pane == "drawer" and page is not None:
        text = page.copied(workbench.drawer.lines.cursor)
        if text:
            copy_text(workbench, text, "the row")
        else:
            workbench.say("this row has nothing to copy")
        return
    ref = require_here(workbench)
    copies = copies_of(workbench.session.index, ref)
    chosen: str | None = arguments.text
    if chosen not in copies:
        choices = [Choice(key, label, visible(text, 300)) for key, (label, text) in copies.items()]
        chosen = await workbench.choose("Copy", choices, is_wide=True)
    if chosen is not None:
        label, text = copies[chosen]
        copy_text(workbench, text, label)


SELECTING: Final[tuple[Action[Workbench], ...]] = (
    Action(
        "select", "select or deselect", ("v",), _toggle, "Edit", argument="[all|SELECTOR]",
        help=":select all selects all listed nodes, :select op:Conv what a selector finds; esc selects nothing.",
    ),
    Action("select-range", "select from the last one", ("V",), _select_range, "Edit"),
    Action(
        "repeat", "repeat the last edit", (".",), _repeat, "Edit", changes=True,
        help="On this node or on the selection.",
    ),
    Action(
        "copy", "copy", ("y",), copy, "Edit", argument="[name|selector|address|json|command]",
        help="A name, the JSON, the command that adds such a node; in the drawer the row.",
    ),
)  # fmt: skip
