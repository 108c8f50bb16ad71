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


def _leap(bench: Workbench, number: int) -> None:
    if bench.lines is bench.nodes and bench.here is not None:
        bench.session.places.jumps.leave(bench.here.address)
    bench.lines.move_to(number)


def _to_node(bench: Workbench, number: int) -> None:
    """Go to a node by its position, or in another pane to a row."""
    scope = bench.scope
    if bench.lines is not bench.nodes or bench.filter or scope is None or not scope.graph.node:
        _leap(bench, number)
    else:
        bench.go(f"{scope.address}/node/{min(number, len(scope.graph.node) - 1)}")


def _turn(bench: Workbench) -> None:
    panes = [each for each in PANES if each != "drawer" or bench.drawer.is_open]
    bench.focus_pane(panes[(panes.index(bench.pane) + 1) % len(panes)])


def unfold(bench: Workbench, arguments: Arguments) -> None:
    """Unfold the line under the cursor."""
    fold = bench.fold_here
    if fold is None or bench.is_open(bench.nodes.cursor) or not bench.turn_fold():
        bench.nodes.move_by(1)


def fold(bench: Workbench, arguments: Arguments) -> None:
    """Fold the line under the cursor, or the one around."""
    if bench.fold_here is not None and not bench.is_open(bench.nodes.cursor):
        bench.nodes.move_by(-1)
    elif not bench.turn_fold():
        bench.say("there is no line to fold here")


def _turn_fold(bench: Workbench, arguments: Arguments) -> None:
    bench.focus_pane("nodes")
    if not bench.turn_fold():
        bench.say("Z folds the nodes to lines" if not bench.is_folded else "this line has nothing to fold")


def _turn_all(bench: Workbench, arguments: Arguments) -> None:
    bench.focus_pane("nodes")
    bench.turn_all()


def choose_in_drawer(bench: Workbench, arguments: Arguments) -> None:
    """Choose the row of the drawer."""
    if bench.drawer.page is not None:
        bench.drawer.page.choose(bench.drawer.lines.cursor)


def _maximize(bench: Workbench, arguments: Arguments) -> None:
    if bench.pane == "drawer":
        bench.toggle_class("whole-drawer")
    else:
        bench.toggle_class("full")
        bench.nodes.focus()


def page_opener(name: str) -> Run[Workbench]:
    """Return the action that opens a page of the drawer, or closes the drawer if the page is open."""

    def run(bench: Workbench, arguments: Arguments) -> None:
        if bench.drawer.page is bench.drawer.pages[name]:
            bench.drawer.close()
            bench.focus_pane("nodes")
        else:
            bench.drawer.open(name)
            bench.call_after_refresh(bench.focus_pane, "drawer")

    return run


ACTIONS: Final[tuple[Action[Workbench], ...]] = (
    *MOTIONS,
    Action(
        "first", "first row", ("g g", "home"),
        lambda bench, given: _leap(bench, 0) if given.number is None else _to_node(bench, given.number), "Move",
    ),
    Action(
        "last", "last row", ("G", "end"),
        lambda bench, given: (
            _leap(bench, len(bench.lines.rows) - 1) if given.number is None else _to_node(bench, given.number)
        ),
        "Move", help="120G goes to node 120.",
    ),
    Action("fold", "fold or unfold this line", ("z",), _turn_fold, "Graph", footer="fold"),
    Action(
        "fold-all", "lines or all nodes", ("Z",), _turn_all, "Graph", footer="lines/nodes",
        help="The graph as lines of blocks and expressions, or as the list of its nodes with lanes.",
    ),
    Action("next-pane", "next pane", ("tab", "shift+tab"), lambda bench, _: _turn(bench), "Find"),
    Action("maximize", "this pane alone", ("+", "_"), _maximize, "Find"),
    Action("problems", "problems of the model", ("f5",), page_opener("problems"), "See"),
    Action("history", "steps so far", ("f8",), page_opener("history"), "See"),
)  # fmt: skip

_LIMIT: Final = 74_000  # maximum bytes of base64 that terminals accept for the clipboard (OSC 52)


def _toggle(bench: Workbench, arguments: Arguments) -> None:
    lines = bench.nodes
    if arguments.text:
        if arguments.text == "all":
            bench.session.places.select(_addresses(bench, range(len(lines.rows))))
        else:
            bench.session.select(arguments.text)
        _show(bench)
        return
    rows = range(lines.cursor, min(lines.cursor + (arguments.number or 1), len(lines.rows)))
    addresses = _addresses(bench, rows)
    is_all = set(addresses) <= bench.session.places.selected.keys()
    for address in addresses:
        # Of a line, all nodes are selected, or none.
        if len(addresses) == len(rows) or is_all or address not in bench.session.places.selected:
            bench.session.places.toggle(address)
    _show(bench)


def _select_range(bench: Workbench, arguments: Arguments) -> None:
    places, cursor = bench.session.places, bench.nodes.cursor
    other = next(
        (number for address in reversed(places.selected) if (number := _number(bench, address)) is not None), cursor
    )
    for address in _addresses(bench, range(min(other, cursor), max(other, cursor) + 1)):
        places.selected.setdefault(address, None)
    _show(bench)


async def _repeat(bench: Workbench, arguments: Arguments) -> None:
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
    here = None if session.places.selected else node_selector(session.index, require_here(bench, asks=False))

    def find(force: bool) -> Preview:
        if here is None:
            return session.preview(*session.on_selection(edit, field), force=force)
        return session.preview(msgspec.structs.replace(edit, **{field: here}), force=force)

    await previewed(bench, find)


def _is_one(edits: tuple[Edit, ...], field: str | None) -> bool:
    """Whether edits are the same one on different nodes, or do not depend on the node under the cursor."""
    if field is None:
        return all(each.role != "nodes" or not each.required for edit in edits for each in parameters(type(edit)))
    kinds = {type(each) for each in edits}
    return len(kinds) == 1 and len({spell_line(msgspec.structs.replace(each, **{field: "x"})) for each in edits}) == 1


def _addresses(bench: Workbench, numbers: range) -> list[str]:
    scope = bench.scope
    if scope is None:
        return []
    start = f"{scope.address}/node/"
    return [f"{start}{position}" for number in numbers for position in bench.positions_of(number)]


def _number(bench: Workbench, address: str) -> int | None:
    scope = bench.scope
    owner, _, position = address.rpartition("/node/")
    return bench.number_of(int(position)) if scope is not None and owner == scope.address else None


def _show(bench: Workbench) -> None:
    bench.nodes.refresh()
    bench.draw_bars()
    count = len(bench.session.places.selected)
    bench.say(f"{counted(count, 'node')} selected; edits apply to all of them" if count else "nothing is selected")


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


def copy_text(bench: Workbench, text: str, what: str) -> None:
    """Copy any text to the clipboard of the terminal unless it is too big; `what` is its name in messages."""
    data = text.encode("utf-8", "surrogateescape")
    if fits_clipboard(data):
        # Lone surrogates represent bytes that a clipboard does not accept.
        bench.app.copy_to_clipboard(data.decode("utf-8", "replace"))
        bench.say(f"copied {what} to the terminal's clipboard (OSC 52, unconfirmed)", "good")
        return
    bench.say(f"not copied: {what} is too big for a clipboard ({size(len(data))})", "changed")


def fits_clipboard(data: bytes) -> bool:
    """Whether a text is short enough for the clipboard of a terminal."""
    return len(data) * 4 // 3 + 4 <= _LIMIT


async def copy(bench: Workbench, arguments: Arguments) -> None:
    """Copy the row of the drawer, or a text of the node that is chosen."""
    page = bench.drawer.page
    if bench.pane == "drawer" and page is not None:
        text = page.copied(bench.drawer.lines.cursor)
        if text:
            copy_text(bench, text, "the row")
        else:
            bench.say("this row has nothing to copy")
        return
    ref = require_here(bench)
    found = copies_of(bench.session.index, ref)
    chosen: str | None = arguments.text
    if chosen not in found:
        choices = [Choice(key, label, visible(text, 300)) for key, (label, text) in found.items()]
        chosen = await bench.choose("Copy", choices, is_wide=True)
    if chosen is not None:
        label, text = found[chosen]
        copy_text(bench, text, label)


SELECTING: Final[tuple[Action[Workbench], ...]] = (
    Action(
        "select", "select, or no longer", ("v",), _toggle, "Edit", footer="select", argument="[all|SELECTOR]",
        help=":select all selects all listed nodes, :select op:Conv what a selector finds; esc selects nothing.",
    ),
    Action("select-range", "select from the last one", ("V",), _select_range, "Edit"),
    Action(
        "repeat", "repeat the last edit", (".",), _repeat, "Edit", changes=True,
        help="On this node or on the selection.",
    ),
    Action(
        "copy", "copy", ("y",), copy, "Edit", footer="copy", argument="[name|selector|address|json|command]",
        help="A name, the JSON, the command that adds such a node; in the drawer the row.",
    ),
)  # fmt: skip
